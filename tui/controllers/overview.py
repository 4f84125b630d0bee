"""The overview: counted in the background, shown in the details while nothing is selected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tracelane.core.base.clock import Clocks
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.units import format_ns
from tracelane.core.tables.findings.finding import Evidence, Finding
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.overview.rows import Groups, stored_overview
from tracelane.core.trace import Trace

from ..draw.states import DrawnStates
from ..panels.overview import DetailsPane
from ..stage import Controller, Stage, hears
from ..steps import pair_of, step_marks
from ..text.overview import FactBlock, Target, fact_blocks
from .findings import FindingsController
from .panels import PanelController


class OverviewController(Controller):
    def __init__(self, app: Stage, panels: PanelController, findings: FindingsController) -> None:
        super().__init__(app)
        self.panels = panels
        self.findings = findings
        self._known: tuple[Trace, Clocks, Groups] | None = None

    def count(self, states: DrawnStates) -> None:
        """Take what is stored of the trace, else count it; `states` are what its devices did."""
        trace, clocks = self.store.own_trace, self.store.own_clocks
        if trace.answers is not None or pair_of(self.store.trace) is not None:
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

    def _have(self, trace: Trace, clocks: Clocks, groups: Groups) -> None:
        self._known = trace, clocks, groups
        session = self.store.session
        if self.panels.shows_panel and session.panel == "details" and session.selection is None:
            self.panels.fill()

    def blocks(self) -> Sequence[FactBlock]:
        """Return what is known of the trace; nothing as long as that is counted, or on other clocks."""
        trace, clocks = self.store.own_trace, self.store.own_clocks
        if self._known is None or self._known[0] is not trace or self._known[1] != clocks:
            return ()
        steps = step_marks(trace, clocks, self.store.session.steps)
        return tuple(fact_blocks(trace, self._known[2], steps, self.findings.of_whole))

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
