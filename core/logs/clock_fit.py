"""Proposing how a log's clock relates to the trace's: time zone, lag, and which card is which process.

A log says neither its zone nor its device's process. The zone is taken from the offsets that make the
log overlap the trace; the lag is where the device-busy time of the trace, averaged over each sample's
own interval, correlates best with what the log says of the card's activity. Nothing here changes a
clock: it is a proposal with reasons, and with a verdict on whether the log is of this run at all.

One host writes trace and log, by one clock. So a lag of two seconds at most is looked for first, and taken
if the activity agrees about as well there as anywhere; a log whose clock would have to be further off is
probably another run's, since runs of one program look alike. Of a trace that a log covers in part that part
is compared: there both are known if their clocks are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

import numpy as np

from ..base.arrays import I64, Intervals, distinct, merge
from ..base.units import format_ns
from .correlation import Activity, Curve, curve, exact
from .header import ColumnKind
from .log import TelemetryLog
from .series import Series
from .stamps import SECOND, StampKind, offset_text

HALF_HOURS = (
    -9.5, -4.5, -3.5, -2.5, 3.5, 4.5, 5.5, 5.75, 6.5, 8.5, 8.75, 9.5, 9.75, 10.5, 11.5, 12.75, 13.75,
)  # fmt: skip
ZONES = tuple(
    sorted(
        (round(hours * 3600) for hours in (*range(-12, 15), *HALF_HOURS)),
        key=lambda s: (0 if s % 3600 == 0 else 1 if s % 1800 == 0 else 2, abs(s)),
    )
)
"""The offsets from UTC, in seconds, that the zone database has for any place since 2000, usual ones first.
Others are no time zone: trying them would let a log of another run seem to overlap the trace.
"""
SAME_CLOCK = 2 * SECOND
"""Clocks of one host agree within this; aiu-smi truncates its stamps to whole seconds."""
SAME_RUN = 60 * SECOND
"""A clock further off than this is another run's."""
MAX_LAG = 450 * SECOND
"""Clocks further apart than this are wrong or set to another zone; it is half the distance between the zones
that are tried.
"""
ROWS_AROUND = 6
"""Samples before and after the trace that are used where the trace is too short to show a pattern; as many
have to lie in the part of a longer trace that a log covers, for that part to be compared.
"""
ROWS_INSIDE = 12
"""With this many samples inside the trace only those are fitted: outside it the device's work is not known.
"""
MAX_PAIRS = 16
"""With more pairs of card and process than this, only the first card with the first process, and so on, are
compared for the lag.
"""
FINE_STEPS = 40
"""The fine search goes in steps of this fraction of the sampling interval."""
SAME = 0.05
"""Correlations this close to each other do not tell two lags (or cards) apart."""
MIN = 0.3
"""Below this correlation nothing was found."""
CLEAR = 0.5
"""A log whose stamps do not say the time of day is the trace's run from this correlation on."""
ABOUT_AS_WELL = 0.25
"""A lag of one host's clock is preferred to one that is further off unless that fits better by this much."""
WORKED = 0.2
"""Devices that were busy for this share of the time cannot have been idle all the time."""
_SIGNALS = (ColumnKind.BUSY, ColumnKind.POWER, ColumnKind.BANDWIDTH, ColumnKind.COMPUTE)


class FitVerdict(StrEnum):
    """Whether a log is of the run that a trace is of."""

    MATCHES = "matches"  # it overlaps the trace, at a lag of at most SAME_CLOCK or a given one: it is used
    NEAR = "near"  # its lag is at most SAME_RUN, or its activity disagrees: proposed, used when told so
    FOREIGN = "foreign"  # of another run: refused unless its lag is given


