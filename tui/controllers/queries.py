"""Queries in SQL, typed or saved: their rows listed, and drawn as a lane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from textual.worker import get_current_worker

from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.base.units import format_count
from tracelane.core.logs.counters import QUERY_LANE, WithCounters, with_query_lane, without_query_lane
from tracelane.core.tables.table import Table
from tracelane.core.trace import Trace

from ..actions.counters import computed_lanes
from ..actions.focus import in_view
from ..actions.refusal import Refusal
from ..jobs import background
from ..panels.panel import QUERY
from ..panels.table import TablePane, columns_of
from ..session import LaneKey, RowKey
from ..session_store import SessionStore
from ..stage import Stage
from .controller import Commands, Controller, Verbs
from .counters import clocks_with
from .panels import PanelController

MOST_ROWS = 10_000
"""Rows that are listed at most; a note says that there are more."""
HOW = "{sql} select name, dur, ts, id from slices order by dur desc limit 100 lists rows here"


@dataclass(frozen=True)
class AnsweredQuery:
    """A query and its rows, of one trace with steps by one name."""

    text: str
    key: tuple[Trace, str]
    table: Table


class QueryController(Controller):
    """Commands and contents of the panels of queries."""

    def __init__(self, app: Stage, store: SessionStore, panels: PanelController) -> None:
        """Hold the rows of each panel."""
        super().__init__(app, store)
        self.panels = panels
        self._texts = {QUERY: ""}
        self._titles = {QUERY: "query"}
        for number, (name, text) in enumerate(app.config.queries.items(), 1):
            self._texts[f"{QUERY}-{number}"], self._titles[f"{QUERY}-{number}"] = text, name
        self._answers: dict[str, AnsweredQuery] = {}
        self._running = ""
        panels.fillers.update((panel, partial(self._fill, panel)) for panel in self._texts)

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {"panel-query": partial(self.panels.turn_to, "4"), "sql-lane": self.do_sql_lane}

    def verbs(self) -> Verbs:
        """Return what carries out those with an argument."""
        return {"sql": self.query}

    def query(self, text: str) -> None:
        """List the rows of a query."""
        if not text.strip():
            raise Refusal(HOW)
        if not text.lower().startswith(("select", "with", "values", "(")):
            text = f"select {text}"
        self._texts[QUERY] = text
        self._answers.pop(QUERY, None)
        if self.store.session.panel == QUERY and self.panels.shows_panel:
            self._fill(QUERY)
        self.panels.show_or_say(QUERY)

    @property
    def is_running(self) -> bool:
        """Whether a query is being answered."""
        return bool(self._running)

    def stop(self) -> None:
        """Stop the query that is being answered."""
        self.app.jobs.cancel("query")
        self._say(self._running, "stopped")
        self._running = ""

    def _key(self) -> tuple[Trace, str]:
        return self.store.own_trace, self.store.session.steps

    def _fill(self, panel: str) -> None:
        pane = self.app.main.query_one(f"#{panel}", TablePane)
        answer = self._answers.get(panel)
        if answer is not None and answer.key == self._key():
            if pane.shown_table is not answer.table:
                pane.show(answer.table, columns_of(answer.table), "")
            else:
                pane.tell()
        elif not self._texts[panel]:
            pane.say(HOW)
        elif self._running != panel:
            pane.say("querying… {close} stops it")
            self._running = panel
            self._answer(panel, self._texts[panel], self._key())

    def _say(self, panel: str, text: str) -> None:
        for pane in self.app.main.query(f"#{panel}").results(TablePane):
            pane.say(text)

    @background("query")
    def _answer(self, panel: str, text: str, key: tuple[Trace, str]) -> None:
        """Answer a query away from the screen."""
        from tracelane.core.sql.query import run_query  # nothing of it is needed before the first query

        worker = get_current_worker()
        trace, steps = key
        try:
            with run_query(
                trace, text, step_name=steps or None, cancelled=lambda: worker.is_cancelled
            ) as answer:
                table = answer.table(" ".join(text.split()), MOST_ROWS)
        except Cancelled:
            return
        except (TracelaneError, OSError) as error:
            if not worker.is_cancelled:
                self.app.call_from_thread(self._failed, panel, " ".join(str(error).split()))
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._have_answer, panel, AnsweredQuery(text, key, table.as_read))

    def _failed(self, panel: str, error: str) -> None:
        self._running = ""
        self._say(panel, error)
        self.app.say(error)

    def _have_answer(self, panel: str, answer: AnsweredQuery) -> None:
        self._running = ""
        self._answers[panel] = answer
        if self.panels.shows_panel and self.store.session.panel == panel:
            self._fill(panel)

    # -- as a lane ------------------------------------------------------------------------------------------

    def do_sql_lane(self) -> None:
        """Draw the rows of the query on show as a lane, or remove that lane."""
        panel = self.store.session.panel if self.store.session.panel in self._texts else QUERY
        title = self._titles[panel]
        if self._lane_of(title, self.store.trace) is not None:
            base = self.store.trace.below_logs
            if isinstance(base, WithCounters):
                self._show_base(without_query_lane(base, title), None)
            self.app.say(f"the lane of {title} is removed")
            return
        answer = self._answers.get(panel)
        if answer is None:
            raise Refusal("no query yet: {sql} asks one")
        self._make_lane(answer.table.counted_from(0), title)

    @background("query lane")
    def _make_lane(self, table: Table, title: str) -> None:
        """Count how many rows run at a time, away from the screen."""
        worker = get_current_worker()
        base = with_query_lane(self.store.trace.below_logs, table, title)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._have_lane, base, table, title)

    def _have_lane(self, base: WithCounters, table: Table, title: str) -> None:
        self._show_base(base, title)
        rows = format_count(len(table))
        self.app.say(
            f"{title}: how many of {rows} rows run at a time; {{pin}} pins the lane, {{sql-lane}} removes it"
        )

    def _show_base(self, base: WithCounters, title: str | None) -> None:
        """Show a trace with other computed lanes, the one of a title in view."""
        trace = self.store.trace.with_below_logs(base)
        lane = None if title is None else self._lane_of(title, trace)
        session = self.store.session
        session = replace(session, selection=None, clocks=clocks_with(session.clocks, base))
        if lane is not None:
            session = replace(session, focus=RowKey(lane, 0))
            session = in_view(session, self.store.layout_for(session, trace), self.store.lane_lines)
        self.store.show_trace(trace, session)

    def _lane_of(self, title: str, trace: Trace) -> LaneKey | None:
        """Return the lane of a query."""
        base = trace.below_logs
        if not isinstance(base, WithCounters):
            return None
        titles = [one.title for one in base.computed.counters if one.kind == QUERY_LANE]
        lanes = computed_lanes(trace, QUERY_LANE)
        return dict(zip(titles, lanes)).get(title)
