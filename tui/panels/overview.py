"""The overview: what the panel of details shows while nothing is selected, in as many lines as it has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import about_ns
from tracelane.core.tables.findings.finding import Evidence

from ..commands.table import command, keys_of
from ..draw.glyphs import Glyphs, fit, fit_middle
from ..draw.palette import Look, Palette
from ..draw.runs import FULL
from ..keys import keys_text, remapped_in
from ..lanes.look import glyphs, palette_of
from ..steps import StepMark, deviation_levels, usual_length
from ..text.overview import GUIDE, LATE, MAX_ROWS, OUTLIER, FactBlock, FactRow, Target
from ..widget_message import WidgetMessage
from ..widgets.text_pane import TextPane

TWO_COLUMNS = 70
"""From so many cells on the blocks stand in two columns."""
GAP = 3
"""Cells between the columns."""
VALUE, SHARE = 8, 6
"""Cells of the two numbers that a row begins with, the first at least."""
BARS_FROM = 44
"""Columns of so many cells have bars."""
BAR_PART, MAX_BAR, MIN_BAR = 5, 12, 6
"""A bar takes at most one part in so many of its column, at most so many cells; names may leave it fewer."""
WHOLE_NOTE = 12
"""What else is known of a row stands in full where it has at most so many letters, or not at all."""
TITLES_FROM = 3
"""In fewer lines blocks have no titles."""
STEP_CELLS = 6
"""A step takes at most so many cells of a strip."""


class LaidRow(NamedTuple):
    """A row of the overview as it is laid out."""

    row: FactRow
    column: int
    line: int


class Pieces(NamedTuple):
    """The lines of a column: of each its block, and the row or (None) the block's title."""

    lines: list[tuple[FactBlock, FactRow | None]]
    room: int

    @property
    def left(self) -> int:
        return self.room - len(self.lines)

    def add(self, block: FactBlock, rows: int) -> None:
        """Add a block with its first rows, as far as they fit, and its title where there is room."""
        has_title = self.room >= TITLES_FROM
        rows = min(rows, len(block.rows), self.left - has_title)
        if rows > 0:
            self.lines.extend([(block, None)] * has_title)
            self.lines.extend((block, row) for row in block.rows[:rows])


def fact_columns(blocks: Sequence[FactBlock], width: int, height: int) -> list[Pieces]:
    """Share the lines of the panel out among blocks: each its first rows, then more of the first ones, then
    what is spare. The first column has what takes most time.
    """
    chief = [block for block in blocks if not block.spare]
    if width < TWO_COLUMNS:
        groups = [chief]
    else:
        groups = [[one for one in chief if one.at_left is at_left] for at_left in (True, False)]
    columns = [_filled(group, height) for group in groups]
    spare = [block for block in blocks if block.spare]
    for column in sorted(columns, key=lambda one: -one.left):
        while spare and column.left > 1:
            column.add(spare.pop(0), column.left)
    return columns


def _filled(blocks: Sequence[FactBlock], height: int) -> Pieces:
    counts = [0] * len(blocks)
    has_title = height >= TITLES_FROM
    left = height
    for most in (1, MAX_ROWS, height):
        for number, block in enumerate(blocks):
            title = has_title and not counts[number]
            more = min(len(block.rows), most) - counts[number]
            more = max(0, min(more, left - title))
            left -= more + (title and more > 0)
            counts[number] += more
    pieces = Pieces([], height)
    for block, count in zip(blocks, counts):
        pieces.add(block, count)
    return pieces


def guide(remapped: Mapping[str, str]) -> FactBlock:
    """Return the keys to go on with, as the user has set them."""
    commands = [command(name) for name in GUIDE]
    rows = [
        FactRow(entry.title, keys_text(entry, remapped)) for entry in commands if keys_of(entry, remapped)
    ]
    return FactBlock("Keys to go on with", tuple(rows), spare=True)


class OverviewLook(NamedTuple):
    """How rows are drawn, on the panel's background."""

    palette: Palette
    glyphs: Glyphs

    def colour(self, key: str) -> Style:
        """Return the style of a bar of a colour; of no colour that of what waits."""
        if key == LATE:
            return self.accent
        if not key:
            return self.dim
        return Style(color=self.palette.style(key, Look.MARK).color)

    @property
    def dim(self) -> Style:
        return Style(color=self.palette.dim.color, dim=not self.palette.coloured)

    @property
    def accent(self) -> Style:
        return Style(color=self.palette.accent_plain.color, bold=True)


