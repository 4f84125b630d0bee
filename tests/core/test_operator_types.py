"""Nodes of a model are told by the type of their operator and by what runs them, as ONNX Runtime says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.events import Event, complete, open_events
from tracelane.core.index.producers import producer_of
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.op_sums import parse_grouping
from tracelane.core.tables.host.ops import ops
from tracelane.core.trace import Trace


def node(ts: float, dur: float, name: str, op_type: str, provider: str = "CPUExecutionProvider") -> Event:
    """Return a node's run."""
    args: dict[str, Any] = {"op_name": op_type, "provider": provider}
    return complete(ts, dur, f"{name}_kernel_time", "Node", pid=7, tid=7, args=args)


def session(folder: Path) -> Trace:
    """Return a session that starts for 300 µs and runs a model of five nodes four times, for 220 µs each."""
    events = [complete(0, 300, "session_initialization", "Session", pid=7, tid=7)]
    for run in range(4):
        at = 400 + 250 * run
        events.append(complete(at, 230, "model_run", "Session", pid=7, tid=7))
        for number in range(3):
            events.append(node(at + 60 * number, 60, f"/layer{number}/MatMul", "MatMul"))
        events.append(node(at + 180, 30, "/head/Softmax", "Softmax"))
        events.append(node(at + 210, 10, "/head/ArgMax", "ArgMax", "XnnpackExecutionProvider"))
    return open_events(folder, events)


def test_operators_are_rows_by_type(tmp_path: Path) -> None:
    """Nodes of a type are a row of `ops`, however they are called."""
    table = ops(Scope(session(tmp_path)))
    rows = {row["name"]: (row["calls"], row["self_cpu_ns"]) for row in table.rows()}
    assert rows == {"MatMul": (12, 720_000), "Softmax": (4, 120_000), "ArgMax": (4, 40_000)}


def test_operators_by_provider(tmp_path: Path) -> None:
    """What runs them tells them apart where that is asked for."""
    table = ops(Scope(session(tmp_path)), parse_grouping("provider"))
    assert {(row["name"], row["provider"]) for row in table.rows()} == {
        ("MatMul", "CPUExecutionProvider"),
        ("Softmax", "CPUExecutionProvider"),
        ("ArgMax", "XnnpackExecutionProvider"),
    }


def test_the_first_sentence_is_about_the_type(tmp_path: Path) -> None:
    """Over its nodes a type takes more than the start of the session does: it is named."""
    leading = findings(Scope(session(tmp_path))).leading
    assert leading is not None and leading.text.startswith("MatMul takes ")


def test_kernels_by_the_type_of_their_operator(tmp_path: Path) -> None:
    """Kernels that a device runs for nodes are a row for each type in `kernels --by op`."""
    events: list[Event] = [complete(0, 500, "model_run", "Session", pid=7, tid=7)]
    for number in range(4):
        at = 100 * number
        events.append(node(at, 90, f"/layer{number}/Conv", "Conv", "CUDAExecutionProvider"))
        args = {"op_name": "Conv", "stream": 7, "device": 0}
        events.append(
            complete(at + 20, 50, f"implicit_convolve_sgemm_{number}", "Kernel", pid=8, tid=7, args=args)
        )
    trace = open_events(tmp_path, events)
    known = producer_of(trace.indexes[0])
    assert known is not None and known.name == "ONNX Runtime"
    rows = {row["name"]: row["count"] for row in kernels(Scope(trace), "op").rows()}
    assert rows == {"Conv": 4}
