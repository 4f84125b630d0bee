"""Ops: PyTorch's own key_averages, reproduced from the trace file row for row."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.corpus import CORPUS, GOLDENS, files, for_files, needs
from tests.events import complete, event, flow, index_of
from tracelane.core.base.errors import UsageError
from tracelane.core.base.kineto import HOST_EVENTS
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.op_sums import NO_GROUPING, Grouping, parse_grouping
from tracelane.core.tables.host.ops import SORTS, ops, sort_column
from tracelane.core.trace import Trace, open_trace

FOLDER = GOLDENS / "key_averages"
SAMPLES = Path(__file__).parent.parent / "samples" / "cuda"
PAIRS = {
    "ka_compile_breaks_mem_shapes": ".pt.trace.json",
    "ka_mlp_sched_shapes_mem": ".pt.trace.json",
    "ka_mlp_sched_stack_mem_verbose": ".pt.trace.json.gz",
    "ka_threads_all_mem": ".pt.trace.json",
}
TABLES = {"": "key_averages", "shape": "key_averages_by_shape", "stack:5": "key_averages_by_stack5"}
CASES = [
    (name, by)
    for name in PAIRS
    for by in TABLES
    if not (by == "shape" and "threads" in name) and not (by == "stack:5" and "verbose" not in name)
]
ASYNC = {"async_region": 701_194}
"""Self time of regions that ended on another thread: torch says 0, the file does not tell them apart."""


def _golden(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.golden.json").read_bytes()))


@needs(GOLDENS)
@pytest.mark.parametrize(("name", "by"), CASES)
def test_rows_are_those_of_torch(name: str, by: str, corpus_cache: Path) -> None:
    """Same rows in the same order; counts and memory exact, times to 1 ns."""
    trace = open_trace(FOLDER / f"{name}{PAIRS[name]}", index_dir=corpus_cache)
    golden = _golden(name)
    table = ops(Scope(trace), parse_grouping(by)) if by else ops(Scope(trace))
    extra = {"": None, "shape": "input_shapes", "stack:5": "stack"}[by]
    rows, expected = list(table.rows()), golden[TABLES[by]]

    def label(row: dict[str, Any]) -> tuple[Any, ...]:
        more = row[extra] if extra else ""
        more = ";".join(more) if extra == "stack" and isinstance(more, list) else str(more)
        return row.get("name", row.get("key")), row.get("annotation", row.get("is_user_annotation")), more

    assert [label(row) for row in rows] == [label(row) for row in expected]
    for row, want in zip(rows, expected):
        assert row["calls"] == want["count"], want["key"]
        assert row["cpu_mem"] == want["cpu_memory_usage"], want["key"]
        assert row["self_cpu_mem"] == want["self_cpu_memory_usage"], want["key"]
        assert row["cpu_total_ns"] == pytest.approx(want["cpu_time_total"] * 1000, abs=1), want["key"]
        own = ASYNC[want["key"]] if want["is_async"] else want["self_cpu_time_total"] * 1000
        assert row["self_cpu_ns"] == pytest.approx(own, abs=1), want["key"]
    more = sum(ASYNC[want["key"]] for want in expected if want["is_async"])
    total = golden["self_cpu_time_total_all"] * 1000 + more
    assert table.totals["self_cpu_total_ns"] == pytest.approx(total, abs=1)


RECORDED = files("cpu/torch_*.pt.trace.json.gz")
"""Recorded on a CPU by tests/samples/cpu/record.py, with PyTorch 2.1, 2.13 and 2.14."""


def averages_of(path: Path) -> dict[str, list[list[Any]]]:
    """Return what key_averages said of a recording, by table."""
    averages = path.with_name(path.name.replace(".pt.trace.", ".averages."))
    tables = json.loads(gzip.decompress(averages.read_bytes()))
    return {by: tables[name[4:]] for by, name in TABLES.items() if name[4:] in tables}


def our_averages(path: Path, by: str, frames: bool) -> list[list[Any]]:
    grouping = (parse_grouping(by) if by else NO_GROUPING)._replace(no_frames=not frames)
    extra = {"": None, "shape": "input_shapes", "stack:5": "stack"}[by]
    rows = []
    with TemporaryDirectory() as folder:
        for row in ops(Scope(open_trace(path, index_dir=Path(folder))), grouping).rows():
            more = (
                [";".join(row[extra]) if isinstance(row[extra], list) else str(row[extra])] if extra else []
            )
            sums = (
                row["calls"],
                row["cpu_total_ns"],
                row["self_cpu_ns"],
                row["cpu_mem"],
                row["self_cpu_mem"],
            )
            rows.append([row["name"], row["annotation"], *sums, *more])
    return rows


OWN = 4
"""Where a row of averages has the time of its own."""
OF_FRAMES = "torch_2.14_training"
"""This release counts Python frames in times of their own, as 2.13 does, but has no rows of them."""


@for_files(
    "path, by", [(path, by) for path in RECORDED if "2.1_" not in path.name for by in averages_of(path)]
)
def test_rows_of_recordings_are_those_of_torch(path: Path, by: str) -> None:
    """Of each recording of the project: the rows of key_averages in its order, times and memory exact."""
    expected = averages_of(path)[by]
    no_rows = path.name.startswith(OF_FRAMES)
    rows = our_averages(path, by, no_rows or any(".py(" in key for key, *_ in expected))
    names = {key for key, *_ in expected}
    rows = [row for row in rows if row[0] in names or not no_rows]
    for row, want in zip(rows, expected):
        if want[0].startswith("gloo:"):  # it ends on another thread, which the file does not tell
            row[OWN] = want[OWN] = 0
    assert rows == expected


@for_files("path", [path for path in RECORDED if "2.1_" in path.name])
def test_rows_of_an_early_release_are_those_of_torch(path: Path) -> None:
    """PyTorch 2.1 wrote whole µs: its names are ours, and its times to 1 µs a call where the counts are.

    Which of two slices of one µs holds the other is not in the file: counts differ by one where torch leaves
    out an op alone in one of its name, and its times of their own and memory by what moves with it.
    """
    rows = {name: (calls, total) for name, _, calls, total, *_ in our_averages(path, "", frames=False)}
    expected = {name: (calls, total) for name, _, calls, total, *_ in averages_of(path)[""]}
    assert rows.keys() == expected.keys()
    unlike = [name for name in rows if rows[name][0] != expected[name][0]]
    assert len(unlike) <= 3 and all(abs(rows[name][0] - expected[name][0]) == 1 for name in unlike)
    for name in rows.keys() - set(unlike):
        calls, total = expected[name]
        assert rows[name][1] == pytest.approx(total, abs=1_000 * calls), name


TIMES = ("cpu_total_ns", "self_cpu_ns", "device_total_ns", "self_device_ns")
TWICE = ("aten::embedding", "aten::index_select", "aten::gather", "aten::argmax", "cudaLaunchKernel")
CUDA: dict[str, dict[str, tuple[str, ...]]] = {
    "stacks": {},
    "activities": {},
    # It ends on another thread, which the file does not tell.
    "gloo": {"gloo:all_reduce": TIMES[1:]},
    # Torch links kernels to overhead by a number that an op happens to have too, and counts them twice.
    "inference": dict.fromkeys((*TWICE, "Activity Buffer Request", "Lazy Function Loading"), TIMES[2:]),
}
"""Recorded on an H100 with PyTorch 2.11; the times of each name that a file does not have."""
AROUND = 2
"""A GPU annotation is written 1 ns longer at either end than torch has it."""


@pytest.mark.parametrize("name", CUDA)
def test_rows_on_cuda_are_those_of_torch(name: str, tmp_path: Path) -> None:
    """Calls and times of host and device are key_averages' own, overhead inside what it held up."""
    trace = open_trace(SAMPLES / f"{name}.pt.trace.json.gz", index_dir=tmp_path)
    rows = ops(Scope(trace), Grouping(no_frames=True)).rows()
    ours = {(row["name"], row["on_device"], row["annotation"]): row for row in rows}
    golden = json.loads(gzip.decompress((SAMPLES / f"{name}.averages.json.gz").read_bytes()))
    assert len(ours) == len(golden)
    for key, on_device, annotation, calls, *times in golden:
        row = ours[key, on_device, annotation]
        slack = AROUND * calls if on_device and annotation else 0
        assert row["calls"] == calls, key
        for column, want in zip(TIMES, times):
            if column not in CUDA[name].get(key, ()):
                assert row[column] == pytest.approx(want, abs=slack), (key, column)


