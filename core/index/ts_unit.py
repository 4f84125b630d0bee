"""What is to be known of the times of a file: what they count from, and whether they can be µs at all.

The Trace Event Format has µs. What a writer counts instead is told by size, as nobody records the future, or
by a key of the file; ticks of 100 ns are what clocks of Windows (since 1601) and .NET (since year 1) count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..base.late_pattern import late_pattern
from ..base.safe_text import safe
from ..base.units import format_count
from ..read.source import TIME_DIGITS, Source, TsUnit
from .store import Index

YEAR_NS = 365 * 86400 * 10**9
SLACK_NS = 10 * YEAR_NS
"""A clock that is set wrong is so far ahead at most, and ticks since 1970 are so old at most."""
TICK_NS = 10 ** TIME_DIGITS["100ns"]
TICKS_SINCE = {"1601": 11_644_473_600 * 10**9, "year 1": 62_135_596_800 * 10**9}
"""What ticks of 100 ns count from, and how long (ns) before 1970 that was."""
UNIT_KEY = late_pattern(r"^(time|ts|timestamp|tick)s?[_ -]?(units?|resolution)$", re.IGNORECASE)
FREQUENCY_KEY = late_pattern(
    r"^ticks?[_ -]?per[_ -]?sec(ond)?$|^(qpc|tick|timestamp)[_ -]?frequency$", re.IGNORECASE
)
UNITS: Mapping[TsUnit, tuple[str, ...]] = {
    "us": ("us", "usec", "µs", "microsecond", "microseconds", "1us"),
    "ns": ("ns", "nsec", "nanosecond", "nanoseconds", "1ns"),
    "100ns": ("100ns", "100 ns", "100nanoseconds"),
}
"""What files call units that are read."""


def looks_like_ns(index: Index, now_ns: int) -> bool:
    """Tell whether a file was read in µs and can only hold ns: read so it lies in the future, by whatever
    clock, as none counts from before 1970, and read as ns it does not. `now_ns`: since 1970.
    """
    number = _future(index, now_ns)
    return number is not None and not _tick_epochs(index, number, now_ns)


def unit_doubt(index: Index, now_ns: int) -> str:
    """Return what is to be said of the unit of a file's times where they are no µs, "" where they may be."""
    if stated := _stated(index):
        return stated
    number = _future(index, now_ns)
    if number is None:
        return ""
    if epochs := _tick_epochs(index, number, now_ns):
        return f"ts looks like ticks of 100 ns since {epochs[0]}: open the trace with --ts-unit 100ns"
    has_base = bool(index.manifest.get("base_time_ns"))
    if not has_base and now_ns - SLACK_NS <= number * TICK_NS <= now_ns + SLACK_NS:
        return "ts looks like ns, or ticks of 100 ns: open the trace with --ts-unit ns, or 100ns"
    return "ts looks like ns: open the trace with --ts-unit ns"


def _future(index: Index, now_ns: int) -> int | None:
    """Return a typical `ts` of a file that was read in µs and lies in the future so, and as ns does not."""
    if index.ts_unit != "us" or (isinstance(index.source, Source) and index.source.becomes_json):
        return None
    filled = index.lanes[(index.lanes["slices"] > 0) | (index.lanes["end"] > index.lanes["start"])]
    if not len(filled):
        return None
    middle = int(np.sort(filled["start"])[len(filled) // 2]) + index.origin_ns
    base = index.manifest.get("base_time_ns") or 0
    latest = now_ns + SLACK_NS
    return middle // 1000 if base + middle > latest >= base + middle // 1000 else None


def _tick_epochs(index: Index, number: int, now_ns: int) -> list[str]:
    """Return since when ticks of 100 ns may count: so that a number of them is within 30 years of now."""
    if index.manifest.get("base_time_ns"):
        return []
    times = {since: number * TICK_NS - before for since, before in TICKS_SINCE.items()}
    return [since for since, time in times.items() if now_ns - 3 * SLACK_NS <= time <= now_ns + SLACK_NS]


def _stated(index: Index) -> str:
    """Return what a key of a file says of its unit where it is not the one in which it was read."""
    for key, value in _keys(index.envelope):
        text = str(value).strip().lower()
        if UNIT_KEY.match(key) and isinstance(value, str):
            unit = next((unit for unit, names in UNITS.items() if text in names), None)
            what = f"{key} of the file is {safe(str(value))[:40]}"
        elif FREQUENCY_KEY.match(key) and isinstance(value, int | float) and value > 0:
            unit = next((unit for unit, digits in TIME_DIGITS.items() if value == 10 ** (9 - digits)), None)
            what = f"{key} of the file is {value:,}"
        else:
            continue
        if unit is None:
            return f"{what}, which is not read: times and durations are told as if ts counted µs"
        return "" if unit == index.ts_unit else f"{what}: open the trace with --ts-unit {unit}"
    return ""


def _keys(envelope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield keys and values beside the events, and those of objects there."""
    for key, value in envelope.items():
        yield key, value
        if isinstance(value, dict):
            yield from ((str(inner), content) for inner, content in value.items())


def time_notes(index: Index, now_ns: int) -> tuple[str, ...]:
    """Return what is to be known of the times of a file: what they count from, and what their unit may be."""
    notes = []
    if origin := index.origin_ns:
        unit = 10 ** TIME_DIGITS[index.ts_unit]
        notes.append(
            f"times count from ts {format_count(origin // unit)}, which is too large for ns in 64 bits"
        )
    if doubt := unit_doubt(index, now_ns):
        notes.append(doubt)
    return tuple(notes)