@dataclass(frozen=True)
class Proposal:
    """utc = local stamp - utc_offset_s - lag_s."""

    utc_offset_s: float  # what must be subtracted from the log's local stamps to get UTC (its time zone)
    lag_s: float  # by how much the log's clock runs ahead of the trace's
    confidence: float  # from 0 to 1: the best correlation minus the best one at another lag
    reason: str
    device_of: Mapping[str, str] = field(default_factory=dict)  # process key by the log's device
    verdict: FitVerdict = FitVerdict.FOREIGN  # until something speaks for it

    @property
    def is_of_this_run(self) -> bool:
        """Whether the log may be used without being told so."""
        return self.verdict is FitVerdict.MATCHES

    @property
    def refusal(self) -> str:
        """Why a log that is not of this run is not used."""
        run = "may be" if self.verdict is FitVerdict.NEAR else "is"
        return f"{run} of another run: {self.reason}"

    @property
    def shift_ns(self) -> int:
        """Return what to add to the log's times to get wall time, in ns."""
        return -round((self.utc_offset_s + self.lag_s) * SECOND)


class _Compared(NamedTuple):
    """What is compared at a zone: parts of the wall time, and whether only a clear fit counts."""

    windows: tuple[tuple[int, int], ...]
    only_clear: bool = False


class _Comparison(NamedTuple):
    """A card's activity against a process's busy time over one interval of wall time, at all shifts."""

    device: str
    activity: Activity
    busy: Intervals
    curve: Curve


class _Peak(NamedTuple):
    """The best lag at one zone on the coarse grid, and the best correlation elsewhere."""

    comparison: _Comparison
    zone: int
    lag: int
    score: float
    rival: float
    rival_lag: int

    @property
    def clearness(self) -> float:
        return self.score - self.rival

    @property
    def is_clear(self) -> bool:
        return self.score >= CLEAR and self.clearness >= 2 * SAME


class _Refined(NamedTuple):
    """A lag by exact integration, its correlation, how much better it is than elsewhere, and it in words."""

    lag: int
    score: float
    confidence: float
    words: str


_Fit = TypeVar("_Fit", _Peak, _Refined)


def propose(
    log: TelemetryLog,
    busy: Mapping[str, tuple[I64, I64]],
    window: tuple[int, int],
    host_offset_s: int | None = None,
    zone_s: int | None = None,
    lag_s: float | None = None,
) -> Proposal:
    """Propose zone, lag and device mapping of a log. `busy` are the device-busy intervals by process (wall
    time, UTC ns, any order), best of kernels and copies; `window` is begin and end of the trace likewise;
    `host_offset_s` is the zone of the viewer's host, preferred where zones fit equally well. `zone_s` and
    `lag_s` are the log's zone and lag where they are known: the others are looked for then.
    """
    span = log.span
    if span is None:
        return Proposal(0, 0.0, 0.0, "the log has no rows")
    zones = _zones(log, span, window, host_offset_s, zone_s)
    devices, processes = list(log.devices), list(busy)
    times = {process: merge(*busy[process]) for process in processes}
    activities = {device: _activities(log, device) for device in devices}
    interval = log.interval_ns or SECOND
    compared = {zone: _compared(span, window, zone, interval) for zone in zones.offsets}
    everywhere = tuple(dict.fromkeys(part for one in compared.values() for part in one.windows))
    comparisons = _comparisons(activities, times, everywhere, interval)
    of_pairs = {zone: _peaks(comparisons, zone, interval, compared[zone]) for zone in zones.offsets}
    peaks = [(zone, _best(of_pairs[zone])) for zone in zones.offsets]
    best_score = max(_score(peak) for _, peak in peaks)
    # The usual zone where correlations do not tell.
    zone, peak = next(item for item in peaks if _score(item[1]) >= best_score - SAME)
    only = len(zones.offsets) == 1
    reasons = [zones.reason if only else f"{zones.reason}; {offset_text(zone / SECOND)} fits best"]
    is_found = peak is not None and peak.score >= MIN and lag_s is None
    near = [one for one in of_pairs[zone] if is_found and one.score >= _score(peak) - ABOUT_AS_WELL]
    refined = _best([_refined(one, interval) for one in near])
    if lag_s is not None:
        lag, confidence = round(lag_s * SECOND), 1.0
        reasons.append("its lag is given")
    elif refined is None:
        lag, confidence = 0, 0.1
        why = "its activity fits nowhere" if comparisons else "no activity to fit the lag to"
        reasons.append(f"{why}: lag taken as it is")
    else:
        lag, confidence = refined.lag, refined.confidence
        reasons.append(refined.words)
    correlation = _correlations(activities, times, zone + lag, span, window, interval)
    others = [_score(other) for at, other in peaks if at != zone]
    ambiguous = bool(others) and max(others) > _score(peak) - 2 * SAME
    if ambiguous and lag_s is None:
        confidence = min(confidence, max(0.0, _score(peak) - max(others)))
        reasons.append("ambiguous: another zone fits as well")
    device_of, mapped = _mapping(devices, processes, correlation)
    if mapped:
        reasons.append(mapped)
    offset = zone // SECOND if zone % SECOND == 0 else zone / SECOND
    if lag_s is not None:
        return Proposal(offset, lag_s, 1.0, "; ".join(reasons), device_of, FitVerdict.MATCHES)
    sampled = span[0] - zone - lag, span[1] - zone - lag
    many = window[1] - window[0] >= ROWS_INSIDE * interval
    is_clear = peak is not None and peak.is_clear
    doubts = {
        "several zones fit, and none is given": ambiguous and zone != (host_offset_s or 0) * SECOND,
        "its activity is not the trace's": peak is not None and peak.score < MIN and many,
        "it says that all was idle while the trace's devices worked": peak is None
        and _is_idle(log, times, zone + lag, window),
        "nothing says when its own time began": zones.assumed and _score(peak) < CLEAR,
    }
    off = 0 if zones.assumed and is_clear else lag  # a clock that begins anywhere is as right at any lag
    verdict, words = _verdict(off, sampled, window, [doubt for doubt, holds in doubts.items() if holds])
    reasons += [words] if words else []
    if verdict is FitVerdict.FOREIGN:
        confidence = 0.0
    return Proposal(offset, lag / SECOND, round(confidence, 3), "; ".join(reasons), device_of, verdict)


