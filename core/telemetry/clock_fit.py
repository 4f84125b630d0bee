"""Proposing how a log's clock relates to the trace's: time zone, lag, and which card is which process.

A log says neither its zone nor its device's process. The zone is taken from the offsets that make the log
overlap the trace; the lag is where the device-busy time of the trace, averaged over each sample's own
interval, correlates best with what the log says of the card's activity. Nothing here changes a clock: it is
a proposal with reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .columns import ColumnKind
from .log import TelemetryLog
from .series import F64, I64, Bools, Series
from .stamps import SECOND, StampKind

QUARTER = 900
ZONES = tuple(
    sorted(
        (q * QUARTER for q in range(-12 * 4, 14 * 4 + 1) if q % 4 != 1),  # whole, half, three-quarter hours
        key=lambda s: (0 if s % 3600 == 0 else 1 if s % 1800 == 0 else 2, abs(s)),
    )
)
"""Offsets of time zones from UTC in seconds, the usual ones first (no zone is a quarter past the hour)."""
MOST_LAG = 450 * SECOND
"""Clocks further apart than this are set to another zone or wrong; half the distance of the zones tried."""
ROWS_AROUND = 6
"""So many samples on either side of the trace are looked at where it is too short to hold a pattern."""
ROWS_INSIDE = 12
"""From so many samples on within the trace these alone can be fitted: outside it nothing is known."""
MOST_ROWS = 2_000
"""Longer stretches are averaged to this many samples for the coarse search."""
FINE_STEPS = 40
"""The fine search goes in steps of this fraction of the sampling interval."""
SAME = 0.05
"""Correlations this close to each other do not tell two lags (or cards) apart."""
LEAST = 0.3
"""Below this correlation nothing was found."""
BLOCK = 1 << 20  # correlations are computed for blocks of lags x samples of about this size

_SIGNALS = (ColumnKind.BUSY, ColumnKind.POWER, ColumnKind.BANDWIDTH, ColumnKind.COMPUTE)


@dataclass(frozen=True)
class Proposal:
    """utc = local stamp - utc_offset_s - lag_s."""

    utc_offset_s: float
    """What must be subtracted from the log's local stamps to get UTC (its time zone)."""
    lag_s: float
    """By how much the log's clock runs ahead of the trace's."""
    confidence: float
    """0 to 1: the best correlation less the best elsewhere."""
    reason: str
    device_of: Mapping[str, str] = field(default_factory=dict)
    """Process key by the log's device."""

    @property
    def shift_ns(self) -> int:
        """Return what to add to the log's times to get wall time, in ns."""
        return -round((self.utc_offset_s + self.lag_s) * SECOND)


@dataclass(frozen=True)
class BusyTime:
    """The union of a process's busy intervals, to be integrated exactly between any times."""

    starts: I64
    ends: I64
    before: I64  # busy ns before each interval

    @classmethod
    def of(cls, starts: I64, ends: I64) -> BusyTime:
        """Merge intervals that touch or overlap; any order, ns."""
        order = np.argsort(starts, kind="stable")
        starts, ends = np.asarray(starts, np.int64)[order], np.asarray(ends, np.int64)[order]
        if not len(starts):
            return cls(starts, ends, starts)
        reach = np.maximum.accumulate(ends)
        opens = np.concatenate([[True], starts[1:] > reach[:-1]])
        first = np.flatnonzero(opens)
        merged_ends = reach[np.concatenate([first[1:] - 1, [len(reach) - 1]])]
        merged_starts = starts[first]
        lengths = merged_ends - merged_starts
        return cls(merged_starts, merged_ends, np.cumsum(lengths) - lengths)

    def until(self, times: I64) -> I64:
        """Return the busy ns before each time."""
        if not len(self.starts):
            return np.zeros_like(times)
        place = np.searchsorted(self.starts, times, side="right") - 1
        held = np.maximum(place, 0)
        inside = np.minimum(times, self.ends[held]) - self.starts[held]
        return np.where(place < 0, 0, self.before[held] + inside)


@dataclass(frozen=True)
class _Signal:
    """A card's activity: a value per sample that has one."""

    name: str
    starts: I64
    ends: I64
    value: F64


