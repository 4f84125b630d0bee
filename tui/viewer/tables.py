"""Panels that are tables of an analysis: computed in a thread, outdated results dropped, Enter jumps."""

from __future__ import annotations

from dataclasses import replace

from textual import on
from textual.worker import get_current_worker

from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.base.progress import CancelledCallback, never
from tracelane.core.base.units import format_ns
from tracelane.core.query.hits import Hits
from tracelane.core.tables.delta import delta, delta_to_first
from tracelane.core.tables.registry import PANELS
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.table import Table
from tracelane.core.trace import Trace

from ..actions import ranges
from ..actions.table import Scene
from ..config import Config
from ..draw.only import only_lanes
from ..panels.table import TablePane, columns_of
from ..session import Session
from ..steps import step_marks
from ..widgets.table import Column, VirtualTable
from .background import background
from .following import Following
from .panels import Panels

KEPT = 8
"""Tables that are kept, so that going back to a range shows it at once."""


Key = tuple[object, ...]


def scope_of(
    trace: Trace, session: Session, cancelled: CancelledCallback = never, left: Hits | None = None
) -> Scope:
    """Return what the session's tables speak of: the range or all, what `:only` and `:filter` leave.

    `left` is what the filter leaves, if it is known already: else it may have to look through the arguments
    in the file. Raises Cancelled.
    """
    lanes = where = None
    if left is not None and left.filter.text == session.filter and left.indexes == trace.indexes:
        where = left.where
    elif session.filter:
        from tracelane.core.query.filter import parse
        from tracelane.core.query.hits import matches

        where = matches(trace, parse(session.filter), session.clocks, cancelled).where
    if session.only:
        lanes = tuple(sorted(only_lanes(trace, session.only)))
    label = "" if session.range is None else _step_label(trace, session, session.range)
    return Scope(
        trace,
        session.range,
        lanes,
        where,
        session.clocks,
        label=label,
        steps=session.steps,
        cancelled=cancelled,
    )


def _step_label(trace: Trace, session: Session, span: tuple[int, int]) -> str:
    """Return what the step is called that takes this time exactly, "" where none does."""
    steps = step_marks(trace, session.clocks, session.steps)
    return next((step.title for step in steps if (step.start, step.end) == span), "")


class Tables(Panels, Following):
    """Commands and contents of the table panels."""

    def __init__(self, trace: Trace, session: Session | None, config: Config) -> None:
        """Hold the tables made last."""
        super().__init__(trace, session, config)
        self._tables: dict[Key, tuple[Table, list[Column]]] = {}

    def _fill_panel(self) -> None:
        if self.session.panel in PANELS:
            self._fill_table(self.session.panel)
        else:
            super()._fill_panel()

    def _key(self, session: Session | None = None) -> Key:
        now = session or self.session
        baseline = None if now.baseline == now.range else now.baseline  # nothing changes against itself
        return now.panel, now.range, now.only, now.filter, now.clocks, now.steps, baseline

    def _fill_table(self, name: str) -> None:
        pane = self.main.query_one(f"#{name}", TablePane)
        found = self._tables.get(self._key())
        if found is not None:
            if pane.shown_table is not found[0]:
                pane.show(*found, PANELS[name][1].sort)
            else:
                pane.tell()
            return
        pane.say("counting…")
        self._make_table(name, self._key(), self.session)

    @background("table")
    def _make_table(self, name: str, key: Key, session: Session) -> None:
        """Make a table away from the screen."""
        worker = get_current_worker()
        try:
            table = self._table(name, session, lambda: worker.is_cancelled)
            columns = columns_of(table)
        except Cancelled:
            return
        except (TracelaneError, OSError) as error:
            if not worker.is_cancelled:
                self.call_from_thread(self.say, str(error))
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._have_table, key, table, columns)

    def _table(self, name: str, session: Session, cancelled: CancelledCallback) -> Table:
        """Return a panel's table, held against that of the baseline if there is one. Raises Cancelled."""
        row, panel = PANELS[name]
        options = dict(panel.options)
        scope = scope_of(self.trace, session, cancelled, self.whole_left)
        if self._key(session)[-1] is None:
            return row.run(scope, **options)[panel.table]
        kept = replace(session, range=session.baseline, baseline=None)
        found = self._tables.get(self._key(kept))
        against = scope_of(self.trace, kept, cancelled, self.whole_left)
        past = row.run(against, **options)[panel.table] if found is None else found[0]
        now = row.run(replace(scope, against=against.when), **options)[panel.table]
        return (delta_to_first if panel.to_first else delta)(now, past, now.scope)

    def _have_table(self, key: Key, table: Table, columns: list[Column]) -> None:
        while len(self._tables) >= KEPT:
            self._tables.pop(next(iter(self._tables)))
        self._tables[key] = table, columns
        if self.shows_panel and key == self._key():
            self._fill_table(self.session.panel)

    @on(VirtualTable.RowChosen)
    def _table_row_chosen(self, message: VirtualTable.RowChosen) -> None:
        """Go to the longest slice of a row."""
        pane = message.table.parent
        if not isinstance(pane, TablePane) or (table := pane.shown_table) is None:
            return
        jump = table.jump(message.row)
        if jump is None:
            self.say("this row has no single slice to go to")
            return
        source, position = jump
        ordinal = int(self.trace.indexes[source].column("slices.ordinal")[position])
        self.action_jump(source, ordinal)

    def do_panel_ops(self) -> None:
        """Show the ops."""
        self._turn_to("3")

    def do_panel_kernels(self) -> None:
        """Show the kernels."""
        self._turn_to("4")

    def do_panel_steps(self) -> None:
        """Show the steps."""
        self._turn_to("5")

    def do_panel_time(self) -> None:
        """Show where the devices' time goes; again: why streams stood still, their gaps, the launches."""
        self._turn_to("6")

    def do_panel_memory(self) -> None:
        """Show the allocators; again: what was live at their peaks; again: the copies."""
        self._turn_to("7")

    def do_panel_ranks(self) -> None:
        """Show the ranks; again: their collectives, the slowest rank of each step."""
        self._turn_to("9")

    def do_panel_compile(self) -> None:
        """Show what torch.compile did; again: its regions, graphs, steps, code, phases."""
        self._turn_to("8")

    def do_baseline(self) -> None:
        """Keep the range or the step as baseline, or drop it."""
        before = self.session.baseline
        self.go(ranges.baseline(Scene(self.trace, self.session, self.layout_now, self.lane_lines)))
        now = self.session.baseline
        if now is None:
            self.say("no baseline any more")
        elif now != before:
            self.say(f"baseline of {format_ns(now[1] - now[0])}: tables of another range show what changed")

    def do_panel_table(self) -> None:
        """Show what happens in the range, by name; again: how busy its lanes are."""
        self._turn_to("t")
