"""Comparisons: what changed between two traces, by names that last, also against a shortened summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import Event, complete, index_of
from tracelane.core.base.errors import UnreadableError
from tracelane.core.base.short_names import comparable_name
from tracelane.core.export.summary_file import is_summary, read_summary, summary_json
from tracelane.core.tables.diff import OTHERS, Difference, difference
from tracelane.core.tables.metrics import metrics
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.summary import Summary, summarise
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.text.diff import compact

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
    wall = diff.metrics["step.wall.median"]
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
    read.write_text(summary_json(one))
    assert read_summary(read).metric("kernel.sdsc_fused_mm_0.p95") == one.metric("kernel.sdsc_fused_mm_0.p95")


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


@needs_corpus
@pytest.mark.parametrize("name", ["gpu/hta_a100_resnet_ddp_nccl.json.gz", "aiu/mlp_trace.json"])
def test_summary_file(name: str, tmp_path: Path, corpus_cache: Path) -> None:
    """A summary read back compares as the one that was written, is small, and no trace is taken for one."""
    scope = Scope(open_trace(CORPUS / name, index_dir=corpus_cache))
    summary = summarise(scope, name)
    path = tmp_path / "baseline.json"
    path.write_text(summary_json(summary, 1000))
    assert is_summary(path)
    assert not is_summary(CORPUS / name)
    diff = difference([read_summary(path)], summary)
    assert all(len(diff.tables[table]) == 0 for table in ("kernels", "ops", "categories"))
    assert all(not change.change for change in diff.metrics.values())
    assert dict(summary.metrics) == dict(read_summary(path).metrics) == metrics(scope)
    path.write_text(summary_json(summary))
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
    path.write_text(json.dumps(whole))
    with pytest.raises(UnreadableError, match="summary"):
        read_summary(path)


@pytest.mark.parametrize("schema", [1, 99])
def test_a_summary_of_another_version(schema: int, tmp_path: Path) -> None:
    """It is said to be of that version, and what to do."""
    path = tmp_path / "baseline.json"
    path.write_text(
        json.dumps(json.loads(summary_json(_side(tmp_path, "a", {"k": [1]}))) | {"schema": schema})
    )
    with pytest.raises(UnreadableError, match=f"of version {schema}: create it again"):
        read_summary(path)
