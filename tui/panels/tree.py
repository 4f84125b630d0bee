"""The panel of a call tree: a drawing and a table of the same calls, one beside or below the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from tracelane.core.base.units import format_count, format_ns
from tracelane.core.tables.host.tree_nodes import ROOT

from ..draw.glyphs import fit_middle
from ..widget_message import WidgetMessage
from ..widgets.bars import Bar
from ..widgets.table import ColumnView, VirtualTable
from ..widgets.text_pane import follow_size
from .flame import DrawnTree, Flame
from .table import TablePane, columns_of

WIDE_FROM = 110
"""Cells from which on drawing and table stand beside each other."""
TALL_FROM = 16
"""Lines from which on they stand one below the other; in less room one takes the other's place."""
NAME_SHARE = 40
"""Percent of the line above them that the chosen call's name gets."""
MAX_INDENT = 24
"""Cells by which names in the table are moved to the right at most."""


class TreePane(TablePane):
    """Draws and lists a call tree; a call can take the whole width."""

    DEFAULT_CSS = """
    TreePane > .tree--parts { height: 1fr; layout: vertical; }
    TreePane.-wide > .tree--parts { layout: horizontal; }
    TreePane > .tree--parts > Vertical { height: 1fr; }
    TreePane.-wide Vertical { width: 3fr; }
    TreePane .tree--callers { display: none; }
    TreePane.-sandwich .tree--callers { display: block; }
    TreePane.-wide VirtualTable { width: 2fr; margin-left: 1; }
    TreePane.-small VirtualTable { display: none; }
    TreePane.-small.-listed Vertical { display: none; }
    TreePane.-small.-listed VirtualTable { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "zoom", show=False, id="focus"),
        Binding("u,backspace", "zoom_out", show=False, id="back"),
        Binding("*", "sandwich", show=False, id="same-name"),
    ]

    @dataclass
    class CallChosen(WidgetMessage):
        """The slices of a call are asked for."""

        pane: TreePane
        row: int

    @dataclass
    class SandwichAsked(WidgetMessage):
        """Callers and callees of a name are asked for."""

        pane: TreePane
        name: str

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.flame, self.callers = Flame(), Flame(is_upward=True)
        self.callers.add_class("tree--callers")
        self._tree: DrawnTree | None = None
        self._first = 0  # the row of the tree that the table's first one is

    def compose(self) -> ComposeResult:
        yield Bar()
        with Container(classes="tree--parts"):
            with Vertical():
                yield self.callers
                yield self.flame
            yield self.table

    def on_mount(self) -> None:
        self.watch(self.table, "cursor", self._table_moved, init=False)
        follow_size(self, self._fit)

    def _fit(self) -> None:
        width, height = self.outer_size
        self.set_class(width >= WIDE_FROM, "-wide")
        self.set_class(width < WIDE_FROM and height < TALL_FROM, "-small")

    @property
    def first_focus(self) -> Widget:
        return self.flame

    def focus_after(self, focused: Widget) -> Widget | None:
        if focused is self.flame and self.is_sandwich:
            return self.callers
        if focused in (self.flame, self.callers) and self.table.row_count:
            self.set_class(True, "-listed")
            return self.table
        self.set_class(False, "-listed")
        return None

    # -- what is shown --------------------------------------------------------------------------------------

    def show_tree(self, tree: DrawnTree) -> None:
        """Draw and list a tree, all of it; as long as it is the same one, what is seen of it stays."""
        if self._tree is not tree:
            self._tree = tree
            self.set_class(False, "-sandwich")
            self._show_from(tree, ROOT)
        self.tell()

    def show_sandwich(self, callers: DrawnTree, callees: DrawnTree) -> None:
        """Draw the callers of a name above what it calls; the table lists what it calls."""
        self.set_class(True, "-sandwich")
        self.callers.show(callers)
        self._show_from(callees, ROOT)

    @property
    def is_sandwich(self) -> bool:
        return self.has_class("-sandwich")

    @property
    def _active(self) -> Flame:
        return self.callers if self.callers.has_focus else self.flame

    def _show_from(self, tree: DrawnTree, root: int, row: int | None = None) -> None:
        self.flame.show(tree, root, row)
        first, behind = tree.icicle.rows_below(root)
        self._first = first
        self.shown_table = tree.table if root == ROOT else tree.table.take(np.arange(first, behind))
        self.table.show(_columns(tree, first, behind), behind - first)
        self._show_row(self.flame.row)
        self.tell()

    def _show_row(self, row: int) -> None:
        rows = np.flatnonzero(self.table.order == row - self._first)
        if len(rows):
            self.table.cursor = int(rows[0])

    def _table_moved(self) -> None:
        row = self.table.row
        if self.table.has_focus and row is not None:
            self.flame.row = row + self._first
            self._say_all()

    @on(Flame.Moved)
    def _flame_moved(self, message: Flame.Moved) -> None:
        message.stop()
        if not self.table.has_focus:
            if self._active is self.flame:
                self._show_row(message.row)
            self._say_all()

    def _say_all(self) -> None:
        tree, row = self._active.drawn, self._active.row
        if tree is None or not self._says_scope:
            return
        table = tree.table
        if row == ROOT:
            self._put(table.scope, *table.notes)
            return
        total, own, calls = (int(table.numbers(key)[row]) for key in ("total_ns", "self_ns", "calls"))
        share = 100 * float(table.data["share"][row])
        sums = f"{format_ns(total)} {share:.1f} %, self {format_ns(own)}, {format_count(calls)} "
        calls_text = "call" if calls == 1 else "calls"
        name = fit_middle(tree.labels[row], max(12, self.size.width * NAME_SHARE // 100)).rstrip()
        out = "{back}: out" if self.is_sandwich or self.flame.root != ROOT else "{same-name}: its callers"
        keys = out if self.has_focus_within else "{other-pane}: arrows here"
        self._put(name, sums + calls_text, keys, table.scope, *table.notes)

    # -- actions --------------------------------------------------------------------------------------------

    def action_zoom(self) -> None:
        """Give the chosen call the whole width; again: all of them together."""
        if self.flame.drawn is not None and self._active is self.flame:
            row = self.flame.row
            self._show_from(self.flame.drawn, ROOT if row == self.flame.root else row, row)

    def action_zoom_out(self) -> None:
        """Give the width to the call around the one that has it; go back from callers and callees."""
        tree, root = self.flame.drawn, self.flame.root
        if tree is not None and root != ROOT:
            self._show_from(tree, int(tree.icicle.parents[root]), self.flame.row)
        elif self._tree is not None and self.is_sandwich:
            self.set_class(False, "-sandwich")
            self._show_from(self._tree, ROOT)
            self.screen.set_focus(self.flame)

    def action_sandwich(self) -> None:
        """Show what calls the chosen name, and what it calls, wherever that is."""
        tree, row = self._active.drawn, self._active.row
        if tree is not None and row != ROOT:
            self.post_message(self.SandwichAsked(self, tree.table.texts("name")[row]))

    @on(Flame.ZoomAsked)
    def _zoom_asked(self, message: Flame.ZoomAsked) -> None:
        message.stop()
        self.action_zoom()

    @on(Flame.Chosen)
    def _flame_chosen(self, message: Flame.Chosen) -> None:
        message.stop()
        self._choose(message.row)

    @on(VirtualTable.RowChosen)
    def _row_chosen(self, message: VirtualTable.RowChosen) -> None:
        message.stop()
        self._choose(message.row + self._first)

    def _choose(self, row: int) -> None:
        """List the slices of a call; among callers and callees show those of another name."""
        if self.is_sandwich:
            self.action_sandwich()
        else:
            self.post_message(self.CallChosen(self, row))


def _columns(tree: DrawnTree, first: int, behind: int) -> list[ColumnView]:
    """Return the columns of the rows from `first` on; sorted by name they stand as they lie in each other."""
    depths = tree.icicle.depths
    top = int(depths[first]) if first < behind else 0

    def name(row: int) -> str:
        return " " * min(int(depths[row + first]) - top, MAX_INDENT) + tree.labels[row + first]

    numbers = columns_of(replace(tree.table, columns=tree.table.columns[1:]), "total_ns")
    return [
        ColumnView(tree.table.columns[0].heading, 0, name, keys=lambda: np.arange(behind - first), chief=1),
        *(_moved(column, first, behind) for column in numbers),
    ]


def _moved(column: ColumnView, first: int, behind: int) -> ColumnView:
    """Return a column without the rows before `first` and from `behind` on."""
    of_all, share = column.keys, column.part
    keys = None if of_all is None else lambda: of_all()[first:behind]
    part = None if share is None else lambda row: share(row + first)
    return replace(column, text=lambda row: column.text(row + first), keys=keys, part=part)
