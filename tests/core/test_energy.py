"""Energy is the integral of power over what the samples cover, by step and kernel, nothing counted twice."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.events import Event, complete, event, index_of, metadata
from tracelane.core.base.errors import UsageError
from tracelane.core.logs.header import ColumnKind, LogColumn
from tracelane.core.logs.overlay import LogOptions, Overlay, counter_column, open_overlay, statistics_of
from tracelane.core.logs.series import Series, attribute, energy, statistics
from tracelane.core.logs.telemetry_tables import IDLE, TOO_SHORT, kernels_table
from tracelane.core.trace import Trace

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


BASE_S = 1_700_000_000
SECOND_US, SECOND_KERNEL = 1_000_000, 1_000_000_000
NO_CLOCKS = Trace([]).clocks
WATTS = [20.0] * 5 + [60.0] * 20 + [30.0] * 15
"""Power in the seconds from the trace's begin on."""


def counted(ts: float, name: str, **values: float | str) -> Event:
    return event("C", ts, name, pid=0, args=values)


def trace_of(folder: Path, *more: Event) -> Trace:
    """A device that runs `long` in seconds 5 to 25 and 25 to 40 half as `other`, and `brief` for 2 s."""
    work = [
        complete(5 * SECOND_US, 20 * SECOND_US, "long", "kernel", pid=0, tid=1),
        complete(25 * SECOND_US, 15 * SECOND_US, "long", "kernel", pid=0, tid=1),
        complete(25 * SECOND_US, 15 * SECOND_US, "other", "kernel", pid=0, tid=2),
        complete(2 * SECOND_US, 2 * SECOND_US, "brief", "kernel", pid=0, tid=1),
        complete(0, 40 * SECOND_US, "aten::op", "cpu_op"),
    ]
    index = index_of([metadata("process_labels", 0, labels="AIU 0"), *work, *more], folder)
    index.manifest["base_time_ns"] = BASE_S * SECOND_KERNEL
    return Trace([index])


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    """The trace with a log of its card, a row per second."""
    lines = ["timestamp,power.draw [W]"]
    lines += [f"{BASE_S + second + 1}.000,{watts}" for second, watts in enumerate(WATTS)]
    log = tmp_path / "power.csv"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    trace_with_log = open_overlay(trace_of(tmp_path / "t"), [log], LogOptions("UTC", 0.0, {}))
    assert trace_with_log.placed[0].proposal.device_of
    return trace_with_log


def test_energy_by_name(overlay: Overlay) -> None:
    """Names share the power of their time, evenly where they run at once; the rest adds up to all of it."""
    table = kernels_table(overlay)
    rows = {str(row["name"]): row for row in table.rows()}
    expected = {"long": 20 * 60 + 15 * 15, "other": 15 * 15, TOO_SHORT: 2 * 20, IDLE: 3 * 20}
    assert {name: row["energy_j"] for name, row in rows.items()} == pytest.approx(expected)
    assert table.totals["energy_j"] == pytest.approx(sum(WATTS))
    assert (rows["long"]["count"], rows["long"]["total_ns"]) == (2, 35 * SECOND_KERNEL)
    assert rows["long"]["power_mean_w"] == pytest.approx((20 * 60 + 15 * 15) / 35)
    assert rows[TOO_SHORT]["power_mean_w"] is None and rows[TOO_SHORT]["count"] == 1
    assert rows[IDLE]["total_ns"] == 3 * SECOND_KERNEL
    (note,) = table.notes
    assert "an estimate" in note and "1000 ms" in note


def test_energy_of_a_part(overlay: Overlay) -> None:
    """Of a range only the parts inside count, and a name that is brief in it is not listed."""
    rows = {
        str(row["name"]): row
        for row in kernels_table(overlay, (20 * SECOND_KERNEL, 30 * SECOND_KERNEL)).rows()
    }
    assert {name: row["energy_j"] for name, row in rows.items()} == pytest.approx(
        {"long": 5 * 60 + 5 * 15, TOO_SHORT: 5 * 15}
    )
    assert not [row for row in kernels_table(overlay, (0, SECOND_KERNEL)).rows() if row["name"] != IDLE]


def test_a_metric_s_range(overlay: Overlay) -> None:
    """A metric of a log over a range: mean by time, extremes, energy, and how much of the range it covers."""
    row = next(overlay.row_number(s, 0) for s in overlay.log_sources)
    answer = statistics_of(overlay, row, (24 * SECOND_KERNEL, 27 * SECOND_KERNEL), NO_CLOCKS)
    assert answer is not None
    column, stats = answer
    assert column.unit == "W" and stats.mean == pytest.approx(40) and stats.joules == pytest.approx(120)
    assert (stats.least, stats.greatest, stats.coverage) == (30, 60, 1)
    later = statistics_of(overlay, row, (39 * SECOND_KERNEL, 41 * SECOND_KERNEL), NO_CLOCKS)
    assert later is not None and later[1].coverage == 0.5


def test_a_counter_s_range(tmp_path: Path) -> None:
    """A counter's value holds until its next sample, the last one to the end; power has an energy."""
    stamps = ((10, 40.0), (20, 60.0), (30, 0.0))
    power = [counted(at * SECOND_US, "Power", Watts=value) for at, value in stamps]
    active = [counted(at * SECOND_US, "PT Active", Percent=value) for at, value in stamps]
    trace = trace_of(tmp_path, *power, *active)
    lanes = {lane.name: trace.row(lane, 0) for lane in trace.lanes if lane.samples}
    for name, joules in (("Power", 5 * 40 + 10 * 60), ("PT Active", None)):
        answer = statistics_of(trace, lanes[name], (15 * SECOND_KERNEL, 35 * SECOND_KERNEL), NO_CLOCKS)
        assert answer is not None
        assert (answer[1].mean, answer[1].joules) == (40, joules) and answer[1].coverage == 1
        assert (answer[1].least, answer[1].greatest) == (0, 60)
        early = statistics_of(trace, lanes[name], (0, 20 * SECOND_KERNEL), NO_CLOCKS)
        assert early is not None and (early[1].mean, early[1].coverage) == (40, 0.5)
        late = statistics_of(trace, lanes[name], (39 * SECOND_KERNEL, 40 * SECOND_KERNEL), NO_CLOCKS)
        assert late is not None and (late[1].mean, late[1].coverage) == (0, 1)
        nothing = statistics_of(trace, lanes[name], (0, SECOND_KERNEL), NO_CLOCKS)
        assert nothing is not None and nothing[1].mean is None


def test_slices_are_no_values(tmp_path: Path) -> None:
    """A row of slices has no statistics of values."""
    trace = trace_of(tmp_path)
    assert statistics_of(trace, trace.row(0, 0), (0, SECOND_KERNEL), NO_CLOCKS) is None


@pytest.mark.parametrize(
    ("name", "series", "watts"),
    [("Power", "Watts", 1.0), ("pwr", "mW", 1e-3), ("BW", "Bytes", None), ("Rotation", "W", None)],
)
def test_units_of_counters(name: str, series: str, watts: float | None) -> None:
    """A counter is power where its series is a unit of power and its name says so."""
    assert counter_column(name, series).watts == watts
