"""Views that outlast what they show: kept as JSON for the next time, with marks; carried over to the trace
when it is opened again, or has more files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from tracelane.core.base.clock import NO_CLOCKS, Clocks
from tracelane.core.base.errors import DamagedIndexError, TracelaneError, UsageError
from tracelane.core.export.marks import Mark, read_marks, read_named_marks, read_object, shelf, write_marks
from tracelane.core.index.inputs import UNFINISHED, check_there
from tracelane.core.logs.counters import WithCounters
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace, trace_so_far

from .actions.scene import History
from .actions.view import limits
from .draw.layout import Layout
from .draw.line import Line, LineKind
from .draw.ranks import RANK_PARTS
from .session import GapId, InstantId, LaneKey, RowKey, Selectable, Session, Viewport

if TYPE_CHECKING:
    from tracelane.core.index.opening import Gathering
    from tracelane.core.logs.overlay import LogOptions


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
    return {"schema": SCHEMA, "session": _encoded(session._replace(anchor=None))}


def session_of(value: dict[str, Any] | None, trace: Trace) -> Session | None:
    """Return the session that a JSON object holds; None if it is none, or speaks of another time."""
    if value is None or value.get("schema") != SCHEMA:
        return None
    try:
        session = _decoded(value["session"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return _within(session, trace) if isinstance(session, Session) and _sound(session) else None


def _within(session: Session, trace: Trace) -> Session | None:
    """Return the session with its view within a trace; None where it is of another time."""
    low, high = limits(trace, session.clocks)
    view = session.viewport
    if view.end <= low or view.start >= high:
        return None
    return session._replace(viewport=view.kept_within((low, high)))


def _sound(session: Session) -> bool:
    """Tell whether a session from a file is one that can be drawn: all of its types, and how many of each."""
    view = session.viewport
    return (
        _is_a(session, Session)
        and 0 < view.width <= view.span
        and min(session.scroll, session.map_lines, session.host_rows) >= 0
        and min(session.panel_size, session.device_rows) >= 1
        and session.rank_lines in range(1, len(RANK_PARTS) + 1)
        and session.device_lines in (1, 2)
    )


def _is_a(value: object, kind: Any) -> bool:
    """Tell whether a value is of a type, with all that is in tuples, sets and value types."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_a(value, one) for one in inside)
    if type(value) is not (origin or kind):
        return False
    if kind is Clocks:
        return True
    if kind in _KINDS.values():
        return all(_is_a(getattr(value, name), one) for name, one in get_type_hints(kind).items())
    if isinstance(value, frozenset) or (isinstance(value, tuple) and inside[1:] == (Ellipsis,)):
        return all(_is_a(entry, inside[0]) for entry in value)
    return not isinstance(value, tuple) or (len(value) == len(inside) and all(map(_is_a, value, inside)))


def _encoded(value: Any) -> Any:
    if isinstance(value, Clocks):
        return {"is": "Clocks", "offsets": [[*key, ns] for key, ns in value.offsets.items()]}
    if type(value) in _KINDS.values():
        members = {name: _encoded(getattr(value, name)) for name in _names_of(type(value))}
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
    known = _names_of(kind_of_value)
    return kind_of_value(**{name: _decoded(entry) for name, entry in value.items() if name in known})


def _names_of(kind: Any) -> Sequence[str]:
    """Return the names of the members of values of a kind."""
    return kind._fields if issubclass(kind, tuple) else [field.name for field in fields(kind)]


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

    def so_far(self) -> Prepared:
        """Return the trace of the files that are there, in the view before where it has one; what is asked of
        tables and searches waits for the other files.
        """
        trace = trace_so_far(self.gathering)
        session = None if self.before is None else session_over(self.before, trace)
        if session is not None:
            session = session._replace(panel="details", search="", filter="", only="")
        return Prepared(trace, session)


NO_HISTORY = History()


class Carried(NamedTuple):
    """The current view, the earlier and later ones, and what is needed of their trace to see which parts
    still apply.
    """

    session: Session
    history: History
    clocks: Clocks  # with which the trace was opened
    files: Mapping[str, int]  # the source of each file and log, by its path
    first: int  # the source of the first lane: a view without a focused one goes with its clock
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
        next((lane.source for lane in trace.lanes), 0),
        _logs(trace),
        frozenset(one.kind for one in counters),
        {view.selection: _named(trace, view.selection) for view in views if view.selection is not None},
        shelf(trace, "marks"),
        theme,
    )


