"""Lanes that are computed from the trace: memory over time, queue lengths, the rows of queries in SQL, which
are listed too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tracelane.core.base.clock import Clocks
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.units import format_count
from tracelane.core.logs.counters import (
    MEMORY,
    QUERY_LANE,
    QUEUE,
    WithCounters,
    of_devices,
    with_lanes,
    with_query_lane,
    without_query_lane,
)
from tracelane.core.tables.frame.table import Table
from tracelane.core.trace import Trace

from ..actions.lanes import NO_LANES, computed_lanes, toggle_computed_lanes
from ..actions.scene import Refusal
from ..actions.view import in_view
from ..panels.panel import QUERY
from ..panels.table import TablePane, columns_of
from ..session import InstantId, LaneKey, RowKey
from ..session_store import SessionStore
from ..stage import Commands, Controller, Stage, does
from .panels import PanelController


class CounterController(Controller):
    def follow_clocks(self) -> None:
        """Compute the queue lanes again where the clocks of their devices have changed."""
        base, clocks = self.store.trace.below_logs, self.store.session.clocks
        if (
            isinstance(base, WithCounters)
            and computed_lanes(self.store.trace, QUEUE)
            and of_devices(base.own, clocks) != base.device_clocks
        ):
            self._compute(QUEUE, clocks, again=True)

    def compute_wanted_lanes(self) -> None:
        """Compute, after the first picture, the lanes that the saved view of this trace had."""
        now = self.store.now
        missing = [kind for kind in sorted(now.computed_lanes) if not computed_lanes(now.trace, kind)]
        self.store.dispatch(replace(now, computed_lanes=frozenset(missing[1:])))
        if missing:
            self._compute(missing[0], self.store.session.clocks, again=True)

    @does("memory-lanes", MEMORY)
    @does("queue-lanes", QUEUE)
    def _toggle(self, kind: str) -> None:
        if computed_lanes(self.store.trace, kind):
            self.store.go(toggle_computed_lanes(self.store.trace, self.store.session, kind))
        else:
            self.app.say("counting …")
            self._compute(kind, self.store.session.clocks)

    def _compute(self, kind: str, clocks: Clocks, again: bool = False) -> None:
        """Make lanes away from the screen."""
        base, have = self.store.trace.below_logs, self._computed_anew if again else self._computed
        self.app.jobs.ask(
            "counters",
            lambda cancelled: with_lanes(base, kind, cancelled, clocks),
            lambda computed: have(computed, kind),
        )

    def _computed_anew(self, base: WithCounters, kind: str) -> None:
        """Show lanes that were there before, where the view is; a sample of them is another one now."""
        lanes = computed_lanes(self.store.trace, kind)
        session = self.store.session
        if isinstance(session.selection, InstantId) and self.store.selected.key.lane in lanes:
            session = session._replace(selection=None)
        session = session._replace(clocks=clocks_with(session.clocks, base))
        self.store.show_trace(self.store.trace.with_below_logs(base), session)
        self.compute_wanted_lanes()

    def _computed(self, base: WithCounters, kind: str) -> None:
        lanes = computed_lanes(self.store.trace.with_below_logs(base), kind)
        if not lanes:
            self.store.show_trace(self.store.trace.with_below_logs(base), self.store.session)
            self.app.say(NO_LANES[kind])
            return
        show_base(self.store, base, lanes[0])
        if kind == QUEUE:
            self.app.say("waiting: launched, not started; in flight: launched, not finished")


def show_base(store: SessionStore, base: WithCounters, lane: LaneKey | None) -> None:
    """Show a trace with other computed lanes, one of them in view."""
    trace, session = store.trace.with_below_logs(base), store.session
    session = session._replace(selection=None, clocks=clocks_with(session.clocks, base))
    if lane is not None:
        session = session._replace(focus=RowKey(lane, 0))
        session = in_view(session, store.layout_for(session, trace), store.now.lane_lines)
    store.show_trace(trace, session)


def clocks_with(clocks: Clocks, base: WithCounters) -> Clocks:
    """Return the clocks, with those of a trace's computed lanes."""
    for key, offset in base.clocks.offsets.items():
        clocks = clocks.shifted(key, offset) if key[0] == base.counter_source else clocks
    return clocks


