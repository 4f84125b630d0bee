"""Two sides held against each other: tables row by row, summaries, op trees, several earlier runs, noise."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracelane
from tests.corpus import CORPUS, file, for_files, needs
from tests.events import Event, complete, index_of
from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.base.short_names import comparable_name
from tracelane.core.export.formats import pieces_of_csv, text_in_unit
from tracelane.core.export.summary_file import is_summary, read_summary, summary_json
from tracelane.core.tables.compare.compare import (
    by_kind,
    compare,
    compare_values,
    spread_of,
    student_limit,
    with_first,
)
from tracelane.core.tables.compare.diff import OTHERS, Difference, difference, median_of_runs
from tracelane.core.tables.compare.diff_trees import diff_trees
from tracelane.core.tables.compare.summary import Summary, summarise
from tracelane.core.tables.device.breakdown import device_table
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.frame.frame_columns import timed_work
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.ops import ops
from tracelane.core.tables.host.range_table import lane_table, range_table
from tracelane.core.tables.metric_groups import metrics
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.text.diff import compact

T = TableSchema(
    "t",
    "T",
    (
        Column("name", "name", "text"),
        Column("kind", "kind", "text"),
        Column("total_ns", "total", "ns"),
        Column("mean_ns", "mean", "ns", statistic=True),
        Column("share", "share", "share"),
    ),
    keys=("name",),
)


def _table(*rows: tuple[str, str, int, float, float], scope: str = "here") -> Table:
    data = {column.key: [row[at] for row in rows] for at, column in enumerate(T.columns)}
    numbers = {key: np.array(data[key]) for key in ("total_ns", "mean_ns", "share")}
    positions = np.arange(len(rows), dtype=np.uint32) + (100 if scope == "there" else 0)
    totals = {"total_ns": sum(row[2] for row in rows), "word": "x"}
    return Table.from_arrays(T, scope, {**data, **numbers}, totals=totals, positions=positions)


NOW = _table(("a", "x", 30, 15.0, 0.75), ("b", "x", 10, 10.0, 0.25), ("b", "y", 1, 1.0, 0.0))
PAST = _table(("b", "z", 8, 4.0, 0.5), ("c", "w", 8, 8.0, 0.5), scope="there")


def test_rows_find_each_other() -> None:
    """Rows meet by their keys, equal ones in turn; what only one side has stays, the baseline's last."""
    rows = list(compare(NOW, PAST).rows())
    assert [(row["name"], row["kind"], row["presence"]) for row in rows] == [
        ("a", "x", "new"), ("b", "x", "both"), ("b", "y", "new"), ("c", "w", "gone"),
    ]  # fmt: skip
    assert [(row["total_ns"], row["total_ns_delta"], row["total_ns_relative"]) for row in rows] == [
        (30, 30, None), (10, 2, 0.25), (1, 1, None), (0, -8, -1.0),
    ]  # fmt: skip
    assert [row["mean_ns_delta"] for row in rows] == [None, 6.0, None, None]
    assert [row["share_delta"] for row in rows] == [0.75, -0.25, 0.0, -0.5]
    assert "share_relative" not in rows[0]


def test_scope_totals_and_jumps() -> None:
    """The scope names both, totals change too, a row jumps to the baseline's slice where only that has it."""
    table = compare(NOW, PAST)
    assert table.scope == "here against there" and compare(NOW, PAST, scope="both").scope == "both"
    assert table.totals == {"total_ns": 41, "total_ns_delta": 25, "word": "x"}
    assert table.positions is not None and table.positions.tolist() == [0, 1, 2, 101]
    assert compare(replace(NOW, positions=None), PAST).positions is None


def test_changes_sort_by_size_and_show_their_sign() -> None:
    """|Δ| orders rows, none comes last either way, and a value that grew has a plus."""
    table = compare(NOW, PAST)
    assert table.order("total_ns_delta").tolist() == [0, 3, 1, 2]
    assert table.order("total_ns_relative").tolist() == [3, 1, 0, 2]
    assert table.order("total_ns_relative", descending=False).tolist() == [1, 3, 0, 2]
    column = table.column("total_ns_delta")
    assert [text_in_unit(column, table.value(row, column.key)) for row in (0, 3)] == ["+30 ns", "-8 ns"]
    assert next(pieces_of_csv(table)).split(",")[2:5] == [
        "total_ns", "total_ns_delta", "total_ns_relative",
    ]  # fmt: skip


