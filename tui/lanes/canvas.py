"""The lane area: titles and rows, one Segment per run, drawn line by line from what the row reader keeps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self

from rich.segment import Segment
from textual import events
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region
from textual.strip import Strip

from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace
from tracelane.core.trace.arrows import Arrows

from ..draw.arrows import Weaver
from ..draw.glyphs import eighths
from ..draw.layout import Layout
from ..draw.line import Line, LineKind
from ..draw.line_context import LineContext
from ..draw.lines import line_segments
from ..draw.ranks import RankNotes
from ..draw.rows import RowReader
from ..draw.runs import HATCH, SliceRow, run_at
from ..draw.states import DrawnStates
from ..session import RowKey, Session, Viewport
from ..widgets.text_pane import follow_size
from .look import look_of
from .messages import Hovered, LanePressed, SlicePressed, TimeAreaResized
from .strips import TimeArea


class LaneCanvas(TimeArea, can_focus=True):
    """Draws the visible lines of a layout; `show` is all it needs, mouse actions come back as messages."""

    DEFAULT_CSS = """
    LaneCanvas { height: 1fr; width: 1fr; }
    """
    wheel_scrolls = True

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.eighths: bool | None = None  # whether the user wants slice edges in eighths of a cell
        self._layout_lines: Layout | None = None
        self._reader: RowReader | None = None
        self.ranks = RankNotes()
        self.states: DrawnStates | None = None
        """What devices did; None as long as it is not known."""
        self._sought: tuple[Hits | None, Hits | None] = (None, None)
        self._look: LineContext | None = None
        self._lines: list[Line | None] = []
        self._thumb = range(0)
        self._hovered: tuple[RowKey | None, int, str] = None, -1, ""
        self._weaver: Weaver | None = None
        self._segments: list[list[Segment]] | None = None  # the lines with arrows; None: not drawn yet
        self._strips: dict[int, Strip] = {}  # lines as they were drawn since they changed last

    def look_for(self, search: Hits | None, left: Hits | None) -> None:
        self._sought = search, left
        if self._reader is not None:
            self._reader.look_for(search, left)
        self._segments = None
        self.refresh()

    def know(self, states: DrawnStates | None) -> None:
        self.states = states
        if self._reader is not None:
            self._reader.know(states)
        self._segments = None
        self.refresh()

    def know_ranks(self, notes: RankNotes) -> None:
        self.ranks = notes
        self._prepare()
        self.refresh()

    def show(self, trace: Trace, session: Session, layout: Layout) -> None:
        """Show a trace in a session; costs nothing until the next frame."""
        if self._reader is None or self._reader.trace is not trace:
            self._reader = RowReader(trace, eighths(self.eighths, os.environ))
            self._reader.look_for(*self._sought)
            self._reader.know(self.states)
            self._weaver = Weaver(self._reader)
        self._trace, self._session, self._layout_lines = trace, session, layout
        self._prepare()
        self.refresh()

    @property
    def reader(self) -> RowReader | None:
        """What has been drawn; None before the first `show`."""
        return self._reader

    @property
    def time_cells(self) -> int:
        return look_of(self).area

    def line_at(self, y: int) -> Line | None:
        return self._lines[y] if 0 <= y < len(self._lines) else None

    # -- drawing --------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._segments = None
        self._strips.clear()
        if self._session is None or self._layout_lines is None or self.size.width < 1:
            return
        self._look = look_of(self)._replace(ranks=self.ranks)
        self._lines = self._layout_lines.visible(self._session.scroll, self.size.height)
        self._thumb = self._layout_lines.thumb(self._session.scroll, self.size.height)

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Have all lines drawn anew."""
        self._strips.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines as they are: textual would look for border, padding and tint around each of them, which
        takes a tenth of a frame.
        """
        # Textual asks every widget that meets the rectangle around all changes for its whole region: where
        # the ruler and the footer change, the 40 lines of lanes between them, of which none did. So lines
        # stay as they were drawn until `refresh` or another width. Filters may change without either.
        filters, background = self.get_line_filters(), self.background_colors[1]
        strips = []
        for y in crop.line_range:
            strip = self._strips.get(y)
            if strip is None or strip.cell_length != self.size.width:
                strip = self._strips[y] = self.render_line(y)
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            strips.append(strip)
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._session is None or self._reader is None or self._look is None or y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        session, look, weaver = self._session, self._look, self._weaver
        if weaver is None or not (session.flows or weaver.selected(session.selection).drawn):
            line = line_segments(self._lines[y], self._reader, session, look, y in self._thumb)
            return Strip(line, width)
        if self._segments is None and self._layout_lines is not None:
            self._segments = weaver.lines(self._lines, self._layout_lines, session, look)
        return Strip(self._segments[y] if self._segments else [], width)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Leave out the filter for the terminal's own colours: the palette has none of them."""
        return [
            line_filter
            for line_filter in super().get_line_filters()
            if not isinstance(line_filter, ANSIToTruecolor)
        ]

    @property
    def flows_seen(self) -> Arrows:
        if self._weaver is None or self._session is None or self._look is None:
            return Arrows()
        return self._weaver.in_view(self._lines, self._session, self._look)

    def on_mount(self) -> None:
        follow_size(self, self._fit)

    def _fit(self) -> None:
        self._prepare()
        self.post_message(TimeAreaResized(look_of(self).area, self.size.height))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._prepare()

    # -- mouse ----------------------------------------------------------------------------------------------

    @property
    def _view(self) -> Viewport | None:
        if self._session is None or self._look is None:
            return None
        view = self._session.viewport
        return view if view.width == self._look.area else view.resized(self._look.area)

    def _cell(self, x: int) -> int:
        return x - (self._look.titles if self._look is not None else 0)

    def has_time(self, x: int) -> bool:
        return self._cell(x) >= 0

    def on_mouse_move(self, event: events.MouseMove) -> None:
        line = self.line_at(event.y)
        row = None if line is None or self._drag_from is not None else line.row_key
        index = -1 if row is None or line is None else self._index_at(line, self._cell(event.x))
        waits = "" if index >= 0 or line is None else self._hatch_at(line, self._cell(event.x))
        self._hover(row if index >= 0 else None, index, waits)

    def on_leave(self) -> None:
        self._hover(None, -1)

    def _hover(self, row: RowKey | None, index: int, waits: str = "") -> None:
        if (row, index, waits) != self._hovered:
            self._hovered = row, index, waits
            self.post_message(Hovered(row, index, waits))

    def on_click(self, event: events.Click) -> None:
        if self._dragged:
            self._dragged = False
            return
        line = self.line_at(event.y)
        if line is None or event.button != 1:
            return
        key = line.row_key
        cell = self._cell(event.x)
        if cell < 0 or key is None:
            self.post_message(LanePressed(line))
            return
        self.post_message(
            SlicePressed(key, self.time_at(event.x), cell, self._index_at(line, cell), event.chain)
        )

    def _index_at(self, line: Line, cell: int) -> int:
        view, reader, session = self._view, self._reader, self._session
        if line.lane is None or view is None or reader is None or session is None:
            return -1
        row = reader.row(line.lane, max(0, line.depth), view, session.clocks, session.colour_by)
        if isinstance(row, SliceRow):
            run = run_at(row.runs, cell)
            if run is None or run.slices <= 1 or not 0 <= cell < view.width:
                return -1 if run is None else run.at
            # The longest one of the run may be far away.
            own = reader.longest_in(line.lane, max(0, line.depth), view, session.clocks, cell)
            return run.at if own < 0 else own
        marks = getattr(row, "marks", ())
        return next((mark.at for mark in marks if mark.cell == cell), -1)

    def _hatch_at(self, line: Line, cell: int) -> str:
        """Return in full why a device does nothing, or for whom it waits, where that is hatched in a cell; ""
        where nothing is.
        """
        view, reader, session = self._view, self._reader, self._session
        if view is None or reader is None or session is None or self._drag_from is not None or cell < 0:
            return ""
        if line.lane is not None and line.kind is LineKind.ROW:
            row = reader.row(line.lane, max(0, line.depth), view, session.clocks, session.colour_by)
            runs = row.runs if isinstance(row, SliceRow) else ()
        elif line.kind is LineKind.PROCESS and line.folded:
            runs = reader.busy(line.members, view, session.clocks, line.part).runs
        else:
            return ""
        run = run_at(runs, cell)
        if run is None or not run.flags & HATCH:
            return ""
        gaps = None
        if self.states is not None and line.lane is not None:
            gaps = self.states.gaps_of(line.lane, session.clocks)
        number = None if gaps is None else gaps.mostly_in(view.edge(run.left), view.edge(run.right))
        return run.label if gaps is None or number is None else gaps.full_text(number)

    def row_at(self, y: int) -> RowKey | None:
        line = self.line_at(y)
        return None if line is None else line.row_key
