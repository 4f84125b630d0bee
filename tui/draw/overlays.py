"""What is laid over a line of the lane area: one list, from the lowest to the uppermost.

An overlay is a function that draws over the cells of a line's time area, of which cell 0 is the first, and
returns at once from a line that it does not concern. Arrows, which lead from line to line, come after these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.style import Style

from ..session import Session, Viewport
from .cells import LineCells
from .glyphs import DOTS
from .line import Line, LineKind
from .line_context import LineContext
from .rows import GAP, RowReader
from .runs import BusyRow, DrawnRow, SampleRow
from .segments import HIT_STYLE, SelectedCells, compact_value

EXTENT_SHARE = 5
"""The least and greatest value of a counter take at most one such part of its line."""


class DrawnLine(NamedTuple):
    """A line with what is drawn of it, as overlays see it."""

    line: Line
    row: DrawnRow | None  # None: texts alone
    depth: int  # that is drawn, of those that the line stands for
    selected: SelectedCells | None
    is_focused: bool  # keys act on its row
    view: Viewport  # as wide as the time area
    session: Session
    reader: RowReader
    look: LineContext


Overlay: TypeAlias = Callable[[LineCells, DrawnLine], None]


def draw_extent(cells: LineCells, drawn: DrawnLine) -> None:
    """Write the least and the greatest value of a counter at the right edge."""
    if not isinstance(drawn.row, SampleRow) or drawn.row.extent is None:
        return
    text = " " + "–".join(map(compact_value, drawn.row.extent))
    if cell_len(text) <= drawn.look.area // EXTENT_SHARE:
        cells.put(drawn.look.area - cell_len(text), text, drawn.look.palette.dim)


def draw_hits(cells: LineCells, drawn: DrawnLine) -> None:
    """Mark where hits lie in what a line stands for. On bars in the colour of marks, too: a line under a full
    one would not be seen.
    """
    if isinstance(drawn.row, BusyRow):
        accent = drawn.look.palette.accent_plain.color
        mark_hits(cells, drawn.row.hits, HIT_STYLE + Style(color=accent))
        return
    line = drawn.line
    if line.kind is LineKind.RANKS and drawn.reader.hits is not None:
        lanes = [drawn.reader.trace.lanes[number] for number in line.members]
        rows = [(lane.source, lane.rows.start, lane.rows.stop) for lane in lanes]
        mark_hits(cells, drawn.reader.hits_in(rows, drawn.view), HIT_STYLE)
    if line.lane is None or not (line.frames or line.kind is LineKind.MORE):
        return
    first, depths = line.lane.rows.start, line.frames
    spans = [(depths.start, drawn.depth), (drawn.depth + 1, depths.stop)]
    if line.kind is LineKind.MORE:
        spans = [(line.depth, len(line.lane.rows))]
    rows = [(line.lane.source, first + low, first + high) for low, high in spans]
    mark_hits(cells, drawn.reader.hits_in(rows, drawn.view), HIT_STYLE)


def mark_hits(cells: LineCells, hits: Sequence[bool], mark: Style, first: int = 0) -> None:
    """Lay a style over the cells with hits, from cell `first` on; `hits` may be empty."""
    for cell, is_hit in enumerate(hits, first):
        if is_hit:
            cells.add(cell, cell + 1, mark)


def draw_gap(cells: LineCells, drawn: DrawnLine) -> None:
    """Fill the selected gap, and set its cause off; slices that share a cell with it keep their names."""
    gap, look = drawn.selected, drawn.look
    if gap is None or gap.at != GAP:
        return
    empty, why = " " + look.glyphs.shades[1], look.palette.gap_text
    for span, part in list(cells.parts()):
        left, right = max(span.start, gap.left), min(span.stop, gap.right)
        if part.style is why:
            cells.paint(left, right, look.palette.range_edge)
        elif not part.text.strip(empty):
            cells.put(left, look.glyphs.range_fill * (right - left), look.palette.range_edge)


def draw_range(cells: LineCells, drawn: DrawnLine) -> None:
    """Shade what is blank in the range."""
    has_time = drawn.row is not None or drawn.line.kind is LineKind.RANKS
    if has_time and drawn.session.range is not None:
        palette = drawn.look.palette
        cells.paint(*range_cells(drawn.view, drawn.session.range), palette.in_range, palette.blank)


def range_cells(view: Viewport, range_: tuple[int, int]) -> tuple[int, int]:
    """Return the cells [left, right) that a range takes; what lies outside is cut to one."""
    left, right = view.cell(range_[0]), view.cell(max(range_[0], range_[1] - 1)) + 1
    return max(-1, left), min(view.width + 1, right)


def draw_cursor(cells: LineCells, drawn: DrawnLine) -> None:
    """Draw a thin mark on the row that keys act on, or set the letter there off; nothing is covered."""
    if drawn.is_focused and drawn.line.kind in (LineKind.ROW, LineKind.RANKS):
        mark_cursor(cells, drawn.view.cell(drawn.session.cursor), drawn.look)


def mark_cursor(cells: LineCells, cell: int, look: LineContext) -> None:
    if not 0 <= cell < look.area:
        return
    glyphs = look.glyphs
    character, span, style = cells.character(cell)
    if character in chain((" ", glyphs.filler), glyphs.shades, glyphs.bars, glyphs.lefts, DOTS):
        cells.put(cell, glyphs.single, style + look.palette.cursor_on)
    else:
        cells.paint(span.start, span.stop, look.palette.cursor_letter(style))


OVERLAYS: Final[tuple[Overlay, ...]] = (
    draw_extent,
    draw_hits,
    draw_gap,
    draw_range,
    draw_cursor,
)
"""Each is drawn over those before it."""
