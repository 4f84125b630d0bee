"""Commands for lanes that are computed from the trace: memory over time, queue lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from textual.worker import get_current_worker

from tracelane.core.base.clock import Clocks
from tracelane.core.logs.counters import MEMORY, QUEUE, WithCounters, of_devices, with_lanes

from ..actions.counters import NO_LANES, base_of, computed_lanes, toggle_computed_lanes, with_base
from ..actions.focus import in_view
from ..jobs import background
from ..session import InstantId, RowKey, Session
from ..session_store import SessionStore
from ..stage import Stage


class CounterController:
    """Commands for computed lanes."""

    def __init__(self, app: Stage, store: SessionStore) -> None:
        """Work on a store, and show what comes of it."""
        self.app = app
        self.store = store

    def commands(self) -> Mapping[str, Callable[[], object]]:
        """Return what carries out each of its commands."""
        return {
            "memory-lanes": partial(self._toggle, MEMORY),
            "queue-lanes": partial(self._toggle, QUEUE),
        }

    def follow_clocks(self, before: Session, session: Session) -> None:
        """Compute the queue lanes again where the clocks of their devices have changed."""
        base = base_of(self.store.trace)
        if (
            isinstance(base, WithCounters)
            and computed_lanes(self.store.trace, QUEUE)
            and of_devices(base.own, session.clocks) != base.device_clocks
        ):
            self._compute(QUEUE, session.clocks, again=True)

    def compute_wanted_lanes(self) -> None:
        """Compute, after the first picture, the lanes that the saved view of this trace had."""
        missing = [
            kind for kind in sorted(self.store.computed_lanes) if not computed_lanes(self.store.trace, kind)
        ]
        self.store.computed_lanes = frozenset(missing[1:])
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
        base = with_lanes(base_of(self.store.trace), kind, lambda: worker.is_cancelled, clocks)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._computed_anew if again else self._computed, base, kind)

    def _computed_anew(self, base: WithCounters, kind: str) -> None:
        """Show lanes that were there before, where the view is; a sample of them is another one now."""
        lanes = computed_lanes(self.store.trace, kind)
        session = self.store.session
        if isinstance(session.selection, InstantId) and self.store.selected.key.lane in lanes:
            session = replace(session, selection=None)
        self.store.trace = with_base(self.store.trace, base)
        self.store.session = replace(session, clocks=clocks_with(session.clocks, base))
        self.store.announce_trace()
        self.compute_wanted_lanes()

    def _computed(self, base: WithCounters, kind: str) -> None:
        self.store.trace = with_base(self.store.trace, base)
        lanes = computed_lanes(self.store.trace, kind)
        if lanes:
            clocks = clocks_with(self.store.session.clocks, base)
            focus = RowKey(lanes[0], 0)
            session = replace(self.store.session, focus=focus, selection=None, clocks=clocks)
            self.store.session = in_view(session, self.store.layout_now, self.store.lane_lines)
        self.store.announce_trace()
        if not lanes:
            self.app.say(NO_LANES[kind])
        elif kind == QUEUE:
            self.app.say("waiting: launched, not started; in flight: launched, not finished")


def clocks_with(clocks: Clocks, base: WithCounters) -> Clocks:
    """Return the clocks, with those of a trace's computed lanes."""
    for key, offset in base.clocks.offsets.items():
        clocks = clocks.shifted(key, offset) if key[0] == base.counter_source else clocks
    return clocks
