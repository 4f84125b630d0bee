"""`tracelane telemetry`: logs understood, their clocks fitted to the trace, energy per step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs
from tests.events import complete, write_events
from tests.json_tables import command_json
from tracelane.core.demo.trace import write_demo
from tracelane.core.logs.overlay import LogOptions, open_overlay
from tracelane.core.logs.telemetry_tables import kernels_table
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

FOLDER = CORPUS / "aiu_smi"
PAIRS: list[dict[str, Any]] = (
    json.loads((FOLDER / "PAIRS.json").read_text(encoding="utf-8")) if FOLDER.is_dir() else []
)
FIELDS = [
    *("path", "format", "columns", "devices", "rows", "missing", "unparsed", "interval_s"),
    *("utc_offset_s", "lag_s", "confidence", "reason"),
]

pairs = pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p["smi_log"][:5])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo's two ranks and their log."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return folder


@needs(CORPUS)
@pairs
def test_pairs(pair: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The proposed zone is exactly the true one, the lag within an interval, the traced card found."""
    trace = CORPUS / "aiu" / "spyre_torch_profiler" / pair["trace"]
    log = FOLDER / pair["smi_log"]
    answer = command_json(capsys, "telemetry", str(trace), "--smi", str(log), "--index-dir", str(tmp_path))
    (entry,) = answer["logs"]
    assert [key for key in FIELDS if key not in entry] == []
    assert entry["path"] == str(log)
    assert entry["utc_offset_s"] == pair["utc_offset_s"]
    assert abs(entry["lag_s"] - pair["clock_skew_s"]) <= pair["interval_s"]
    traced = [str(device["smi_id"]) for device in pair["devices"] if device["is_the_traced_AIU"]]
    assert entry["device_of"] == {traced[0]: "0"}
    assert entry["rows"] + entry["missing"] == pair["device_rows"]


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        (("--smi-tz", "+02:00"), "utc_offset_s", 7200),
        (("--smi-tz", "America/New_York"), "utc_offset_s", -14400),
        (("--smi-offset", "-1.5"), "lag_s", -1.5),
        (("--smi-device", "1=0"), "device_of", {"1": "0"}),
    ],
)
def test_what_is_given_holds(
    demo: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, str],
    key: str,
    value: Any,
) -> None:
    """Zone, lag and card are those given, whatever would fit better."""
    trace = str(demo / "rank0.pt.trace.json")
    answer = command_json(capsys, "telemetry", trace, *options, "--index-dir", str(tmp_path))
    assert answer["logs"][0][key] == value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--smi-tz", "Mars/Base"), "no time zone is called 'Mars/Base'"),
        (("--smi-device", "0=77"), "no device of the trace has this pid"),
        (("--smi-device", "9=0"), "no log has a device 9"),
        (("--smi-device", "0"), "takes ID=PID"),
        (("--smi", "nowhere.txt"), "nowhere.txt: no such file"),
    ],
)
def test_what_cannot_be(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, str], message: str
) -> None:
    """What does not exist is told in one line."""
    trace = str(demo / "rank0.pt.trace.json")
    assert main(["telemetry", trace, *options, "--index-dir", str(tmp_path)]) != 0
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_trace_without_wall_time(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log is described all the same, and why it has no clock is told."""
    trace = tmp_path / "bare.json"
    trace.write_text(
        '{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "pid": 0, "tid": 0, "name": "a"}]}', encoding="utf-8"
    )
    log = str(demo / "aiu-smi.log")
    (entry,) = command_json(
        capsys, "telemetry", str(trace), "--smi", log, "--index-dir", str(tmp_path / "i")
    )["logs"]
    assert entry["utc_offset_s"] is None and "has no wall time" in entry["reason"]
    assert entry["rows"] > 0


def test_energy_by_step(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step of each rank has an energy that is its mean power times its duration, where it is covered."""
    answer = command_json(capsys, "telemetry", str(demo), "--by", "step", "--index-dir", str(tmp_path))
    assert [(row["step"], row["device"][:5]) for row in answer["steps"]] == [
        (step, "AIU 0") for step in ("3", "3", "4", "4", "5", "5")
    ]
    for row in answer["steps"]:
        assert row["coverage"] == 1.0
        assert row["energy_j"] == pytest.approx(row["power_mean_w"] * row["duration_ns"] / 1e9, rel=1e-6)
        assert 20 < row["power_mean_w"] <= row["power_max_w"] < 80


def test_energy_of_a_range(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The energies of the parts of a stretch add up to that of the whole, and steps in it are told alone."""
    trace = (str(demo / "rank0.pt.trace.json"), "--index-dir", str(tmp_path))
    ranges = [("+100ms", "+1s"), ("+100ms", "+437ms"), ("+437ms", "+1s")]
    tables = [command_json(capsys, "telemetry", *trace, "--from", a, "--to", b)["range"] for a, b in ranges]
    (whole,), (first,), (second,) = tables
    assert whole["step"] == "range" and whole["duration_ns"] == 900_000_000
    assert whole["energy_j"] == pytest.approx(first["energy_j"] + second["energy_j"], abs=1e-6)
    assert whole["power_max_w"] == max(first["power_max_w"], second["power_max_w"])
    steps = command_json(capsys, "telemetry", *trace, "--by", "step", "--from", "step:4")["steps"]
    assert [row["step"] for row in steps] == ["4"]


def test_energy_by_kernel(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By kernel the energies of each card add up to those of its steps, and say that they are attributed."""
    trace = (str(demo / "rank0.pt.trace.json"), "--index-dir", str(tmp_path))
    part = ("--from", "+100ms", "--to", "+1s")
    answer = command_json(capsys, "telemetry", *trace, *part, "--by", "kernel")
    (whole,) = command_json(capsys, "telemetry", *trace, *part)["range"]
    assert sum(row["energy_j"] for row in answer["kernels"]) == pytest.approx(whole["energy_j"], rel=1e-6)
    assert "an estimate" in answer["notes"][0]
    assert main(["telemetry", *trace, "--by", "kernel"]) == 0
    assert "(while none ran)" in capsys.readouterr().out


@needs(CORPUS)
def test_steps_that_no_profiler_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """A step is what `tracelane steps` finds: here the compiled region that repeats."""
    (trace,) = CORPUS.glob("aiu/spyre_torch_profiler/decode_bmm__upstream-main*.json")
    log = CORPUS / "aiu_smi/PAIR2_decode_bmm_upstream_newyork_100ms.csv"
    rows = command_json(capsys, "telemetry", trace, "--smi", log, "--by", "step")["steps"]
    assert [row["step"] for row in rows] == ["0", "1", "2", "3"]
    assert all(row["energy_j"] > 0 and row["coverage"] == 1 for row in rows)


def test_counters_of_the_trace_are_told_without_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace's own counters are listed, in JSON under a key of their own; a trace without any says so."""
    events = [
        complete(0, 100, "op"),
        {"ph": "C", "name": "Power", "pid": 1, "ts": 0, "args": {"Watts": 31.5}},
    ]
    path = write_events(tmp_path / "counted.json", events)
    answer = command_json(capsys, "telemetry", str(path))
    assert answer["logs"] == []
    (row,) = answer["counters"]
    assert (row["counter"], row["unit"], row["samples"], row["mean"]) == ("Power", "W", 1, 31.5)
    assert main(["telemetry", str(path)]) == 0
    assert "Power" in capsys.readouterr().out
    path.write_text(json.dumps({"traceEvents": [*events[:1], {**events[1], "ts": 50}]}), encoding="utf-8")
    assert main(["telemetry", str(path), "--to", "+10us"]) == 64
    assert "no counter of the trace has a sample in that range" in capsys.readouterr().err
    path.write_text(json.dumps({"traceEvents": events[:1]}), encoding="utf-8")
    assert main(["telemetry", str(path)]) == 64
    assert "the trace has no counters" in capsys.readouterr().err


def log_of_another_day(demo: Path, folder: Path) -> Path:
    """Write the demo's log as recorded five days later: its runs look alike."""
    lines = (demo / "aiu-smi.log").read_text(encoding="utf-8").splitlines()
    days = [
        str(int(line.split()[1]) + 5) if line[:1] == " " and line.split()[0].isdigit() else ""
        for line in lines
    ]
    path = folder / "other.log"
    path.write_text(
        "\n".join(line.replace(line.split()[1], day, 1) if day else line for line, day in zip(lines, days)),
        encoding="utf-8",
    )
    return path


def test_a_log_of_another_run_is_no_fact(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is described as such; sums over it are refused, and a report beside it leaves it out and says so."""
    rank, cache = str(demo / "rank0.pt.trace.json"), ("--index-dir", str(tmp_path / "cache"))
    other = log_of_another_day(demo, tmp_path)
    (entry,) = command_json(capsys, "telemetry", rank, "--smi", str(other), *cache)["logs"]
    assert (entry["verdict"], entry["confidence"]) == ("foreign", 0)
    assert main(["telemetry", rank, "--smi", str(other), "--by", "step", *cache]) == 64
    said = capsys.readouterr().err
    assert "is of another run" in said and "--smi-offset" in said
    assert main(["view", rank, "--print", "--smi", str(other), *cache]) == 64
    capsys.readouterr()
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "rank0.pt.trace.json").write_bytes(Path(rank).read_bytes())
    other.rename(alone / "aiu-smi.log")
    assert main(["report", str(alone / "rank0.pt.trace.json"), *cache]) == 0
    said = capsys.readouterr().out
    assert "Left out: " in said and "is of another run" in said
    assert "covers" not in said


def test_two_logs_of_a_card_do_not_add_up(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row names its log, and energies that two logs tell of one device have no sum."""
    rank, cache = str(demo / "rank0.pt.trace.json"), ("--index-dir", str(tmp_path / "cache"))
    one, copy = demo / "aiu-smi.log", tmp_path / "copy.log"
    copy.write_bytes(one.read_bytes())
    for by in ("kernel", "step"):
        rows = command_json(
            capsys, "telemetry", rank, "--smi", str(one), "--smi", str(copy), "--by", by, *cache
        )[f"{by}s"]
        assert {row["log"] for row in rows} == {"aiu-smi.log", "copy.log"}
    trace = open_trace([rank])
    assert kernels_table(open_overlay(trace, [one], LogOptions())).totals["energy_j"]
    assert "energy_j" not in kernels_table(open_overlay(trace, [one, copy], LogOptions())).totals
