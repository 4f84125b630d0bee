"""Energy is the integral of power over what the samples cover, and nothing is counted twice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.errors import UsageError
from tracelane.core.logs.header import ColumnKind, LogColumn
from tracelane.core.logs.series import Series, attribute, energy, statistics

POWER = LogColumn("pwr", "W", ColumnKind.POWER)
SECOND = 1_000_000_000
Sample = tuple[int, int, float | None]


def series_of(samples: list[Sample], column: LogColumn = POWER) -> Series:
    starts, ends, values = (list(part) for part in zip(*samples)) if samples else ([], [], [])
    value = np.array([np.nan if v is None else v for v in values], np.float64)
    return Series(
        "0",
        column,
        np.array(starts, np.int64),
        np.array(ends, np.int64),
        value,
        np.isnan(value),
        np.arange(len(value)),
    )


def exactly(samples: list[Sample], start: int, end: int) -> tuple[Fraction, int]:
    """Return energy in nJ and covered ns, by going through all samples with fractions."""
    total, covered = Fraction(0), 0
    for a, b, value in samples:
        overlap = min(b, end) - max(a, start)
        if value is not None and overlap > 0:
            total += Fraction(value) * overlap
            covered += overlap
    return total, covered


@st.composite
def sample_lists(draw: st.DrawFn) -> list[Sample]:
    at = draw(st.integers(-50, 50)) * 1_000_003
    samples: list[Sample] = []
    for _ in range(draw(st.integers(0, 12))):
        at += draw(st.sampled_from([0, 0, 0, 777, 5 * SECOND]))
        length = draw(st.integers(1, 3 * SECOND))
        tenths = draw(st.one_of(st.none(), st.integers(0, 4000)))
        samples.append((at, at + length, None if tenths is None else tenths / 10))
        at += length
    return samples


@given(sample_lists(), st.lists(st.tuples(st.integers(-1, 20), st.integers(0, 20)), min_size=1, max_size=6))
def test_ranges_against_fractions(samples: list[Sample], ranges: list[tuple[int, int]]) -> None:
    """Energy and coverage of any ranges equal the sums over all samples, to a nanojoule a sample."""
    series = series_of(samples)
    starts = np.array([a * 777_777_777 for a, _ in ranges], np.int64)
    ends = starts + np.array([d * 333_333_333 for _, d in ranges], np.int64)
    before, until = energy(series, starts), energy(series, ends)
    for i in range(len(ranges)):
        joules, covered = exactly(samples, int(starts[i]), int(ends[i]))
        assert abs(int(until[0][i] - before[0][i]) - joules) <= len(samples) + 1
        assert int(until[1][i] - before[1][i]) == covered
        stats = statistics(series, int(starts[i]), int(ends[i]))
        assert stats.covered_ns == covered
        if covered:
            assert stats.mean == pytest.approx(float(joules / covered), rel=1e-12)
            assert stats.joules == pytest.approx(float(joules) / SECOND, abs=1e-9 * (len(samples) + 1))
            assert stats.least is not None
            assert stats.greatest is not None
            assert stats.least - 1e-9 <= float(joules / covered) <= stats.greatest + 1e-9
        else:
            assert (stats.mean, stats.joules, stats.samples) == (None, None, 0)


def test_missing_power_is_no_zero() -> None:
    """A missing sample lowers the coverage, not the mean."""
    series = series_of([(0, SECOND, 30.0), (SECOND, 2 * SECOND, None), (2 * SECOND, 3 * SECOND, 50.0)])
    stats = statistics(series, 0, 3 * SECOND)
    assert (stats.mean, stats.joules, stats.samples) == (40.0, 80.0, 2)
    assert stats.coverage == pytest.approx(2 / 3)


def test_milliwatts_and_other_metrics() -> None:
    """Power in mW gives joules all the same; a temperature has none."""
    milli = series_of([(0, SECOND, 30_000.0)], LogColumn("power", "mW", ColumnKind.POWER))
    assert statistics(milli, 0, SECOND).joules == pytest.approx(30.0)
    warm = series_of([(0, SECOND, 41.0)], LogColumn("tempr", "C", ColumnKind.TEMPERATURE))
    assert statistics(warm, 0, SECOND).joules is None
    with pytest.raises(UsageError, match="not a power"):
        energy(warm, np.array([0]))


def test_large_stamps_lose_nothing() -> None:
    """At epoch scale, over a million samples, parts still add up to the whole to the nanojoule."""
    number = 1_000_000
    base = 1_781_947_920 * SECOND
    ends = base + np.arange(1, number + 1, dtype=np.int64) * 100_000_007
    value = np.tile([20.1, 74.9, 33.3, 21.7], number // 4)
    series = Series("0", POWER, ends - 100_000_007, ends, value, np.zeros(number, bool), np.arange(number))
    cuts = np.sort(np.random.default_rng(0).integers(base, int(ends[-1]), 5_000))
    joules, covered = map(np.diff, energy(series, np.array([base, *cuts, ends[-1]])))
    tenths = round(float(value.sum()) * 10)
    assert int(joules.sum()) == pytest.approx(tenths * 100_000_007 / 10, abs=number / 2)
    assert int(covered.sum()) == number * 100_000_007


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 900), st.integers(0, 400)), max_size=10),
    st.integers(1, 60),
)
def test_attribution_adds_up(slices: list[tuple[int, int, int]], interval: int) -> None:
    """Names, those too short and idle time together have the span's energy, and each name its share."""
    samples: list[Sample] = [(t, t + 100, 10.0 + t / 100) for t in range(0, 1000, 100)]
    samples[4] = (400, 500, None)
    series = series_of([(a * 1000, b * 1000, v) for a, b, v in samples])
    names = np.array([n for n, _, _ in slices], np.int64)
    starts = np.array([a * 1000 for _, a, _ in slices], np.int64)
    ends = np.array([(a + d) * 1000 for _, a, d in slices], np.int64)
    shares = attribute(series, names, starts, ends, (100_000, 950_000), interval * 1000)
    expected: dict[int, float] = {}
    lasted: dict[int, int] = {}
    idle = 0.0
    for t in range(100, 950):
        watts = next((v for a, b, v in samples if a <= t < b), None) or 0.0
        running = [n for n, a, d in slices if a <= t < a + d]
        idle += 0.0 if running else watts
        for n in running:
            expected[n] = expected.get(n, 0.0) + watts / len(running)
            lasted[n] = lasted.get(n, 0) + 1
    long = {n for n in lasted if lasted[n] >= 10 * interval}
    assert {entry.name for entry in shares.names} == long
    for entry in shares.names:
        assert entry.joules * 1e6 == pytest.approx(expected[entry.name], abs=1e-2)
        assert entry.duration_ns == lasted[entry.name] * 1000
    assert set(shares.too_short) == set(lasted) - long
    assert shares.none_joules * 1e6 == pytest.approx(idle, abs=1e-2)
    listed = sum(entry.joules for entry in shares.names)
    assert listed + shares.too_short_joules + shares.none_joules == pytest.approx(
        shares.total_joules, abs=1e-9
    )


def test_a_slice_alone_has_the_power_of_its_samples() -> None:
    """A slice that is as long as twenty samples of 30 W has 30 W."""
    shares = attribute(
        series_of([(0, SECOND, 30.0)]),
        np.array([1]),
        np.array([0]),
        np.array([SECOND]),
        (0, SECOND),
        SECOND // 20,
    )
    assert shares.names[0].watts == pytest.approx(30.0)
    assert shares.names[0].slices == 1
