"""Moves of the range: begun at the cursor, drawn out by every move, ended; or taken from the selection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..session import Session
from ..things import thing_by_id
from .refusal import Refusal

if TYPE_CHECKING:
    from .table import Scene


def begun_or_ended(scene: Scene) -> Session:
    """Begin a range at the cursor; if one is being drawn, end it and keep it."""
    session = scene.session
    if session.anchor is not None:
        return replace(session, anchor=None)
    return _drawn(replace(session, anchor=session.cursor))


def of_selection(scene: Scene) -> Session:
    """Take the selection's time as the range."""
    session = scene.session
    if session.selection is None:
        raise Refusal("nothing is selected: v begins a range at the cursor")
    thing = thing_by_id(scene.trace, session.clocks, session.selection)
    if thing is None:
        raise Refusal("the selection is not in this trace")
    return replace(session, range=(thing.start, max(thing.end, thing.start + 1)), anchor=None)


def extended(before: Session, session: Session) -> Session:
    """Return the session after a move: a range that is being drawn follows the cursor."""
    if session.anchor is None or session.cursor == before.cursor:
        return session
    return _drawn(session)


def dropped(session: Session) -> Session:
    """Drop the range."""
    return replace(session, range=None, anchor=None)


def _drawn(session: Session) -> Session:
    """Set the range from the anchor to the cursor; where they meet, the cursor's cell."""
    anchor = session.cursor if session.anchor is None else session.anchor
    low, high = min(anchor, session.cursor), max(anchor, session.cursor)
    if low == high:
        view = session.viewport
        high = max(low + 1, view.edge(view.cell(low) + 1))
    return replace(session, range=(low, high))
