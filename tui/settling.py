"""Keeps the view in its place when a trace is replaced by one with more files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from tracelane.core.trace import Trace
from tracelane.core.trace.partial import PartialTrace

from .actions import view
from .draw.layout import Layout
from .draw.line import Line, LineKind
from .session import LaneKey, Session

Fold = LaneKey | tuple[int, str]
F = TypeVar("F", LaneKey, Fold)


def session_for(base: Session, seen: Session, partial: PartialTrace, trace: Trace) -> Session:
    """Return the session `base` of the whole trace with the view so far: time window, cursor, lane,
    selection, range and folds. They stay where they were, also where clocks or the files' numbers have
    changed.
    """
    numbers_now = sources_in(partial, trace)
    source = partial.first if seen.focus is None else seen.focus.lane.source
    now = base.clocks.offset(numbers_now[source]) if source in numbers_now else seen.clocks.offset(source)
    by = now - seen.clocks.offset(source)
    session = numbered_anew(seen, numbers_now)
    viewport = replace(session.viewport, start=session.viewport.start + by)
    moved = replace(
        base,
        viewport=viewport.kept_within(view.limits(trace, base.clocks)),
        cursor=session.cursor + by,
        focus=session.focus,
        selection=session.selection,
        scroll=session.scroll,
        folded=session.folded,
        unfolded=session.unfolded,
        pinned=session.pinned,
        hidden_lanes=session.hidden_lanes,
        hidden_processes=session.hidden_processes,
        hidden_alike=session.hidden_alike,
        range=None if session.range is None else (session.range[0] + by, session.range[1] + by),
        panel=session.panel,
        show_quiet=session.show_quiet,
        rank_lines=session.rank_lines,
        host_rows=session.host_rows,
        device_rows=session.device_rows,
        devices_first=session.devices_first,
        ruler=session.ruler,
        flows=session.flows,
    )
    return view.keep_cursor(moved)


def sources_in(before: Trace, now: Trace) -> dict[int, int]:
    """Return the new number of each source by its old one, without the sources that are gone."""
    numbers = {str(member.path): number for number, member in enumerate(now.members)}
    return {
        number: numbers[str(member.path)]
        for number, member in enumerate(before.members)
        if str(member.path) in numbers
    }


def numbered_anew(session: Session, numbers_now: Mapping[int, int]) -> Session:
    """Return a session with new numbers of sources; what belongs to a source without one is dropped."""

    def moved(keys: frozenset[Fold]) -> frozenset[Fold]:
        return frozenset(now for key in keys if (now := _fold(key, numbers_now)) is not None)

    focus, selection = session.focus, session.selection
    lane = None if focus is None else _lane(focus.lane, numbers_now)
    has_selection = selection is not None and selection.source in numbers_now
    pinned = (_lane(key, numbers_now) for key in session.pinned)
    hidden = (_lane(key, numbers_now) for key in session.hidden_lanes)
    return replace(
        session,
        focus=None if focus is None or lane is None else replace(focus, lane=lane),
        selection=replace(selection, source=numbers_now[selection.source])
        if selection and has_selection
        else None,
        folded=moved(session.folded),
        unfolded=moved(session.unfolded),
        pinned=tuple(key for key in pinned if key is not None),
        hidden_lanes=frozenset(key for key in hidden if key is not None),
        hidden_processes=frozenset(
            (numbers_now[source], pid) for source, pid in session.hidden_processes if source in numbers_now
        ),
    )


def scroll_kept(
    before: Layout, session: Session, now: Layout, lines: int, numbers_now: Mapping[int, int] | None = None
) -> int:
    """Return the scroll position at which the focused line, else the topmost in sight, stays where it was on
    the screen; `numbers_now` tells which numbers sources have now, where these are others.
    """
    top = before.scrolled(session.scroll, lines)
    seen = before.lines(top, lines)
    focus = session.focus
    at = next((y for y, line in enumerate(seen) if focus is not None and line.row_key == focus), 0)
    if not seen:
        return 0
    name = _name(seen[at], numbers_now)
    y = next((y for y, line in enumerate(now.lines(0, now.height)) if _name(line, None) == name), None)
    return now.scrolled(session.scroll if y is None else y - at, lines)


def _name(line: Line, numbers_now: Mapping[int, int] | None) -> tuple[object, ...]:
    """Return what identifies a line in both layouts."""
    key = line.fold_key
    fold = key if key is None or numbers_now is None else _fold(key, numbers_now)
    special = line.kind if line.kind in (LineKind.QUIET, LineKind.MORE, LineKind.NOTE) else None
    return fold, max(0, line.depth), special


def _fold(key: Fold, numbers_now: Mapping[int, int]) -> Fold | None:
    if isinstance(key, LaneKey):
        return _lane(key, numbers_now)
    return (numbers_now[key[0]], key[1]) if key[0] in numbers_now else None


def _lane(key: LaneKey, numbers_now: Mapping[int, int]) -> LaneKey | None:
    return replace(key, source=numbers_now[key.source]) if key.source in numbers_now else None
