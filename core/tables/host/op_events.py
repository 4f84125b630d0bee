"""The host's ops as a tree per thread, the way torch's profiler builds it from its own records.

Kept apart from the index's parents: torch knows only ops, annotations, Python frames and runtime calls, an
event that overlaps another is popped for good, and a lone child of the same name is merged into its parent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.arrays import I64, AnyArray, places_in
from ...base.kineto import ANNOTATIONS, GROUPS, OPS
from ...base.kineto import RUNTIME as RUNTIME_CALLS
from ...index.format import NONE, LaneRole, SliceFlag
from ...index.store import Index
from ...query.lookup import category_mask, lanes_of, op_names, promoted_of
from ..frame.scope import Scope

I32: TypeAlias = npt.NDArray[np.int32]

OP, ANNOTATION, PYTHON, RUNTIME = range(4)
"""Kinds of host events; those of the runtime are the launches, waits and copies that an op calls."""
NO_KIND = 255
EXTERNAL_ID = "external_id"
OVERHEAD = "overhead"
DENSE = 8
"""Values of which there are at least one in so many are found by a table, others by sorting."""
DROPPED = (
    *("profiler::_record_function_enter", "profiler::_record_function_enter_new"),
    *("profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version"),
    *("[memory]", "[OutOfMemory]"),
)
"""Names that torch leaves out before anything else; their time stays with their parents."""
STEP, STEPS = "ProfilerStep#", "ProfilerStep*"


@dataclass(frozen=True, eq=False)
class OpEvents:
    """The n host events of one source in a scope, by position; times are lane time in ns, not cut."""

    index: Index
    positions: I64
    start: I64
    end: I64
    kind: npt.NDArray[np.uint8]
    key: I32  # number in `names`
    names: tuple[str, ...]
    parent: I32  # event number in torch's tree, -1 at the top; before merging of duplicates
    lane: I32  # lane number of the source

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def where(self) -> I32:
        """Event number of each position of the index, -1 where it is none."""
        events = np.full(self.index.length("slices.start"), -1, np.int32)
        events[self.positions] = np.arange(len(self), dtype=np.int32)
        return events

    @cached_property
    def ids(self) -> tuple[I64, I64]:
        """(the ops and annotations, the External id of each, 0 for none)."""
        which = np.flatnonzero(self.kind <= ANNOTATION)
        return which, self.external_ids(self.positions[which])

    @cached_property
    def calls(self) -> tuple[I64, I64]:
        """(the runtime calls, the op that each names by its External id, -1 for none).

        Some writers put no such ids at calls, others other numbers: only an op that was running is named, and
        none where most ids name none.
        """
        which = np.flatnonzero(self.kind == RUNTIME)
        ops, own = self.ids
        ids, begin = self.external_ids(self.positions[which]), self.start[which]
        op = joined(own, ops, ids)
        inside = (op >= 0) & (self.start[op] <= begin) & (begin <= self.end[op])
        is_named = 2 * np.count_nonzero(inside) > np.count_nonzero(ids)
        return which, np.where(inside & is_named, op, -1)

    def external_ids(self, positions: I64) -> I64:
        """Return the External id of each position of the index, 0 where it has none."""
        return promoted_of(self.index, EXTERNAL_ID, positions)

    @cached_property
    def merged(self) -> tuple[npt.NDArray[np.bool_], I32]:
        """(which events stay, their parents among those that stay).

        An event whose parent has its name and no other child is removed and its children go to the parent;
        chains of them fall together at once, so that nothing is left to repeat.
        """
        parent = self.parent
        inner = np.flatnonzero(parent >= 0)
        children = np.bincount(parent[inner], minlength=len(self))
        above = parent[inner]
        gone = np.zeros(len(self), np.bool_)
        gone[inner[(children[above] == 1) & (self.key[above] == self.key[inner])]] = True
        return ~gone, climbed(parent, gone)


def host_kinds(index: Index) -> npt.NDArray[np.uint8]:
    """Return the kind of host event that slices of each category are, by its number; NO_KIND for others."""
    kinds = (
        (OPS, OP),
        (ANNOTATIONS, ANNOTATION),
        (GROUPS["python"], PYTHON),
        (RUNTIME_CALLS | GROUPS["runtime"], RUNTIME),
    )
    of = [next((kind for names, kind in kinds if name in names), NO_KIND) for name in index.categories]
    return np.array(of, np.uint8)


def climbed(parent: I32, skipped: npt.NDArray[np.bool_]) -> I32:
    """Return the nearest ancestors that are not skipped, -1 where there is none."""
    ancestor = parent.copy()
    todo = np.flatnonzero((ancestor >= 0) & skipped[ancestor])
    while len(todo):  # each step goes as far as that of the ancestor: a chain of n takes log n of them
        ancestor[todo] = ancestor[ancestor[todo]]
        todo = todo[ancestor[todo] >= 0]
        todo = todo[skipped[ancestor[todo]]]
    return ancestor


def op_events(scope: Scope, source: int, no_frames: bool = False) -> OpEvents:
    """Return the host events of a source in or reaching into the scope, with torch's tree."""
    index = scope.trace.indexes[source]
    kinds = host_kinds(index)
    if no_frames:
        kinds[kinds == PYTHON] = NO_KIND
    positions = positions_of(scope, source, kinds != NO_KIND)
    dropped = np.array(sorted({n for name in DROPPED for n in index.string_numbers(name)}), np.uint32)
    if len(dropped):
        positions = positions[~np.isin(index.column("slices.name")[positions], dropped)]
    unclosed = _flagged(index, SliceFlag.UNCLOSED)
    if len(unclosed):
        positions = positions[~np.isin(positions, unclosed)]
    start: I64 = index.column("slices.start")[positions].astype(np.int64)
    end: I64 = start + index.duration(positions)
    key, names = name_keys(index, op_names(index, positions, index.column("slices.name")[positions]))
    lane = lanes_of(index, positions).astype(np.int32)
    kind = kinds[index.column("slices.category")[positions]]
    bare = OpEvents(index, positions, start, end, kind, key, names, np.full(len(key), -1, np.int32), lane)
    scope.check()
    home, strayed = _homes(bare)
    scope.check()
    parent = _nested(bare)
    _rewalk(bare, home, strayed, parent)
    bare.parent[:], bare.lane[:] = parent, home  # in place: what was looked up for these events stays known
    return bare


