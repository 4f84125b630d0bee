"""Device time and memory of each op: columns of torch's table beside the host's time.

Device time is that of the work which an op and its children launched; memory comes from the trace's [memory]
instants.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.arrays import (
    I64,
    MAX,
    AnyArray,
    add_at,
    added_up,
    added_upwards,
    distinct,
    run_starts,
    sums_between,
)
from ...base.errors import UsageError
from ...base.kineto import DEVICE, MODULE, SYNC_CATEGORIES, WORK
from ...base.numbers import whole_number
from ...index.flex import flex_work, is_flex
from ...index.format import NONE, LaneRole
from ...index.store import Index
from ...query.groups import concatenated, dense
from ...query.launches import Launches, operators_by_arrow
from ...query.lookup import category_mask, lanes_of, nearest_around, promoted_of
from ...trace.owners import OWN
from ..frame.frame import Frame
from ..frame.frame_columns import NEVER, work_of
from ..frame.scope import NO_WORK, Scope
from .allocations import HOST_TYPES
from .allocators import memory_records
from .op_events import ANNOTATION, I32, OP, PYTHON, OpEvents, climbed, frames_of, joined

DEVICE_TYPES = (1, 6)
PRIVATE_TYPE = 20
"""c10 device types: CUDA and HIP; PrivateUse1, whose runtime's own records say 1 too."""
ANYWHERE = (-(2**62), 2**62)
PIECE = 1 << 16
"""Pieces of device work whose time is counted for all ops around them at once."""


@dataclass(frozen=True, eq=False)
class OpMemory:
    """Allocations (+) and releases (-) of all threads in time order; lane time in ns, bytes."""

    times: I64
    host: I64  # bytes, 0 for records of a device
    device: I64
    both_device_types: bool  # two allocators tell of the same device: only PyTorch's own is counted

    def __len__(self) -> int:
        return len(self.times)

    def between(self, start: I64, end: I64) -> tuple[I64, I64]:
        """Return (host bytes, device bytes) from each start to each end, both edges included."""
        host, device = np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
        if not len(self):
            return host, device
        low = np.searchsorted(self.times, start, "left")
        # Most hold no record: the next one is behind their end.
        some = np.flatnonzero(np.append(self.times, MAX)[low] <= end)
        low, high = low[some], np.searchsorted(self.times, end[some], "right")
        host[some], device[some] = sums_between(self.host, low, high), sums_between(self.device, low, high)
        return host, device

    def outside(self, start: I64, end: I64) -> npt.NDArray[np.bool_]:
        """Return which records lie in none of these events (of any thread)."""
        if not len(start) or not len(self):
            return np.ones(len(self), np.bool_)
        order = np.argsort(start, kind="stable")
        reach = np.maximum.accumulate(end[order])
        before = np.searchsorted(start[order], self.times, "right")
        outside: npt.NDArray[np.bool_] = (before == 0) | (reach[before - 1] < self.times)
        return outside


def memory_of(index: Index, low: int = ANYWHERE[0], high: int = ANYWHERE[1]) -> OpMemory:
    """Return the allocator's records of an index in [low, high), lane time."""
    rows = memory_records(index)
    times = index.column("instants.start")[rows].astype(np.int64)
    inside = (times >= low) & (times < high)
    rows, times = rows[inside], times[inside]
    order = np.argsort(times, kind="stable")
    rows, times = rows[order], times[order]
    count = promoted_of(index, "bytes", rows, of="instant")
    kind = promoted_of(index, "device_type", rows, -1, "instant")
    private = kind == PRIVATE_TYPE
    plain = np.isin(kind, DEVICE_TYPES)
    both = bool(private.any() and plain.any())
    of_device = private if both else private | plain
    host: I64 = np.where(np.isin(kind, HOST_TYPES), count, 0)
    return OpMemory(times, host, np.where(of_device, count, 0), both)


def work_positions(index: Index, launches: Launches) -> I64:
    """Return the positions of all kernels, copies, memsets and the device's own records of waiting; where
    categories do not tell, of what arrows say that a call started it.
    """
    if is_flex(index):
        return np.flatnonzero(np.isin(index.column("slices.name"), flex_work(index))).astype(np.int64)
    is_work = category_mask(index, WORK | SYNC_CATEGORIES)[index.column("slices.category")]
    is_work[uncategorised_work(index, launches)] = True
    return np.flatnonzero(is_work).astype(np.int64)


def uncategorised_work(index: Index, launches: Launches) -> AnyArray:
    """Return the positions of work on devices' lanes that only arrows from calls tell of, ascending."""
    category = index.column("slices.category")[launches.kernels]
    others = launches.kernels[~category_mask(index, DEVICE)[category]]
    on_device: AnyArray = index.lanes["role"][lanes_of(index, others)] == LaneRole.DEVICE
    return others[on_device]