def row_text(row: FactRow, block: FactBlock, width: int, look: OverviewLook, bar_cells: int) -> Text:
    """Return a row in exactly so many cells: what it takes, a bar, what it is, and what else is known."""
    value_cells, has_shares = _value_cells(block), _has_shares(block)
    line = Text(no_wrap=True, end="")
    line.append(fit(row.value.rjust(value_cells), value_cells))
    if has_shares:
        line.append(f" {row.share}".rjust(SHARE + 1), look.dim)
    if bar_cells and _has_bars(block):
        line.append(" ")
        line.append_text(_bar(row, bar_cells, look))
    line.append(" ")
    line.append(_label_text(row, block, max(0, width - line.cell_len), look.glyphs.ellipsis))
    left, note = width - line.cell_len - 2, safe(row.note)
    if note and left >= min(cell_len(note), WHOLE_NOTE):
        line.append("  " + fit(note, min(left, cell_len(note)), look.glyphs.ellipsis), look.dim)
    line.append(" " * (width - line.cell_len))
    return line


def _value_cells(block: FactBlock) -> int:
    longest = max(len(one.value) for one in block.rows)
    return max(VALUE, longest) if longest else 0  # bytes may take more: 391.4 KiB


def _has_shares(block: FactBlock) -> bool:
    return any(one.share for one in block.rows)


def _has_bars(block: FactBlock) -> bool:
    return any(one.bar for one in block.rows)


