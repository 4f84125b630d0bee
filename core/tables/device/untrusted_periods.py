"""The periods that cannot be trusted, as tables, findings and notes ask for them: looked for once in a
process, and of a large trace kept beside its index, as every table says them below its rows.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import I64, Intervals, merge
from ...base.cached_per_object import cached_per_object
from ...base.clock import Clocks
from ...base.private import read_sealed_json
from ...trace.devices import Device, devices
from ..frame.cached import are_large, usual_cache_file, write_cached
from ..frame.frame import Frame
from ..frame.scope import Scope
from .untrusted import OF_DEVICES, OF_RECORDS, TROUBLES, LostCalls, Untrusted

if TYPE_CHECKING:
    from ...trace import Trace

MAX_SOURCES = 4096
"""Of so many ranks it is held what cannot be trusted: with fewer than there are each would be asked anew."""
MAX_PERIODS = 10_000
"""More are looked for each time: of so many the file has two megabytes."""
NUMBERS = ("start", "end", "count", "position", "lane", "fills")


def untrusted(scope: Scope) -> tuple[Untrusted, ...]:
    """Return the time of a scope's sources that cannot be trusted, whatever its range, by start."""
    by_source = [periods_of(scope.trace, source, scope.clocks) for source in scope.sources]
    return tuple(sorted((one for source in by_source for one in source), key=lambda one: one.start))


@cached_per_object(MAX_SOURCES)
def periods_of(trace: Trace, source: int, clocks: Clocks) -> tuple[Untrusted, ...]:
    """Return the periods of one source: tables, findings and notes of one answer ask for them."""
    path = periods_file(trace, source, clocks)
    periods = None if path is None else _kept_periods(path, trace, source)
    if periods is None:
        periods = tuple(LostCalls(Scope(trace, clocks=clocks, source=source), source).periods())
        if path is not None and len(periods) <= MAX_PERIODS:
            write_cached(path, [_stored(one, trace) for one in periods])
    return periods


def periods_file(trace: Trace, source: int, clocks: Clocks) -> Path | None:
    """Return where the periods of a source are kept, None where they are not."""
    is_large = are_large(trace.indexes[source : source + 1])
    return usual_cache_file(trace, clocks, f"untrusted-{source}") if is_large else None


def untrusted_time(
    periods: Sequence[Untrusted], device: Device | None = None, troubles: Container[str] = OF_RECORDS
) -> Intervals:
    """Return the time for which records of devices cannot be trusted; of a device, with those of all of its
    source.
    """
    own = [
        one
        for one in periods
        if one.trouble in troubles
        and (device is None or one.device == device or (one.device is None and one.source == device.source))
    ]
    return merge(np.array([one.start for one in own], np.int64), np.array([one.end for one in own], np.int64))


def unknown_time(scope: Scope, device: Device) -> Intervals:
    """Return the time in which it is not known what a device did: no idle time is counted in it."""
    return untrusted_time(periods_of(scope.trace, device.source, scope.clocks), device, OF_DEVICES)


def longest_unknown(scope: Scope) -> tuple[int, int] | None:
    """Return the longest time [start, end) in which it is not known what a device did, None where it is."""
    unknown = [
        (end - start, start, end)
        for device in devices(scope.trace)
        for one in (unknown_time(scope, device),)
        for start, end in zip(one.starts.tolist(), one.ends.tolist())
    ]
    return max(unknown)[1:] if unknown else None


def with_known_gaps(work: Frame) -> Frame:
    """Return device work whose gaps count only the time in which it is known that the device did nothing."""
    if not any(one.trouble in OF_DEVICES for one in untrusted(work.scope)):
        return work
    gap: I64 = np.array(work.gap, np.int64)
    for part in work.plus(_row=np.arange(len(work))).by("device_row"):
        time = unknown_time(work.scope, part.first_device.device)
        gap[part._row] -= time.covered(part.start - part.gap, part.start)
    return work.plus(gap=gap)


def _stored(one: Untrusted, trace: Trace) -> dict[str, Any]:
    device = None if one.device is None else devices(trace).index(one.device)
    numbers = {key: getattr(one, key) for key in NUMBERS}
    return {"trouble": one.trouble, "device": device, "called": one.called, **numbers}


def _kept_periods(path: Path, trace: Trace, source: int) -> tuple[Untrusted, ...] | None:
    """Return the periods that were kept, None where they have to be looked for."""
    try:
        return tuple(_period(stored, trace, source) for stored in read_sealed_json(path))
    except (OSError, KeyError, TypeError, ValueError, IndexError):
        return None


def _period(stored: dict[str, Any], trace: Trace, source: int) -> Untrusted:
    """Return a stored period; ValueError, IndexError or TypeError where it is none of this source."""
    numbers = {key: stored[key] for key in NUMBERS}
    called = None if stored["called"] is None else tuple(stored["called"])
    known = [one for one in (*numbers.values(), *(called or ()), stored["device"]) if one is not None]
    if not all(type(one) is int for one in known) or not {"start", "end", "count", "fills"} <= {
        key for key, one in numbers.items() if one is not None
    }:
        raise TypeError("not a period")
    if stored["trouble"] not in TROUBLES or (called is not None and len(called) != 2):
        raise ValueError("not a period")
    slices = trace.indexes[source].length("slices.start")
    for key, count in (("position", slices), ("lane", len(trace.lanes))):
        if numbers[key] is not None and not 0 <= numbers[key] < count:
            raise ValueError("a period of nothing")
    device = None
    if stored["device"] is not None:
        device = devices(trace)[stored["device"]]
        if stored["device"] < 0 or device.source != source:
            raise ValueError("a period of another source's device")
    return Untrusted(source, device, stored["trouble"], called=called, **numbers)
