"""Gaps of a row: found as a plain walk over the row finds them; told with host, launch and neighbours."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from tests.events import complete, index_of
from tests.tui.small_trace import MS, START, small_trace
from tracelane.core.base.ids import SliceId
from tracelane.core.index.store import Index
from tracelane.core.query.views import Row
from tracelane.core.tables.gap import GapBounds, gap_ended_by, gap_holding, gap_of, gaps_of
from tracelane.core.trace import Trace


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
