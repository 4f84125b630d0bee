"""Statistics of a metric for ranges of time, energy as the integral of power, and its attribution to kernels.

Each sample is the mean over its interval, so the integral over a range is the sum of value x overlap.
Energy is summed in whole nanojoules (W x ns) in 64 bits: exact but for half a nanojoule per sample, and
good for 75 W over three years. Ranges and series are in the same time; shift the series first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..base.arrays import F64, I64, add_at, sum_of
from ..base.errors import UsageError
from .series import Series

NANO = 1_000_000_000
FAR = 10
"""Energy is attributed to a name only where its slices last this many sampling intervals in all."""


@dataclass(frozen=True)
class Statistics:
    """A metric over one range. The values are None where no sample covers any of it."""

    mean: float | None  # weighted by time
    least: float | None
    greatest: float | None
    samples: int
    covered_ns: int
    range_ns: int
    joules: float | None  # of power only, and only of what is covered

    @property
    def coverage(self) -> float:
        """Return the share of the range that samples cover, from 0 to 1."""
        return self.covered_ns / self.range_ns if self.range_ns > 0 else 0.0


@dataclass(frozen=True, eq=False)
class RangeEnergy:
    """Energy per range (a step, say), beside the ranges asked for; of what is covered only."""

    nanojoules: I64
    covered_ns: I64
    range_ns: I64

    @property
    def joules(self) -> F64:
        return self.nanojoules / NANO

    @property
    def complete(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which ranges the log covers from end to end."""
        return self.covered_ns >= self.range_ns


@dataclass(frozen=True)
class NameEnergy:
    """The energy attributed to the slices of one name."""

    name: int
    joules: float
    watts: float
    covered_ns: int
    duration_ns: int
    slices: int


@dataclass(frozen=True)
class Attribution:
    """Energy by name: sampled means of power shared out by time, not a measurement of single slices.

    Where several slices run at once they share the power evenly, so that nothing is counted twice.
    """

    names: tuple[NameEnergy, ...]  # greatest first; only where duration_ns >= FAR sampling intervals
    too_short: tuple[int, ...]  # names that ran too shortly for the sampling
    too_short_joules: float
    none_joules: float  # while none of the slices ran
    total_joules: float


def statistics(series: Series, start_ns: int, end_ns: int) -> Statistics:
    """Return mean, least and greatest value, coverage and (of power) energy for one range."""
    first = int(np.searchsorted(series.end_ns, start_ns, side="right"))
    last = int(np.searchsorted(series.start_ns, end_ns, side="left"))
    here = slice(first, max(first, last))
    keep = ~series.missing[here]
    value = series.value[here][keep]
    overlap = (np.minimum(series.end_ns[here], end_ns) - np.maximum(series.start_ns[here], start_ns))[keep]
    covered = sum_of(overlap)
    length = max(0, end_ns - start_ns)
    watts = series.column.watts
    if covered <= 0:
        return Statistics(None, None, None, 0, 0, length, None)
    mean = float(np.sum(value * overlap)) / covered
    joules = None if watts is None else sum_of(np.rint(value * watts * overlap).astype(np.int64)) / NANO
    return Statistics(mean, float(value.min()), float(value.max()), len(value), covered, length, joules)


def energy(series: Series, starts_ns: I64, ends_ns: I64) -> RangeEnergy:
    """Integrate power over each of many ranges (they may overlap). Raises UsageError for other metrics."""
    whole, covered, power, present = _prefix(series)
    starts, ends = np.asarray(starts_ns, np.int64), np.maximum(starts_ns, ends_ns)
    energy_to_end, covered_to_end = _until(series, whole, covered, power, present, ends)
    energy_to_start, covered_to_start = _until(series, whole, covered, power, present, starts)
    return RangeEnergy(energy_to_end - energy_to_start, covered_to_end - covered_to_start, ends - starts)


def attribute(
    series: Series, names: I64, starts_ns: I64, ends_ns: I64, span: tuple[int, int], interval_ns: int
) -> Attribution:
    """Share the energy of a span among the names of the slices that ran in it.

    `names` are numbers beside the slices' starts and ends. Slices are cut to the span.
    """
    begin, end = span
    starts = np.clip(np.asarray(starts_ns, np.int64), begin, end)
    ends = np.clip(np.asarray(ends_ns, np.int64), begin, end)
    keep = ends > starts
    names, starts, ends = np.asarray(names, np.int64)[keep], starts[keep], ends[keep]
    edges = np.unique(np.concatenate([np.array([begin, end], np.int64), starts, ends]))
    pieces = energy(series, edges[:-1], edges[1:])
    opened = np.bincount(np.searchsorted(edges, starts), minlength=len(edges))
    closed = np.bincount(np.searchsorted(edges, ends), minlength=len(edges))
    running = np.cumsum(opened - closed)[:-1]
    shared = np.where(running > 0, pieces.nanojoules / np.maximum(running, 1), 0.0)
    before = np.concatenate([[0.0], np.cumsum(shared)])
    covered_before = np.concatenate([[0], np.cumsum(pieces.covered_ns)])
    first, last = np.searchsorted(edges, starts), np.searchsorted(edges, ends)
    of_slice = before[last] - before[first]
    covered = covered_before[last] - covered_before[first]
    distinct, code = np.unique(names, return_inverse=True)
    joules = np.bincount(code, weights=of_slice, minlength=len(distinct)) / NANO
    durations, covers = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    add_at(durations, code, ends - starts)
    add_at(covers, code, covered)
    counts = np.bincount(code, minlength=len(distinct))
    far = durations >= FAR * interval_ns
    listed = [
        NameEnergy(
            int(distinct[i]),
            float(joules[i]),
            float(joules[i]) * NANO / int(covers[i]) if covers[i] else 0.0,
            int(covers[i]),
            int(durations[i]),
            int(counts[i]),
        )
        for i in np.flatnonzero(far)
    ]
    return Attribution(
        tuple(sorted(listed, key=lambda entry: (-entry.joules, entry.name))),
        tuple(distinct[~far].tolist()),
        math.fsum(joules[~far].tolist()),
        sum_of(pieces.nanojoules[running == 0]) / NANO,
        sum_of(pieces.nanojoules) / NANO,
    )


def _prefix(series: Series) -> tuple[I64, I64, F64, I64]:
    """Return energy (nJ) and covered ns before each sample, watts per sample (0 where missing) and 1 or 0."""
    watts = series.column.watts
    if watts is None:
        raise UsageError(f"{series.column.label} is not a power: it has no energy")
    power = np.where(series.missing, 0.0, series.value * watts)
    present = (~series.missing).astype(np.int64)
    length = series.end_ns - series.start_ns
    whole = np.concatenate([[0], np.cumsum(np.rint(power * length).astype(np.int64))])
    covered = np.concatenate([[0], np.cumsum(length * present)])
    return whole, covered, power, present


def _until(series: Series, whole: I64, covered: I64, power: F64, present: I64, times: I64) -> tuple[I64, I64]:
    """Return energy and covered time before each of `times`."""
    if not len(power):
        return np.zeros_like(times), np.zeros_like(times)
    at = np.searchsorted(series.end_ns, times, side="right")
    inside = np.minimum(at, len(power) - 1)
    part: I64 = np.where(at < len(power), np.maximum(times - series.start_ns[inside], 0), 0)
    partial: I64 = np.rint(power[inside] * part).astype(np.int64)
    covered_part: I64 = part * present[inside]
    return whole[at] + partial, covered[at] + covered_part
