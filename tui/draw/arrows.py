"""Arrows between lanes, over free cells only: slices, labels and marks are never covered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.safe_text import safe
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Row, Trace
from tracelane.core.trace.arrows import Arrows, arrows_in_view, arrows_of

from ..session import RowKey, Selectable, Session, Viewport
from .cells import LineCells
from .glyphs import ascii_text, fit
from .layout import Layout
from .line import Half, Line, LineKind
from .line_context import LineContext
from .lines import line_segments
from .rows import RowReader

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
GLYPHS: Final = " │││─┘┐┤─└┌├─┴┬┼"
"""By the sum of the sides that a cell's line leads to."""
HEADS: Final = {UP: "▴", DOWN: "▾", LEFT: "◂", RIGHT: "▸"}
NAME_CELLS = 24
"""Cells that the name of an end out of sight takes at most."""

Overlay = dict[int, str]
"""By cell of the time area: what to write there."""


class End(NamedTuple):
    """Where an arrow's end lies: its line (-1 above, `height` below what is seen) and cells [left, right)."""

    y: int
    left: int
    right: int
    name: str
    lines: int = 1

    def towards(self, other: End) -> End:
        """Return the end on that one of its lines which is nearest to another end."""
        return self._replace(y=self.y + self.lines - 1) if other.y > self.y else self

    def seen(self, width: int, height: int) -> bool:
        return 0 <= self.y < height and self.right > 0 and self.left < width


def arrow_overlays(
    trace: Trace,
    session: Session,
    layout: Layout,
    lines: Sequence[Line | None],
    free: Sequence[Sequence[bool]],
    arrows: Arrows,
) -> list[Overlay]:
    """Return what arrows write over each visible line: a glyph by cell, only where `free` is true.

    `free` holds, per line, whether each cell of the time area is empty. What is out of sight is named at the
    edge; arrows with both ends out of sight are not drawn.
    """
    width = len(free[0]) if free else 0
    view = session.viewport if session.viewport.width == width else session.viewport.resized(max(1, width))
    board = _Board(free, width)
    lines_by_row: dict[RowKey, tuple[int, int]] = {}  # the first one, and how many
    for y, line in enumerate(lines):
        if line is not None and (key := line.row_key) is not None:
            first, count = lines_by_row.get(key, (y, 0))
            lines_by_row[key] = first, count + (y == first + count)
    known: dict[SliceId, End | None] = {}
    for arrow in arrows.drawn:
        for identity in (arrow.source, arrow.target):
            if identity not in known:
                known[identity] = _end(trace, session, view, layout, lines_by_row, len(lines), identity)
        source, target = known[arrow.source], known[arrow.target]
        if source is not None and target is not None:
            _draw(board, source.towards(target), target.towards(source))
    if arrows.more:
        board.write_right(f" +{arrows.more:,} more")
    return board.overlays()


def _end(
    trace: Trace,
    session: Session,
    view: Viewport,
    layout: Layout,
    lines_by_row: Mapping[RowKey, tuple[int, int]],
    height: int,
    identity: SliceId,
) -> End | None:
    from .things import thing_by_id

    thing = thing_by_id(trace, session.clocks, identity)
    if thing is None:
        return None
    y, count = lines_by_row.get(thing.key, (None, 1))
    if y is None:
        line = layout.y_of(thing.key)
        if line is None:
            return None
        above = layout.pinned_height(height)
        scroll = layout.scrolled(session.scroll, height)
        first = scroll + (layout.title_above(session.scroll, height) is not None)
        y = -1 if line < first else line - scroll + above
        if y >= height - layout.says_more(session.scroll, height):
            y = height  # the last line tells of those below it
    left = view.cell(thing.start)
    right = max(left, view.cell(max(thing.start, thing.end - 1))) + 1
    return End(y, left, right, safe(trace.label(thing.row, thing.index)), count)


