"""What stands on another clock is told by order, and by what times count from, never by distance."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.core.findings_traces import call, kernel, launched, op
from tests.events import Event, write_events
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


def own_times(starts: Sequence[int], others: Sequence[int]) -> list[int]:
    return [start for at, start in enumerate(starts) if at not in others]
