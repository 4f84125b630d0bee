"""What aiu-trace-analyzer changed in a trace is told, as far as the file has its settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete
from tracelane.core.index.analyzer import OVERLAPS, analyzer_notes
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.read_report import read_report_rows

TORCH = {"profile": "/x/profiles/torch_minimal.json", "overlap": "warn"}


def note(line: str = "", **settings: Any) -> str:
    """Return the note of a file with these settings, or with a command line alone."""
    other_data: dict[str, Any] = {"Application": "Acelyzer: Trace Post-Processing Tool", "CmdLine": line}
    if settings:
        other_data["Settings"] = settings
    (text,) = analyzer_notes({"envelope": {"otherData": other_data}})
    return text


@pytest.mark.parametrize("overlap", ["drop", "tid", "async", "shift"])
def test_overlap_modes(overlap: str) -> None:
    """Each way to deal with overlaps is told by what became of the slices, from settings or command line."""
    assert OVERLAPS[overlap] in note(**TORCH | {"overlap": overlap})
    for line in (f"acelyzer -i a.json --tb -O {overlap}", f"acelyzer --tb --overlap={overlap} -i a.json"):
        assert OVERLAPS[overlap] in note(line)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sync_to_dev": True}, "device's timers"),
        ({"event_filter": "name:Prep$"}, "that match name:Prep$"),
        ({"filter": "C"}, "types C"),
        ({"event_limit": {"skip": 5}}, "beyond a limit"),
        ({"event_limit": {"count": 1000}}, "beyond a limit"),
        ({"comm_summarize_seq": True}, "sequences of communication"),
        ({"tb": True, "tb_refinement": True}, "numbers are taken out of names"),
        ({"profile": "/x/default.json"}, "may be moved by their cycle counts (profile default)"),
        ({"profile": "p.json", "input": "a.json,b.json"}, "ranks are aligned"),
        ({"profile": "p.json", "flex_ts_fix": True}, "per job"),
        ({"profile": "p.json", "drop_globals": True}, "without stamps of the device"),
    ],
)
def test_settings(settings: dict[str, Any], words: str) -> None:
    """Each setting that changes times or events is told, and nothing of it without."""
    assert words in note(**TORCH | settings)
    assert words not in note(**TORCH)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"flex_ts_fix": True, "drop_globals": True},  # stages that this profile has not
        {
            "event_limit": {
                "skip": 0,
                "count": 1 << 60,
                "ts_start": 0.0,
                "ts_end": 1.7e308,
                "no_count_types": "M",
            }
        },
        {"tb": True, "tb_refinement": True, "keep_names": True},
    ],
)
def test_no_change(settings: dict[str, Any]) -> None:
    """Settings that change nothing are said to."""
    assert "no change to times or events" in note(**TORCH | settings)


def test_what_is_not_told() -> None:
    """Without settings and command line the note says so; of files by others nothing is said."""
    assert "does not say what it changed" in note()
    assert "does not say what it changed" in note("acelyzer 'unclosed")
    for envelope in (None, {}, {"otherData": 5}, {"otherData": {"Application": "x"}}):
        assert analyzer_notes({"envelope": envelope}) == ()
    assert analyzer_notes({}) == ()


def test_on_opening(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The note is among the trace's, at first and from the kept index, in `info` and in what was read."""
    other_data = {"Application": "Acelyzer", "Settings": TORCH | {"overlap": "drop"}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [complete(0, 5)], "otherData": other_data}))
    for _ in range(2):
        trace = open_trace(path, index_dir=tmp_path / "index")
        assert [one for one in trace.sources[0].notes if OVERLAPS["drop"] in one]
        assert [row for row in read_report_rows(trace.sources) if OVERLAPS["drop"] in row.text]
        trace.close()
    assert main(["info", str(path), "--index-dir", str(tmp_path / "index")]) == 0
    assert OVERLAPS["drop"] in capsys.readouterr().out


@needs_corpus
def test_the_sample(corpus_cache: Path) -> None:
    """The sample tells that overlaps went to further lanes and that names lost their numbers."""
    trace = open_trace(CORPUS / "aiu" / "acelyzer_spyre_mlp_tb.pt.trace.json", index_dir=corpus_cache)
    (text,) = [one for one in trace.sources[0].notes if "aiu-trace-analyzer" in one]
    assert OVERLAPS["tid"] in text and "taken out of names" in text and "FLEX" not in text
