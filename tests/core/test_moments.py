"""Times that count from an origin: they name it, and different ones differ as they are written."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tracelane
from tests.core.findings_traces import call, kernel, launched, step
from tests.corpus import file, for_files, traces
from tests.events import Event
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.units import format_moment, format_ns, moment_digits, origin_text
from tracelane.core.demo.trace import write_demo
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

DAY_US = 86_400 * 10**6
EPOCH_US = 1_780_611_618_134_227


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "+0 ns"),
        (-5, "-5 ns"),
        (1_234_567_891, "+1.234567891 s"),
        (123_000_000_004, "+2 min 03.000000004 s"),
        (3_660_000_000_000, "+1 h 01 min 00 s"),
        (64 * DAY_US * 1000 + 3_661_500_000_000, "+64 d 01 h 01 min 01.5 s"),
    ],
)
def test_moments_are_exact(ns: int, text: str) -> None:
    """A moment has its sign, and loses nothing however long it is."""
    assert format_moment(ns) == text


@pytest.mark.parametrize("seed", range(60))
def test_digits_tell_moments_apart(seed: int) -> None:
    """As many digits as are needed, and no more, at every size."""
    pick = random.Random(seed)
    base = 10 ** pick.randrange(16)
    moments = {base + pick.randrange(10 ** pick.randrange(1, 12)) for _ in range(pick.randrange(1, 9))}
    digits = moment_digits(np.array(sorted(moments)))

    def differ(digits: int) -> bool:
        return len({format_ns(moment, digits) for moment in moments}) == len(moments)

    assert digits == next(digits for digits in (3, 6, 9) if differ(digits))


def test_origin_is_named_as_in_the_file() -> None:
    """In µs, exact, also before zero."""
    assert origin_text(5_533_068_084_941_022) == "times count from where the trace begins: @5533068084941.022"
    assert "@-0.001" in origin_text(-1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _path(folder: Path, events: list[Event]) -> str:
    path = folder / "t.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return str(path)


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments, "--index-dir", "cache"]) == 0
    return capsys.readouterr().out


def _steps(at: float, device_at: float, spacing: float = 1000) -> list[Event]:
    """Four steps with a launch each; what they launched stands `device_at` from its step."""
    events: list[Event] = []
    for number in range(4):
        start = at + number * spacing
        events += [step(number, start, spacing * 0.9), call(start + 1, 3, "cudaMalloc")]
        events += launched(start + 10, 5, start + device_at, 20, f"k{number}")
    return events


@pytest.mark.parametrize(
    ("at", "spacing"), [(EPOCH_US, 1000), (5, 1000), (-2500, 1000), (EPOCH_US, 30), (3600e6, 1000)]
)
def test_starts_of_steps_count_from_where_the_trace_begins(
    at: float, spacing: float, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stamps since 1970, small ones, negative ones: each step has a start of its own, from a named origin."""
    path = _path(folder, _steps(at, 50, spacing))
    text = _printed(capsys, "steps", path)
    starts = re.findall(r"^\d +(\S+ \w+)", text, re.MULTILINE)
    assert len(set(starts)) == 4 and all(start[0] == "+" for start in starts)
    answer = json.loads(_printed(capsys, "steps", path, "--json"))
    assert origin_text(answer["origin_ns"]) in text
    rows = answer["tables"]["steps"]["rows"]
    assert [row["start_ns"] for row in rows] == [round(number * spacing * 1000) for number in range(4)]
    assert [format_moment(row["start_ns"]) for row in rows] == starts