def test_python_frames_are_counted_or_left_out(tmp_path: Path) -> None:
    """PyTorch 2.12 and later count Python frames as rows and in self times, earlier ones do neither."""
    scope = Scope(open_trace(SAMPLES / "stacks.pt.trace.json.gz", index_dir=tmp_path))
    tables = [
        {row["name"]: row["self_cpu_ns"] for row in ops(scope, by).rows() if not row["on_device"]}
        for by in (NO_GROUPING, Grouping(no_frames=True))
    ]
    frames = tables[0].keys() - tables[1].keys()
    assert "torch/optim/adam.py(214): step" in frames
    assert not any(name.startswith(("aten::", "cuda")) for name in frames)
    assert [table["ProfilerStep*"] for table in tables] == [306_807, 26_975_050]


TENSORBOARD = ("hta_a100_resnet_ddp_nccl", "tl_h100_qwen_infer", "tl_mi300_resnet_train_rank0of8")
WITH_COPIES = {("tl_h100_qwen_infer", "aten::bmm"), ("tl_h100_qwen_infer", "aten::matmul")}
"""Ops that launched a memset too: TensorBoard counts kernels only, torch and this all device work."""


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("name", TENSORBOARD)
def test_device_time_is_that_of_tensorboard(name: str, corpus_cache: Path) -> None:
    """Calls, host time and device time of every operator equal its operator table (float ranges apart)."""
    path = GOLDENS / "tb" / f"{name}.tb_0.4.3_PATCHED_runtime.json"
    expected = json.loads(path.read_bytes())["operators"]
    trace = open_trace(next(CORPUS.rglob(f"{name}.json*")), index_dir=corpus_cache)
    rows = {r["name"]: r for r in ops(Scope(trace)).rows() if not r["on_device"] and not r["annotation"]}
    assert expected
    for want in expected:
        row = rows[want["name"]]
        assert row["calls"] == want["calls"]
        assert row["cpu_total_ns"] == pytest.approx(want["host_duration"] * 1000, abs=30 * want["calls"])
        more = 3_520 if (name, want["name"]) in WITH_COPIES else 0
        device = want["device_duration"] * 1000 + more
        assert row["device_total_ns"] == pytest.approx(device, abs=30 + device * 1e-4), want["name"]


