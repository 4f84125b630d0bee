"""What released each point of a window, the steps of which the critical path walks back.

- The *start of device work* is released by what ended latest of: the work before it on its stream, work whose
  event its stream waits for, work before it of the same graph launch, the start of its launch. Of two that
  ended at the same ns the slice with the smaller id counts. Where none is known, by the work that ended last
  on its device.
- The *end of a call that waits* is released by the last work that it waits for, where that ended in the call.
- The *first activity of a thread after a pause* is released by what ended in the pause: the slice from which
  an arrow comes, or the activity of a thread with which it takes turns (autograd's and its caller).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import I64, U8, AnyArray, places_in
from ..query.groups import concatenated
from ..query.lookup import lanes_of
from .device_state import looked_at, peers_of
from .frame import Frame
from .frame_columns import NEVER, work_of
from .path_calls import LaunchedWork, RuntimeCalls
from .path_pauses import points_of
from .path_points import (
    DEVICE,
    EVENT,
    GRAPH,
    LAUNCH,
    STREAM,
    HostThread,
    Points,
    Waits,
    latest,
    threads_of,
)
from .scope import Scope
from .slice_table import SOURCE_BITS, slice_ids


@dataclass(frozen=True, eq=False)
class PathGraph:
    """The device work and the threads of a window, and what released their points."""

    scope: Scope
    window: tuple[int, int]
    work: Frame
    ids: I64  # of the slices of the work
    threads: Sequence[HostThread]
    launched: I64  # when each piece of work was launched (NEVER where that is not known)
    thread: I64  # the thread that launched it, -1 for none
    via: U8  # what released its start
    by: I64  # a row of the work, or a thread for a launch; -1
    at: I64  # and when that ended; NEVER
    inferred: AnyArray
    until: I64  # until when a collective waits for the last rank
    last: I64  # the row of that rank's, -1 where there is none
    points: Sequence[Points]
    before: tuple[I64, I64]  # pairs of rows: what each piece of work has to come after
    group: I64  # the collective that each is part of, -1 for none
    waits: Waits


def graph_of(scope: Scope) -> PathGraph:
    """Return what released each point of the window that a scope looks at. Raises Cancelled."""
    window = looked_at(scope)
    whole = replace(scope, range=window, work=None, where=None, lanes=None)
    work = work_of(whole)
    work = work[~work.is_type("sync")]
    ids = work.from_parts(lambda part: slice_ids(part.index, part.source_number, part.position))
    threads = threads_of(whole)
    calls = [RuntimeCalls.of(whole, source, threads) for source in scope.sources]
    launched, thread = _launches(work, threads)
    table = LaunchedWork(work, ids, launched, thread)
    waits = [pair for one in calls for pair in one.event_waits(table)]
    via, by, at, inferred, before = _releases(table, waits)
    until, last, group = _collectives(whole, work)
    syncs = [one.sync_points(table) for one in calls]
    ends = [concatenated(column) for column in zip(*(points for points, _ in syncs))]
    points = points_of(whole, threads, ends, ids)
    awaited = Waits.joined([of_calls for _, of_calls in syncs])
    return PathGraph(
        scope, window, work, ids, threads, launched, thread, via, by, at, inferred, until, last, points,
        before, group, awaited,
    )  # fmt: skip


def _launches(work: Frame, threads: Sequence[HostThread]) -> tuple[I64, I64]:
    """Return when each piece of work was launched, and by which thread; NEVER and -1 where neither is known,
    its own start and -1 where the launch begins after it.
    """
    number = np.full(len(work.scope.trace.lanes), -1, np.int64)
    number[[thread.lane for thread in threads]] = np.arange(len(threads))
    bases = work.scope.trace.lane_bases

    def times(part: Frame) -> I64:
        starts, known = np.full(len(part), NEVER), np.flatnonzero(part.launched >= 0)
        starts[known] = part.scope.starts(part.source_number, part.launched[known])
        return starts

    def lanes(part: Frame) -> I64:
        own, known = np.full(len(part), -1, np.int64), np.flatnonzero(part.launched >= 0)
        own[known] = number[lanes_of(part.index, part.launched[known]) + bases[part.source_number]]
        return own

    launched, thread = work.from_parts(times), work.from_parts(lanes)
    is_late = launched > work.start
    return np.where(is_late, work.start, launched), np.where(is_late, -1, thread)


def _releases(
    table: LaunchedWork, waits: Sequence[tuple[int, int, bool]]
) -> tuple[U8, I64, I64, AnyArray, tuple[I64, I64]]:
    """Return (via, by, at, inferred) of the start of each piece of work, and pairs of work that comes after
    other work.
    """
    work, ids = table.work, table.ids
    size = len(work)
    via, inferred = np.zeros(size, np.uint8), np.zeros(size, np.bool_)
    by, at = np.full(size, -1, np.int64), np.full(size, NEVER)
    best_id = np.zeros(size, np.int64)
    pairs: list[tuple[I64, I64]] = [(by[:0], by[:0])]

    def offer(rows: I64, times: I64, slice_ids: I64, of: I64, code: int, guessed: bool) -> None:
        fits = times <= work.start[rows]
        better = fits & ((times > at[rows]) | ((times == at[rows]) & (slice_ids < best_id[rows])))
        chosen = rows[better]
        if code in (STREAM, EVENT, GRAPH):
            pairs.append((rows[fits], of[fits]))
        at[chosen], best_id[chosen], by[chosen], via[chosen] = (
            times[better], slice_ids[better], of[better], code,
        )  # fmt: skip
        inferred[chosen] = guessed

    # What takes no time cannot wait for itself, nor for another that takes none at the same ns.
    until = work.start - (work.end == work.start)

    def offer_latest(groups: I64, code: int, guessed: bool) -> None:
        members = np.flatnonzero(groups >= 0)
        mine = members[at[members] == NEVER] if code == DEVICE else members
        ends = work.end[members]
        before = latest(groups[members], ends, ids[members], groups[mine], until[mine])
        mine, before = mine[before >= 0], members[before[before >= 0]]
        offer(mine, work.end[before], ids[before], before, code, guessed)

    offer_latest(work.stream, STREAM, False)
    known = np.flatnonzero(table.thread >= 0)
    calls = work[known].from_parts(lambda part: slice_ids(part.index, part.source_number, part.launched))
    offer(known, table.launched[known], calls, table.thread[known], LAUNCH, False)
    offer_latest(_graphs(work), GRAPH, True)
    for row, awaited, guessed in waits:
        rows, of = np.array([row]), np.array([awaited])
        if work.end[awaited] <= until[row]:
            offer(rows, work.end[of], ids[of], of, EVENT, guessed)
    offer_latest(work.device_row, DEVICE, True)
    rows, of = (np.concatenate(column) for column in zip(*pairs))
    return via, by, at, inferred, (rows, of)


def _graphs(work: Frame) -> I64:
    """Return a number for each launch call that started several pieces of work, -1 for the work of others."""
    keys = np.where(work.launch >= 0, work.source << SOURCE_BITS | work.launch, -1)
    _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.where((keys >= 0) & (counts[codes] > 1), codes, -1)


def _collectives(scope: Scope, work: Frame) -> tuple[I64, I64, I64]:
    """Return until when each piece of work waits for the last rank (its own start: it does not), and the row
    of that rank's work, -1 where it is not in the window; and which collective it is, -1 for none.
    """
    until, last = work.start.copy(), np.full(len(work), -1, np.int64)
    group: I64 = last.copy()
    peers = peers_of(replace(scope, range=None, source=None))
    if peers is None or not len(work):
        return until, last, group
    skew, who = peers.waiting, peers.waiting.who
    sources = np.array(skew.sources, np.int64)[who.rank] * (not peers.in_one_file)
    keys = work.source << SOURCE_BITS | work.position.astype(np.int64)
    order = np.argsort(keys, kind="stable")
    entries = sources << SOURCE_BITS | skew.positions
    at = places_in(keys[order], entries)
    rows = np.where(at >= 0, order[at], -1)
    latest_entry = skew.last_entry[who.collective]
    here = np.flatnonzero(rows >= 0)
    own = rows[here]
    until[own] = np.clip(skew.starts[latest_entry[here]], work.start[own], work.end[own])
    last[own] = np.where(latest_entry[here] == here, -1, rows[latest_entry[here]])
    group[own] = who.collective[here]
    return until, last, group
