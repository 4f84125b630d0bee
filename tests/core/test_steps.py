"""Steps: found by what a trace holds, with TensorBoard's split of their time and percentiles by group."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, GOLDENS, needs_corpus, needs_goldens
from tests.events import complete, counter, index_of
from tracelane.core.base.intervals import Intervals, merge
from tracelane.core.index.store import Index
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.step_choice import find_steps
from tracelane.core.tables.steps import percentile, steps
from tracelane.core.trace import Trace, open_trace

TENSORBOARD = {
    "hta_a100_resnet_ddp_nccl.tb_0.4.3_PATCHED_runtime": "hta_a100_resnet_ddp_nccl.json",
    "tl_h100_qwen_infer.tb_0.4.3": "tl_h100_qwen_infer.json",
    "tl_mi300_resnet_train_rank0of8.tb_0.4.3": "tl_mi300_resnet_train_rank0of8.json",
    "dlrm_rank0.tb_0.4.3_PATCHED_runtime": "worker0_step_12.1694128201545.pt.trace.json",
}
"""Runs whose steps the tool left as the host marked them. The released one knows no cuda_runtime."""
DEVICE_KINDS = ("Kernel", "Memcpy", "Memset")
REST = ("Runtime", "DataLoader", "CpuOp", "Other")
ALL_TO_ALL = {"dlrm_rank0.tb_0.4.3_PATCHED_runtime": 139.0}
"""µs of collectives that TensorBoard does not know by name: nccl:all_to_all counts as communication here."""


@needs_corpus
@needs_goldens
@pytest.mark.parametrize("name", TENSORBOARD)
def test_split_is_that_of_tensorboard(name: str, corpus_cache: Path) -> None:
    """Every category of every step equals its numbers to 0.1 µs; device twins are no further steps."""
    trace = open_trace(next(CORPUS.rglob(f"{TENSORBOARD[name]}*")), index_dir=corpus_cache)
    rows = list(steps(Scope(trace)).steps.rows())
    golden = json.loads((GOLDENS / "tb" / f"{name}.json").read_bytes())["steps"]
    assert [row["step"] for row in rows] == list(dict.fromkeys(step["name"] for step in golden))
    more = ALL_TO_ALL.get(name, 0.0)
    for row in rows:
        walls = {abs(step["Total"] - us(row["wall_ns"])): step for step in golden}
        want = walls[min(walls)]

        def split(*kinds: str, row: dict[str, Any] = row) -> float:
            return sum(us(row[f"split_{kind.lower()}_ns"]) for kind in kinds)

        for kind in DEVICE_KINDS:
            assert split(kind) == pytest.approx(want[kind], abs=0.1), kind
        assert split("Communication") == pytest.approx(want["Communication"] + more, abs=0.1)
        assert split(*REST) == pytest.approx(sum(want[kind] for kind in REST) - more, abs=0.2)
        if "PATCHED" in name and not more:
            assert [split(kind) for kind in REST] == pytest.approx([want[kind] for kind in REST], abs=0.1)


def us(ns: Any) -> float:
    """Ns as µs."""
    return int(ns) / 1000


@needs_corpus
def test_the_difference_to_tensorboard_is_all_to_all(corpus_cache: Path) -> None:
    """What ours has more of is what nccl:all_to_all takes beside device work and the other collectives."""
    trace = open_trace(next(CORPUS.rglob("worker0_step_12*.json*")), index_dir=corpus_cache)
    index, step = trace.indexes[0], trace.steps[0]

    def covered(hit: Any) -> Intervals:
        which = np.flatnonzero(hit)
        start = index.column("slices.start")[which].astype(np.int64)
        return merge(start, start + index.duration(which)).clipped(step.start, step.end)

    def named(prefix: str) -> Any:
        return np.isin(index.column("slices.name"), index.string_numbers(prefix, prefix=True))

    device = [index.categories.index(category) for category in ("kernel", "gpu_memcpy")]
    others = covered(np.isin(index.column("slices.category"), device) | named("nccl:all_reduce"))
    assert us(covered(named("nccl:all_to_all")).without(others).length) == 139.0


def _choice(tmp_path: Path, *events: dict[str, Any], name: str | None = None) -> tuple[str, str, list[str]]:
    spans = find_steps(Trace([index_of(list(events), tmp_path / "index")]), 0, name=name)
    return ("", "", []) if spans is None else (spans.choice, spans.reason, list(spans.labels))


def test_profiler_steps_come_first_and_once(tmp_path: Path) -> None:
    """ProfilerStep#N wins over every other name, and its twin on the device is the same step."""
    note = "user_annotation"
    events = [complete(100 * i, 90, f"ProfilerStep#{i}", note) for i in range(3)]
    events += [complete(100 * i, 90, f"ProfilerStep#{i}", "gpu_user_annotation", tid=9) for i in range(3)]
    events += [complete(100 * i + 5, 10, f"iteration_{i}", note) for i in range(3)]
    assert _choice(tmp_path, *events)[::2] == ("ProfilerStep#N", ["0", "1", "2"])