def test_columns_and_rows_that_only_one_side_has() -> None:
    """A column that one table lacks counts as zero there; empty tables are no obstacle."""
    data = {key: value for key, value in PAST.data.items() if key != "total_ns"}
    less = replace(PAST, columns=tuple(c for c in T.columns if c.key != "total_ns"), data=data)
    assert [row["total_ns_delta"] for row in compare(NOW, less).rows()] == [30, 10, 1, 0]
    assert [row["total_ns_delta"] for row in compare(less, NOW).rows()] == [-10, 0, -30, -1]
    assert [row["presence"] for row in compare(_table(), PAST).rows()] == ["gone", "gone"]
    assert len(compare(_table(), _table())) == 0
    with pytest.raises(ValueError, match="of t cannot"):
        compare(NOW, replace(PAST, name="u"))


def test_all_against_the_first() -> None:
    """Steps against one step: every row's change is that to the baseline's first row, whatever its name."""
    assert [row["total_ns_delta"] for row in compare(NOW, PAST, with_first).rows()] == [22, 2, -7]
    assert [row["presence"] for row in compare(NOW, _table(), with_first).rows()] == ["new"] * 3


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Two halves of ops and kernels that differ in how often and how long."""
    ops_ = [complete(i * 10, 4 + i % 3, f"op{i % 4}", "cpu_op") for i in range(60)]
    work = [
        complete(i * 10 + 2, 3 + (i > 30) * 2, f"k{i % 3 + (i > 40)}", "kernel", pid=2, tid=7)
        for i in range(60)
    ]
    return Trace([index_of(ops_ + work, tmp_path / "index")])


def _tables(trace: Trace, span: tuple[int, int]) -> list[Table]:
    scope = Scope(trace, span)
    return [
        range_table(scope),
        lane_table(scope),
        ops(scope),
        kernels(scope),
        device_table(timed_work(scope)),
    ]


def test_every_table_against_itself_and_another_range(trace: Trace) -> None:
    """Of each table: nothing changed against itself; against another range each change is the difference
    that the two tables' own rows give, and there and back again are opposite.
    """
    early, late = _tables(trace, (0, 290_000)), _tables(trace, (290_000, 600_000))
    compared = 0
    for old, new in zip(early, late):
        same = compare(old, old)
        assert set(same.data["presence"]) == {"both"}
        changes = [column for column in same.columns if column.change]
        assert changes and not any(np.nan_to_num(same.data[column.key]).any() for column in changes)
        here, there = new.join(old)
        table, back = compare(new, old), compare(old, new)
        assert len(table) == len(back) == len({*_keys(old), *_keys(new)})
        for column in new.columns:
            if column.unit in ("text", "id", "object") or column.moment or column.key in new.key_columns:
                continue
            for row, (at, was) in enumerate(zip(here.tolist(), there.tolist())):
                change = table.value(row, f"{column.key}_delta")
                if at >= 0 and was >= 0:
                    now, past = new.value(at, column.key), old.value(was, column.key)
                    if isinstance(now, int | float) and isinstance(past, int | float):
                        compared += 1
                        assert change == pytest.approx(now - past)
            if not column.statistic:
                total = np.nansum(np.asarray(table.data[f"{column.key}_delta"], np.float64))
                other = np.nansum(np.asarray(back.data[f"{column.key}_delta"], np.float64))
                assert total == pytest.approx(-other)
    assert compared


def _keys(table: Table) -> list[tuple[object, ...]]:
    return [tuple(table.value(row, key) for key in table.key_columns) for row in range(len(table))]


def test_a_moment_has_no_change() -> None:
    """Where in time something lies is told as it is now, beside the changes of the other columns."""
    columns = (
        Column("name", "name", "text"),
        Column("at_ns", "at", "ns", moment=True),
        Column("n", "n", "count"),
    )
    now, past = (
        Table.from_arrays(
            TableSchema("t", "T", columns), "", {"name": ["a"], "at_ns": np.array([at]), "n": np.array([n])}
        )
        for at, n in ((70, 3), (20, 1))
    )
    (row,) = compare(now, past).rows()
    assert row == {"name": "a", "at_ns": 70, "n": 3, "n_delta": 2, "n_relative": 2.0, "presence": "both"}


def test_steps_meet_though_their_numbers_differ() -> None:
    """Rows of steps that only one side has meet by their names without numbers, in the order of these, where
    that is asked for; kernels with other numbers, other kinds of steps and a step too many do not.
    """
    schema = replace(T, keys=("name", "kind"))

    def table(*names: str) -> Table:
        rows = _table(*((name, "x", 10 * at + 10, 1.0, 0.0) for at, name in enumerate(names)))
        return replace(rows, keys=schema.keys)

    past = table("ProfilerStep#9", "ProfilerStep#10", "gemm_64", "iteration_3", "same", "batch 1")
    now = table("ProfilerStep#12", "same", "ProfilerStep#11", "gemm_128", "batch 2", "ProfilerStep#13")
    sides = {
        (row["name"], row["presence"]): row["total_ns"] - row["total_ns_delta"]
        for row in compare(now, past, by_kind("batch 7")).rows()
    }
    assert sides == {
        ("ProfilerStep#12", "both"): 20, ("same", "both"): 50, ("ProfilerStep#11", "both"): 10,
        ("gemm_128", "new"): 0, ("batch 2", "both"): 60, ("ProfilerStep#13", "new"): 0,
        ("gemm_64", "gone"): 30, ("iteration_3", "gone"): 40,
    }  # fmt: skip
    assert {row["presence"] for row in compare(now, past).rows() if row["name"] != "same"} == {"new", "gone"}
    of_batches = {row["name"]: row["presence"] for row in compare(now, past, by_kind()).rows()}
    assert of_batches["batch 2"] == "new" and of_batches["ProfilerStep#12"] == "both"


def test_names_meet_though_each_run_makes_part_of_them_up() -> None:
    """A kernel whose path ends otherwise in each run is the same one; one of another name is not."""
    folder = "/tmp/torchinductor_me/tmp{}/inductor-spyre/sdsc_fused_bmm_{}/bundle.mlir"
    past, now = (
        _table(*((folder.format(run, name), "x", ns, 1.0, 0.0) for name, ns in kernels))
        for run, kernels in (
            ("a8k2", (("silu_0_mqe4x1p9", 10), ("1_7p16dy4e", 20))),
            ("z3w7", (("silu_0_4w1ui68q", 15), ("2_obv61lbc", 25))),
        )
    )
    changes = [(row["total_ns_delta"], row["presence"]) for row in compare(now, past, by_kind()).rows()]
    assert changes == [(5, "both"), (25, "new"), (-20, "gone")]


HASH = "fxa1b2c3d4e5f6a7b8c9d0e1f2a3b4"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("ProfilerStep#12", "ProfilerStep#*"),
        ("iteration_7", "iteration_*"),
        ("granite.iteration.12.decode.3", "granite.iteration.*.decode.*"),
        (f"## Call CompiledFxGraph {HASH} ##", "## Call CompiledFxGraph * ##"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("/tmp/x/inductor-spyre/sdsc_fused_mm_mul_silu_0_434jgp19/bundle.mlir", "sdsc_fused_mm_mul_silu_0"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x16", None),
        ("aten::mm", "aten::mm"),
        ("fib (/srv/me/app.py:7)", "fib (app.py:7)"),
        ("load /tmp/tmpab12cd34/sdsc_fused_mm_0_434jgp19/bundle.mlir now", "load sdsc_fused_mm_0 now"),
        (
            "<built-in method dim of Tensor object at 0x7bc2e8857de0>",
            "<built-in method dim of Tensor object at 0x*>",
        ),
        ("_ZN58_GLOBAL__N__8dbd23a7_9_Sum_cu_c4a1d0c9_123sumEv", "_ZN58_GLOBAL__N__*_9_Sum_cu_*_123sumEv"),
        ("https://host/a/b", None),
        ("void foo<1/2/3>(int)", None),
        ("a/b/c", None),
    ],
)
def test_names_that_last(raw: str, name: str | None) -> None:
    """What is generated anew for each run goes, what tells kernels apart stays."""
    assert comparable_name(raw) == (raw if name is None else name)


def _side(folder: Path, title: str, kernels: dict[str, list[int]], step_us: int = 1000) -> Summary:
    """A step with an op of 100 µs and kernels of these µs, each launched for it."""
    events: list[Event] = [
        complete(0, step_us, "ProfilerStep#1", cat="user_annotation", pid=7, tid=7),
        complete(10, 100, "aten::mm", pid=7, tid=7),
    ]
    at = 20
    for name, times in kernels.items():
        for time in times:
            events.append(complete(at, time, name, cat="kernel", pid=0, tid=1))
            at += time
    return summarise(Scope(Trace([index_of(events, folder / title)])), title)


def _kernel_rows(diff: Difference) -> dict[str, tuple[Any, ...]]:
    return {
        str(row["name"]): (row["presence"], row["count_delta"], row["total_ns_delta"])
        for row in diff.tables["kernels"].rows()
    }


def test_changes(tmp_path: Path) -> None:
    """Rows are found again by name, new and gone ones are called so, the worst stands first."""
    before = _side(tmp_path, "a", {f"graph {HASH}": [10, 10], "same": [5], "gone": [7], "grown": [10]})
    now = _side(
        tmp_path, "b", {f"graph {HASH[:-2]}zz": [10, 10], "same": [5], "new": [3], "grown": [40, 10]}, 1100
    )
    diff = difference([before], now)
    assert _kernel_rows(diff) == {
        "grown": ("both", 1, 40_000),
        "gone": ("gone", -1, -7_000),
        "new": ("new", 1, 3_000),
    }
    rows = list(diff.tables["kernels"].rows())
    assert [row["name"] for row in rows] == ["grown", "new", "gone"]
    assert [row["contribution"] for row in rows] == pytest.approx([0.8, 0.06, -0.14])
    wall = diff.metrics["step.length.median"]
    assert (wall.before, wall.change, wall.relative) == (1_000_000, 100_000, pytest.approx(0.1))
    assert wall.exceeds(0.05)
    assert not wall.exceeds(0.2)
    assert not wall.exceeds(0.05, least_ns=200_000)
    assert not diff.metrics["ops.calls"].exceeds(0.0)
    assert [row["wall_ns_delta"] for row in diff.tables["steps"].rows()] == [100_000]
    assert list(difference([before], now, 5_000).tables["kernels"].data["name"]) == ["grown", "gone"]


def test_time_on_the_device_ranks_ops(tmp_path: Path) -> None:
    """Ops are ranked by what changed on host and device together; short names tell left-out rows apart."""
    kernels = {"aten::mul": "void f<4, g<A::Mul>>(int)", "aten::add": "void f<4, g<A::Add>>(int)"}

    def side(title: str, host_us: int, device_us: int) -> Summary:
        events: list[Event] = []
        for number, (name, kernel) in enumerate(kernels.items()):
            at = 1000 * number
            slower = name == "aten::add"
            events += [
                complete(
                    at, 100 + (0 if slower else host_us), name, pid=7, tid=7, args={"External id": number + 1}
                ),
                complete(
                    at + 10,
                    5,
                    "cudaLaunchKernel",
                    cat="cuda_runtime",
                    pid=7,
                    tid=7,
                    args={"correlation": number + 1},
                ),
                complete(
                    at + 50,
                    200 + (device_us if slower else 0),
                    kernel,
                    cat="kernel",
                    pid=0,
                    tid=1,
                    args={"correlation": number + 1},
                ),
            ]
        return summarise(Scope(Trace([index_of(events, tmp_path / title)])), title)

    diff = difference([side("a", 0, 0)], side("b", 3, 40))
    rows = [
        (row["name"], row["self_cpu_ns_delta"], row["self_device_ns_delta"])
        for row in diff.tables["ops"].rows()
    ]
    assert rows == [("aten::add", 0, 40_000), ("aten::mul", 3_000, 0)]
    assert diff.tables["ops"].data["contribution"].tolist() == pytest.approx([40 / 43, 3 / 43])
    (row,) = diff.tables["kernels"].rows()
    assert row["name"] == kernels["aten::add"]
    assert diff.tables["kernels"].short_forms["name"][row["name"]] == "f<4, g<Add>>"
    assert "Δ self device" in [column.title for column in compact("ops", diff.tables["ops"]).columns]


def test_a_row_is_a_metric(tmp_path: Path) -> None:
    """A kernel's numbers have names, by its short form too, in a median of runs, and judged like its row."""
    raw = "/tmp/x/inductor-spyre/sdsc_fused_mm_0_434jgp19/bundle.mlir"
    sides = [_side(tmp_path, f"run{n}", {raw: [100 + n, 300 + n]}) for n in range(4)]
    one = sides[0]
    for name in ("sdsc_fused_mm_0", raw, raw.replace("434jgp19", "zz9yy8xx")):
        metrics_of_row = [one.metric(f"kernel.{name}.{stat}") for stat in ("count", "total", "mean", "max")]
        assert [metric and metric.value for metric in metrics_of_row] == [2, 400_000, 200_000, 300_000]
    absent = one.metric("kernel.other.total")
    assert absent is not None and absent.value is None
    assert one.metric("kernel.sdsc_fused_mm_0.nothing") is None
    assert one.metric("nothing.sdsc_fused_mm_0.total") is None
    change = difference(sides[:3], sides[3]).metric("kernel.sdsc_fused_mm_0.total")
    assert change is not None and (change.before, change.metric.value, change.runs) == (402_000, 406_000, 3)
    read = tmp_path / "summary.json"
    read.write_text(summary_json(one), encoding="utf-8")
    assert read_summary(read).metric("kernel.sdsc_fused_mm_0.p95") == one.metric("kernel.sdsc_fused_mm_0.p95")


