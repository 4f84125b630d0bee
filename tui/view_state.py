"""Views that outlast what they show: kept as JSON for the next time, with marks; carried over to the trace
when it is opened again; held in place when a trace is replaced by one with more files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from tracelane.core.base.clock import NO_CLOCKS, Clocks
from tracelane.core.base.errors import DamagedIndexError, TracelaneError, UsageError
from tracelane.core.export.marks import Mark, read_marks, read_named_marks, read_object, shelf, write_marks
from tracelane.core.index.inputs import UNFINISHED, check_there
from tracelane.core.logs.counters import WithCounters
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace

from .actions import view
from .actions.scene import History
from .actions.view import limits
from .draw.layout import Layout
from .draw.line import Line, LineKind
from .draw.things import thing_by_id
from .session import GapId, InstantId, LaneKey, RowKey, Selectable, Session, Viewport

if TYPE_CHECKING:
    from tracelane.core.index.opening import Gathering
    from tracelane.core.logs.overlay import LogOptions
    from tracelane.core.trace import PartialTrace


class Reopen(NamedTuple):
    """Open the same anew: its files have changed, or its index was damaged."""

    damage: DamagedIndexError | None = None


class OpenCapture(NamedTuple):
    """Open another capture of the folder, 1: the newest."""

    number: int


class OpenRank(NamedTuple):
    """Open one rank of a picture of many."""

    rank: int


class GroupRanks(NamedTuple):
    """Draw the ranks of a picture anew, grouped by host, tp, pp or dp."""

    by: str


class ShowAgainst(NamedTuple):
    """Show another run below this one, step by step; "" for this one alone again."""

    path: str


Next: TypeAlias = Reopen | OpenCapture | OpenRank | GroupRanks | ShowAgainst
"""What the viewer leaves for, and returns; None where the user quits."""

SCHEMA = 1
_KINDS: Final = {
    kind.__name__: kind for kind in (Session, Viewport, LaneKey, RowKey, SliceId, InstantId, GapId)
}


def saved_session(trace: Trace) -> Session | None:
    """Return the view in which a trace was left the last time."""
    path = shelf(trace, "view")
    try:
        return None if path is None else session_of(read_object(path), trace)
    except TracelaneError:
        return None


def import_marks(trace: Trace, path: Path) -> int:
    """Add the marks of a file to those kept of a trace; return how many are new. Raises TracelaneError."""
    check_there([path])
    return keep_marks(trace, read_named_marks(path))


def keep_marks(trace: Trace, marks: Sequence[Mark]) -> int:
    """Add marks to those kept of a trace; return how many are new. Raises TracelaneError."""
    path = shelf(trace, "marks")
    if path is None:
        raise UsageError("of what comes from standard input no marks are kept")
    present = read_marks(path)
    more = set(marks) - set(present)
    write_marks(path, (*present, *more), [source.path for source in trace.sources])
    return len(more)


def session_json(session: Session) -> dict[str, Any]:
    return {"schema": SCHEMA, "session": _encoded(replace(session, anchor=None))}


def session_of(value: dict[str, Any] | None, trace: Trace) -> Session | None:
    """Return the session that a JSON object holds; None if it is none, or speaks of another time."""
    if value is None or value.get("schema") != SCHEMA:
        return None
    try:
        session = _decoded(value["session"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if not isinstance(session, Session) or not _sound(session):
        return None
    low, high = limits(trace, session.clocks)
    view = session.viewport
    if view.end <= low or view.start >= high:
        return None
    return replace(session, viewport=view.kept_within((low, high)))


def _sound(session: Session) -> bool:
    view = session.viewport
    if not isinstance(view, Viewport):
        return False
    numbers = (
        *(view.start, view.span, view.width, session.cursor, session.scroll, session.panel_size),
        session.map_lines,
    )
    texts = (session.only, session.panel, session.ruler, session.colour_by)
    return (
        all(type(number) is int for number in numbers)
        and all(isinstance(text, str) for text in texts)
        and view.span > 0
        and 0 < view.width <= view.span
        and isinstance(session.clocks, Clocks)
        and isinstance(session.rank_order, tuple)
        and all(type(source) is int for source in session.rank_order)
    )


def _encoded(value: Any) -> Any:
    if isinstance(value, Clocks):
        return {"is": "Clocks", "offsets": [[*key, ns] for key, ns in value.offsets.items()]}
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
        return {"is": type(value).__name__, **members}
    if isinstance(value, frozenset):
        return {"is": "set", "of": sorted((_encoded(entry) for entry in value), key=repr)}
    if isinstance(value, tuple):
        return [_encoded(entry) for entry in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    kind = value["is"]
    if kind == "set":
        return frozenset(_decoded(value["of"]))
    if kind == "Clocks":
        offsets = {(int(source), str(key)): int(ns) for source, key, ns in value["offsets"]}
        return Clocks(MappingProxyType(offsets))
    kind_of_value = _KINDS[kind]
    known = {field.name for field in fields(kind_of_value)}
    return kind_of_value(**{name: _decoded(entry) for name, entry in value.items() if name in known})


class Prepared(NamedTuple):
    """A trace with logs over it, in the view that was asked for or left the last time, and what to say."""

    trace: Trace
    session: Session | None = None  # None: its first view
    notes: Sequence[str] = ()
    history: History = History()  # the views that were left before
    computed: frozenset[str] = frozenset()  # kinds of lanes to be computed beside those that are there
    offers: Callable[[], Sequence[str]] = tuple  # looked for when the first picture is there

    @property
    def messages(self) -> tuple[str, ...]:
        """Notes and offers."""
        return (*self.notes, *self.offers())


class PendingFiles(NamedTuple):
    """Files of which some are still being indexed; `prepare` makes the trace of all when they are there."""

    gathering: Gathering
    title: str
    prepare: Callable[[], Prepared]
    before: Carried | None = None  # what was seen when they were shown the last time


NO_HISTORY = History()


class Carried(NamedTuple):
    """The current view, the earlier and later ones, and what is needed of their trace to see which parts
    still apply.
    """

    session: Session
    history: History
    clocks: Clocks  # with which the trace was opened
    files: tuple[str, ...]
    logs: tuple[tuple[str, LogOptions], ...]
    computed: frozenset[str]  # kinds of computed lanes
    selected: Mapping[Selectable, tuple[str, int] | None]  # name and start of what views have selected
    marks: Path | None  # where they are kept
    theme: str


def carried(trace: Trace, session: Session, theme: str, history: History = NO_HISTORY) -> Carried:
    """Return what to keep of a trace and its view."""
    views = (session, *history.past, *history.future)
    base = trace.below_logs
    counters = base.computed.counters if isinstance(base, WithCounters) else []
    return Carried(
        session,
        history,
        trace.clocks,
        _files(trace),
        _logs(trace),
        frozenset(one.kind for one in counters),
        {view.selection: _named(trace, view.selection) for view in views if view.selection is not None},
        shelf(trace, "marks"),
        theme,
    )


def session_over(before: Carried, trace: Trace) -> Session | None:
    """Return the view for the trace as it is now; None where its time is no longer part of the trace.

    Where the trace has other files than before, the state of single lanes is dropped: lanes are identified by
    the number of their file.
    """
    return _on(before, before.session, trace)


def history_over(before: Carried, trace: Trace) -> History:
    """Return the earlier and later views whose time the trace still has."""
    past, future = (
        tuple(view for old in views if (view := _on(before, old, trace)) is not None)
        for views in (before.history.past, before.history.future)
    )
    return History(past, future)


def _on(before: Carried, session: Session, trace: Trace) -> Session | None:
    if session.clocks == before.clocks or _files(trace) != before.files:
        session = replace(session, clocks=trace.clocks)
    if _files(trace) != before.files:
        session = replace(
            session,
            focus=None,
            selection=None,
            scroll=0,
            folded=frozenset(),
            unfolded=frozenset(),
            rank_order=(),
            pinned=(),
            hidden_lanes=frozenset(),
            hidden_processes=frozenset(),
        )
    elif session.selection is not None and _changed(before, session.selection, trace):
        session = replace(session, selection=None)
    return session_of(session_json(session), trace)


def with_logs_of(before: Carried, trace: Trace) -> Trace:
    """Return the trace with the logs that were laid over it before, as the user said of each."""
    if not before.logs:
        return trace
    from tracelane.core.logs.overlay import with_log

    there = {Path(log).absolute() for log, _ in _logs(trace)}
    for log, options in before.logs:
        if Path(log).absolute() not in there:
            trace = with_log(trace, log, options)
    return trace


def _logs(trace: Trace) -> tuple[tuple[str, LogOptions], ...]:
    from tracelane.core.logs.overlay import Overlay  # no first picture needs it

    return tuple((one.log.path, one.options) for one in trace.placed) if isinstance(trace, Overlay) else ()


def _files(trace: Trace) -> tuple[str, ...]:
    return tuple(source.path.removesuffix(UNFINISHED) for source in trace.files)


def _changed(before: Carried, selection: Selectable, trace: Trace) -> bool:
    return _named(trace, selection) != before.selected.get(selection)


def _named(trace: Trace, selection: Selectable) -> tuple[str, int] | None:
    """Return name and start, in lane time, of what is selected; None where the trace has nothing such."""
    thing = thing_by_id(trace, NO_CLOCKS, selection)
    return None if thing is None else (trace.name(thing.row, thing.index), thing.start)


Fold = LaneKey | tuple[int, str]
F = TypeVar("F", LaneKey, Fold)


STAYING: Final = (
    *("focus", "selection", "scroll", "folded", "unfolded", "pinned", "hidden_lanes", "hidden_processes"),
    *("hidden_alike", "panel", "show_quiet", "rank_lines", "map_lines", "host_rows", "device_rows"),
    *("devices_first", "ruler", "flows"),
)
"""What of a session stays as it is when more files come."""


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
        range=None if session.range is None else (session.range[0] + by, session.range[1] + by),
        **{name: getattr(session, name) for name in STAYING},
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