def frames_of(events: OpEvents) -> OpEvents:
    """Return the Python frames alone, as a tree of their own: annotations may begin in one and outlast it."""
    which = events.kind == PYTHON
    columns = ("positions", "start", "end", "kind", "key", "parent", "lane")
    frames = replace(events, **{name: getattr(events, name)[which] for name in columns})
    parent = _nested(frames)
    _rewalk(frames, frames.lane, np.empty(0, np.int64), parent)
    return replace(frames, parent=parent)


def positions_of(scope: Scope, source: int, has_category: AnyArray) -> I64:
    """Return the positions in the scope whose category is wanted (booleans by category), ascending."""
    index = scope.trace.indexes[source]
    held, categories = index.column("row_categories"), index.column("slices.category")
    parts = [np.empty(0, np.int64)]
    for part in scope.parts_of(source):
        scope.check()
        first, count = (int(index.rows[part.row][key]) for key in ("categories", "category_count"))
        if has_category[held[first : first + count]].any():
            parts.append(part.begin + np.flatnonzero(has_category[categories[part.begin : part.end]]))
    positions = scope.by_launch(source, np.concatenate(parts))
    return positions if scope.work is None else positions[has_category[categories[positions]]]


def name_keys(index: Index, numbers: AnyArray) -> tuple[I32, tuple[str, ...]]:
    """Return (a key per slice, the keys' texts): its name, but all profiler steps are one."""
    used = np.zeros(index.length("strings.offset"), np.bool_)
    used[numbers] = True
    present = np.flatnonzero(used)
    table = np.zeros(len(used), np.int32)
    keys: dict[str, int] = {}
    for number in present.tolist():
        name = index.string(number)
        table[number] = keys.setdefault(STEPS if name.startswith(STEP) else name, len(keys))
    return table[numbers], tuple(keys)


def joined(values: AnyArray, of: AnyArray, keys: AnyArray) -> I64:
    """Return for each wanted value the first of `of` that stands beside it in `values`, -1 for none or 0."""
    if not len(values) or not len(keys):
        return np.full(len(keys), -1, np.int64)
    top = int(values.max())
    if int(values.min()) >= 0 and top <= DENSE * len(values):
        # Numbered through: a table instead of a sort, filled backwards so that the first stays.
        table = np.full(top + 2, -1, np.int64)
        table[values[::-1]] = of[::-1]
        table[0] = -1
        return table[np.where((keys > 0) & (keys <= top), keys, 0)]
    order = np.argsort(values, kind="stable")
    ordered = values[order].astype(np.int64)
    at = places_in(ordered, keys)
    return np.where((at >= 0) & (keys != 0), of[order[at]].astype(np.int64), -1)


def _flagged(index: Index, flag: SliceFlag) -> AnyArray:
    positions: AnyArray = index.column("flags.position")[(index.column("flags.value") & flag) != 0]
    return positions


def _homes(events: OpEvents) -> tuple[I32, I64]:
    """Return (the lane each event counts for, which were moved): a runtime call is its op's, also where
    the profiler wrote it on the thread that collected it. One that names no op counts for the thread that
    ran the profiler, and so does the profiler's own overhead.
    """
    home = events.lane.copy()
    calls, ops = events.calls
    named = ops >= 0
    home[calls[named]] = home[ops[named]]
    alone = calls[~named]
    if not named.any():  # this writer names no ops: each call is its thread's, and only overhead has none
        overhead = category_mask(events.index, {OVERHEAD})
        alone = alone[overhead[events.index.column("slices.category")[events.positions[alone]]]]
    if len(alone):
        home[alone] = _profiling_lanes(events)[home[alone]]
    return home, calls[home[calls] != events.lane[calls]]


