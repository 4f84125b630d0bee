"""The slices of a trace that a filter matches: from columns at once, by arguments while sources are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from time import monotonic
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, U32, sum_of
from ..base.clock import NO_CLOCKS, Clocks
from ..base.errors import UnreadableError
from ..base.progress import CancelledCallback, never
from ..query.filter import Filter
from ..query.hits import Hits
from ..query.lookup import lane_offsets
from ..query.scan_child import ScanJob, scanned
from ..query.search import CHUNK, Search
from ..query.views import rank_titles
from . import Trace

REPORT_SECONDS = 0.3
"""Seconds between two reports of the hits so far, while arguments are searched."""
SECONDS_PER_HIT = 2e-6
"""Further seconds between reports for each hit so far: marking a million hits takes 0.4 s."""


class SearchProgress(NamedTuple):
    """The hits of a search so far, and which share of the trace has been searched: 1 is all of it."""

    hits: Hits
    share: float


def matches(
    trace: Trace, filter: Filter, clocks: Clocks = NO_CLOCKS, cancelled: CancelledCallback = never
) -> Hits:
    """Return the slices of a trace that a filter matches. Raises Cancelled, UnreadableError (arguments)."""
    *_, last = find(trace, filter, clocks, cancelled=cancelled, every=inf)
    return last.hits


def find(
    trace: Trace,
    filter: Filter,
    clocks: Clocks = NO_CLOCKS,
    window: tuple[int, int] | None = None,
    cancelled: CancelledCallback = never,
    every: float = REPORT_SECONDS,
) -> Iterator[SearchProgress]:
    """Yield what a filter matches: the hits so far, every `every` seconds, then all hits.

    Arguments without a column are read from the source, by a worker process where there is much to read;
    slices in the window (trace time, ns) come first. Raises Cancelled, UnreadableError.
    """
    ranks = rank_titles(trace.members)
    titles = [[""] * len(index.lanes) for index in trace.indexes]
    for lane in trace.lanes:
        titles[lane.source][lane.number] = lane.title
    offsets = [lane_offsets(index, source, clocks) for source, index in enumerate(trace.indexes)]
    positions = [np.empty(0, np.uint32) for _ in trace.indexes]
    of = sum(index.length("slices.start") for index in trace.indexes)
    remark, last_report = "", monotonic()
    for source, index in enumerate(trace.indexes):
        search = Search(index, titles[source], ranks.get(source, ""), filter, cancelled)
        sure, unsure = search.by_columns()
        parts = [] if search.scanned else [sure]
        if not len(unsure) and not (search.scanned and len(sure)):
            positions[source] = np.concatenate((*parts, unsure))
            continue
        if parts and every < inf:
            positions[source] = sure
            yield SearchProgress(_hits(trace, filter, positions, offsets, of), source / len(trace.indexes))
        job = ScanJob(
            index, filter, tuple(titles[source]), search.rank, tuple(offsets[source].tolist()), window
        )
        try:
            for step in scanned(job, cancelled):
                parts.append(step.positions)
                if monotonic() - last_report >= every + sum(map(len, parts)) * SECONDS_PER_HIT:
                    parts = [np.sort(np.concatenate(parts))]
                    positions[source] = parts[0]
                    share = (source + step.done / max(1, step.total)) / len(trace.indexes)
                    yield SearchProgress(_hits(trace, filter, positions, offsets, of), min(share, 0.999))
                    last_report = monotonic()
        except UnreadableError as error:
            if search.scanned:
                raise
            parts = [sure, search.without_unknown(unsure)]
            remark = f"found by the index alone: {error}"
        positions[source] = np.sort(np.concatenate(parts))
    yield SearchProgress(replace(_hits(trace, filter, positions, offsets, of), remark=remark), 1.0)


def hits_at(trace: Trace, positions: Sequence[U32], clocks: Clocks = NO_CLOCKS, text: str = "") -> Hits:
    """Return slices as hits, by source their positions, ascending; `text` says what they are."""
    offsets = [lane_offsets(index, source, clocks) for source, index in enumerate(trace.indexes)]
    return _hits(trace, Filter(text, ()), positions, offsets, sum(map(len, positions)))


def _hits(trace: Trace, filter: Filter, positions: Sequence[U32], offsets: Sequence[I64], of: int) -> Hits:
    total = sum_of(
        sum_of(index.duration(own[low : low + CHUNK]))
        for index, own in zip(trace.indexes, positions)
        for low in range(0, len(own), CHUNK)
    )
    counted = sum(map(len, positions))
    return Hits(filter, trace.indexes, tuple(positions), tuple(offsets), counted, total, of)


def is_of(hits: Hits, trace: Trace) -> bool:
    """Tell whether these are hits in all sources of a trace."""
    return hits.indexes == trace.indexes
