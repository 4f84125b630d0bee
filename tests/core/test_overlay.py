"""Logs over a trace: what their rows show, where their lanes stand, how clocks move them, zones."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.demo.trace import write_demo
from tracelane.core.logs.header import ColumnKind, LogColumn, nearby_logs
from tracelane.core.logs.log import TelemetryLog
from tracelane.core.logs.log_index import LogIndex, entries_of
from tracelane.core.logs.overlay import LogOptions, Overlay, open_overlay, with_log
from tracelane.core.logs.series import DeviceLog, Series
from tracelane.core.logs.stamps import StampKind, Wall, offset_text, zone_offset
from tracelane.core.query.busy import sample_cells
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.ranks.ranks import ranks
from tracelane.core.trace import Trace, open_trace

POWER = LogColumn("pwr", "W", ColumnKind.POWER)
NONE = np.empty(0, np.int64)
JUNE = 1_781_947_920 * 10**9
JANUARY = 1_768_000_000 * 10**9

Samples = list[tuple[int, int, float]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return folder


@pytest.fixture(scope="module")
def trace(demo: Path) -> Trace:
    return open_trace(demo, index_dir=demo / "index")


@pytest.fixture(scope="module")
def overlay(demo: Path, trace: Trace) -> Overlay:
    return open_overlay(trace, [demo / "aiu-smi.log"], LogOptions())


def series_of(samples: Samples) -> Series:
    start, end, value = (np.array(part) for part in zip(*samples))
    value = value.astype(np.float64)
    return Series("0", POWER, start, end, value, np.isnan(value), np.arange(1, len(value) + 1))


def index_of(samples: Samples) -> LogIndex:
    series = series_of(samples)
    device = DeviceLog("0", series.start_ns, series.end_ns, series.line, {POWER: series.value})
    log = TelemetryLog(
        "made.csv", "aiu-smi", "csv", (POWER,), {"0": device}, len(series), 0, 0, 0, 10, StampKind.LOCAL,
        False, (), (), (), NONE, NONE,
    )  # fmt: skip
    return LogIndex(log, ("0",), 0, 0)


@st.composite
def some_samples(draw: st.DrawFn) -> Samples:
    """Intervals in order that touch or leave gaps, some without a value, at least one with."""
    at, samples = draw(st.integers(-50, 50)), []
    for _ in range(draw(st.integers(1, 40))):
        at += draw(st.sampled_from((0, 0, 0, 3, 11)))
        length = draw(st.integers(0, 12))
        value = draw(st.sampled_from((math.nan, 0.0, 1.5, 7.0, 20.0)))
        samples.append((at, at + length, value))
        at += length
    samples.append((at, at + 5, 3.0))
    return samples


@pytest.mark.slow
@given(some_samples(), st.lists(st.integers(-80, 400), min_size=2, max_size=12, unique=True))
def test_cells_show_what_holds_in_them(samples: Samples, edges: list[int]) -> None:
    """A cell's band is that of the samples whose intervals reach into it; in gaps nothing is drawn."""
    edges.sort()
    cells = sample_cells(index_of(samples), 0, edges)
    for cell, (left, right) in enumerate(itertools.pairwise(edges)):
        inside = [v for a, b, v in samples if a < right and b > left and b > a and not math.isnan(v)]
        low, high = float(cells.low[cell]), float(cells.high[cell])
        assert (low, high) == (min(inside), max(inside)) if inside else math.isnan(low) and math.isnan(high)


def test_a_log_is_no_rank(demo: Path, tmp_path: Path) -> None:
    """Where no file says its rank each file counts as one, and a log over them does not."""
    whole = json.loads((demo / "rank0.pt.trace.json").read_text(encoding="utf-8"))
    del whole["distributedInfo"]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    trace = open_overlay(open_trace(path, index_dir=tmp_path), [demo / "aiu-smi.log"], LogOptions())
    assert len(trace.indexes) == 2
    assert [one.source for one in ranks(Scope(trace)).ranks] == [0]


def test_entries_tell_their_sample() -> None:
    """Entries start where samples do, and one without a sample stands where a gap begins and at the end."""
    start, value, sample = entries_of(series_of([(0, 10, 1.0), (10, 20, 2.0), (25, 30, 3.0)]))
    assert start.tolist() == [0, 10, 20, 25, 30]
    assert sample.tolist() == [0, 1, -1, 2, -1]
    assert np.isnan(value).tolist() == [False, False, True, False, True]


def test_lanes_stand_below_their_device(overlay: Overlay) -> None:
    """Each card's process follows its device's, and a lane's process is the one that lists it."""
    titles = [process.title for process in overlay.processes if len(process.lanes)]
    positions = [n for n, title in enumerate(titles) if "aiu-smi" in title]
    assert [titles[n] for n in positions] == ["AIU 0 · aiu-smi 0", "AIU 0 · aiu-smi 1"]
    assert [titles[n - 1][-5:] for n in positions] == ["AIU 0", "AIU 0"]
    for process in overlay.processes:
        for number in process.lanes:
            assert overlay.lanes[number].process == process
            assert overlay.lanes[number].source == process.source