class _Board:
    """The free cells, what was drawn into them, and nothing outside them."""

    def __init__(self, free: Sequence[Sequence[bool]], width: int) -> None:
        self.free, self.width, self.height = free, width, len(free)
        self._sides: dict[tuple[int, int], int] = {}
        self._texts: dict[tuple[int, int], str] = {}

    def is_free(self, y: int, x: int) -> bool:
        return 0 <= y < self.height and 0 <= x < self.width and bool(self.free[y][x])

    def side(self, y: int, x: int, sides: int) -> None:
        if self.is_free(y, x):
            self._sides[y, x] = self._sides.get((y, x), 0) | sides

    def down(self, x: int, first: int, past: int) -> None:
        for y in range(max(0, first), min(self.height, past)):
            self.side(y, x, UP | DOWN)

    def across(self, y: int, first: int, past: int) -> None:
        for x in range(max(0, first), min(self.width, past)):
            self.side(y, x, LEFT | RIGHT)

    def head(self, y: int, x: int, to: int) -> bool:
        if not self.is_free(y, x):
            return False
        return self._texts.setdefault((y, x), HEADS[to]) == HEADS[to]

    def head_on_way(self, x: int, ys: Iterable[int], to: int) -> bool:
        """Put the head into the first free cell of a column, from the target's side on."""
        return any(self.head(y, x, to) for y in ys)

    def write(self, y: int, x: int, text: str) -> bool:
        """Write a text where all its cells are free and hold none yet."""
        cells = [(y, x + at) for at in range(cell_len(text))]
        if cell_len(text) != len(text) or not all(self.is_free(*c) and c not in self._texts for c in cells):
            return False
        self._texts.update(zip(cells, text))
        return True

    def write_right(self, text: str) -> None:
        """Write a text at the right end of the lowest line that has room for it."""
        x = self.width - cell_len(text)
        for y in range(self.height - 1, -1, -1):
            if self.write(y, x, text):
                return

    def overlays(self) -> list[Overlay]:
        overlays: list[Overlay] = [{} for _ in range(self.height)]
        for (y, x), sides in self._sides.items():
            overlays[y][x] = GLYPHS[sides]
        for (y, x), text in self._texts.items():
            overlays[y][x] = text
        return overlays


def _draw(board: _Board, source: End, target: End) -> None:
    width, height = board.width, board.height
    source_seen, target_seen = source.seen(width, height), target.seen(width, height)
    if source_seen and target_seen:
        _between(board, source, target)
    elif source_seen:
        _away(board, source, target, to_other=True)
    elif target_seen:
        _away(board, target, source, to_other=False)


def _between(board: _Board, source: End, target: End) -> None:
    """Draw from slice to slice: straight where one stands over the other, else round one corner."""
    last = board.width - 1
    left, right = max(source.left, target.left, 0), min(source.right, target.right, last + 1)
    if source.y == target.y:
        _along(board, source, target)
        return
    below = target.y > source.y
    first, past = (source.y + 1, target.y) if below else (target.y + 1, source.y)
    if left < right:
        board.down(left, first, past)
        to = DOWN if below else UP
        way = range(first, past)[::-1] if below else range(first, past)
        if way and board.head(way[0], left, to):
            return
        if board.head(target.y, target.left - 1, RIGHT) or board.head(target.y, target.right, LEFT):
            return
        board.head_on_way(left, way, to)
        return
    on = target.left >= source.right
    column = min(source.right - 1, last) if on else max(source.left, 0)
    board.down(column, first, past)
    tip = target.left - 1 if on else target.right
    if column != tip:
        board.side(target.y, column, (UP if below else DOWN) | (RIGHT if on else LEFT))
    board.across(target.y, *((column + 1, tip) if on else (tip + 1, column)))
    if not board.head(target.y, tip, RIGHT if on else LEFT):
        way = range(first, past)[::-1] if below else range(first, past)
        board.head_on_way(column, way, DOWN if below else UP)


def _along(board: _Board, source: End, target: End) -> None:
    if target.left >= source.right:
        board.across(target.y, source.right, target.left - 1)
        board.head(target.y, target.left - 1, RIGHT)
    elif target.right <= source.left:
        board.across(target.y, target.right + 1, source.left)
        board.head(target.y, target.right, LEFT)


