"""Time stamps of logs: text to ns, rows of one second spread within it, the interval of each row; the wall
time of a trace, and time zones as users write them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, Bools, sum_of
from ..base.clock import wall_base_of
from ..base.errors import UsageError
from ..base.numbers import whole_number
from ..trace import Trace

if TYPE_CHECKING:
    from ..trace.devices import Device


SECOND = 1_000_000_000
GAP = 1.75
"""A row that comes later than this many usual intervals after the one before has a gap before it."""
NEIGHBOURS = 5
"""The usual interval at a row is the median over this many rows around it."""
NO_TIME = np.iinfo(np.int64).min
DAY_S = 86_400
LAST = 1 << 62
"""ns since 1970 that no stamp reaches (the year 2116): sums and differences of two fit into 64 bits."""
_MAX_DIGITS = 20
_CIVIL_WIDTH = 29
"""Bytes of YYYY-MM-DD HH:MM:SS.nnnnnnnnn."""

_EPOCH = re.compile(rb"[+]?\d+(\.\d+)?([eE][+-]?\d+)?")
_COMPACT = re.compile(rb"\d{8}[ T]\d\d:\d\d:\d\d([.,]\d+)?")
_CIVIL = re.compile(rb"\d{4}[-/]\d\d[-/]\d\d[ T]+\d\d:\d\d:\d\d([.,]\d+)?")
_TIME_OF_DAY = re.compile(rb"\d\d:\d\d:\d\d([.,]\d+)?")
_READABLE = re.compile(rb"(?:1[89]\d\d|20\d\d|210\d)-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.]\d+)?")
"""A time without a zone, in years that 64 bits of ns hold."""
_ZONED = re.compile(rb".*\d\d:\d\d(:\d\d([.,]\d+)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)")
_OTHER_FORMATS = (
    "%m/%d/%Y %H:%M:%S.%f",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
    "%Y-%m-%d %H:%M",
)
_EPOCH_UNITS = ((1e17, 1), (1e14, 1_000), (1e11, 1_000_000), (1e8, SECOND))
"""From this magnitude on a number of this unit (ns each) is a time since 1970 after 1973."""


class StampKind(StrEnum):
    """What the stamps of a log are counted from."""

    LOCAL = "local"  # civil time of an unnamed zone
    UTC = "utc"
    RELATIVE = "relative"  # seconds since something
    TIME_OF_DAY = "time of day"  # civil time of an unnamed zone, on a day that nothing names


@dataclass(frozen=True, eq=False)
class Stamps:
    """Stamps of some rows in ns (NO_TIME where unusable) and what they are counted from."""

    ns: I64
    kind: StampKind
    whole_seconds: bool


def parse_stamps(cells: Sequence[bytes]) -> Stamps:
    """Read a column of times in any of the usual notations, that of its first usable cell."""
    for cell in cells:
        cell = cell.strip()
        if _EPOCH.fullmatch(cell) and not re.fullmatch(rb"(19|20)\d{6}", cell):
            return _epoch(cells)
        if _ZONED.fullmatch(cell) and (_COMPACT.match(cell) or _CIVIL.match(cell)):
            return _one_by_one(cells, _zoned, StampKind.UTC)
        if _COMPACT.fullmatch(cell):
            parts = ((c[:4], c[4:6], c[6:8] + b"T" + c[9:]) for c in map(bytes.strip, cells))
            return _civil([b"-".join(part) for part in parts])
        if _CIVIL.fullmatch(cell):
            return _civil([c.strip().replace(b"/", b"-") for c in cells])
        if _TIME_OF_DAY.fullmatch(cell):
            of_day = _civil([b"1970-01-01 " + c.strip() for c in cells])
            return replace(of_day, kind=StampKind.TIME_OF_DAY)
        if _other(cell) != NO_TIME:
            return _one_by_one(cells, _other, StampKind.LOCAL)
    return Stamps(np.full(len(cells), NO_TIME, np.int64), StampKind.LOCAL, True)


def _civil(texts: list[bytes]) -> Stamps:
    fraction = any(b"." in t or b"," in t for t in texts)
    if fraction:
        texts = [t.replace(b",", b".") for t in texts]
    return Stamps(_civil_ns(texts), StampKind.LOCAL, not fraction)


def _civil_ns(texts: list[bytes]) -> I64:
    """Return times written YYYY-MM-DD HH:MM:SS[.fraction] in ns, NO_TIME for what is no such time. Digits are
    counted here: numpy's own reading warns of zones, wraps far years around, and its oldest version that is
    supported crashes on a month 13.
    """
    fit = np.fromiter((_READABLE.fullmatch(text) is not None for text in texts), bool, len(texts))
    blank = b"1970-01-01 00:00:00"
    padded = [(text if good else blank)[:_CIVIL_WIDTH].ljust(20, b".").ljust(_CIVIL_WIDTH, b"0")
              for text, good in zip(texts, fit)]  # fmt: skip
    characters = np.frombuffer(b"".join(padded), np.uint8).reshape(-1, _CIVIL_WIDTH)
    digits = characters.astype(np.int64) - ord("0")

    def number(begin: int, end: int) -> I64:
        value: I64 = digits[:, begin:end] @ 10 ** np.arange(end - begin - 1, -1, -1, dtype=np.int64)
        return value

    year, month, day = number(0, 4), number(5, 7), number(8, 10)
    hour, minute, second, fraction = number(11, 13), number(14, 16), number(17, 19), number(20, 29)
    months = (12 * (year - 1970) + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    after = (months + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64)
    fit &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= after - first)
    fit &= (hour < 24) & (minute < 60) & (second < 60)
    seconds = (first + day - 1) * DAY_S + hour * 3600 + minute * 60 + second
    return np.where(fit, seconds * SECOND + fraction, NO_TIME)


def _epoch(cells: Sequence[bytes]) -> Stamps:
    usable = [c.strip() if _EPOCH.fullmatch(c.strip()) else b"" for c in cells]
    first = float(next(c for c in usable if c))
    unit = next((unit for least, unit in _EPOCH_UNITS if first >= least), None)
    scale = unit or SECOND
    ns = np.array([_epoch_ns(cell, scale) if cell else NO_TIME for cell in usable], np.int64)
    whole = unit == SECOND and all(b"." not in c for c in usable)
    return Stamps(ns, StampKind.UTC if unit else StampKind.RELATIVE, whole)


def _epoch_ns(cell: bytes, scale: int) -> int:
    """Return a number of units of `scale` ns each in ns; NO_TIME where 64 bits do not hold it."""
    if b"e" in cell.lower():
        value = float(cell) * scale
        return round(value) if value < LAST else int(NO_TIME)
    head, _, tail = cell.partition(b".")
    if len(head) > _MAX_DIGITS:
        return int(NO_TIME)
    # Digits, not a float: an epoch in seconds has only some 200 ns left in 64 bits.
    tail = tail[:_MAX_DIGITS]
    ns = whole_number(head) * scale + (round(whole_number(tail) * scale / 10 ** len(tail)) if tail else 0)
    return ns if ns < LAST else int(NO_TIME)


def _of_datetime(moment: datetime) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    ns = (since.days * DAY_S + since.seconds) * SECOND + since.microseconds * 1_000
    return ns if -LAST < ns < LAST else int(NO_TIME)


def _zoned(cell: bytes) -> int:
    text = cell.decode("ascii", "replace").strip().replace("/", "-").replace(",", ".").replace("UTC", "Z")
    try:
        moment = datetime.fromisoformat(re.sub(r"\s+(?=Z|[+-]\d\d:?\d\d$)", "", text))
    except ValueError:
        return int(NO_TIME)
    return _of_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _other(cell: bytes) -> int:
    text = cell.decode("ascii", "replace").strip()
    for form in _OTHER_FORMATS:
        try:
            return _of_datetime(datetime.strptime(text, form).replace(tzinfo=UTC))
        except ValueError:
            continue
    return int(NO_TIME)


def _one_by_one(cells: Sequence[bytes], read: Callable[[bytes], int], kind: StampKind) -> Stamps:
    ns = np.fromiter((read(c) for c in cells), np.int64, len(cells))
    usable = ns[ns != NO_TIME]
    return Stamps(ns, kind, bool(np.all(usable % SECOND == 0)))


def on_days(times: I64, near: int) -> I64:
    """Return times of day, in the order in which they were written, in ns since 1970: on the days that bring
    their middle nearest to `near`. Written 23:59:58, 23:59:59, 00:00:00 the third is of the next day.
    """
    day = DAY_S * SECOND
    fell = np.diff(times, prepend=times[:1]) < -day // 2
    spread = times + np.cumsum(fell) * day
    middle = (int(spread.min()) + int(spread.max())) // 2 if len(spread) else near
    moved: I64 = spread + round((near - middle) / day) * day
    return moved


def sampling_interval(stamps: I64, whole_seconds: bool) -> int | None:
    """Return the usual time between the rows of one device in ns, or None where one row cannot tell. `stamps`
    is sorted. With whole-second stamps the rows of complete seconds are counted: the first and the last
    second may be cut, and pauses do not count.
    """
    if len(stamps) < 2:
        return None
    if not whole_seconds:
        steps = np.diff(stamps)
        steps = steps[steps > 0]
        return int(np.median(steps)) if len(steps) else None
    seconds, counts = np.unique(stamps, return_counts=True)
    if len(seconds) == 1:
        return SECOND // int(counts[0])
    steps = np.diff(seconds)
    usual = steps <= GAP * max(float(np.median(steps)), SECOND * 1.5)
    if len(seconds) == 2 or not usual[1:].any():
        return int(seconds[-1] - seconds[0] + SECOND) // sum_of(counts) if usual.all() else SECOND
    if counts.max() == 1:
        return int(steps[usual].mean())
    return sum_of(steps[1:][usual[1:]]) // sum_of(counts[1:-1][usual[1:]])


def spread_seconds(stamps: I64, interval: int) -> I64:
    """Return when the rows of one device were printed, given stamps cut to whole seconds (sorted). The n rows
    of one second are spread evenly within it, a lone one stands at its middle. In the first and last second
    of a group rows keep the usual distance, towards its neighbour, as the rest of that second was not logged.
    Off by at most half a second, in the middle of fast logs by a fraction of the interval.
    """
    seconds, first, counts = np.unique(stamps, return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(seconds)), counts)
    row = np.arange(len(stamps)) - first[group]
    number = counts[group]
    # Three rows a second, stamped 0 0 1 1 1 2: those of second 1 stand at 1.17, 1.5 and 1.83. Of second 0 the
    # first was not logged, so the two stand at its end, 0.5 and 0.83, and the one of second 2 at its begin,
    # 2.17: a third of a second between any two.
    within = (2 * row + 1) * SECOND // (2 * number)
    if interval < SECOND:
        adjoins = np.concatenate([[False], np.diff(seconds) <= max(SECOND, int(GAP * interval)), [False]])
        before, after = adjoins[:-1][group], adjoins[1:][group]
        fits = number * interval <= SECOND
        within = np.where(fits & after & ~before, SECOND - ((2 * (number - row) - 1) * interval) // 2, within)
        within = np.where(fits & before & ~after, ((2 * row + 1) * interval) // 2, within)
    return stamps + within


def interval_starts(ends: I64, interval: int) -> I64:
    """Return where each row's interval begins: at the row before, or one usual interval back after a gap."""
    if len(ends) < 2:
        return ends - interval
    steps = np.diff(ends)
    if len(steps) >= NEIGHBOURS:
        padded = np.pad(steps, NEIGHBOURS // 2, mode="edge")
        usual = np.median(np.lib.stride_tricks.sliding_window_view(padded, NEIGHBOURS), axis=1)
    else:
        usual = np.full(len(steps), float(np.median(steps)))
    gap: Bools = steps > GAP * np.maximum(usual, 1.0)
    starts = np.empty_like(ends)
    starts[1:] = np.where(gap, ends[1:] - usual.astype(np.int64), ends[:-1])
    starts[0] = ends[0] - int(usual[0])
    return starts


class Wall:
    """Wall time of a trace, and when its devices were busy in it."""

    def __init__(self, trace: Trace) -> None:
        """Take a trace; everything is computed on first use."""
        self.trace = trace

    @cached_property
    def base(self) -> int | None:
        """Wall time (UTC ns) at trace time zero, None where the trace does not tell."""
        for source in self.trace.sources:
            if source.base_time_ns is not None:
                return source.base_time_ns
        return wall_base_of(self.trace.opening_span[0])

    def local_middle(self, zone: str) -> int | None:
        """Return what clocks of a zone, else of this host, show at the middle of the trace, ns."""
        if self.base is None:
            return None
        middle = sum(self.trace.opening_span) // 2 + self.base
        return middle + (zone_offset(zone, middle) if zone else offset_at(middle)) * SECOND

    @property
    def missing(self) -> str:
        """Return why no log can be laid over the trace."""
        path = self.trace.sources[0].path if self.trace.sources else "the trace"
        return f"{path}: has no wall time (baseTimeNanoseconds), so no log can be aligned with it"

    @cached_property
    def devices(self) -> Mapping[str, Device]:
        """The devices by key: the pid as people write it, with the source's number where pids repeat."""
        from ..trace.devices import device_keys  # only where logs are laid over a trace

        return device_keys(self.trace)

    @cached_property
    def busy(self) -> tuple[Mapping[str, tuple[I64, I64]], tuple[int, int]]:
        """When each device was busy, by key, and begin and end of the trace, in wall time (UTC ns).
        UsageError where there is none.
        """
        if self.base is None:
            raise UsageError(self.missing)
        from ..tables.device.device_state import device_states
        from ..tables.device.states import IDLE, WAITING
        from ..tables.frame.scope import Scope

        window = self.trace.opening_span
        states = device_states(Scope(self.trace, window, clocks=self.trace.clocks))
        busy = {key: (np.empty(0, np.int64), np.empty(0, np.int64)) for key in self.devices}
        keys = {device: key for key, device in self.devices.items()}
        for one in states:
            working = (one.states != IDLE) & (one.states != WAITING)
            starts, ends = one.edges[:-1][working], one.edges[1:][working]
            busy[keys[one.device.device]] = starts + self.base, ends + self.base
        return busy, (window[0] + self.base, window[1] + self.base)


_OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)