def test_a_row_that_one_side_cannot_have_is_no_metric(tmp_path: Path) -> None:
    """A summary that was made before there was a table has no numbers of its rows, on either side."""
    new = _side(tmp_path, "new", {"one": [100, 300]})
    text = json.loads(summary_json(new))
    del text["tables"]["modules"]
    (path := tmp_path / "old.json").write_text(json.dumps(text), encoding="utf-8")
    old = read_summary(path)
    for earlier, now in ((old, new), (new, old)):
        assert difference([earlier], now).metric("module.one.count") is None
    assert difference([new], new).metric("module.one.count") is not None


def test_against_itself(tmp_path: Path) -> None:
    """A trace has not changed from itself."""
    side = _side(tmp_path, "a", {"one": [1], "two": [2, 2]})
    diff = difference([side], side)
    assert [len(diff.tables[name]) for name in ("kernels", "ops", "categories")] == [0, 0, 0]
    assert all(not change.change for change in diff.metrics.values())


def test_shortened_side(tmp_path: Path) -> None:
    """What a summary left out is not called new unless it is larger than all of that; nothing gets lost."""
    names = {f"k{number}": [100 - 10 * number] for number in range(8)}
    before = _side(tmp_path, "a", names).shortened(3)
    now = _side(tmp_path, "b", {**names, "big": [90], "k7": [35]})
    rows = _kernel_rows(difference([before], now))
    assert rows == {"big": ("new", 1, 90_000), OTHERS: ("both", 0, 5_000)}
    again = _kernel_rows(difference([now], before))
    assert again == {"big": ("gone", -1, -90_000), OTHERS: ("both", 0, -5_000)}


