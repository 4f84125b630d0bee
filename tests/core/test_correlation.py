"""How alike a card's activity and the busy time are at each shift of their clocks, against plain loops."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tracelane.core.base.arrays import F64, I64, Intervals
from tracelane.core.logs.correlation import Activity, curve, exact

INTERVAL = 10
Spans = list[tuple[int, int]]


def intervals(spans: Spans) -> Intervals:
    return Intervals(*(np.array([span[at] for span in spans], np.int64) for at in (0, 1)))


def log_and_busy(seed: int, count: int) -> tuple[Activity, Spans]:
    """Return a log whose samples have gaps, far from 0 and never around 0, and when the device was busy."""
    pick = random.Random(seed)
    starts = (
        np.array([INTERVAL * at for at in range(count + 9) if at % 7 != seed % 7][:count], np.int64) + 5_000
    )
    values = np.array([pick.uniform(40, 90) for _ in range(count)])
    edges = sorted(pick.sample(range(100, 100 + 12 * count), 20))
    return Activity("busy", starts, starts + INTERVAL, values), list(zip(edges[::2], edges[1::2]))


def busy_share(spans: Spans, start: int, end: int) -> float:
    return sum(max(0, min(high, end) - max(low, start)) for low, high in spans) / (end - start)


def likeness(x: list[float], y: list[float], weights: list[int], length: float) -> float:
    """Return Pearson's r; NaN where less than half of a length is known or one of the two does not vary."""
    if 2 * sum(weights) < length or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    (xx, xy), (_, yy) = np.cov(x, y, aweights=weights, ddof=0)
    return float(xy / np.sqrt(xx * yy))


@pytest.mark.parametrize("seed", range(4))
def test_samples_meet_the_busy_share_of_their_intervals(seed: int) -> None:
    """For each shift r is that of the samples that meet the window, each counting as long as it is."""
    activity, spans = log_and_busy(seed, 40)
    window = (100, 420)
    shifts: I64 = np.arange(4_400, 5_400, 37, dtype=np.int64)
    expected = []
    for shift in shifts.tolist():
        rows = [
            (value, busy_share(spans, start - shift, end - shift), end - start)
            for start, end, value in zip(
                activity.starts.tolist(), activity.ends.tolist(), activity.value.tolist()
            )
            if end - shift > window[0] and start - shift < window[1]
        ]
        values, shares, lengths = ([row[at] for row in rows] for at in range(3))
        expected.append(likeness(values, shares, lengths, window[1] - window[0]))
    r = exact(activity, intervals(spans), shifts, window, INTERVAL)
    assert np.isnan(expected).any() and not np.isnan(expected).all()
    np.testing.assert_allclose(r, expected, rtol=1e-9, equal_nan=True)


def test_of_a_long_trace_the_middle_is_compared() -> None:
    """What lies further from the middle than half of 20,000 samples changes nothing."""
    activity, spans = log_and_busy(1, 60_000)
    window, shifts = (1_000, 501_000), np.array([5_000, 5_003], np.int64)
    r = exact(activity, intervals(spans), shifts, window, INTERVAL)
    inner = exact(activity, intervals(spans), shifts, (151_000, 351_000), INTERVAL)
    assert not np.isnan(r).any() and r.tolist() == inner.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_all_shifts_at_once_are_each_alone(seed: int) -> None:
    """On a grid of half samples r is that of the cells that the log covers, where these are half of all."""
    activity, spans = log_and_busy(seed, 40)
    window, step = (100, 420), INTERVAL // 2
    result = curve(activity, intervals(spans), window, INTERVAL)
    samples = list(zip(activity.starts.tolist(), activity.ends.tolist(), activity.value.tolist()))
    number = (window[1] - window[0]) // step
    expected = []
    for shift in (result.first + np.arange(len(result.r)) * step).tolist():
        x, y = list[float](), list[float]()
        for cell in range(number):
            middle = window[0] + cell * step + step // 2
            value = next((value for start, end, value in samples if start <= middle + shift < end), None)
            if value is not None:
                x.append(value)
                y.append(busy_share(spans, middle - INTERVAL // 2, middle + INTERVAL // 2))
        expected.append(likeness(x, y, [1] * len(x), number))
    assert result.step == step and np.isnan(expected).any() and not np.isnan(expected).all()
    np.testing.assert_allclose(result.r, expected, rtol=1e-6, atol=1e-9, equal_nan=True)


def test_what_does_not_vary_is_like_nothing() -> None:
    """A log of one value, or a device that is always or never busy, has no likeness at any shift."""
    activity, spans = log_and_busy(0, 40)
    flat = Activity("flat", activity.starts, activity.ends, np.full(40, 55.5))
    pairs: list[tuple[Activity, Spans]] = [(flat, spans), (activity, [(0, 9_000)]), (activity, [])]
    for one, busy in pairs:
        r: F64 = curve(one, intervals(busy), (100, 420), INTERVAL).r
        assert np.isnan(r).all()
        assert np.isnan(exact(one, intervals(busy), np.array([4_900], np.int64), (100, 420), INTERVAL)).all()