def zone_offset(zone: str, local_ns: int) -> int:
    """Return by how many seconds a zone is ahead of UTC when its clocks show `local_ns` (as if it were UTC).
    Takes a name ("Europe/Zurich"), "UTC", an offset ("-04:00", "+0530") or "local", the zone of this host.
    Raises UsageError for anything else.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    text = zone.strip()
    match = _OFFSET.fullmatch(text)
    if match:
        hours, minutes = whole_number(match[2]), whole_number(match[3] or "0")
        if hours > 14 or minutes > 59:
            raise UsageError(f"no time zone is {text} from UTC")
        return (-1 if match[1] == "-" else 1) * (hours * 3600 + minutes * 60)
    if text.upper() in ("UTC", "GMT", "Z"):
        return 0
    if text.lower() == "local":
        return offset_at(local_ns)
    try:
        return offset_at(local_ns, ZoneInfo(text))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"no time zone is called {text!r}: give a name (Europe/Zurich), an offset (+02:00), UTC or local"
        ) from None


def offset_at(local_ns: int, zone: tzinfo | None = None) -> int:
    """Return by how many seconds a zone's clocks, else this host's, are ahead of UTC at a local time."""
    try:
        civil = datetime(1970, 1, 1) + timedelta(seconds=local_ns // SECOND)
        moment = civil.astimezone() if zone is None else civil.replace(tzinfo=zone)
        offset = moment.utcoffset()
    except (OverflowError, OSError):
        return 0
    return 0 if offset is None else round(offset.total_seconds())


def offset_text(offset_s: float) -> str:
    """Return an offset from UTC as people write it: "UTC+05:30"; of stamps that count from a log's own start,
    which no zone is as far from as, that.
    """
    if abs(offset_s) > DAY_S:
        return "from its own start"
    minutes = round(abs(offset_s) / 60)
    return f"UTC{'-' if offset_s < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