def _profiling_lanes(events: OpEvents) -> I32:
    """Return for each lane that of the thread which ran the profiler in its process: the one with the steps,
    else the main thread, else the one with most ops. Overhead is in a process of its own: it goes to the only
    other one, and stays where there are several.
    """
    lanes, ops = events.index.lanes, events.kind <= ANNOTATION
    process, numbers = lanes["process"].astype(np.int64), np.arange(len(lanes), dtype=np.int32)
    is_step = np.array([name == STEPS for name in events.names], np.bool_)
    steps = np.bincount(events.lane[ops][is_step[events.key[ops]]], minlength=len(lanes))
    is_main = lanes["tid"] == events.index.processes["pid"][process]
    counts = np.bincount(events.lane[events.kind != PYTHON], minlength=len(lanes))
    counts[lanes["role"] != LaneRole.HOST] = 0
    order = np.lexsort((counts, is_main & (counts > 0), steps))
    first = np.full(len(events.index.processes), -1, np.int32)
    first[process[order]] = order
    first[np.bincount(process, counts, len(first)) == 0] = -1
    own = first[process]
    only = first[first >= 0]
    return np.where(own >= 0, own, only[0] if len(only) == 1 else numbers)


def _nested(events: OpEvents) -> I32:
    """Return parents by the index: the nearest slice around that is an event and still open at the start."""
    above, where = events.index.column("slices.parent"), events.where
    parent = np.full(len(events), -1, np.int32)
    current = above[events.positions]
    todo = np.flatnonzero(current != NONE)
    current = current[todo]
    while len(todo):
        event = where[current]
        good = (event >= 0) & (events.start[todo] < events.end[event])
        parent[todo[good]] = event[good]
        todo, current = todo[~good], above[current[~good]]
        more = current != NONE
        todo, current = todo[more], current[more]
    return parent


def _rewalk(events: OpEvents, home: I32, strayed: I64, parent: I32) -> None:
    """Correct the parents where slices overlap: there, and only there, event by event as torch does."""
    # Slices of 0 to 10 and 5 to 15 on one lane overlap: torch closes the first where the second begins, as
    # that reaches beyond it, and what runs from 7 to 8 is a child of the second only. Elsewhere its parents
    # are those of the index. Both agree again where nothing is open, so only what stands between two such
    # moments around an overlap is walked event by event: in most traces nothing.
    index = events.index
    flagged = _flagged(index, SliceFlag.OVERLAP).astype(np.int64)
    starts = index.column("slices.start")[flagged].astype(np.int64)
    zones = (
        np.concatenate([lanes_of(index, flagged), home[strayed], events.lane[strayed]]),
        np.concatenate([starts, events.start[strayed], events.start[strayed]]),
        np.concatenate([starts + index.duration(flagged), events.end[strayed], events.end[strayed]]),
    )
    dirty = np.zeros(len(index.lanes), np.bool_)
    dirty[zones[0]] = True
    members = np.flatnonzero(dirty[home])
    if not len(members):
        return
    ordinal = index.column("slices.ordinal")[events.positions[members]]
    order = np.lexsort((ordinal, -events.end[members], events.start[members], home[members]))
    members = members[order]
    lane = home[members]
    bounds = np.flatnonzero(np.diff(lane, prepend=-1, append=-1))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        here, which = members[low:high], zones[0] == lane[low]
        _walk(events, here[_near(events, here, zones[1][which], zones[2][which])], parent)


def _near(events: OpEvents, ordered: I64, starts: I64, ends: I64) -> npt.NDArray[np.bool_]:
    """Return which events of one lane stand in a group (from empty stack to empty stack) with a zone."""
    # Events 0 to 10, 2 to 4 | 20 to 30 | 40 to 50 are three groups: 20 and 40 begin behind all that was
    # before. A zone from 25 to 41 ends in none before the second (ends 10, 30, 50: the first not before 25
    # is 1) and begins before the end of the third (starts 0, 20, 40: three not after 41): +1 at 1, -1 at 3,
    # so that the sums 0, 1, 1 mark both.
    start = events.start[ordered]
    reach = np.maximum.accumulate(events.end[ordered])
    opens = np.concatenate([[True], start[1:] >= reach[:-1]])
    group = np.cumsum(opens) - 1
    first = start[opens]
    last = reach[np.concatenate([opens[1:], [True]])]
    marks = np.zeros(len(first) + 1, np.int64)
    low = np.searchsorted(last, starts, "left")
    high = np.maximum(low, np.searchsorted(first, ends, "right"))
    np.add.at(marks, low, 1)
    np.add.at(marks, high, -1)
    near: npt.NDArray[np.bool_] = (np.cumsum(marks)[:-1] > 0)[group]
    return near


def _walk(events: OpEvents, ordered: I64, parent: I32) -> None:
    starts, ends = events.start[ordered].tolist(), events.end[ordered].tolist()
    numbers = ordered.tolist()
    parents = [-1] * len(numbers)
    stack: list[tuple[int, int]] = []  # (end, event)
    for at, (start, end) in enumerate(zip(starts, ends)):
        while stack and (start >= stack[-1][0] or end > stack[-1][0]):
            stack.pop()
        if stack:
            parents[at] = stack[-1][1]
        stack.append((end, numbers[at]))
    parent[ordered] = parents
