"""Commands for the clocks of devices, and what is said at the start where one cannot be right."""

from __future__ import annotations

from collections.abc import Sequence

from textual.worker import get_current_worker

from tracelane.core.base.errors import Cancelled
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace
from tracelane.core.trace.apart import clock_troubles

from ..actions import devices
from ..session import Session
from ..widgets.bars import Footer
from .background import background
from .base import Viewer

HINT = "the command “Estimate the device's clock” moves it"


class DeviceClocks(Viewer):
    """Commands for the clocks of devices."""

    def do_device_clock(self) -> None:
        """Move devices so that no work begins before its launch, or take that back."""
        self._to(devices.switched(self.trace, self.session))

    def set_device_offset(self, text: str) -> None:
        """Add so many seconds to a device's times; auto: as estimated; empty: as stamped."""
        self._to(devices.with_offset(self.trace, self.session, text))

    def _to(self, session: Session) -> None:
        self.go(session)
        self.say(devices.clock_text(self.trace, self.session))

    @background("device clocks", exclusive=False)
    def look_at_device_clocks(self) -> None:
        """Say, after the first picture, where the clock of a device cannot be right."""
        trace, worker = self.trace, get_current_worker()
        scope = Scope(self.own_trace, clocks=self.own_clocks, cancelled=lambda: worker.is_cancelled)
        try:
            told, movable = clock_troubles(scope)
        except Cancelled:
            return
        if told and not worker.is_cancelled:
            self.call_from_thread(self._told, trace, [*told, HINT] if movable else told)

    def _told(self, trace: Trace, told: Sequence[str]) -> None:
        if self.composed and self.trace is trace:
            said = self.main.query_one(Footer).message
            self.say("; ".join([*told, said] if said else told))
