"""Steps: which slices they are, TensorBoard's split of their time, percentiles, processes, tables by step."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, GOLDENS, file, needs
from tests.events import Event, complete, counter, index_of, metadata, open_events
from tracelane.core.base.arrays import I64, Intervals, merge
from tracelane.core.base.errors import UsageError
from tracelane.core.index.store import Index
from tracelane.core.query.launches import launches_of
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.frame.metrics import percentile
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.op_sums import work_positions
from tracelane.core.tables.host.ops import ops
from tracelane.core.tables.selection import step_place, steps_there
from tracelane.core.tables.steps.attribution import by_step
from tracelane.core.tables.steps.step_sets import ROLES
from tracelane.core.tables.steps.steps import step_columns, step_groups, step_metrics, steps
from tracelane.core.trace import Trace, open_trace, trace_of
from tracelane.core.trace.step_choice import Steps, find_steps
from tracelane.core.trace.step_spans import step_spans

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


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("name", TENSORBOARD)
def test_split_is_that_of_tensorboard(name: str, corpus_cache: Path) -> None:
    """Every category of every step equals its numbers to 0.1 µs; device twins are no further steps."""
    trace = open_trace(next(CORPUS.rglob(f"{TENSORBOARD[name]}*")), index_dir=corpus_cache)
    rows = list(steps(Scope(trace)).rows())
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


@needs(CORPUS)
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


@pytest.mark.parametrize("step", ["ProfilerStep#{}", "token_step_{}"])
def test_phases_around_steps_are_their_groups(step: str, tmp_path: Path) -> None:
    """Steps are grouped by the annotation around them that says the phase, of their own process only; an
    operator that is called so says nothing.
    """
    note = "user_annotation"
    events = [complete(100 * at, 90, step.format(at), note) for at in range(6)]
    events += [complete(-5, 196, "prefill", note), complete(195, 396, "Decode tokens", note)]
    events += [complete(-5, 800, "prefill", note, pid=77), complete(-3, 700, "aten::decode", "cpu_op")]
    spans = find_steps(Trace([index_of(events, tmp_path / "index")]), 0, name=step.format(0))
    assert spans is not None and len(spans) == 6
    assert spans.groups == ("prefill", "prefill", "decode", "decode", "decode", "decode")


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
    assert len(result) == 0 and len(step_groups(result)) == 0
    assert "no steps" in result.notes[0]


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
    rows = list(steps(Scope(Trace([index_of(events, tmp_path / "index")]), attribute="window")).rows())

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
        return [int(value) // 1000 for value in steps(scope).data[key]]

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
    assert np.asarray(result.data["launch_offset_ns"]).tolist() == [30e3, 31e3, 32e3, 33e3]
    groups = {row["group"]: row for row in step_groups(result).rows()}
    assert (groups["prefill bs=8"]["count"], groups["prefill bs=8"]["p99_ns"]) == (1, 900_000)
    assert (groups["decode bs=8"]["p50_ns"], groups["decode bs=8"]["max_ns"]) == (102_000, 103_000)
    assert (result.totals["first_ns"], result.totals["steady_ns"]) == (900_000, 102_000)
    assert percentile(np.arange(1, 101), 95) == 95


def test_a_source_without_slices_has_no_steps(tmp_path: Path) -> None:
    """A log beside the trace brings no column that tells sources apart; a second trace does."""
    host = [complete(at, 8, f"ProfilerStep#{at}", "user_annotation") for at in (0, 10)]
    trace, log, other = (
        index_of(events, tmp_path / name)
        for name, events in (("trace", host), ("log", [counter(5, "watts", W=3)]), ("other", host))
    )
    alone, with_log, two = (
        steps(Scope(Trace(indexes))) for indexes in ([trace], [trace, log], [trace, other])
    )
    assert [column.key for column in with_log.columns] == [column.key for column in alone.columns]
    assert with_log.keys == ("step",) and len(with_log) == 2
    assert two.columns[0].key == "source" and len(two) == 4


OF_2021 = "kineto2021_resnet50_num_workers_4.tb_0.4.3"
OF_DRIVER = "tl_h100_qwen_infer.tb_0.4.3_PATCHED_runtime"
NAMES = (
    OF_2021,
    OF_DRIVER,
    "tl_mi300_resnet_train_rank0of8.tb_0.4.3_PATCHED_runtime",
    "hta_a100_resnet_ddp_nccl.tb_0.4.3_PATCHED_runtime",
)


@cache
def golden(name: str) -> dict[str, Any]:
    """Return what TensorBoard's plugin gave."""
    return dict(json.loads((GOLDENS / "tb" / f"{name}.json").read_bytes()))