@pytest.mark.parametrize(
    ("name", "label", "group"),
    [
        ("iteration_{}", "{}", ""),
        ("granite.iteration.{}.prefill.0", "{}.prefill.0", "prefill"),
        ("execute_3{}_context_0(sq0sk0)_generation_32(sq1)", None, "decode bs=32"),
        ("execute_context_2(8)_generation_0({})", None, "prefill bs=2"),
        ("step[DECODE bs=3{}]", "DECODE bs=3{}", "decode bs=3{}"),
    ],
)
def test_names_of_engines(name: str, label: str | None, group: str, tmp_path: Path) -> None:
    """Names that engines mark steps with are known, with their phase and batch size. Without a label of its
    own a step has its whole name.
    """
    events = [complete(100 * i, 90, name.format(i), "user_annotation") for i in range(2)]
    spans = find_steps(Trace([index_of(events, tmp_path / "index")]), 0)
    assert spans is not None and len(spans) == 2
    assert spans.groups == tuple(group.format(i) for i in range(2))
    assert spans.labels == tuple((label or name).format(i) for i in range(2))


def test_else_the_outermost_that_repeats(tmp_path: Path) -> None:
    """Of annotations, compiled regions and graph launches that repeat, the outermost; one alone is none."""
    events = [complete(0, 1000, "whole run", "user_annotation")]
    for i in range(3):
        events.append(complete(100 * i, 90, f"Torch-Compiled Region: 0/{i // 2}"))
        events.append(complete(100 * i + 91, 8, "Torch-Compiled Region: 1/0"))
        events.append(complete(100 * i + 5, 50, f"launch_kernel:k{i}", "user_annotation"))
        events.append(complete(100 * i + 60, 20, "aten::mm"))
    choice, reason, labels = _choice(tmp_path, *events)
    assert (choice, labels) == ("Torch-Compiled Region: 0/N", ["0", "1", "2"])
    assert "repeats" in reason
    assert _choice(tmp_path / "chosen", *events, name="launch_kernel:k7")[2] == ["0", "1", "2"]
    assert _choice(tmp_path / "none", complete(0, 9, "once", "user_annotation")) == ("", "", [])


def test_a_trace_without_steps_says_so(tmp_path: Path) -> None:
    """Nothing to find is an empty table with a sentence, not an error."""
    result = steps(Scope(Trace([index_of([complete(0, 9, "op")], tmp_path / "index")])))
    assert len(result.steps) == 0 and len(result.groups) == 0
    assert "no steps" in result.steps.notes[0]


def test_columns_against_brute_force(tmp_path: Path) -> None:
    """By window, busy, idle, communication and copies of a step are what counting ns one by one gives."""
    pick = random.Random(5)
    events = [complete(1000 * i, 900, f"ProfilerStep#{i}", "user_annotation") for i in range(3)]
    kinds = {"gemm": "kernel", "ncclDevKernel_AllReduce": "kernel", "Memcpy DtoD": "gpu_memcpy"}
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in kinds}
    for i in range(60):
        name, at, ns = pick.choice(list(kinds)), pick.randrange(3000), pick.choice([1, 20, 90])
        events.append(complete(at, ns, name, kinds[name], tid=7 + i))
        spans[name].append((at, at + ns))
    rows = list(steps(Scope(Trace([index_of(events, tmp_path / "index")]), attribute="window")).steps.rows())

    def covered(names: list[str], low: int, high: int) -> int:
        return 1000 * sum(any(a <= t < b for n in names for a, b in spans[n]) for t in range(low, high))

    assert len(rows) == 3
    for i, row in enumerate(rows):
        low, high = 1000 * i, 1000 * i + 900
        assert row["device_busy_ns"] == covered(list(kinds), low, high)
        assert row["idle_ns"] == 900_000 - covered(list(kinds), low, high)
        assert row["comm_ns"] == covered(["ncclDevKernel_AllReduce"], low, high)
        assert row["copy_ns"] == covered(["Memcpy DtoD"], low, high)
        split = sum(int(row[key] or 0) for key in row if key.startswith("split_"))
        assert split == row["wall_ns"] == 900_000


