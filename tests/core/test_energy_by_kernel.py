"""Energy by name of kernels, and what lanes of values say of a range."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.events import Event, complete, event, index_of, metadata
from tracelane.core.logs.opening import open_overlay
from tracelane.core.logs.overlay import LogOptions, Overlay, counter_column, statistics_of
from tracelane.core.logs.telemetry_tables import IDLE, TOO_SHORT, kernels_table
from tracelane.core.trace import Trace

BASE_S = 1_700_000_000
SECOND_US, SECOND = 1_000_000, 1_000_000_000
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
    index.manifest["base_time_ns"] = BASE_S * SECOND
    return Trace([index])


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    """The trace with a log of its card, a row per second."""
    lines = ["timestamp,power.draw [W]"]
    lines += [f"{BASE_S + second + 1}.000,{watts}" for second, watts in enumerate(WATTS)]
    log = tmp_path / "power.csv"
    log.write_text("\n".join(lines) + "\n")
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
    assert (rows["long"]["count"], rows["long"]["total_ns"]) == (2, 35 * SECOND)
    assert rows["long"]["power_mean_w"] == pytest.approx((20 * 60 + 15 * 15) / 35)
    assert rows[TOO_SHORT]["power_mean_w"] is None and rows[TOO_SHORT]["count"] == 1
    assert rows[IDLE]["total_ns"] == 3 * SECOND
    (note,) = table.notes
    assert "an estimate" in note and "1000 ms" in note


def test_energy_of_a_part(overlay: Overlay) -> None:
    """Of a range only the parts inside count, and a name that is brief in it is not listed."""
    rows = {str(row["name"]): row for row in kernels_table(overlay, (20 * SECOND, 30 * SECOND)).rows()}
    assert {name: row["energy_j"] for name, row in rows.items()} == pytest.approx(
        {"long": 5 * 60 + 5 * 15, TOO_SHORT: 5 * 15}
    )
    assert not [row for row in kernels_table(overlay, (0, SECOND)).rows() if row["name"] != IDLE]


def test_a_metric_s_range(overlay: Overlay) -> None:
    """A metric of a log over a range: mean by time, extremes, energy, and how much of the range it covers."""
    row = next(overlay.row_number(s, 0) for s in overlay.log_sources)
    answer = statistics_of(overlay, row, (24 * SECOND, 27 * SECOND), NO_CLOCKS)
    assert answer is not None
    column, stats = answer
    assert column.unit == "W" and stats.mean == pytest.approx(40) and stats.joules == pytest.approx(120)
    assert (stats.least, stats.greatest, stats.coverage) == (30, 60, 1)
    later = statistics_of(overlay, row, (39 * SECOND, 41 * SECOND), NO_CLOCKS)
    assert later is not None and later[1].coverage == 0.5


def test_a_counter_s_range(tmp_path: Path) -> None:
    """A counter's value holds until its next sample, the last one to the end; power has an energy."""
    stamps = ((10, 40.0), (20, 60.0), (30, 0.0))
    power = [counted(at * SECOND_US, "Power", Watts=value) for at, value in stamps]
    active = [counted(at * SECOND_US, "PT Active", Percent=value) for at, value in stamps]
    trace = trace_of(tmp_path, *power, *active)
    lanes = {lane.name: trace.row(lane, 0) for lane in trace.lanes if lane.samples}
    for name, joules in (("Power", 5 * 40 + 10 * 60), ("PT Active", None)):
        answer = statistics_of(trace, lanes[name], (15 * SECOND, 35 * SECOND), NO_CLOCKS)
        assert answer is not None
        assert (answer[1].mean, answer[1].joules) == (40, joules) and answer[1].coverage == 1
        assert (answer[1].least, answer[1].greatest) == (0, 60)
        early = statistics_of(trace, lanes[name], (0, 20 * SECOND), NO_CLOCKS)
        assert early is not None and (early[1].mean, early[1].coverage) == (40, 0.5)
        late = statistics_of(trace, lanes[name], (39 * SECOND, 40 * SECOND), NO_CLOCKS)
        assert late is not None and (late[1].mean, late[1].coverage) == (0, 1)
        nothing = statistics_of(trace, lanes[name], (0, SECOND), NO_CLOCKS)
        assert nothing is not None and nothing[1].mean is None


def test_slices_are_no_values(tmp_path: Path) -> None:
    """A row of slices has no statistics of values."""
    trace = trace_of(tmp_path)
    assert statistics_of(trace, trace.row(0, 0), (0, SECOND), NO_CLOCKS) is None


@pytest.mark.parametrize(
    ("name", "series", "watts"),
    [("Power", "Watts", 1.0), ("pwr", "mW", 1e-3), ("BW", "Bytes", None), ("Rotation", "W", None)],
)
def test_units_of_counters(name: str, series: str, watts: float | None) -> None:
    """A counter is power where its series is a unit of power and its name says so."""
    assert counter_column(name, series).watts == watts