def marked(name: str, cache_folder: Path) -> tuple[Scope, Steps]:
    """Return a reference's trace and its steps as the host marked them."""
    trace = open_trace(CORPUS / golden(name)["input"].removeprefix("share/"), index_dir=cache_folder)
    steps = find_steps(trace, 0)
    assert steps is not None
    return Scope(trace), steps


def lengthened(index: Index, steps: Steps) -> tuple[I64, I64]:
    """Return (starts, ends) by the plugin's rule: a step ends with the last work launched in it, if that is
    later; it begins where the one before ended, the first where work launched before any step ended.
    """
    launches = launches_of(index)
    work = work_positions(index, launches)
    begun: I64 = index.column("slices.start")[work].astype(np.int64)
    done = begun + index.duration(work)
    calls = launches.calls_of(work)
    launched = index.column("slices.start")[np.maximum(calls, 0)].astype(np.int64)
    of = [
        (calls >= 0) & (launched >= low) & (launched <= high)
        for low, high in zip(steps.starts.tolist(), steps.ends.tolist())
    ]
    free = ~np.any(of, axis=0)
    earlier = done[free][done[free] < begun[of[0]].min(initial=np.iinfo(np.int64).max)]
    last = earlier.max(initial=steps.starts[0])
    starts, ends = steps.starts.copy(), steps.ends.copy()
    for at, own in enumerate(of):
        starts[at] = max(last, starts[at])
        ends[at] = last = max(ends[at], starts[at], done[own].max(initial=ends[at]))
    return starts, ends


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("name", NAMES)
def test_lengthened_steps_are_those_of_tensorboard(name: str, corpus_cache: Path) -> None:
    """Lengthened by its rule, each step's total and split equal its numbers to 0.1 µs; calls of the driver,
    which it does not know, are Runtime here.
    """
    scope, steps = marked(name, corpus_cache)
    starts, ends = lengthened(scope.trace.indexes[0], steps)
    columns = step_columns(scope, replace(steps, starts=starts, ends=ends))
    expected = golden(name)["steps"]
    assert list(steps.labels) == [step["name"].removeprefix("ProfilerStep#") for step in expected]
    assert (columns["wall_ns"] / 1000).tolist() == pytest.approx([s["Total"] for s in expected], abs=0.1)
    driver = "cuda_driver" in scope.trace.indexes[0].categories
    assert driver == (name == OF_DRIVER)
    rest = ("Runtime", "CpuOp", "Other") if driver else ()
    for role in (role for role in (*ROLES, "Other") if role not in rest):
        ours = (columns[f"split_{role.lower()}_ns"] / 1000).tolist()
        assert ours == pytest.approx([step[role] for step in expected], abs=0.1), role
    together = sum(columns[f"split_{role.lower()}_ns"] for role in rest) / 1000
    assert together == pytest.approx(np.array([sum(step[r] for r in rest) for step in expected]), abs=0.1)


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("name", NAMES)
def test_ours_are_as_the_host_marked_them(name: str, corpus_cache: Path) -> None:
    """Without lengthening, the walls differ from TensorBoard's, except where steps waited for their work."""
    scope, steps = marked(name, corpus_cache)
    walls = (step_columns(scope, steps)["wall_ns"] / 1000).tolist()
    alike = walls == pytest.approx([step["Total"] for step in golden(name)["steps"]], abs=0.1)
    assert alike == (name == NAMES[-1])


@needs(CORPUS, GOLDENS)
def test_what_marks_a_step_is_no_op_in_it(corpus_cache: Path) -> None:
    """A profiler of 2021 writes its steps as ops: the time between ops is Other all the same."""
    scope, steps = marked(OF_2021, corpus_cache)
    index = scope.trace.indexes[0]
    assert set(index.column("slices.category")[steps.positions].tolist()) == {
        index.categories.index("Operator")
    }
    columns = step_columns(scope, steps)
    assert (columns["split_other_ns"] > 0).all()
    assert (columns["cpu_busy_ns"] < columns["wall_ns"]).all()


