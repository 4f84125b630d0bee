"""Gaps of a row: as a plain walk finds them, told with host, launch and neighbours, and grouped by these."""

from __future__ import annotations

import random
import statistics
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from tests.corpus import file, for_files
from tests.events import complete, index_of
from tests.tui.small_trace import MS, START, small_trace
from tracelane.core.base.short_names import comparable_name
from tracelane.core.index.store import Index
from tracelane.core.query.lookup import locate_slice
from tracelane.core.query.views import Row, SliceId
from tracelane.core.tables.device.gap import GapBounds, gap_ended_by, gap_holding, gap_of, gaps_of
from tracelane.core.tables.device.idle import analyse_idle, idle, recurrence, recurring_gaps
from tracelane.core.tables.frame.frame_columns import gap_rows
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.work_device import GAP_CLASSES
from tracelane.core.trace import Trace, open_trace

REAL = (
    *("gpu/hta_a100_resnet_ddp_nccl.json.gz", "gpu/tl_mi300_resnet_train_rank0of8.json.gz"),
    *("cuda/gloo.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"),
)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """One thread of short slices, some touching, some of no length."""
    pick = random.Random(9)
    times, at = [], 0
    for _ in range(200):
        length = pick.choice([0, 1, 3, 10])
        times.append((at, length))
        at += length + pick.choice([0, 0, 1, 2, 7, 30])
    return index_of([complete(ts, dur, "n") for ts, dur in times], tmp_path / "index")


def _walk(trace: Trace, row: Row) -> list[tuple[int, int, int]]:
    """Return (index of the slice that ends it, start, end) of every gap of a row."""
    bounds = [trace.bounds(row, at) for at in range(row.count)]
    return [
        (at + 1, one[1], other[0]) for at, (one, other) in enumerate(pairwise(bounds)) if one[1] < other[0]
    ]


def test_gaps_are_those_of_a_walk(index: Index) -> None:
    """Next, longest and the gap at a time agree with a walk over the row."""
    trace = Trace([index])
    for row in (row for lane in trace.lanes for row in trace.rows(lane)):
        walked, gaps, first = _walk(trace, row), gaps_of(trace, row), int(index.rows[row.number]["first"])
        assert walked and gaps is not None
        for at, start, stop in walked:
            assert gap_ended_by(trace, row, at) == GapBounds(0, start, stop, first + at - 1, first + at)
        for time in range(0, row.end + 3_000, 500):
            inside = [start for _, start, stop in walked if start <= time < stop]
            held = gap_holding(trace, row, time)
            assert (None if held is None else held.start) == (inside[0] if inside else None)
            assert gaps.begin_of(time) == (inside[0] if inside else None)
            for least in (1, 2_000, 8_000):
                after = [number for number, (_, a, b) in enumerate(walked) if a >= time and b - a >= least]
                assert gaps.first_after(time, None, least) == (after[0] if after else None)
        for low, high in ((0, row.end), (5_500, 90_000), (90_000, 90_000), (row.end, row.end + 5)):
            whole = [(b - a, -number) for number, (_, a, b) in enumerate(walked) if a >= low and b <= high]
            cut = [(min(b, high) - max(a, low), -number) for number, (_, a, b) in enumerate(walked)]
            length, number = max(whole or cut)
            assert gaps.longest((low, high)) == (-number if length > 0 else None)
        assert gaps.longest(None) == max(range(len(walked)), key=lambda n: walked[n][2] - walked[n][1])


def test_a_gap_tells_host_and_launch(tmp_path: Path) -> None:
    """The gap between two kernels: its neighbours, the launch that ended it, what each thread did."""
    trace = small_trace(tmp_path / "index")
    location = trace.find(SliceId(0, 14))
    assert location is not None
    gap = gap_of(trace, *location)
    assert gap is not None
    assert (gap.start, gap.end) == (START + 9 * MS, START + 16 * MS)
    assert (gap.before, gap.after) == (SliceId(0, 4), SliceId(0, 14))
    assert gap.launch is not None and gap.launch.id == SliceId(0, 13)
    assert gap.launch is not None and gap.launch.start > gap.start
    assert [doing.label for doing in gap.threads] == ["aten::linear", "work", "work", "work"]
    assert gap.threads[0].covered == 5 * MS
    first = trace.find(SliceId(0, 4))
    assert first is not None and gap_of(trace, *first) is None