@for_files(
    "name",
    [
        "gpu/hta_a100_resnet_ddp_nccl.json.gz",
        "aiu/mlp_trace.json",
        "cuda/gloo.pt.trace.json.gz",
        "cpu/torch_2.13_training.pt.trace.json.gz",
    ],
)
def test_summary_file(name: str, tmp_path: Path, corpus_cache: Path) -> None:
    """A summary read back compares as the one that was written, is small, and no trace is taken for one."""
    scope = Scope(open_trace(file(name), index_dir=corpus_cache))
    summary = summarise(scope, name)
    path = tmp_path / "baseline.json"
    path.write_text(summary_json(summary, 1000), encoding="utf-8")
    assert is_summary(path)
    assert not is_summary(file(name))
    diff = difference([read_summary(path)], summary)
    assert all(len(diff.tables[table]) == 0 for table in ("kernels", "ops", "categories"))
    assert all(not change.change for change in diff.metrics.values())
    assert dict(summary.metrics) == dict(read_summary(path).metrics) == metrics(scope)
    path.write_text(summary_json(summary), encoding="utf-8")
    assert path.stat().st_size < 40_000
    short = difference([read_summary(path)], summary)
    assert all(row["total_ns_delta"] == 0 for row in short.tables["kernels"].rows())


@pytest.mark.parametrize("table", ["metrics", "kernels", "left_out", "totals"])
@pytest.mark.parametrize("damage", [3, {}, {"rows": [["x"]]}, {"rows": [{"name": "x"}]}])
def test_damaged_summary(table: str, damage: Any, tmp_path: Path) -> None:
    """A summary that was edited is refused in words."""
    path = tmp_path / "baseline.json"
    whole = json.loads(summary_json(_side(tmp_path, "a", {"k": [1]})))
    whole["tables"][table] = damage
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(UnreadableError, match="summary"):
        read_summary(path)


