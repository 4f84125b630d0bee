"""No command ignores an option in silence: it changes what is printed, or is said or refused."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from tests.events import write_events
from tests.tui.small_file import events
from tracelane.core.base.errors import UsageError
from tracelane.core.export.forms import FORMS as EVERY_FORM
from tracelane.core.export.forms import emit
from tracelane.core.export.listing import Listing
from tracelane.core.export.report import ALL_SLICES
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.table import Table, Tables
from tracelane.tui.cli.main import command_names, main, tracelane

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
    return write_events(tmp_path_factory.mktemp("options") / "small.json", trace_events)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit code, what was printed without its scope line, and what was said."""
    code = main(list(arguments))
    output = capsys.readouterr()
    answer = json.loads(output.out) if output.out else None
    if isinstance(answer, dict):
        answer.pop("scope", None)
    return code, json.dumps(answer), output.err


@pytest.mark.slow
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
    if code == 64:
        assert option in said
    else:
        assert code in (0, 1)


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
    for form in ("text", "json", "md", "csv"):
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
    assert "no log given" in capsys.readouterr().err


NO_TABLE = {
    *("view", "collect", "cut", "report", "export", "demo", "completion", "cache clear"),
    *("capture", "watch"),
}
"""Commands that write a file, open the viewer, or print a line now and then: what they write is no table."""
NO_PART = {"index", "info", "sql", "diff", "collect"}
"""Commands that take traces whole, or name the part otherwise: in the query, or behind a side's colon."""


def commands() -> dict[str, set[str]]:
    """Return the options of each command, those of a command inside another with both names."""
    context = click.Context(tracelane)
    options = {}
    for name in command_names():
        command = tracelane.get_command(context, name)
        assert command is not None
        inner = command.commands.items() if isinstance(command, click.Group) else ()
        for full, one in [(f"{name} {own}", each) for own, each in inner] or [(name, command)]:
            options[full] = {option for param in one.params for option in param.opts}
    return options


@pytest.mark.parametrize(("name", "options"), commands().items())
def test_common_options_have_one_spelling(name: str, options: set[str]) -> None:
    """A command that prints tables has all their forms; one that reads traces can wait, and choose ranks and
    the zone and the step of its part.
    """
    if name not in NO_TABLE:
        assert options >= {"--format", "--json", "-o"}
    if "--capture" in options:
        assert options >= {"--rank", "--wait"}
        if name not in NO_PART:
            assert options >= {"--from", "--to", "--step", "--tz", "--step-name"}


FORMS = {
    "info": (),
    "index": (),
    "chain": ("--name", "linear", "--all"),
    "telemetry": (),
    "check": ("--min", "kernels.calls=1"),
    "slices": ("--sort", "dur"),
    "sql": ("select name, dur from slices",),
}


