"""A trace with lanes that are computed from it: memory in use by allocator, launches waiting by stream, and
how many rows of a query hold at each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, distinct
from ..base.clock import NO_CLOCKS, Clocks
from ..base.errors import UsageError
from ..base.progress import CancelledCallback, never
from ..index.flex import flex_work, is_flex
from ..index.format import RowKind
from ..index.producers import has_memory_records, named_events
from ..query.lookup import processes_of
from ..query.views import Process
from ..trace import Trace
from ..trace.devices import rank_of
from .more_sources import Counter, CounterIndex, TraceWithMore

if TYPE_CHECKING:
    from ..index.store import Index
    from ..query.args import Arguments
    from ..tables.frame.scope import Scope
    from ..tables.frame.table import Table
    from ..tables.host.allocations import Allocator

HEADING = "computed"
MIB = 1 << 20
CHEAP = 500_000
"""Up to this many events that may be records of memory its lanes are made at once, unasked."""
MAX_SAMPLES = 1_000_000
"""A longer series is reduced to the least and the greatest value of each of its parts."""
LIKE = 1e-5
"""Values that differ by less than this share are the same: files have them as decimals."""
MAX_STREAMS = 8
"""Streams of a device that get queue lanes: those with most launches."""
MEMORY, QUEUE, POWER = "memory", "queue", "power"
"""Kinds of computed lanes."""


class WithCounters(TraceWithMore):
    """A trace and one more source: the lanes computed from it, each below the process that it speaks of."""

    def __init__(self, own: Trace, counters: Sequence[Counter], device_clocks: Clocks = NO_CLOCKS) -> None:
        """Lay series below their processes; none at all keeps the place for later ones. `device_clocks`: what
        devices were moved by when their queues were computed.
        """
        self.device_clocks = device_clocks
        path = own.sources[0].path if own.sources else ""
        self.computed = CounterIndex(counters, path)
        super().__init__(own, [self.computed])

    @property
    def counter_source(self) -> int:
        return len(self.own.indexes)

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks of the trace; a computed lane has the clock of the process that it belongs to."""
        return self.with_computed(self.own.clocks)

    def with_computed(self, clocks: Clocks) -> Clocks:
        """Return clocks of the trace with those of the computed lanes."""
        for number, (source, process) in enumerate(self.computed.owners):
            index = self.own.indexes[source]
            owner = index.string(int(index.processes[process]["pid"]))
            pid = self.computed.string(int(self.computed.processes[number]["pid"]))
            clocks = clocks.shifted((self.counter_source, pid), clocks.offset(source, owner))
        return clocks

    def owner_of(self, process: Process) -> tuple[int, int] | None:
        return self.computed.owners[process.number]

    def event_arguments(self, source: int, ordinal: int) -> Arguments:
        """Return the arguments of an event; of a computed sample those of the record that it comes from."""
        if source != self.counter_source:
            return self.own.event_arguments(source, ordinal)
        from ..query.args import Arguments

        event = self.computed.event_of(ordinal)
        return Arguments({}) if event is None else self.own.event_arguments(*event)


def with_cheap_lanes(trace: Trace) -> WithCounters:
    """Return a trace with its memory lanes, unless looking for records among its events takes long."""
    held = [index for index in trace.indexes if has_memory_records(index)]
    jobs = any(index.length("slices.start") <= CHEAP and is_flex(index) for index in trace.indexes)
    recorded = bool(held) and sum(map(_possible_records, held)) <= CHEAP
    if not recorded and not jobs:
        return WithCounters(trace, ())
    from .kept_lanes import keep_lanes, kept_lanes  # the first picture of most traces needs neither

    lanes = kept_lanes(trace)
    if lanes is None:
        from ..tables.frame.scope import Scope

        lanes = memory_counters(Scope(trace)) if recorded else []
        lanes += power_counters(Scope(trace)) if jobs else []
        keep_lanes(trace, lanes)
    return WithCounters(trace, lanes)


def _possible_records(index: Index) -> int:
    """Return among how many events those are that allocators recorded."""
    return index.length("instants.start") + index.length("slices.start") * bool(len(named_events(index)))


