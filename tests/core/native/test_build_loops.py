"""The loops of building: what C does is what plain Python says, and ends when asked to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.loops import BOTH, loops_of
from tracelane.core.base.errors import Cancelled
from tracelane.core.index.format import NONE
from tracelane.core.index.loops import CLOSING, CancelFlag, Correlations, LaneFlows
from tracelane.core.index.workers import Loops

Events = list[tuple[int, int, int]]
"""(start, duration, kind) of events; their ordinals are shuffled."""

SMALL = st.tuples(st.integers(-3, 12), st.integers(0, 9), st.integers(0, 2))
LARGE = st.tuples(st.integers(-(10**15), 10**15), st.integers(0, 10**12), st.integers(0, 2))
LANES = st.lists(st.one_of(st.lists(SMALL, max_size=30), st.lists(LARGE, max_size=9)), max_size=4)


class Lanes:
    """Lanes of events as columns."""

    def __init__(self, lanes: list[Events], seed: int) -> None:
        events = [one for lane in lanes for one in lane]
        self.bounds = np.cumsum([0, *map(len, lanes)]).astype(np.uint64)
        self.start = np.array([e[0] for e in events], np.int64)
        self.duration = np.array([e[1] for e in events], np.int64)
        self.kind = np.array([e[2] for e in events], np.uint8)
        self.ordinal = np.random.default_rng(seed).permutation(len(events)).astype(np.uint32)

    def sort(self) -> np.ndarray[Any, Any]:
        """Put the events in drawing order; return how many slices each lane has."""
        order, sizes = loops_of("plain").order(
            self.bounds, self.start, self.duration, self.ordinal, self.kind
        )
        if order is not None:
            for name in ("start", "duration", "kind", "ordinal"):
                setattr(self, name, getattr(self, name)[order])
        return sizes[:, 0].copy()


def both() -> tuple[Loops, Loops]:
    return loops_of("native"), loops_of("plain")


def same(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@pytest.mark.parametrize("kind", BOTH)
@given(lanes=LANES, seed=st.integers(0, 9), by=st.sampled_from(["start", "duration", "kind"]))
def test_order(kind: str, lanes: list[Events], seed: int, by: str) -> None:
    """Events stand by kind, start, falling duration and ordinal, in each lane for itself."""
    batch = Lanes(lanes, seed)
    duration = None if by == "start" else batch.duration
    kinds = batch.kind if by == "kind" else None
    order, sizes = loops_of(kind).order(batch.bounds, batch.start, duration, batch.ordinal, kinds)
    got = list(range(len(batch.start))) if order is None else order.tolist()

    def key(i: int) -> tuple[int, ...]:
        kind_of = int(batch.kind[i]) if kinds is not None else 0
        length = -int(batch.duration[i]) if duration is not None else 0
        return (kind_of, int(batch.start[i]), length, int(batch.ordinal[i]))

    want: list[int] = []
    for number, (a, b) in enumerate(zip(batch.bounds[:-1].tolist(), batch.bounds[1:].tolist())):
        want += sorted(range(a, b), key=key)
        own = [key(i)[0] for i in range(a, b)]
        assert sizes[number].tolist() == [own.count(0), own.count(1)]
    is_sorted = [kinds is None or batch.kind[i] != CLOSING for i in want]  # ends of slices in any order
    assert [i for i, keep in zip(got, is_sorted) if keep] == [i for i, keep in zip(want, is_sorted) if keep]
    assert sorted(got) == sorted(want)
    if all(is_sorted):
        assert (order is None) == (want == list(range(len(want))))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(lanes=LANES, seed=st.integers(0, 9), data=st.data())
def test_columns_of_slices(lanes: list[Events], seed: int, data: st.DataObject) -> None:
    """Rows, parents, self times and the stored columns agree, also of a piece and of long times."""
    batch = Lanes(lanes, seed)
    count = batch.sort()
    placed = int(count.sum())
    end = data.draw(st.integers(0, placed))
    begin = data.draw(st.integers(0, end))
    tops = data.draw(st.sampled_from([0, 2, 3]))  # topmost rows that slices may take
    least = batch.ordinal % np.uint32(tops) if tops else None
    results = []
    for loops in both():
        rows = loops.rows(batch.bounds, count, batch.start, batch.duration, least)
        if least is not None:
            row = np.repeat(np.arange(len(rows.row_sizes)), rows.row_sizes)
            first = np.repeat(np.cumsum(np.append(0, rows.lane_rows))[:-1], count.astype(np.int64))
            assert (row - first >= least[rows.order]).all()
        slot_of = np.full(len(batch.start), NONE, np.uint32)
        events: dict[str, Any] = {name: getattr(batch, name) for name in ("start", "duration", "ordinal")}
        columns = loops.slices(rows, range(begin, end), 70, events, slot_of)
        results.append((rows, columns, slot_of))
    (got, got_columns, got_slots), (want, want_columns, want_slots) = results
    for name in ("order", "row_sizes", "lane_rows", "lane_depth", "lane_overlaps"):
        same(getattr(got, name), getattr(want, name))
    same(got.lane_end[count > 0], want.lane_end[count > 0])
    for name in ("parent", "self_time", "overlap", "position"):
        same(getattr(got, name)[got.order], getattr(want, name)[got.order])
    for name in ("start", "duration", "self", "ordinal", "parent"):
        same(got_columns[name], want_columns[name])
    same(got_slots, want_slots)


FLOW = st.tuples(
    st.sampled_from("stf"), st.booleans(), st.integers(-4, 13), st.integers(0, 4), st.integers(0, 4)
)
"""(phase, whether it binds to the slice around it, start, id, kind of id)"""


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    lanes=st.lists(st.tuples(st.lists(SMALL, max_size=25), st.lists(FLOW, max_size=12)), max_size=3),
    known=st.lists(st.integers(0, 4), max_size=75),
    seed=st.integers(0, 9),
)
def test_flows_bind_alike(
    lanes: list[tuple[Events, list[tuple[str, bool, int, int, int]]]], known: list[int], seed: int
) -> None:
    """Every flow event finds the same slice, where several begin at its stamp too."""
    batch = Lanes([events for events, _ in lanes], seed)
    count = batch.sort()
    ends = [flow for _, flows in lanes for flow in flows]
    flow_bounds = np.cumsum([0, *(len(flows) for _, flows in lanes)]).astype(np.uint64)
    pick = np.random.default_rng(seed)
    flows: dict[str, Any] = {
        "phase": np.array([ord(flow[0]) for flow in ends], np.uint8),
        "flags": np.array([flow[1] for flow in ends], np.uint8),
        "start": np.array([flow[2] for flow in ends], np.int64),
        "id_value": np.array([flow[3] for flow in ends], np.int64),
        "id_kind": np.array([flow[4] for flow in ends], np.uint8),
        "ordinal": pick.integers(0, len(batch.start) + 2, len(ends)).astype(np.uint32),
    }
    ordinals = np.sort(pick.permutation(len(batch.start))[: len(known)]).astype(np.uint32)
    correlations = Correlations(ordinals, np.array(known[: len(ordinals)], np.int64))
    slices: dict[str, Any] = {"start": batch.start, "duration": batch.duration, "ordinal": batch.ordinal}
    bindings = []
    for loops in both():
        bound = np.full(len(ends), 5, np.uint32)
        rows = loops.rows(batch.bounds, count, batch.start, batch.duration)
        loops.bind(rows, batch.bounds, count, 30, slices, LaneFlows(flow_bounds, flows, bound, correlations))
        bindings.append(bound)
    same(*bindings)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("dtype", ["i8", "f8", "u4"])
@given(
    slots=st.lists(st.one_of(st.integers(0, 150), st.just(NONE)), max_size=80),
    pieces=st.lists(st.lists(st.tuples(st.integers(0, 79), st.integers(0, 9)), max_size=20), max_size=3),
    cut=st.integers(0, 151),
)
def test_promoted_values(
    kind: str, dtype: str, slots: list[int], pieces: list[list[tuple[int, int]]], cut: int
) -> None:
    """Each slot has the last value put there; events without a slot leave nothing."""
    loops = loops_of(kind)
    slot_of = np.array([*slots, *[NONE] * (80 - len(slots))], np.uint32)
    dense, present = np.empty(151, dtype), np.zeros(3, np.uint64)
    want: dict[int, int] = {}
    for piece in pieces:
        ordinal = np.array([ordinal for ordinal, _ in piece], np.uint32)
        values = np.array([value for _, value in piece], dtype)
        limits = loops.promote(ordinal, values, slot_of, dense, present)
        placed = [(int(slot_of[ordinal]), value) for ordinal, value in piece if slot_of[ordinal] != NONE]
        want |= dict(placed)
        numbers = [value for _, value in placed]
        assert limits == ((min(numbers), max(numbers)) if numbers and dtype == "i8" else None)
    for begin, end in ((0, cut), (cut, 151)):
        positions, values = loops.compact(dense, present, begin, end, begin)
        own = sorted((slot - begin, value) for slot, value in want.items() if begin <= slot < end)
        assert list(zip(positions.tolist(), values.tolist())) == own and values.dtype == dtype


@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("kind", BOTH)
@given(tracks=st.lists(st.integers(0, 3), max_size=50))
def test_places(kind: str, tracks: list[int]) -> None:
    """Each event gets the next place of its track, and taking from there brings it back."""
    loops = loops_of(kind)
    sizes = np.bincount(np.array(tracks, np.int64), minlength=4)
    following = (np.cumsum(sizes) - sizes).astype(np.uint64)
    positions = loops.slots(np.array(tracks, np.uint32), following)
    assert positions.tolist() == np.argsort(np.argsort(tracks, kind="stable")).tolist()
    assert following.tolist() == np.cumsum(sizes).tolist()
    for dtype in ("u1", "u2", "u4", "i8", "f8"):
        values, out = np.arange(len(tracks)).astype(dtype), np.empty(len(tracks), dtype)
        loops.put(values, positions, out)
        assert loops.take(out, positions).tolist() == values.tolist()
        loops.reorder(out, positions)
        assert out.tolist() == values.tolist()


@pytest.mark.parametrize("kind", BOTH)
def test_a_request_to_stop_is_heard(kind: str) -> None:
    """A loop that is asked to stop raises Cancelled."""
    cancel = CancelFlag()
    loops = loops_of(kind, cancel)
    start, bounds = np.arange(10), np.array([0, 10], np.uint64)
    ordinal = np.arange(10, dtype=np.uint32)
    cancel.set()
    with pytest.raises(Cancelled):
        loops.rows(bounds, np.array([10], np.uint64), start, start)
    with pytest.raises(Cancelled):
        loops.order(bounds, -start, start, ordinal)
    with pytest.raises(Cancelled):
        loops.slots(ordinal, np.zeros(10, np.uint64))
