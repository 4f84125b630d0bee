"""What tables say of the kernels that graphs replay, where a capture beside the trace says who owns them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.events import Event, complete, write_events
from tests.graph_pairs import HOST, MODEL, Kernel, capture_events, replay_events, swapped, write_pair
from tracelane.core.tables.compile.compile import analyse_source
from tracelane.core.tables.device.efficiency import efficiency
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.doctor.doctor import analyse_doctor
from tracelane.core.tables.frame.frame_columns import UNJOINED, work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.op_sums import Grouping
from tracelane.core.tables.host.ops import ops
from tracelane.core.tables.host.slice_table import slices_of_node
from tracelane.core.tables.host.tree import tree_table
from tracelane.core.trace import Trace, open_trace

REPLAYS = 3
MODEL_STEP = "execute_32_context_0(sq0)_generation_32(sq32)"
KERNEL_NS = 8_000
EAGER: list[Event] = [
    complete(9000, 40, "aten::mm", "cpu_op", **HOST, args={"External id": 7}),
    complete(9010, 5, "hipLaunchKernel", "cuda_runtime", **HOST, args={"correlation": 70}),
    complete(
        9060, 8, "gemm", "kernel", pid=9, tid=7, args={"correlation": 70, "stream": 7, "External id": 7}
    ),
]
"""The same kernel, launched by an op of the trace itself."""


def pair(folder: Path, captured: list[Kernel] | None = None) -> Trace:
    """Return a trace that replays a graph several times, and launches a kernel without one."""
    steps = [replay_events(MODEL, number=number) for number in range(1, REPLAYS + 1)]
    captures = {"bs_32_rank0.json": capture_events(MODEL if captured is None else captured)}
    return open_trace(write_pair(folder, [*steps, EAGER], captures), index_dir=folder / "index")


def sums(table: Table, key: str, value: str) -> dict[str, Any]:
    return {str(row[key]): row[value] for row in table.rows()}


def owned(key: str) -> dict[str, int]:
    """Return the ns that the kernels of the graph take by op or module, all replays together."""
    result: dict[str, int] = {}
    for kernel in MODEL:
        name = getattr(kernel, key)
        result[name] = result.get(name, 0) + KERNEL_NS * REPLAYS
    return result


@pytest.mark.parametrize("by", ["op", "module"])
def test_kernels_by_owner(tmp_path: Path, by: str) -> None:
    """By op and module replayed kernels stand where they were captured, with the time that a capture says."""
    table = kernels(Scope(pair(tmp_path)), by)
    expected = owned(by)
    by_capture = dict(expected)
    outside = "aten::mm" if by == "op" else "launched outside any module"
    expected[outside] = expected.get(outside, 0) + KERNEL_NS
    assert sums(table, "name", "total_ns") == expected
    assert sums(table, "name", "by_capture_ns") == {outside: 0, **by_capture}
    assert table.notes == ("36 replayed kernels and copies have their owners by capture (capture_32_FULL)",)


def test_ops_have_the_time_of_what_replays_them(tmp_path: Path) -> None:
    """Ops of a capture have rows of their own: replays as calls, device time, and none of the host's."""
    table = ops(Scope(pair(tmp_path)))
    rows = {row["name"]: row for row in table.rows() if row["by_capture"]}
    assert {name: rows[name]["self_device_ns"] for name in owned("op")} == owned("op")
    assert {name: rows[name]["device_self_ns"] for name in owned("op")} == owned("op")
    assert rows["aten::mm"]["calls"] == 3 * REPLAYS
    assert rows["aten::mm"]["cpu_total_ns"] == rows["aten::mm"]["self_cpu_ns"] == 0
    assert rows["capture_32_FULL"]["device_total_ns"] == len(MODEL) * KERNEL_NS * REPLAYS
    assert rows["capture_32_FULL"]["calls"] == REPLAYS
    eager = [row for row in table.rows() if row["name"] == "aten::mm" and not row["by_capture"]]
    assert [(row["calls"], row["self_device_ns"]) for row in eager] == [(1, KERNEL_NS)]
    assert table.totals["outside_any_op_ns"] == table.totals["launch_not_in_file_ns"] == 0
    assert table.totals["linked_device_total_ns"] == table.totals["self_device_total_ns"]


def test_ops_are_grouped_by_what_was_captured(tmp_path: Path) -> None:
    """Shapes and modules of replayed ops are those of their captured calls."""
    scope = Scope(pair(tmp_path))
    by_module = ops(scope, Grouping("module"))
    rows = {
        row["module"]: row["self_device_ns"]
        for row in by_module.rows()
        if row["by_capture"] and row["name"] == "aten::mm"
    }
    assert rows == {f"Layer_{layer}": KERNEL_NS * REPLAYS for layer in range(3)}
    shapes = {
        row["input_shapes"] for row in ops(scope, Grouping("shape")).rows() if row["name"] == "aten::mm"
    }
    assert shapes == {"[[32, 64], [64, 64]]", "[]"}


