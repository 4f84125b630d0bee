"""`tracelane info` and `index`: numbers for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import CASES, needs
from tests.events import complete
from tracelane.core import open_trace
from tracelane.core.native.library import native_library
from tracelane.tui.cli.main import main
from tracelane.tui.read_report import read_report_state

from .cli_process import tracelane, tracelane_here

FIELDS = [
    *("schema", "path", "form", "producer", "events", "slices", "instants", "counter_samples", "metadata"),
    *("async_spans", "pairs", "counter_events", "flow_events", "async_events", "empty", "flows"),
    *("unmatched_begin", "unmatched_end", "mismatched_ends", "empty_counters", "without_time", "not_objects"),
    *("negative_durations", "missing_durations", "repaired", "oversized", "unreadable", "problems"),
    *("notes", "untrusted", "start_ns", "end_ns", "base_time_ns", "processes", "scanner"),
]
FLOWS = {"starts", "steps", "ends", "paired", "orphan_starts", "orphan_ends"}


def test_object_has_exactly_these_fields(demo: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`info --json` prints one object with the documented fields, in that order, and right numbers."""
    assert main(["info", str(demo), "--json", "--index-dir", cache]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    got = json.loads(out)
    assert list(got) == FIELDS
    document = json.loads(demo.read_bytes())
    events = document["traceEvents"]
    phases = Counter(event["ph"] for event in events)
    assert got["schema"] == 1 and got["path"] == str(demo) and got["form"] == "object"
    assert (got["events"], got["slices"]) == (len(events), phases["X"])
    assert (got["instants"], got["metadata"]) == (phases["i"], phases["M"])
    assert got["counter_samples"] in (phases["C"], 2 * phases["C"])
    assert got["base_time_ns"] == document["baseTimeNanoseconds"]
    for category in ("ac2g", "fwdbwd"):
        count = sum(event["ph"] == "s" and event["cat"] == category for event in events)
        assert got["flows"][category] == {
            **dict.fromkeys(FLOWS, 0),
            "starts": count,
            "ends": count,
            "paired": count,
        }
    lanes = {
        (process["pid"], lane["tid"]): lane["slices"]
        for process in got["processes"]
        for lane in process["lanes"]
        if lane["kind"] == "thread" and lane["slices"]
    }
    assert lanes == Counter((event["pid"], event["tid"]) for event in events if event["ph"] == "X")
    labels = {process["labels"] for process in got["processes"]}
    assert {"AIU 0", "CPU"} <= labels


PLACED = {"name": "a", "pid": 1, "tid": 1}


@pytest.mark.parametrize(
    ("events", "span"),
    [
        ([{"ph": "i", "ts": 5, **PLACED}, {"ph": "i", "ts": 9, **PLACED}], [None, None]),
        ([{"ph": "C", "ts": 3, "args": {"W": 1}, **PLACED}], [None, None]),
        ([{"ph": phase, "ts": ts, "id": 1, **PLACED} for phase, ts in (("b", 2), ("e", 8))], [None, None]),
        ([{"ph": "E", "ts": 1e19, **PLACED}], [None, None]),
        ([{"ph": "B", "ts": -1e19, **PLACED}], [None, None]),
        ([{"ph": "M", "args": {"name": "p"}, **PLACED}], [None, None]),
        ([complete(5, 2, "slice"), {"ph": "i", "ts": 99, **PLACED}], [5000, 7000]),
    ],
    ids=["instants", "samples", "async spans", "an end", "a begin", "nothing", "a slice"],
)
def test_start_and_end_are_those_of_slices(
    events: list[dict[str, object]],
    span: list[int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A trace without slices has neither, whatever else is in it and at what time."""
    (tmp_path / "t.json").write_text(json.dumps(events), encoding="utf-8")
    arguments = ["info", str(tmp_path / "t.json"), "--index-dir", str(tmp_path / "index")]
    assert main([*arguments, "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert [got["start_ns"], got["end_ns"]] == span
    assert main(arguments) == 0
    length = "" if None in span else " · 2 µs"
    assert capsys.readouterr().out.splitlines()[0].endswith(f"event{'s' * (len(events) > 1)}{length}")


def test_json_has_a_line_for_each_file(demo: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a directory of two traces there are two objects, each naming its file."""
    assert main(["info", str(demo.parent), "--json", "--index-dir", cache]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [Path(one["path"]).name for one in objects] == ["rank0.pt.trace.json", "rank1.pt.trace.json"]
    assert [one["events"] for one in objects] == [3481, 3481]
    assert main(["info", str(demo.parent), "--index-dir", cache]) == 0
    assert capsys.readouterr().out.count("3,481 events") == 2


def test_notes_are_in_the_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `info` prints as notes stands in the object too, none for a trace that has none."""
    whole = {"traceEvents": [complete(0, 9, "op")]}
    for name, more in (
        ("plain", {}),
        ("analyzed", {"otherData": {"Application": "acelyzer", "Settings": {}}}),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({**more, **whole}), encoding="utf-8")
        assert main(["info", str(path), "--index-dir", str(tmp_path / "i")]) == 0
        printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
        assert main(["info", str(path), "--json", "--index-dir", str(tmp_path / "i")]) == 0
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert set(notes) <= set(printed) and bool(notes) == bool(more)


def test_index_is_made_once(demo: Path, tmp_path: Path) -> None:
    """`index --json` says where the index lies; made again only with --force; quiet without a terminal."""

    def index(*options: str) -> tuple[dict[str, object], int]:
        done = tracelane_here("index", str(demo), "--json", "--index-dir", str(tmp_path), *options)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        facts = json.loads(done.stdout)
        return facts, (Path(facts["index"]) / "manifest.json").stat().st_ino

    first, inode = index()
    assert (first["schema"], first["path"], first["events"]) == (1, str(demo), 3481)
    assert first["index_bytes"] == sum(
        file.stat().st_size for file in Path(str(first["index"])).rglob("*") if file.is_file()
    )
    assert index()[1] == inode
    again, new_inode = index("--force")
    assert new_inode != inode and again["slices"] == first["slices"]


@pytest.mark.parametrize("command", ["index", "info"])
def test_viewer_is_not_loaded(demo: Path, cache: str, command: str) -> None:
    """Neither command needs textual or rich, where the locale can write what they print."""
    code = "sys.modules.update(textual=None, rich=None)"
    done = tracelane(command, str(demo), "--index-dir", cache, code=code, LC_ALL="C.UTF-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_kept_findings_load_no_rules(demo: Path, tmp_path: Path) -> None:
    """Findings that are asked for again are read, by a process that has no rules to find them."""
    command = ("findings", str(demo), "--json", "--index-dir", str(tmp_path))
    first = tracelane(*command)
    again = tracelane(*command, code='sys.modules["tracelane.core.tables.findings.judge"] = None')
    assert first.returncode == 0 and again.stdout == first.stdout, again.stderr


@pytest.mark.slow
def test_decoders_agree(demo: Path, tmp_path: Path) -> None:
    """Both decoders print the same object, but for their names; another name is refused."""
    outputs = [
        tracelane("info", str(demo), "--json", "--index-dir", str(tmp_path / name), TRACELANE_DECODER=name)
        for name in ("native", "python", "magic")
    ]
    native, python = (json.loads(output.stdout) for output in outputs[:2])
    assert native.pop("scanner") in ("native", "python") and python.pop("scanner") == "python"
    assert native == python
    assert outputs[2].returncode == 64
    assert outputs[2].stderr == "tracelane: TRACELANE_DECODER is native or python, not 'magic'\n"


@needs(CASES)
def test_what_stands_in_no_lane_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Events without a usable time and elements that are no objects are counted, and not all is well."""
    path = str(CASES / "adversarial" / "lost.json")
    assert main(["info", path, "--json", "--index-dir", str(tmp_path)]) == 0
    got = json.loads(capsys.readouterr().out)
    counts = {key: got[key] for key in ("events", "without_time", "not_objects", "negative_durations")}
    assert counts == {"events": 19, "without_time": 9, "not_objects": 3, "negative_durations": 1}
    trace = open_trace([path], index_dir=tmp_path)
    text, all_well = read_report_state(trace.sources)
    assert not all_well and "9 without a usable time, 3 no objects" in text
    trace.close()


@pytest.mark.parametrize("decoder", ["native", "python"])
def test_the_scanner_is_named(
    demo: Path, cache: str, capsys: pytest.CaptureFixture[str], decoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both forms name the scanner that reads here: the one asked for, or Python's without a native core."""
    expected = decoder if native_library().functions is not None else "python"
    monkeypatch.setenv("TRACELANE_DECODER", decoder)
    arguments = ["info", str(demo), "--index-dir", cache]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scanner"] == expected
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"  scanner: {expected}"


@pytest.mark.parametrize("text", ['{"traceEvents": []}', "[]", '{"answer": 42}'])
def test_no_line_is_blank(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a file without events nothing but what is known of it is printed."""
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    assert main(["info", str(tmp_path / "t.json"), "--index-dir", str(tmp_path / "index")]) == 0
    assert all(line.strip() for line in capsys.readouterr().out.splitlines())