def _away(board: _Board, seen: End, other: End, to_other: bool) -> None:
    """Draw from the end in sight to the edge beyond which the other lies, and name that there."""
    width, height = board.width, board.height
    aside = LEFT if other.right <= 0 else RIGHT if other.left >= width else 0
    y = min(max(other.y, 0), height - 1)
    if aside:
        _to_side(board, seen, other, y, aside, to_other)
        return
    # Above or below, within the time that is seen.
    column = min(max(seen.left, other.left, 0), min(seen.right, width) - 1)
    to = UP if other.y < seen.y else DOWN
    board.down(column, *((y, seen.y) if to == UP else (seen.y + 1, y + 1)))
    text = f"{HEADS[to]} {_named(other)} "
    if not any(board.write(y, x, text) for x in (column, max(0, column - len(text) + 1))):
        board.head(y, column, to)
    if not to_other:
        board.head(seen.y - 1 if to == UP else seen.y + 1, column, DOWN if to == UP else UP)


def _to_side(board: _Board, seen: End, other: End, y: int, aside: int, to_other: bool) -> None:
    """Draw to the left or right edge of the line on which the other end lies, or that is nearest to it."""
    width = board.width
    hint = HEADS[UP] if other.y < 0 else HEADS[DOWN] if other.y >= board.height else ""
    name = f"{_named(other)} {hint}".rstrip()
    text = f"{HEADS[LEFT]} {name} " if aside == LEFT else f" {name} {HEADS[RIGHT]}"
    column = max(seen.left, 0) if aside == LEFT else min(seen.right, width) - 1
    if y != seen.y:
        board.down(column, *((y + 1, seen.y) if y < seen.y else (seen.y + 1, y)))
        turn = DOWN if y < seen.y else UP
        board.side(y, column, turn | aside)
    board.across(y, *((0, column) if aside == LEFT else (column + 1, width)))
    room = width - cell_len(text)
    # Not in the very first cells where the cursor stands there.
    named = any(board.write(y, near if aside == LEFT else room - near, text) for near in range(3))
    named = named or board.head(y, 0 if aside == LEFT else width - 1, aside)
    if y == seen.y or (named and to_other):
        return
    above = y < seen.y
    way = range(y + 1, seen.y) if above else range(y - 1, seen.y, -1)
    if to_other:
        board.head_on_way(column, way, UP if above else DOWN)
    elif way:
        board.head(way[-1], column, DOWN if above else UP)


def _named(end: End) -> str:
    name = end.name if len(end.name) == cell_len(end.name) else ascii_text(end.name)
    return fit(name, min(NAME_CELLS, cell_len(name)))


def free_cells(segments: Sequence[Segment], look: LineContext) -> list[bool]:
    """Return for each cell of the time area whether nothing is drawn there."""
    free: list[bool] = []
    blank, rule = look.palette.blank, look.palette.process_rest
    for segment in segments:
        text, style = segment.text, segment.style
        if style is rule:
            text = text.replace(look.glyphs.rule, " ")
        is_free = (style is blank or style is rule) and text.isspace()
        is_hatch = not text.strip(look.glyphs.shades[1])
        free.extend([is_free or is_hatch] * segment.cell_length)
    return free[look.titles :]


def draw_arrows(cells: LineCells, overlay: Overlay, ink: Style, look: LineContext) -> None:
    """Write an overlay into the cells of a whole line, in an ink over what is below."""
    for x, text in overlay.items():
        cells.put(look.titles + x, text)
        cells.add(look.titles + x, look.titles + x + 1, ink)


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
        drawn = [line_segments(line, self.reader, session, look, y in thumb) for y, line in enumerate(lines)]
        layers = [(self.selected(session.selection), look.palette.accent_plain)]
        if session.flows:
            layers.insert(0, (self.in_view(lines, session, look), look.palette.dim))
        if not any(arrows.drawn for arrows, _ in layers):
            return drawn
        free = [free_cells(line, look) for line in drawn]
        cells = [LineCells(line, look.palette.blank) for line in drawn]
        for arrows, style in layers:
            if arrows.drawn:
                overlays = arrow_overlays(self.reader.trace, session, layout, lines, free, arrows)
                for line_cells, overlay in zip(cells, overlays):
                    draw_arrows(line_cells, overlay, Style(color=style.color), look)
        return [line_cells.segments() for line_cells in cells]

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
            if line is None or line.half is Half.LOWER:
                continue
            if line.kind is LineKind.ROW and line.lane is not None:
                offset = session.clocks.offset(line.lane.source, line.lane.pid)
                row = trace.row(line.lane, line.depth)
                windows.append((row, view.start - offset, view.end - offset))
        return arrows_in_view(trace, windows)
