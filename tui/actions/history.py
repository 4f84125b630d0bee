"""Walking back and forward through the sessions seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..session import Session

LONGEST = 500
TOGETHER_S = 1.0
"""Seconds within which moves of one kind are one entry of the history."""


@dataclass(frozen=True)
class History:
    """The sessions before and after the present one, nearest last."""

    past: tuple[Session, ...] = ()
    future: tuple[Session, ...] = ()
    kind: str = ""
    at: float = 0.0

    def left(self, session: Session, kind: str, now: float) -> History:
        """Return the history after leaving `session` by a move of this kind at `now` seconds."""
        if kind and kind == self.kind and now - self.at < TOGETHER_S and self.past and not self.future:
            return replace(self, at=now)
        return History((*self.past[-LONGEST:], session), (), kind, now)

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
