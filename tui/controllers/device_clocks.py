"""Commands for the clocks of devices, and what is said at the start where one cannot be right."""

from __future__ import annotations

from collections.abc import Sequence

from textual.worker import get_current_worker

from tracelane.core.tables.scope import Scope
from tracelane.core.tables.worker import clock_troubles
from tracelane.core.trace import Trace

from ..actions import clocks
from ..jobs import background
from ..session import Session
from .controller import Commands, Controller, Verbs

HINT = "the command “Estimate the device's clock” moves it"


class DeviceClockController(Controller):
    """Commands for the clocks of devices."""

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "device-clock": self.do_device_clock,
        }

    def verbs(self) -> Verbs:
        """Return what carries out those with an argument."""
        return {"device-offset": self.set_device_offset}

    def do_device_clock(self) -> None:
        """Move devices so that no work begins before its launch, or take that back."""
        self._to(clocks.switch_device_clocks(self.store.trace, self.store.session))

    def set_device_offset(self, text: str) -> None:
        """Add so many seconds to a device's times; auto: as estimated; empty: as stamped."""
        self._to(clocks.with_offset(self.store.trace, self.store.session, text))

    def _to(self, session: Session) -> None:
        self.store.go(session)
        self.app.say(clocks.device_clocks_text(self.store.trace, self.store.session))

    @background("device clocks", exclusive=False)
    def look_at_device_clocks(self) -> None:
        """Say, after the first picture, where the clock of a device cannot be right."""
        trace, worker = self.store.trace, get_current_worker()
        scope = Scope(
            self.store.own_trace, clocks=self.store.own_clocks, cancelled=lambda: worker.is_cancelled
        )
        texts, movable = clock_troubles(scope)
        if texts and not worker.is_cancelled:
            self.app.call_from_thread(self._say_texts, trace, [*texts, HINT] if movable else texts)

    def _say_texts(self, trace: Trace, texts: Sequence[str]) -> None:
        if self.app.composed and self.store.trace is trace:
            self.app.say("; ".join(texts), stays=True)