def _trace(events: list[dict[str, Any]], folder: Path) -> Trace:
    return Trace([index_of(events, folder / "index")])


def _rows(scope: Scope, by: str = "") -> dict[str, dict[str, Any]]:
    table = ops(scope, parse_grouping(by)) if by else ops(scope)
    return {str(row["name"]): row for row in table.rows()}


def test_device_time_follows_flow_correlation_and_external_id(tmp_path: Path) -> None:
    """A kernel counts for the op of its External id, else of its launch, and for all around it, once."""
    launch = {"cat": "cuda_runtime", "dur": 2}
    events = [
        complete(0, 100, "step", "user_annotation"),
        complete(10, 20, "by_flow"),
        complete(12, name="launch", args={"correlation": 0}, **launch),
        flow("s", 12, 4),
        flow("f", 200, 4, bp="e", tid=9),
        complete(200, 7, "k", "kernel", tid=9),
        complete(40, 20, "by_correlation"),
        complete(42, name="launch", args={"correlation": 5}, **launch),
        complete(210, 11, "k", "kernel", tid=9, args={"correlation": 5}),
        complete(70, 20, "by_id", args={"External id": 77}),
        complete(230, 13, "k", "kernel", tid=9, args={"External id": 77, "correlation": 6}),
        complete(300, 50, "step", "gpu_user_annotation", tid=9),
    ]
    table = ops(Scope(_trace(events, tmp_path)))
    device = {(r["name"], r["on_device"]): (r["device_total_ns"], r["self_device_ns"]) for r in table.rows()}
    assert device["by_flow", False] == (7_000, 7_000)
    assert device["by_correlation", False] == (11_000, 11_000)
    assert device["by_id", False] == (13_000, 13_000)
    assert device["step", False] == (31_000, 0)
    assert device["k", True] == (31_000, 31_000)
    assert device["launch", False] == (0, 0)
    assert table.totals["self_device_total_ns"] == 31_000  # the annotation's twin is no work
    assert table.totals["device"] == "CUDA"


