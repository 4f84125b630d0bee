"""Row assignment: equal to the definition taken word by word, and fast where traces are large or odd."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracelane.core.index import rows as module
from tracelane.core.index.rows import Rows, assign

Slices = list[tuple[int, int]]


def by_definition(slices: Slices) -> dict[str, Any]:
    """Parent, row, flag, depth and self time of sorted slices, one at a time."""
    n = len(slices)
    ends = [s + d for s, d in slices]
    open_: list[int] = []
    last_end: dict[int, int] = {}
    parent, row, overlap = [-1] * n, [0] * n, [False] * n
    depth = 0
    for i, (start, duration) in enumerate(slices):
        end = start + duration
        open_ = [p for p in open_ if ends[p] > start]
        depth = max(depth, len(open_) + 1)
        overlap[i] = any(start < ends[p] < end for p in open_)
        around = [p for p in open_ if ends[p] >= end]
        if around:
            parent[i] = around[-1]
        r = row[around[-1]] + 1 if around else 0
        while r in last_end and last_end[r] > start:
            r += 1
        row[i] = r
        last_end[r] = end
        open_.append(i)
    self_time = []
    for i, (_, duration) in enumerate(slices):
        covered, reach = 0, None
        for j in range(n):
            if parent[j] == i:
                begin = slices[j][0] if reach is None else max(slices[j][0], reach)
                covered += max(0, ends[j] - begin)
                reach = ends[j] if reach is None else max(reach, ends[j])
        self_time.append(duration - covered)
    return {"parent": parent, "row": row, "overlap": overlap, "depth": depth, "self": self_time}


def run(slices: Slices) -> Rows:
    start = np.array([s for s, _ in slices], np.int64)
    duration = np.array([d for _, d in slices], np.int64)
    return assign(start, duration)


def check(slices: Slices) -> None:
    slices = sorted(slices, key=lambda s: (s[0], -s[1]))
    want, got = by_definition(slices), run(slices)
    assert got.parent.tolist() == want["parent"]
    assert got.row.tolist() == want["row"]
    assert got.overlap.tolist() == want["overlap"]
    assert got.depth == want["depth"]
    assert got.self_time.tolist() == want["self"]
    assert got.order.tolist() == sorted(range(len(slices)), key=lambda i: (want["row"][i], i))


SCALES = st.sampled_from([1, 7, 10**9, 10**16])
ANY = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), max_size=60)
DENSE = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 6)), max_size=30)


@st.composite
def nested(draw: st.DrawFn) -> Slices:
    """Calls within calls, sometimes with an edge moved so that a few overlap."""
    slices: Slices = []

    def call(start: int, end: int, level: int) -> None:
        slices.append((start, end - start))
        at = start
        while level < 5 and at < end and draw(st.booleans()):
            a = draw(st.integers(at, end))
            b = draw(st.integers(a, end))
            call(a, b, level + 1)
            at = b

    for root in range(draw(st.integers(1, 4))):
        call(root * 100, root * 100 + draw(st.integers(0, 100)), 0)
    for _ in range(draw(st.integers(0, 3))):
        k = draw(st.integers(0, len(slices) - 1))
        slices[k] = (slices[k][0], slices[k][1] + draw(st.integers(0, 60)))
    return slices


@settings(max_examples=400, deadline=None)
@given(st.one_of(ANY, DENSE, nested()), SCALES)
def test_equals_the_definition(slices: Slices, scale: int) -> None:
    """Parent, row, flag, depth and self time are those of the definition, whatever overlaps whatever."""
    check([(s * scale - 3, d * scale) for s, d in slices])


def test_many_random_lanes() -> None:
    """Long lanes with few overlaps, where most slices take the way without a loop, equal the definition."""
    random = np.random.default_rng(5)
    for _ in range(30):
        starts = random.integers(0, 2000, 250)
        durations = np.where(
            random.random(250) < 0.1, random.integers(0, 400, 250), random.integers(0, 9, 250)
        )
        check(list(zip(starts.tolist(), durations.tolist())))


@pytest.mark.parametrize(
    "slices",
    [
        [],
        [(5, 0)],
        [(5, 0), (5, 0), (5, 0)],
        [(5, 3), (5, 3), (5, 3)],
        [(0, 5), (5, 0), (5, 5)],
        [(0, 10), (2, 10), (3, 2)],
        [(0, 20), (2, 8), (5, 10), (6, 2), (11, 3)],
        [(i, 10) for i in range(40)],
        [(-(10**18), 10**18), (0, 1), (-1, 1), (-(10**18), 2 * 10**18)],
    ],
)
def test_named_shapes(slices: Slices) -> None:
    """Equal stamps, length zero, touching slices and chains of overlaps come out as defined."""
    check(slices)


@settings(max_examples=300, deadline=None)
@given(st.one_of(ANY, DENSE, nested()), st.integers(1, 12))
def test_stretches_make_no_difference(slices: Slices, stretch: int) -> None:
    """A lane that is treated stretch by stretch, wherever nothing is open, comes out as defined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRETCH", stretch)
        check(slices)


def test_example_of_an_overlap() -> None:
    """A slice that outlives the open one goes to a lower row, is marked, and takes what begins in it."""
    got = run([(0, 10), (2, 10), (3, 2)])
    assert got.row.tolist() == [0, 1, 2]
    assert got.parent.tolist() == [-1, -1, 1]
    assert got.overlap.tolist() == [False, True, False]


@pytest.mark.parametrize(
    "start, duration",
    [
        (np.arange(100_000), 200_000 - 2 * np.arange(100_000)),
        (np.arange(200_000), np.full(200_000, 1_000_000)),
        (np.arange(200_000) * 2, np.full(200_000, 3)),
        (np.arange(200_000) // 2 * 10, np.where(np.arange(200_000) % 2, 5, 12)),
    ],
    ids=["nested", "all overlap", "staircase", "pairs"],
)
def test_degenerate_lanes_do_not_explode(start: Any, duration: Any) -> None:
    """Depth 100,000 and 200,000 overlapping slices are placed, each slice where no other one is."""
    duration = np.maximum(duration, 1)
    began = time.process_time()
    got = assign(start.astype(np.int64), duration.astype(np.int64))
    assert time.process_time() - began < 20  # quadratic would be minutes
    end = (start + duration)[got.order]
    same = got.row[got.order][1:] == got.row[got.order][:-1]
    assert (end[:-1][same] <= start[got.order][1:][same]).all()


def test_free_rows_are_found_beyond_full_ones() -> None:
    """The lowest free row is found across words of the map, and released rows are found again."""
    free = module._FreeRows()
    for row in range(10_000):
        assert free.lowest(0) == row
        free.take(row)
    free.release(4096)
    assert (free.lowest(0), free.lowest(4097)) == (4096, 10_000)
