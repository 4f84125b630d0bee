"""How well a card's activity agrees with a trace's device-busy time, for every shift between their clocks.
`curve` tries all shifts of a day-long log at once on an even grid, by Fourier transform: a second for a
million samples, where trying them one by one took five minutes. `exact` integrates the busy time over each
sample's own interval, for a few shifts near the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import F64, I64, Bools, Intervals

MAX_CELLS = 1 << 21
"""The grid of the coarse search is made coarser beyond this many cells."""
MAX_ROWS = 20_000
"""The exact search looks at this many samples in the middle of longer traces."""
BLOCK = 1 << 20  # shifts x samples that the exact search handles at once
FLAT = 1e-9
"""A variance within an interval below this share of the whole variance counts as none: it is rounding."""


@dataclass(frozen=True, eq=False)
class Activity:
    """What a log says of a card's activity: a value per sample that has one, in log time."""

    name: str
    starts: I64
    ends: I64
    value: F64


@dataclass(frozen=True, eq=False)
class Curve:
    """Pearson's r by shift (log time less wall time): `r[i]` is at `first + i * step` ns; NaN if unknown."""

    first: int
    step: int
    r: F64
    window: tuple[int, int]  # the wall time (ns) that is compared

    def between(self, low: int, high: int) -> tuple[I64, F64]:
        """Return the shifts in [low, high] and their correlations, of which none is NaN."""
        a = max(0, -(-(low - self.first) // self.step))
        b = min(len(self.r), (high - self.first) // self.step + 1)
        shifts = self.first + np.arange(a, max(a, b), dtype=np.int64) * self.step
        r = self.r[a : max(a, b)]
        keep = ~np.isnan(r)
        return shifts[keep], r[keep]


def curve(activity: Activity, busy: Intervals, window: tuple[int, int], interval: int) -> Curve:
    """Correlate at all shifts at which the log covers half of `window`, on a grid of half intervals."""
    begin, end = int(activity.starts[0]), int(activity.ends[-1])
    step = max(1, interval // 2, (end - begin + window[1] - window[0]) // MAX_CELLS)
    number = max(1, -(-(window[1] - window[0]) // step))
    cells = max(1, -(-(end - begin) // step))
    middles = begin + np.arange(cells, dtype=np.int64) * step + step // 2
    sample = np.minimum(np.searchsorted(activity.ends, middles, side="right"), len(activity.ends) - 1)
    there: Bools = (activity.starts[sample] <= middles) & (middles < activity.ends[sample])
    x = np.where(there, activity.value[sample] - activity.value.mean(), 0.0)
    # A sample is the mean over `interval`, so busy time is averaged over as much around each cell.
    wide = max(step, interval)
    centres = window[0] + np.arange(number, dtype=np.int64) * step + step // 2
    y = _share(busy, centres - wide // 2, centres - wide // 2 + wide)
    y = y - y.mean()

    size = 1 << int(cells + 2 * number).bit_length()
    spectrum_y = np.conj(np.fft.rfft(y, size))
    spectrum_yy = np.conj(np.fft.rfft(y * y, size))
    spectrum_there = np.fft.rfft(there.astype(np.float64), size)

    def sliding(product: np.ndarray[tuple[int], np.dtype[np.complex128]]) -> F64:
        whole = np.fft.irfft(product, size)
        # Offsets -number .. cells of the window's first cell in the log's grid.
        return np.concatenate([whole[-number:], whole[: cells + 1]])

    def summed(values: F64) -> F64:
        before = np.concatenate([np.zeros(number), [0.0], np.cumsum(values), np.full(number, values.sum())])
        # Element i: the sum over the cells i - number .. i of the log's grid.
        total: F64 = before[number : number + cells + number + 1] - before[: cells + number + 1]
        return total

    count = summed(there.astype(np.float64))
    sum_x, sum_xx = summed(x), summed(x * x)
    sum_y = sliding(spectrum_there * spectrum_y)
    sum_yy = sliding(spectrum_there * spectrum_yy)
    sum_xy = sliding(np.fft.rfft(x, size) * spectrum_y)
    n = np.maximum(count, 1.0)
    xx, yy, xy = sum_xx - sum_x**2 / n, sum_yy - sum_y**2 / n, sum_xy - sum_x * sum_y / n
    usable = (2 * count >= number) & (xx > FLAT * float((x * x).sum())) & (yy > FLAT * float((y * y).sum()))
    r = np.where(usable, xy / np.sqrt(np.where(usable, xx * yy, 1.0)), np.nan)
    return Curve(begin - number * step - window[0], step, r, window)


def exact(activity: Activity, busy: Intervals, shifts: I64, window: tuple[int, int], interval: int) -> F64:
    """Return r of the samples that meet `window` with the busy share of their very intervals, for each shift.
    NaN where the log covers less than half of it or one of the two does not vary.
    """
    longest = MAX_ROWS * interval
    if window[1] - window[0] > longest:
        middle = (window[0] + window[1]) // 2
        window = (middle - longest // 2, middle + longest // 2)
    # A sample each second, a window of 10 s and 200 shifts are a table of 200 lines and 13 columns: in each
    # line the samples from the first that ends within the shifted window on, at most one more than fit at
    # either end, of which those outside weigh nothing. It is worked off so many lines at a time as fill
    # BLOCK.
    result = np.full(len(shifts), np.nan)
    number = int((window[1] - window[0]) // interval) + 3
    rows = max(1, BLOCK // number)
    for begin in range(0, len(shifts), rows):
        some = shifts[begin : begin + rows]
        first = np.searchsorted(activity.ends, window[0] + some, side="right")
        index = first[:, None] + np.arange(number)
        there: Bools = index < len(activity.value)
        index = np.minimum(index, len(activity.value) - 1)
        starts, ends = activity.starts[index] - some[:, None], activity.ends[index] - some[:, None]
        there &= starts < window[1]
        weight = np.where(there, ends - starts, 0)
        result[begin : begin + rows] = _pearson(
            activity.value[index], _share(busy, starts, ends), weight, window[1] - window[0]
        )
    return result


def _pearson(x: F64, y: F64, weight: I64, length: int) -> F64:
    total = weight.sum(axis=1).astype(np.float64)
    w = weight / np.where(total > 0, total, 1.0)[:, None]
    dx = x - (x * w).sum(axis=1, keepdims=True)
    dy = y - (y * w).sum(axis=1, keepdims=True)
    xx, yy, xy = (dx * dx * w).sum(axis=1), (dy * dy * w).sum(axis=1), (dx * dy * w).sum(axis=1)
    usable = (xx > 1e-18) & (yy > 1e-18) & (2 * total >= length)
    r: F64 = np.where(usable, xy / np.sqrt(np.where(usable, xx * yy, 1.0)), np.nan)
    return r


def _share(busy: Intervals, starts: I64, ends: I64) -> F64:
    """Return the busy share of each interval, 0 to 1."""
    share: F64 = busy.covered(starts, ends) / np.maximum(ends - starts, 1)
    return share