def _verdict(
    lag: int, span: tuple[int, int], window: tuple[int, int], doubts: Sequence[str]
) -> tuple[FitVerdict, str]:
    """Return whether a log whose samples lie in `span` is of the trace's run, and what speaks against it in
    words, empty if nothing.
    """
    if span[1] <= window[0]:
        before = format_ns(window[0] - span[1])
        return FitVerdict.FOREIGN, f"it ends {before} before the trace begins, so it is another run's"
    if span[0] >= window[1]:
        after = format_ns(span[0] - window[1])
        return FitVerdict.FOREIGN, f"it begins {after} after the trace has ended, so it is another run's"
    if abs(lag) > SAME_RUN:
        return (
            FitVerdict.FOREIGN,
            f"clocks of one run do not differ by {abs(lag) / SECOND:.0f} s: it is another run's",
        )
    if abs(lag) > SAME_CLOCK:
        return FitVerdict.NEAR, f"clocks of one host seldom differ by {abs(lag) / SECOND:.0f} s"
    return (FitVerdict.NEAR, "; ".join(doubts)) if doubts else (FitVerdict.MATCHES, "")


def _correlations(
    activities: Mapping[str, list[Activity]],
    times: Mapping[str, Intervals],
    shift: int,
    span: tuple[int, int],
    window: tuple[int, int],
    interval: int,
) -> dict[tuple[str, str], float]:
    """Return the correlation of each (device, process) when the log, whose samples lie in `span`, is shifted
    by `shift` ns: in what it covers of the trace, and of a short trace around that.
    """
    around = 0 if window[1] - window[0] >= ROWS_INSIDE * interval else ROWS_AROUND * interval
    covered = max(span[0] - shift, window[0] - around), min(span[1] - shift, window[1] + around)
    if covered[1] - covered[0] < ROWS_AROUND * interval:
        return {}
    shifts = np.array([shift])
    return {
        (device, process): float(exact(own[0], busy, shifts, covered, interval)[0])
        for device, own in activities.items()
        if own
        for process, busy in times.items()
    }


