"""Moves of the range: begun at the cursor, drawn out by every move, ended; or taken from the selection.

And the baseline, a range that tables hold their numbers against.
"""

from __future__ import annotations

from tracelane.core.base.kineto import SliceKind, slice_kind
from tracelane.core.base.progress import CancelledCallback, never
from tracelane.core.query.hits import Hits
from tracelane.core.query.views import SliceId
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace

from ..draw.lane_choice import only_lanes
from ..session import Session
from ..steps import pair_of, step_at, step_marks
from .scene import Refusal, Scene
from .view import go_to, zoomed_to


def begun_or_ended(scene: Scene) -> Session:
    """Begin a range at the cursor; if one is being drawn, end it and keep it."""
    session = scene.session
    if session.anchor is not None:
        return session._replace(anchor=None)
    return _drawn(session._replace(anchor=session.cursor))


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
    return session._replace(range=span, anchor=None)


def aimed(before: Session, session: Session) -> Session:
    """Return the session after a move with what was chosen last: a range, a selection, else as it was."""
    aim = session.aim
    if session.range not in (None, before.range):
        aim = "range"
    elif session.selection not in (None, before.selection):
        aim = "selection"
    elif (aim == "range" and session.range is None) or (aim == "selection" and session.selection is None):
        aim = ""
    return session if aim == session.aim else session._replace(aim=aim)


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
    return session._replace(baseline=None if session.baseline == span else span, anchor=None)


def _step(scene: Scene) -> tuple[int, int] | None:
    """Return the time of the step at the cursor."""
    session = scene.session
    step = step_at(step_marks(scene.trace, session.clocks, session.steps), session.cursor)
    return None if step is None else (step.start, step.end)


def _selected(scene: Scene) -> tuple[int, int] | None:
    thing = scene.selected
    return None if thing is None else (thing.start, max(thing.end, thing.start + 1))


def _noted(scene: Scene) -> tuple[int, int] | None:
    """Return the time of the selected slice if it is an annotation, else None."""
    identity = scene.session.selection
    detail = scene.trace.detail(identity) if isinstance(identity, SliceId) else None
    is_annotation = detail is not None and slice_kind(detail.category) is SliceKind.ANNOTATION
    return _selected(scene) if is_annotation else None


def gone_to(trace: Trace, session: Session, start: int, end: int) -> Session:
    """Put the cursor on a moment; make a span the range and fit it."""
    if end > start:
        return zoomed_to(trace, session, start, end)._replace(range=(start, end), anchor=None)
    return go_to(trace, session, start)


def _drawn(session: Session) -> Session:
    """Set the range from the anchor to the cursor; where they meet, the cursor's cell."""
    anchor = session.cursor if session.anchor is None else session.anchor
    low, high = min(anchor, session.cursor), max(anchor, session.cursor)
    if low == high:
        view = session.viewport
        high = max(low + 1, view.edge(view.cell(low) + 1))
    return session._replace(range=(low, high))


def scope_of(
    trace: Trace, session: Session, cancelled: CancelledCallback = never, left: Hits | None = None
) -> Scope:
    """Return what the session's tables speak of: the range or all, what `:only` and `:filter` leave. A range
    that is a step's time exactly means the step: the device work that it launched, whenever it ran.

    `left` is what the filter leaves, if it is known already: else it may have to look through the arguments
    in the file. Raises Cancelled.
    """
    lanes = where = None
    if session.filter:
        from tracelane.core.query.filter import parse
        from tracelane.core.trace.hit_search import is_of, matches

        if left is None or left.filter.text != session.filter or not is_of(left, trace):
            left = matches(trace, parse(session.filter), session.clocks, cancelled)
        where = left.where
    if session.only:
        lanes = tuple(sorted(only_lanes(trace, session.only)))
    scope = Scope(
        trace, session.range, lanes, where, session.clocks, steps=session.steps, cancelled=cancelled
    )
    return scope if session.range is None or pair_of(trace) is not None else _of_step(scope, session.range)


def _of_step(scope: Scope, span: tuple[int, int]) -> Scope:
    """Return a scope narrowed to the step that takes this time exactly, the same scope where none does."""
    marks = step_marks(scope.trace, scope.clocks, scope.steps)
    if all((mark.start, mark.end) != span for mark in marks):
        return scope
    from tracelane.core.tables.steps.attribution import scope_of_step
    from tracelane.core.trace.step_spans import step_spans

    steps = step_spans(scope.trace, scope.clocks, scope.steps or None)
    spans = [] if steps is None else list(zip(steps.starts.tolist(), steps.ends.tolist()))
    return scope if steps is None or span not in spans else scope_of_step(scope, steps, spans.index(span))