def test_a_range_counts_the_parts_inside(tmp_path: Path) -> None:
    """Two halves of a trace add up to its whole, in time and self time."""
    events = [complete(0, 100, "outer"), complete(10, 60, "inner"), complete(20, 10, "leaf")]
    trace = _trace(events, tmp_path)
    whole = _rows(Scope(trace))
    left, right = _rows(Scope(trace, (0, 25_000))), _rows(Scope(trace, (25_000, 200_000)))
    assert left["leaf"]["cpu_total_ns"] == right["leaf"]["cpu_total_ns"] == 5_000
    for name, row in whole.items():
        for key in ("cpu_total_ns", "self_cpu_ns"):
            assert left[name][key] + right[name][key] == row[key]


def test_sources_of_unlike_many_rows(tmp_path: Path) -> None:
    """A source with more rows than another, before or after it, is counted with it."""
    few = index_of([complete(0, 10, "few")], tmp_path / "few")
    many = index_of([complete(at, 100 - 2 * at, f"many{at}") for at in range(5)], tmp_path / "many")
    for indexes in ([few, many], [many, few]):
        rows = _rows(Scope(Trace(indexes)))
        assert {name: row["calls"] for name, row in rows.items()} == dict.fromkeys(rows, 1)
        assert len(rows) == 6


def test_a_lone_child_of_the_same_name_is_its_parent(tmp_path: Path) -> None:
    """Chains fall together whole; with a sibling the child stays."""
    chain = [complete(at, 100 - 2 * at, "same") for at in range(4)] + [complete(50, 1, "leaf")]
    siblings = [complete(200, 50, "two"), complete(201, 5, "two"), complete(210, 5, "other")]
    rows = _rows(Scope(_trace(chain + siblings, tmp_path)))
    assert (rows["same"]["calls"], rows["same"]["cpu_total_ns"]) == (1, 100_000)
    assert rows["same"]["self_cpu_ns"] == 99_000
    assert (rows["two"]["calls"], rows["two"]["cpu_total_ns"]) == (2, 55_000)


def test_memory_of_two_allocators_is_counted_once(tmp_path: Path) -> None:
    """Where PyTorch and the device's runtime both tell of a device, only PyTorch's records count."""

    def memory(ts: int, count: int, kind: int) -> dict[str, Any]:
        args = {"Bytes": count, "Device Type": kind, "Addr": 1}
        return event("i", ts, "[memory]", cat="cpu_instant_event", s="t", args=args)

    events = [complete(0, 10, "op"), memory(1, 512, 20), memory(2, 512, 1), memory(3, 64, 0)]
    table = ops(Scope(_trace([*events, memory(50, -64, 0)], tmp_path)))
    rows = {row["name"]: row for row in table.rows()}
    assert (rows["op"]["cpu_mem"], rows["op"]["device_mem"]) == (64, 512)
    assert (rows["[memory]"]["calls"], rows["[memory]"]["cpu_mem"]) == (1, -64)
    assert table.notes