@pytest.mark.slow
@for_files("name", REAL)
def test_groups_are_those_of_a_plain_loop(name: str, corpus_cache: Path) -> None:
    """Number, sum, maximum, class and steps of each pair of names are what a loop over all gaps finds."""
    trace = open_trace(file(name), index_dir=corpus_cache)
    work = idle(Scope(trace))
    expected: dict[tuple[str, str], list[tuple[int, int]]] = {}
    begun: dict[tuple[str, str], set[str]] = {}
    for gap in gap_rows(work).by("position"):
        before, after = (comparable_name(words.tolist()[0]) for words in (gap.names_of("before"), gap.name))
        expected.setdefault((before, after), []).append((int(gap.gap[0]), int(gap.gap_class[0])))
        steps = begun.setdefault((before, after), set())
        steps |= {step.label for step in trace.steps if step.start <= gap.reach[0] < step.end}
    table = recurring_gaps(work)
    assert table.totals["steps"] == len(trace.steps)
    rows = {(str(row["before"]), str(row["after"])): row for row in table.rows()}
    assert rows.keys() == expected.keys() and len(rows) == len(table)
    for pair, gaps in expected.items():
        row, lengths = rows[pair], [ns for ns, _ in gaps]
        assert (row["gaps"], row["idle_ns"], row["max_ns"]) == (len(gaps), sum(lengths), max(lengths))
        times = [sum(ns for ns, kind in gaps if kind == number) for number in range(len(GAP_CLASSES))]
        assert row["steps"] == len(begun[pair])
        assert row["class"] == GAP_CLASSES[times.index(max(times))]
    totals = [int(value) for value in table.data["idle_ns"]]
    assert totals == sorted(totals, reverse=True)
    assert table.totals["idle_ns"] == int(work.gap.sum())


@pytest.mark.parametrize(("limit", "rows"), [(None, 20), (3, 3), (25, 25), (99, 29)])
def test_the_longest_gaps_are_listed(limit: int | None, rows: int, tmp_path: Path) -> None:
    """Twenty of them, or as many as are asked for; each is at least as long as all that are left out."""
    ends = accumulate(((7 * at) % 30 + 2 for at in range(30)), initial=0)
    events = [complete(end, 1, f"k{end}", "kernel", pid=0) for end in list(ends)[:30]]
    table = analyse_idle(Scope(Trace([index_of(events, tmp_path)])), limit=limit)["gaps"]
    assert len(table) == rows
    lengths = sorted(((7 * at) % 30 + 1 for at in range(29)), reverse=True)
    assert [row["gap_ns"] for row in table.rows()] == [1000 * length for length in lengths[:rows]]


def test_what_the_host_did_names_three_calls(tmp_path: Path) -> None:
    """The table of gaps names the three calls around the launch that ended each, the innermost first; also
    where that launch is the first event of all.
    """
    launches = [complete(at, 2, "launch", "cuda_runtime", args={"correlation": at}) for at in (100, 160)]
    calls = [complete(90 - n, 90 + 2 * n, f"call {n}", "cpu_op") for n in range(5)]
    kernels = [complete(at + 20, 5, "k", "kernel", pid=0, args={"correlation": at}) for at in (100, 160)]
    trace = Trace([index_of([*launches, *calls, *kernels], tmp_path)])
    (row,) = analyse_idle(Scope(trace))["gaps"].rows()
    assert row["host"] == "call 0 < call 1 < call 2"


def test_without_steps_none_are_counted(tmp_path: Path) -> None:
    """Where nothing repeats there is no column of steps."""
    events = [complete(at, 5, f"k{at}", "kernel", pid=0) for at in (0, 50, 70)]
    table = recurring_gaps(idle(Scope(Trace([index_of(events, tmp_path)]))))
    assert len(table) == 2 and "steps" not in table.data


@pytest.mark.slow
@for_files("name", REAL)
def test_one_gap_through_the_steps(name: str, corpus_cache: Path) -> None:
    """How often a gap comes back, in how many steps and how long, is what a loop over its stream finds; its
    bounds and class are those of the idle breakdown.
    """
    trace = open_trace(file(name), index_dir=corpus_cache)
    steps = [(step.start, step.end) for step in trace.steps]
    gaps = gap_rows(max(idle(Scope(trace)).by("stream"), key=len))
    names = list(
        zip(gaps.names_of("before", comparable_name).tolist(), map(comparable_name, gaps.name.tolist()))
    )
    columns = list(zip(gaps.reach.tolist(), gaps.start.tolist()))
    checked = 0
    for at in range(0, len(gaps), max(1, len(gaps) // 40)):
        number, slot = locate_slice(gaps.index, int(gaps.position[at]))
        row = trace.row_number(gaps.source_number, number)
        gap = gap_of(trace, row, slot)
        assert gap is not None and gap.kind == GAP_CLASSES[int(gaps.gap_class[at])]
        assert (gap.start, gap.end) == columns[at]
        alike = [columns[n] for n in range(len(names)) if names[n] == names[at]]
        inside = [any(low <= start < high for start, _ in alike) for low, high in steps]
        repeats = recurrence(trace, row, slot, steps)
        assert (repeats.count, repeats.steps, repeats.of) == (len(alike), sum(inside), len(steps))
        assert repeats.median_ns == statistics.median(end - start for start, end in alike)
        checked += 1
    assert checked > 10