def op_device_times(events: OpEvents, launches: Launches, work: I64, by_capture: AnyArray) -> tuple[I64, I64]:
    """Return (device total, self device) in ns per event: of what it and its children launched.

    Work belongs to the op of its External id, else to the innermost op or annotation around its launch. Work
    whose owner is known `by_capture` (bool) is in the total of what replayed its graph, and in no self time.
    """
    parent = events.merged[1]
    target = ops_of(events, launches, work)
    known = np.flatnonzero(target >= 0)
    at, ns = staying(events, target[known]), events.index.duration(work[known])
    total, own = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
    add_at(total, at, ns)
    add_at(own, at, np.where(by_capture[known], 0, ns))
    return added_upwards(total, parent), own


def staying(events: OpEvents, at: I64) -> I64:
    """Return events, those that are merged into their parents as these; -1 stays."""
    alive, parent = events.merged
    return np.append(np.where(alive, np.arange(len(events)), parent), -1)[at]


def work_in(scope: Scope, source: int, members: I64, book: int = OWN) -> tuple[Frame, I64]:
    """Return (the device work of a source that counts in a scope, the innermost of some slices of a book of
    its owners, ascending, in which the owner of each lies, -1 for none). In a range that work counts which is
    launched in it, or, where its launch is not known, begins in it; all counts whole.
    """
    work = work_of(replace(scope, source=source, range=None, where=None, lanes=None, work=None))
    if scope.work is not None:
        work = work[np.isin(work.position, scope.work.chosen.get(source, NO_WORK))]
    elif scope.range is not None:
        begins = scope.starts(source, np.where(work.launched < 0, work.position, work.launched))
        work = work[(begins >= scope.range[0]) & (begins < scope.range[1])]
    known = np.flatnonzero((work.owner >= 0) & (work.book == book))
    around, index = np.full(len(work), -1, np.int64), scope.trace.owners(source).indexes[book]
    around[known] = nearest_around(index, work.owner[known], members, itself=True)
    return work, around


@dataclass(frozen=True, eq=False)
class LinkedWork:
    """Device work, the node of a tree in which each piece was launched, the node above each; -1 for none."""

    work: Frame
    nodes: I64
    parent: AnyArray

    @property
    def own_ns(self) -> I64:
        """The ns of work launched right in each node."""
        own = np.zeros(len(self.parent), np.int64)
        add_at(own, self.nodes[self.nodes >= 0], self.work.full_ns[self.nodes >= 0])
        return own

    @property
    def total_ns(self) -> I64:
        """The ns of work launched in each node or a node below it."""
        return added_upwards(self.own_ns, self.parent)

    def busy_ns(self, codes: I64, size: int) -> I64:
        """Return how long work ran that was launched in the nodes of each code or below them, any of it."""
        busy, reach = np.zeros(size, np.int64), np.full(size, NEVER)
        starts = self.work.start
        ends, order = starts + self.work.full_ns, np.argsort(starts, kind="stable")
        order = order[self.nodes[order] >= 0]
        for low in range(0, len(order), PIECE):
            self.work.scope.check()
            rows = order[low : low + PIECE]
            start, end = starts[rows], ends[rows]
            nodes, at, parts = self.nodes[rows], np.arange(len(rows)), []
            while len(nodes):
                parts.append(codes[nodes] * PIECE + at)
                nodes = self.parent[nodes].astype(np.int64)
                at, nodes = at[nodes >= 0], nodes[nodes >= 0]
            # Work by code, then by start: the number of a code and the place in the piece are one number.
            of, at = np.divmod(distinct(concatenated(parts)), PIECE)
            begins = run_starts(of)
            # An operator has launched 0 to 10 in the piece before, which `reach` tells. Now come 4 to 8, 6 to
            # 15 and 9 to 12, by start: cut to what lies behind all before them they are nothing, 10 to 15 and
            # nothing, and add 5. How far those before reach is a running maximum, of the ranks of ends, as
            # each code begins anew.
            by_end = np.argsort(end)
            ranks = np.empty(len(rows), np.int64)
            ranks[by_end] = np.arange(len(rows))
            farthest = end[by_end[np.maximum.accumulate(of * PIECE + ranks[at]) % PIECE]]
            before = np.append(NEVER, farthest[:-1])
            before[begins] = NEVER
            before = np.maximum(np.maximum(before, reach[of]), start[at])
            add_at(busy, of[begins], added_up(np.maximum(end[at], before) - before, begins))
            own = of[begins]
            reach[own] = np.maximum(reach[own], farthest[np.append(begins[1:], len(of)) - 1])
        return busy


