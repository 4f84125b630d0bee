"""`b` and `o` between ops, launches and kernels: what they lead to and how it is known."""

from __future__ import annotations

from pathlib import Path

from tests.events import complete, flow, open_events
from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.actions.follow import Target, back_from, on_from

OP, GRAPH, K1, K2, BACKWARD = 0, 1, 2, 3, 4


def trace_of(tmp_path: Path) -> Trace:
    ids = {"correlation": 7}
    events = [
        complete(0, 100, "aten::mm", "cpu_op"),
        complete(10, 20, "graphLaunch", "cuda_runtime", args=ids),
        complete(50, 10, "k1", "kernel", pid=0, args=ids),
        complete(70, 10, "k2", "kernel", pid=0, args=ids),
        complete(200, 10, "MmBackward0", "cpu_op", tid=2),
        flow("s", 0, 1, "fwdbwd"),
        flow("f", 200, 1, "fwdbwd", bp="e", tid=2),
    ]
    return open_events(tmp_path, events)


def test_on_from_an_op_leads_to_all_its_kernels(tmp_path: Path) -> None:
    """Beside where its own flows lead, an op leads to what the launches within it started."""
    trace = trace_of(tmp_path)
    assert on_from(trace, SliceId(0, OP)) == [
        Target(SliceId(0, BACKWARD), "fwdbwd"),
        Target(SliceId(0, K1), "launch"),
        Target(SliceId(0, K2), "launch"),
    ]


def test_on_from_a_launch_and_back(tmp_path: Path) -> None:
    """A graph launch leads to each of its kernels, each of them back to it, and it is said by what."""
    trace = trace_of(tmp_path)
    assert on_from(trace, SliceId(0, GRAPH)) == [
        Target(SliceId(0, K1), "correlation"),
        Target(SliceId(0, K2), "correlation"),
    ]
    for kernel in (K1, K2):
        assert back_from(trace, SliceId(0, kernel)) == [Target(SliceId(0, GRAPH), "correlation")]
