"""Begins and ends: matched as stacks do, whatever is missing, per thread and per async id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.loops import BOTH, loops_of
from tests.events import Event, async_event, begin, complete, end, event, index_of
from tracelane.core.index.format import NONE, LaneKind, RowKind, SliceFlag
from tracelane.core.index.store import Index


def by_stack(opens: list[bool], stacks: list[int]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pairs, unclosed begins and unmatched ends, one event at a time."""
    open_: dict[int, list[int]] = {}
    pairs, unmatched = [], []
    for i, (is_begin, stack) in enumerate(zip(opens, stacks)):
        own = open_.setdefault(stack, [])
        if is_begin:
            own.append(i)
        elif own:
            pairs.append((own.pop(), i))
        else:
            unmatched.append(i)
    return sorted(pairs), sorted(i for own in open_.values() for i in own), unmatched


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@pytest.mark.parametrize("kind", BOTH)
@given(stacks=st.lists(st.lists(st.sampled_from("BESFbeXi"), max_size=30), max_size=6))
def test_equals_a_stack(kind: str, stacks: list[list[str]]) -> None:
    """Partners are those of a stack, in one stack and in several at once; other events have none."""
    phases = [phase for stack in stacks for phase in stack]
    of = [i for i, stack in enumerate(stacks) for _ in stack]
    bounds = np.cumsum([0, *map(len, stacks)]).astype(np.uint64)
    got = loops_of(kind).match(bounds, np.array([ord(phase) for phase in phases], np.uint8))
    some = [i for i, phase in enumerate(phases) if phase in "BESFbe"]
    pairs, _, _ = by_stack([phases[i] in "BSb" for i in some], [of[i] for i in some])
    want = [NONE] * len(phases)
    for opening, closing in pairs:
        want[some[opening]], want[some[closing]] = some[closing], some[opening]
    assert got.tolist() == want


def slices(index: Index) -> list[tuple[str, int, int]]:
    """(name, start, duration) of all slices by position."""
    n = len(index.column("slices.start"))
    names = index.strings(index.column("slices.name"))
    return list(zip(names, index.column("slices.start").tolist(), index.duration(range(n)).tolist()))


def flags(index: Index) -> dict[str, int]:
    """SliceFlag bits by slice name, where there are any."""
    names = index.strings(index.column("slices.name"))
    pairs = zip(index.column("flags.position").tolist(), index.column("flags.value").tolist())
    return {names[position]: value for position, value in pairs}


def test_ends_close_the_innermost_begin(tmp_path: Path) -> None:
    """Pairs keep both ordinals, names of ends are ignored, and each thread has its own stack."""
    index = index_of(
        [begin(1, "a"), begin(2, "b"), begin(2, "other", tid=2), end(5, name="a"), end(9), end(4, tid=2)],
        tmp_path,
    )
    assert slices(index) == [("a", 1000, 8000), ("b", 2000, 3000), ("other", 2000, 2000)]
    assert index.column("ends.ordinal").tolist() == [4, 3, 5]
    assert set(flags(index).values()) == {SliceFlag.PAIR}


def test_order_is_time_then_file(tmp_path: Path) -> None:
    """An end that stands before its begin in the file is matched by time; at one time the file decides."""
    index = index_of([end(5), begin(1, "a"), begin(7, "b"), end(7), end(7)], tmp_path)
    assert slices(index) == [("a", 1000, 4000), ("b", 7000, 0)]
    assert index.read_report["unmatched_end"] == 1


def test_leftovers_are_kept(tmp_path: Path) -> None:
    """An unclosed begin reaches to the end of its lane and is marked, an end without begin is an instant."""
    index = index_of([end(1), begin(2, "open"), complete(3, 40, "x"), event("i", 50)], tmp_path)
    assert ("open", 2000, 48000) in slices(index)
    assert flags(index)["open"] == SliceFlag.UNCLOSED
    assert index.column("instants.phase").tolist() == [ord("E"), ord("i")]
    lane = index.lanes[0]
    assert (lane["slices"], lane["unclosed"], lane["depth"], lane["overlapping"]) == (1, 1, 1, 0)
    assert (
        index.read_report["unmatched_begin"],
        index.read_report["unmatched_end"],
        index.read_report["slices"],
    ) == (
        1,
        1,
        1,
    )
    assert (index.manifest["start_ns"], index.manifest["end_ns"]) == (3000, 43000)