def ops_of(events: OpEvents, launches: Launches, work: I64) -> I64:
    """Return the event number of the op that each piece of device work belongs to, -1 for none: that of its
    External id, from which an arrow says so, or of its launch's External id; in files whose launches have
    none, the innermost around the launch.
    """
    index = events.index
    ops, ids = events.ids
    correlation = promoted_of(index, "correlation", work)
    external = events.external_ids(work)
    # Some writers repeat the correlation under this key: then it names no op.
    result = joined(ids, ops, np.where(external == correlation, 0, external))
    operators = operators_by_arrow(index, work)
    by_arrow = np.flatnonzero((result < 0) & (operators >= 0))
    result[by_arrow] = _around(events, operators[by_arrow])
    rest = np.flatnonzero(result < 0)
    if not len(rest):
        return result
    calls = launches.calls_of(work[rest])
    rest, calls = rest[calls >= 0], calls[calls >= 0]
    result[rest] = ops_of_calls(events, calls)
    return result


def ops_of_calls(events: OpEvents, calls: I64) -> I64:
    """Return the event number of the op that each call belongs to, -1 for none: that of its External id; in
    files whose calls have none, the innermost around it.
    """
    ops, ids = events.ids
    own = events.external_ids(calls)
    by_id = joined(ids, ops, np.where(own == promoted_of(events.index, "correlation", calls), 0, own))
    # Where calls name their ops, one that names none was made by none.
    named = (events.calls[1] >= 0).any()
    return by_id if named else np.where(by_id >= 0, by_id, _around(events, calls))


def _around(events: OpEvents, positions: I64) -> I64:
    """Return the innermost op or annotation around each slice, -1 where there is none."""
    if not len(positions):
        return np.empty(0, np.int64)
    above = events.index.column("slices.parent")
    event = events.where[positions].astype(np.int64)
    current: AnyArray = positions.astype(np.uint32)
    todo = np.flatnonzero(event < 0)
    while len(todo):  # calls that are no events themselves
        current[todo] = above[current[todo]]
        todo = todo[current[todo] != NONE]
        event[todo] = events.where[current[todo]]
        todo = todo[event[todo] < 0]
    outer: I32 = climbed(events.parent, events.kind > ANNOTATION)
    known = event >= 0
    inner = np.flatnonzero(known)
    no_op = inner[events.kind[event[inner]] > ANNOTATION]
    event[no_op] = outer[event[no_op]]
    return event


EVALUATE = "autograd::engine::evaluate_function: "
FRAMES = ";"
"""Between frames, nearest first, as the profiler itself writes stacks."""
AUTOGRAD_FRAMES = (("autograd/__init__", ("backward", "_make_grads")), ("torch/tensor", ("backward",)))
"""Frames that torch leaves out of every stack: in a file with the first, around one of the second."""


class Grouping(NamedTuple):
    """What rows are grouped by besides the name; `depth` is the number of frames of a stack."""

    by: str = ""  # "", "shape", "stack", "module", "provider"
    depth: int = 0
    no_frames: bool = False  # without Python frames, as rows and in self times

    @property
    def column(self) -> tuple[str, str]:
        return {
            "shape": ("input_shapes", "Input Shapes"),
            "stack": ("stack", "Source Location"),
            "module": ("module", "Module"),
            "provider": ("provider", "Provider"),
        }[self.by]


NO_GROUPING = Grouping()


def parse_grouping(text: str) -> Grouping:
    """Return the grouping that "shape", "stack:5", "module" or "provider" means; UsageError for others."""
    by, _, depth = text.partition(":")
    if text in ("shape", "module", "provider"):
        return Grouping(text)
    if by == "stack" and depth.isdecimal() and whole_number(depth) > 0:
        return Grouping(by, whole_number(depth))
    raise UsageError(f"ops are grouped by shape, stack:N (N frames), module or provider, not by {text!r}")


def grouped(events: OpEvents, by: Grouping) -> tuple[I64, list[str]]:
    """Return (group of each event, the groups' texts); group 0 is the one with an empty text."""
    if by.by == "shape":
        return _by_shape(events)
    if by.by == "stack":
        return _by_stack(events, by.depth)
    return _by_provider(events) if by.by == "provider" else _by_module(events)


def _by_provider(events: OpEvents) -> tuple[I64, list[str]]:
    """Return the groups by what runs the operators of a model: ONNX Runtime's execution providers."""
    providers = promoted_of(events.index, "provider", events.positions, -1)
    group, numbers = dense(np.append(providers, -1))
    return group[:-1], [events.index.string(n) if n >= 0 else "" for n in numbers.tolist()]