COLUMNS = (
    *("wall_ns", "cpu_busy_ns", "device_ns", "device_busy_ns", "idle_ns", "kernel_ns", "comm_ns", "copy_ns"),
    *("device_slices", "launch_offset_ns", "split_kernel_ns", "split_runtime_ns", "split_other_ns"),
)
WHERE = ("own device", "own stream", "holds its device")


def _rank(number: int, where: str, at: float = 0) -> list[dict[str, Any]]:
    """Three steps of a rank whose work takes the longer the higher its number, partly after its step."""
    host = 100 + number
    device, stream = {
        "own device": (number, 7),
        "own stream": (0, 7 + number),
        "holds its device": (host, 900),
    }[where]
    events = []
    for n in range(3):
        start, ids = n * 1000 + at, {"correlation": n + 1} if where != "holds its device" else {}
        events += [
            complete(start, 900, f"ProfilerStep#{n}", "user_annotation", pid=host),
            complete(start + 20, 50 + number, "cudaLaunchKernel", "cuda_runtime", pid=host, args=ids),
            complete(start + 500, 300 + 200 * number, "k", "kernel", pid=device, tid=stream, args=ids),
        ]
    return events


def _rows(events: list[dict[str, Any]], folder: Path, attribute: str) -> list[dict[str, Any]]:
    scope = replace(Scope(Trace([index_of(events, folder)])), attribute=attribute)
    return list(steps(scope).rows())


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["launch", "window"])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("later_us", [0, 30])
def test_a_step_is_the_same_beside_that_of_another_process(
    attribute: str, where: str, later_us: float, tmp_path: Path
) -> None:
    """Of two merged ranks each step has the times that it has in a file of its rank alone."""
    ranks = [_rank(0, where), _rank(1, where, later_us)]
    merged = _rows([*ranks[0], *ranks[1]], tmp_path / "merged", attribute)
    for number, events in enumerate(ranks):
        alone = _rows(events, tmp_path / str(number), attribute)
        mine = [row for row in merged if row["process"] == str(100 + number)]
        assert [[row[key] for key in COLUMNS] for row in mine] == [
            [row[key] for key in COLUMNS] for row in alone
        ]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_metrics_are_those_of_one_process(where: str, ranks: int, tmp_path: Path) -> None:
    """Steps that run beside each other are not added up: number and sums are those of one process."""
    events = [event for number in range(ranks) for event in _rank(number, where, 30 * number)]
    trace = Trace([index_of(events, tmp_path)])
    metrics = {metric.name: metric.value for metric in step_metrics(Scope(trace))}
    assert (metrics["step.count"], metrics["step.wall.total"]) == (3, 3 * 900_000)
    assert metrics["step.device_busy.total"] == 3 * (300 + 200 * (ranks - 1)) * 1000
    assert metrics["step.wall.median"] == 900_000
    groups = list(step_groups(steps(Scope(trace))).rows())
    assert [row["count"] for row in groups] == [3] * ranks
    assert [row.get("process", "100") for row in groups] == [str(100 + number) for number in range(ranks)]


@pytest.mark.parametrize("where", WHERE)
def test_windows_and_what_is_outside_are_the_whole(where: str, tmp_path: Path) -> None:
    """By window the steps of all processes and what none of them holds are all device time, none counted
    twice; work that is nobody's counts in the windows of all, which is said.
    """
    events = [*_rank(0, where), *_rank(1, where, 30)]
    scope = replace(Scope(Trace([index_of(events, tmp_path / "a")])), attribute="window")
    table = steps(scope)
    assert table.totals["shared_ns"] == 0
    whole = 3 * (300 + 500) * 1000
    assert int(table.numbers("device_ns").sum()) + table.totals["outside_ns"] == whole
    alone = complete(100, 50, "nobody's", "kernel", pid=50, tid=3)
    scope = replace(Scope(Trace([index_of([*events, alone], tmp_path / "b")])), attribute="window")
    table = steps(scope)
    inside = int(table.numbers("device_ns").sum())
    assert table.totals["shared_ns"] == 50_000
    assert inside + table.totals["outside_ns"] - table.totals["shared_ns"] == whole + 50_000