def propose(
    log: TelemetryLog,
    busy: Mapping[str, tuple[I64, I64]],
    window: tuple[int, int],
    host_offset_s: int | None = None,
) -> Proposal:
    """Propose zone, lag and device mapping of a log.

    `busy` are the device-busy intervals by process (wall time, UTC ns, any order), best of kernels and
    copies; `window` is begin and end of the trace likewise; `host_offset_s` is the zone of the viewer's
    host, preferred where zones fit equally well.
    """
    span = log.span
    if span is None:
        return Proposal(0, 0.0, 0.0, "the log has no rows")
    zones, zone_reason = _zones(log, span, window, host_offset_s)
    devices = list(log.devices)
    processes = list(busy)
    signals = {device: _signals(log, device) for device in devices}
    times = {process: BusyTime.of(*busy[process]) for process in processes}
    interval = log.interval_ns or SECOND
    fits = []
    for zone in zones:
        fit = _fit_zone(zone, signals, times, span, window, interval)
        fits.append((zone, fit))
    best_zone, best = max(fits, key=lambda item: item[1].score)
    for zone, fit in fits:  # the usual zone where correlations do not tell
        if fit.score >= best.score - SAME:
            best_zone, best = zone, fit
            break
    rivals = [fit.score for zone, fit in fits if zone != best_zone]
    confidence = best.confidence
    reasons = [zone_reason if len(zones) == 1 else f"{zone_reason}, of which {_hours(best_zone)} fits best"]
    if rivals and max(rivals) > best.score - 2 * SAME:
        confidence = min(confidence, max(0.0, best.score - max(rivals)))
        reasons.append("ambiguous: another zone fits as well")
    if zone_reason.startswith("no time zone"):
        confidence = 0.0
    reasons.append(best.reason)
    mapping, mapped = _mapping(devices, processes, best)
    if mapped:
        reasons.append(mapped)
    offset = best_zone / SECOND
    return Proposal(
        int(offset) if offset == int(offset) else offset,
        best.lag / SECOND,
        round(confidence, 3),
        "; ".join(reasons),
        mapping,
    )


@dataclass(frozen=True)
class _Fit:
    score: float
    lag: int
    confidence: float
    reason: str
    correlation: Mapping[tuple[str, str], float]


def _signals(log: TelemetryLog, device: str) -> list[_Signal]:
    """Return what shows a card's activity, most direct first; only what varies can be fitted."""
    found = []
    for kind in _SIGNALS:
        series = log.first_of(device, kind)
        if series is not None:
            signal = _present(series)
            if len(signal.value) > 1 and np.ptp(signal.value) > 0:
                found.append(signal)
    return found


def _present(series: Series) -> _Signal:
    keep = ~series.missing
    value = series.value[keep]
    if series.column.kind is ColumnKind.POWER and len(value) > 2:
        # The first reading averages over time that was not measured: it would be the deepest dip of all.
        resumed = np.flatnonzero(keep & ~np.concatenate([[False], keep[:-1]]))
        drop = np.isin(np.flatnonzero(keep), resumed) & (value < np.median(value) / 2)
        keep = keep.copy()
        keep[np.flatnonzero(keep)[drop]] = False
        value = series.value[keep]
    return _Signal(series.column.name, series.start_ns[keep], series.end_ns[keep], value)


def _zones(
    log: TelemetryLog, span: tuple[int, int], window: tuple[int, int], host_offset_s: int | None
) -> tuple[list[int], str]:
    """Return the offsets worth fitting, in ns, the most likely first, and why."""
    if log.stamps is StampKind.UTC:
        return [0], "its stamps are UTC"
    if log.stamps is StampKind.RELATIVE:
        return [span[0] - window[0]], "its stamps count from its own start, taken to be the trace's"
    candidates = [zone * SECOND for zone in ZONES]
    if host_offset_s is not None:
        candidates = [host_offset_s * SECOND, *(c for c in candidates if c != host_offset_s * SECOND)]
    shares = [_overlap(span, window, zone) for zone in candidates]
    if max(shares) > 0:
        close = [zone for zone, share in zip(candidates, shares) if share > 0]
        if len(close) == 1:
            return close, f"{_hours(close[0])} is the only time zone at which log and trace overlap"
        return close, f"{len(close)} time zones make log and trace overlap"
    distances = [_distance(span, window, zone) for zone in candidates]
    least = min(distances)
    nearest = candidates[distances.index(least)]
    if least <= MOST_LAG:
        return [nearest], f"{_hours(nearest)} brings log and trace nearest, {least / SECOND:.0f} s apart"
    return [nearest], f"no time zone makes log and trace overlap: the nearest leaves {least / SECOND:.0f} s"


def _overlap(span: tuple[int, int], window: tuple[int, int], zone: int) -> float:
    begin, end = max(span[0] - zone, window[0]), min(span[1] - zone, window[1])
    length = max(1, min(window[1] - window[0], span[1] - span[0]))
    return max(0, end - begin) / length


def _distance(span: tuple[int, int], window: tuple[int, int], zone: int) -> int:
    return max(window[0] - (span[1] - zone), (span[0] - zone) - window[1], 0)


