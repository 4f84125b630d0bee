"""What can be selected (slices, instants, counter samples), found in the trace; times are trace time, ns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracelane.core.base.clock import Clocks
from tracelane.core.index.format import RowKind
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Lane, Row, Trace

from ..session import GapId, InstantId, RowKey, Selectable
from .layout import Layout
from .line import lane_key

if TYPE_CHECKING:
    from tracelane.core.tables.device.gap import GapBounds


@dataclass(frozen=True)
class Thing:
    """Something selectable: its identity, lane and row, its index within the row, start and end."""

    id: Selectable
    lane: Lane
    row: Row
    index: int
    start: int
    end: int  # of instants and samples the start itself

    @property
    def key(self) -> RowKey:
        return RowKey(lane_key(self.lane), self.row.depth)

    @property
    def slice(self) -> SliceId | None:
        return self.id if isinstance(self.id, SliceId) else None

    @property
    def is_gap(self) -> bool:
        """Whether it is a gap; its index is that of the slice that ends it."""
        return isinstance(self.id, GapId)


def thing_by_id(trace: Trace, clocks: Clocks, identity: Selectable) -> Thing | None:
    """Return the thing with an identity; None if the trace does not have it."""
    if isinstance(identity, GapId):
        from tracelane.core.tables.device.gap import gap_ended_by  # not for the first picture

        ends_it = trace.find(SliceId(identity.source, identity.ordinal))
        bounds = None if ends_it is None else gap_ended_by(trace, *ends_it, clocks)
        return None if bounds is None else gap_thing(trace, bounds)
    if isinstance(identity, SliceId):
        row_and_index = trace.find(identity)
    else:
        row_and_index = trace.find_instant(identity.source, identity.ordinal)
    return None if row_and_index is None else thing_in(trace, clocks, *row_and_index)


def thing_in(trace: Trace, clocks: Clocks, row: Row, index: int | None) -> Thing | None:
    """Return the thing at an index within a row; None beyond its ends, or for the index None."""
    if index is None or not 0 <= index < row.count:
        return None
    if row.kind is RowKind.SLICES:
        identity: SliceId | InstantId = trace.slice_id(row, index)
    else:
        identity = InstantId(row.source, trace.ordinal(row, index))
    return Thing(identity, trace.lanes[row.lane], row, index, *trace.bounds(row, index, clocks))


def gap_thing_at(trace: Trace, clocks: Clocks, row: Row, time: int) -> Thing | None:
    """Return the gap that a time lies in on a row of slices, on a device's lane in its work."""
    from tracelane.core.tables.device.gap import gap_holding

    bounds = gap_holding(trace, row, time, clocks)
    return None if bounds is None else gap_thing(trace, bounds)


def gap_thing(trace: Trace, gap: GapBounds) -> Thing | None:
    """Return a gap as a thing, on the row of the slice that ends it."""
    after = trace.slice_id_of(gap.source, gap.after)
    row_and_index = trace.find(after)
    if row_and_index is None:
        return None
    row, at = row_and_index
    return Thing(GapId(gap.source, after.ordinal), trace.lanes[row.lane], row, at, gap.start, gap.end)


def thing_before(trace: Trace, clocks: Clocks, gap: Thing) -> Thing | None:
    """Return the slice before a gap: on a device's lane the one that ended last."""
    from tracelane.core.tables.device.gap import gap_ended_by

    bounds = gap_ended_by(trace, gap.row, gap.index, clocks)
    before = None if bounds is None else trace.slice_id_of(bounds.source, bounds.before)
    return None if before is None else thing_by_id(trace, clocks, before)


def row_of(layout: Layout, key: RowKey) -> Row | None:
    """Return the row of a key, None if the trace does not have it."""
    number = layout.lane_number(key.lane)
    if number is None or not 0 <= key.depth < len(layout.trace.lanes[number].rows):
        return None
    return layout.trace.row(number, key.depth)


def nearest_thing(trace: Trace, clocks: Clocks, row: Row, time: int) -> Thing | None:
    """Return what covers a time on a row, else what lies nearest to it; None on an empty row."""
    covering = trace.slice_at(row, time, clocks)
    return thing_in(trace, clocks, row, trace.nearest(row, time, clocks) if covering is None else covering)


def parent(trace: Trace, clocks: Clocks, thing: Thing) -> Thing | None:
    """Return the slice around a slice; None at the outermost and for things that are no slices."""
    above = None if thing.slice is None else trace.parent(thing.slice)
    return None if above is None else thing_by_id(trace, clocks, above)


def child_near(trace: Trace, clocks: Clocks, thing: Thing, time: int) -> Thing | None:
    """Return the direct child that covers a time, else the one nearest to it; None without children."""
    below = None if thing.slice is None else trace.child_at(thing.slice, time, clocks)
    return None if below is None else thing_by_id(trace, clocks, below)