def session_over(before: Carried, trace: Trace) -> Session | None:
    """Return the view for the trace as it is now; None where its time is no longer part of the trace.

    What is said of lanes goes with their files, and is dropped where these are gone. Where clocks have
    changed the view goes with that of the focused lane, which stays where it was on the screen.
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
    numbers, clocks = sources_now(before, trace), session.clocks
    has_same = list(before.files) == list(_files(trace))
    if clocks == before.clocks or not has_same:
        clocks = trace.clocks
    lane = LaneKey(before.first, "", "") if session.focus is None else session.focus.lane
    source = lane.source if has_same else numbers.get(lane.source)
    before_ns = session.clocks.offset(lane.source, lane.pid)
    later = 0 if source is None else clocks.offset(source, lane.pid) - before_ns
    now = _later(session if has_same else numbered_anew(session, numbers), later)
    now = now._replace(clocks=clocks)
    chosen, was = now.selection, session.selection
    if chosen is not None and was is not None and _named(trace, chosen) != before.selected.get(was):
        now = now._replace(selection=None)  # another slice has that number
    return _within(now, trace)


def sources_now(before: Carried, trace: Trace) -> dict[int, int]:
    """Return the new number of the source of each file by its old one, without those that are gone."""
    now = _files(trace)
    return {source: now[path] for path, source in before.files.items() if path in now}


SETS_OF_KEYS: Final = ("folded", "unfolded", "hidden_lanes", "hidden_processes")


def numbered_anew(session: Session, sources: Mapping[int, int]) -> Session:
    """Return a session with new numbers of sources; what belongs to a source without one is dropped."""

    def renumbered(keys: Iterable[Any]) -> Iterator[Any]:
        return (now for key in keys if (now := _renumbered(key, sources)) is not None)

    lane = None if session.focus is None else _renumbered(session.focus.lane, sources)
    sets: dict[str, Any] = {name: frozenset(renumbered(getattr(session, name))) for name in SETS_OF_KEYS}
    return session._replace(
        focus=None if session.focus is None or lane is None else session.focus._replace(lane=lane),
        selection=_renumbered(session.selection, sources),
        pinned=tuple(renumbered(session.pinned)),
        rank_order=tuple(sources[source] for source in session.rank_order if source in sources),
        **sets,
    )


def _renumbered(key: Any, sources: Mapping[int, int]) -> Any:
    """Return the key of a lane, a process or what can be selected with its source's new number, else None."""
    if isinstance(key, tuple) and not isinstance(key, LaneKey):
        return (sources[key[0]], *key[1:]) if key[0] in sources else None
    if key is None or key.source not in sources:
        return None
    number = sources[key.source]
    return key._replace(source=number) if isinstance(key, LaneKey) else replace(key, source=number)


def _later(session: Session, ns: int) -> Session:
    """Return the session with all its times so much later."""

    def later(span: tuple[int, int] | None) -> tuple[int, int] | None:
        return None if span is None else (span[0] + ns, span[1] + ns)

    return session._replace(
        viewport=session.viewport._replace(start=session.viewport.start + ns),
        cursor=session.cursor + ns,
        anchor=None if session.anchor is None else session.anchor + ns,
        range=later(session.range),
        baseline=later(session.baseline),
    )


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


def _files(trace: Trace) -> dict[str, int]:
    return {source.path.removesuffix(UNFINISHED): source.number for source in trace.files}


def _named(trace: Trace, selection: Selectable) -> tuple[str, int] | None:
    """Return name and start, in lane time, of what is selected; None where the trace has nothing such."""
    from .draw.things import thing_by_id

    thing = thing_by_id(trace, NO_CLOCKS, selection)
    return None if thing is None else (trace.name(thing.row, thing.index), thing.start)


def scroll_kept(before: Layout, session: Session, now: Layout, lines: int, sources: Mapping[int, int]) -> int:
    """Return the scroll position at which the focused line, else the topmost in sight, stays where it was on
    the screen; `sources` are the numbers that they have now.
    """
    top = before.scrolled(session.scroll, lines)
    seen = before.lines(top, lines)
    focus = session.focus
    at = next((y for y, line in enumerate(seen) if focus is not None and line.row_key == focus), 0)
    if not seen:
        return 0
    key, *which = _name(seen[at])
    name = (_renumbered(key, sources), *which)
    y = next((y for y, line in enumerate(now.lines(0, now.height)) if _name(line) == name), None)
    return now.scrolled(session.scroll if y is None else y - at, lines)


def _name(line: Line) -> tuple[object, ...]:
    """Return what identifies a line in a layout: what it belongs to, and which one of its lines it is."""
    special = line.kind if line.kind in (LineKind.QUIET, LineKind.MORE, LineKind.NOTE) else None
    return line.fold_key, max(0, line.depth), special