@pytest.mark.parametrize("command", FORMS)
def test_tables_in_all_forms(command: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that are no analyses print CSV, Markdown, a page and JSON of the same rows, too."""
    start = (command, str(path), *FORMS[command], "--index-dir", str(path.parent / "index"), "--format")
    for form, begin in (("csv", ""), ("md", "**"), ("html", "<!DOCTYPE html>"), ("json", ("{", "["))):
        assert main([*start, form]) == 0
        text = capsys.readouterr().out
        assert text.startswith(begin)
        if form == "csv":
            lines = list(csv.reader(text.splitlines()))
            assert len(lines) > 1 and {len(line) for line in lines} == {len(lines[0])}


@pytest.mark.parametrize("command", commands())
def test_an_unknown_form_is_an_error(command: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no form is refused by every command that has forms, in a line that names them."""
    if command in NO_TABLE:
        return
    more = ["a", "b"] if command == "diff" else [str(path)] if command != "cache list" else []
    assert main([*command.split(), *more, *FORMS.get(command, ()), "--format", "nonsense"]) == 64
    forms = ", ".join(map(repr, ("text", *EVERY_FORM)))
    assert f"'nonsense' is not one of {forms}" in capsys.readouterr().err


def test_emit_refuses_what_is_no_form() -> None:
    """A form that is neither a command's own nor one of all is an error, never another form."""
    table = Table.from_rows(TableSchema("t", "T", (Column("a", "a", "text"),)), "all", [{"a": "x"}])
    listing = Listing("t", Tables.of(table))
    assert "".join(emit(listing, "nonsense", {"nonsense": lambda _: ["own"]})) == "own"
    with pytest.raises(UsageError, match=f"no form 'nonsense'; there are {', '.join(EVERY_FORM)}, folded"):
        emit(listing, "nonsense", {"folded": lambda _: []})


def test_chains_of_a_part(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A chain is looked for in the part that the options choose, and --limit takes the first of many."""
    start = ("chain", str(path), "--name", ".", "--all", "--index-dir", str(path.parent / "index"), "--json")
    assert main([*start]) == 0
    every = json.loads(capsys.readouterr().out)
    assert main([*start, "--step", "1"]) == 0
    part = json.loads(capsys.readouterr().out)
    assert 0 < len(part) < len(every)
    assert main([*start, "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == every[:1]
    assert main([*start, "--where", "cat:none"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_slices_of_a_step_are_those_of_its_tables(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`slices --step` lists the device work that the step launched, though it ran in the next one."""
    trace_events = events()
    for event in trace_events:
        if event.get("cat") == "kernel" or event["ph"] == "f":
            event["ts"] += 100
    late = write_events(tmp_path / "late.json", trace_events)
    start = (str(late), "--index-dir", str(tmp_path / "index"), "--step", "1", "--json")
    assert main(["kernels", *start]) == 0
    kernels = json.loads(capsys.readouterr().out)["tables"]["kernels"]["rows"]
    assert main(["slices", *start, "--where", "cat:kernel"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["slices"]["rows"]
    assert len(rows) == sum(kernel["count"] for kernel in kernels) == 1


def test_slices_are_sorted_by_their_length(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--sort dur begins with the longest, --sort=-dur with the shortest; other columns are refused."""
    start = ("slices", str(path), "--index-dir", str(path.parent / "index"), "--format", "csv", "--sort")
    lengths = []
    for key in ("dur", "-duration_ns"):
        assert main([*start, key]) == 0
        lengths.append(
            [int(row["duration_ns"]) for row in csv.DictReader(capsys.readouterr().out.splitlines())]
        )
    assert lengths[0] == sorted(lengths[1], reverse=True) and lengths[1] == sorted(lengths[1])
    assert main([*start, "name"]) == 64
    assert "start_ns, duration_ns, self_ns" in capsys.readouterr().err


def test_columns_are_sorted_by_what_people_read(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--sort takes the heading of a column, and its key without the unit."""
    start = ("kernels", str(path), "--index-dir", str(path.parent / "index"), "--format", "csv", "--sort")
    printed_tables = []
    for name in ("total_ns", "total", "Total", "TOTAL"):
        assert main([*start, name]) == 0
        printed_tables.append(capsys.readouterr().out)
    assert len(set(printed_tables)) == 1
    by_name = []
    for name in ("Name", "-Name"):
        assert main([*start, name]) == 0
        by_name.append(capsys.readouterr().out.splitlines()[1:])
    assert len(by_name[0]) == 2 and by_name[0] == by_name[1][::-1]
    assert main([*start, "nothing"]) == 64


def test_a_name_is_a_key_of_filters(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """name:TEXT finds the same slices as TEXT alone; a name that begins with name:: is looked for whole."""
    start = ("slices", str(path), "--index-dir", str(path.parent / "index"), "--format", "csv", "--where")
    answers = []
    for text in ("linear", "name:linear", "name:/line+ar/", "name::linear"):
        assert main([*start, text]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] == answers[2] != answers[3]


def test_wall_times_are_read_in_a_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--from with a time of day means the zone of --tz; an unknown zone is refused."""
    base = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * 10**9
    trace = {"baseTimeNanoseconds": base, "traceEvents": events()}
    path = tmp_path / "timed.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    start = ("slices", str(path), "--index-dir", str(tmp_path / "index"), "--to", "14:00:00.0011", "--json")
    assert main([*start, "--tz", "+02:00"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["slices"]["rows"]
    assert rows and all(row["start_ns"] < 1_100_000 for row in rows)
    assert main([*start, "--tz", "UTC"]) == 0
    more = json.loads(capsys.readouterr().out)["tables"]["slices"]["rows"]
    assert len(more) > len(rows)
    assert main([*start, "--tz", "Nowhere/None"]) == 64
    assert "no time zone" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "options"), commands().items())
def test_an_option_has_one_spelling(name: str, options: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No command understands a long name that its help does not print."""
    assert main([*name.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    assert not [option for option in options if option.startswith("--") and option not in printed]
