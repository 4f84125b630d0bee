"""What is said of rules that could not be checked is true: no trace that holds a thing is told to lack it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.core.findings_traces import call, kernel, launched, note, op, step, trace_of
from tests.corpus import CASES, needs
from tests.events import Event, complete, event, metadata
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace

LABEL = metadata("process_labels", 0, labels="GPU 0")


def memory(ts: float, device_type: int, total: int) -> Event:
    args = {"Bytes": 8, "Addr": 1, "Device Type": device_type, "Device Id": 0, "Total Allocated": total}
    return event("i", ts, "[memory]", cat="cpu_instant_event", s="t", args=args)


def reasons(folder: Path, events: Sequence[Event]) -> dict[str, list[str]]:
    """Return for each reason the rules that were not checked for it."""
    result: dict[str, list[str]] = {}
    for rule, why in findings(Scope(trace_of(list(events), folder))).not_judged:
        result.setdefault(why, []).append(rule)
    return result


PLAIN = [complete(10 * at, 8, "work", "toplevel") for at in range(9)]
WORK = [LABEL, *launched(0, 5, 10, 50), *launched(60, 5, 70, 50), *launched(120, 5, 130, 50)]
STEPS = [step(at, 1000 * at, 900) for at in range(4)]
CASES_OF_REASONS: dict[str, tuple[list[Event], list[Event]]] = {
    # reason: a trace that lacks the thing, one that holds it
    "the trace holds no host slices": ([kernel(0, 5), kernel(10, 5)], PLAIN),
    "the host's slices are no operators, calls or annotations that the rules know": (PLAIN, [op(0, 5)]),
    "the trace holds no device work": ([op(0, 5)], [op(0, 5), *WORK]),
    "the trace holds no records of allocators (profile_memory=True)": (
        [op(0, 5), *WORK], [op(0, 5), memory(1, 0, 8), memory(2, 0, 16)],
    ),
    "the host's allocator is recorded, none of a device": (
        [op(0, 5), memory(1, 0, 8), memory(2, 0, 16)], [op(0, 5), memory(1, 1, 8), memory(2, 1, 16)],
    ),
    "the trace has no steps": ([op(0, 5)], [*STEPS, op(0, 5)]),
    "the trace has less than three steps of a kind": ([step(1, 0, 90), op(0, 5)], [*STEPS, op(0, 5)]),
    "the time that is looked at holds no annotations": ([op(0, 5)], [note(0, 50, "fit"), op(20, 5)]),
    "the trace does not say which call launched the device work": (
        [op(0, 5), LABEL, *(kernel(20 * at, 10) for at in range(5))], [op(0, 5), *WORK],
    ),
    "the trace has less than three pieces of device work": (
        [LABEL, op(0, 5), *launched(0, 5, 10, 50)], [op(0, 5), *WORK],
    ),
    "no operators or calls but waits run on the host in the time that is looked at": (
        [call(0, 50, "cudaDeviceSynchronize")],
        [call(0, 50, "cudaDeviceSynchronize"), call(60, 5, "cudaMalloc")],
    ),
    "no operators run on the host in the time that is looked at": ([LABEL, *WORK], [op(0, 5), *WORK]),
}  # fmt: skip


@pytest.mark.parametrize("reason", CASES_OF_REASONS)
def test_a_reason_denies_nothing_that_is_there(reason: str, tmp_path: Path) -> None:
    """A reason stands where the thing lacks, and never where the trace holds it."""
    lacking, holding = CASES_OF_REASONS[reason]
    assert reason in reasons(tmp_path / "lacking", lacking)
    assert reason not in reasons(tmp_path / "holding", holding)


def test_device_work_outside_the_time_looked_at(tmp_path: Path) -> None:
    """A range without device work is not said to be of a trace without any."""
    trace = trace_of([op(0, 5000), *WORK], tmp_path)
    why = dict(findings(Scope(trace, (3_000_000, 4_000_000))).not_judged)
    assert why["device-idle"] == "the device did nothing in the time that is looked at"


def test_what_helps_where_events_could_not_be_read(tmp_path: Path) -> None:
    """Missing work is no reason to record again where events of the file could not be read."""
    events = [LABEL, *(one for at in range(12) for one in launched(100 * at, 5, 100 * at + 10, 50))]
    lines = ",\n".join(
        str(one).replace("'", '"') if one.get("cat") != "kernel" else '{"ph" "X"}' for one in events
    )
    file = tmp_path / "t.json"
    file.write_text('{"traceEvents": [\n' + lines + "\n]}", encoding="utf-8")
    report = findings(Scope(open_trace(file, index_dir=tmp_path / "index")))
    (finding,) = [one for one in report.findings if one.rule == "lost-kernels"]
    assert finding.helps.startswith("12 events of the file could not be read")
    assert "buffers" not in finding.helps


@pytest.mark.parametrize(("called", "is_said"), [("triton_poi_fused_add_0", True), ("aten::mm", False)])
def test_triton_kernels_are_launched_by_what_the_trace_shows(
    called: str, is_said: bool, tmp_path: Path
) -> None:
    """Slices of the same names on the host are told of only where there are some."""
    events = [LABEL, op(0, 30, called), *launched(5, 5, 20, 50, "triton_poi_fused_add_0")]
    report = findings(Scope(trace_of(events, tmp_path)))
    (finding,) = [one for one in report.findings if one.rule == "triton"]
    assert ("slices of the same names" in finding.text) == is_said
    assert "same name" not in finding.helps


@needs(CASES)
def test_memory_of_the_host_alone(tmp_path: Path) -> None:
    """Where the host's allocator is recorded, nobody is told to record allocators."""
    trace = open_trace(CASES / "strangers" / "cpu_memory_recorded.json", index_dir=tmp_path)
    why = dict(findings(Scope(trace)).not_judged)
    assert why["memory-limit"] == "the host's allocator is recorded, none of a device"