@pytest.mark.parametrize("schema", [1, 99])
def test_a_summary_of_another_version(schema: int, tmp_path: Path) -> None:
    """It is said to be of that version, and what to do."""
    path = tmp_path / "baseline.json"
    path.write_text(
        json.dumps(json.loads(summary_json(_side(tmp_path, "a", {"k": [1]}))) | {"schema": schema}),
        encoding="utf-8",
    )
    with pytest.raises(UnreadableError, match=f"of version {schema}: create it again"):
        read_summary(path)


SPYRE = CORPUS / "aiu" / "spyre_torch_profiler"


def trace_of(path: Path, ops: list[tuple[str, float, list[tuple[str, float]]]], steps: int = 2) -> Path:
    """Write steps in which each op runs on the host for some µs and launches device work of some µs."""
    events: list[Event] = []
    for step in range(steps):
        at, free = 10_000.0 * step, 10_000.0 * step + 1000
        events.append(complete(at, 5000, f"ProfilerStep#{step}", cat="user_annotation", pid=7, tid=7))
        for name, us, works in ops:
            events.append(complete(at, us, name, pid=7, tid=7))
            for work, ns in works:
                number = len(events)
                call = {"correlation": number}
                cat = "gpu_memcpy" if work.startswith("Memcpy") else "kernel"
                events.append(
                    complete(at + 1, 1, "cudaLaunchKernel", cat="cuda_runtime", pid=7, tid=7, args=call)
                )
                events.append(complete(free, ns, work, cat=cat, pid=0, tid=7, args=call | {"stream": 7}))
                free += ns
                at += 2
            at += us
    path.write_text(json.dumps(events), encoding="utf-8")
    return path


