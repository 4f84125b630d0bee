"""Going to the longest work of devices, then to the next longest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from tracelane.core.base.units import format_count, format_ns

from ..actions.refusal import Refusal
from ..jobs import background
from ..session import Session
from ..session_store import SessionStore
from ..stage import Stage
from .controller import Commands, Controller
from .selection import SelectionController
from .tables import scope_of

if TYPE_CHECKING:
    from tracelane.core.tables.instances import LongWork

MOST = 1000
"""The number of pieces of work that the command walks through."""


class LongestController(Controller):
    """The command that goes to the longest work."""

    def __init__(self, app: Stage, store: SessionStore, selection: SelectionController) -> None:
        """Start without a list of work; it is made when the command is first given."""
        super().__init__(app, store)
        self.selection = selection
        self._longest: Sequence[LongWork] = ()
        self._of: tuple[object, ...] | None = None  # what they are the longest of
        self._number = 0

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {"longest": self.do_longest}

    def do_longest(self) -> None:
        """Select the longest work; right after that, the next longest."""
        session = self.store.session
        if self._of != self._key(session):
            self.app.look_for(self._find(session, self._key(session)))
            return
        selected = session.selection
        last = self._longest[self._number] if self._longest else None
        again = last is not None and selected is not None and selected == last.id
        self._go_to(self._number + 1 if again else 0)

    def _key(self, session: Session) -> tuple[object, ...]:
        return session.range, session.only, session.filter, session.clocks, len(self.store.trace.sources)

    @background("longest")
    def _find(self, session: Session, key: tuple[object, ...]) -> None:
        from tracelane.core.tables.instances import longest_work  # nothing of it is needed at the start

        worker = get_current_worker()
        scope = scope_of(self.store.trace, session, lambda: worker.is_cancelled, self.store.whole_left)
        longest = longest_work(scope, MOST)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._have_longest, key, longest)

    def _have_longest(self, key: tuple[object, ...], longest: Sequence[LongWork]) -> None:
        self._of, self._longest = key, longest
        self.app.attempt(lambda: self._go_to(0))
        self.app.have_selected()

    def _go_to(self, number: int) -> None:
        if not self._longest:
            raise Refusal("no device work here")
        if number >= len(self._longest):
            raise Refusal(f"these were the {format_count(len(self._longest))} longest")
        self._number, work = number, self._longest[number]
        self.store.show(replace(self.store.session, panel="details"))
        self.selection.jump(work.id.source, work.id.ordinal)
        which = "longest" if number == 0 else f"{format_count(number + 1)}. longest"
        where = "in the range" if self.store.session.range is not None else "of all"
        self.app.say(
            f"{which} {where}: {format_ns(work.duration)}; {{launch}} its launch, {{longest}} the next"
        )