REAL = "gpu/hta_a100_resnet_ddp_nccl.json.gz"


def _raw() -> list[dict[str, Any]]:
    with gzip.open(CORPUS / REAL) as stream:
        events = json.load(stream, parse_float=Fraction)["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def _steps(events: list[dict[str, Any]]) -> dict[str, tuple[Fraction, Fraction]]:
    return {
        event["name"].removeprefix("ProfilerStep#"): (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["name"].startswith("ProfilerStep#") and event["cat"] == "user_annotation"
    }


@needs(CORPUS)
@pytest.mark.slow
def test_ops_of_each_step(corpus_cache: Path) -> None:
    """Each step's rows count the ops that lie in it, sorted by itself; the step stands first."""
    events = _raw()
    spans = _steps(events)
    scope = Scope(open_trace(CORPUS / REAL, index_dir=corpus_cache))
    table = by_step(scope, ops).sort("calls")
    names = Counter(event["name"] for event in events if event["cat"] == "cpu_op")
    # PyTorch leaves out an op that is the only child of one of its own name.
    plain = {row["name"] for row in ops(scope).rows() if names[str(row["name"])] == row["calls"]}
    assert len(plain) > 50
    expected: Counter[tuple[str, str]] = Counter()
    for event in events:
        for step, (start, end) in spans.items():
            inside = event["ts"] < end and event["ts"] + event["dur"] > start
            if event["name"] in plain and event["cat"] == "cpu_op" and inside:
                expected[step, event["name"]] += 1
    rows = list(table.rows())
    assert {(row["step"], row["name"]): row["calls"] for row in rows if row["name"] in plain} == expected
    steps = [row["step"] for row in rows]
    assert list(dict.fromkeys(steps)) == list(spans)
    assert steps == sorted(steps)
    for step in set(steps):
        calls = [row["calls"] for row in rows if row["step"] == step]
        assert calls == sorted(calls, reverse=True)  # type: ignore[type-var]
    assert table.positions is not None
    assert table.sources is not None
    assert len(table.positions) == len(table.sources) == len(table)


def test_steps_of_several_sources(tmp_path: Path) -> None:
    """The k-th step of a name is one step over all ranks, from its first start to its last end."""
    ranks = [
        [complete(100 * n + shift, 50, f"iteration_{n}", cat="user_annotation") for n in (1, 2)]
        for shift in (0, 10)
    ]
    steps = step_spans(Trace([index_of(events, tmp_path / str(at)) for at, events in enumerate(ranks)]))
    assert steps is not None
    assert steps.labels == ("1", "2")
    assert (steps.starts.tolist(), steps.ends.tolist()) == ([100_000, 200_000], [160_000, 260_000])
    times = np.array([99_999, 100_000, 159_999, 160_000, 200_000, 260_000], np.int64)
    assert steps.holding(times).tolist() == [-1, 0, 0, -1, 1, -1]


def test_no_steps(tmp_path: Path) -> None:
    """A trace without steps says so."""
    scope = Scope(Trace([index_of([complete(0, 1)], tmp_path)]))
    with pytest.raises(UsageError, match="no steps"):
        by_step(scope, kernels)


HOST = 7
PASS_US = 10_000.0
PIECES = 8


def host(ts: float, dur: float, name: str, cat: str, **more: object) -> Event:
    return complete(ts, dur, name, cat, pid=HOST, tid=HOST, **more)


def launched(number: int, ts: float, call: str = "cudaLaunchKernel") -> list[Event]:
    """Return a launch and its kernel of 500 µs."""
    args = {"correlation": number}
    work = complete(ts + 50, 500, "gemm", "kernel", pid=0, tid=7, args={**args, "stream": 7, "device": 0})
    return [host(ts, 20, call, "cuda_runtime", args=args), work]


def passes(count: int, call: str = "cudaLaunchKernel") -> list[Event]:
    """Return passes of PIECES launches each, with a pause between two, in no slice that names them."""
    events = [metadata("process_labels", 0, labels="GPU 0")]
    for number in range(count):
        for piece in range(PIECES):
            events += launched(1 + number * PIECES + piece, PASS_US * number + 100 + 600 * piece, call)
    return events


def around(count: int, name: str, cat: str, begin: float = 0, dur: float = 6000) -> list[Event]:
    """Return a slice in each pass; `{}` in the name is its number from 10 on."""
    return [host(PASS_US * at + begin, dur, name.format(at + 10), cat) for at in range(count)]


def opened(path: Path, events: Sequence[Event]) -> Trace:
    path.mkdir(exist_ok=True)
    (path / "t.json").write_text(json.dumps(events), encoding="utf-8")
    return open_trace(path / "t.json", index_dir=path / "index")


def steps_of(trace: Trace, name: str | None = None) -> Steps:
    steps = find_steps(trace, 0, name=name)
    assert steps is not None
    return steps


@pytest.mark.parametrize("frame", ["execute_model", "training_step", "forward", "train_step", "step"])
def test_python_functions_that_hold_the_work(frame: str, tmp_path: Path) -> None:
    """They are the steps, not the graph launches in them, nor frames of the like that hold none of it."""
    name = f"engine/runner.py(63): {frame}"
    events = [*passes(5, "cudaGraphLaunch"), *around(5, name, "python_function")]
    events += around(5, "torch/optim/sgd.py(9): step", "python_function", 7000, 2500)
    steps = steps_of(opened(tmp_path, events))
    assert (steps.choice, len(steps), steps.labels[:2]) == (name, 5, ("0", "1"))
    assert "doubtful" not in steps.reason


def test_bursts_of_graph_launches(tmp_path: Path) -> None:
    """Without frames a burst of launches is a step; launches at even distances are one each."""
    steps = steps_of(opened(tmp_path / "bursts", passes(6, "hipGraphLaunch")))
    assert (steps.choice, len(steps)) == ("bursts of hipGraphLaunch", 6)
    assert (steps.ends - steps.starts).tolist() == [(600 * (PIECES - 1) + 20) * 1000] * 6
    even = [metadata("process_labels", 0, labels="GPU 0")]
    even += [event for at in range(20) for event in launched(at + 1, 1000.0 * at, "cudaGraphLaunch")]
    steps = steps_of(opened(tmp_path / "even", even))
    assert (steps.choice, len(steps)) == ("cudaGraphLaunch", 20)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("ProfilerStep#{}", "user_annotation"),
        ("iteration_{}", "user_annotation"),
        ("granite.iteration.{}.prefill.7", "user_annotation"),
        ("execute_context_{}_generation_2", "user_annotation"),
        ("step[DECODE bs={}]", "user_annotation"),
        ("epoch 3 batch {}", "user_annotation"),
        ("train#{}", "user_annotation"),
        ("it's {}", "user_annotation"),
        ("Torch-Compiled Region: 0/{}", "cpu_op"),
        ("run.py(7): forward", "python_function"),
        ("", ""),
    ],
)
def test_steps_are_found_by_what_they_are_called(name: str, category: str, tmp_path: Path) -> None:
    """`--step-name` takes what a note calls the steps, numbers as N among them, and means the same ones."""
    events = [*passes(5, "cudaGraphLaunch"), *(around(5, name, category) if name else ())]
    trace = opened(tmp_path, events)
    steps = steps_of(trace)
    again = steps_of(trace, steps.choice)
    assert len(steps) == 5 and again.reason.startswith("chosen by name")
    assert (again.starts.tolist(), again.ends.tolist()) == (steps.starts.tolist(), steps.ends.tolist())
    assert again.labels == steps.labels


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ({"layer 1": [0, 20], "other": [40]}, "chosen by name"),
        (
            {"layer 1": [0, 40], "layer 2": [20, 60]},
            "chosen by name, with 1 name that differs in numbers only",
        ),
        ({"layer 1": [0, 5, 40]}, "chosen by name; 3 slices that overlap are 2 steps"),
        ({"layer 7": [0, 20]}, "chosen by name"),
    ],
)
def test_what_a_typed_name_leaves_open_is_said(
    spans: Mapping[str, Sequence[int]], reason: str, tmp_path: Path
) -> None:
    """Names that count with the one that was typed, and slices that are one step, stand in the reason."""
    events = [complete(at, 10, name) for name, starts in spans.items() for at in starts]
    assert steps_of(opened(tmp_path, events), "layer 1").reason == reason


