"""Row assignment: equal to the definition taken word by word, and fast where traces are large or odd."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.loops import BOTH, loops_of
from tracelane.core.index.format import NONE
from tracelane.core.index.loops import LaneRows
from tracelane.core.index.workers import Loops

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


def run(loops: Loops, *lanes: Slices) -> LaneRows:
    slices = [one for lane in lanes for one in lane]
    start = np.array([s for s, _ in slices], np.int64)
    duration = np.array([d for _, d in slices], np.int64)
    sizes = [len(lane) for lane in lanes]
    bounds = np.cumsum([0, *sizes]).astype(np.uint64)
    return loops.rows(bounds, np.array(sizes, np.uint64), start, duration)


def check(loops: Loops, *lanes: Slices) -> None:
    lanes = tuple(sorted(lane, key=lambda s: (s[0], -s[1])) for lane in lanes)
    got = run(loops, *lanes)
    parent, overlap, self_time, row_sizes, order = [], [], [], [], []
    for number, lane in enumerate(lanes):
        want, first = by_definition(lane), len(parent)
        parent += [NONE if p < 0 else p + first for p in want["parent"]]
        overlap += want["overlap"]
        self_time += want["self"]
        row_sizes += np.bincount(want["row"]).tolist() if lane else []
        order += [i + first for i in sorted(range(len(lane)), key=lambda i: (want["row"][i], i))]
        assert got.lane_depth[number] == want["depth"]
        assert got.lane_overlaps[number] == sum(want["overlap"])
        assert got.lane_rows[number] == max(want["row"], default=-1) + 1
        if lane:
            assert got.lane_end[number] == max(s + d for s, d in lane)
    assert got.parent.tolist() == parent
    assert got.overlap.tolist() == overlap
    assert got.self_time.tolist() == self_time
    assert got.row_sizes.tolist() == row_sizes
    assert got.order.tolist() == order
    assert got.position[got.order].tolist() == list(range(len(order)))


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


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@pytest.mark.parametrize("kind", BOTH)
@given(lanes=st.lists(st.one_of(ANY, DENSE, nested()), max_size=3), scale=SCALES)
def test_equals_the_definition(kind: str, lanes: list[Slices], scale: int) -> None:
    """Parent, row, flag, depth and self time are those of the definition, whatever overlaps whatever."""
    check(loops_of(kind), *([(s * scale - 3, d * scale) for s, d in lane] for lane in lanes))


@pytest.mark.parametrize("kind", BOTH)
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
def test_named_shapes(kind: str, slices: Slices) -> None:
    """Equal stamps, length zero, touching slices and chains of overlaps come out as defined."""
    check(loops_of(kind), slices)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
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
def test_degenerate_lanes_do_not_explode(kind: str, start: Any, duration: Any) -> None:
    """Depth 100,000 and 200,000 overlapping slices are placed, each slice where no other one is."""
    duration = np.maximum(duration, 1).astype(np.int64)
    start = start.astype(np.int64)
    n = len(start)
    began = time.process_time()
    got = loops_of(kind).rows(np.array([0, n], np.uint64), np.array([n], np.uint64), start, duration)
    assert time.process_time() - began < 20  # quadratic would be minutes
    row = np.repeat(np.arange(len(got.row_sizes)), got.row_sizes)
    same = row[1:] == row[:-1]
    assert ((start + duration)[got.order][:-1][same] <= start[got.order][1:][same]).all()
