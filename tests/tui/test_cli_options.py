"""No command ignores an option in silence: it changes what is printed, or is said or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tui.small_file import events
from tracelane.core.export.report import ALL_SLICES
from tracelane.tui.cli.main import main

COMMANDS = {
    "range": ("--format", "json"),
    "slices": ("--format", "json"),
    "ops": ("--format", "json"),
    "steps": ("--format", "json"),
    "breakdown": ("--format", "json"),
    "kernels": ("--format", "json"),
    "idle": ("--format", "json"),
    "launches": ("--format", "json"),
    "ranks": ("--format", "json"),
    "findings": ("--format", "json"),
    "memory": ("--format", "json"),
    "compile": ("--format", "json"),
    "summary": ("--json",),
    "check": ("--json", "--min", "kernels.calls=9"),
}
PARTS = {
    "--where": "dur>40us -cat:kernel",
    "--lanes": "thread 8",
    "--from": "+100us",
    "--to": "+90us",
    "--step": "1",
    "--skip-first": "1",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps with an op, a launch, a kernel and an allocation each."""
    trace_events = events()
    for step in range(2):
        args = {
            "Device Type": 0,
            "Device Id": -1,
            "Addr": 64 + step,
            "Bytes": 8,
            "Total Allocated": 8 + 8 * step,
        }
        at = {"pid": 7, "tid": 7, "ts": 1020 + 100 * step, "s": "t"}
        trace_events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", **at, "args": args})
        region = {"pid": 7, "tid": 7, "ts": 1002 + 100 * step, "dur": 5}
        trace_events.append({"ph": "X", "cat": "cpu_op", "name": "Torch-Compiled Region: 0/0", **region})
    file = tmp_path_factory.mktemp("options") / "small.json"
    file.write_text(json.dumps({"traceEvents": trace_events}))
    return file


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit code, what was printed without its scope line, and what was said."""
    code = main(list(arguments))
    output = capsys.readouterr()
    answer = json.loads(output.out) if output.out else None
    if isinstance(answer, dict):
        answer.pop("scope", None)
    return code, json.dumps(answer), output.err


@pytest.mark.parametrize("option", PARTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_part_of_a_trace_is_another(
    command: str, option: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command counts less of the trace where it is told to, or refuses."""
    start = (command, str(path), *COMMANDS[command], "--index-dir", str(path.parent / "index"))
    _, whole, _ = printed(capsys, *start)
    code, part, said = printed(capsys, *start, option, PARTS[option])
    assert part != whole
    assert code in (0, 1) or (code == 64 and option in said)


@pytest.mark.parametrize(
    ("command", "column"), [("breakdown", "rank"), ("compile", "name"), ("range", "name")]
)
def test_json_keeps_order_and_limit(
    command: str, column: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first table of the JSON is sorted and cut as that of every other form."""
    start = (command, str(path), "--json", "--index-dir", str(path.parent / "index"))
    code, text, _ = printed(capsys, *start, "--limit", "1", "--sort", f"-{column}")
    assert code == 0
    tables = json.loads(text)["tables"]
    (row,) = next(iter(tables.values()))["rows"]
    every = next(iter(json.loads(printed(capsys, *start)[1])["tables"].values()))["rows"]
    assert row[column] == min(one[column] for one in every)


def test_a_filter_is_not_for_allocations(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """[memory] records are no slices: that a filter does not choose among them is said in every form."""
    start = ("memory", str(path), "--index-dir", str(path.parent / "index"), "--where", "cat:kernel")
    for form in ("table", "json", "md", "csv"):
        assert main([*start, "--format", form]) == 0
        output = capsys.readouterr()
        assert "records are no slices" in (output.err if form == "csv" else output.out)


def test_findings_of_a_report_look_at_all_slices(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Findings need what lanes and filters leave out: a report's are of all slices, and say so."""
    start = ("report", str(path), "--index-dir", str(path.parent / "index"))
    sections = []
    for more in ((), ("--lanes", "thread 8"), ("--where", "cat:none")):
        assert main([*start, *more]) == 0
        text = capsys.readouterr().out
        assert (ALL_SLICES in text) == bool(more)
        sections.append(
            text.partition("## Findings")[2].partition("## Ops")[0].replace(f"{ALL_SLICES}\n\n", "")
        )
    assert sections[0] == sections[1] == sections[2]


def test_options_for_logs_need_a_log(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace's own counters have no clock of a log: what would set it is refused without one."""
    start = ("telemetry", str(path), "--index-dir", str(path.parent / "index"))
    assert main([*start]) == 0
    assert "power" in capsys.readouterr().out
    assert main([*start, "--smi-offset", "1"]) == 64
    assert "no log is given" in capsys.readouterr().err
