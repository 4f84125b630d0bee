"""The overview: counted in the background, shown in the details while nothing is selected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from tracelane.core.base.clock import Clocks
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.units import format_ns
from tracelane.core.tables.findings.finding import Evidence, Finding
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.overview.rows import Groups, stored_overview
from tracelane.core.trace import Trace

from ..actions.scene import Refusal
from ..draw.states import DrawnStates
from ..draw.verdict import UNRECORDED
from ..lanes.canvas import LaneCanvas
from ..lanes.strips import Minimap, Ruler, Verdict
from ..panels.overview import DetailsPane
from ..stage import Controller, Stage, does, hears
from ..steps import pair_of, step_marks
from ..text.overview import FactBlock, Target, fact_blocks
from .findings import FindingsController
from .panels import PanelController

if TYPE_CHECKING:
    from tracelane.core.tables.compare.run_changes import RunChanges
    from tracelane.core.tables.compare.run_pair import RunPair


NO_STRIPS = "the verdict's bar and the minimap need more lines"


class OverviewController(Controller):
    def __init__(self, app: Stage, panels: PanelController, findings: FindingsController) -> None:
        super().__init__(app)
        self.panels = panels
        self.findings = findings
        self._known: tuple[Trace, Clocks, Groups] | None = None
        self._states: tuple[Trace, DrawnStates] | None = None

    def count(self, states: DrawnStates) -> None:
        """Take what is stored of the trace, else count it; `states` are what its devices did. Of two runs
        count what changed.
        """
        trace, clocks = self.store.own_trace, self.store.own_clocks
        self._states = trace, states
        if (pair := pair_of(self.store.trace)) is not None:
            self._count_changes(pair)
        if trace.answers is not None:
            return
        scope = Scope(trace, clocks=clocks)
        if (stored := stored_overview(scope)) is not None:
            self._have(trace, clocks, stored)
            return
        of_devices = states.of_devices

        def look(cancelled: CancelledCallback) -> Groups:
            from tracelane.core.tables.overview.overview import saved_overview  # it loads most tables

            return saved_overview(Scope(trace, clocks=clocks, cancelled=cancelled), of_devices)

        have = partial(self._have, trace, clocks)
        self.app.call_after_refresh(lambda: self.app.jobs.ask("overview", look, have))

    def _count_changes(self, pair: RunPair) -> None:
        from tracelane.core.tables.explain.pair_answers import PairAnswers  # it loads most tables

        answers = pair.answers

        def have(_: RunChanges) -> None:  # the pair holds them
            if self.app.composed:
                self.app.main.query_one(Ruler).draw_anew()  # which marks what one run lacks
            self._fill()

        if pair.changes is not None:
            have(pair.changes)
        elif isinstance(answers, PairAnswers):
            self.app.call_after_refresh(lambda: self.app.jobs.ask("overview", answers.changes, have))

    def _have(self, trace: Trace, clocks: Clocks, groups: Groups) -> None:
        self._known = trace, clocks, groups
        self._fill()

    def _fill(self) -> None:
        session = self.store.session
        if self.panels.shows_panel and session.panel == "details" and session.selection is None:
            self.panels.fill()

    def blocks(self) -> Sequence[FactBlock]:
        """Return what is known of the trace; nothing as long as that is counted, or on other clocks."""
        trace, clocks = self.store.own_trace, self.store.own_clocks
        if (pair := pair_of(trace)) is not None and pair.changes is not None:
            from tracelane.core.tables.overview.pair_rows import pair_rows  # as above

            from ..text.changes import change_blocks

            groups = pair_rows(pair, pair.changes, clocks)
            return tuple(change_blocks(pair, groups, pair.changes.per_step, self.findings.of_whole))
        if self._known is None or self._known[0] is not trace or self._known[1] != clocks:
            return ()
        steps = step_marks(trace, clocks, self.store.session.steps)
        return tuple(fact_blocks(trace, self._known[2], steps, self.findings.of_whole))

    @does("verdict")
    def do_verdict(self) -> None:
        """Move the arrows from strip to strip, then back to the lanes."""
        main = self.app.main
        strips = [part for part in (main.query_one(Verdict), main.query_one(Minimap)) if part.display]
        if not strips:
            raise Refusal(NO_STRIPS)
        canvas, focused = main.query_one(LaneCanvas), main.focused
        following = {id(before): after for before, after in pairwise((*strips, canvas))}
        part = following.get(id(focused), strips[0])
        main.set_focus(part if part.display else strips[0])

    @does("minimap")
    def do_minimap(self) -> None:
        minimap = self.app.main.query_one(Minimap)
        if not minimap.display:
            raise Refusal(NO_STRIPS)
        self.app.main.set_focus(minimap)

    @hears(Verdict.PartHovered)
    def _part_hovered(self, message: Verdict.PartHovered) -> None:
        self.app.hover(message.text)

    @hears(Verdict.PartChosen)
    def part_chosen(self, message: Verdict.PartChosen) -> None:
        """Go to where devices do longest what a part of the verdict's bar stands for."""
        from tracelane.core.tables.device.states import longest_in  # not needed to draw
        from tracelane.core.tables.device.untrusted_periods import longest_unknown

        part, states = message.part, self._states_now
        longest = None if states is None else longest_in(states.of_devices, part.states)
        if UNRECORDED in part.states:
            longest = longest_unknown(Scope(self.store.own_trace, clocks=self.store.own_clocks))
        if longest is None:
            self.app.say(f"{part.name}: when is not known, the share alone")
            return
        evidence = Evidence(f"longest {part.name}", *longest)
        self.findings.show_place(evidence)
        self.app.say(f"{evidence.label}, {format_ns(evidence.end - evidence.start)}")

    @property
    def _states_now(self) -> DrawnStates | None:
        """What devices did, on the present clocks; None where that is not known."""
        trace, clocks = self.store.own_trace, self.store.own_clocks
        if self._states is None or self._states[0] is not trace:
            return None
        states, pair = self._states[1], pair_of(trace)
        if states.clocks != clocks and pair is not None:
            states = states.moved(clocks, pair)
        return states if states.clocks == clocks else None

    @hears(DetailsPane.RowHovered)
    def _hovered(self, message: DetailsPane.RowHovered) -> None:
        self.app.hover(message.text)

    @hears(DetailsPane.RowChosen)
    def chosen(self, message: DetailsPane.RowChosen) -> None:
        """Go to what a row of the overview leads to."""
        if self.app.maximised:
            self.app.maximised = False
        self._go(message.target)

    def _go(self, target: Target) -> None:
        match target:
            case Evidence():
                self.findings.show_place(target)
                self.app.say(f"{target.label}, {format_ns(target.end - target.start)}")
            case Finding():
                self.findings.show_finding(target)
            case str():
                self.panels.show_or_say(target)