def with_lanes(
    trace: Trace, kind: str, cancelled: CancelledCallback = never, clocks: Clocks = NO_CLOCKS
) -> WithCounters:
    """Return a trace with computed lanes of a kind beside those that it has; queues as they are with the
    devices' own clocks among `clocks`. Raises Cancelled.
    """
    from ..tables.frame.scope import Scope

    known: list[Counter] = []
    devices = NO_CLOCKS
    if isinstance(trace, WithCounters):
        known = [one for one in trace.computed.counters if one.kind != kind]
        devices, trace = trace.device_clocks, trace.own
    if kind == MEMORY:
        counters = memory_counters(Scope(trace, cancelled=cancelled))
    else:
        devices = of_devices(trace, clocks)
        counters = queue_counters(Scope(trace, clocks=devices, cancelled=cancelled))
    return WithCounters(trace, sorted([*known, *counters], key=attrgetter("kind")), devices)


def of_devices(trace: Trace, clocks: Clocks) -> Clocks:
    """Return the clocks of a trace's devices alone, without those of its files."""
    own = {key: ns for key, ns in clocks.offsets.items() if key[1] and key[0] < len(trace.indexes)}
    return Clocks(MappingProxyType(own))


def memory_counters(scope: Scope) -> list[Counter]:
    """Return what each allocator of a device gave out and reserved; of the host's where there is no other.
    A series that the file itself has, value by value, is left out.
    """
    from ..tables.host.allocators import allocators

    used = [one for one in allocators(scope) if len(one)]
    devices = [one for one in used if not one.host]
    counters = []
    for one in devices or used:
        owner = _owner(one)
        if owner is None:
            continue
        whose = "" if one.device is None else one.title.removeprefix(one.device.label).strip()
        events = one.ordinals
        series = [(whose or "allocated", one.total)]
        if one.reserved is not None and not np.array_equal(one.reserved, one.total):
            series.append((f"{whose} reserved".strip(), one.reserved))
        for word, values in series:
            points = thinned(values)
            owner_fields = MEMORY, one.source, owner, heading_of(scope, one.source, owner)
            samples = one.times[points], values[points] / MIB, events[points]
            counters.append(Counter(*owner_fields, f"{word} MiB", *samples))
    return [one for one in counters if not _is_in_file(scope.trace.indexes[one.source], one)]


def _is_in_file(index: Index, one: Counter) -> bool:
    """Tell whether a process of the file has a counter of the same samples."""
    values, starts = index.column("samples.value"), index.column("samples.start")
    rows = index.rows[index.rows["kind"] == RowKind.SAMPLES]
    own = rows[index.lanes["process"][rows["lane"]] == one.process]
    parts = [slice(int(row["first"]), int(row["first"]) + int(row["count"])) for row in own]
    bound = 1e-8 + LIKE * np.abs(one.values)  # as np.allclose has it, which takes longer than all the rest
    return any(
        np.array_equal(starts[p], one.starts) and bool((np.abs(values[p] - one.values) <= bound).all())
        for p in parts
    )


def power_counters(scope: Scope) -> list[Counter]:
    """Return what the devices of FLEX job traces drew (W), from the end of one slice to that of the next."""
    from ..trace.cycle_stamps import flex_stamps
    from ..trace.devices import devices

    counters = []
    for device in devices(scope.trace):
        index = scope.trace.indexes[device.source]
        if not is_flex(index):
            continue
        names = np.isin(index.column("slices.name"), flex_work(index))
        own = np.flatnonzero(names)
        stamps = flex_stamps(index, own[processes_of(index, own) == device.process])
        if stamps is None:
            continue
        rows, moments, watts = stamps.watts(index.column("slices.start")[stamps.positions].astype(np.int64))
        heading = heading_of(scope, device.source, device.process)
        fields = POWER, device.source, device.process, heading, "power W"
        ordinals = index.column("slices.ordinal")[stamps.positions[rows]].astype(np.int64)
        counters.append(Counter(*fields, moments, watts, ordinals))
    return [one for one in counters if len(one.starts)]


def _owner(one: Allocator) -> int | None:
    """Return the number of the process that an allocator's lanes stand below."""
    if one.device is not None:
        return one.device.process
    pids = [one.index.string(int(process["pid"])) for process in one.index.processes]
    return pids.index(one.pids[0]) if one.pids else None