@pytest.fixture
def eager(tmp_path: Path) -> Path:
    return trace_of(
        tmp_path / "eager.json",
        [("aten::linear", 40, [("gemm", 500)]), ("aten::relu", 34, [("relu", 120)])],
    )


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    return trace_of(
        tmp_path / "compiled.json",
        [
            ("aten::linear", 44, [("gemm", 500)]),
            ("Torch-Compiled Region: 0/0", 60, [("triton_poi_fused_relu_0", 27), ("Memcpy DtoD", 33)]),
        ],
    )


def test_one_sentence_says_it(eager: Path, compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the host and the kernels take in a step, and the copies that are new, stand on top."""
    sentence = "compiled: host 74 µs → 104 µs a step, kernels 620 µs → 560 µs, 1 new copy of 33 µs"
    assert main(["diff", str(eager), str(compiled), "--tree"]) == 0
    assert capsys.readouterr().out.startswith(sentence + "\n")
    assert main(["diff", str(eager), str(compiled), "--tree", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["notes"] == [sentence]
    table = tracelane.diff(eager, compiled, tree=True).main
    assert list(table.rows()) == whole["tables"]["tree"]["rows"]
    rows = {row["name"]: row for row in table.rows()}
    assert {name: row["presence"] for name, row in rows.items()} == {
        "ProfilerStep#*": "both",
        "aten::linear": "both",
        "aten::relu": "gone",
        "Torch-Compiled Region: 0/0": "new",
    }
    assert [row["name"] for row in table.rows()][-1] == "aten::relu", "what takes less comes last"
    assert rows["aten::linear"]["host_change_ns"] == 4_000 and not rows["aten::linear"]["device_change_ns"]
    assert rows["aten::relu"]["device_a_ns"] == 120_000 and rows["aten::relu"]["calls_a"] == 1


@needs(CORPUS)
@pytest.mark.parametrize(
    ("before", "now", "share", "worst"),
    [
        (
            "jamie_mlp__coordinate-remap",
            "jamie_mlp__upstream-main",
            0.047,
            "launch_kernel:sdsc_fused_bmm_mul_silu_0",
        ),
        ("small_bmm__branch-baseline", "small_bmm__planned-only", -0.014, ""),
        ("prefill_bmm__branch-baseline", "prefill_bmm__coordinate-remap", -0.046, ""),
        ("decode_bmm__branch-baseline", "decode_bmm__upstream-main", -0.003, ""),
    ],
)
def test_regressions_lie_where_they_are(
    before: str, now: str, share: float, worst: str, corpus_cache: Path
) -> None:
    """The kernels of a pair change by what is known, below the same paths, the worst path first."""
    paths = [next(SPYRE.glob(f"{name}*")) for name in (before, now)]
    a, b = (Scope(open_trace([path], index_dir=corpus_cache)) for path in paths)
    rows = list(diff_trees(a, b, (before, now)).rows())
    tops = [row for row in rows if row["parent"] == -1]
    spent = [sum(row[key] for row in tops) for key in ("device_a_ns", "device_b_ns")]
    assert spent[1] / spent[0] - 1 == pytest.approx(share, abs=0.0006)
    leaf = max(
        (row for row in rows if row["name"].startswith("launch_kernel")),
        key=lambda row: row["device_change_ns"],
    )
    assert not worst or leaf["name"] == worst


@for_files(
    "name",
    [
        "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
        "cuda/gloo.pt.trace.json.gz",
        "cuda/stacks.pt.trace.json.gz",
    ],
)
def test_nothing_is_lost_and_nothing_changes_against_itself(name: str, corpus_cache: Path) -> None:
    """Against nothing a tree holds all device work; against itself it has no row."""
    path = file(name)
    trace = open_trace([path], index_dir=corpus_cache)
    scope = Scope(trace)
    assert not len(diff_trees(scope, scope, ("a", "b")))
    empty = Scope(trace, range=(trace.span[0] - 2, trace.span[0] - 1))
    rows = list(diff_trees(empty, scope, ("a", "b")).rows())
    own = [row["device_b_ns"] for row in rows if row["parent"] == -1]
    assert all(row["presence"] == "new" for row in rows)
    work = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    whole = sum(
        round(e["dur"] * 1000) for e in work if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    assert sum(own) == whole


def test_only_two_sides(eager: Path, compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three sides have no tree, neither typed nor in Python."""
    assert main(["diff", str(eager), str(eager), str(compiled), "--tree"]) == 64
    assert "compares two traces" in capsys.readouterr().err
    with pytest.raises(tracelane.TracelaneError, match="two traces"):
        tracelane.diff([eager, eager], compiled, tree=True)


STEPS = 6


def run(folder: Path, kernels: dict[str, list[int]], title: str = "run") -> Summary:
    """Return the summary of steps of 1 ms, with a kernel of each name (µs by step) launched in a module."""
    events = []
    for step in range(max(len(times) for times in kernels.values())):
        at = 1000 * step
        events.append(complete(at, 1000, f"ProfilerStep#{step}", "user_annotation", pid=7, tid=7))
        module = complete(at + 10, 900, "nn.Module: Linear_0", "python_function", pid=7, tid=7)
        events.append(module)
        for number, (name, times) in enumerate(kernels.items()):
            begin = at + 20 + 200 * number
            ids = {"correlation": 1 + 100 * step + number}
            events.append(complete(begin, 50, f"aten::{name}", pid=7, tid=7))
            events.append(complete(begin, 5, "cudaLaunchKernel", "cuda_runtime", pid=7, tid=7, args=ids))
            if times[step]:
                kernel = complete(begin + 10, times[step], name, "kernel", pid=0, tid=number, args=ids)
                events.append(kernel)
    return summarise(Scope(Trace([index_of(events, folder)])), title)


def verdicts(result: Difference, table: str) -> dict[str, object]:
    """Return what is said of each row of a table by its name."""
    key = result.tables[table].columns[0].key
    return {str(row[key]): row["verdict"] for row in result.tables[table].rows()}


STEADY = [100, 101, 99, 100, 102, 98]
SLOWER = [time + 20 for time in STEADY]
WIDE = [100, 140, 70, 120, 60, 130]
WIDE_LATER = [time + 20 for time in (140, 70, 100, 130, 120, 60)]


def test_each_kernel_and_step_is_judged_by_its_steps(tmp_path: Path) -> None:
    """20 µs more are a regression of a steady kernel, and noise of one that varies by more than that."""
    before = run(tmp_path / "a", {"steady": STEADY, "wide": WIDE, "gone": STEADY, "once": [7, 0, 0, 0, 0, 0]})
    now = run(
        tmp_path / "b", {"steady": SLOWER, "wide": WIDE_LATER, "new": STEADY, "once": [9, 0, 0, 0, 0, 0]}
    )
    result = difference([before], now)
    assert verdicts(result, "kernels") == {
        "steady": "slower",
        "wide": "within the noise",
        "new": "slower",
        "gone": "faster",
        "once": "noise unknown",
    }
    errors = {row["name"]: row["error_ns"] for row in result.tables["kernels"].rows()}
    assert 0 < errors["steady"] < 5_000 < errors["wide"] < 50_000  # type: ignore[operator]
    assert result.metrics["kernels.time"].runs == 0
    rows = list(result.tables["kernels"].rows())
    assert rows[0]["name"] == "new" and rows[-1]["name"] == "gone"


def test_steps_are_judged_one_by_one(tmp_path: Path) -> None:
    """A single step of which the kernels take far longer than the others scatter is said to be slower."""
    before = run(tmp_path / "a", {"steady": STEADY})
    now = run(tmp_path / "b", {"steady": [*STEADY[:3], 190, *STEADY[4:]]})
    result = difference([before], now)
    assert verdicts(result, "steps") == {"4": "slower"} | {
        str(n): "within the noise" for n in (1, 2, 3, 5, 6)
    }
    assert result.metrics["kernels.time"].verdict == "within the noise"


def test_ops_and_modules_are_judged(tmp_path: Path) -> None:
    """Ops and modules have rows of their own; more calls in a module in the same time are no regression."""
    before = run(tmp_path / "a", {"steady": STEADY})
    now = run(tmp_path / "b", {"steady": STEADY, "more": STEADY})
    result = difference([before], now)
    assert verdicts(result, "ops")["aten::more"] == "slower"
    (row,) = result.tables["modules"].rows()
    assert (row["module"], row["count_delta"], row["self_cpu_ns_delta"]) == ("Linear_0", STEPS * 2, 0)
    assert row["verdict"] == "within the noise"


def test_the_median_of_runs_is_what_is_compared_with(tmp_path: Path) -> None:
    """Of five runs each number is the median, and how far they scatter is the noise."""
    runs = [run(tmp_path / str(n), {"k": [100 + 5 * n] * STEPS}, f"run {n}") for n in (2, 0, 4, 1, 3)]
    before = median_of_runs(runs)
    assert before.title == "median of 5 runs: run 2, run 0, run 4, run 1, run 3"
    assert before.metrics["kernels.time"].value == 110_000 * STEPS
    (row,) = before.tables["kernels"].rows()
    assert row["total_ns"] == 110_000 * STEPS
    for time, verdict in ((125, "within the noise"), (240, "slower"), (10, "faster")):
        result = difference(runs, run(tmp_path / f"now {time}", {"k": [time] * STEPS}))
        change = result.metrics["kernels.time"]
        assert (change.verdict, change.runs) == (verdict, 5)
        assert verdicts(result, "kernels") == {"k": verdict}
    one = difference(runs[:1], run(tmp_path / "same", {"k": [125] * STEPS}))
    assert one.metrics["kernels.time"].verdict == "slower"  # against the steps of one run alone
    with pytest.raises(UsageError):
        median_of_runs([])


def test_two_runs_are_too_few_for_their_own_noise(tmp_path: Path) -> None:
    """With two earlier runs the steps of both together tell the noise."""
    runs = [run(tmp_path / str(n), {"k": [time + n for time in STEADY]}) for n in range(2)]
    result = difference(runs, run(tmp_path / "now", {"k": SLOWER}))
    change = result.metrics["kernels.time"]
    assert change.noise is not None and (change.runs, change.noise.before.count) == (0, 2 * STEPS)
    assert change.verdict == "slower"


def test_shortened_runs_do_not_make_rows_new(tmp_path: Path) -> None:
    """What runs may have left out is not taken for 0, and their sums stay the whole."""
    names = {f"k{n}": [10 * (n + 1)] * STEPS for n in range(4)}
    runs = [run(tmp_path / str(n), names).shortened(2) for n in range(3)]
    result = difference(runs, run(tmp_path / "now", names))
    assert len(result.tables["kernels"]) == 0
    more = difference(runs, run(tmp_path / "more", {**names, "k0": [15] * STEPS}))
    assert [row["presence"] for row in more.tables["kernels"].rows()] == ["both"]


@needs(CORPUS)
def test_a_summary_keeps_the_scatter(tmp_path: Path, corpus_cache: Path) -> None:
    """Compared with a summary read from its file, rows are judged as against the trace itself."""
    folder = CORPUS / "aiu" / "spyre_torch_profiler"
    before, now = (
        summarise(Scope(open_trace(next(folder.glob(f"{name}*")), index_dir=corpus_cache)), name)
        for name in ("jamie_mlp__coordinate-remap", "jamie_mlp__upstream-main")
    )
    path = tmp_path / "baseline.json"
    path.write_text(summary_json(before, 1000), encoding="utf-8")
    expected = {"sdsc_fused_bmm_mul_silu_0": "slower", "sdsc_fused_bmm_1": "within the noise"}
    for side in (before, read_summary(path)):
        assert verdicts(difference([side], now), "kernels") == expected


def runs(seed: int, count: int, middle: float, deviation: float) -> list[float]:
    """Return normal values, every tenth or so far off, as first steps and collections make them."""
    pick = random.Random(seed)
    return [
        pick.gauss(middle, deviation) + (5 * deviation * pick.random() if pick.random() < 0.1 else 0)
        for _ in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "most"), [(3, 40), (4, 20), (8, 20), (30, 20), (200, 20)])
