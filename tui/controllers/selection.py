"""Selecting: what lies at the cursor, the launch, the kernel, a slice by its identity."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.base.ids import SliceId
from tracelane.core.base.units import format_count, format_ns

from ..actions import follow, select
from ..actions.refusal import Refusal
from ..clock import stamps_of
from ..draw.things import Thing, thing_by_id
from ..lanes.canvas import LaneCanvas
from ..screens.pick import PickScreen
from ..widgets.table import ColumnView
from .controller import Commands, Controller


class SelectionController(Controller):
    """Commands that select."""

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "details": self.do_details,
            "launch": self.do_launch,
            "kernel": self.do_kernel,
            "flows": self.do_flows,
        }

    def do_details(self) -> None:
        """Select what lies at the cursor; show its details; zoom to it. A rank among many opens."""
        session = self.store.session
        if session.focus is not None and session.focus.lane.tid in self.store.trace.opens:
            self.app.wanted_rank = self.store.trace.opens[session.focus.lane.tid]
            self.app.exit()
            return
        if session.selection is None:
            session = select.at_cursor(
                self.store.trace, session, self.store.layout_now, self.store.lane_lines, self.store.left
            )
            self.store.go(replace(session, panel="details"))
        elif session.panel != "details":
            self.store.go(replace(session, panel="details"))
        else:
            self.app.run_command("focus")

    def do_launch(self) -> None:
        """Go back to what launched the selection."""
        self._follow("What launched it", follow.back_from(self.store.trace, self._selected_slice()))

    def do_kernel(self) -> None:
        """Go on to what the selection launched."""
        self._follow("What it launched", follow.on_from(self.store.trace, self._selected_slice()))

    def do_flows(self) -> None:
        """Draw all flows in view, or the selection's alone."""
        session = replace(self.store.session, flows=not self.store.session.flows)
        self.store.show(session)
        if not session.flows:
            self.app.say("only the selection's flows are drawn")
            return
        seen = self.app.main.query_one(LaneCanvas).flows_seen
        more = f", +{format_count(seen.more)} more" if seen.more else ""
        count = len(seen.drawn)
        self.app.say(f"{format_count(count)} flow{'s' if count != 1 else ''} in view drawn{more}")

    def _selected_slice(self) -> SliceId:
        identity = self.store.selected.slice
        if identity is None:
            raise Refusal("only slices have flows")
        return identity

    def _follow(self, title: str, targets: list[follow.Target]) -> None:
        if len(targets) == 1:
            self.jump(targets[0].id.source, targets[0].id.ordinal)
            return
        clocks = self.store.session.clocks
        stamps = stamps_of(self.store.trace, self.store.session)
        known: dict[int, Thing | None] = {}

        def thing(row: int) -> Thing | None:
            if row not in known:
                known[row] = thing_by_id(self.store.trace, clocks, targets[row].id)
            return known[row]

        def text(row: int, what: str) -> str:
            target = thing(row)
            if target is None:
                return ""
            if what == "start":
                return stamps.relative(target.start)
            return format_ns(target.end - target.start) if what == "duration" else target.lane.title

        columns = [
            ColumnView(
                "Name",
                0,
                lambda row: "" if (t := thing(row)) is None else self.store.trace.label(t.row, t.index),
            ),
            ColumnView("Start", 20, lambda row: text(row, "start"), right=True),
            ColumnView("Duration", 12, lambda row: text(row, "duration"), right=True),
            ColumnView("Lane", 20, lambda row: text(row, "lane")),
            ColumnView("Known by", 12, lambda row: targets[row].via),
        ]

        def chosen(row: int | None) -> None:
            if row is not None:
                self.jump(targets[row].id.source, targets[row].id.ordinal)

        several = f"{format_count(len(targets))}{' or more' if len(targets) >= follow.MOST else ''}"
        self.app.push_screen(
            PickScreen(f"{title}: {several}", columns, len(targets), hint="Enter goes there"), chosen
        )

    def jump(self, source: int, ordinal: int) -> None:
        """Select a slice by its identity."""
        thing = thing_by_id(self.store.trace, self.store.session.clocks, SliceId(source, ordinal))
        if thing is None:
            self.app.say("that slice is not in this trace")
        else:
            self.store.select(thing)
