"""How busy each device is, and which rank the others wait for: what the header and the lanes say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracelane.core.base.arrays import sum_of
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import count_of, format_ns
from tracelane.core.query.views import rank_titles
from tracelane.core.tables.compare.run_pair import SIDES
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Lane, Trace

from .device_facts import DeviceFacts, keep_facts, stored_facts
from .draw.header import DeviceShare
from .draw.ranks import MAX_LINES, RankNotes
from .draw.states import MAX_SLICES, DrawnStates, LaneGaps, PeerWaits
from .draw.verdict import UNRECORDED, StateShares
from .steps import pair_of

if TYPE_CHECKING:
    from tracelane.core.tables.device.states import DeviceState
    from tracelane.core.tables.peers.skew import Skew
    from tracelane.core.trace.devices import Device

LANES_WITH_GAPS, GAPS_IN_FULL = 16, 16
"""Lanes whose gaps are drawn, and of how many of each it is looked up what the host did."""
MAX_OF_SPAN = 0.98
"""Of a device that works in less of the time it is said what its share is a share of."""
MAX_TROUBLES = 2
"""Of more devices it is only said how many more have a clock that cannot be right."""
HINT = "the command “Estimate the device's clock” moves it"
ESTIMATE_CELLS = 4096
"""In so many parts of the time the work of a device's lanes is added up instead."""


def states_over_all(scope: Scope, most_slices: int = MAX_SLICES) -> tuple[DeviceState, ...] | None:
    """Return what devices did in all of the time that the trace opens with, None where they have more slices
    than `most_slices`.
    """
    from tracelane.core.tables.device.device_state import device_states, looked_at
    from tracelane.core.trace.devices import devices

    trace = scope.trace
    if sum(trace.lanes[lane].slices for one in devices(trace) for lane in one.lanes) > most_slices:
        return None
    (low, high), (start, end) = looked_at(scope), trace.opening_span
    return device_states(replace(scope, range=(min(low, start), max(high, end)), steps=""))


def _windows(scope: Scope) -> Callable[[int], tuple[int, int]]:
    """Return what tells the time [start, end) that is looked at of a source: of two runs that of its own."""
    from tracelane.core.tables.device.device_state import looked_at

    pair = pair_of(scope.trace)
    if pair is None or scope.range is not None:
        window = looked_at(scope)
        return lambda source: window
    sides = [pair.side(source, scope.clocks) for source in (0, pair.first)]
    first, second = (looked_at(replace(scope, trace=run, clocks=clocks)) for run, clocks in sides)
    return lambda source: second if source >= pair.first else first


def device_facts(scope: Scope) -> DeviceFacts:
    """Return what is said and drawn of the devices of a trace: stored beside its index, or counted and stored
    now where the scope is the whole of it. Raises Cancelled.
    """
    if (stored := stored_facts(scope.trace, scope.clocks)) is not None:
        return stored
    facts = counted_facts(scope)
    keep_facts(scope.trace, scope.clocks, facts)
    return facts


def counted_facts(scope: Scope) -> DeviceFacts:
    """Return the same, counted now. Raises Cancelled."""
    states = states_over_all(scope)
    shares = device_shares(scope, states)
    gaps = gaps_of_lanes(scope, states or ())
    skew = skew_of_ranks(scope)
    drawn = DrawnStates.of(scope.clocks, states or (), gaps, awaited_ranks(scope.trace, skew))
    notes = rank_notes(scope, states or (), skew)
    spent, troubles = state_shares(scope, states, shares), clock_troubles(scope)
    return DeviceFacts(shares, notes, spent, drawn, troubles)


def clock_troubles(scope: Scope) -> list[str]:
    """Say of which devices the clock cannot be right."""
    from tracelane.core.trace.device_clocks import troubled

    clocks = troubled(scope.trace, scope.clocks)
    said = [one.trouble for one in clocks[:MAX_TROUBLES]]
    if more := len(clocks) - len(said):
        said.append(f"the same of {count_of(more, 'more device')}, as `tracelane doctor` lists")
    return [*said, HINT] if any(one.can_be_moved for one in clocks) else said


