"""What stays as it was when a trace is opened anew: the view, the marks, logs and theme."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tracelane.core.base.clock import Clocks
from tracelane.core.export.marks import shelf
from tracelane.core.index.inputs import UNFINISHED
from tracelane.core.overlay.align import LogOptions
from tracelane.core.overlay.counters import files_of
from tracelane.core.overlay.lay_over import with_log
from tracelane.core.overlay.overlay import Overlay
from tracelane.core.trace import Trace

from .session import Selectable, Session
from .things import thing_by_id
from .view_state import session_json, session_of


@dataclass(frozen=True)
class Carried:
    """A view, and enough of the trace that it was of to know what of it still holds."""

    session: Session
    clocks: Clocks  # those that the trace opened with
    files: tuple[str, ...]
    logs: tuple[str, ...]
    selected: tuple[str, int] | None  # name and start of the selection
    marks: Path | None  # where they are kept
    theme: str


def carried(trace: Trace, session: Session, theme: str) -> Carried:
    """Return what is to stay of a trace that is seen so."""
    return Carried(
        session,
        trace.clocks,
        _files(trace),
        _logs(trace),
        _named(trace, session.clocks, session.selection),
        shelf(trace.indexes, "marks"),
        theme,
    )


def session_over(before: Carried, trace: Trace) -> Session | None:
    """Return the view over the trace as it is now; None where its time is not in there any more.

    Where the trace has other files than before, what is said of single lanes is dropped: lanes are named by
    the number of their file.
    """
    session = before.session
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
    elif _named(trace, session.clocks, session.selection) != before.selected:
        session = replace(session, selection=None)
    return session_of(session_json(session), trace)


def with_logs_of(before: Carried, trace: Trace) -> Trace:
    """Return the trace with the logs over it that lay there before, each by the clock proposed."""
    there = {Path(log).absolute() for log in _logs(trace)}
    for log in before.logs:
        if Path(log).absolute() not in there:
            trace = with_log(trace, log, LogOptions())
    return trace


def _logs(trace: Trace) -> tuple[str, ...]:
    return tuple(one.log.path for one in trace.placed) if isinstance(trace, Overlay) else ()


def _files(trace: Trace) -> tuple[str, ...]:
    return tuple(source.path.removesuffix(UNFINISHED) for source in files_of(trace.sources))


def _named(trace: Trace, clocks: Clocks, selection: Selectable | None) -> tuple[str, int] | None:
    thing = None if selection is None else thing_by_id(trace, clocks, selection)
    return None if thing is None else (trace.name(thing.row, thing.index), thing.start)