def _hours(offset_ns: int) -> str:
    minutes = round(offset_ns / SECOND / 60)
    return f"UTC{'+' if minutes >= 0 else '-'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _fit_zone(
    zone: int,
    signals: Mapping[str, list[_Signal]],
    times: Mapping[str, BusyTime],
    span: tuple[int, int],
    window: tuple[int, int],
    interval: int,
) -> _Fit:
    """Find the lag at one zone: the card and process that fit best lead, the others follow the same clock."""
    best: tuple[float, int, float, str] | None = None
    pairs: list[tuple[str, str]] = _pairs(list(signals), list(times))
    for device, process in pairs:
        if not len(times[process].starts):
            continue
        for signal in signals[device]:
            found = _fit_lag(signal, times[process], zone, window, interval)
            if found is None:
                continue
            if best is None or found[0] > best[0] + SAME:
                best = (*found[:3], f"{signal.name} of {device} {found[3]}")
            break
    if best is None or best[0] < LEAST:
        why = "no activity in the log to fit the lag to" if best is None else "its activity fits nowhere"
        return _Fit(0.0, _nearest_lag(span, window, zone), 0.1, f"{why}: lag taken as it is", {})
    lag = best[1]
    correlation = {}
    for device in signals:
        for process in times:
            for signal in signals[device][:1]:
                value = _correlate(signal, times[process], zone, np.array([lag]), window, interval)[0]
                correlation[device, process] = float(value)
    return _Fit(best[0], lag, best[2], best[3], correlation)


def _nearest_lag(span: tuple[int, int], window: tuple[int, int], zone: int) -> int:
    if _distance(span, window, zone) == 0 or _distance(span, window, zone) > MOST_LAG:
        return 0
    return (span[0] + span[1]) // 2 - zone - (window[0] + window[1]) // 2


def _pairs(devices: list[str], processes: list[str]) -> list[tuple[str, str]]:
    """Return which cards to compare with which processes: all of a few, in order where they are many."""
    if len(devices) * len(processes) <= 64:
        return [(d, p) for p in processes for d in devices]
    return list(zip(devices, processes))


