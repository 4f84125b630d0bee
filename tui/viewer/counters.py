"""Commands for lanes that are computed from the trace: memory over time, queue lengths."""

from __future__ import annotations

from dataclasses import replace

from textual.worker import get_current_worker

from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.overlay.counters import MEMORY, QUEUE, WithCounters, of_devices, with_lanes

from ..actions.counters import NO_LANES, base_of, computed_lanes, over, toggled
from ..actions.focus import in_view
from ..session import InstantId, RowKey, Session
from .background import background
from .base import Viewer


class Counters(Viewer):
    """Commands for computed lanes."""

    def on_mount(self) -> None:
        """Let queues follow the clocks of the devices from now on."""
        self.watch(self, "session", self._follow_clocks, init=False)

    def _follow_clocks(self, session: Session) -> None:
        """Compute the queues anew where the devices that they speak of stand elsewhere."""
        base = base_of(self.trace)
        if (
            isinstance(base, WithCounters)
            and computed_lanes(self.trace, QUEUE)
            and of_devices(base.own, session.clocks) != base.device_clocks
        ):
            self._compute(QUEUE, session.clocks, again=True)

    def compute_wanted_lanes(self) -> None:
        """Compute, after the first picture, the lanes that were there when the trace was opened before."""
        missing = [kind for kind in sorted(self.lanes_wanted) if not computed_lanes(self.trace, kind)]
        self.lanes_wanted = frozenset(missing[1:])
        if missing:
            self._compute(missing[0], self.session.clocks, again=True)

    def do_memory_lanes(self) -> None:
        """Hide the memory lanes, or show them."""
        self._toggle(MEMORY)

    def do_queue_lanes(self) -> None:
        """Draw how much work waits and runs, per stream; hide that again."""
        self._toggle(QUEUE)

    def _toggle(self, kind: str) -> None:
        if computed_lanes(self.trace, kind):
            self.go(toggled(self.trace, self.session, kind))
        else:
            self.say("counting …")
            self._compute(kind, self.session.clocks)

    @background("counters")
    def _compute(self, kind: str, clocks: Clocks, again: bool = False) -> None:
        """Make lanes away from the screen."""
        worker = get_current_worker()
        try:
            base = with_lanes(base_of(self.trace), kind, lambda: worker.is_cancelled, clocks)
        except Cancelled:
            return
        except TracelaneError as error:
            self.call_from_thread(self.say, str(error))
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._computed_anew if again else self._computed, base, kind)

    def _computed_anew(self, base: WithCounters, kind: str) -> None:
        """Show lanes that were there before, where the view is; a sample of them is another one now."""
        lanes = computed_lanes(self.trace, kind)
        session = self.session
        if isinstance(session.selection, InstantId) and self.selected.key.lane in lanes:
            session = replace(session, selection=None)
        self.trace = over(self.trace, base)
        self.session = replace(session, clocks=_clocks_with(session.clocks, base))
        self.trace_changed()
        self.compute_wanted_lanes()

    def _computed(self, base: WithCounters, kind: str) -> None:
        self.trace = over(self.trace, base)
        lanes = computed_lanes(self.trace, kind)
        if lanes:
            clocks = _clocks_with(self.session.clocks, base)
            focus = RowKey(lanes[0], 0)
            session = replace(self.session, focus=focus, selection=None, clocks=clocks)
            self.session = in_view(session, self.layout_now, self.lane_lines)
        self.trace_changed()
        if not lanes:
            self.say(NO_LANES[kind])
        elif kind == QUEUE:
            self.say("waiting: launched, not started; in flight: launched, not finished")


def _clocks_with(clocks: Clocks, base: WithCounters) -> Clocks:
    """Return the clocks with those of the lanes computed of a trace."""
    for key, offset in base.clocks.offsets.items():
        clocks = clocks.shifted(key, offset) if key[0] == base.counter_source else clocks
    return clocks