def test_lanes_and_filter_leave_the_rest_out(tmp_path: Path) -> None:
    """What a step holds of host and device follows the scope's lanes and filter; its wall time does not."""
    events = [complete(100 * i, 90, f"ProfilerStep#{i}", "user_annotation") for i in range(2)]
    events += [complete(10, 40, "aten::mm", "cpu_op"), complete(60, 20, "aten::add", "cpu_op")]
    events += [complete(110, 30, "gemm", "kernel", tid=7), complete(150, 10, "copy", "kernel", tid=8)]
    trace = Trace([index_of(events, tmp_path / "index")])
    index = trace.indexes[0]
    named = index.string_numbers("gemm") + index.string_numbers("aten::add")

    def column_us(scope: Scope, key: str) -> list[int]:
        return [int(value) // 1000 for value in steps(scope).steps.data[key]]

    def where(index: Index, positions: Any) -> Any:
        return np.isin(index.column("slices.name")[positions], np.array(named, np.uint32))

    lanes = [lane.index for lane in trace.lanes if str(lane.tid) == "8"]
    assert column_us(Scope(trace), "cpu_busy_ns") == [60, 0]
    assert column_us(Scope(trace), "device_busy_ns") == [0, 40]
    assert column_us(Scope(trace, where=where), "split_cpuop_ns") == [20, 0]
    assert column_us(Scope(trace, where=where), "device_busy_ns") == [0, 30]
    assert column_us(Scope(trace, lanes=lanes), "split_kernel_ns") == [0, 10]
    assert column_us(Scope(trace, lanes=lanes), "cpu_busy_ns") == [0, 0]
    assert column_us(Scope(trace, lanes=lanes), "wall_ns") == [90, 90]


def test_launch_to_work_and_groups(tmp_path: Path) -> None:
    """The first launch's wait for its kernel is told per step; percentiles are values that occurred."""
    events = []
    for i in range(4):
        at, phase = 1000 * i, "PREFILL" if i == 0 else "DECODE"
        events.append(complete(at, 900 if i == 0 else 100 + i, f"step[{phase} bs=8]", "user_annotation"))
        ids = {"correlation": 10 + i}
        events.append(complete(at + 10, 5, "cudaLaunchKernel", "cuda_runtime", args=ids))
        events.append(complete(at + 40 + i, 5, "k", "kernel", tid=9, args=ids))
    result = steps(Scope(Trace([index_of(events, tmp_path / "index")])))
    assert np.asarray(result.steps.data["launch_offset_ns"]).tolist() == [30e3, 31e3, 32e3, 33e3]
    groups = {row["group"]: row for row in result.groups.rows()}
    assert (groups["prefill bs=8"]["count"], groups["prefill bs=8"]["p99_ns"]) == (1, 900_000)
    assert (groups["decode bs=8"]["p50_ns"], groups["decode bs=8"]["max_ns"]) == (102_000, 103_000)
    assert (result.steps.totals["first_ns"], result.steps.totals["steady_ns"]) == (900_000, 102_000)
    assert percentile(np.arange(1, 101), 95) == 95


def test_a_source_without_slices_has_no_steps(tmp_path: Path) -> None:
    """A log beside the trace brings no column that tells sources apart; a second trace does."""
    host = [complete(at, 8, f"ProfilerStep#{at}", "user_annotation") for at in (0, 10)]
    trace, log, other = (
        index_of(events, tmp_path / name)
        for name, events in (("trace", host), ("log", [counter(5, "watts", W=3)]), ("other", host))
    )
    alone, with_log, two = (
        steps(Scope(Trace(indexes))).steps for indexes in ([trace], [trace, log], [trace, other])
    )
    assert [column.key for column in with_log.columns] == [column.key for column in alone.columns]
    assert with_log.keys == ("step",) and len(with_log) == 2
    assert two.columns[0].key == "source" and len(two) == 4
