"""Each piece of device work knows the innermost op, module and annotation that launched it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus, representative
from tests.events import complete, index_of
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.kineto import OPS
from tracelane.core.index.format import NONE
from tracelane.core.sql.query import run_query
from tracelane.core.tables.frame_columns import work_of
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.ops import REST, ops
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace, open_trace, trace_of

TRACES = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*.json*"))
KEYS = ("op", "module", "annotation")


def by(trace: Trace, key: str) -> dict[str, int]:
    table = kernels(Scope(trace, clocks=trace.clocks), key)
    return dict(zip(table["name"], table["total_ns"].tolist()))


def test_the_innermost_counts(tmp_path: Path) -> None:
    """An op within an op, a module within a module, an annotation but not that of the step; what lies outside
    all of them and what has no launch in the file are told apart.
    """
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}
    events = [
        complete(0, 100, "ProfilerStep#1", "user_annotation"),
        complete(1, 60, "## forward ##", "user_annotation"),
        complete(2, 50, "nn.Module: Net_0", "python_function"),
        complete(3, 40, "nn.Module: Linear_7", "python_function"),
        complete(4, 30, "aten::linear"),
        complete(5, 20, "aten::addmm"),
        complete(6, 2, **launch, args={"correlation": 1}),
        complete(70, 2, **launch, args={"correlation": 2}),
        complete(20, 5, "gemm", "kernel", pid=0, tid=7, args={"correlation": 1}),
        complete(80, 7, "fill", "kernel", pid=0, tid=7, args={"correlation": 2}),
        complete(90, 3, "lost", "kernel", pid=0, tid=7, args={"correlation": 3}),
    ]
    trace = trace_of("t.json", index_of(events, tmp_path))
    rest = {key: {f"launched outside any {key}": 7000, "launch not in the file": 3000} for key in KEYS}
    assert by(trace, "op") == {"aten::addmm": 5000, **rest["op"]}
    assert by(trace, "module") == {"Linear_7": 5000, **rest["module"]}
    assert by(trace, "annotation") == {"## forward ##": 5000, **rest["annotation"]}
    query = "select name, op, module, annotation from kernels order by ts"
    with run_query(trace, query, "sqlite") as answer:
        assert list(answer.rows) == [
            ("gemm", "aten::addmm", "Linear_7", "## forward ##"),
            ("fill", None, None, None),
            ("lost", None, None, None),
        ]


def test_device_time_of_an_op(tmp_path: Path) -> None:
    """Of work that it launched itself, of that below it too, and how long any of that ran; and in a range."""
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}
    events = [
        complete(0, 40, "outer"),
        complete(1, 2, **launch, args={"correlation": 1}),
        complete(5, 10, "inner"),
        complete(6, 2, **launch, args={"correlation": 2}),
        complete(50, 40, "outer"),
        complete(51, 2, **launch, args={"correlation": 3}),
        complete(95, 2, **launch, args={"correlation": 4}),
        complete(20, 10, "k", "kernel", pid=0, tid=7, args={"correlation": 1}),
        complete(25, 20, "k", "kernel", pid=0, tid=8, args={"correlation": 2}),
        complete(60, 10, "k", "kernel", pid=0, tid=7, args={"correlation": 3}),
        complete(97, 5, "k", "kernel", pid=0, tid=7, args={"correlation": 4}),
        complete(103, 7, "k", "kernel", pid=0, tid=7, args={"correlation": 5}),
    ]
    trace = trace_of("t.json", index_of(events, tmp_path))
    keys = ("device_self_ns", "device_total_ns", "device_busy_ns")
    table = ops(Scope(trace))
    rows = {row["name"]: tuple(row[key] // 1000 for key in keys) for row in table.rows()}
    assert (rows["outer"], rows["inner"], rows["k"]) == ((20, 40, 35), (20, 20, 20), (0, 52, 0))
    assert [table.totals[key] for key in REST] == [5_000, 7_000]
    with run_query(trace, f"select name, {', '.join(keys)} from ops order by ts", "sqlite") as answer:
        assert [(name, *(ns // 1000 for ns in times)) for name, *times in answer.rows] == [
            ("outer", 10, 30, 25),
            ("inner", 20, 20, 20),
            ("outer", 10, 10, 10),
        ]
    later = ops(Scope(trace, (50_000, 110_000)))
    assert dict(zip(later["name"], later["device_self_ns"].tolist()))["outer"] == 10_000
    assert [later.totals[key] for key in REST] == [5_000, 7_000]


@needs_corpus
@pytest.mark.parametrize("path", representative(TRACES))
def test_no_work_is_lost(path: str, corpus_cache: Path) -> None:
    """On every real trace the times by op, module or annotation add up to all device work, to the ns, and the
    op is the first that a climb from the launch meets.
    """
    try:
        trace = open_trace(CORPUS / path, index_dir=corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    work = work_of(Scope(trace, clocks=trace.clocks))
    for key in KEYS:
        assert sum(by(trace, key).values()) == int(work.dur.sum())
    index, parents = trace.indexes[0], trace.indexes[0].column("slices.parent")
    categories = index.column("slices.category")
    for at, position in list(zip(work.op_at.tolist(), work.launched.tolist()))[:3000]:
        while position not in (-1, NONE) and index.categories[int(categories[position])] not in OPS:
            position = int(parents[position])
        assert at == (-1 if position == NONE else position)
    with run_query(
        trace, "select o.name, k.op, k.dur from kernels k left join ops o on o.id = k.op_id", "sqlite"
    ) as answer:
        times: Counter[str] = Counter()
        for joined, op, ns in answer.rows:
            assert joined == op
            times[op or ""] += ns
    named = {name: ns for name, ns in by(trace, "op").items() if not name.startswith("launch")}
    assert {name: ns for name, ns in times.items() if name} == named
    table = ops(Scope(trace, clocks=trace.clocks))
    linked = int(table.numbers("device_self_ns").sum())
    assert linked + sum(table.totals[key] for key in REST) == int(work.dur.sum())
    assert (table.numbers("device_busy_ns") >= 0).all()
    query = "select sum(device_self_ns), min(device_total_ns - device_self_ns) from ops"
    with run_query(trace, query, "sqlite") as answer:
        own, rest = next(answer.rows)
        assert (own or 0, (rest or 0) >= 0) == (sum(named.values()), True)


@needs_corpus
@pytest.mark.parametrize(
    ("path", "linked_ns", "busy_ns"),
    [
        # The others' figure leaves out 81 memsets (133,212 ns) that a correlation links and no flow.
        ("gpu/tl_mi300_resnet_train_rank0of8.json.gz", 56_100_855 + 133_212, 84_002_056),
        ("gpu/tl_h100_qwen_infer.json.gz", 31_905_473, 45_647_300),
    ],
)
def test_how_much_is_linked(path: str, linked_ns: int, busy_ns: int, corpus_cache: Path) -> None:
    """The busy time of linked work on two traces is what a tool of others said, and memsets."""
    work = work_of(Scope(open_trace(CORPUS / path, index_dir=corpus_cache)))
    assert (work.union(work.op_at >= 0).length, work.union().length) == (linked_ns, busy_ns)