MAX_ROWS = 10_000
"""Rows that are listed at most; a note says that there are more."""
HOW = "{sql} select name, dur, ts, id from slices order by dur desc limit 100 lists rows here"


class AnsweredQuery(NamedTuple):
    """A query and its rows, of one trace with steps by one name."""

    text: str
    key: tuple[Trace, str]
    table: Table


class QueryController(Controller):
    def __init__(self, app: Stage, panels: PanelController) -> None:
        super().__init__(app)
        self.panels = panels
        self._texts = {QUERY: ""}
        self._titles = {QUERY: "query"}
        for number, (name, text) in enumerate(app.config.queries.items(), 1):
            self._texts[f"{QUERY}-{number}"], self._titles[f"{QUERY}-{number}"] = text, name
        self._answers: dict[str, AnsweredQuery] = {}
        self._running = ""

    def fillers(self) -> Commands:
        return {panel: partial(self._fill, panel) for panel in self._texts}

    @does("sql", typed=True)
    def query(self, text: str) -> None:
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
        return bool(self._running)

    def stop(self) -> None:
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
            pane.say_alone(HOW)
        elif self._running != panel:
            pane.say("querying… {close} stops it")
            self._running = panel
            text, (trace, steps) = self._texts[panel], self._key()

            def answered(cancelled: CancelledCallback) -> AnsweredQuery:
                from tracelane.core.sql.query import run_query  # not needed before the first query

                with run_query(trace, text, step_name=steps or None, cancelled=cancelled) as rows:
                    table = rows.table(" ".join(text.split()), MAX_ROWS).as_read
                return AnsweredQuery(text, (trace, steps), table)

            self.app.jobs.ask(
                "query", answered, partial(self._have_answer, panel), partial(self._failed, panel)
            )

    def _say(self, panel: str, text: str) -> None:
        for pane in self.app.main.query(f"#{panel}").results(TablePane):
            pane.say_alone(text)

    def _failed(self, panel: str, error: Exception) -> None:
        self._running, text = "", " ".join(str(error).split())
        self._say(panel, text)
        self.app.say(text)

    def _have_answer(self, panel: str, answer: AnsweredQuery) -> None:
        self._running = ""
        self._answers[panel] = answer
        if self.panels.shows_panel and self.store.session.panel == panel:
            self._fill(panel)

    # -- as a lane ------------------------------------------------------------------------------------------

    @does("sql-lane")
    def do_sql_lane(self) -> None:
        panel = self.store.session.panel if self.store.session.panel in self._texts else QUERY
        title = self._titles[panel]
        if self._lane_of(title, self.store.trace) is not None:
            base = self.store.trace.below_logs
            if isinstance(base, WithCounters):
                show_base(self.store, without_query_lane(base, title), None)
            self.app.say(f"the lane of {title} is removed")
            return
        answer = self._answers.get(panel)
        if answer is None:
            raise Refusal("no query yet: {sql} asks one")
        base, table = self.store.trace.below_logs, answer.table.counted_from(0)
        have = partial(self._have_lane, table, title)
        self.app.jobs.ask("query lane", lambda _: with_query_lane(base, table, title), have)

    def _have_lane(self, table: Table, title: str, base: WithCounters) -> None:
        show_base(self.store, base, self._lane_of(title, self.store.trace.with_below_logs(base)))
        self.app.say(
            f"{title}: how many of {format_count(len(table))} rows run at a time; {{pin}} pins the lane, "
            "{sql-lane} removes it"
        )

    def _lane_of(self, title: str, trace: Trace) -> LaneKey | None:
        base = trace.below_logs
        if not isinstance(base, WithCounters):
            return None
        titles = [one.title for one in base.computed.counters if one.kind == QUERY_LANE]
        lanes = computed_lanes(trace, QUERY_LANE)
        return dict(zip(titles, lanes)).get(title)
