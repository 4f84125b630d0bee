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
from tracelane.core.query import gaps
from tracelane.core.query.gaps import gap_at, gap_before, longest_gap, next_gap
from tracelane.core.tables.gap import gap_of


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


def _walk(index: Index, row: int) -> list[tuple[int, int, int]]:
    """Return (index of the slice that ends it, start, end) of every gap of a row."""
    entry = index.rows[row]
    positions = range(int(entry["first"]), int(entry["first"]) + int(entry["count"]))
    bounds = []
    for one, other in pairwise(positions):
        if index.end(one) < index.start(other):
            bounds.append((other - int(entry["first"]), index.end(one), index.start(other)))
    return bounds


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [3, 1 << 20])
def test_gaps_are_those_of_a_walk(index: Index, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Next, longest and the gap at a time agree with a walk over the row, whatever the chunks."""
    monkeypatch.setattr(gaps, "CHUNK", chunk)
    assert any(_walk(index, row) for row in range(len(index.rows)))
    for row in range(len(index.rows)):
        walked = _walk(index, row)
        end = int(index.rows[row]["end"])
        for at, start, stop in walked:
            assert gap_before(index, row, at) == (start, stop)
        for time in range(0, end + 3_000, 500):
            inside = [at for at, start, stop in walked if start <= time < stop]
            assert gap_at(index, row, time) == (inside[0] if inside else None)
            for least in (1, 2_000, 8_000):
                after = [at for at, a, b in walked if a >= time and b - a >= least]
                assert next_gap(index, row, time, least) == (after[0] if after else None)
        for within in (None, (0, end), (5_500, 90_000), (90_000, 90_000), (end, end + 5)):
            low, high = within or (0, end)
            lengths = [(min(b, high) - max(a, low), at) for at, a, b in walked]
            best = max(lengths, key=lambda pair: (pair[0], -pair[1]), default=(0, 0))
            expected = (best[1], best[0]) if best[0] > 0 else None
            assert longest_gap(index, row, within) == expected


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