def device_shares(scope: Scope, all_states: tuple[DeviceState, ...] | None) -> list[DeviceShare]:
    """Return the share of the time looked at in which each device is busy, as `breakdown` has it in `states`,
    from what they did in all of the time.
    Of a device that works only on another clock, as where all its work stands at 0, no share is known:
    only what its work takes, added up. Without `all_states` shares are estimates from the index's
    prefix sums, which do not tell waiting for a peer from work.
    """
    from tracelane.core.tables.device.device_state import unknown_idle
    from tracelane.core.tables.frame.frame_columns import work_of
    from tracelane.core.trace.devices import devices

    trace = scope.trace
    all_devices = devices(trace)
    window_of = _windows(scope)
    if all_states is None:
        return [_estimated(scope, one, window_of(one.source)) for one in all_devices]
    has_ranks = _has_ranks(trace)
    states = {one.device.device: one.within(*window_of(one.device.device.source)) for one in all_states}
    shares = [
        DeviceShare(
            _named(trace, one.device.device.source, one.device.title),
            one.device.rank if has_ranks else None,
            one.busy_ns / of_ns if of_ns else None,
            of_ns=_of_ns(scope, of_ns),
        )
        for one in states.values()
        for of_ns in (one.of_ns - unknown_idle(scope, one),)
    ]
    if len(states) < len(all_devices):
        for work in work_of(scope).by("device_row"):
            device = work.first_device
            if device.device not in states:
                rank = device.rank if has_ranks else None
                name = _named(trace, device.device.source, device.title)
                shares.append(DeviceShare(name, rank, None, work_ns=sum_of(work.dur)))
    return shares


def gaps_of_lanes(scope: Scope, states: Sequence[DeviceState]) -> dict[int, LaneGaps]:
    """Return the gaps in the work of the devices' lanes in which the device mostly does nothing, by the
    lanes' places, with what the host did in the longest of them; before a device's first work the time that
    is looked at.
    """
    from tracelane.core.tables.device.gap import gap_of, work_gaps

    window_of = _windows(scope)
    lanes = [(scope.trace.lanes[number], one) for one in states for number in one.device.device.lanes]
    result = {}
    for lane, state in lanes[:LANES_WITH_GAPS]:
        scope.check()
        gaps = work_gaps(scope.trace, lane.index, scope.clocks)
        if gaps is None:
            continue
        lengths = gaps.ends - gaps.starts
        idle = np.flatnonzero(state.idle_between(gaps.starts, gaps.ends) * 2 > lengths)
        columns = [values[idle] for values in (gaps.starts, gaps.ends, gaps.after, gaps.kinds)]
        first = _first_gap(scope, lane, state.within(*window_of(lane.source)))
        starts, ends, after, kinds = (
            np.append(np.array(first[at : at + 1], np.int64), values) for at, values in enumerate(columns)
        )
        lengths, details = ends - starts, dict[int, str]()
        for number in np.argsort(-lengths, kind="stable")[:GAPS_IN_FULL].tolist():
            row_and_index = scope.trace.find(scope.trace.slice_id_of(lane.source, int(after[number])))
            gap = None if row_and_index is None else gap_of(scope.trace, *row_and_index, scope.clocks)
            doing = next((one for one in gap.threads if one.slice is not None), None) if gap else None
            if doing is not None:
                details[number] = safe(doing.label)
        result[lane.index] = LaneGaps(starts, ends, after, kinds, details)
    return result


def _first_gap(scope: Scope, lane: Lane, state: DeviceState) -> tuple[int, ...]:
    """Return start, end, the slice that ends it and class of the time before a device's first work, on the
    lane that has this; nothing on its other lanes, and where the device works from the start.
    """
    from tracelane.core.tables.device.states import IDLE

    if len(state.states) < 2 or state.states[0] != IDLE:
        return ()
    start, end = state.edges[:2].tolist()
    scope = Scope(scope.trace, (end, end + 1), (lane.index,), clocks=scope.clocks)
    for chunk in scope.chunks():
        for at in np.flatnonzero((chunk.starts == end) & ~chunk.is_device_annotation)[:1].tolist():
            return start, end, int(chunk.positions[at]), int(state.causes[0])
    return ()


def state_shares(
    scope: Scope, all_states: tuple[DeviceState, ...] | None, devices: Sequence[DeviceShare]
) -> StateShares | None:
    """Return what all devices together did in the time looked at, None where that is not known; from what is
    said of each device where states would take long.
    """
    from tracelane.core.tables.device.states import CAUSES, IDLE, PRECEDENCE
    from tracelane.core.tables.device.untrusted_periods import unknown_time

    window_of = _windows(scope)
    windows = [window_of(one.device.device.source) for one in all_states or ()] or [window_of(0)]
    length = max(high - low for low, high in windows)
    known = [one.share for one in devices if one.share is not None]
    title = devices[0].device if len(devices) == 1 else f"{len(devices)} devices"
    if not known or length <= 0:
        return None
    if all_states is None:
        busy = sum(known) / len(known)
        return StateShares(title, length, {"compute": busy, "": 1 - busy}, is_estimate=True)
    ns: dict[str, int] = {}
    for state in (one.within(*window_of(one.device.device.source)) for one in all_states):
        spent = np.zeros((len(PRECEDENCE), len(CAUSES)), np.int64)
        unknown = unknown_time(scope, state.device.device).covered(state.edges[:-1], state.edges[1:])
        unknown[state.states != IDLE] = 0
        np.add.at(spent, (state.states, state.causes), np.diff(state.edges) - unknown)
        ns[UNRECORDED] = ns.get(UNRECORDED, 0) + sum_of(unknown)
        for name, row in zip(PRECEDENCE, spent):
            parts = zip(CAUSES, row.tolist()) if name == PRECEDENCE[IDLE] else [(name, int(row.sum()))]
            for key, value in parts:
                ns[key] = ns.get(key, 0) + value
    total = max(1, sum(ns.values()))
    return StateShares(title, length, {key: value / total for key, value in ns.items()})


