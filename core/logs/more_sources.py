"""A trace with further sources that leave its time and clocks as they are, and series as such a source:
counter lanes of an index in memory, of logs or computed from the trace.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..base.clock import NO_CLOCKS, Clocks
from ..index.format import LANE, PROCESS, ROW, LaneKind, LaneRole, RowKind
from ..index.pyramid import extremes, pyramid_sizes
from ..index.store import Index
from ..query.busy import SeriesRange
from ..query.views import COMPUTED, Process
from ..trace import Row, Trace

if TYPE_CHECKING:
    from ..trace.alignment import Alignment


class TraceWithMore(Trace):
    """A trace with further sources after its own; time and clocks are those of the trace."""

    def __init__(self, own: Trace, more: Sequence[Index]) -> None:
        self.own = own
        super().__init__([*own.indexes, *more], own.members, own.captures, own.open_capture)
        self.folders = own.folders
        self.opens, self.answers = own.opens, own.answers

    # Time and clocks are those of the trace without the further sources.

    @property
    def alignment(self) -> Alignment:
        return self.own.alignment

    @property
    def clocks(self) -> Clocks:
        return self.own.clocks

    def span_at(self, clocks: Clocks = NO_CLOCKS) -> tuple[int, int]:
        """Return the span of the trace: a log that ran for hours does not make it longer."""
        return self.own.span_at(clocks)

    def series_range(self, row: Row) -> SeriesRange:
        """Return which values a counter series has and what it is drawn in, as the trace below has it."""
        below = row.source < len(self.own.indexes)
        return self.own.series_range(row) if below else super().series_range(row)

    @property
    def span(self) -> tuple[int, int]:
        return self.own.span

    @property
    def opening_span(self) -> tuple[int, int]:
        return self.own.opening_span

    def opening_span_at(self, clocks: Clocks) -> tuple[int, int]:
        return self.own.opening_span_at(clocks)

    @property
    def slices_elsewhere(self) -> int:
        return self.own.slices_elsewhere

    @property
    def marks_elsewhere(self) -> int:
        return self.own.marks_elsewhere

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        """The trace's processes, each with the further ones that speak of it below; the others come last."""
        below: dict[tuple[int, int] | None, list[Process]] = {}
        for process in self._processes:
            if process.source >= len(self.own.indexes):
                below.setdefault(self.owner_of(process), []).append(process)
        processes = [
            one for own in self.own.processes for one in (own, *below.pop((own.source, own.number), ()))
        ]
        return (*processes, *(one for rest in below.values() for one in rest))

    def owner_of(self, process: Process) -> tuple[int, int] | None:
        """Return (source, number) of the trace's process that a further one speaks of, None for none."""
        return None

    def close(self) -> None:
        self.own.close()


def own_trace(trace: Trace) -> Trace:
    """Return a trace without logs and computed lanes."""
    while isinstance(trace, TraceWithMore):
        trace = trace.own
    return trace


def own_clocks(trace: Trace, clocks: Clocks) -> Clocks:
    """Return the clocks of a trace's own sources: those of logs and computed lanes come behind them."""
    own = {key: ns for key, ns in clocks.offsets.items() if key[0] < trace.source_count}
    return Clocks(MappingProxyType(own))


class SeriesLane(NamedTuple):
    """One lane of samples: `starts` in ns of lane time, ascending; each value holds until the next start."""

    process: int  # index among the processes of the index
    title: str
    starts: I64
    values: F64
    span: tuple[int, int]  # ns of lane time in which the lane counts as occupied
    samples: int  # how many of the entries are samples


