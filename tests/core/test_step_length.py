"""A step is as long as its device needs where the host runs ahead, and as its mark where the host waits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.core.findings_traces import call, launched, step, trace_of
from tests.events import Event
from tracelane.core.export.report import Printed, report
from tracelane.core.tables.compare.diff import difference
from tracelane.core.tables.compare.summary import summarise
from tracelane.core.tables.findings.finding import Findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.metric_groups import metrics
from tracelane.core.tables.steps.steps import analyse_steps

EPOCH_US = 1_780_611_618_134_227
US = 1000


def program(
    count: int, host_us: int, device_us: int, waits: bool = False, pieces: int = 4, at: int = EPOCH_US
) -> list[Event]:
    """Steps that the host enqueues in `host_us` and that keep the device busy for `device_us`; where it waits
    for the device at the end of each, its mark is as long.
    """
    events: list[Event] = []
    now, free = at, at
    for number in range(count):
        begin = now
        for piece in range(pieces):
            called = begin + piece * host_us // pieces
            free = max(free, called + 5)
            events += launched(called, 2, free, device_us // pieces, f"k{piece}")
            free += device_us // pieces
        now = max(begin + host_us, free if waits else 0)
        events.append(step(number, begin, now - begin - 1))
    return events


@pytest.mark.parametrize(
    ("host_us", "device_us", "waits", "length_us", "ahead"),
    [
        (2_000, 50_000, False, 50_000, 4.8),
        (2_000, 50_000, True, 50_004, 0),
        (10_000, 8_000, False, 9_999, 0),
        (10_000, 11_000, False, 11_000, 0.45),
        (10_000, 10_040, False, 9_999, 0),
    ],
    ids=["enqueues only", "waits in each step", "limited by the host", "falls behind slowly", "as quick"],
)
@pytest.mark.parametrize("at", [0, EPOCH_US])
def test_a_step_is_as_long_as_what_limits_it(
    host_us: int, device_us: int, waits: bool, length_us: int, ahead: float, at: int, tmp_path: Path
) -> None:
    """The table, its groups, the metrics and the report agree on the length, whatever the clock."""
    trace = trace_of(program(6, host_us, device_us, waits, at=at), tmp_path)
    scope = Scope(trace)
    tables = analyse_steps(scope)
    assert np.median(tables["steps"].numbers("length_ns")) == pytest.approx(length_us * US, abs=5 * US)
    assert tables["groups"].numbers("p50_ns").tolist() == [
        int(np.sort(tables["steps"].numbers("length_ns"))[2])
    ]
    by_name = {name: metric.value for name, metric in metrics(scope, ["step"]).items()}
    assert by_name["step.length.median"] == tables["groups"].numbers("p50_ns")[0]
    assert by_name["step.ahead"] == pytest.approx(ahead, abs=0.1)
    assert any("steps ahead" in note for note in tables["steps"].notes) == (ahead > 0)


def test_a_report_says_how_long_an_iteration_takes(tmp_path: Path) -> None:
    """An iteration of the report is a step of the table, and what the host needs to enqueue one is said."""
    scope = Scope(trace_of(program(6, 2_000, 50_000), tmp_path))
    text = report(scope, "t.json", Findings("whole trace", (), ()), Printed("", ""), ())
    assert "median 50 ms" in text
    assert "The host enqueues a step in 1.999 ms and runs up to 4.8 steps ahead." in text


def test_by_window_a_step_is_as_long_as_its_mark(tmp_path: Path) -> None:
    """HTA's view of steps knows no work that runs later."""
    scope = Scope(trace_of(program(6, 2_000, 50_000), tmp_path), attribute="window")
    table = analyse_steps(scope)["steps"]
    assert table.numbers("length_ns").tolist() == table.numbers("wall_ns").tolist()


