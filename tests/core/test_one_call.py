"""A recording of one call is told by what the time of that call went into."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.core.findings_traces import call, kernel, launched, op, step, trace_of
from tests.events import Event
from tracelane.core.tables.findings.finding import Finding
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope

CALL = op(0, 1000, "aten::convolution")
ONE_CALL = {
    "a kernel": (
        [CALL, *launched(10, 5, 20, 640, "depthwise_conv2d")],
        "aten::convolution is the only call, 1 ms: 64.0 % in depthwise_conv2d on the device, 35.",
    ),
    "a kernel that runs on": (
        [op(0, 100, "aten::mm"), *launched(10, 5, 50, 150, "gemm")],
        "aten::mm is the only call, 200 µs: 75.0 % in gemm on the device",
    ),
    "a copy": (
        [op(0, 1000, "aten::to"), *launched(10, 5, 20, 900, "Memcpy HtoD", "gpu_memcpy")],
        "90.0 % copies on the device",
    ),
    "an allocation": (
        [CALL, call(100, 700, "cudaMalloc"), *launched(900, 5, 910, 20)],
        "70.0 % allocation",
    ),
    "a call of the runtime": (
        [CALL, call(100, 700, "cudaFuncGetAttributes"), *launched(900, 5, 910, 20)],
        "70.0 % in cudaFuncGetAttributes",
    ),
    "an operator within": (
        [CALL, op(100, 800, "aten::_slow_conv2d_forward"), op(920, 5, "aten::empty")],
        "80.0 % in aten::_slow_conv2d_forward",
    ),
    "the profiler": (
        [CALL, call(100, 700, "Activity Buffer Request", "overhead"), *launched(900, 5, 910, 20)],
        "70.0 % the profiler",
    ),
}
SEVERAL = {
    "two of a name": [op(0, 500, "aten::mm"), op(500, 500, "aten::mm"), kernel(0, 100)],
    "steps": [step(1, 0, 500), step(2, 500, 500), op(0, 900, "aten::mm"), kernel(0, 100)],
    "a call that is little of the time": [op(0, 100, "aten::mm"), kernel(0, 1000)],
    "one that runs again within itself": [op(0, 1000, "f"), op(10, 100, "f"), kernel(0, 100)],
}


def said_of(events: Sequence[Event], folder: Path) -> dict[str, Finding]:
    """Return the findings of a trace by their rules."""
    return {one.rule: one for one in findings(Scope(trace_of(events, folder))).findings}


@pytest.mark.parametrize("case", ONE_CALL)
def test_the_parts_of_one_call(case: str, tmp_path: Path) -> None:
    """What most of the call went into is named with its share, and no operator is said to dominate."""
    events, text = ONE_CALL[case]
    said = said_of(events, tmp_path)
    assert text in said["one-call"].text
    assert "host-hotspot" not in said


@pytest.mark.parametrize("case", SEVERAL)
def test_what_is_not_one_call(case: str, tmp_path: Path) -> None:
    """Calls that come again, steps, and calls that are little of the time are told by their shares."""
    assert "one-call" not in said_of(SEVERAL[case], tmp_path)
