"""A call tree drawn in cells: each call as wide as its time, callees below callers, those with most time
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.base.colours import key_of
from tracelane.core.base.safe_text import safe
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.icicle import Icicle, icicle_of, row_categories
from tracelane.core.tables.host.tree_nodes import ROOT
from tracelane.core.trace import Trace

from ..commands.table import FocusedPart
from ..draw.runs import FULL, TOUCH, WHOLE, Run
from ..draw.segments import SelectedCells, slice_segments
from ..lanes.look import glyphs, palette_of
from ..widgets.text_pane import follow_size

COOLEST = 3
"""Brightness, in eighths, of a call that spends nothing itself."""
MERGED_LEVEL = 4
"""Brightness, in eighths, of a cell in which several calls begin."""


class DrawnTree(NamedTuple):
    """A table of a call tree, and what drawing it takes: where its calls lie, their labels and colours."""

    table: Table
    icicle: Icicle
    labels: Sequence[str]
    keys: Sequence[str]
    heat: bytes  # how bright each call is, in eighths: the more, the more of its time it spends itself

    @classmethod
    def of(cls, trace: Trace, table: Table) -> DrawnTree:
        """Lay a table of a call tree out. May take a second for a million calls."""
        forms = table.short_forms["name"]
        names = table.texts("name")
        keys = [key_of(category, name) for category, name in zip(row_categories(trace, table), names)]
        icicle = icicle_of(table)
        icicle.boxes(0, icicle.window(ROOT), 1)  # computes what all lines need, away from the screen
        own, total = table.numbers("self_ns"), np.maximum(1, table.numbers("total_ns"))
        heat = np.clip(np.rint(COOLEST + (FULL - COOLEST) * own / total), COOLEST, FULL).astype(np.uint8)
        return cls(table, icicle, [safe(forms.get(name) or name) for name in names], keys, heat.tobytes())

    def path(self, row: int) -> list[str]:
        """Return the names of a call and what it lies in, the outermost first."""
        names = self.table.data["name"]
        path = []
        while row != ROOT:
            path.append(str(names[row]))
            row = int(self.icicle.parents[row])
        return path[::-1]


class Flame(Widget, can_focus=True):
    """Draws a call tree from one of its calls down; arrows choose a call, Enter lists its slices."""

    part: ClassVar[FocusedPart] = "flame"
    DEFAULT_CSS = """
    Flame { height: 1fr; width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "up", show=False),
        Binding("down", "down", show=False),
        Binding("left", "beside(-1)", show=False),
        Binding("right", "beside(1)", show=False),
        Binding("home", "root", show=False),
        Binding("enter", "choose", show=False),
    ]

    row: reactive[int] = reactive(ROOT)
    """The chosen call, as a row of the tree's table; ROOT where there is none."""

    @dataclass
    class Moved(Message):
        """Another call is chosen."""

        row: int

    @dataclass
    class Chosen(Message):
        """Enter was pressed on a call."""

        row: int

    @dataclass
    class ZoomAsked(Message):
        """The chosen call was clicked."""

        row: int

    def __init__(self, is_upward: bool = False) -> None:
        """Make an empty drawing; upward it has callers above what they call, and its first call is drawn
        elsewhere.
        """
        super().__init__()
        self._is_upward = is_upward
        self.drawn: DrawnTree | None = None
        self.root = ROOT
        """The call that takes the whole width; ROOT: all of them together."""
        self._lines = range(0)
        self._scroll = 0

    def show(self, tree: DrawnTree, root: int = ROOT, row: int | None = None) -> None:
        """Draw a tree from a call on, a call chosen: the first one unless told."""
        self.drawn, self.root = tree, root
        self._lines = range(*tree.icicle.lines_below(root))[self._is_upward :]
        first, behind = self._rows()
        self._scroll = 0
        self.row = ROOT if first == behind else first if row is None else row
        self._keep_in_view()
        self.refresh()

    def watch_row(self, row: int) -> None:
        self._keep_in_view()
        self.refresh()
        self.post_message(self.Moved(row))

    def on_mount(self) -> None:
        follow_size(self, self._keep_in_view)

    # -- drawing --------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width, number = self.size.width, self._number(y)
        if self.drawn is None or number >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        runs = self._runs(self._lines[number])
        chosen = None
        if self.row != ROOT and (self.has_focus or not self._is_upward):
            row = self.drawn.icicle.drawn_row(self.row)
            own = next((run for run in runs if run.at == row), None)
            chosen = SelectedCells(own.at, own.left, own.right) if own else None
        return Strip(slice_segments(runs, width, palette_of(self), glyphs(), chosen))

    def _number(self, y: int) -> int:
        return self._scroll + (self.size.height - 1 - y if self._is_upward else y)

    def _runs(self, line: int) -> list[Run]:
        tree, width = self._drawing, self.size.width
        runs: list[Run] = []
        for box in tree.icicle.boxes(line, tree.icicle.window(self.root), width):
            key, size = tree.keys[box.row], box.right - box.left
            touches = bool(runs) and (runs[-1].right, runs[-1].key) == (box.left, key)
            levels = bytes((MERGED_LEVEL if box.nodes > 1 else tree.heat[box.row],)) * size
            label = self._label(box.row) if box.nodes == 1 else ""
            flags = WHOLE | (TOUCH if touches else 0)
            runs.append(Run(box.left, box.right, key, label, box.row, box.nodes, flags, levels=levels))
        return runs

    def _label(self, row: int) -> str:
        calls = row - self._drawing.icicle.first_row(row) + 1
        label = self._drawing.labels[row]
        return label if calls == 1 else f"{glyphs().folded_frames} {calls} calls … {label}"

    @property
    def _drawing(self) -> DrawnTree:
        if self.drawn is None:
            raise ValueError("no tree is drawn yet")
        return self.drawn

    def _rows(self) -> tuple[int, int]:
        first, behind = self._drawing.icicle.rows_below(self.root)
        return min(first + self._is_upward, behind), behind

    def _keep_in_view(self) -> None:
        height = max(1, self.size.height)
        if self.drawn is not None and self.row != ROOT:
            number = int(self.drawn.icicle.lines[self.row]) - self._lines.start
            self._scroll = min(max(self._scroll, number - height + 1), number)
        self._scroll = max(0, min(self._scroll, len(self._lines) - height))

    # -- actions --------------------------------------------------------------------------------------------

    def action_up(self) -> None:
        (self.action_callee if self._is_upward else self.action_caller)()

    def action_down(self) -> None:
        (self.action_caller if self._is_upward else self.action_callee)()

    def action_caller(self) -> None:
        if self.row in (ROOT, self.root):
            return
        icicle = self._drawing.icicle
        row = int(icicle.parents[icicle.first_row(icicle.drawn_row(self.row))])
        self.row = row if row >= self._rows()[0] else self.row

    def action_callee(self) -> None:
        if self.row == ROOT:
            return
        self.row = self._drawing.icicle.child(self.row)

    def action_beside(self, by: int) -> None:
        if self.row == ROOT:
            return
        icicle = self._drawing.icicle
        left, right = icicle.window(self.root)
        row = icicle.neighbour(self.row, by, (right - left) // max(1, self.size.width))
        first, behind = self._rows()
        self.row = row if first <= row < behind else self.row

    def action_root(self) -> None:
        if self.row != ROOT:
            self.row = self._rows()[0]

    def action_choose(self) -> None:
        if self.row != ROOT:
            self.post_message(self.Chosen(self.row))

    def row_at(self, x: int, y: int) -> int:
        number = self._number(y)
        if self.drawn is None or not 0 <= number < len(self._lines):
            return ROOT
        runs = self._runs(self._lines[number])
        return next((run.at for run in runs if run.left <= x < run.right), ROOT)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        row = self.row_at(event.x, event.y)
        if row == ROOT:
            return
        if row == self.row:
            self.post_message(self.ZoomAsked(row))
        self.row = row

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll_by(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll_by(-1)

    def _scroll_by(self, lines: int) -> None:
        self._scroll = max(0, min(self._scroll + lines, len(self._lines) - self.size.height))
        self.refresh()
