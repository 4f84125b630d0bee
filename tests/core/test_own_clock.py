"""What stands on another clock is told by order, and by what times count from; by distance of counters and
asynchronous spans alone, which nothing launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.core.findings_traces import call, kernel, launched, op
from tests.events import Event, async_event, counter, event, write_events
from tracelane.core.trace import open_trace

HOUR = 3600 * 10**6
"""µs"""
HOST = [op(HOUR + 10 * at, 8) for at in range(50)]


def program(device_from: float, distance: float = 10) -> list[Event]:
    """Return five launches and their work, on a device whose first one begins at a time; µs."""
    pairs = [launched(HOUR + 50 + 10 * at, 2, device_from + distance * at, 5) for at in range(5)]
    return [*HOST, *(event for pair in pairs for event in pair)]


CASES = {
    "a device behind its launches": (program(HOUR + 60), 0),
    "a device that waits a day": (program(HOUR + 24 * HOUR), 0),
    "pauses of days": (program(HOUR + 60, 48 * HOUR), 0),
    "a device before its launches": (program(5), 5),
    "a device right before the host": (program(HOUR - 60), 5),
    "a clock that is ahead": (program(HOUR - 7), 0),
    "one kernel before its launch": ([*program(HOUR + 60), *launched(HOUR + 300, 2, 7, 5)], 1),
    "one without a launch": ([*program(HOUR + 60), kernel(7, 5, correlation=99_999)], 1),
    "work from before the recording": (
        [*program(HOUR + 60), *(kernel(HOUR - 100 + 10 * at, 9, correlation=9_000 + at) for at in range(12))],
        0,
    ),
    "all work without launches": ([*HOST, *(kernel(7 + at, 1) for at in range(9))], 0),
    "all work without launches, which the host has": (
        [
            *HOST,
            *(call(HOUR + 50 + 10 * at, 2, "cudaLaunchKernel", correlation=at + 1) for at in range(5)),
            *(kernel(7 + 9 * at, 5) for at in range(5)),
        ],
        5,
    ),
    "no host": ([kernel(7, 5), kernel(HOUR, 5), kernel(90 * HOUR, 5)], 0),
}


@pytest.mark.parametrize("case", CASES)
def test_order_tells_another_clock(case: str, tmp_path: Path) -> None:
    """Work that ends before its launch and before all else is on another clock, whatever lies between; work
    that comes later is not, nor is a device whose clock is a little ahead.
    """
    events, others = CASES[case]
    with closing(open_trace(write_events(tmp_path / "t.json", events), index_dir=tmp_path / "i")) as trace:
        assert trace.slices_elsewhere == others
        low, high = trace.opening_span
        left = own_times(trace.indexes[0].column("slices.start").tolist(), trace.on_other_clock(0).tolist())
        assert low == min(left) and high >= max(left)


AWAY = {
    "counters a day before": ([counter(HOUR + at, "MHz", value=1) for at in range(3)], 0, 3),
    "spans a day before": (
        [async_event(ph, HOUR + at, 7, "frame") for at, ph in enumerate("be")],
        1,
        0,
    ),
    "counters a day after": ([counter(300 * HOUR, "MHz", value=1)], 0, 1),
    "counters an hour before": ([counter(99 * HOUR, "MHz", value=1)], 0, 0),
    "counters before and meanwhile": (
        [counter(HOUR, "MHz", value=1), counter(100 * HOUR + 20, "MHz", value=1)],
        0,
        0,
    ),
}


@pytest.mark.parametrize("case", AWAY)
def test_counters_and_spans_far_away_do_not_stretch_the_axis(case: str, tmp_path: Path) -> None:
    """A lane of counters or asynchronous spans that lies a day away as a whole is left out of the opening
    window, and counted; one that has anything near is not.
    """
    events, slices, marks = AWAY[case]
    host = [op(100 * HOUR + 10 * at, 8) for at in range(50)]
    with closing(
        open_trace(write_events(tmp_path / "t.json", [*host, *events]), index_dir=tmp_path / "i")
    ) as trace:
        assert (trace.slices_elsewhere, trace.marks_elsewhere) == (slices, marks)
        low, high = trace.opening_span
        assert (high - low < 10**6) == (slices + marks > 0)


ZERO = {
    "an instant": ([event("i", 0)], 100 * HOUR, 0, 1),
    "an instant before a trace of 2 ms, an hour later": ([event("i", 0)], HOUR, 0, 1),
    "an instant a minute before": ([event("i", 0)], 60 * 10**6, 0, 0),
    "an instant, and one that is near, on its thread": ([event("i", 0), event("i", HOUR + 5)], HOUR, 0, 1),
    "a slice": ([op(0, 3)], 100 * HOUR, 1, 0),
    "a slice that is first": ([op(0, HOUR)], HOUR + 5, 0, 0),
    "a counter": ([counter(0, "MHz", value=1), counter(HOUR + 5, "MHz", value=1)], HOUR, 0, 1),
    "an instant two days after": ([event("i", 150 * HOUR)], 100 * HOUR, 0, 1),
}


@pytest.mark.parametrize("case", ZERO)
def test_a_time_of_0_is_none_where_all_else_is_late(case: str, tmp_path: Path) -> None:
    """What stands at 0, or an instant days away, does not stretch what is told, drawn and divided."""
    events, begin, slices, marks = ZERO[case]
    host = [op(begin + 10 * at, 8) for at in range(200)]
    with closing(
        open_trace(write_events(tmp_path / "t.json", [*host, *events]), index_dir=tmp_path / "i")
    ) as trace:
        assert (trace.slices_elsewhere, trace.marks_elsewhere) == (slices, marks)
        low, high = trace.opening_span
        assert (low == begin * 1000) == (slices + marks > 0)
        assert high - low < 10**9 or not slices + marks


def test_an_instant_far_from_spans_alone(tmp_path: Path) -> None:
    """Where threads have instants alone, asynchronous spans say when the program ran."""
    spans = [async_event(ph, 140 * HOUR + at, 7, "measure") for at, ph in ((0, "b"), (10**6, "e"))]
    events = [event("i", HOUR, "started"), event("i", 140 * HOUR + 5, "mark"), *spans]
    with closing(open_trace(write_events(tmp_path / "t.json", events), index_dir=tmp_path / "i")) as trace:
        low, high = trace.opening_span
        assert trace.marks_elsewhere == 1 and high - low == 10**9


def own_times(starts: Sequence[int], others: Sequence[int]) -> list[int]:
    return [start for at, start in enumerate(starts) if at not in others]