def test_modules_are_the_nearest_around(tmp_path: Path) -> None:
    """An op belongs to the innermost nn.Module frame around it; one outside to none."""
    frame = {"cat": "python_function"}
    events = [
        complete(0, 100, "nn.Module: Outer_0", **frame),
        complete(10, 50, "nn.Module: Inner_0", **frame),
        complete(20, 5, "op"),
        complete(70, 5, "op2"),
        complete(200, 5, "op3"),
    ]
    rows = _rows(Scope(_trace(events, tmp_path)), "module")
    assert [rows[name]["module"] for name in ("op", "op2", "op3")] == ["Inner_0", "Outer_0", ""]


def _sorting(key: str) -> tuple[str, bool]:
    column = sort_column(key)
    return column.removeprefix("-"), not column.startswith("-")


def test_sort_keys_are_those_of_pytorch(tmp_path: Path) -> None:
    """Every sort key sorts, greatest first, equal ones in their order; a wrong one is told."""
    events = [complete(0, 5, "a"), complete(10, 9, "b"), complete(20, 3, "c"), complete(30, 3, "c")]
    table = ops(Scope(_trace(events, tmp_path)))
    names = table.data["name"]
    for key, expected in {
        "cpu_time_total": "bca",
        "cpu_time": "bac",
        "count": "cab",
        "cuda_time_total": "abc",
        "name": "abc",
    }.items():
        order = "".join(str(names[i]) for i in table.order(*_sorting(key)))
        assert order == expected, key
    for key in SORTS:
        assert len(table.order(*_sorting(key))) == 3
    with pytest.raises(UsageError, match="no sort key"):
        sort_column("nonsense")
    with pytest.raises(UsageError, match="stack:N"):
        parse_grouping("stack:none")


def _by_the_rules(events: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Calls, total and self ns per name by the rules in their plainest form, event by event."""
    total: Counter[str] = Counter()
    own: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    parents: dict[int, int] = {}
    for tid in {e["tid"] for e in events}:
        stack: list[int] = []
        order = sorted(
            (i for i, e in enumerate(events) if e["tid"] == tid and e["cat"] in HOST_EVENTS),
            key=lambda i: (events[i]["ts"], -(events[i]["ts"] + events[i]["dur"]), i),
        )
        for i in order:
            start, end = events[i]["ts"], events[i]["ts"] + events[i]["dur"]
            while stack:
                top = events[stack[-1]]["ts"] + events[stack[-1]]["dur"]
                if start < top and end <= top:
                    break
                stack.pop()
            parents[i] = stack[-1] if stack else -1
            stack.append(i)
    while True:
        children = Counter(parents.values())
        gone = next(
            (
                i
                for i, p in parents.items()
                if p >= 0 and children[p] == 1 and events[p]["name"] == events[i]["name"]
            ),
            None,
        )
        if gone is None:
            break
        above = parents.pop(gone)
        parents = {i: above if p == gone else p for i, p in parents.items()}
    for i, above in parents.items():
        name, ns = events[i]["name"], events[i]["dur"] * 1000
        calls[name] += 1
        total[name] += ns
        own[name] += ns
        if above >= 0:
            own[events[above]["name"]] -= ns
    return {name: (calls[name], total[name], own[name]) for name in calls}


@pytest.mark.parametrize("seed", range(12))
def test_trees_against_the_rules(seed: int, tmp_path: Path) -> None:
    """Nested, overlapping, equal and empty events among others that do not count: all as the rules say."""
    pick = random.Random(seed)
    spread = pick.choice([40, 200, 2000])
    events = [
        complete(
            pick.randrange(spread),
            pick.choice([0, 0, 1, 2, 5, 20, 60]),
            pick.choice(["a", "b", "c"]),
            pick.choice(["cpu_op", "cpu_op", "python_function", "cuda_runtime", "Trace"]),
            tid=pick.randrange(3),
        )
        for _ in range(120)
    ]
    rows = _rows(Scope(_trace(events, tmp_path)))
    actual = {name: (row["calls"], row["cpu_total_ns"], row["self_cpu_ns"]) for name, row in rows.items()}
    assert actual == _by_the_rules(events)
