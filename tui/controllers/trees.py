"""The panels that draw and list the call tree of a range; its calls lead to their slices."""

from __future__ import annotations

from collections.abc import Sequence

from textual.worker import get_current_worker

from tracelane.core.tables.hit_table import HitTable, hit_table
from tracelane.core.tables.registry import PANELS
from tracelane.core.tables.tree import sandwich
from tracelane.core.tables.tree_slices import slices_of_node

from ..jobs import background
from ..panels.flame import DrawnTree
from ..panels.panel import TREE_SLICES, TREES
from ..panels.table import TablePane
from ..panels.tree import TreePane
from ..recent import Recent
from ..session import Session
from ..session_store import SessionStore
from ..stage import Stage
from .controller import Controller
from .hits import hit_columns
from .panels import PanelController
from .tables import Key, scope_of

MOST_TREES = 4
"""The number of trees that are held, so that going back to a range shows its tree at once."""


class TreeController(Controller):
    """Contents of the panels of call trees."""

    def __init__(self, app: Stage, store: SessionStore, panels: PanelController) -> None:
        """Hold the trees counted last."""
        super().__init__(app, store)
        self.panels = panels
        self._trees: Recent[Key, DrawnTree] = Recent(MOST_TREES)
        self._slices: HitTable | None = None
        self._takes_arrows = False  # whether the slices are to have the arrows once they are listed
        panels.fillers.update((name, self.fill) for name in TREES)
        panels.fillers[TREE_SLICES] = self._fill_slices

    def _key(self) -> Key:
        now = self.store.session
        return self.store.trace, now.panel, now.range, now.only, now.filter, now.clocks, now.steps

    def fill(self) -> None:
        """Show the call tree of the panel on show; compute it where it is not held."""
        pane = self.app.main.query_one(f"#{self.store.session.panel}", TreePane)
        tree = self._trees.get(self._key())
        if tree is not None:
            pane.show_tree(tree)
            return
        pane.say("counting…")
        self._count(self._key(), self.store.session)

    @background("table")
    def _count(self, key: Key, session: Session) -> None:
        """Compute a call tree in the background, and lay it out."""
        worker = get_current_worker()
        row, panel = PANELS[session.panel]
        scope = scope_of(self.store.trace, session, lambda: worker.is_cancelled, self.store.whole_left)
        tree = DrawnTree.of(scope.trace, row.run(scope, **dict(panel.options))[panel.table])
        if not worker.is_cancelled:
            self.app.call_from_thread(self._have_tree, key, tree)

    def _have_tree(self, key: Key, tree: DrawnTree) -> None:
        self._trees.put(key, tree)
        if self.panels.shows_panel and key == self._key():
            self.fill()

    # -- callers and callees ------------------------------------------------------------------------------

    def sandwich_asked(self, message: TreePane.SandwichAsked) -> None:
        """Show the callers and the callees of a name."""
        tree = self._trees.get(self._key())
        if dict(PANELS[self.store.session.panel][1].options).get("bottom_up"):
            self.app.say("callers and callees need the tree from the top: {panel-tree} shows it")
        elif tree is not None:
            self._lay_sandwich(message.pane, tree, message.name)

    @background("table")
    def _lay_sandwich(self, pane: TreePane, tree: DrawnTree, name: str) -> None:
        """Merge the callers and the callees of a name away from the screen."""
        callers, callees = sandwich(tree.table, tree.icicle.parents, name)
        both = [DrawnTree.of(self.store.trace, table) for table in (callers, callees)]
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._have_sandwich, pane, tree, both)

    def _have_sandwich(self, pane: TreePane, tree: DrawnTree, both: Sequence[DrawnTree]) -> None:
        if self.panels.shows_panel and self._trees.get(self._key()) is tree:
            pane.show_sandwich(*both)

    # -- the slices of a call -------------------------------------------------------------------------------

    def call_chosen(self, message: TreePane.CallChosen) -> None:
        """List the slices of a call."""
        tree = self._trees.get(self._key())
        if tree is not None and message.row < len(tree.icicle):
            self._list_slices(self.store.session, tree.path(message.row))

    @background("tree slices")
    def _list_slices(self, session: Session, path: list[str]) -> None:
        """Look for the slices of a call away from the screen."""
        worker = get_current_worker()
        options = dict(PANELS[session.panel][1].options)
        scope = scope_of(self.store.trace, session, lambda: worker.is_cancelled, self.store.whole_left)
        slices = slices_of_node(scope, path, options.get("by", "all"), bool(options.get("bottom_up", False)))
        table = hit_table(scope.trace, slices, lambda: worker.is_cancelled)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._have_slices, table)

    def _have_slices(self, table: HitTable) -> None:
        self._slices = table
        self._takes_arrows = True
        self.panels.show(TREE_SLICES)
        if self.panels.shows_panel:
            self._fill_slices()

    def _fill_slices(self) -> None:
        pane = self.app.main.query_one(f"#{TREE_SLICES}", TablePane)
        if self._slices is None:
            pane.say("Enter on a call of the tree lists its slices")
        elif pane.shown_table is not self._slices.table:
            pane.show(self._slices.table, hit_columns(self._slices), "duration_ns")
            if self._takes_arrows:
                self.app.main.set_focus(pane.first_focus)
            self._takes_arrows = False
        else:
            pane.tell()