def test_more_time_of_the_device_goes_before_more_time_of_the_host(tmp_path: Path) -> None:
    """An annotation around the work is the step, though another that launches nothing takes longer."""
    events = [*passes(5), *around(5, "batch {}", "user_annotation", 90, 4500)]
    events += around(5, "load data", "user_annotation", 4700, 5200)
    assert steps_of(opened(tmp_path, events)).choice == "batch N"


def test_a_doubtful_choice_is_said_and_the_next_is_offered(tmp_path: Path) -> None:
    """Where no candidate launches most of the device's time."""
    events = [*passes(5), *around(5, "front", "user_annotation", 90, 2300)]
    events += around(5, "back", "user_annotation", 2480, 1200)
    steps = steps_of(opened(tmp_path, events))
    assert steps.choice == "front"
    assert steps.reason == (
        "the outermost that repeats; doubtful, as only 50% of the device's time is launched in them; "
        "next: --step-name 'back' (5 steps, 25%)"
    )
    assert len(steps_of(opened(tmp_path, events), "back")) == 5


@pytest.mark.parametrize("on_device", [True, False])
def test_a_mark_of_a_part_is_no_step(on_device: bool, tmp_path: Path) -> None:
    """Optimizers that PyTorch marks by itself launch, or last, a small part of an iteration; what lasts most
    of it is a step.
    """
    events = [one for one in passes(5) if on_device or one.get("cat") not in ("kernel", "cuda_runtime")]
    events += around(5, "forward and backward", "cpu_op", 90, 4000)
    parts = around(5, "Optimizer.step#AdamW.step", "user_annotation", 4090, 620)
    parts += around(5, "Optimizer.zero_grad#AdamW.zero_grad", "user_annotation", 5000, 300)
    assert find_steps(opened(tmp_path / "parts", events + parts), 0) is None
    wholes = around(5, "batch {}", "user_annotation", 80, 5600)
    assert steps_of(opened(tmp_path / "wholes", events + parts + wholes)).choice == "batch N"


