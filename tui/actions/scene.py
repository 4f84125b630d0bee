"""What a move works on, its refusal, and the sessions that moves have left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..session import Session

if TYPE_CHECKING:
    from tracelane.core.query.hits import Hits
    from tracelane.core.trace import Trace

    from ..draw.layout import Layout
    from ..draw.things import Thing


class Scene(NamedTuple):
    """What a move works on: the trace, what is seen of it, and how many lines of lanes there are."""

    trace: Trace
    session: Session
    layout: Layout
    height: int
    left: Hits | None = None  # what a filter leaves to be selected
    latest_ranks: Sequence[int] = ()  # sources, first those that the others wait for most

    def at(self, session: Session) -> Scene:
        return self._replace(session=session)

    @property
    def selected(self) -> Thing | None:
        """What is selected, None where nothing is, or the trace does not have it."""
        from ..draw.things import thing_by_id

        identity = self.session.selection
        return None if identity is None else thing_by_id(self.trace, self.session.clocks, identity)


MAX_LENGTH = 500
TOGETHER_S = 1.0
"""Seconds within which moves of one kind are one entry of the history."""


class History(NamedTuple):
    """The sessions before and after the present one, nearest last."""

    past: tuple[Session, ...] = ()
    future: tuple[Session, ...] = ()
    kind: str = ""
    at: float = 0.0

    def left(self, session: Session, kind: str, now: float) -> History:
        """Return the history after leaving `session` by a move of this kind at `now` seconds."""
        if kind and kind == self.kind and now - self.at < TOGETHER_S and self.past and not self.future:
            return self._replace(at=now)
        return History((*self.past[-MAX_LENGTH:], session), (), kind, now)

    def back(self, present: Session) -> tuple[Session, History] | None:
        """Return the session before and the history there; None at the beginning."""
        if not self.past:
            return None
        return self.past[-1], History(self.past[:-1], (*self.future, present))

    def forward(self, present: Session) -> tuple[Session, History] | None:
        """Return the session that was gone back from and the history there; None at the end."""
        if not self.future:
            return None
        return self.future[-1], History((*self.past, present), self.future[:-1])


class Refusal(Exception):  # noqa: N818 - an answer, not an error
    """There is nothing this move could do; the message says why in one short line."""
