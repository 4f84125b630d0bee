"""Slices of a trace: by time, by identity, what they belong to, and all that is known of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.clock import NO_CLOCKS, Clocks
from ..base.short_names import short_name
from ..index.format import RowKind, SliceFlag
from ..index.store import Index
from ..query import lookup
from ..query.views import Link, Row, SliceDetail, SliceFlow, SliceId
from .lanes import TraceLanes

if TYPE_CHECKING:  # what is asked of one slice is loaded when it is asked: lanes are drawn without
    from ..query.args import Arguments
    from ..query.flows import Flow
    from ..query.launches import Launched, Launches
    from .owners import Owners

REMEMBERED = 1 << 16


class TraceSlices(TraceLanes):
    """The slices of a trace by time, by identity and by what they belong to."""

    # -- moving -------------------------------------------------------------------------------------------

    def bounds(self, row: Row, at: int, clocks: Clocks = NO_CLOCKS) -> tuple[int, int]:
        """Return (start, end) in trace time of what lies at an index within its row."""
        index, offset = self.indexes[row.source], clocks.offset(row.source, row.pid)
        start = int(lookup.row_starts(index, row.number)[at])
        ns = int(index.duration([self.position(row, at)])[0]) if row.kind is RowKind.SLICES else 0
        return start + offset, start + ns + offset

    def slice_at(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return the index within the row of the slice that covers a time, None in a gap."""
        if row.kind is not RowKind.SLICES:
            return None
        return lookup.slice_at(self.indexes[row.source], row.number, self._lane_time(row, time, clocks))

    def next_after(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return the index within the row of the first thing that starts after a time."""
        return lookup.next_after(self.indexes[row.source], row.number, self._lane_time(row, time, clocks))

    def nearest(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return the index within the row of what lies at a time or closest to it."""
        return lookup.nearest(self.indexes[row.source], row.number, self._lane_time(row, time, clocks))

    def slice_id(self, row: Row, at: int) -> SliceId:
        """Return the identity of the slice at an index within its row."""
        return self.slice_id_of(row.source, self.position(row, at))

    def ordinal(self, row: Row, at: int) -> int:
        """Return the event ordinal of what lies at an index within its row, of any kind."""
        index = self.indexes[row.source]
        return int(index.column(f"{row.kind.name.lower()}.ordinal")[self.position(row, at)])

    def find(self, slice_id: SliceId) -> tuple[Row, int] | None:
        """Return (row, index within the row) of a slice, None when there is no such slice."""
        position = self._position(slice_id)
        if position is None:
            return None
        number, at = lookup.locate_slice(self.indexes[slice_id.source], position)
        return self.row_number(slice_id.source, number), at

    def find_instant(self, source: int, ordinal: int) -> tuple[Row, int] | None:
        """Return (row, index within the row) of an instant or counter sample by its event's ordinal."""
        if not 0 <= source < len(self.indexes):
            return None
        index = self.indexes[source]
        for kind in (RowKind.INSTANTS, RowKind.SAMPLES):
            if (position := index.position_of(ordinal, kind)) is not None:
                number = int(lookup.rows_of(index, np.array([position]), kind)[0])
                return self.row_number(source, number), position - int(index.rows[number]["first"])
        return None

    def parent(self, slice_id: SliceId) -> SliceId | None:
        """Return the innermost slice that contains this one whole."""
        position = self._position(slice_id)
        parent = None if position is None else self.indexes[slice_id.source].parent(position)
        return None if parent is None else self.slice_id_of(slice_id.source, parent)

    def ancestors(self, slice_id: SliceId, limit: int = 1000) -> list[SliceId]:
        """Return the slices around this one, innermost first, at most `limit`."""
        position = self._position(slice_id)
        if position is None:
            return []
        around = lookup.ancestors(self.indexes[slice_id.source], position, limit)
        return [self.slice_id_of(slice_id.source, ancestor) for ancestor in around]

    def child_at(self, slice_id: SliceId, time: int, clocks: Clocks = NO_CLOCKS) -> SliceId | None:
        """Return the direct child that covers a time, else the one nearest to it."""
        row_and_index = self.find(slice_id)
        if row_and_index is None:
            return None
        row, at = row_and_index
        index = self.indexes[row.source]
        child = lookup.child_at(index, self.position(row, at), self._lane_time(row, time, clocks))
        return None if child is None else self.slice_id_of(row.source, child)

    def children(self, slice_id: SliceId, limit: int | None = 1000) -> list[SliceId]:
        """Return the direct children in time order, at most `limit`."""
        position = self._position(slice_id)
        if position is None:
            return []
        children = lookup.children(self.indexes[slice_id.source], position, limit)
        return [self.slice_id_of(slice_id.source, child) for child in children]

    def enclosing(self, source: int, position: int) -> list[int]:
        """Return the positions of the slices of its lane in which a slice begins, innermost first."""
        from ..query.chain import enclosing

        return enclosing(self.indexes[source], position)

    # -- slices by their positions ------------------------------------------------------------------------

    def has_slice(self, source: int, position: int) -> bool:
        in_source = 0 <= source < len(self.indexes)
        return in_source and 0 <= position < self.indexes[source].length("slices.start")

    def check_columns(self) -> None:
        """Check the checksums of everything that the sources' indexes hold; DamagedIndexError."""
        for index in self.indexes:
            index.check(*index.manifest["columns"])

    def slices(self, source: int, positions: Sequence[int] | AnyArray) -> lookup.SliceList:
        return lookup.SliceList(self.indexes[source], source, positions)

    # -- one slice in full --------------------------------------------------------------------------------

    def detail(self, slice_id: SliceId) -> SliceDetail | None:
        """Return what the index knows about a slice, None when there is no such slice."""
        position = self._position(slice_id)
        if position is None:
            return None
        index = self.indexes[slice_id.source]
        flags = index.flag(position)
        return SliceDetail(
            id=slice_id,
            position=position,
            name=index.string(int(index.column("slices.name")[position])),
            category=lookup.category_of_slice(index, position),
            duration=int(index.duration([position])[0]),
            self_time=int(index.self_time([position])[0]),
            children=lookup.count_children(index, position),
            overlap=bool(flags & SliceFlag.OVERLAP),
            unclosed=bool(flags & SliceFlag.UNCLOSED),
            clamped=bool(flags & SliceFlag.CLAMPED),
            end_ordinal=index.end_ordinal(position),
        )

    def instant(self, row: Row, at: int) -> tuple[str, str]:
        """Return (category, phase) of the instant at an index within its row."""
        index, position = self.indexes[row.source], self.position(row, at)
        category = index.categories[int(index.column("instants.category")[position])]
        return category, chr(int(index.column("instants.phase")[position]))

    def sample(self, row: Row, at: int) -> float:
        """Return the value of the counter sample at an index within its row."""
        return float(self.indexes[row.source].column("samples.value")[self.position(row, at)])

    def arguments(self, slice_id: SliceId) -> Arguments:
        """Return the arguments of a slice, read from the source; the answer's `problem` says
        what went wrong.
        """
        from ..query.args import arguments as read_arguments

        index = self.indexes[slice_id.source]
        position = self._position(slice_id)
        end = None if position is None else index.end_ordinal(position)
        arguments = read_arguments(index, slice_id.ordinal, end)
        return arguments._replace(captured=self.captured_facts(slice_id))

    def argument_values(self, source: int, key: str, positions: I64) -> list[Any]:
        """Return the value of an argument for each of some slices, None where a slice has none; raises
        UnreadableError when the source has gone or changed.
        """
        from ..query.args import argument_values  # few views are coloured so

        return argument_values(self.indexes[source], key, positions)

    def event_arguments(self, source: int, ordinal: int) -> Arguments:
        """Return the arguments of any event by its ordinal: instants, counter samples, flows."""
        from ..query.args import arguments as read_arguments

        return read_arguments(self.indexes[source], ordinal, None)

    def flows_in(self, slice_id: SliceId, limit: int | None = 1000) -> list[SliceFlow]:
        from ..query.flows import flows_in

        return self._arrows(slice_id, flows_in, limit)

    def flows_out(self, slice_id: SliceId, limit: int | None = 1000) -> list[SliceFlow]:
        from ..query.flows import flows_out

        return self._arrows(slice_id, flows_out, limit)

    def forward_ops(self, slice_id: SliceId) -> list[SliceId]:
        """Return the operators whose gradient a backward one computes, by sequence number; usually one."""
        from ..query.forward import forward_of

        position = self._position(slice_id)
        if position is None:
            return []
        forward = forward_of(self.indexes[slice_id.source], position)
        return [self.slice_id_of(slice_id.source, one) for one in forward]

    def _arrows(
        self, slice_id: SliceId, ask: Callable[[Index, int, int | None], list[Flow]], limit: int | None
    ) -> list[SliceFlow]:
        position = self._position(slice_id)
        if position is None:
            return []
        source = slice_id.source
        return [
            SliceFlow(
                flow.category,
                None if flow.source_position is None else self.slice_id_of(source, flow.source_position),
                None if flow.target_position is None else self.slice_id_of(source, flow.target_position),
            )
            for flow in ask(self.indexes[source], position, limit)
        ]

    def chain(self, slice_id: SliceId, clocks: Clocks = NO_CLOCKS) -> list[Link]:
        """Return kernel <- launch <- op <- annotation from this slice outward, itself first."""
        from ..query.chain import chain_of

        position = self._position(slice_id)
        if position is None:
            return []
        source, index = slice_id.source, self.indexes[slice_id.source]
        links = []
        for link in chain_of(index, position):
            number, at = lookup.locate_slice(index, link.position)
            row = self.row_number(source, number)
            start, end = self.bounds(row, at, clocks)
            name = self.name(row, at)
            category = lookup.category_of_slice(index, link.position)
            links.append(
                Link(
                    link.role,
                    link.via,
                    self.slice_id_of(source, link.position),
                    name,
                    short_name(name),
                    category,
                    start,
                    end - start,
                )
            )
        return links

    def launch_delay(self, slice_id: SliceId, clocks: Clocks = NO_CLOCKS) -> tuple[int, int | None] | None:
        """Return (ns from the end of a kernel's launch to its start, how much of it other work of its lane
        took); None where no launch is known. The second is None where the clocks disagree.
        """
        from ..query.chain import full_chain
        from ..query.launches import launch_of

        position = self._position(slice_id)
        if position is None:
            return None
        source, index = slice_id.source, self.indexes[slice_id.source]
        launch, via = launch_of(index, position)
        launch_chain = full_chain(index, position, launch, via)
        if launch_chain.launch is None or launch_chain.launch_delay is None:
            return None
        rows = (self.row_number(source, index.row_of(at)) for at in (position, launch_chain.launch))
        kernel, host = (clocks.offset(source, row.pid) for row in rows)
        return launch_chain.launch_delay + kernel - host, launch_chain.queue_wait if kernel == host else None

    def launches(self, source: int) -> Launches:
        """Return which launch all device work of a source comes from."""
        from ..query.launches import launches_of

        return launches_of(self.indexes[source])

    def owners(self, source: int) -> Owners:
        """Return who owns each piece of device work of a source; computed once."""
        from .owners import owners_of

        if source not in self._owners:
            self._owners[source] = owners_of(self.indexes[source], self.launches(source), self.rank(source))
        return self._owners[source]

    def captured_facts(self, slice_id: SliceId) -> dict[str, str]:
        """Return what a capture says of a kernel that a graph replays, by heading, or why none does."""
        position, index = self._position(slice_id), self.indexes[slice_id.source]
        if position is None or index.graph_folder is None:
            return {}
        from .owners import captured_facts

        return captured_facts(self.owners(slice_id.source), position)

    def producer(self, source: int) -> str:
        """Return what wrote a source, "" where nothing tells."""
        from ..index.producers import producer_of

        known = producer_of(self.indexes[source])
        return "" if known is None else known.name

    def capture_notes(self, source: int) -> tuple[str, ...]:
        """Return what captures say of the graphs that a source replays, in sentences, and why not of all."""
        return () if self.indexes[source].graph_folder is None else self.owners(source).notes

    def kernels_under(self, slice_id: SliceId) -> Launched | None:
        """Return the device work launched within a slice's time on its lane; None for no such slice."""
        from ..query.launches import kernels_under

        position = self._position(slice_id)
        if position is None:
            return None
        return kernels_under(self.indexes[slice_id.source], self.launches(slice_id.source), position)

    # -- inner --------------------------------------------------------------------------------------------

    def slice_id_of(self, source: int, position: int) -> SliceId:
        slice_id = SliceId(source, int(self.indexes[source].column("slices.ordinal")[position]))
        self._remember(slice_id, position)
        return slice_id

    def _remember(self, slice_id: SliceId, position: int) -> None:
        """Keep where a slice lies: finding it by its ordinal again would look through the column."""
        if len(self._positions) >= REMEMBERED:
            self._positions.clear()
        self._positions[slice_id] = position

    def _position(self, slice_id: SliceId) -> int | None:
        position = self._positions.get(slice_id)
        if position is None and 0 <= slice_id.source < len(self.indexes):
            position = self.indexes[slice_id.source].position_of(slice_id.ordinal)
            if position is not None:
                self._remember(slice_id, position)
        return position
