"""Times as people type them and as they are written: from the start, as in the file, on the wall clock in a
zone; of a step or a mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple

from tracelane.core.base.clock import NO_CLOCKS, Clocks, wall_base_of
from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.late_pattern import late_pattern
from tracelane.core.base.numbers import whole_number
from tracelane.core.base.units import TIME_LIMIT, count_of, format_moment
from tracelane.core.export.marks import Mark, moved, read_marks, shelf
from tracelane.core.trace import Trace

from .session import Session
from .steps import step_marks

READINGS = (
    "+12.5ms from the start, @5533068085033.188 µs as in the file, 09:28:06.1 wall clock, step:4, mark:NAME"
)

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_RELATIVE = late_pattern(rf"\+\s*({_NUMBER})\s*(ns|us|µs|μs|ms|s|min)")
_FILE = late_pattern(rf"@\s*([+-]?(?:{_NUMBER})(?:[eE][+-]?\d+)?)")
_CLOCK = late_pattern(r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_MARK = late_pattern(r"mark:(\S.*)")
_STEP = late_pattern(r"step:(?:(nth:)(-?\d+)|(\S.*?))")
_LIMIT = 1 << 80  # farther than any clock goes; keeps an absurd exponent from becoming a huge integer
_DAY_NS = 86_400 * 10**9


class TimeFrame(NamedTuple):
    """What typed times refer to, all in ns of trace time.

    `file_offset` is trace time minus the file's own time; `wall_offset` wall time (UTC, since 1970) minus
    trace time, None where the trace does not tell; `steps` and `marks` (label, start, end) in order of start.
    """

    start: int
    end: int
    file_offset: int = 0
    wall_offset: int | None = None
    steps: Sequence[tuple[str, int, int]] = ()
    zone: str = ""  # as zone_of reads it; empty: this machine's
    marks: Sequence[tuple[str, int, int]] = ()


def parse_time(text: str, frame: TimeFrame) -> int:
    """Return the trace time in ns that a text means; UsageError says what was not understood."""
    return parse_span(text, frame)[0]


def parse_span(text: str, frame: TimeFrame) -> tuple[int, int]:
    """Return (start, end) of what a text means: of steps and marks their length, else one stamp twice."""
    text = text.strip()
    if match := _RELATIVE.fullmatch(text):
        time = frame.start + _to_ns(match[1], _UNITS[match[2]])
    elif match := _FILE.fullmatch(text):
        time = _to_ns(match[1], 1_000) + frame.file_offset
    elif match := _CLOCK.fullmatch(text):
        time = _wall(match, frame)
    elif match := _STEP.fullmatch(text):
        return _step(match, frame)
    elif match := _MARK.fullmatch(text):
        return _mark(match[1], frame)
    elif re.fullmatch(rf"[+-]?\s*(?:{_NUMBER})\s*[a-zµμ]*", text):
        raise UsageError(f"{text} could mean several times; write {READINGS}")
    else:
        raise UsageError(f"{text!r} is no time; write {READINGS}")
    time = max(-TIME_LIMIT, min(TIME_LIMIT, time))
    return time, time


def parse_range(text: str, frame: TimeFrame) -> tuple[int, int]:
    """Return (start, end) of FROM..TO, step:3..7, or one step or mark that has a length; else UsageError."""
    begin, dots, end = text.strip().partition("..")
    if dots and begin.startswith("step:") and re.fullmatch(r"-?\w+", end):
        end = begin[: begin.rindex(":") + 1] + end
    start, stop = parse_span(begin, frame)
    if dots:
        stop = parse_span(end, frame)[1]
    if stop <= start:
        raise UsageError(f"{text!r} is not a range of time: write FROM..TO, or a step")
    return start, stop


def _to_ns(number: str, unit: int) -> int:
    from decimal import ROUND_HALF_EVEN, Context, Decimal, DecimalException

    try:
        value = Context(prec=60, rounding=ROUND_HALF_EVEN).multiply(Decimal(number), Decimal(unit))
        if abs(value) > _LIMIT:
            raise UsageError(f"{number} is too far away")
        return int(value.to_integral_value(ROUND_HALF_EVEN))
    except DecimalException:
        raise UsageError(f"{number} is too far away") from None


def _wall(match: re.Match[str], frame: TimeFrame) -> int:
    if frame.wall_offset is None:
        raise UsageError("this trace does not say when it was recorded: use +12.5ms or @µs")
    zone = zone_of(frame.zone)
    hour, minute, second = whole_number(match[2]), whole_number(match[3]), whole_number(match[4] or "0")
    nanos = whole_number((match[5] or "").ljust(9, "0"))
    begin = frame.start + frame.wall_offset
    try:
        day = datetime.fromisoformat(match[1]) if match[1] else moment_of(begin, frame.zone)
        if day is None:
            raise UsageError("this trace is outside any calendar: use +12.5ms or @µs")
        moment = datetime(day.year, day.month, day.day, hour, minute, second)
        if zone is not None:
            moment = moment.replace(tzinfo=zone)
        stamp = round(moment.timestamp()) * 10**9 + nanos - frame.wall_offset
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{match[0]} is not a time of day: {error}") from None
    if match[1]:
        return stamp
    # Without a date: the day on which that time comes nearest to what was recorded.
    middle = (frame.start + frame.end) // 2
    return min((stamp + days * _DAY_NS for days in (-1, 0, 1)), key=lambda time: abs(time - middle))


def _step(match: re.Match[str], frame: TimeFrame) -> tuple[int, int]:
    steps = frame.steps
    if not steps:
        raise UsageError("this trace has no steps")
    if match[1]:
        number = whole_number(match[2])
        try:
            _, start, end = steps[number]
        except IndexError:
            names = "nth:0" if len(steps) == 1 else f"nth:0 to nth:{len(steps) - 1}"
            raise UsageError(f"this trace has {count_of(len(steps), 'step')}: {names}") from None
        return start, end
    name = match[3]
    for label, start, end in steps:
        if label == name or label.removeprefix("ProfilerStep").lstrip("#") == name:
            return start, end
    raise UsageError(f"no step {name}; there are {steps[0][0]} to {steps[-1][0]}")


def _mark(name: str, frame: TimeFrame) -> tuple[int, int]:
    """Return the time of the mark with this text, capitals aside; the first of several."""
    for exact in (True, False):
        for text, start, end in frame.marks:
            if text and (text == name if exact else text.casefold() == name.casefold()):
                return start, end
    named = [text for text, _, _ in frame.marks if text]
    there = f"there are {', '.join(named[:8])}" if named else "no mark of this trace has a text"
    raise UsageError(f"no mark {name!r}; {there}")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = late_pattern(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)


@lru_cache(maxsize=16)
def zone_of(name: str) -> tzinfo | None:
    """Return the zone of a name (Europe/Zurich), an offset (+02:00) or UTC; None, this machine's, for "" and
    "local". Raises UsageError for anything else.
    """
    if name.lower() in ("", "local"):
        return None
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=whole_number(match[2]), minutes=whole_number(match[3] or "0"))
        if offset < timedelta(hours=24):
            return timezone(offset if match[1] == "+" else -offset)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # names of zones are rare, and this is large

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"{name!r} is no time zone known here: give Europe/Zurich, +02:00, UTC or local"
        ) from None


def moment_of(stamp: int, zone: str = "") -> datetime | None:
    """Return the local date and time, to the second, of ns since 1970; None where no calendar reaches."""
    try:
        return (_EPOCH + timedelta(seconds=stamp // 10**9)).astimezone(zone_of(zone))
    except (OverflowError, ValueError, OSError):
        return None


def zone_text(moment: datetime) -> str:
    """Return how far a local time is from UTC as people write it: "UTC+05:30", "UTC"."""
    minutes = round((moment.utcoffset() or timedelta()).total_seconds() / 60)
    if not minutes:
        return "UTC"
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


class TimeWriter(NamedTuple):
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