def queue_counters(scope: Scope) -> list[Counter]:
    """Return per stream how many launches wait for their start, and how many wait or run."""
    from ..tables.device.launches import (  # only here: starting the viewer needs none of it
        begun_work,
        launched,
    )

    counters = []
    for device in launched(begun_work(scope)).by("device_row"):
        of = device.first_device.device
        heading = heading_of(scope, of.source, of.process)
        streams = sorted(device.by("stream"), key=len, reverse=True)[:MAX_STREAMS]
        for one in sorted(streams, key=lambda one: int(one.stream[0])):
            stream = one.streams[int(one.stream[0])]
            for word, until in (("waiting", one.start), ("in flight", one.start + one.full_ns)):
                times, lengths = one.queue(until)
                points = thinned(lengths)
                values = lengths[points].astype(np.float64)
                title = f"stream {stream} {word}"
                counters.append(Counter(QUEUE, of.source, of.process, heading, title, times[points], values))
    return counters


def heading_of(scope: Scope, source: int, process: int) -> str:
    """Return the title of what stands below a process: its label, with the rank where there are several."""
    trace = scope.trace
    own = next(p for p in trace.processes if (p.source, p.number) == (source, process))
    rank = f"rank {rank_of(trace.indexes[source], source)} " if len(trace.indexes) > 1 else ""
    return f"{rank}{own.labels.strip() or own.title} · {HEADING}"


def thinned(values: I64, most: int = MAX_SAMPLES) -> I64:
    """Return the indices of the values that remain of many: the least and greatest of each part, in order."""
    if len(values) <= most:
        return np.arange(len(values))
    size = -(-len(values) // (most // 2))
    whole = len(values) // size * size
    blocks = values[:whole].reshape(-1, size)
    first = np.arange(len(blocks)) * size
    ends = [first + blocks.argmin(axis=1), first + blocks.argmax(axis=1)]
    return distinct(np.concatenate([*ends, np.arange(whole, len(values)), [len(values) - 1]]))


QUERY_LANE = "query"
"""The kind of such lanes."""
QUERY_HEADING = "queries"


def with_query_lane(trace: Trace, table: Table, title: str) -> WithCounters:
    """Return a trace with a lane of the rows of a table, in place of one of the same title. Rows need the
    integer columns `ts` and `dur` (ns); UsageError where they are missing or no row has them.
    """
    base = without_query_lane(trace, title) if isinstance(trace, WithCounters) else WithCounters(trace, ())
    counters = (*base.computed.counters, _query_counter(base.own, table, title))
    return WithCounters(base.own, counters, base.device_clocks)


def without_query_lane(trace: WithCounters, title: str) -> WithCounters:
    known = [one for one in trace.computed.counters if (one.kind, one.title) != (QUERY_LANE, title)]
    return WithCounters(trace.own, known, trace.device_clocks)


def _query_counter(trace: Trace, table: Table, title: str) -> Counter:
    starts, ends = _query_spans(table)
    times, changes = np.concatenate([starts, ends]), np.repeat([1, -1], len(starts))
    distinct, which = np.unique(times, return_inverse=True)
    running = np.cumsum(np.bincount(which, changes, len(distinct))).astype(np.int64)
    points = thinned(running)
    process = trace.processes[0]
    offset = trace.clocks.offset(process.source, process.pid)
    values = running[points].astype(np.float64)
    owner = process.source, process.number
    return Counter(QUERY_LANE, *owner, QUERY_HEADING, title, distinct[points] - offset, values)


def _query_spans(table: Table) -> tuple[I64, I64]:
    """Return where the rows begin and end; one that takes no time lasts 1 ns."""
    missing = [key for key in ("ts", "dur") if key not in table.data]
    if missing:
        raise UsageError(f"a lane needs rows with ts and dur: the query has no {' and no '.join(missing)}")
    rows = zip(_whole_numbers(table, "ts"), _whole_numbers(table, "dur"))
    pairs = [(start, max(1, length)) for start, length in rows if start is not None and length is not None]
    if not pairs:
        raise UsageError("no row of the query has a time: ts and dur are integers, in ns")
    starts, lengths = np.array(pairs, np.int64).T
    return starts, starts + lengths


def _whole_numbers(table: Table, key: str) -> list[int | None]:
    values = table.data[key]
    listed = values if isinstance(values, list) else values.tolist()
    is_number = [isinstance(value, int | float) and value == value for value in listed]
    return [int(value) if number else None for value, number in zip(listed, is_number)]