def test_unchanged_runs_are_within_the_noise(count: int, most: int) -> None:
    """Of 1,000 pairs of runs of one program 20 are called changed at most (of three steps 40)."""
    wrong = sum(
        compare_values(runs(2 * n, count, 100, 5), runs(2 * n + 1, count, 100, 5)).verdict
        != "within the noise"
        for n in range(1000)
    )
    assert wrong <= most


@pytest.mark.parametrize(("count", "change"), [(8, 12.0), (30, 6.0), (200, 3.0)])
def test_real_changes_are_found(count: int, change: float) -> None:
    """Changes well beyond the error of the median are told, with their sign."""
    verdicts = [
        compare_values(runs(2 * n, count, 100, 2), runs(2 * n + 1, count, 100 + sign * change, 2)).verdict
        for n, sign in ((n, 1 if n % 2 else -1) for n in range(200))
    ]
    right = sum(verdict == ("slower" if n % 2 else "faster") for n, verdict in enumerate(verdicts))
    assert right >= 190


def test_one_value_tells_no_noise() -> None:
    """Where neither side repeats the noise is unknown; where one does, it stands for both."""
    assert compare_values([100.0], [104.7]).verdict == "noise unknown"
    assert compare_values([100.0, 100.0], [104.7]).verdict == "noise unknown"
    assert compare_values([100.0], [100.1, 99.9, 100.0, 100.2]).verdict == "within the noise"
    assert compare_values([150.0], [100.1, 99.9, 100.0, 100.2]).verdict == "faster"


def test_one_step_that_is_off_does_not_move_the_median() -> None:
    """A first step ten times as long changes neither median nor verdict."""
    usual = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0]
    assert compare_values(usual, [1000.0, *usual]).verdict == "within the noise"
    assert spread_of([5.0, 5.0, 5.0, 5.0, 9.0]).deviation > 0
    assert spread_of([5.0, 5.0, 5.0]).deviation == 0
    assert compare_values([5.0] * 4, [5.0] * 4).verdict == "within the noise"


def test_few_values_need_more() -> None:
    """The limit falls from that of few degrees of freedom to three standard deviations."""
    limits = [student_limit(n) for n in range(2, 200)]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] > 9 and limits[-1] == 3.0