def _of_ns(scope: Scope, looked_at_ns: int) -> int | None:
    """Return the time that shares are of where that is well below what is shown, else None."""
    start, end = scope.trace.opening_span
    return looked_at_ns if looked_at_ns < MAX_OF_SPAN * (end - start) else None


def _estimated(scope: Scope, device: Device, window: tuple[int, int]) -> DeviceShare:
    """Return how busy a device is in a window, as far as some thousand parts of it say: in each part the work
    of its lanes adds up, at most to all of it.
    """
    from tracelane.core.tables.device.untrusted_periods import unknown_time

    trace, (start, end) = scope.trace, window
    edges = np.linspace(start, end, ESTIMATE_CELLS + 1).astype(np.int64)
    busy = np.zeros(ESTIMATE_CELLS, np.int64)
    for number in device.lanes:
        scope.check()
        busy += trace.work_cells(trace.lanes[number], edges, scope.clocks).busy
    busy_ns = sum_of(np.minimum(busy, np.diff(edges)))
    of_ns = max(1, busy_ns, end - start - unknown_time(scope, device).clipped(start, end).length)
    rank = trace.rank(device.source) if _has_ranks(trace) else None
    name = f"{device.label} {device.pid}" if device.label == "device" else device.label
    return DeviceShare(
        _named(trace, device.source, name),
        rank,
        busy_ns / of_ns,
        is_estimate=True,
        of_ns=_of_ns(scope, of_ns),
    )


def _has_ranks(trace: Trace) -> bool:
    """Tell whether a trace has ranks that work together, as those of two runs do not."""
    return bool(rank_titles(trace.members)) and pair_of(trace) is None


def _named(trace: Trace, source: int, title: str) -> str:
    """Return what a device is called in the header: of two runs with its side."""
    pair = pair_of(trace)
    return title if pair is None else f"{SIDES[source >= pair.first]} {title}"


def skew_of_ranks(scope: Scope) -> Skew | None:
    """Return how ranks wait for each other in collectives, None where there are no ranks that work together,
    or it would take long to know.
    """
    from tracelane.core.tables.peers.skew import skew

    trace = scope.trace
    if not _has_ranks(trace) or sum(lane.slices for lane in trace.lanes) > MAX_SLICES:
        return None
    return skew(scope)


def awaited_ranks(trace: Trace, waiting: Skew | None) -> dict[int, PeerWaits]:
    """Return when each rank waits in collectives, and for which one, by source."""
    if waiting is None:
        return {}
    numbers = np.array([trace.rank(source) or 0 for source in waiting.sources], np.int64)
    result = {}
    for column, source in enumerate(waiting.sources):
        own = waiting.who.of_rank(column)
        collective = waiting.who.collective[own]
        waits = waiting.late[collective] & (waiting.last[collective] != column) & (waiting.waits[own] > 0)
        own = own[waits][np.argsort(waiting.starts[own[waits]], kind="stable")]
        starts = waiting.starts[own]
        ranks = numbers[waiting.last[waiting.who.collective[own]]]
        result[source] = PeerWaits(starts, starts + waiting.waits[own], ranks)
    return result


def rank_notes(scope: Scope, states: Sequence[DeviceState], waiting: Skew | None) -> RankNotes:
    """Return the rank that the others wait for most in collectives, in how many it comes last, and how long
    the others wait; when ranks work and wait, whose devices did what `states` say.
    """
    if waiting is None:
        return RankNotes()
    from tracelane.core.tables.device.rank_activity import RankActivity
    from tracelane.core.tables.device.rank_delays import delays, host_activity

    sources, activity = tuple(rank_titles(scope.trace.members)), None
    if len(sources) > MAX_LINES:
        hosts = host_activity(scope, sources, waiting, states)
        activity = RankActivity.of(delays(sources, waiting), hosts, states)
    if not waiting.caused.any():
        return RankNotes(activity=activity)
    waited = [waiting.waiting(column).length for column in range(len(waiting.sources))]
    order = np.lexsort((np.array(waited, np.int64), -waiting.caused)).tolist()
    texts = {waiting.sources[column]: f"waited {format_ns(ns, 1)}" for column, ns in enumerate(waited) if ns}
    latest = tuple(waiting.sources[column] for column in order)
    last, of = int(waiting.came_last[order[0]]), len(waiting.who.of_rank(order[0]))
    texts[latest[0]] = f"last in {last} of {of}"
    return RankNotes(latest[0], texts, latest, activity)
