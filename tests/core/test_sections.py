"""Section calls of a SambaTune report: by hyperfunction and hypersection, with means of their arguments."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.events import complete, metadata
from tests.sambatune import CNAMES, HYPERFUNCTIONS, RUNS, section_calls, write_report
from tracelane.core.query.filter import parse
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.sections import HOLDERS, By, is_report, sections
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.hit_search import matches

PAIRS = [(name, part) for name in HYPERFUNCTIONS for part in CNAMES]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(write_report(tmp_path), index_dir=tmp_path / "index")


def test_rows_are_those_of_the_report(trace: Trace) -> None:
    """The run of the model comes first, then the hyperfunctions in the order of their rows."""
    assert is_report(trace)
    table = sections(Scope(trace), "hyperfunction")
    assert [row["hyperfunction"] for row in table.rows()] == ["RUN", *HYPERFUNCTIONS]
    run, *others = table.rows()
    assert run["count"] == sum(int(row["count"] or 0) for row in others) == len(section_calls())
    assert [row["holds"] for row in table.rows()] == ["calls of other rows", "", "", ""]
    assert table.totals["calls"] == len(section_calls())


def test_hyperfunctions_that_are_processes(tmp_path: Path) -> None:
    """They keep their names, and that of the whole run is not added to them."""
    names = ("RUN", "hf_a", "hf_b")
    events = [metadata("process_name", pid, name=name) for pid, name in enumerate(names)]
    calls = ((0, 0, 30), (1, 0, 10), (2, 10, 20))
    events += [complete(start, length, "section", pid=pid, tid=1) for pid, start, length in calls]
    (path := tmp_path / "a_chrome_tracing_report.json").write_text(json.dumps(events), encoding="utf-8")
    table = sections(Scope(open_trace(path, index_dir=tmp_path / "index")), "hyperfunction")
    assert [row["hyperfunction"] for row in table.rows()] == [*names]
    assert table.totals == {"calls": 2, "total_ns": 30_000}


def test_calls_and_times(trace: Trace) -> None:
    """Each hyperfunction and hypersection has its calls, their times, and the longest of them to jump to."""
    durations = defaultdict(list)
    for _, name, part, _, length, _ in section_calls():
        durations[name, part].append(round(length * 1000))
    table = sections(Scope(trace))
    rows = {(row["hyperfunction"], row["hypersection"]): row for row in table.rows()}
    assert list(rows) == [*(("RUN", part) for part in CNAMES), *PAIRS]
    for key, lengths in durations.items():
        row = rows[key]
        assert (row["count"], row["total_ns"]) == (RUNS, sum(lengths))
        assert (row["min_ns"], row["max_ns"]) == (min(lengths), max(lengths))
    index = trace.indexes[0]
    assert table.positions is not None
    assert index.duration(table.positions).tolist() == [row["max_ns"] for row in table.rows()]


def test_arguments(trace: Trace) -> None:
    """Numbers are columns of means, latencies come first, with their quotient; no ids."""
    table = sections(Scope(trace))
    keys = [column.key for column in table.columns]
    assert keys[8:11] == [
        "arg:estimated latency (us)",
        "arg:measured latency (us)",
        "measured_of_estimated",
    ]
    assert {"arg:Tflop", "arg:PMUs", "arg:bandwidth.DDR (GB/s)"} < set(keys) and "arg:section id" not in keys
    for row in table.rows():
        calls = [
            call
            for call in section_calls()
            if (call[1], call[2]) == (row["hyperfunction"], row["hypersection"])
        ]
        for key in ("Tflop", "estimated latency (us)", "measured latency (us)"):
            if calls:
                assert row[f"arg:{key}"] == pytest.approx(sum(call[5][key] for call in calls) / len(calls))
        if calls:
            estimated, measured = (
                sum(call[5][f"{word} latency (us)"] for call in calls) for word in ("estimated", "measured")
            )
            assert row["measured_of_estimated"] == pytest.approx(measured / estimated)


@pytest.mark.parametrize(
    ("coloured", "named", "kinds"),
    [(True, False, [*CNAMES.values()]), (False, True, [*CNAMES]), (False, False, [""])],
)
def test_hypersections(coloured: bool, named: bool, kinds: list[str], tmp_path: Path) -> None:
    """Hypersections are told by their argument, else by colour; the model's own row counts no call twice."""
    path = write_report(tmp_path, coloured=coloured, named=named)
    table = sections(Scope(open_trace(path, index_dir=tmp_path / "index")), "hypersection")
    rows = {row["hypersection"]: row["count"] for row in table.rows()}
    assert rows == {kind: len(section_calls()) // len(kinds) for kind in kinds}
    assert table.notes == (HOLDERS,)


def test_all_calls_of_a_section(trace: Trace) -> None:
    """The filter that * makes of an argument finds a section's calls, in the run's row and in its own."""
    scope = Scope(trace, where=matches(trace, parse("arg.'section id'=3")).where)
    assert sum(len(chunk) for chunk in scope.chunks()) == 2 * RUNS


@pytest.mark.parametrize("by", ["both", "hyperfunction", "hypersection"])
def test_other_traces(by: By, tmp_path: Path) -> None:
    """A trace without arguments or colours gives its calls alone; a scope without slices an empty table."""
    path = tmp_path / "t.json"
    path.write_text(
        f"[{','.join(str(e) for e in [complete(0, 10, 'a'), complete(20, 5, 'a')])}]".replace("'", '"'),
        encoding="utf-8",
    )
    trace = open_trace(path, index_dir=tmp_path / "index")
    assert not is_report(trace)
    (row,) = sections(Scope(trace), by).rows()
    assert (row["count"], row["total_ns"]) == (2, 15_000)
    assert not len(sections(Scope(trace, lanes=()), by))


def test_whole_arguments_stay_whole(tmp_path: Path) -> None:
    """Counts and stamps are whole numbers in JSON, however large; what no number is, is none."""
    stamps = (1_780_611_618_134_227_201, 1_780_611_618_134_227_203)
    events = [
        complete(ts, 2, "call", args={"stamp": stamp, "count": 4, "part": 0.5, "wild": 1e308})
        for ts, stamp in zip((1, 5), stamps)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}).replace("1e+308", "1e400"), encoding="utf-8")
    (row,) = sections(Scope(open_trace(path, index_dir=tmp_path / "index")), "both").rows()
    assert repr(row["arg:stamp"]) == "1780611618134227202" and repr(row["arg:count"]) == "4"
    assert row["arg:part"] == 0.5 and row["arg:wild"] is None
