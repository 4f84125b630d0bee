"""The move of each command that only replaces the Session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from tracelane.core.trace import Trace

from ..session import Session
from ..steps import step_at, step_marks
from . import gaps, lanes, ranges, select, view
from .scene import Refusal, Scene

RULERS = ("relative", "file", "wall")


Move: TypeAlias = Callable[[Scene], Session]


def _time(move: Callable[[Trace, Session], Session]) -> Move:
    return lambda scene: move(scene.trace, scene.session)


def fit_selection(scene: Scene) -> Session:
    """Zoom to the step, range or selection that was chosen last; without any, or if that is done already, fit
    all.
    """
    session = scene.session
    span = ranges.aimed_span(scene)
    if span is not None:
        return view.zoomed_to(scene.trace, session, *span)
    if session.selection is not None:
        thing = scene.selected
        if thing is None:
            raise Refusal("the selection is not in this trace")
        fitted = view.zoomed_to(scene.trace, session, thing.start, thing.end)
        return view.in_view(fitted, scene.layout, scene.height)
    if session.range is not None:
        return view.zoomed_to(scene.trace, session, *session.range)
    fitted = view.fit_all(scene.trace, session)
    if fitted == session:
        raise Refusal("nothing is selected, and all is shown")
    return fitted


def other_ruler(scene: Scene) -> Session:
    """Change to the next kind of time that the trace has."""
    from ..times import wall_offset

    kinds = RULERS if wall_offset(scene.trace, scene.session.clocks) is not None else RULERS[:2]
    at = kinds.index(scene.session.ruler) if scene.session.ruler in kinds else 0
    return scene.session._replace(ruler=kinds[(at + 1) % len(kinds)])


def _step(direction: int) -> Move:
    def move(scene: Scene) -> Session:
        before = scene.session
        steps = step_marks(scene.trace, before.clocks, before.steps)
        session = view.stepped(scene.trace, before, steps, direction)._replace(aim="step", anchor=None)
        if before.range is None or before.range not in ((step.start, step.end) for step in steps):
            return session
        # A range that is a step goes on to the next one with the cursor.
        step = step_at(steps, session.cursor)
        return session if step is None else session._replace(range=(step.start, step.end), anchor=None)

    return move


def _page(direction: int) -> Move:
    def move(scene: Scene) -> Session:
        moved = view.scrolled(scene.session, scene.layout, scene.height, direction * max(1, scene.height - 2))
        if moved == scene.session:
            raise Refusal("the first lane" if direction < 0 else "the last lane")
        return moved

    return move


MOVES: Final[Mapping[str, Move]] = {
    "zoom-in": _time(view.zoom_in),
    "zoom-out": _time(view.zoom_out),
    "zoom-in-far": _time(view.zoom_in_far),
    "zoom-out-far": _time(view.zoom_out_far),
    "pan-left": _time(view.pan_left),
    "pan-right": _time(view.pan_right),
    "page-left": _time(view.page_left),
    "page-right": _time(view.page_right),
    "trace-start": _time(view.trace_start),
    "trace-end": _time(view.trace_end),
    "page-up": _page(-1),
    "page-down": _page(1),
    "previous-step": _step(-1),
    "next-step": _step(1),
    "focus": fit_selection,
    "reset": _time(view.reset),
    "previous": partial(select.along, direction=-1),
    "next": partial(select.along, direction=1),
    "up": select.up,
    "down": select.down,
    "lane-up": partial(select.lane_moved, direction=-1),
    "lane-down": partial(select.lane_moved, direction=1),
    "fold": lanes.fold,
    "sort-ranks": lanes.sort_ranks,
    "fold-process": lanes.fold_process,
    "expand": lanes.expand,
    "pin": lanes.pin,
    "hide": lanes.hide,
    "hide-alike": lanes.hide_alike,
    "preset": _time(lanes.next_preset),
    "python-frames": _time(lanes.toggle_frames),
    "ruler": other_ruler,
    "next-gap": gaps.next_one,
    "longest-gap": gaps.select_longest_gap,
    "range": ranges.begun_or_ended,
    "range-selection": ranges.of_selection,
}

TOGETHER: Final[Mapping[str, str]] = {
    **dict.fromkeys(("zoom-in", "zoom-out", "zoom-in-far", "zoom-out-far"), "zoom"),
    **dict.fromkeys(("pan-left", "pan-right", "page-left", "page-right"), "pan"),
    **dict.fromkeys(("previous", "next", "up", "down", "lane-up", "lane-down"), "walk"),
    **dict.fromkeys(("page-up", "page-down"), "scroll"),
    **dict.fromkeys(("previous-step", "next-step"), "step"),
}
"""Moves that make one entry of the history when they follow each other quickly."""
