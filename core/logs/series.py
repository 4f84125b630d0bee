"""A metric of one device over time, as numpy columns, its statistics for ranges of time, and energy as the
integral of power.

Each sample is the mean over its interval, so the integral over a range is the sum of value x overlap.
Energy is summed in whole nanojoules (W x ns) in 64 bits: exact but for half a nanojoule per sample, and
good for 75 W over three years. Ranges and series are in the same time; shift the series first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..base.arrays import F64, I64, Bools, add_at, distinct, sum_of
from ..base.errors import UsageError
from .header import LogColumn
from .stamps import SECOND


@dataclass(frozen=True, eq=False)
class Series:
    """The samples of one metric of one device, by time; each is the mean over its interval [start, end).
    Times are ns in the log's own time (its local stamps read as if they were UTC) unless `shifted`; intervals
    do not overlap. `value` is NaN where `missing`. `line` is the line of the log that a sample was read from,
    from 1.
    """

    device: str
    column: LogColumn
    start_ns: I64
    end_ns: I64
    value: F64
    missing: Bools
    line: I64

    def __len__(self) -> int:
        return len(self.value)

    def shifted(self, offset_ns: int) -> Series:
        """Return the series with `offset_ns` added to its times."""
        return replace(self, start_ns=self.start_ns + offset_ns, end_ns=self.end_ns + offset_ns)

    def at(self, time_ns: int) -> int | None:
        """Return which sample's interval holds a time, or None where there is no sample."""
        position = int(np.searchsorted(self.end_ns, time_ns, side="right"))
        if position == len(self) or self.start_ns[position] > time_ns:
            return None
        return position

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the least and the greatest value, or None where all are missing."""
        present = self.value[~self.missing]
        return (float(present.min()), float(present.max())) if len(present) else None


@dataclass(frozen=True, eq=False)
class DeviceLog:
    """Everything a log says of one device: the shared times of its rows and a value column per metric."""

    device: str
    start_ns: I64
    end_ns: I64
    line: I64
    values: Mapping[LogColumn, F64]
    file: str = ""
    """The metric file that the log names for it (its last part is the card's bus id), or empty."""

    def series(self, column: LogColumn) -> Series:
        """Return one metric; raises KeyError where the device has no such column."""
        value = self.values[column]
        return Series(self.device, column, self.start_ns, self.end_ns, value, np.isnan(value), self.line)


FAR = 10
"""Energy is attributed to a name only where its slices last this many sampling intervals in all."""


class Statistics(NamedTuple):
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


class NameEnergy(NamedTuple):
    """The energy attributed to the slices of one name."""

    name: int
    joules: float
    watts: float
    covered_ns: int
    duration_ns: int
    slices: int


class Attribution(NamedTuple):
    """Energy by name: sampled means of power shared out by time, not a measurement of single slices. Where
    several slices run at once they share the power evenly, so that nothing is counted twice.
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
    joules = None if watts is None else sum_of(np.rint(value * watts * overlap).astype(np.int64)) / SECOND
    return Statistics(mean, float(value.min()), float(value.max()), len(value), covered, length, joules)


def energy(series: Series, times_ns: I64) -> tuple[I64, I64]:
    """Return the energy (nJ) of a power, and the ns that samples cover, before each of some times. Raises
    UsageError for other metrics.
    """
    watts = series.column.watts
    if watts is None:
        raise UsageError(f"{series.column.label} is not a power: it has no energy")
    times = np.asarray(times_ns, np.int64)
    if not len(series):
        return np.zeros_like(times), np.zeros_like(times)
    power = np.where(series.missing, 0.0, series.value * watts)
    length = series.end_ns - series.start_ns
    whole = np.concatenate([[0], np.cumsum(np.rint(power * length).astype(np.int64))])
    covered = np.concatenate([[0], np.cumsum(length * ~series.missing)])
    at = np.searchsorted(series.end_ns, times, side="right")
    inside = np.minimum(at, len(power) - 1)
    part = np.where(at < len(power), np.maximum(times - series.start_ns[inside], 0), 0)
    partial = np.rint(power[inside] * part).astype(np.int64)
    return whole[at] + partial, covered[at] + part * ~series.missing[inside]


def attribute(
    series: Series, names: I64, starts_ns: I64, ends_ns: I64, span: tuple[int, int], interval_ns: int
) -> Attribution:
    """Share the energy of a span among the names of the slices that ran in it. `names` are numbers beside the
    slices' starts and ends. Slices are cut to the span.
    """
    begin, end = span
    starts = np.clip(np.asarray(starts_ns, np.int64), begin, end)
    ends = np.clip(np.asarray(ends_ns, np.int64), begin, end)
    keep = ends > starts
    names, starts, ends = np.asarray(names, np.int64)[keep], starts[keep], ends[keep]
    # At 2 W slice A runs from 0 to 10 s and B from 4 to 10. Between the edges 0, 4 and 10 lie 8 and 12 J,
    # shared by one slice and by two: 8 and 6 each. A has the sum of both, 14 J, B the second, 6 J. Sums up to
    # each edge make that one difference a slice, however many edges it spans.
    edges = distinct(np.concatenate([np.array([begin, end], np.int64), starts, ends]))
    nanojoules, covered_ns = map(np.diff, energy(series, edges))
    opened = np.bincount(np.searchsorted(edges, starts), minlength=len(edges))
    closed = np.bincount(np.searchsorted(edges, ends), minlength=len(edges))
    running = np.cumsum(opened - closed)[:-1]
    shared = np.where(running > 0, nanojoules / np.maximum(running, 1), 0.0)
    before = np.concatenate([[0.0], np.cumsum(shared)])
    covered_before = np.concatenate([[0], np.cumsum(covered_ns)])
    first, last = np.searchsorted(edges, starts), np.searchsorted(edges, ends)
    of_slice = before[last] - before[first]
    covered = covered_before[last] - covered_before[first]
    numbers, code = np.unique(names, return_inverse=True)
    joules = np.bincount(code, weights=of_slice, minlength=len(numbers)) / SECOND
    durations, covers = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    add_at(durations, code, ends - starts)
    add_at(covers, code, covered)
    counts = np.bincount(code, minlength=len(numbers))
    far = durations >= FAR * interval_ns
    listed = [
        NameEnergy(
            int(numbers[i]),
            float(joules[i]),
            float(joules[i]) * SECOND / int(covers[i]) if covers[i] else 0.0,
            int(covers[i]),
            int(durations[i]),
            int(counts[i]),
        )
        for i in np.flatnonzero(far)
    ]
    return Attribution(
        tuple(sorted(listed, key=lambda entry: (-entry.joules, entry.name))),
        tuple(numbers[~far].tolist()),
        math.fsum(joules[~far].tolist()),
        sum_of(nanojoules[running == 0]) / SECOND,
        sum_of(nanojoules) / SECOND,
    )