def test_a_number_in_the_name_is_the_label(tmp_path: Path) -> None:
    """`iter 17` is step 17, by whichever name steps are asked for; lines and compilations are no labels."""
    trace = opened(tmp_path / "iter", [*passes(5), *around(5, "iter {}", "user_annotation")])
    for name in (None, "iter", "iter 12", "iter 99"):
        assert steps_of(trace, name).labels == ("10", "11", "12", "13", "14")
    spans = steps_there(trace, "step", "iter")
    assert step_place(spans, "13") == 3 == step_place(spans, "nth:-2")
    with pytest.raises(UsageError, match="no step 0; there are 10 to 14"):
        step_place(spans, "0")
    for name in ("Torch-Compiled Region: 0/{}", "job{}.py(3): step"):
        cat = "python_function" if ".py" in name else "cpu_op"
        other = opened(tmp_path / cat, [*passes(3), *around(3, name, cat)])
        assert steps_of(other).labels == ("0", "1", "2")


def test_labels_that_come_again(tmp_path: Path) -> None:
    """Each epoch counts from 0: asking for one names those that there are, with their times."""
    events = [*passes(6)]
    events += [host(PASS_US * at, 6000, f"iter {at % 3}", "user_annotation") for at in range(6)]
    spans = steps_there(opened(tmp_path, events), "step", None)
    assert spans.labels == ("0", "1", "2", "0", "1", "2")
    with pytest.raises(
        UsageError, match=r"2 steps are called 1: say which, nth:1 at \+10 ms, nth:4 at \+40 ms"
    ):
        step_place(spans, "1")
    assert step_place(spans, "nth:4") == 4


@pytest.mark.parametrize(
    ("name", "label"), [("iter 17", "17"), ("iter 007", "7"), ("epoch 3 iter 4", "0"), ("all", "0")]
)
def test_a_single_step_is_called_by_the_one_number_that_it_has(name: str, label: str, tmp_path: Path) -> None:
    """Of several numbers in the name of a step without others none is known to count steps."""
    trace = opened(tmp_path, [*passes(1), host(0, 6000, name, "user_annotation")])
    assert steps_of(trace, name).labels == (label,)