def _is_idle(log: TelemetryLog, times: Mapping[str, Intervals], shift: int, window: tuple[int, int]) -> bool:
    """Tell whether all cards of a log that say how busy they are were idle in the time of the trace, in which
    its devices worked.
    """
    series = [one for device in log.devices if (one := log.first_of(device, ColumnKind.BUSY)) is not None]
    for one in series:
        inside = (one.end_ns - shift > window[0]) & (one.start_ns - shift < window[1]) & ~one.missing
        if not inside.any() or one.value[inside].any():
            return False
    length = window[1] - window[0]
    return bool(series) and any(busy.length >= WORKED * length for busy in times.values())


def _score(peak: _Peak | None) -> float:
    return 0.0 if peak is None or peak.score < MIN else peak.score


def _activities(log: TelemetryLog, device: str) -> list[Activity]:
    """Return what shows a card's activity, most direct first; only what varies can be fitted."""
    series = (log.first_of(device, kind) for kind in _SIGNALS)
    activities = (_activity(one) for one in series if one is not None)
    return [one for one in activities if len(one.value) > 1 and np.ptp(one.value) > 0]


def _activity(series: Series) -> Activity:
    keep = ~series.missing
    if series.column.kind is ColumnKind.POWER and keep.any():
        # The first reading after a pause averages over time that was not measured: a dip that never was.
        resumed = keep & ~np.concatenate([[False], keep[:-1]])
        keep = keep & ~(resumed & (series.value < np.median(series.value[keep]) / 2))
    return Activity(series.column.name, series.start_ns[keep], series.end_ns[keep], series.value[keep])


def _comparisons(
    activities: Mapping[str, list[Activity]],
    times: Mapping[str, Intervals],
    windows: Sequence[tuple[int, int]],
    interval: int,
) -> list[list[_Comparison]]:
    """Compare cards with processes: for each pair over the intervals that its most direct activity allows."""
    comparisons = []
    for device, process in _pairs(list(activities), list(times)):
        if not times[process]:
            continue
        for activity in activities[device]:
            some = [
                _Comparison(device, activity, times[process], curve(activity, times[process], span, interval))
                for span in windows
            ]
            some = [comparison for comparison in some if not np.isnan(comparison.curve.r).all()]
            if some:
                comparisons.append(some)
                break
    return comparisons


def _pairs(devices: list[str], processes: list[str]) -> list[tuple[str, str]]:
    """Return which cards to compare with which processes: all of a few, in order where they are many."""
    if len(devices) * len(processes) <= MAX_PAIRS:
        return [(d, p) for p in processes for d in devices]
    if len(processes) == 1:
        return [(d, processes[0]) for d in devices]
    return list(zip(devices, processes))