def test_a_nameless_begin_takes_its_ends_name(tmp_path: Path) -> None:
    """What only the end says of a slice is used."""
    index = index_of([begin(1, name=None), end(2, name="told late", cat="late")], tmp_path)
    assert slices(index) == [("told late", 1000, 1000)]
    assert index.categories[index.column("slices.category")[0]] == "late"


def lanes(index: Index, kind: LaneKind) -> list[tuple[str, str, str, int]]:
    """(pid, name, id, slices) of the lanes of a kind."""
    return [
        (
            index.string(index.processes[lane["process"]]["pid"]),
            index.string(lane["name"]),
            index.string(lane["tid"]),
            int(lane["slices"]),
        )
        for lane in index.lanes
        if lane["kind"] == kind
    ]


PAIR = [("b", 1), ("e", 5)]


@pytest.mark.parametrize(
    "first, second, together",
    [
        ({"id": 1}, {"id": 1}, True),
        ({"id": 1}, {"id": "1"}, False),
        ({"id": 1}, {"id": 1, "pid": 2}, False),
        ({"id": 1}, {"id": 1, "tid": 2}, True),
        ({"id": 1}, {"id": 1, "cat": "b"}, False),
        ({"id": None, "id2": {"local": "1"}}, {"id": None, "id2": {"local": "1"}, "pid": 2}, False),
        ({"id": None, "id2": {"global": "1"}}, {"id": None, "id2": {"global": "1"}, "pid": 2}, True),
        ({"id": 1, "scope": "s"}, {"id": 1, "scope": "s", "pid": 2}, True),
        ({"id": 1, "scope": "s"}, {"id": 1, "scope": "t"}, False),
    ],
)
def test_async_keys(tmp_path: Path, first: Event, second: Event, together: bool) -> None:
    """Plain and local ids hold within a process and category, global and scoped ones everywhere."""
    events = [async_event("b", 1, **first), async_event("e", 5, **second)]
    index = index_of(events, tmp_path)
    assert index.read_report["async_spans"] == together
    assert len(lanes(index, LaneKind.ASYNC)) == (1 if together else 2)
    assert (
        index.read_report["async_unmatched_begin"]
        == index.read_report["async_unmatched_end"]
        == (not together)
    )


def test_async_spans_nest_and_carry_marks(tmp_path: Path) -> None:
    """b and e nest by id, n, T and p are marks on the lane, legacy S and F a span."""
    index = index_of(
        [
            async_event("b", 1, 1, "outer"),
            async_event("b", 2, 1, "inner"),
            async_event("n", 3, 1, "mark"),
            async_event("e", 4, 1),
            async_event("e", 9, 1),
            async_event("S", 1, 5, "legacy"),
            async_event("T", 2, 5, "step"),
            async_event("F", 3, 5),
        ],
        tmp_path,
    )
    assert sorted(slices(index)) == [("inner", 2000, 2000), ("legacy", 1000, 2000), ("outer", 1000, 8000)]
    assert lanes(index, LaneKind.ASYNC) == [("1", "async", "1", 2), ("1", "async", "5", 1)]
    assert index.strings(index.column("instants.name")) == ["mark", "step"]
    kinds = [int(row["kind"]) for row in index.rows]
    assert kinds == [RowKind.SLICES, RowKind.SLICES, RowKind.INSTANTS, RowKind.SLICES, RowKind.INSTANTS]
    assert index.manifest["start_ns"] is None  # async spans are no thread slices


def test_many_ids_share_lanes(tmp_path: Path) -> None:
    """Beyond 1,000 ids of a process's category, ids are packed by time: as many lanes as are open at once."""
    events = []
    for i in range(1500):
        events += [async_event("b", 10 * i, i, f"a{i}"), async_event("e", 10 * i + 15, i)]
    index = index_of(events, tmp_path)
    async_lanes = [lane for lane in index.lanes if lane["kind"] == LaneKind.ASYNC]
    assert [int(lane["ids"]) for lane in async_lanes] == [750, 750]
    assert all(int(lane["depth"]) == 1 and not lane["overlapping"] for lane in async_lanes)
    assert len(slices(index)) == 1500
