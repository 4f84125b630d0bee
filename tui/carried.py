"""What is kept when a trace is opened again: views, marks, computed lanes, logs and theme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tracelane.core.base.clock import NO_CLOCKS, Clocks
from tracelane.core.export.marks import shelf
from tracelane.core.index.inputs import UNFINISHED
from tracelane.core.logs.counters import WithCounters
from tracelane.core.logs.overlay import LogOptions, Overlay
from tracelane.core.trace import Trace

from .actions.history import History
from .draw.things import thing_by_id
from .session import Selectable, Session
from .view_state import session_json, session_of

NO_HISTORY = History()


@dataclass(frozen=True)
class Carried:
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
    from tracelane.core.logs.opening import with_log

    there = {Path(log).absolute() for log, _ in _logs(trace)}
    for log, options in before.logs:
        if Path(log).absolute() not in there:
            trace = with_log(trace, log, options)
    return trace


def _logs(trace: Trace) -> tuple[tuple[str, LogOptions], ...]:
    return tuple((one.log.path, one.options) for one in trace.placed) if isinstance(trace, Overlay) else ()


def _files(trace: Trace) -> tuple[str, ...]:
    return tuple(source.path.removesuffix(UNFINISHED) for source in trace.files)


def _changed(before: Carried, selection: Selectable, trace: Trace) -> bool:
    return _named(trace, selection) != before.selected.get(selection)


def _named(trace: Trace, selection: Selectable) -> tuple[str, int] | None:
    """Return name and start, in lane time, of what is selected; None where the trace has nothing such."""
    thing = thing_by_id(trace, NO_CLOCKS, selection)
    return None if thing is None else (trace.name(thing.row, thing.index), thing.start)