def test_early_copies_on_another_stream_begin_no_step(tmp_path: Path) -> None:
    """Each step's input is copied as soon as the host asks: the cadence is that of the kernels."""
    events = program(6, 2_000, 50_000)
    for number in range(6):
        at = EPOCH_US + number * 2_000 + 1
        events += launched(at, 1, at + 3, 100, "Memcpy HtoD", "gpu_memcpy", stream=20)
    for event in events:
        if event["name"] == "Memcpy HtoD":
            event["tid"] = 20
    table = analyse_steps(Scope(trace_of(events, tmp_path)))["steps"]
    assert np.median(table.numbers("length_ns")) == 50_000 * US


def test_waiting_once_is_not_running_ahead(tmp_path: Path) -> None:
    """A first launch that loads a module for long leaves a queue that the device works off at once."""
    events: list[Event] = [call(EPOCH_US - 10, 5, "cudaFree")]
    for number in range(6):
        at = EPOCH_US + number * 100
        events += [step(number, at, 99), *launched(at + 2, 2, EPOCH_US + 3_000 + number * 10, 8)]
    table = analyse_steps(Scope(trace_of(events, tmp_path)))["steps"]
    assert table.numbers("length_ns").tolist() == [100 * US] * 6


@pytest.mark.parametrize(("room", "length"), [(0, 99), (300, 399), (2000, 1005)])
def test_a_step_ends_when_its_work_is_done(room: int, length: int, tmp_path: Path) -> None:
    """A mark around a call that only launches is as long as the work, at most until the next one begins."""
    events: list[Event] = []
    for number in range(4):
        at = EPOCH_US + number * (99 + room)
        events += [step(number, at, 99), *launched(at + 2, 2, at + 5, 1_000)]
    table = analyse_steps(Scope(trace_of(events, tmp_path)))["steps"]
    assert table.numbers("length_ns").tolist() == [length * US] * 4


def test_a_part_of_the_steps_keeps_their_lengths(tmp_path: Path) -> None:
    """A range, a filter and lanes choose rows and what is counted in them, not how long a step is."""
    trace = trace_of(program(6, 2_000, 50_000), tmp_path)
    whole = analyse_steps(Scope(trace))["steps"].numbers("length_ns")
    start = (EPOCH_US + 2_000) * US
    part = analyse_steps(Scope(trace, range=(start, start + 4_000 * US)))["steps"].numbers("length_ns")
    assert part.tolist() == whole[1:3].tolist()


def without_work(events: list[Event], number: int) -> list[Event]:
    """Return the events of a program without what one of its steps launches."""
    (mark,) = [one for one in events if one["name"] == f"ProfilerStep#{number}"]
    low, high = mark["ts"], mark["ts"] + mark["dur"]
    gone = {
        one["args"]["correlation"]
        for one in events
        if one["cat"] == "cuda_runtime" and low <= one["ts"] < high
    }
    return [one for one in events if one.get("args", {}).get("correlation") not in gone]


@pytest.mark.parametrize("lacking", [None, 2, 5])
@pytest.mark.parametrize("turned", [False, True])
def test_comparisons_measure_steps_of_both_sides(lacking: int | None, turned: bool, tmp_path: Path) -> None:
    """A run whose host waits is held against one whose host runs ahead by what is known of both: no step is
    compared as if it took no time, and the last one is as long as the others.
    """
    sides = []
    for name, events in (("ahead", program(6, 2_000, 50_000)), ("waits", program(6, 2_000, 80_000, True))):
        (tmp_path / name).mkdir()
        own = without_work(events, lacking) if lacking is not None and name == "waits" else events
        sides.append(summarise(Scope(trace_of(own, tmp_path / name)), name))
    if turned:
        sides.reverse()
    result = difference(sides[:1], sides[1])
    steps = result.tables["steps"]
    now, longer = steps.numbers("length_ns"), steps.numbers("length_ns_delta")
    for lengths, side in ((now - longer, sides[0]), (now, sides[1])):
        usual = 50_000 * US if side.title == "ahead" else 80_000 * US
        assert lengths.tolist() == pytest.approx([usual] * 6, abs=10 * US)
    for stat in ("median", "total"):
        change = result.metrics[f"step.length.{stat}"]
        assert change.before is not None and change.metric.value is not None and not change.reason
    assert "runs ahead" in result.lengths_text
