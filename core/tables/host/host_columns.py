"""The host's slices of one source as columns: operators, annotations and runtime calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from ...base.arrays import I64, AnyArray, Bools, Intervals, distinct, merge
from ...base.errors import UnreadableError
from ...base.held import MAX_SHORT
from ...base.safe_text import safe
from ...base.short_names import short_name
from ...base.vendors import any_of
from ...index.flex import flex_work, is_flex, preparations, round_trips
from ...index.format import NONE
from ...index.store import Index
from ...query.groups import Groups, concatenated_columns, dense
from ...query.lookup import nearest_around, op_names, rows_at
from ...trace.cycle_stamps import preparing_slices
from ..frame.scope import Scope, Slices
from .op_events import ANNOTATION, NO_KIND, PYTHON, RUNTIME, host_kinds

HELD_PATTERNS, HELD_NAMES = 64, 512
"""So many expressions that rules ask for, each with answers of so many names: ranks have most in common."""
LONG_NAME = 80
"""Of a longer name a sentence has the short form."""
COPY_OPS = re.compile(
    r"^aten::(copy_|_copy_from|_copy_from_and_resize|_to_copy|to|item|_local_scalar_dense|cpu|cuda)$"
)
"""Operators that copy between host and device, among other things."""
READ_OPS = re.compile(r"^aten::(item|_local_scalar_dense|is_nonzero|nonzero|equal)$")
"""Operators that read a value from the device, or how many there are."""
MOVES_DATA = re.compile(any_of("moves"), re.IGNORECASE)
"""Calls that start a copy for which the operator around them waits: on an AIU such operators block."""
ANY_COPY = re.compile(r"memcpy|MemoryCopy|MemBuffer(Read|Write)|" + MOVES_DATA.pattern, re.IGNORECASE)
"""Calls that copy, whether one waits for them or not."""
LOADER = re.compile(
    r"^enumerate\(Data(Loader|Pipe)\)|data\w*\.py\(\d+\): (__next__|__iter__)$|^(## )?data_?load(er|ing)\b"
    r"|(^|[\s:.(])(next|get|fetch|load|read)_?(next_|mini_?|train_|data_?|micro_?)?batch(es)?(?!_?size|[a-z])"
    r"|^next\(|\b(pytorch/|Base_?)iterator\.py\(\d+\): __next__$|DALIGenericIterator",
    re.IGNORECASE,
)
"""Operators, annotations and Python functions that get the next input: TensorBoard's name, those of PyTorch's
and other loaders, and what programs call their own.
"""
ALLOCATES = re.compile(
    r"^[a-z]{2,12}(USM)?(Host|Device|Shared|Mem|Phys\w*)?(Alloc\w*|Malloc\w*|Free\w*|MemCreate|MemUn?map|MemRelease)$"
)
"""Calls that take memory from the driver or give it back: cudaMalloc, hipFree, urUSMDeviceAlloc, cuMemMap."""
POLLS = re.compile(r"select\.epoll|zmq\S*\(\d+\): (poll|recv\w*)$|: (_process_input_queue|recv_requests)$")
"""Python functions in which a server waits for requests; loaders wait for their workers by other calls."""
TRAINS = re.compile(r"Backward\d*$|^autograd::|^Optimizer\.")
"""Operators and annotations of programs that train."""
PROFILER = re.compile(
    rf"^(Activity Buffer Request|Buffer Flush|Instrumentation|Resource|{any_of('profiler')})$"
)
"""The profiler at work, as CUPTI and AIUPTI record it."""


@lru_cache(maxsize=HELD_PATTERNS)
def _held_search(pattern: re.Pattern[str]) -> Callable[[str], object]:
    """Return what tells whether an expression matches in a name; of short names it holds the answers."""
    held = lru_cache(maxsize=HELD_NAMES)(lambda name: pattern.search(name) is not None)
    return lambda name: held(name) if len(name) <= MAX_SHORT else pattern.search(name)


@dataclass(frozen=True, eq=False)
class HostSlices(Slices):
    """The host's operators, annotations and calls in a scope by position; times are cut to its range.

    Some of them are a mask, one boolean a slice: what rules ask is then `waits | copies`, `calls & ~waits`.
    """

    COLUMNS: ClassVar = (*Slices.COLUMNS, "self_ns", "kinds", "lanes")

    self_ns: I64
    kinds: AnyArray  # OP, ANNOTATION, RUNTIME
    lanes: AnyArray  # places in Trace.lanes, int32

    @cached_property
    def _distinct_names(self) -> tuple[I64, I64]:
        """(index of each slice's name among the distinct names, their string numbers, ascending)."""
        return dense(self.names)

    @property
    def name(self) -> I64:
        """The name of each slice, as an index into `texts`."""
        return self._distinct_names[0]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.index.strings(self._distinct_names[1]))

    def union(self, rows: AnyArray | slice = slice(None)) -> Intervals:
        return merge(self.starts[rows], self.ends[rows])

    def label(self, name: int) -> str:
        """Return a name for a sentence: as it is, unless it is long."""
        text = self.texts[name]
        return safe(text) if len(text) <= LONG_NAME else short_name(text)

    def matching(self, pattern: re.Pattern[str], kind: int | None = None) -> Bools:
        """Return which slices (of a kind) have a name that fits; each distinct name is asked once."""
        fits = np.zeros(len(self.texts), np.bool_)
        names = range(len(self.texts)) if kind is None else self._names.get(kind, [])
        search = _held_search(pattern) if len(names) <= HELD_NAMES else pattern.search
        fits[[name for name in names if search(self.texts[name])]] = True
        if not fits.any():
            return np.zeros(len(self), np.bool_)
        mask = fits[self.name]
        return mask if kind is None else mask & (self.kinds == kind)

    @cached_property
    def _names(self) -> dict[int, list[int]]:
        """The names that occur in each kind: of runtime calls there are few."""
        names = {}
        for kind in np.flatnonzero(np.bincount(self.kinds)).tolist():
            seen = np.zeros(len(self.texts), np.bool_)
            seen[self.name[self.kinds == kind]] = True
            names[kind] = np.flatnonzero(seen).tolist()
        return names

    def at(self, positions: AnyArray) -> Bools:
        """Return which slices are those at some positions, -1 among them for none."""
        is_one = np.zeros(self.index.length("slices.start") + 1, np.bool_)
        is_one[positions] = True
        return is_one[self.positions]

    def counts(self, mask: Bools) -> I64:
        """Return how many of these slices there are by name."""
        return np.bincount(self.name[mask], minlength=len(self.texts)).astype(np.int64)

    def sums(self, mask: Bools, values: I64) -> I64:
        """Return the sum of values by name, over these slices."""
        return Groups(self.name[mask], len(self.texts)).sums(values[mask])

    def totals(self, mask: Bools) -> I64:
        """Return how long these slices take by name, ns."""
        return Groups(self.name[mask], len(self.texts)).sums(self.ends[mask] - self.starts[mask])

    def first(self, mask: Bools) -> int:
        """Return the row of the first of these slices in the index."""
        return int(mask.argmax())

    def most(self, mask: Bools, values: I64) -> int:
        """Return the row of the one of these slices with the greatest value, of equal ones the first."""
        rows = np.flatnonzero(mask)
        return int(rows[np.argmax(values[rows])])

    def longest(self, mask: Bools) -> int:
        """Return the row of the longest of these slices, of equal ones the first."""
        rows = np.flatnonzero(mask)
        return int(rows[np.argmax(self.ends[rows] - self.starts[rows])])

    def earliest(self, mask: Bools) -> int:
        """Return the row of the one of these slices that starts first."""
        return self.most(mask, -self.starts)

    def narrow(self, mask: Bools, fits: Bools) -> Bools:
        """Return which of some slices fit; `fits` has a value for each of these alone."""
        narrower = np.zeros(len(self), np.bool_)
        narrower[np.flatnonzero(mask)[fits]] = True
        return narrower

    def on_lanes_of(self, mask: Bools) -> Bools:
        """Return which slices are on a lane on which one of some slices is."""
        is_one: Bools = np.bincount(self.lanes[mask], minlength=int(self.lanes.max(initial=0)) + 1) > 0
        return is_one[self.lanes]

    def inside(self, mask: Bools, members: Bools) -> Bools:
        """Return which of some slices lie within one of the members, at any depth."""
        around = nearest_around(self.index, self.positions[mask], self.positions[members])
        return self.narrow(mask, around >= 0)

    def around_any(self, mask: Bools, members: Bools) -> Bools:
        """Return which of the members lie around one of some slices, at any depth."""
        ascending = self.positions[members]
        hits, todo = np.zeros(len(self), np.bool_), self.positions[mask]
        while len(todo):
            above = nearest_around(self.index, todo, ascending)
            rows = np.searchsorted(self.positions, distinct(above[above >= 0]))
            todo = self.positions[rows[~hits[rows]]]
            hits[rows] = True
        return hits

    def within(self, mask: Bools) -> Bools:
        """Return which slices lie directly in one of some slices."""
        above = self.index.column("slices.parent")
        is_one = np.zeros(len(above) + 1, np.bool_)
        is_one[self.positions[mask]] = True
        return is_one[np.minimum(above[self.positions], len(above))]

    @cached_property
    def parents(self) -> I64:
        """The row of the slice right around each, -1 for one that is not the host's, or none."""
        above = self.index.column("slices.parent")[self.positions].astype(np.int64)
        return rows_at(self.index, self.positions, np.where(above == NONE, -1, above))

    def own_time(self, mask: Bools) -> Intervals:
        """Return the time in which slices run themselves, and none of the host's that lies directly in them.

        One from 0 to 9 with others from 2 to 3 and 5 to 6 in it runs itself from each of 0, 3, 6 to each of
        2, 5, 9.
        """
        around = np.append(np.where(mask, np.cumsum(mask) - 1, -1), -1)[self.parents]
        inside = np.flatnonzero(around >= 0)
        of = np.concatenate([np.arange(np.count_nonzero(mask)), around[inside]])
        starts = np.concatenate([self.starts[mask], self.ends[inside]])
        ends = np.concatenate([self.ends[mask], self.starts[inside]])
        return merge(starts[np.lexsort((starts, of))], ends[np.lexsort((ends, of))])

    def time_of_threads(self, mask: Bools, idle: Bools) -> Intervals:
        """Return the time in which some thread is in one of these slices, and in none of the idle ones."""
        busy = self.union(mask & ~self.on_lanes_of(idle))
        for lane in distinct(self.lanes[idle]).tolist():
            here = self.lanes == lane
            busy = busy.union(self.union(mask & here).without(self.union(idle & here)))
        return busy


