"""Panels that are tables or call trees of an analysis: computed in a thread, outdated results dropped, Enter
jumps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeAlias

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.safe_text import safe
from tracelane.core.tables.analysis import Tab
from tracelane.core.tables.compare.compare import by_kind, compare, with_first
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.slice_table import hit_table, slices_of_node
from tracelane.core.tables.host.tree import sandwich
from tracelane.core.tables.registry import PANELS, TABS

from ..actions import ranges
from ..actions.ranges import scope_of
from ..lanes.look import palette_of
from ..panels.flame import DrawnTree
from ..panels.panel import TREE_SLICES, TREES
from ..panels.table import TablePane, columns_of, with_swatches
from ..panels.tree import TreePane
from ..session import Session
from ..stage import Commands, Controller, Recent, Stage, hears
from ..view_state import OpenRank
from ..widgets.table import ColumnView, VirtualTable
from .hits import hit_columns
from .panels import PanelController

MAX_TABLES, MAX_TREES = 8, 4
"""The number of each that are held, so that going back to a range shows its table at once."""
MAX_ROWS = 1 << 20
"""The rows of all tables that are held, but for the newest: 4.6 million segments of a path are 380 MB."""
Key: TypeAlias = tuple[object, ...]


class TableController(Controller):
    def __init__(self, app: Stage, panels: PanelController) -> None:
        super().__init__(app)
        self.panels = panels
        self._tables: Recent[Key, tuple[Table, list[ColumnView]]] = Recent(
            MAX_TABLES, lambda held: len(held[0]), MAX_ROWS
        )
        self._trees: Recent[Key, DrawnTree] = Recent(MAX_TREES)
        self._slices: Table | None = None  # those of a call
        self._takes_arrows = False  # whether they are to have the arrows once they are listed

    def commands(self) -> Commands:
        tabs = {f"panel-{tab.name}": partial(self._turn_to, tab) for tab in TABS}
        panels = {f"panel-{name}": partial(self._show_panel, name) for name in PANELS}
        return panels | tabs

    def fillers(self) -> Commands:
        return {**dict.fromkeys(PANELS, self.fill), TREE_SLICES: self._fill_slices}

    def _key(self, session: Session | None = None) -> Key:
        now = session or self.store.session
        baseline = None if now.baseline == now.range else now.baseline  # nothing changes against itself
        what = now.range, now.only, now.filter, now.clocks, now.steps
        return (*what, self.store.trace, now.panel, None if now.panel in TREES else baseline)

    def fill(self) -> None:
        """Show what the panel on show holds, or compute it."""
        session, key = self.store.session, self._key()
        pane = self.app.main.query_one(f"#{session.panel}", TablePane)
        table, tree = self._tables.get(key), self._trees.get(key)
        if isinstance(pane, TreePane) and tree is not None:
            pane.show_tree(tree)
        elif table is None:
            pane.say("counting…")
            have = partial(self._have, key)
            self.app.jobs.ask("table", partial(self._counted, session), have, partial(self._failed, key))
        elif pane.shown_table is not table[0]:
            pane.show(*table, PANELS[session.panel][1].sort)
        else:
            pane.tell()

    def _counted(
        self, session: Session, cancelled: CancelledCallback
    ) -> tuple[Table, list[ColumnView]] | DrawnTree:
        """Compute what a panel shows, and lay it out. Raises Cancelled."""
        table, sort = self._table(session, cancelled), PANELS[session.panel][1].sort
        if session.panel in TREES:
            return DrawnTree.of(self.store.trace, table)
        colours = partial(palette_of, self.app.main)
        return table, with_swatches(columns_of(table, sort), table, self.store.trace, colours)

    def _table(self, session: Session, cancelled: CancelledCallback) -> Table:
        """Return a panel's table, held against that of the baseline if there is one."""
        row, panel = PANELS[session.panel]
        options = dict(panel.options)
        scope = scope_of(self.store.trace, session, cancelled, self.store.now.search.whole_left)
        if self._key(session)[-1] is None:
            return row.run(scope, **options)[panel.table]
        baseline = session._replace(range=session.baseline, baseline=None)
        counted = self._tables.get(self._key(baseline))
        against = scope_of(self.store.trace, baseline, cancelled, self.store.now.search.whole_left)
        past = row.run(against, **options)[panel.table] if counted is None else counted[0]
        now = row.run(replace(scope, against=against.when), **options)[panel.table]
        keys = with_first if panel.to_first else by_kind(session.steps)
        return compare(now, past, keys, scope=now.scope)

    def _have(self, key: Key, counted: tuple[Table, list[ColumnView]] | DrawnTree) -> None:
        if isinstance(counted, DrawnTree):
            self._trees.put(key, counted)
        else:
            self._tables.put(key, counted)
        if self.panels.shows_panel and key == self._key():
            self.fill()

    def _failed(self, key: Key, error: TracelaneError | OSError) -> None:
        """Say in the panel why there is no such table of what is open."""
        if not isinstance(error, UsageError):
            self.app.report_error(error)
        elif self.panels.shows_panel and key == self._key():
            self.app.main.query_one(f"#{self.store.session.panel}", TablePane).say_alone(safe(str(error)))

    @hears(VirtualTable.RowChosen)
    def row_chosen(self, message: VirtualTable.RowChosen) -> None:
        """Go to the longest slice of a row."""
        pane = message.table.parent
        if not isinstance(pane, TablePane) or (table := pane.shown_table) is None:
            return
        jump = table.jump(message.row)
        if jump is None:
            self.app.say("this row has no single slice to go to")
        elif self.store.trace.opens:  # the row's slice is one of the rank's own trace
            self.app.leave_for(OpenRank(jump[0]))
        else:
            self.app.jump(self.store.trace.slice_id_of(*jump))

    def _turn_to(self, tab: Tab) -> None:
        """Show the panel of a tab, or the next one of it."""
        if tab.takes_step:
            self._take_step()
        self.panels.turn_to(f"panel-{tab.name}")

    def _show_panel(self, name: str) -> None:
        """Show a panel; the first one of an analysis, where one of them is on show, shows the next."""
        row, _ = PANELS[name]
        if next(tab for tab in TABS if tab.name == row.tab).takes_step:
            self._take_step()
        names = [panel.name for panel in row.panels]
        panel = self.store.session.panel
        if name == names[0] and panel in names:
            name = names[(names.index(panel) + 1) % len(names)]
        self.panels.show_or_say(name)

    def _take_step(self) -> None:
        """Take the step that was gone to last as the range."""
        session = self.store.session
        if session.aim == "step" and (span := ranges.aimed_span(self.store.scene)) is not None:
            self.store.go(session._replace(range=span, anchor=None))

    # -- call trees: callers and callees, the slices of a call ---------------------------------------------

    @hears(TreePane.SandwichAsked)
    def sandwich_asked(self, message: TreePane.SandwichAsked) -> None:
        """Show the callers and the callees of a name."""
        tree = self._trees.get(self._key())
        if dict(PANELS[self.store.session.panel][1].options).get("bottom_up"):
            self.app.say("callers and callees need the tree from the top: {panel-tree} shows it")
        elif tree is not None:
            trace, whole = self.store.trace, tree

            def both(_: CancelledCallback) -> list[DrawnTree]:
                tables = sandwich(whole.table, whole.icicle.parents, message.name)
                return [DrawnTree.of(trace, table) for table in tables]

            def have(both: list[DrawnTree]) -> None:
                if self.panels.shows_panel and self._trees.get(self._key()) is whole:
                    message.pane.show_sandwich(*both)
                    self.app.give_arrows(message.pane.flame)

            self.app.jobs.ask("table", both, have)

    @hears(TreePane.CallChosen)
    def call_chosen(self, message: TreePane.CallChosen) -> None:
        """List the slices of a call."""
        session, tree = self.store.session, self._trees.get(self._key())
        if tree is None or message.row >= len(tree.icicle):
            return
        path, options = tree.path(message.row), dict(PANELS[session.panel][1].options)
        trace, left = self.store.trace, self.store.now.search.whole_left

        def slices(cancelled: CancelledCallback) -> Table:
            scope = scope_of(trace, session, cancelled, left)
            by, bottom_up = options.get("by", "all"), bool(options.get("bottom_up", False))
            return hit_table(scope.trace, slices_of_node(scope, path, by, bottom_up), cancelled)

        self.app.jobs.ask("tree slices", slices, self._have_slices)

    def _have_slices(self, table: Table) -> None:
        self._slices, self._takes_arrows = table, True
        self.panels.show(TREE_SLICES)
        if self.panels.shows_panel:
            self._fill_slices()

    def _fill_slices(self) -> None:
        pane = self.app.main.query_one(f"#{TREE_SLICES}", TablePane)
        if self._slices is None:
            pane.say("Enter on a call of the tree lists its slices")
        elif pane.shown_table is not self._slices:
            pane.show(self._slices, hit_columns(self._slices), "duration_ns")
            if self._takes_arrows:
                self.app.give_arrows(pane.first_focus)
            self._takes_arrows = False
        else:
            pane.tell()
