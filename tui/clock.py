"""How a trace's times are written: from its start, as in the file, on the wall clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracelane.core.base.clock import NO_CLOCKS, Clocks, wall_base_of
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.units import format_moment
from tracelane.core.export.marks import Mark, moved, read_marks, shelf
from tracelane.core.trace import Trace

from .session import Session
from .steps import step_marks
from .times import TimeFrame
from .zone import moment_of, zone_text


@dataclass(frozen=True)
class TimeWriter:
    """Writes trace times; `zero` is what relative ones count from."""

    zero: int
    offsets: tuple[int, ...]  # trace time minus the file's own, by source
    wall_offset: int | None
    clocks: Clocks = NO_CLOCKS
    zone: str = ""  # that wall times are written in; empty: this machine's
    steps: str = ""  # as in a Session

    def relative(self, time: int) -> str:
        """Return a time counted from the start of the trace, exact."""
        return format_moment(time - self.zero)

    def file(self, time: int, source: int = 0, process: str = "") -> str:
        """Return a time as it stands in the file: µs, three decimals."""
        time -= self.clocks.offset(source, process)
        sign, time = ("-", -time) if time < 0 else ("", time)
        return f"{sign}{time // 1000}.{time % 1000:03d} µs"

    def wall(self, time: int) -> str | None:
        """Return date and time to the ns in the session's zone, and the zone; None where the trace does not
        tell.
        """
        if self.wall_offset is None:
            return None
        stamp = time + self.wall_offset
        moment = moment_of(stamp, self.zone)
        if moment is None:
            return None
        return f"{moment:%Y-%m-%d %H:%M:%S}.{stamp % 10**9:09d} {zone_text(moment)}"


def wall_offset(trace: Trace, clocks: Clocks) -> int | None:
    """Return wall time minus trace time in ns, None where the trace does not tell."""
    for number, source in enumerate(trace.sources):
        if source.base_time_ns is not None:
            return source.base_time_ns - clocks.offset(number)
    return wall_base_of(trace.opening_span[0])


def stamps_of(trace: Trace, session: Session) -> TimeWriter:
    """Return the writer of a trace's times in a session."""
    clocks = session.clocks
    offsets = tuple(clocks.offset(number) for number in range(len(trace.sources)))
    wall = wall_offset(trace, clocks)
    return TimeWriter(trace.opening_span[0], offsets, wall, clocks, session.zone, session.steps)


def time_frame(
    trace: Trace,
    clocks: Clocks = NO_CLOCKS,
    zone: str = "",
    marks: Sequence[Mark] | None = None,
    steps: str = "",
) -> TimeFrame:
    """Return what typed times refer to; marks in trace time, those kept of the trace if None; steps as in a
    Session.
    """
    if marks is None:
        marks = kept_marks(trace, clocks)
    return TimeFrame(
        start=trace.opening_span[0],
        end=trace.opening_span[1],
        file_offset=clocks.offset(0),
        wall_offset=wall_offset(trace, clocks),
        steps=step_marks(trace, clocks, steps),
        zone=zone,
        marks=[(mark.text, mark.start, mark.end) for mark in marks],
    )


def kept_marks(trace: Trace, clocks: Clocks) -> tuple[Mark, ...]:
    """Return the marks that are kept of a trace, in trace time; none where they cannot be read."""
    path = shelf(trace, "marks")
    try:
        marks = () if path is None else read_marks(path)
    except TracelaneError:
        return ()
    return moved(marks, clocks.offset(0))
