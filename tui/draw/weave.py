"""The visible lines with the arrows between them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment

from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Row
from tracelane.core.trace.arrows import Arrows, arrows_in_view, arrows_of

from ..session import Selectable, Session
from .arrows import arrow_overlays, free_cells, with_arrows
from .layout import Layout
from .line import Line, LineKind
from .lines import LineContext, framed, line_segments
from .rows import RowReader


class Weaver:
    """Draws the arrows of one trace; those of a selection are looked up once."""

    def __init__(self, reader: RowReader) -> None:
        self.reader = reader
        self._of: tuple[Selectable | None, Arrows] = (None, Arrows())

    def lines(
        self, lines: Sequence[Line | None], layout: Layout, session: Session, look: LineContext
    ) -> list[list[Segment]]:
        """Return the lines with the selection's arrows, and below them all in view where the session asks."""
        thumb = layout.thumb(session.scroll, len(lines))
        drawn = [
            framed(line_segments(line, self.reader, session, look), y in thumb, look)
            for y, line in enumerate(lines)
        ]
        layers = [(self.selected(session.selection), False)]
        if session.flows:
            layers.insert(0, (self.in_view(lines, session, look), True))
        if not any(arrows.drawn for arrows, _ in layers):
            return drawn
        free = [free_cells(line, look) for line in drawn]
        for arrows, faint in layers:
            if arrows.drawn:
                overlays = arrow_overlays(self.reader.trace, session, layout, lines, free, arrows)
                drawn = [with_arrows(line, overlay, look, faint) for line, overlay in zip(drawn, overlays)]
        return drawn

    def selected(self, selection: Selectable | None) -> Arrows:
        if selection != self._of[0]:
            trace, arrows = self.reader.trace, Arrows()
            if isinstance(selection, SliceId) and trace.find(selection) is not None:
                arrows = arrows_of(trace, selection)
            self._of = selection, arrows
        return self._of[1]

    def in_view(self, lines: Sequence[Line | None], session: Session, look: LineContext) -> Arrows:
        """Return the flows that begin or end in the slices seen."""
        trace, view = self.reader.trace, session.viewport.resized(look.area)
        windows: list[tuple[Row, int, int]] = []
        for line in lines:
            if line is not None and line.kind is LineKind.ROW and line.lane is not None:
                offset = session.clocks.offset(line.lane.source, line.lane.pid)
                row = trace.row(line.lane, line.depth)
                windows.append((row, view.start - offset, view.end - offset))
        return arrows_in_view(trace, windows)
