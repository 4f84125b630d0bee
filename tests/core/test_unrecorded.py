"""Fills of memory that lack work alike in every step were never recorded; what else lacks it is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.core.test_untrusted import HOST, call, kernel, opened
from tests.events import Event, complete, metadata
from tracelane.core.tables.device.untrusted_periods import untrusted
from tracelane.core.tables.doctor.doctor import analyse_doctor
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope

FILLS = 12
"""In each step, one after each of as many kernels."""
STEP_US = 2000.0
SAME = "+--+--+--+--"


def program(patterns: Sequence[str], lost_kernels: Sequence[int] = ()) -> list[Event]:
    """Return steps of launches and fills, each pattern of one step: the work of a fill is there where it has
    a plus. The kernels of some launches are lost, numbered through all steps.
    """
    events: list[Event] = [metadata("process_labels", 0, labels="GPU 0")]
    number = 0
    for step, pattern in enumerate(patterns):
        begin = 100 + STEP_US * step
        events.append(complete(begin, STEP_US, f"ProfilerStep#{step}", "user_annotation", pid=HOST, tid=HOST))
        for at, has_work in enumerate(pattern):
            for name, is_there in (
                ("cudaLaunchKernel", step * FILLS + at not in lost_kernels),
                ("cudaMemsetAsync", has_work == "+"),
            ):
                number += 1
                start = begin + 10 + 20.0 * number % (STEP_US - 100)
                events.append(call(number, start, name))
                if is_there:
                    events.append(kernel(number, start + 5, 4, name="gemm" if "Launch" in name else "Memset"))
    return events


@pytest.mark.parametrize(
    ("patterns", "lost_kernels", "are_recorded"),
    [
        ([SAME] * 3, [], False),
        (["-" * FILLS] * 4, [], False),
        ([SAME] * 2, [], True),  # two steps may be alike by chance
        ([SAME, SAME, SAME[::-1]], [], True),
        ([SAME, SAME, SAME[:-1]], [], True),
        ([SAME] * 3, [4], True),  # a kernel is lost, too
    ],
    ids=["alike", "all", "two", "differ", "fewer", "kernel"],
)
def test_fills_without_work(
    patterns: Sequence[str], lost_kernels: Sequence[int], are_recorded: bool, tmp_path: Path
) -> None:
    """What is lost is a warning of the doctor and the first finding; what is never recorded is a note, and
    all of the device's time can be trusted.
    """
    trace = opened(tmp_path, program(patterns, lost_kernels))
    rows = analyse_doctor(Scope(trace))["doctor"].rows()
    (row,) = [one for one in rows if one["rule"] == "lost-kernels"]
    assert (row["severity"] != "note") is are_recorded
    assert ("does not record them" in row["text"]) is not are_recorded
    assert bool(untrusted(Scope(trace))) is are_recorded
    assert ("lost-kernels" in {one.rule for one in findings(Scope(trace)).losses}) is are_recorded
