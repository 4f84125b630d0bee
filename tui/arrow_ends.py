"""Which arrows are to be drawn: those of the selected slice, and all that begin or end in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracelane.core.base.arrays import I64
from tracelane.core.base.ids import SliceId
from tracelane.core.base.kineto import DEVICE
from tracelane.core.index.format import NONE, RowKind
from tracelane.core.index.store import Index
from tracelane.core.query.flows import first_into
from tracelane.core.query.lookup import locate_slice
from tracelane.core.trace import Row, Trace

MOST = 64
"""Arrows that are drawn at most."""
MOST_OF_SLICE = 1000
"""Flows of one slice that are looked at."""
MOST_COUNTED = 1 << 17
"""Flows into one row that are looked at: a frame must not depend on their number."""


@dataclass(frozen=True)
class Arrow:
    """From one slice to another."""

    source: SliceId
    target: SliceId


@dataclass(frozen=True)
class Arrows:
    """The arrows to draw, at most MOST, and how many more there are."""

    drawn: tuple[Arrow, ...] = ()
    more: int = 0


def arrows_of(trace: Trace, identity: SliceId) -> Arrows:
    """Return the flows of a slice, and its launch or its kernels where only an id tells of them."""
    arrows = [
        Arrow(flow.source, flow.target)
        for flow in (*trace.flows_in(identity, MOST_OF_SLICE), *trace.flows_out(identity, MOST_OF_SLICE))
        if flow.source is not None and flow.target is not None and flow.source != flow.target
    ]
    if not any(arrow.target == identity for arrow in arrows):
        links = trace.chain(identity)
        if len(links) > 1 and links[0].role == "kernel" and links[1].via != "enclosing":
            arrows.append(Arrow(links[1].id, identity))
    if not arrows:
        arrows = [Arrow(identity, kernel) for kernel, _ in device_work_of_id(trace, identity, MOST_OF_SLICE)]
    arrows = list(dict.fromkeys(arrows))
    return Arrows(tuple(arrows[:MOST]), max(0, len(arrows) - MOST))


def device_work_of_id(trace: Trace, identity: SliceId, most: int) -> list[tuple[SliceId, str]]:
    """Return device slices with a slice's correlation, else with its External id, and which it was; none for
    device slices.
    """
    index = trace.indexes[identity.source]
    position = index.position_of(identity.ordinal)
    if position is None or _category(index, position) in DEVICE:
        return []
    for key, via in (("correlation", "correlation"), ("external_id", "external id")):
        value = index.promoted(key, position)
        if not value:  # 0 is what devices write for "none"
            continue
        work = []
        for other in index.promoted_positions(key, int(value))[:most].tolist():
            if other != position and _category(index, other) in DEVICE:
                work.append((_known(trace, identity.source, other), via))
        if work:
            return work
    return []


def arrows_in_view(trace: Trace, windows: Sequence[tuple[Row, int, int]]) -> Arrows:
    """Return the flows that begin or end in rows' slices of a window: `windows` holds (row, first ns, end ns)
    in lane time. Of more than MOST an even sample is drawn.
    """
    by_source: dict[int, list[tuple[int, int]]] = {}
    for row, start, end in windows:
        if row.kind is RowKind.SLICES and len(trace.indexes[row.source].column("flows.source")):
            by_source.setdefault(row.source, []).append(
                _positions_in(trace.indexes[row.source], row, start, end)
            )
    numbers = {
        source: _flows(trace.indexes[source], sorted(set(ranges))) for source, ranges in by_source.items()
    }
    total = sum(len(flows) for flows in numbers.values())
    chosen = {total * step // MOST for step in range(MOST)} if total > MOST else set(range(total))
    drawn, at = [], 0
    for source, flows in numbers.items():
        index = trace.indexes[source]
        for number in (int(flows[rank - at]) for rank in sorted(chosen) if at <= rank < at + len(flows)):
            ends = (int(index.column(f"flows.{end}")[number]) for end in ("source", "target"))
            drawn.append(Arrow(*(_known(trace, source, end) for end in ends)))
        at += len(flows)
    return Arrows(tuple(drawn), total - len(drawn))


def _positions_in(index: Index, row: Row, start: int, end: int) -> tuple[int, int]:
    """Return the positions [first, past) of a row's slices that touch a time."""
    first = int(index.rows[row.number]["first"])
    starts = index.column("slices.start")[first : first + row.count]
    low, high = (int(np.searchsorted(starts, time, "left")) for time in (start, end))
    if low > 0 and index.end(first + low - 1) > start:
        low -= 1
    return first + low, first + high


def _flows(index: Index, ranges: list[tuple[int, int]]) -> I64:
    """Return the numbers of the flows with an end in one of these disjoint ranges of positions, each once."""
    sources, targets = index.column("flows.source"), index.column("flows.target")
    order = index.column("flows.by_target")
    lows = np.array([low for low, _ in ranges], np.int64)
    highs = np.array([high for _, high in ranges], np.int64)
    flows: list[I64] = []
    for low, high in ranges:
        out = np.arange(*np.searchsorted(sources, np.array([low, high], sources.dtype)), dtype=np.int64)
        out = out[:MOST_COUNTED]
        flows.append(out[(targets[out] != NONE) & (targets[out] != sources[out])])
        first = first_into(targets, order, low)
        into = order[first : min(first_into(targets, order, high), first + MOST_COUNTED)].astype(np.int64)
        origin = sources[into].astype(np.int64)
        number = np.searchsorted(lows, origin, "right") - 1
        known = (number >= 0) & (origin < highs[number])
        flows.append(into[~known & (sources[into] != NONE)])
    return np.concatenate(flows) if flows else np.zeros(0, np.int64)


def _category(index: Index, position: int) -> str:
    return index.categories[int(index.column("slices.category")[position])]


def _known(trace: Trace, source: int, position: int) -> SliceId:
    """Return a slice's identity by way of its row: the trace remembers where that slice lies."""
    number, at = locate_slice(trace.indexes[source], position)
    return trace.slice_id(trace.row_number(source, number), at)