def test_a_log_changes_nothing_of_the_trace(overlay: Overlay, trace: Trace) -> None:
    """Span, opening window, steps and lanes of the trace are what they were."""
    assert (overlay.span, overlay.opening_span) == (trace.span, trace.opening_span)
    assert [s.label for s in overlay.steps] == [s.label for s in trace.steps]
    assert list(overlay.lanes)[: len(trace.lanes)] == list(trace.lanes)


def test_clocks_move_the_lanes(overlay: Overlay) -> None:
    """Under a clock the row shows what it showed so much earlier, and readings tell the moved interval."""
    source = overlay.log_sources[0]
    row = overlay.row(next(lane for _, lane, _ in overlay.metrics()), 0)
    start, end = overlay.opening_span
    edges = np.linspace(start, end, 50).astype(np.int64)
    by = 37_000_000
    moved = Clocks().shifted((source, ""), by)
    before = overlay.sample_cells(row, edges)
    after = overlay.sample_cells(row, edges + by, moved)
    assert np.array_equal(before.high, after.high, equal_nan=True)
    at = (start + end) // 2
    plain, later = overlay.reading(row, at), overlay.reading(row, at + by, moved)
    assert plain is not None and later is not None
    assert (later.start - by, later.value, later.line) == (plain.start, plain.value, plain.line)


def test_a_reading_is_the_logs_line(overlay: Overlay, demo: Path) -> None:
    """The value at a time is the one in the line whose interval holds it; the time lies in the interval."""
    lines = (demo / "aiu-smi.log").read_text(encoding="utf-8").splitlines()
    start, end = overlay.opening_span
    power = [lane for _, lane, metric in overlay.metrics() if metric.column.name == "pwr"]
    assert power
    for lane in power:
        row = overlay.row(lane, 0)
        for time in range(start, end, (end - start) // 7):
            reading = overlay.reading(row, time)
            assert reading is not None and reading.start <= time < reading.end
            assert reading.text == lines[reading.line - 1]
            assert reading.value is not None and f"{reading.value:.1f}" in reading.text.split()


def test_a_card_given_to_a_process(demo: Path, trace: Trace) -> None:
    """Cards given go where they were told, and a second log comes below the first one."""
    crossed = open_overlay(trace, [demo / "aiu-smi.log"], LogOptions(device_of={"0": "1:0", "1": "0:0"}))
    assert [p.title for p in crossed.processes if "aiu-smi" in p.title] == [
        "AIU 0 · aiu-smi 1",
        "AIU 0 · aiu-smi 0",
    ]
    both = with_log(crossed, demo / "aiu-smi.log", LogOptions())
    assert len(both.placed) == 2 and len(both.log_sources) == 2
    assert len([p for p in both.processes if "aiu-smi" in p.title]) == 4


def test_what_is_no_log(demo: Path, trace: Trace) -> None:
    """A trace or text is no log, and says so."""
    (demo / "words.txt").write_text("nothing to see\n", encoding="utf-8")
    for name in ("rank0.pt.trace.json", "words.txt"):
        with pytest.raises(UnreadableError, match=name):
            open_overlay(trace, [demo / name], LogOptions())


def test_logs_beside_a_trace(demo: Path, trace: Trace) -> None:
    """Only files that begin as aiu-smi's logs do are offered."""
    (demo / "other.csv").write_text(
        "timestamp,power.draw [W]\n2026/06/22 10:15:13.000,12\n", encoding="utf-8"
    )
    (demo / "note.txt").write_text("# a note\n", encoding="utf-8")
    assert nearby_logs(trace) == [demo / "aiu-smi.log"]


def test_busy_time_of_the_devices(trace: Trace) -> None:
    """Each device has busy intervals within the trace's window, in wall time."""
    busy, window = Wall(trace).busy
    assert list(busy) == ["0:0", "1:0"]
    for starts, ends in busy.values():
        assert len(starts) and (ends >= starts).all()
        assert starts.min() >= window[0] and ends.max() <= window[1]


@pytest.mark.parametrize(
    ("zone", "at", "hours"),
    [("UTC", JUNE, 0.0), ("+02:00", JUNE, 2.0), ("-0330", JUNE, -3.5), ("UTC+5:45", JUNE, 5.75),
     ("-4", JUNE, -4.0),
     ("Europe/Zurich", JUNE, 2.0), ("Europe/Zurich", JANUARY, 1.0), ("America/New_York", JUNE, -4.0)],
)  # fmt: skip
def test_zones(zone: str, at: int, hours: float) -> None:
    """Names know summer time, offsets are taken as they stand."""
    assert zone_offset(zone, at) == hours * 3600


@pytest.mark.parametrize("zone", ["Mars/Base", "+15:00", "+02:60", "summer", "../etc/passwd"])
def test_no_zones(zone: str) -> None:
    """What is no zone is refused."""
    with pytest.raises(UsageError):
        zone_offset(zone, JUNE)


def test_offsets_as_text() -> None:
    """Offsets are written with sign, hours and minutes."""
    assert [offset_text(s) for s in (0, 20700, -14400, -12600)] == [
        "UTC+00:00", "UTC+05:45", "UTC-04:00", "UTC-03:30",
    ]  # fmt: skip