def test_two_numbers_in_the_name(tmp_path: Path) -> None:
    """What differs from step to step is the label: epoch and iteration, but not the rank."""
    events = [*passes(4)]
    events += [
        host(PASS_US * at, 6000, f"rank 3 epoch {at // 2} iter {at % 2:03d}", "user_annotation")
        for at in range(4)
    ]
    assert steps_of(opened(tmp_path, events)).labels == ("0.0", "0.1", "1.0", "1.1")


@needs(CORPUS)
def test_vllm_on_h100(corpus_cache: Path) -> None:
    """Forward passes of many graph launches each: 10 or 11 steps with 90 % of the device's time or more."""
    path = CORPUS / "verdicts/vllm_h100_tp4_graphs.json.gz"
    trace = open_trace(path, index_dir=corpus_cache)
    table = steps(Scope(trace))
    whole = trace.indexes[0].duration(trace.launches(0).kernels).sum()
    assert len(table) in (10, 11)
    assert table.numbers("device_ns").sum() >= 0.9 * whole


@needs(CORPUS)
@pytest.mark.parametrize(
    ("name", "choice", "count"),
    [
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", "ProfilerStep#N", 3),
        ("gpu/tl_vllm_decode_cudagraph_exec.json.gz", "vLLM's execute_…", 1),
        ("aiu/mlp_trace.json", "Torch-Compiled Region: 0/0", 10),
        ("verdicts/rtx4090_llama_tp2.json.gz", "TransformerLayer_N", 4),
    ],
)
def test_choices_that_stay(name: str, choice: str, count: int, corpus_cache: Path) -> None:
    """What a profiler or engine marked, and what repeats around everything else."""
    steps = steps_of(open_trace(file(name), index_dir=corpus_cache))
    assert (steps.choice, len(steps)) == (choice, count)


@pytest.mark.parametrize("has_device", [True, False])
def test_idle_time_of_no_device_is_not_known(has_device: bool, tmp_path: Path) -> None:
    """Of a program without a device nothing was idle: the step's time is no idle time, nor a metric."""
    events = [complete(1000 * n, 1000, f"ProfilerStep#{n}", "user_annotation") for n in range(3)]
    if has_device:
        events.append(complete(100, 300, "gemm", "kernel", pid=0, tid=7))
    scope = Scope(trace_of("t.json", index_of(events, tmp_path)))
    idle = [row["idle_ns"] for row in steps(scope).rows()]
    values = {one.name: one.value for one in step_metrics(scope)}
    if has_device:
        assert idle == [700_000, 1_000_000, 1_000_000] and values["step.idle.total"] == 2_700_000
    else:
        assert idle == [None] * 3 and values["step.idle.total"] is values["step.idle.mean"] is None
    assert values["step.wall.total"] == 3_000_000


@pytest.mark.parametrize(("lost", "busy"), [(range(6), None), (range(0, 6, 2), 300_000)])
def test_times_that_are_lost_tell_no_busy_time(lost: Sequence[int], busy: int | None, tmp_path: Path) -> None:
    """Of a step all of whose work stands at 0 only what it takes, added up, is known, not when it ran; where
    some of it has times, what these say.
    """
    events: list[Event] = []
    for number in range(3):
        at = 1_000_000.0 + 1000 * number
        events.append(complete(at, 900, f"ProfilerStep#{number}", "user_annotation"))
        for nth, us in enumerate((200, 300)):
            key = 2 * number + nth
            args = {"correlation": key + 1, "stream": 7, "device": 0}
            begun = 0 if key in lost else at + 100
            events += [
                complete(at + 10 + nth, 5, "cudaLaunchKernel", "cuda_runtime", args=args),
                complete(begun, us, f"k{nth}", "kernel", pid=0, tid=7, args=args),
            ]
    table = steps(Scope(open_events(tmp_path, events)))
    assert table.numbers("device_ns").tolist() == [500_000] * 3
    for key in ("device_busy_ns", "device_span_ns"):
        assert [row[key] for row in table.rows()] == [busy] * 3
    known = {metric.name: metric.value for metric in step_metrics(Scope(open_events(tmp_path, events)))}
    assert known["step.device_busy.median"] == busy