def _context(window: tuple[int, int], interval: int) -> list[int]:
    """Return by how much to widen the trace's window, in ns: samples around, and none if it holds enough."""
    length = window[1] - window[0]
    around = max(ROWS_AROUND * interval, length // 2)
    return [around, 0] if length >= ROWS_INSIDE * interval else [around]


def _fit_lag(
    signal: _Signal, busy: BusyTime, zone: int, window: tuple[int, int], interval: int
) -> tuple[float, int, float, str] | None:
    """Return (correlation, lag ns, confidence, words) of the best lag, or None where nothing varies."""
    best: tuple[float, int, float, str] | None = None
    for margin in _context(window, interval):
        wide = (window[0] - margin, window[1] + margin)
        found = _search(signal, busy, zone, wide, interval)
        if found is not None and (best is None or found[2] > best[2]):
            best = found
    return best


def _search(
    signal: _Signal, busy: BusyTime, zone: int, wide: tuple[int, int], interval: int
) -> tuple[float, int, float, str] | None:
    every = max(1, -(-(wide[1] - wide[0]) // interval) // MOST_ROWS)
    coarse = _averaged(signal, every)
    step = max(1, every * interval // 2)
    # The lags at which the log still covers some of the trace.
    low = max(-MOST_LAG, int(signal.starts[0]) - zone - wide[1])
    high = min(MOST_LAG, int(signal.ends[-1]) - zone - wide[0])
    if low > high:
        return None
    lags = np.arange(-(-low // step), high // step + 1, dtype=np.int64) * step
    curve = _correlate(coarse, busy, zone, lags, wide, every * interval)
    if not len(curve) or np.isnan(curve).all():
        return None
    curve = np.nan_to_num(curve, nan=-1.0)
    top = float(curve.max())
    # Of peaks that are as good, the one nearest zero: most often one clock serves both.
    peak = int(lags[curve >= top - SAME][np.argmin(np.abs(lags[curve >= top - SAME]))])
    fine_step = max(1, interval // FINE_STEPS)
    reach = 2 * step // fine_step
    fine = peak + np.arange(-reach, reach + 1, dtype=np.int64) * fine_step
    fine = np.unique(np.concatenate([fine, [0]])) if abs(peak) <= 2 * step else fine
    values = np.nan_to_num(_correlate(signal, busy, zone, fine, wide, interval), nan=-1.0)
    best = float(values.max())
    plateau = fine[values >= best - SAME]
    if 0 in plateau:
        lag = 0
    else:
        middle = fine[values >= best - SAME / 5]
        lag = int(middle[len(middle) // 2])
    around = max(3 * interval // 2, int(plateau[-1] - plateau[0]), every * interval)
    elsewhere = curve[np.abs(lags - lag) > around]
    rival = max(0.0, float(elsewhere.max())) if len(elsewhere) else 0.0
    confidence = max(0.0, min(1.0, best - rival))
    width = max(int(plateau[-1] - plateau[0]) // 2, fine_step)
    words = (
        f"fits the trace's device-busy time best at a lag of {lag / SECOND:+.3f} s ± {width / SECOND:.3g} s"
    )
    words += f" (r {best:.2f}, elsewhere at most {rival:.2f})"
    if rival > best - 2 * SAME:
        other = int(lags[np.abs(lags - lag) > around][int(np.argmax(elsewhere))])
        words += f", ambiguous: about as well at {other / SECOND:+.2f} s"
    return best, lag, confidence, words


def _averaged(signal: _Signal, every: int) -> _Signal:
    """Join runs of `every` samples into one each, weighted by their lengths."""
    if every == 1:
        return signal
    first = np.arange(0, len(signal.value), every)
    last = np.append(first[1:], len(signal.value)) - 1
    length = (signal.ends - signal.starts).astype(np.float64)
    weight = np.add.reduceat(length, first)
    value = np.add.reduceat(signal.value * length, first) / np.maximum(weight, 1.0)
    return _Signal(signal.name, signal.starts[first], signal.ends[last], value)


def _correlate(
    signal: _Signal, busy: BusyTime, zone: int, lags: I64, wide: tuple[int, int], interval: int
) -> F64:
    """Return Pearson's r of the samples that meet `wide` with the busy share of their intervals, by lag.

    NaN where the log covers less than half of `wide` or one of the two does not vary.
    """
    result = np.full(len(lags), np.nan)
    number = int((wide[1] - wide[0]) // interval) + 3
    rows = max(1, BLOCK // number)
    for begin in range(0, len(lags), rows):
        some = lags[begin : begin + rows]
        shift = zone + some[:, None]
        first = np.searchsorted(signal.ends, wide[0] + zone + some, side="right")
        index = first[:, None] + np.arange(number)
        there: Bools = index < len(signal.value)
        index = np.minimum(index, len(signal.value) - 1)
        starts, ends = signal.starts[index] - shift, signal.ends[index] - shift
        there &= starts < wide[1]
        length = ends - starts
        share = (busy.until(ends) - busy.until(starts)) / np.maximum(length, 1)
        result[begin : begin + rows] = _pearson(signal.value[index], share, np.where(there, length, 0), wide)
    return result


def _pearson(x: F64, y: F64, weight: I64, wide: tuple[int, int]) -> F64:
    total = weight.sum(axis=1).astype(np.float64)
    scale = np.where(total > 0, total, 1.0)[:, None]
    w = weight / scale
    dx = x - (x * w).sum(axis=1, keepdims=True)
    dy = y - (y * w).sum(axis=1, keepdims=True)
    xx, yy, xy = (dx * dx * w).sum(axis=1), (dy * dy * w).sum(axis=1), (dx * dy * w).sum(axis=1)
    usable = (xx > 1e-18) & (yy > 1e-18) & (2 * total >= wide[1] - wide[0])
    r: F64 = np.where(usable, xy / np.sqrt(np.where(usable, xx * yy, 1.0)), np.nan)
    return r


def _mapping(devices: Sequence[str], processes: Sequence[str], fit: _Fit) -> tuple[dict[str, str], str]:
    """Map cards to processes, one each: in order where they are as many, by fit where they are not."""
    if not processes or not devices:
        return {}, ""
    if len(devices) == len(processes) == 1:
        return {devices[0]: processes[0]}, ""
    fits = {pair: r for pair, r in fit.correlation.items() if not np.isnan(r)}
    in_order = list(zip(devices, processes))
    if len(devices) == len(processes):
        given = sum(fits.get(pair, 0.0) for pair in in_order)
        best = _greedy(fits)
        if len(best) < len(devices) or sum(fits[pair] for pair in best) <= given + SAME * len(devices):
            return dict(in_order), "cards and processes taken in order"
        return dict(best), "cards given to the processes whose activity they fit"
    best = _greedy(fits)
    if not best:
        return dict(in_order), "no activity tells the cards apart: taken in order"
    rival = max((r for (d, p), r in fits.items() if (d, p) not in best), default=0.0)
    clear = min(fits[pair] for pair in best) > rival + SAME
    told = "cards given to the processes whose activity they fit" + ("" if clear else ", not clearly")
    return dict(best), told


def _greedy(fits: Mapping[tuple[str, str], float]) -> list[tuple[str, str]]:
    chosen: list[tuple[str, str]] = []
    for device, process in sorted(fits, key=lambda pair: -fits[pair]):
        if fits[device, process] < LEAST:
            break
        if all(device != d and process != p for d, p in chosen):
            chosen.append((device, process))
    return chosen