def _compared(span: tuple[int, int], window: tuple[int, int], zone: int, interval: int) -> _Compared:
    """Return what to compare of a trace at a zone with a log whose samples lie in `span`: the trace's window
    widened by some samples around, and as it is if it holds enough of them. Of a window that the log covers
    less than half only that part; where that is too little, a log whose clock is off would have to fit well.
    """
    length = window[1] - window[0]
    around = max(ROWS_AROUND * interval, length // 2)
    wide = (window[0] - around, window[1] + around)
    covered = max(span[0] - zone, window[0]), min(span[1] - zone, window[1])
    known = covered[1] - covered[0]
    if length < ROWS_INSIDE * interval:
        return _Compared((wide,), only_clear=known <= 0)
    if 2 * known >= length:
        return _Compared((wide, window))
    if known >= ROWS_AROUND * interval:
        return _Compared((covered,))
    return _Compared((wide, window), only_clear=True)


def _peaks(
    comparisons: list[list[_Comparison]], zone: int, interval: int, compared: _Compared
) -> list[_Peak]:
    """Return the peak of each pair that has one; of one pair's intervals the clearer, else the better."""
    peaks = []
    for pair in comparisons:
        own: _Peak | None = None
        for comparison in pair:
            if comparison.curve.window not in compared.windows:
                continue
            peak = _peak(comparison, zone, interval)
            if peak is None or (compared.only_clear and not peak.is_clear):
                continue
            clearer = 0.0 if own is None else peak.clearness - own.clearness
            if own is None or clearer > SAME or (clearer >= -SAME and peak.score > own.score):
                own = peak
        if own is not None:
            peaks.append(own)
    return peaks


def _best(fits: Sequence[_Fit]) -> _Fit | None:
    """Return the best fit, the first of those that are about as good; None of none."""
    best: _Fit | None = None
    for fit in fits:
        if best is None or fit.score > best.score + SAME:
            best = fit
    return best


def _peak(comparison: _Comparison, zone: int, interval: int) -> _Peak | None:
    shifts, r = comparison.curve.between(zone - MAX_LAG, zone + MAX_LAG)
    if not len(r):
        return None
    lags = shifts - zone
    top = float(r.max())
    one_clock = np.abs(lags) <= SAME_CLOCK
    top_of_one_clock = float(r[one_clock].max()) if one_clock.any() else -1.0
    if top_of_one_clock >= max(MIN, top - ABOUT_AS_WELL):
        top = top_of_one_clock
    else:
        one_clock = np.ones(len(lags), bool)
    # Of peaks that are as good, the one nearest zero: most often one clock serves both.
    alike = lags[one_clock & (r >= top - SAME)]
    lag = int(alike[np.argmin(np.abs(alike))])
    around = _lobe(lags, r, lag, top) + max(3 * interval // 2, 2 * comparison.curve.step)
    elsewhere = np.where(np.abs(lags - lag) > around, r, -1.0)
    rival = int(np.argmax(elsewhere))
    return _Peak(comparison, zone, lag, top, max(0.0, float(elsewhere[rival])), int(lags[rival]))


def _lobe(lags: I64, r: np.ndarray[tuple[int], np.dtype[np.float64]], lag: int, top: float) -> int:
    """Return the range of lags around `lag` in which the correlation stays about as good."""
    at = int(np.searchsorted(lags, lag))
    worse = np.flatnonzero(r < top - SAME)
    last = min(worse[worse > at].tolist(), default=len(lags)) - 1
    first = max(worse[worse < at].tolist(), default=-1) + 1
    return max(int(lags[last]) - lag, lag - int(lags[first]))


def _refined(peak: _Peak, interval: int) -> _Refined:
    """Return the lag by exact integration near a peak."""
    comparison, zone = peak.comparison, peak.zone
    step = max(1, interval // FINE_STEPS)
    reach = 2 * max(comparison.curve.step, interval // 2) // step
    lags = peak.lag + np.arange(-reach, reach + 1, dtype=np.int64) * step
    if abs(peak.lag) <= reach * step:
        lags = distinct(np.append(lags, 0))
    if abs(peak.lag) <= SAME_CLOCK:
        lags = lags[np.abs(lags) <= SAME_CLOCK]
    r = exact(comparison.activity, comparison.busy, zone + lags, comparison.curve.window, interval)
    r = np.nan_to_num(r, nan=-1.0)
    # A log of whole seconds fits about as well within most of a second, so the best lag of all is chance.
    # Both clocks are usually one: a lag of 0 that is as good is taken. Else it is the middle of what is
    # nearly the best, and half the width of what is as good is how far it may be off: "+3.200 s ± 0.4 s".
    best = float(r.max())
    plateau = lags[r >= best - SAME]
    if 0 in plateau:
        lag = 0
    else:
        middle = lags[r >= best - SAME / 5]
        lag = int(middle[len(middle) // 2])
    width = max(int(plateau[-1] - plateau[0]) // 2, step)
    words = f"{comparison.activity.name} of {comparison.device} fits the trace's device-busy time best"
    words += f" at a lag of {lag / SECOND:+.3f} s ± {width / SECOND:.3g} s"
    words += f" (r {best:.2f}, elsewhere at most {peak.rival:.2f})"
    if peak.rival > best - 2 * SAME:
        words += f", ambiguous: about as well at {peak.rival_lag / SECOND:+.2f} s"
    return _Refined(lag, best, max(0.0, min(1.0, best - peak.rival)), words)


class _Zones(NamedTuple):
    """The offsets from UTC worth fitting, in ns, the most likely first, and why these."""

    offsets: list[int]
    reason: str
    assumed: bool = False  # the log's time begins anywhere: that it begins with the trace is a guess


def _zones(
    log: TelemetryLog,
    span: tuple[int, int],
    window: tuple[int, int],
    host_offset_s: int | None,
    zone_s: int | None,
) -> _Zones:
    if zone_s is not None:
        return _Zones([zone_s * SECOND], f"its zone is given as {offset_text(zone_s)}")
    if log.stamps is StampKind.UTC:
        return _Zones([0], "its stamps are UTC")
    if log.stamps is StampKind.RELATIVE:
        why = "its stamps count from its own start, which is assumed to be the trace's"
        return _Zones([span[0] - window[0]], why, assumed=True)
    candidates = [zone * SECOND for zone in ZONES]
    if host_offset_s is not None:
        candidates = [host_offset_s * SECOND, *(c for c in candidates if c != host_offset_s * SECOND)]
    begin, end = window
    close = [zone for zone in candidates if max(span[0] - zone, begin) < min(span[1] - zone, end)]
    if close:
        if len(close) == 1:
            only = f"{offset_text(close[0] / SECOND)} is the only time zone"
            return _Zones(close, f"{only} at which log and trace overlap")
        return _Zones(close, f"{len(close)} time zones make log and trace overlap")
    least, _, nearest = min((_distance(span, window, zone), at, zone) for at, zone in enumerate(candidates))
    if least <= MAX_LAG:
        return _Zones([nearest], f"{offset_text(nearest / SECOND)} brings log and trace nearest")
    why = f"no time zone makes log and trace overlap: the nearest leaves {least / SECOND:.0f} s"
    return _Zones([nearest], why)


def _distance(span: tuple[int, int], window: tuple[int, int], zone: int) -> int:
    return max(window[0] - (span[1] - zone), (span[0] - zone) - window[1], 0)


def _mapping(
    devices: Sequence[str], processes: Sequence[str], correlation: Mapping[tuple[str, str], float]
) -> tuple[dict[str, str], str]:
    """Map cards to processes, one each: in order where they are as many, by fit where they are not."""
    if not processes or not devices:
        return {}, ""
    if len(devices) == len(processes) == 1:
        return {devices[0]: processes[0]}, ""
    fits = {pair: r for pair, r in correlation.items() if not np.isnan(r)}
    in_order = list(zip(devices, processes))
    best = _greedy(fits)
    if len(devices) == len(processes):
        ordered = sum(fits.get(pair, 0.0) for pair in in_order)
        if len(best) < len(devices) or sum(fits[pair] for pair in best) <= ordered + SAME * len(devices):
            return dict(in_order), "cards and processes matched in order"
        return dict(best), "cards matched to the processes whose activity they fit"
    if not best:
        return dict(in_order), "the cards' activity is too alike to match by it: matched in order"
    rival = max((r for (d, p), r in fits.items() if (d, p) not in best), default=0.0)
    clear = min(fits[pair] for pair in best) > rival + SAME
    remark = "cards matched to the processes whose activity they fit" + ("" if clear else ", not clearly")
    return dict(best), remark


def _greedy(fits: Mapping[tuple[str, str], float]) -> list[tuple[str, str]]:
    chosen: list[tuple[str, str]] = []
    for device, process in sorted(fits, key=lambda pair: -fits[pair]):
        if fits[device, process] < MIN:
            break
        if all(device != d and process != p for d, p in chosen):
            chosen.append((device, process))
    return chosen