def _kinds_of_flex(index: Index) -> AnyArray:
    """Return the kind of host event that slices of each name, by its number, are in a FLEX job trace: a whole
    job is an annotation, device work is none, and all else (preparing, waiting, converting) is a call.
    Preparing is the device's where its stamps say so.
    """
    kinds = np.full(index.length("strings.offset"), RUNTIME, np.uint8)
    kinds[round_trips(index)] = ANNOTATION
    kinds[flex_work(index)] = NO_KIND
    with suppress(UnreadableError):  # the file has gone: nothing is known of its stamps
        if len(preparing_slices(index)):
            kinds[preparations(index)] = NO_KIND
    return kinds


def host_of(scope: Scope) -> HostSlices:
    """Return the host's slices of one source; of Python's functions loaders and waits for requests."""
    index = scope.trace.indexes[scope.source or 0]
    columns = concatenated_columns(_host_parts(scope, index), scope.most)
    return HostSlices(scope.source or 0, index, *(columns or [np.empty(0, np.int64)] * 8))


def _host_parts(scope: Scope, index: Index) -> Iterator[tuple[AnyArray, ...]]:
    """Yield columns of the host's slices, some at a time, in the order of those of HostSlices."""
    kinds = host_kinds(index)
    of_names = _kinds_of_flex(index) if is_flex(index) else None
    known: dict[int, bool] = {}
    for chunk in scope.chunks():
        kind = kinds[chunk.categories] if of_names is None else of_names[chunk.names]
        keep = kind != NO_KIND
        frames = np.flatnonzero(kind == PYTHON)
        if len(frames):
            keep[frames] = _are_kept(index, chunk.names[frames], known)
        if not keep.any():
            continue
        names = op_names(index, chunk.positions, chunk.names)
        columns = (chunk.positions, chunk.starts, chunk.ends, names, chunk.categories)
        more, rows = (chunk.self_times, kind, chunk.lanes.astype(np.int32)), np.flatnonzero(keep)
        yield tuple(column[rows] for column in (*columns, *more))


def _are_kept(index: Index, names: AnyArray, known: dict[int, bool]) -> AnyArray:
    """Return which names of Python functions rules ask for; `known` keeps those that were looked at."""
    numbers, which = np.unique(names, return_inverse=True)
    for number in numbers.tolist():
        if number not in known:
            name = index.string(number)
            known[number] = LOADER.search(name) is not None or POLLS.search(name) is not None
    return np.array([known[number] for number in numbers.tolist()], np.bool_)[which]
