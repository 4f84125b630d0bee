"""Moves of the range: begun at the cursor, drawn out by every move, ended; or taken from the selection.

And the baseline, a range that tables hold their numbers against.
"""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.base.ids import SliceId
from tracelane.core.base.kineto import SliceKind, slice_kind

from ..draw.things import thing_by_id
from ..session import Session
from ..steps import step_at, step_marks
from .refusal import Refusal
from .scene import Scene


def begun_or_ended(scene: Scene) -> Session:
    """Begin a range at the cursor; if one is being drawn, end it and keep it."""
    session = scene.session
    if session.anchor is not None:
        return replace(session, anchor=None)
    return _drawn(replace(session, anchor=session.cursor))


def of_selection(scene: Scene) -> Session:
    """Take the selection's time as the range, or that of the step at the cursor where it was gone to last or
    nothing is selected.
    """
    session = scene.session
    span = _step(scene) if session.aim == "step" or session.selection is None else _selected(scene)
    if span is None and session.aim == "step":
        span = _selected(scene)
    if span is None and session.selection is None:
        raise Refusal("nothing is selected: {range} begins a range at the cursor")
    if span is None:
        raise Refusal("the selection is not in this trace")
    return replace(session, range=span, anchor=None)


def aimed(before: Session, session: Session) -> Session:
    """Return the session after a move with what was chosen last: a range, a selection, else as it was."""
    aim = session.aim
    if session.range not in (None, before.range):
        aim = "range"
    elif session.selection not in (None, before.selection):
        aim = "selection"
    elif (aim == "range" and session.range is None) or (aim == "selection" and session.selection is None):
        aim = ""
    return session if aim == session.aim else replace(session, aim=aim)


def aimed_span(scene: Scene) -> tuple[int, int] | None:
    """Return the time of what was chosen last: of a step or a range; None for a selection, or nothing."""
    if scene.session.aim == "step":
        return _step(scene)
    return scene.session.range if scene.session.aim == "range" else None


def extended(before: Session, session: Session) -> Session:
    """Return the session after a move: a range that is being drawn follows the cursor."""
    if session.anchor is None or session.cursor == before.cursor:
        return session
    return _drawn(session)


def baseline(scene: Scene) -> Session:
    """Keep the step or range that was chosen last as baseline, else the range, the selected annotation, the
    step at the cursor, the selection; the one that is the baseline already is dropped.
    """
    session = scene.session
    span = aimed_span(scene) or session.range or _noted(scene) or _step(scene) or _selected(scene)
    if span is None:
        raise Refusal("no range, selection or step at the cursor: {range} begins a range")
    return replace(session, baseline=None if session.baseline == span else span, anchor=None)


def _step(scene: Scene) -> tuple[int, int] | None:
    """Return the time of the step at the cursor."""
    session = scene.session
    step = step_at(step_marks(scene.trace, session.clocks, session.steps), session.cursor)
    return None if step is None else (step.start, step.end)


def _selected(scene: Scene) -> tuple[int, int] | None:
    identity = scene.session.selection
    thing = None if identity is None else thing_by_id(scene.trace, scene.session.clocks, identity)
    return None if thing is None else (thing.start, max(thing.end, thing.start + 1))


def _noted(scene: Scene) -> tuple[int, int] | None:
    """Return the time of the selected slice if it is an annotation, else None."""
    identity = scene.session.selection
    detail = scene.trace.detail(identity) if isinstance(identity, SliceId) else None
    is_annotation = detail is not None and slice_kind(detail.category) is SliceKind.ANNOTATION
    return _selected(scene) if is_annotation else None


def without_range(session: Session) -> Session:
    return replace(session, range=None, anchor=None)


def _drawn(session: Session) -> Session:
    """Set the range from the anchor to the cursor; where they meet, the cursor's cell."""
    anchor = session.cursor if session.anchor is None else session.anchor
    low, high = min(anchor, session.cursor), max(anchor, session.cursor)
    if low == high:
        view = session.viewport
        high = max(low + 1, view.edge(view.cell(low) + 1))
    return replace(session, range=(low, high))