class SeriesIndex(Index):
    """An index with one row of samples for each lane. Ordinals number the entries of all lanes."""

    def __init__(
        self, manifest: dict[str, Any], processes: Sequence[tuple[str, str]], lanes: Sequence[SeriesLane]
    ) -> None:
        """Lay out lanes, ordered by process; a process is (pid, name)."""
        self._texts = ["", "null"]
        count = np.array([len(lane.starts) for lane in lanes], np.int64)
        value = np.concatenate([np.empty(0), *(lane.values for lane in lanes)])
        low, high = extremes(count, value)
        self._memory: dict[str, AnyArray] = {
            "samples.start": np.concatenate([np.empty(0, np.int64), *(lane.starts for lane in lanes)]),
            "samples.value": value,
            "samples.ordinal": np.arange(len(value), dtype=np.uint32),
            "pyramid.low": low,
            "pyramid.high": high,
        }
        tables = {
            "processes": self._process_table(processes, lanes),
            "rows": _row_table(count, lanes),
            "lanes": self._lane_table(lanes),
        }
        super().__init__(Path(manifest["path"]), manifest, tables)

    def _process_table(self, processes: Sequence[tuple[str, str]], lanes: Sequence[SeriesLane]) -> AnyArray:
        table = np.zeros(len(processes), PROCESS)
        owners = [lane.process for lane in lanes]
        for number, (pid, name) in enumerate(processes):
            first = sum(owner < number for owner in owners)
            texts = self._text(json.dumps(pid, ensure_ascii=False)), self._text(name)
            table[number] = (*texts, 0, number, first, owners.count(number), 0)
        return table

    def _lane_table(self, lanes: Sequence[SeriesLane]) -> AnyArray:
        table = np.zeros(len(lanes), LANE)
        table["kind"] = LaneKind.COUNTER
        table["role"] = LaneRole.TELEMETRY
        table["process"] = [lane.process for lane in lanes]
        table["tid"] = 1
        table["name"] = [self._text(lane.title) for lane in lanes]
        table["first_row"] = np.arange(len(lanes))
        table["rows"] = 1
        table["samples"] = [lane.samples for lane in lanes]
        table["start"], table["end"] = np.array([lane.span for lane in lanes], np.int64).reshape(-1, 2).T
        return table

    def _text(self, text: str) -> int:
        self._texts.append(text)
        return len(self._texts) - 1

    def _map(self, name: str) -> AnyArray:
        column = self._memory.get(name)
        return super()._map(name) if column is None else column

    def _read_string(self, number: int) -> str:
        return self._texts[number]

    def close(self) -> None:
        """Do nothing: no file is mapped, and what is in memory stays."""


def _row_table(count: I64, lanes: Sequence[SeriesLane]) -> AnyArray:
    table = np.zeros(len(lanes), ROW)
    table["lane"] = np.arange(len(lanes))
    table["kind"] = RowKind.SAMPLES
    table["first"] = np.cumsum(count) - count
    table["count"] = count
    table["start"], table["end"] = np.array([lane.span for lane in lanes], np.int64).reshape(-1, 2).T
    sizes = pyramid_sizes(count)
    table["pyramid"] = np.cumsum(sizes) - sizes
    return table


class Counter(NamedTuple):
    """A series below a process of the trace; `starts` are lane times of that process, ascending, in ns.
    `events` are the ordinals of the events that the samples come from, in the process's source.
    """

    kind: str  # which lanes are shown and hidden together
    source: int
    process: int  # number in the source's process table
    heading: str
    title: str
    starts: I64
    values: F64
    events: I64 | None = None


class CounterIndex(SeriesIndex):
    """Computed lanes, a process for each process that they stand below, a lane per series."""

    def __init__(self, counters: Sequence[Counter], path: str) -> None:
        """Lay out the series; those of one process stand together, in the order given."""
        self.owners = list(dict.fromkeys((one.source, one.process) for one in counters))
        self.counters = sorted(counters, key=lambda one: self.owners.index((one.source, one.process)))
        headings = {(one.source, one.process): one.heading for one in reversed(counters)}
        lanes = []
        for one in self.counters:
            owner, times = self.owners.index((one.source, one.process)), one.starts
            span = int(times[0]), int(times[-1])
            lanes.append(SeriesLane(owner, one.title, times, one.values, span, len(times)))
        processes = [(headings[owner], headings[owner]) for owner in self.owners]
        manifest: dict[str, Any] = {"path": path, "form": COMPUTED, "columns": {}, "problems": []}
        manifest |= {"read_report": {}, "samples": sum(lane.samples for lane in lanes)}
        super().__init__(manifest, processes, lanes)

    def event_of(self, ordinal: int) -> tuple[int, int] | None:
        """Return (source, ordinal) of the event that a sample comes from, None where it is no single one."""
        for number, one in enumerate(self.counters):
            first, count = int(self.rows[number]["first"]), int(self.rows[number]["count"])
            if first <= ordinal < first + count and one.events is not None:
                return one.source, int(one.events[ordinal - first])
        return None