def bar_cells_of(blocks: Iterable[FactBlock], width: int) -> int:
    """Return how long the bars of a column of blocks are: as long as leaves the names of all their room."""
    most = min(width // BAR_PART, MAX_BAR) if width >= BARS_FROM else 0
    left = [
        width - _value_cells(block) - (SHARE + 1) * _has_shares(block) - 2 - max(map(_words, block.rows))
        for block in blocks
        if _has_bars(block)
    ]
    return max(min(most, MIN_BAR), min(most, *left)) if left else 0


def _words(row: FactRow) -> int:
    """Return the cells of what a row is, and of a note that stands in full or not at all."""
    note = cell_len(safe(row.note))
    return cell_len(safe(row.label)) + (2 + note if 0 < note <= WHOLE_NOTE else 0)


def _label_text(row: FactRow, block: FactBlock, room: int, ellipsis: str) -> str:
    """Return what a row is in at most so many cells: without its end, or without its middle where another row
    of the block would read the same.
    """
    label = safe(row.label)
    cells = min(cell_len(label), room)
    text = fit(label, cells, ellipsis)
    if cells == cell_len(label):
        return text
    others = {safe(one.label) for one in block.rows} - {label}
    is_alone = all(fit(other, cells, ellipsis) != text for other in others)
    return text if is_alone else fit_middle(label, cells, ellipsis)


def _bar(row: FactRow, cells: int, look: OverviewLook) -> Text:
    """Return a bar of eighths, its waiting part hatched."""
    length = max(1, round(row.bar * cells * FULL)) if row.bar else 0
    full, rest = divmod(round(length * (1 - row.waited)), FULL)
    bar = look.glyphs.lefts[FULL] * full + (look.glyphs.lefts[rest] if rest else "")
    text = Text(bar, look.colour(row.key))
    hatched = max(1, round(length / FULL)) - len(bar) if row.waited else 0
    text.append(look.glyphs.shades[1] * hatched, look.colour(row.key))
    text.append(" " * (cells - text.cell_len))
    return text


class StripCell(NamedTuple):
    """A cell of a strip of steps: the longest of its steps, and how high it is drawn."""

    step: StepMark
    level: int
    stands_out: bool


def strip_cells(steps: Sequence[StepMark], width: int) -> list[StripCell]:
    """Return a strip of steps in at most so many cells: as high as each deviates from the median."""
    if not steps or width < 1:
        return []
    usual, stride = usual_length(steps), -(-len(steps) // width)
    each = max(1, min(STEP_CELLS, width // len(steps)))
    longest = [
        max(steps[at : at + stride], key=lambda step: step.end - step.start)
        for at in range(0, len(steps), stride)
    ]
    lengths = [step.end - step.start for step in longest]
    return [
        StripCell(step, level, length > OUTLIER * usual)
        for step, length, level in zip(longest, lengths, deviation_levels(lengths, usual))
        for _ in range(each)
    ]


def _strip(cells: Sequence[StripCell], width: int, look: OverviewLook) -> Text:
    line = Text(" ", no_wrap=True, end="")
    for number, cell in enumerate(cells):
        style = look.accent if cell.stands_out else look.colour("step")
        line.append(look.glyphs.bars[cell.level], style + Style(meta={"cell": number}))
    line.append(" " * (width - line.cell_len))
    return line


def _length(step: StepMark) -> int:
    return step.end - step.start


def _step_text(step: StepMark) -> str:
    return f"{safe(step.title)}  {about_ns(_length(step))}"


class DetailsPane(TextPane):
    """The details of what is selected; while nothing is, the overview, whose rows lead to places."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "side(-1)", show=False),
        Binding("right", "side(1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    @dataclass
    class RowChosen(WidgetMessage):
        """A row of the overview is asked for what it leads to."""

        target: Target

    @dataclass
    class RowHovered(WidgetMessage):
        """The mouse came over another row; empty: over none."""

        text: str

    _blocks: Sequence[FactBlock] | None = None
    _all_rows: Sequence[LaidRow] = ()
    _lines: Sequence[Text] = ()
    _cells_of: Mapping[int, list[StripCell]] = MappingProxyType({})
    _chosen = 0
    _step: StepMark | None = None  # of a strip the step that the arrows have chosen
    _hovered = ""

    def show(self, text: Text, *, top: bool = True) -> None:
        self._blocks = None
        self._all_rows = ()
        super().show(text, top=top)

    def show_overview(self, blocks: Sequence[FactBlock]) -> None:
        """Show blocks in the lines that there are, now and when these become more or fewer."""
        if blocks != self._blocks:
            self._blocks, self._chosen, self._step = blocks, 0, None
        self._lay_out()

    def on_focus(self) -> None:
        self._draw()

    def on_blur(self) -> None:
        self._draw()

    def _fit(self) -> None:
        super()._fit()
        if self._blocks is not None:
            self._lay_out()

    def _lay_out(self) -> None:
        width, height = self.text_width, max(1, self.outer_size.height)
        blocks = [*(self._blocks or ()), guide(remapped_in(self))]
        columns = fact_columns(blocks, width, height)
        cells = (width - GAP * (len(columns) - 1)) // len(columns)
        look = OverviewLook(palette_of(self), glyphs())
        rows: list[LaidRow] = []
        lines = [Text(no_wrap=True, end="") for _ in range(max(len(one.lines) for one in columns))]
        strips: dict[int, list[StripCell]] = {}
        for number, column in enumerate(columns):
            of_column = {id(block): block for block, row in column.lines if block and row}
            bar_cells = bar_cells_of(of_column.values(), cells)
            for at, line in enumerate(lines):
                line.append(" " * GAP if number else "")
                block, row = column.lines[at] if at < len(column.lines) else (None, None)
                if block is None:
                    line.append(" " * cells)
                elif row is None:
                    line.append(fit(safe(block.title), cells, look.glyphs.ellipsis), Style(bold=True))
                else:
                    if row.steps:
                        strips[len(rows)] = strip_cells(row.steps, cells - 1)
                        text = _strip(strips[len(rows)], cells, look)
                    else:
                        text = row_text(row, block, cells, look, bar_cells)
                    text.stylize(Style(meta={"row": len(rows)}))
                    line.append_text(text)
                    rows.append(LaidRow(row, number, at))
        self._all_rows, self._lines, self._cells_of = rows, lines, strips
        self._draw()

    def _draw(self) -> None:
        if self._blocks is None:
            return
        lines = list(self._lines)
        if self.has_focus and self._chosen < len(self._all_rows):
            chosen = self._all_rows[self._chosen].line
            lines[chosen] = lines[chosen].copy()
            cells = self._cells_of.get(self._chosen, ())
            own = {number for number, cell in enumerate(cells) if cell.step is self._step}
            for start, end in self._spans(lines[chosen], self._chosen, own):
                lines[chosen].stylize(Style(reverse=True), start, end)
        super().show(Text("\n").join(lines))

    @staticmethod
    def _spans(line: Text, row: int, cells: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield where a row stands in a line; of a strip some cells, if these are chosen."""
        name, values = ("cell", cells) if cells else ("row", (row,))
        for span in line.spans:
            if isinstance(span.style, Style) and span.style.meta.get(name) in values:
                yield span.start, span.end

    # -- keys and mouse -------------------------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[FactRow]:
        """The rows that are shown, column by column; none of details."""
        return [one.row for one in self._all_rows]

    def action_turn(self, by: int, pages: bool = False) -> None:
        """Choose another row of the overview; scroll details."""
        if self._blocks is None:
            super().action_turn(by, pages)
        else:
            by = by * max(1, self.size.height - 1) if pages else by
            self._choose(min(max(0, self._chosen + by), len(self._all_rows) - 1))

    def action_side(self, by: int) -> None:
        """Choose the row beside the chosen one, in a strip of steps the next one first."""
        if self._chosen >= len(self._all_rows) or self._choose_step(by):
            return
        now = self._all_rows[self._chosen]
        others = [at for at, one in enumerate(self._all_rows) if one.column == now.column + by]
        if others:
            self._choose(min(others, key=lambda at: abs(self._all_rows[at].line - now.line)))

    def _choose_step(self, by: int) -> bool:
        """Choose another step of the chosen strip, at first the longest; return whether there is one."""
        cells = self._cells_of.get(self._chosen)
        if not cells:
            return False
        steps = list(dict.fromkeys(cell.step for cell in cells))
        at = next((at for at, step in enumerate(steps) if step is self._step), None)
        if at is not None and not 0 <= at + by < len(steps):
            return False
        self._step = max(steps, key=_length) if at is None else steps[at + by]
        self._draw()
        self.post_message(self.RowHovered(_step_text(self._step)))
        return True

    def _choose(self, row: int) -> None:
        self._chosen, self._step = row, None
        self._draw()
        self.post_message(self.RowHovered(self._said(row)))

    def action_choose(self) -> None:
        if self._chosen < len(self._all_rows):
            self._go(self._chosen, self._step)

    def _go(self, row: int, step: StepMark | None = None) -> None:
        target = self._all_rows[row].row.target
        if (step := step or self._longest(row)) is not None:
            target = Evidence(step.title, step.start, step.end)
        if target is not None:
            self.post_message(self.RowChosen(target))

    def _longest(self, row: int) -> StepMark | None:
        """Return the step that a strip leads to where none is chosen; None for other rows."""
        return max((cell.step for cell in self._cells_of.get(row, ())), key=_length, default=None)

    def _step_at(self, row: int, cell: int | None) -> StepMark | None:
        cells = self._cells_of.get(row, ())
        return cells[cell].step if cell is not None and cell < len(cells) else None

    def _said(self, row: int, cell: int | None = None) -> str:
        """Return what a row says, in full: of a strip the step to which a click or Enter leads."""
        if row >= len(self._all_rows):
            return ""
        one = self._all_rows[row].row
        if (step := self._step_at(row, cell) or self._longest(row)) is not None:
            return _step_text(step)
        numbers = (one.value, one.share, one.note)
        return "  ".join([safe(one.name or one.label), *(text for text in numbers if text)])

    def on_mouse_move(self, event: events.MouseMove) -> None:
        meta = event.style.meta
        text = self._said(meta["row"], meta.get("cell")) if "row" in meta else ""
        if text != self._hovered:
            self._hovered = text
            self.post_message(self.RowHovered(text))

    def on_leave(self) -> None:
        if self._hovered:
            self._hovered = ""
            self.post_message(self.RowHovered(""))

    def on_click(self, event: events.Click) -> None:
        meta = event.style.meta
        if "row" in meta and meta["row"] < len(self._all_rows):
            self._go(meta["row"], self._step_at(meta["row"], meta.get("cell")))
