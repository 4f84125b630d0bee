"""The rows of a query as a lane of their own: how many of them run at each time."""

from __future__ import annotations

import numpy as np

from ..base.arrays import I64
from ..base.errors import UsageError
from ..tables.table import Table
from ..trace import Trace
from .counters import WithCounters, thinned
from .series_index import Counter

QUERY_LANE = "query"
"""The kind of such lanes."""
HEADING = "queries"


def with_query_lane(trace: Trace, table: Table, title: str) -> WithCounters:
    """Return a trace with a lane of the rows of a table, in place of one of the same title.

    Rows need the integer columns `ts` and `dur` (ns); UsageError where they are missing or no row has them.
    """
    own, devices, known = trace, None, list[Counter]()
    if isinstance(trace, WithCounters):
        own, devices = trace.own, trace.device_clocks
        known = [one for one in trace.computed.counters if (one.kind, one.title) != (QUERY_LANE, title)]
    counters = [*known, _counter(own, table, title)]
    return WithCounters(own, counters) if devices is None else WithCounters(own, counters, devices)


def without_query_lane(trace: WithCounters, title: str) -> WithCounters:
    """Return a trace without the lane of a query."""
    known = [one for one in trace.computed.counters if (one.kind, one.title) != (QUERY_LANE, title)]
    return WithCounters(trace.own, known, trace.device_clocks)


def _counter(trace: Trace, table: Table, title: str) -> Counter:
    starts, ends = _spans(table)
    times, changes = np.concatenate([starts, ends]), np.repeat([1, -1], len(starts))
    distinct, which = np.unique(times, return_inverse=True)
    running = np.cumsum(np.bincount(which, changes, len(distinct))).astype(np.int64)
    points = thinned(running)
    process = trace.processes[0]
    offset = trace.clocks.offset(process.source, process.pid)
    values = running[points].astype(np.float64)
    owner = process.source, process.number
    return Counter(QUERY_LANE, *owner, HEADING, title, distinct[points] - offset, values)


def _spans(table: Table) -> tuple[I64, I64]:
    """Return where the rows begin and end; one that takes no time lasts 1 ns."""
    missing = [key for key in ("ts", "dur") if key not in table.data]
    if missing:
        raise UsageError(f"a lane needs rows with ts and dur: the query has no {' and no '.join(missing)}")
    pairs = [
        (start, max(1, duration))
        for start, duration in zip(_numbers(table, "ts"), _numbers(table, "dur"))
        if start is not None and duration is not None
    ]
    if not pairs:
        raise UsageError("no row of the query has a time: ts and dur are integers, in ns")
    starts = np.array([start for start, _ in pairs], np.int64)
    return starts, starts + np.array([duration for _, duration in pairs], np.int64)


def _numbers(table: Table, key: str) -> list[int | None]:
    """Return a column's whole numbers, None for what is none."""
    values = table.data[key]
    listed = values if isinstance(values, list) else values.tolist()
    is_number = [isinstance(value, int | float) and value == value for value in listed]
    return [int(value) if number else None for value, number in zip(listed, is_number)]
