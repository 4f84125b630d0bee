"""Which arrows are to be drawn: those of the selected slice, and all that begin or end in view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base.kineto import DEVICE
from ..index.format import RowKind
from ..query.lookup import category_of_slice, positions_within
from ..query.views import SliceId
from . import Row, Trace

MAX = 64
"""Arrows that are drawn at most."""
MAX_OF_SLICE = 1000
"""Flows of one slice that are looked at."""


class Arrow(NamedTuple):
    """From one slice to another."""

    source: SliceId
    target: SliceId


class Arrows(NamedTuple):
    """The arrows to draw, at most MAX, and how many more there are."""

    drawn: tuple[Arrow, ...] = ()
    more: int = 0


def arrows_of(trace: Trace, identity: SliceId) -> Arrows:
    """Return the flows of a slice, and its launch or its kernels where only an id tells of them."""
    arrows = [
        Arrow(flow.source, flow.target)
        for flow in (*trace.flows_in(identity, MAX_OF_SLICE), *trace.flows_out(identity, MAX_OF_SLICE))
        if flow.source is not None and flow.target is not None and flow.source != flow.target
    ]
    if not any(arrow.target == identity for arrow in arrows):
        links = trace.chain(identity)
        if len(links) > 1 and links[0].role == "kernel" and links[1].via != "enclosing":
            arrows.append(Arrow(links[1].id, identity))
    if not arrows:
        arrows = [Arrow(identity, kernel) for kernel, _ in device_work_of_id(trace, identity, MAX_OF_SLICE)]
    arrows = list(dict.fromkeys(arrows))
    return Arrows(tuple(arrows[:MAX]), max(0, len(arrows) - MAX))


def device_work_of_id(trace: Trace, identity: SliceId, most: int) -> list[tuple[SliceId, str]]:
    """Return device slices with a slice's correlation, else with its External id, and which it was; none for
    device slices.
    """
    index = trace.indexes[identity.source]
    position = index.position_of(identity.ordinal)
    if position is None or category_of_slice(index, position) in DEVICE:
        return []
    for key, via in (("correlation", "correlation"), ("external_id", "external id")):
        value = index.promoted(key, position)
        if not value:  # 0 is what devices write for "none"
            continue
        work = []
        for other in index.promoted_positions(key, int(value))[:most].tolist():
            if other != position and category_of_slice(index, other) in DEVICE:
                work.append((trace.slice_id_of(identity.source, other), via))
        if work:
            return work
    return []


def arrows_in_view(trace: Trace, windows: Sequence[tuple[Row, int, int]]) -> Arrows:
    """Return the flows that begin or end in rows' slices of a window: `windows` holds (row, first ns, end ns)
    in lane time. Of more than MAX an even sample is drawn.
    """
    from ..query.flows import flows_of_ranges

    by_source: dict[int, list[tuple[int, int]]] = {}
    for row, start, end in windows:
        index = trace.indexes[row.source]
        if row.kind is RowKind.SLICES and index.length("flows.source"):
            by_source.setdefault(row.source, []).append(positions_within(index, row.number, start, end))
    numbers = {
        source: flows_of_ranges(trace.indexes[source], sorted(set(ranges)))
        for source, ranges in by_source.items()
    }
    total = sum(len(flows) for flows in numbers.values())
    chosen = {total * step // MAX for step in range(MAX)} if total > MAX else set(range(total))
    drawn, at = [], 0
    for source, flows in numbers.items():
        index = trace.indexes[source]
        for number in (int(flows[rank - at]) for rank in sorted(chosen) if at <= rank < at + len(flows)):
            ends = (int(index.column(f"flows.{end}")[number]) for end in ("source", "target"))
            drawn.append(Arrow(*(trace.slice_id_of(source, end) for end in ends)))
        at += len(flows)
    return Arrows(tuple(drawn), total - len(drawn))
