"""The host's slices of one source as columns: operators, annotations and runtime calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...base.intervals import Intervals, merge
from ...base.safe_text import safe
from ...base.short_names import short_name
from ...ingest.columns import I64, AnyArray
from ..groups import dense
from ..op_events import KINDS, PYTHON
from ..scope import Scope

OTHER = 255
LONG_NAME = 80
"""Of a longer name a sentence has the short form."""
WAITS = re.compile(
    r"^((cuda|hip|cu|xpu|ze)\w*Synchronize|synchronize(Stream)?|(cuda|hip)Memcpy(WithStream|HtoD|DtoH|DtoD)?"
    r"|aiu(Roundtrip|ScheduleWait|WaitForQueueCapacity))$"
)
"""Calls in which the host waits for the device."""
PROFILER = re.compile(
    r"^(Activity Buffer Request|Buffer Flush|Instrumentation|Resource|aiuClockCalibration)$"
)
"""The profiler at work, as CUPTI and AIUPTI record it."""


@dataclass(frozen=True)
class HostSlices:
    """The host's operators, annotations and calls in a scope, columns of equal length by position.

    Times are trace time in ns, cut to the scope's range; `name` is a place in `texts`.
    """

    positions: I64
    starts: I64
    ends: I64
    self_ns: I64
    kinds: AnyArray  # OP, ANNOTATION, RUNTIME
    lanes: I64  # places in Trace.lanes
    name: I64
    texts: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self.positions)

    def label(self, name: int) -> str:
        """Return a name for a sentence: as it is, unless it is long."""
        text = self.texts[name]
        return safe(text) if len(text) <= LONG_NAME else short_name(text)

    def named(self, pattern: re.Pattern[str], kind: int | None = None) -> I64:
        """Return the places of the slices (of a kind) whose name fits; each distinct name is asked once."""
        good = np.zeros(len(self.texts), np.bool_)
        names = range(len(self.texts)) if kind is None else self._names.get(kind, [])
        good[[name for name in names if pattern.search(self.texts[name])]] = True
        if not good.any():
            return np.empty(0, np.int64)
        mask = good[self.name]
        return np.flatnonzero(mask if kind is None else mask & (self.kinds == kind))

    @cached_property
    def _names(self) -> dict[int, list[int]]:
        """The names that occur in each kind: of runtime calls there are few."""
        found = {}
        for kind in np.unique(self.kinds).tolist():
            seen = np.zeros(len(self.texts), np.bool_)
            seen[self.name[self.kinds == kind]] = True
            found[kind] = np.flatnonzero(seen).tolist()
        return found

    def union(self, places: I64) -> Intervals:
        """Return the time that these slices cover."""
        return merge(self.starts[places], self.ends[places])

    def sums(self, places: I64, values: I64) -> I64:
        """Return the sum of values by name, over these slices."""
        total = np.zeros(len(self.texts), np.int64)
        np.add.at(total, self.name[places], values[places])
        return total


def host_of(scope: Scope) -> HostSlices:
    """Return the host's slices of a scope of one source."""
    index = scope.trace.indexes[scope.source or 0]
    kinds = np.array([KINDS.get(name, OTHER) for name in index.categories], np.uint8)
    kinds[kinds == PYTHON] = OTHER
    parts: list[tuple[AnyArray, ...]] = []
    for chunk in scope.chunks():
        kind = kinds[chunk.categories]
        keep = kind != OTHER
        if keep.any():
            columns = (chunk.positions, chunk.starts, chunk.ends, chunk.self_times, kind)
            parts.append(tuple(column[keep] for column in (*columns, chunk.lanes, chunk.names)))
    if not parts:
        none = np.empty(0, np.int64)
        return HostSlices(none, none, none, none, none, none, none, ())
    positions, starts, ends, own, kind, lanes, names = (np.concatenate(part) for part in zip(*parts))
    places, numbers = dense(names)
    texts = tuple(index.strings(numbers))
    return HostSlices(positions, starts, ends, own, kind, lanes, places, texts)