def test_lost_device_times_do_not_move_the_origin(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Work at 0 in the file, days before its launches: steps count from the host's begin, and what would be
    days to the launch is not known.
    """
    path = _path(folder, [*_steps(64 * DAY_US, -64 * DAY_US), *(call(64 * DAY_US - 3, 1, "cudaFree"),)])
    text = _printed(capsys, "steps", path)
    assert " d 0" not in text and "launch to work are not known" in text
    answer = json.loads(_printed(capsys, "steps", path, "--json"))
    assert answer["origin_ns"] == (64 * DAY_US - 3) * 1000
    rows = answer["tables"]["steps"]["rows"]
    assert [row["start_ns"] for row in rows] == [3000, 1_003_000, 2_003_000, 3_003_000]
    assert {row["launch_offset_ns"] for row in rows} == {None} and {row["by_launch"] for row in rows} == {1}
    ranged = _printed(capsys, "steps", path, "--from", "+1.0ms", "--to", "+2.5ms", "--json")
    assert [row["step"] for row in json.loads(ranged)["tables"]["steps"]["rows"]] == ["1"]


@pytest.mark.parametrize("command", ["steps", "idle", "launches", "findings", "doctor", "slices"])
def test_what_has_moments_says_from_where(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text and Markdown name the origin; times before it have a minus."""
    events = [*_steps(EPOCH_US, 200), kernel(EPOCH_US - 70 * DAY_US, 5, "stray")]
    path = _path(folder, events)
    main([command, path, "--index-dir", "cache"])
    text = capsys.readouterr().out
    if command == "slices":  # as in the file
        assert "Start (ns)" in text
        return
    origin = origin_text(EPOCH_US * 1000)
    assert "+-" not in text and (origin in text or "nothing found" in text)
    if command in ("steps", "idle", "launches"):
        main([command, path, "--format", "md", "--index-dir", "cache"])
        assert origin in capsys.readouterr().out.replace("`", "")


MOMENTS = frozenset({"ts", "start_ns", "end_ns", "at_ns", "peak_ns"})
"""Columns called so say when something was, in every table."""
UNSAID = {("slices", "text"), *(("breakdown", form) for form in ("text", "md", "html"))}
"""Where people see no moment, or one that is as in the file."""
COMMANDS = (
    *((row.command,) for row in ANALYSES),
    ("slices", "--limit", "200"),
    ("sql", "select ts, dur, start_ns from kernels order by ts"),
    ("telemetry", "--by", "step"),
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, int, int]:
    """The demo's first rank beside its log, a folder for its index, and its first and last time."""
    folder = tmp_path_factory.mktemp("demo")
    path = write_demo(folder)[0]
    start, end = open_trace(path, index_dir=folder / "index").span
    return str(path), str(folder / "index"), start, end


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_moment_and_its_origin_are_trace_time_in_every_form(
    words: tuple[str, ...], demo: tuple[str, str, int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON and CSV of a command have the same moments, and with the origin that stands beside them they lie
    within the trace; what people read counts from where it begins, and says so.
    """
    path, index, start, end = demo

    def printed(form: str) -> str:
        main([words[0], path, *words[1:], "--index-dir", index, "--format", form])
        return capsys.readouterr().out

    answer = json.loads(printed("json"))
    first = "steps" if words[0] == "telemetry" else next(iter(answer["tables"]))
    rows, listed = answer["tables"][first]["rows"], [*csv.DictReader(io.StringIO(printed("csv")))]
    moments = MOMENTS & {column["name"] for column in answer["tables"][first]["columns"]}
    for key in moments:
        times = [row[key] + answer["origin_ns"] for row in rows if row[key] is not None]
        assert times == [int(row[key]) + int(row.get("origin_ns", 0)) for row in listed if row[key]]
        assert all(start <= time <= end for time in times), key
    for form in ("text", "md", "html"):
        text = printed(form)
        assert not re.search(r"\b\d+ d \d\d h", text)
        if moments and (words[0], form) not in UNSAID:
            assert origin_text(start) in text.replace("`", "")


OFFSET = re.compile(r"[+-](?:[\d,]+ (?:d|h|min) ?)?(?:\d\d (?:h|min) ?)*[\d.]+ (?:ns|µs|ms|s)\b")
"""A moment as people read it: `+3 h 02 min 01.5 s`."""
IN_NS = {
    "d": 86_400 * 10**9,
    "h": 3600 * 10**9,
    "min": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "µs": 10**3,
    "ns": 1,
}


def offset_ns(text: str) -> float:
    """Return a moment as people read it in ns."""
    parts = re.findall(r"([\d,.]+) (\w+)", text)
    return sum(float(number.replace(",", "")) * IN_NS[unit] for number, unit in parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("report", "{path}"),
        ("report", "{path}", "--baseline", "{path}"),
        ("diff", "{path}", "{path}"),
        ("export", "{path}", "-o", "page.html"),
        *((row.command, "{path}", "--format", form) for row in ANALYSES for form in ("text", "md", "html")),
    ],
    ids=" ".join,
)
def test_no_printed_offset_is_longer_than_the_trace(
    words: tuple[str, ...],
    demo: tuple[str, str, int, int],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a trace whose times count from 1970, no report, page or table says that something was years after
    its begin.
    """
    path, index, start, end = demo
    assert main([word.format(path=path) for word in words] + ["--index-dir", index]) == 0
    text = capsys.readouterr().out + "".join(page.read_text("utf-8") for page in folder.glob("*.html"))
    offsets = [offset_ns(match[0]) for match in OFFSET.finditer(text)]
    assert all(offset <= end - start for offset in offsets)
    assert offsets or words[0] != "report"


@pytest.mark.parametrize("library", ["", "pandas", "pyarrow", "polars"])
def test_frames_name_what_moments_count_from(library: str, demo: tuple[str, str, int, int]) -> None:
    """Of every table in Python a column is of moments if it is called so, and with the origin beside it they
    lie within the trace, in other libraries, too.
    """
    if library:
        pytest.importorskip(library)
    path, index, start, end = demo
    opened = tracelane.open(path, index_dir=index)
    tables = [table for row in ANALYSES for table in opened.tables(row.name)]
    tables += [opened.slices(), opened.sql("select ts, dur, start_ns from kernels")]
    seen = set()
    for table in tables:
        moments = {column.key for column in table.columns if column.moment}
        assert moments == MOMENTS & {column.key for column in table.columns}, table.name
        verb = {"pandas": table.to_pandas, "pyarrow": table.to_arrow, "polars": table.to_polars}
        columns = verb[library]() if library else table
        for key in moments if len(table) else ():
            origin = np.asarray(columns["origin_ns"]) if library and table.origin_ns else table.origin_ns
            times = np.asarray(columns[key]) + origin
            times = times[times == times]
            seen.add((table.name, key))
            assert ((times >= start) & (times <= end)).all(), (table.name, key)
    assert {("steps", "start_ns"), ("gaps", "start_ns"), ("slices", "start_ns"), ("rows", "ts")} <= seen


def test_moments_beside_none_are_exact(folder: Path) -> None:
    """A time since 1970 keeps its last ns where another row has none: in rows, order and other libraries."""
    times = [EPOCH_US * 1000 + ns for ns in (1, 3, 2)]
    query = " union all ".join(f"select {time} as ts" for time in (*times, "null"))
    opened = tracelane.open(_path(folder, _steps(EPOCH_US, 50)), index_dir=str(folder / "cache"))
    table = opened.sql(query)
    assert [row["ts"] for row in table] == [*times, None]
    assert [row["ts"] for row in table.sort("ts")] == [*sorted(times, reverse=True), None]
    assert [row["ts"] for row in table.as_read] == [1, 3, 2, None]
    if find_spec("pyarrow"):
        assert table.to_arrow().to_pydict()["ts"] == [*times, None]
    if find_spec("polars"):
        assert table.to_polars()["ts"].to_list() == [*times, None]


TRACES = traces("*/*.json*")


@pytest.mark.slow
@for_files("name", TRACES)
def test_moments_lie_within_the_trace(name: str, corpus_cache: Path) -> None:
    """Whatever table of whatever analysis: from the origin that it names, no moment is outside the trace."""
    try:
        trace = open_trace(file(name), index_dir=corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    start, end = trace.span_at(trace.clocks)
    for row in ANALYSES:
        for table in row.run(Scope(trace, clocks=trace.clocks)):
            for column in (one for one in table.columns if one.moment):
                times = np.asarray(table.data[column.key])
                times = times[~np.isnan(times)]
                outside = (times < start - table.origin_ns) | (times > end - table.origin_ns)
                assert not outside.any(), f"{row.name}, {table.name}: {column.key}"