def _by_shape(events: OpEvents) -> tuple[I64, list[str]]:
    group, numbers = dense(promoted_of(events.index, "input_dims", events.positions))
    shapes = {number: _shapes(events.index.string(number)) for number in numbers.tolist() if number}
    codes = {"[]": 0}
    of = [codes.setdefault(shapes.get(number, "[]"), len(codes)) for number in numbers.tolist()]
    return np.array(of, np.int64)[group], list(codes)


def _shapes(text: str) -> str:
    """Return input dims as torch prints them: what a list of tensors is called with is left out."""
    try:
        dims = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(dims, list):
        return text
    return str([[] if isinstance(d, list) and any(isinstance(x, list) for x in d) else d for d in dims])


def _by_module(events: OpEvents) -> tuple[I64, list[str]]:
    named = np.array([name.startswith(MODULE) for name in events.names], np.bool_)
    is_module = named[events.key] & (events.kind == PYTHON)
    module = climbed(events.parent, ~is_module).astype(np.int64)
    own = np.flatnonzero(is_module)
    module[own] = own
    keys = np.where(module >= 0, events.key[module] + 1, 0)
    group, numbers = dense(np.concatenate([[0], keys]))
    texts = [events.names[key - 1][len(MODULE) :] if key else "" for key in numbers.tolist()]
    return group[1:], texts


def _by_stack(events: OpEvents, depth: int) -> tuple[I64, list[str]]:
    stacks: dict[tuple[str, ...], int] = {(): 0}
    group = np.zeros(len(events), np.int64)
    texts = promoted_of(events.index, "call_stack", events.positions)
    if not texts.any():  # torch has stacks only where the profiler wrote them out
        return group, [""]
    which, numbers = dense(texts)
    of = [stacks.setdefault(_frames(events.index.string(n), depth), len(stacks)) for n in numbers.tolist()]
    group[:] = np.array(of, np.int64)[which]
    _frames_around(events, depth, group, stacks)
    _stacks_of_backward(events, group)
    return group, [FRAMES.join(frames) for frames in stacks]


def _frames(text: str, depth: int) -> tuple[str, ...]:
    return tuple(frame for frame in text.split(FRAMES) if frame and not _hidden(frame))[:depth]


def _hidden(frame: str) -> bool:
    return any(file in frame and any(f in frame for f in within) for file, within in AUTOGRAD_FRAMES)


def _frames_around(events: OpEvents, depth: int, group: I64, stacks: dict[tuple[str, ...], int]) -> None:
    frames = frames_of(events)
    hidden = np.array([_hidden(name) for name in events.names], np.bool_)
    outer = climbed(frames.parent, hidden[frames.key])
    rows = np.zeros((len(frames), depth), np.int32)
    current = outer
    for level in range(depth):
        rows[:, level] = np.where(current >= 0, frames.key[current] + 1, 0)
        current = np.where(current >= 0, outer[current], -1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    of = [
        stacks.setdefault(tuple(events.names[key - 1] for key in row if key), len(stacks))
        for row in distinct.tolist()
    ]
    group[events.kind == PYTHON] = np.array(of, np.int64)[which.reshape(-1)]


def _stacks_of_backward(events: OpEvents, group: I64) -> None:
    """Give backward ops, and all below them, the stack of the forward op that they belong to."""
    numbers = {name: number for number, name in enumerate(events.names)}
    evaluated = np.array(
        [numbers.get(n[len(EVALUATE) :], -1) if n.startswith(EVALUATE) else -1 for n in events.names] + [-1],
        np.int64,
    )
    above = np.where(events.parent >= 0, events.key[events.parent], len(events.names))
    is_root = (evaluated[above] == events.key) & (events.kind == OP)
    root = climbed(events.parent, ~is_root).astype(np.int64)
    own = np.flatnonzero(is_root)
    root[own] = own
    forward = np.flatnonzero((root < 0) & (events.kind <= ANNOTATION))
    forward = forward[np.argsort(events.start[forward], kind="stable")]
    sequence = promoted_of(events.index, "sequence", events.positions[forward], -1) + 1
    sequences = promoted_of(events.index, "sequence", events.positions[own], -1) + 1
    sequences[promoted_of(events.index, "fwd_thread", events.positions[own]) == 0] = 0
    source = joined(sequence, forward, sequences)
    stack = np.zeros(len(events), np.int64)
    stack[own] = np.where(source >= 0, group[source], 0)
    below = np.flatnonzero(root >= 0)
    group[below] = stack[root[below]]
