"""Commands for lanes that are computed from the trace: memory over time, queue lengths."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from textual.worker import get_current_worker

from tracelane.core.base.clock import Clocks
from tracelane.core.logs.counters import MEMORY, QUEUE, WithCounters, of_devices, with_lanes

from ..actions.counters import NO_LANES, computed_lanes, toggle_computed_lanes
from ..actions.focus import in_view
from ..jobs import background
from ..session import InstantId, RowKey
from .controller import Commands, Controller


class CounterController(Controller):
    """Commands for computed lanes."""

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "memory-lanes": partial(self._toggle, MEMORY),
            "queue-lanes": partial(self._toggle, QUEUE),
        }

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

    def _toggle(self, kind: str) -> None:
        if computed_lanes(self.store.trace, kind):
            self.store.go(toggle_computed_lanes(self.store.trace, self.store.session, kind))
        else:
            self.app.say("counting …")
            self._compute(kind, self.store.session.clocks)

    @background("counters")
    def _compute(self, kind: str, clocks: Clocks, again: bool = False) -> None:
        """Make lanes away from the screen."""
        worker = get_current_worker()
        base = with_lanes(self.store.trace.below_logs, kind, lambda: worker.is_cancelled, clocks)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._computed_anew if again else self._computed, base, kind)

    def _computed_anew(self, base: WithCounters, kind: str) -> None:
        """Show lanes that were there before, where the view is; a sample of them is another one now."""
        lanes = computed_lanes(self.store.trace, kind)
        session = self.store.session
        if isinstance(session.selection, InstantId) and self.store.selected.key.lane in lanes:
            session = replace(session, selection=None)
        session = replace(session, clocks=clocks_with(session.clocks, base))
        self.store.show_trace(self.store.trace.with_below_logs(base), session)
        self.compute_wanted_lanes()

    def _computed(self, base: WithCounters, kind: str) -> None:
        trace, session = self.store.trace.with_below_logs(base), self.store.session
        lanes = computed_lanes(trace, kind)
        if lanes:
            clocks = clocks_with(session.clocks, base)
            session = replace(session, focus=RowKey(lanes[0], 0), selection=None, clocks=clocks)
            session = in_view(session, self.store.layout_for(session, trace), self.store.lane_lines)
        self.store.show_trace(trace, session)
        if not lanes:
            self.app.say(NO_LANES[kind])
        elif kind == QUEUE:
            self.app.say("waiting: launched, not started; in flight: launched, not finished")


def clocks_with(clocks: Clocks, base: WithCounters) -> Clocks:
    """Return the clocks, with those of a trace's computed lanes."""
    for key, offset in base.clocks.offsets.items():
        clocks = clocks.shifted(key, offset) if key[0] == base.counter_source else clocks
    return clocks