def test_the_tree_by_launch_goes_on_below_the_replay(tmp_path: Path) -> None:
    """Below a graph's launch stands the captured stack, from the annotation of the capture to the kernel."""
    table = tree_table(Scope(pair(tmp_path)), "launch")
    parents = dict(zip(table.numbers("node").tolist(), table.numbers("parent").tolist()))
    rows = {row["node"]: row for row in table.rows()}

    def path(node: int) -> list[str]:
        return [] if node < 0 else [*path(parents[node]), rows[node]["name"]]

    paths = {tuple(path(node)): rows[node] for node in rows}
    stack = ("hipGraphLaunch", "capture_32_FULL", "model.py(12): forward", "nn.Module: Layer_1")
    leaf = (MODEL_STEP, *stack, "vllm::unified_attention", "hipLaunchKernel", "attention")
    assert paths[leaf]["self_ns"] == KERNEL_NS * REPLAYS
    assert paths[leaf[:3]]["total_ns"] == len(MODEL) * KERNEL_NS * REPLAYS
    assert paths[leaf[:3]]["calls"] == REPLAYS
    assert paths[leaf[:-1]]["calls"] == REPLAYS
    assert table.totals["self_ns"] == (len(MODEL) * REPLAYS + 1) * KERNEL_NS


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ((), len(MODEL) * REPLAYS),
        (("model.py(12): forward", "nn.Module: Layer_1"), 3 * REPLAYS),
        (
            (
                *("model.py(12): forward", "nn.Module: Layer_1", "vllm::unified_attention"),
                *("hipLaunchKernel", "attention"),
            ),
            REPLAYS,
        ),
    ],
    ids=["capture", "module", "kernel"],
)
def test_a_node_of_a_capture_leads_to_the_work_in_it(
    tmp_path: Path, path: tuple[str, ...], count: int
) -> None:
    """The slices of a captured node are the device work that it owns; it has none of its own in the trace."""
    hits = slices_of_node(
        Scope(pair(tmp_path)), (MODEL_STEP, "hipGraphLaunch", "capture_32_FULL", *path), "launch"
    )
    assert hits.count == count


def test_efficiency_counts_each_replay_as_a_call(tmp_path: Path) -> None:
    """An op with a model is called once more by each replay, with the shapes that were captured."""
    table = efficiency(Scope(pair(tmp_path)))
    (row,) = [row for row in table.rows() if row["name"] == "aten::mm" and row["shapes"]]
    assert (row["count"], row["kernel_ns"]) == (3 * REPLAYS, 3 * REPLAYS * KERNEL_NS)
    assert row["flops"] == 2 * 32 * 64 * 64
    at = [one["name"] for one in table.rows()].index("aten::mm")
    assert table.jump(at) is not None


def test_source_says_the_line_that_was_captured(tmp_path: Path) -> None:
    """A replayed kernel has op, line and function of its captured launch, said by the capture."""
    table = analyse_source(Scope(pair(tmp_path)))["source"]
    rows = {row["name"]: row for row in table.rows()}
    assert rows["attention"]["line"] == "model.py:12"
    assert rows["attention"]["function"] == "forward"
    assert rows["attention"]["ops"] == "vllm::unified_attention"
    assert rows["attention"]["artefact"] == "capture"
    assert rows["attention"]["graphs"] == "capture_32_FULL"
    assert rows["gemm"]["total_ns"] == 3 * REPLAYS * KERNEL_NS  # that of the trace's own op is not said
    assert table.totals["known_ns"] == len(MODEL) * REPLAYS * KERNEL_NS


def test_what_is_not_joined_is_said_and_counted(tmp_path: Path) -> None:
    """A capture with swapped kernels owns nothing: the rows, their notes and the doctor say why."""
    trace = pair(tmp_path, swapped(MODEL, 1, 2))
    reason = (
        "3 replays of a graph (36 kernels) not joined to a capture: "
        "kernel 2 is gemm, and attention in capture_32_FULL"
    )
    table = kernels(Scope(trace), "op")
    assert sums(table, "name", "total_ns") == {
        UNJOINED: len(MODEL) * REPLAYS * KERNEL_NS,
        "aten::mm": KERNEL_NS,
    }
    assert table.notes == (reason,)
    assert reason in ops(Scope(trace)).notes
    rows = {row["rule"]: row for row in analyse_doctor(Scope(trace))["doctor"].rows()}
    assert rows["graphs-without-owners"]["text"] == reason
    assert rows["graphs-without-owners"]["count"] == REPLAYS


def test_nothing_changes_without_captures(tmp_path: Path) -> None:
    """A trace without captures is as it was: replayed kernels were launched outside any op."""
    events = [event for number in (1, 2) for event in replay_events(MODEL, number=number)]
    trace = open_trace(write_events(tmp_path / "t.json", events), index_dir=tmp_path / "index")
    table = kernels(Scope(trace), "op")
    assert sums(table, "name", "count") == {"launched outside any op": 2 * len(MODEL)}
    assert not table.notes
    assert "by_capture_ns" not in table.data
    assert "by_capture" not in ops(Scope(trace)).data


def test_owners_of_a_range_are_those_of_its_launches(tmp_path: Path) -> None:
    """A part of a trace counts the replays in it, and no others."""
    trace = pair(tmp_path)
    work = work_of(Scope(trace))
    first = int(work.start[work.is_by_capture].min())
    part = Scope(trace, (trace.span[0], first + 500_000))
    table = kernels(part, "op")
    assert sums(table, "name", "total_ns") == {name: ns // REPLAYS for name, ns in owned("op").items()}
    rows = {row["name"]: row["self_device_ns"] for row in ops(part).rows() if row["by_capture"]}
    assert {name: rows[name] for name in owned("op")} == sums(table, "name", "total_ns")
