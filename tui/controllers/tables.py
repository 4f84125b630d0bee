"""Panels that are tables of an analysis: computed in a thread, outdated results dropped, Enter jumps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from textual.worker import get_current_worker

from tracelane.core.base.progress import CancelledCallback, never
from tracelane.core.query.hits import Hits
from tracelane.core.tables.analysis import Tab
from tracelane.core.tables.compare import by_steps, compare, with_first
from tracelane.core.tables.registry import PANELS, TABS
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.table import Table
from tracelane.core.trace import Trace

from ..actions import ranges
from ..draw.only import only_lanes
from ..jobs import background
from ..lanes.look import palette_of
from ..panels.panel import TREES
from ..panels.table import TablePane, columns_of, with_swatches
from ..recent import Recent
from ..session import Session
from ..session_store import SessionStore
from ..stage import Stage
from ..steps import pair_of, step_marks
from ..widgets.table import ColumnView, VirtualTable
from .controller import Commands, Controller
from .panels import PanelController
from .selection import SelectionController

MOST_TABLES = 8
"""The number of tables that are held, so that going back to a range shows its table at once."""


Key = tuple[object, ...]


def scope_of(
    trace: Trace, session: Session, cancelled: CancelledCallback = never, left: Hits | None = None
) -> Scope:
    """Return what the session's tables speak of: the range or all, what `:only` and `:filter` leave. A range
    that is a step's time exactly means the step: the device work that it launched, whenever it ran.

    `left` is what the filter leaves, if it is known already: else it may have to look through the arguments
    in the file. Raises Cancelled.
    """
    lanes = where = None
    if session.filter:
        from tracelane.core.query.filter import parse
        from tracelane.core.trace.hit_search import is_of, matches

        if left is None or left.filter.text != session.filter or not is_of(left, trace):
            left = matches(trace, parse(session.filter), session.clocks, cancelled)
        where = left.where
    if session.only:
        lanes = tuple(sorted(only_lanes(trace, session.only)))
    scope = Scope(
        trace, session.range, lanes, where, session.clocks, steps=session.steps, cancelled=cancelled
    )
    return scope if session.range is None or pair_of(trace) is not None else _of_step(scope, session.range)


def _of_step(scope: Scope, span: tuple[int, int]) -> Scope:
    """Return a scope narrowed to the step that takes this time exactly, the same scope where none does."""
    marks = step_marks(scope.trace, scope.clocks, scope.steps)
    if all((mark.start, mark.end) != span for mark in marks):
        return scope
    from tracelane.core.tables.attribution import scope_of_step
    from tracelane.core.tables.step_spans import step_spans

    steps = step_spans(scope.trace, scope.clocks, scope.steps or None)
    spans = [] if steps is None else list(zip(steps.starts.tolist(), steps.ends.tolist()))
    return scope if steps is None or span not in spans else scope_of_step(scope, steps, spans.index(span))


class TableController(Controller):
    """Commands and contents of the table panels."""

    def __init__(
        self, app: Stage, store: SessionStore, panels: PanelController, selection: SelectionController
    ) -> None:
        """Hold the tables made last."""
        super().__init__(app, store)
        self.panels = panels
        self.selection = selection
        self._tables: Recent[Key, tuple[Table, list[ColumnView]]] = Recent(MOST_TABLES)
        panels.fillers.update((name, self.fill) for name in PANELS if name not in TREES)

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        tabs = {f"panel-{tab.name}": partial(self._turn_to, tab) for tab in TABS}
        panels = {f"panel-{name}": partial(self._show_panel, name) for name in PANELS}
        return panels | tabs

    def _key(self, session: Session | None = None) -> Key:
        now = session or self.store.session
        baseline = None if now.baseline == now.range else now.baseline  # nothing changes against itself
        return now.panel, now.range, now.only, now.filter, now.clocks, now.steps, baseline

    def fill(self) -> None:
        """Show the table of the panel on show, or make it."""
        name = self.store.session.panel
        pane = self.app.main.query_one(f"#{name}", TablePane)
        counted = self._tables.get(self._key())
        if counted is not None:
            if pane.shown_table is not counted[0]:
                pane.show(*counted, PANELS[name][1].sort)
            else:
                pane.tell()
            return
        pane.say("counting…")
        self._make_table(name, self._key(), self.store.session)

    @background("table")
    def _make_table(self, name: str, key: Key, session: Session) -> None:
        """Make a table away from the screen."""
        worker = get_current_worker()
        table = self._table(name, session, lambda: worker.is_cancelled)
        colours = partial(palette_of, self.app.main)
        columns = with_swatches(columns_of(table, PANELS[name][1].sort), table, self.store.trace, colours)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._have_table, key, table, columns)

    def _table(self, name: str, session: Session, cancelled: CancelledCallback) -> Table:
        """Return a panel's table, held against that of the baseline if there is one. Raises Cancelled."""
        row, panel = PANELS[name]
        options = dict(panel.options)
        scope = scope_of(self.store.trace, session, cancelled, self.store.whole_left)
        if self._key(session)[-1] is None:
            return row.run(scope, **options)[panel.table]
        baseline = replace(session, range=session.baseline, baseline=None)
        counted = self._tables.get(self._key(baseline))
        against = scope_of(self.store.trace, baseline, cancelled, self.store.whole_left)
        past = row.run(against, **options)[panel.table] if counted is None else counted[0]
        now = row.run(replace(scope, against=against.when), **options)[panel.table]
        keys = with_first if panel.to_first else by_steps(session.steps)
        return compare(now, past, keys, scope=now.scope)

    def _have_table(self, key: Key, table: Table, columns: list[ColumnView]) -> None:
        self._tables.put(key, (table, columns))
        if self.panels.shows_panel and key == self._key():
            self.fill()

    def row_chosen(self, message: VirtualTable.RowChosen) -> None:
        """Go to the longest slice of a row."""
        pane = message.table.parent
        if not isinstance(pane, TablePane) or (table := pane.shown_table) is None:
            return
        jump = table.jump(message.row)
        if jump is None:
            self.app.say("this row has no single slice to go to")
            return
        if self.store.trace.opens:  # the row's slice is one of the rank's own trace
            self.app.wanted_rank = jump[0]
            self.app.exit()
            return
        identity = self.store.trace.slice_id_of(*jump)
        self.selection.jump(identity.source, identity.ordinal)

    def _turn_to(self, tab: Tab) -> None:
        """Show the panel of a tab, or the next one of it."""
        if tab.takes_step:
            self._take_step()
        self.panels.turn_to(tab.key)

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
            self.store.go(replace(session, range=span, anchor=None))
