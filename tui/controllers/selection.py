"""Selecting: what lies at the cursor, the launch, the kernel, the longest work; the source of a slice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from textual.worker import Worker

from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.units import count_of, format_count, format_ns
from tracelane.core.query.views import SliceId
from tracelane.core.tables.compile.artefacts import read_artefacts

from ..actions import lanes, select, view
from ..actions.ranges import scope_of
from ..actions.scene import Refusal
from ..draw.line import LineKind
from ..draw.things import thing_by_id
from ..lanes.canvas import LaneCanvas
from ..screens.source import SourceScreen, existing, lines_of, source_lines_in, texts_in
from ..session import Session
from ..stage import Controller, Stage, does
from ..times import stamps_of
from ..view_state import OpenRank
from ..widgets.table import ColumnView
from .panels import event_arguments_of

if TYPE_CHECKING:
    from tracelane.core.tables.device.kernels import LongWork

MAX_LONGEST = 1000
"""The number of pieces of work that the command for the longest walks through."""
MAX_FRAMES = 200
"""The most enclosing slices whose names are looked at for a source file."""


class SelectionController(Controller):
    def __init__(self, app: Stage) -> None:
        """Start without a list of work; it is made when its command is first given."""
        super().__init__(app)
        self._longest: Sequence[LongWork] = ()
        self._of: tuple[object, ...] | None = None  # what they are the longest of
        self._number = 0

    @does("details")
    def do_details(self) -> None:
        """Select what lies at the cursor; show its details; zoom to it. A rank among many opens."""
        session = self.store.session
        if session.focus is not None and session.focus.lane.tid in self.store.trace.opens:
            self.app.leave_for(OpenRank(self.store.trace.opens[session.focus.lane.tid]))
            return
        scene = self.store.scene
        y = view.focus_line(scene.layout, session)
        line = None if y is None else scene.layout.line(y)
        if session.selection is None and line is not None and line.kind is LineKind.RANKS:
            self.store.go(lanes.fold(scene))
        elif session.selection is None:
            self.store.go(select.at_cursor(self.store.scene)._replace(panel="details"))
        elif session.panel != "details":
            self.store.go(session._replace(panel="details"))
        else:
            self.app.run_command("focus")

    @does("launch")
    def do_launch(self) -> None:
        self._follow("What launched it", select.back_from(self.store.trace, self._selected_slice()))

    @does("kernel")
    def do_kernel(self) -> None:
        self._follow("What it launched", select.on_from(self.store.trace, self._selected_slice()))

    @does("flows")
    def do_flows(self) -> None:
        session = self.store.session._replace(flows=not self.store.session.flows)
        self.store.show(session)
        if not session.flows:
            self.app.say("only the selection's flows are drawn")
            return
        seen = self.app.main.query_one(LaneCanvas).flows_seen
        more = f", +{format_count(seen.more)} more" if seen.more else ""
        self.app.say(f"{count_of(len(seen.drawn), 'flow')} in view drawn{more}")

    def _selected_slice(self) -> SliceId:
        identity = self.store.selected.slice
        if identity is None:
            raise Refusal("only slices have flows")
        return identity

    def _follow(self, title: str, targets: list[select.Target]) -> None:
        if len(targets) == 1:
            self.app.jump(targets[0].id)
            return
        trace, clocks = self.store.trace, self.store.session.clocks
        stamps = stamps_of(trace, self.store.session)

        @cache
        def texts(row: int) -> tuple[str, str, str, str]:
            thing = thing_by_id(trace, clocks, targets[row].id)
            if thing is None:
                return "", "", "", ""
            length = format_ns(thing.end - thing.start)
            return trace.label(thing.row, thing.index), stamps.relative(thing.start), length, thing.lane.title

        columns = [
            ColumnView("Name", 0, lambda row: texts(row)[0]),
            ColumnView("Start", 20, lambda row: texts(row)[1], right=True),
            ColumnView("Duration", 12, lambda row: texts(row)[2], right=True),
            ColumnView("Lane", 20, lambda row: texts(row)[3]),
            ColumnView("Known by", 12, lambda row: targets[row].via),
        ]
        several = f"{format_count(len(targets))}{' or more' if len(targets) >= select.MAX else ''}"
        self.app.offer_rows(
            f"{title}: {several}",
            columns,
            len(targets),
            "Enter goes there",
            lambda row: self.app.jump(targets[row].id),
        )

    # -- the longest work -----------------------------------------------------------------------------------

    @does("longest")
    def do_longest(self) -> None:
        session = self.store.session
        key = session.range, session.only, session.filter, session.clocks, len(self.store.trace.sources)
        if self._of != key:
            self.app.look_for(self._find_longest(session, key))
            return
        last = self._longest[self._number] if self._longest else None
        self._go_to(self._number + 1 if last is not None and session.selection == last.id else 0)

    def _find_longest(self, session: Session, key: tuple[object, ...]) -> Worker[None]:
        trace, left = self.store.trace, self.store.now.search.whole_left

        def longest(cancelled: CancelledCallback) -> Sequence[LongWork]:
            from tracelane.core.tables.device.kernels import (
                longest_work,  # nothing of it is needed at the start
            )

            return longest_work(scope_of(trace, session, cancelled, left), MAX_LONGEST)

        def have(works: Sequence[LongWork]) -> None:
            self._of, self._longest = key, works
            self.app.attempt(lambda: self._go_to(0))
            self.app.have_selected()

        return self.app.jobs.ask("longest", longest, have)

    def _go_to(self, number: int) -> None:
        if not self._longest:
            raise Refusal("no device work here")
        if number >= len(self._longest):
            raise Refusal(f"these were the {format_count(len(self._longest))} longest")
        self._number, work = number, self._longest[number]
        self.store.show(self.store.session._replace(panel="details"))
        self.app.jump(work.id)
        which = "longest" if number == 0 else f"{format_count(number + 1)}. longest"
        where = "in the range" if self.store.session.range is not None else "of all"
        self.app.say(
            f"{which} {where}: {format_ns(work.duration)}; {{launch}} its launch, {{longest}} the next"
        )

    # -- its source -----------------------------------------------------------------------------------------

    @does("source")
    def do_source(self) -> None:
        trace, thing = self.store.trace, self.store.selected
        name = trace.name(thing.row, thing.index)

        def screen_or_text(_: CancelledCallback) -> SourceScreen | str:
            path = trace.sources[thing.id.source].path
            origin = read_artefacts("", [path]).origin_of(name)
            compiled = () if origin is None else origin.lines
            texts = [*(f"{line.file}:{line.line}" for line in compiled), name]
            texts += texts_in(event_arguments_of(trace, thing).merged)
            for frame in [] if thing.slice is None else trace.ancestors(thing.slice, MAX_FRAMES):
                if (at := trace.find(frame)) is not None:
                    texts.append(trace.name(*at))
            files = source_lines_in(texts)
            file = existing(files, (Path(path).absolute().parent, Path.cwd()))
            if file is None:
                said = f"{files[0].path} is not on this machine" if files else "this names no source file"
                return said + (
                    f"; {compiled[0]}: {compiled[0].code}" if compiled and compiled[0].code else ""
                )
            lines = lines_of(file[0])
            return SourceScreen(file[0], lines, max(1, min(file[1], len(lines))))

        def have(result: SourceScreen | str) -> None:
            if isinstance(result, str):
                self.app.say(result)
            else:
                self.app.push_screen(result)

        self.app.jobs.ask("source", screen_or_text, have)
