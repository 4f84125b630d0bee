"""Ranks summed up by host and by group of the layout, as far as the files tell; each rank step by step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete
from tracelane.core.base.errors import UsageError
from tracelane.core.tables.rank_tables import analyse_ranks
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import open_trace

RANKS = 8
LATE = 5
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
Groups = list[dict[str, Any]]


def written(
    folder: Path,
    groups: Groups | None = None,
    host_key: str = "",
    group: str = "0",
    rank_in_name: bool = False,
) -> Scope:
    """Write two steps of eight ranks on four hosts; rank 5 comes 100 µs after all others, twice in a step."""
    for rank in range(RANKS):
        events = []
        for step in range(2):
            begin = 10_000 * step
            events.append(complete(begin, 9000, f"ProfilerStep#{step}", "user_annotation", pid=50, tid=50))
            for number in range(2):
                end = begin + 2000 * (number + 1)
                wait = 200 if rank == LATE else 300
                arguments = {"Process Group Name": group, "correlation": 1 + 2 * step + number}
                call = complete(
                    end - 500, 5, "cudaLaunchKernel", "cuda_runtime", pid=50, tid=50, args=arguments
                )
                events.append(call)
                events.append(complete(end - wait, wait, REDUCE, "kernel", pid=0, tid=7, args=arguments))
        trace: dict[str, Any] = {"traceEvents": events}
        if not rank_in_name:
            trace["distributedInfo"] = {"rank": rank, "world_size": RANKS}
            if groups is not None:
                trace["distributedInfo"]["pg_config"] = groups
        if host_key:
            trace[host_key] = f"pod-{rank // 2}"
        name = f"run-TP-{rank % 2}-DP-{rank // 2}.json" if rank_in_name else f"rank{rank}.json"
        (folder / name).write_text(json.dumps(trace))
    opened = open_trace([folder], index_dir=folder / "index")
    return Scope(opened, clocks=opened.clocks)


def process_groups(tp: str, pp: str, dp: str, key: str = "pg_desc") -> Groups:
    """Return a layout of 2 × 2 × 2 as torch writes it: each group with all its ranks."""
    other = "pg_name" if key == "pg_desc" else "pg_desc"
    rows: Groups = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": RANKS, "ranks": list(range(RANKS))}]
    for name, stride in ((tp, 1), (pp, 2), (dp, 4)):
        for rank in range(RANKS):
            if not rank // stride % 2:
                rows.append({other: str(len(rows)), key: name, "pg_size": 2, "ranks": [rank, rank + stride]})
    return rows


TP, PP, DP = ("ranks 4-5", "ranks 5, 7", "ranks 1, 5")
"""The groups of rank 5, which the others wait for."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "key"),
    [
        (("mesh_tp", "mesh_pp", "mesh_dp"), "pg_desc"),
        (("mesh_tp", "pp", "mesh_fsdp"), "pg_desc"),
        (("mesh_tp", "mesh_pp", "mesh_dp_shard"), "pg_desc"),
        (
            ("TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP"),
            "pg_desc",
        ),
        (("tp:0", "pp:0", "dp:0"), "pg_name"),
        (("mesh_infer_tp", "mesh_infer_pp", "mesh_dp_shard_cp"), "pg_desc"),
        (("tensor_parallel", "pipeline_parallel", "data_parallel"), "pg_desc"),
        (
            (
                "TENSOR_MODEL_PARALLEL_GROUP_GLOO",
                "PIPELINE_MODEL_PARALLEL_GROUP",
                "DATA_PARALLEL_GROUP_WITH_CP_GLOO",
            ),
            "pg_desc",
        ),
    ],
)
def test_groups_of_the_layout(names: tuple[str, str, str], key: str, tmp_path: Path) -> None:
    """The group of each axis that holds the rank others wait for stands first, with what it cost."""
    scope = written(tmp_path, process_groups(*names, key=key))
    for axis, group in (("tp", TP), ("pp", PP), ("dp", DP)):
        tables = analyse_ranks(scope, group_by=axis)
        rows = list(tables["groups"].rows())
        assert (rows[0]["group"], rows[0]["worst"], rows[0]["ranks"]) == (group, LATE, 2)
        assert [row["kept_waiting_ns"] for row in rows] == [4 * 7 * 100_000, 0, 0, 0]
        assert len(rows) == 4
        of_rank = {row["rank"]: row["group"] for row in tables["ranks"].rows()}
        assert of_rank[LATE] == group and len(set(of_rank.values())) == 4
    scope.trace.close()


def test_the_plainest_name_is_the_group(tmp_path: Path) -> None:
    """Of Megatron's groups those of two axes, of experts and of embeddings are none of the axis."""
    names = ("TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP")
    groups = process_groups(*names)
    others = (
        "DATA_PARALLEL_GROUP_WITH_CP",
        "EXPERT_DATA_PARALLEL_GROUP",
        "TENSOR_AND_DATA_PARALLEL_GROUP",
        "EXPERT_TENSOR_PARALLEL_GROUP",
        "TENSOR_AND_CONTEXT_PARALLEL_GROUP",
        "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP",
        "EMBEDDING_GROUP",
    )
    groups = [{"pg_desc": name, "ranks": list(range(RANKS))} for name in others] + groups
    scope = written(tmp_path, groups)
    for axis, group in (("tp", TP), ("pp", PP), ("dp", DP)):
        assert next(analyse_ranks(scope, group_by=axis)["groups"].rows())["group"] == group
    scope.trace.close()


@pytest.mark.parametrize("shard", ["mesh_dp_shard", "mesh_fsdp"])
def test_shards_and_replicas_are_one_data_parallel_group(shard: str, tmp_path: Path) -> None:
    """Ranks that share parameters with some and repeat those of others are data parallel to all of them."""
    groups = process_groups("mesh_tp", "mesh_dp_replicate", shard)
    scope = written(tmp_path, groups)
    rows = list(analyse_ranks(scope, group_by="dp")["groups"].rows())
    assert {row["group"] for row in rows} == {"ranks 0, 2, 4, 6", "ranks 1, 3, 5, 7"}
    scope.trace.close()


def test_a_group_of_all_ranks_may_be_written_without_them(tmp_path: Path) -> None:
    """Torch writes an empty list of ranks for a group that holds the whole world."""
    scope = written(tmp_path, [{"pg_name": "1", "pg_desc": "mesh_dp", "ranks": []}])
    rows = list(analyse_ranks(scope, group_by="dp")["groups"].rows())
    assert [(row["group"], row["ranks"]) for row in rows] == [("ranks 0-7", RANKS)]
    scope.trace.close()


def test_groups_by_the_names_that_vllm_gives_its_workers(tmp_path: Path) -> None:
    """vLLM names the files of its workers by their places on all axes and their rank."""
    written(tmp_path, [])
    for rank in range(RANKS):
        name = f"dp{rank // 4}_pp{rank // 2 % 2}_tp{rank % 2}_dcp0_ep0_rank{rank}"
        (tmp_path / f"rank{rank}.json").rename(tmp_path / f"{name}.17819423313310384{rank}.pt.trace.json")
    opened = open_trace([tmp_path], index_dir=tmp_path / "new")
    for axis, group in (("tp", TP), ("pp", PP), ("dp", DP)):
        rows = list(analyse_ranks(Scope(opened, clocks=opened.clocks), group_by=axis)["groups"].rows())
        assert (rows[0]["group"], rows[0]["worst"], len(rows)) == (group, LATE, 4)
    opened.close()


def test_sizes_of_a_layout_are_no_places(tmp_path: Path) -> None:
    """Where all ranks have the same numbers in their names these say how large the layout is."""
    written(tmp_path, [])
    for rank in range(RANKS):
        (tmp_path / f"rank{rank}.json").rename(tmp_path / f"llama_dp2_pp2_tp2_rank{rank}.json")
    opened = open_trace([tmp_path], index_dir=tmp_path / "new")
    with pytest.raises(UsageError, match="--group-by tp: no file says which ranks"):
        analyse_ranks(Scope(opened, clocks=opened.clocks), group_by="tp")
    opened.close()


@pytest.mark.parametrize("key", ["host_name", "hostname"])
def test_groups_by_host(key: str, tmp_path: Path) -> None:
    """Hosts are known though the files name them behind their events."""
    scope = written(tmp_path, host_key=key)
    rows = list(analyse_ranks(scope, group_by="host", worst=2)["groups"].rows())
    assert [(row["group"], row["worst"]) for row in rows] == [("pod-2", LATE), ("pod-0", 0)]
    scope.trace.close()


def test_groups_by_the_names_of_files(tmp_path: Path) -> None:
    """Where files tell only their places, ranks that differ in the axis alone form a group."""
    scope = written(tmp_path, rank_in_name=True)
    for axis, group in (("tp", "ranks 4-5"), ("dp", "ranks 1, 3, 5, 7")):
        rows = list(analyse_ranks(scope, group_by=axis)["groups"].rows())
        assert (rows[0]["group"], rows[0]["worst"]) == (group, LATE)
    scope.trace.close()


def test_groups_by_the_process_group_of_collectives(tmp_path: Path) -> None:
    """A process group whose name says the axis holds the ranks that take part in its collectives."""
    scope = written(tmp_path, group="tp_0")
    rows = list(analyse_ranks(scope, group_by="tp")["groups"].rows())
    assert [(row["group"], row["ranks"]) for row in rows] == [("ranks 0-7", RANKS)]
    scope.trace.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "groups",
    [
        None,
        [],
        [{"pg_name": "0", "pg_desc": "undefined", "ranks": list(range(RANKS))}],
        [{"pg_desc": "mesh_tp", "ranks": "0-7"}, {"pg_desc": "mesh_tp", "ranks": [None, True, -1]}, 5],
        [{"pg_desc": "adapter", "ranks": [0, 1]}, {"pg_desc": "http", "ranks": [0, 1]}],
    ],
)
def test_a_layout_that_no_file_tells(groups: Groups | None, tmp_path: Path) -> None:
    """Nothing is guessed: one line says what is missing."""
    scope = written(tmp_path, groups)
    for axis in ("host", "tp", "pp", "dp"):
        with pytest.raises(UsageError, match=f"--group-by {axis}: no file says which ranks"):
            analyse_ranks(scope, group_by=axis)
    scope.trace.close()


def test_each_rank_step_by_step(tmp_path: Path) -> None:
    """A row per step and rank: what it waited and what it cost the others, which adds up to the whole."""
    scope = written(tmp_path)
    tables = analyse_ranks(scope, first="imbalance")
    assert tables.main.name == "imbalance"
    rows = list(tables.main.rows())
    assert [(row["step"], row["rank"]) for row in rows] == [(s, r) for s in "01" for r in range(RANKS)]
    for row in rows:
        late = row["rank"] == LATE
        assert row["waited_ns"] == (0 if late else 2 * 100_000)
        assert row["kept_waiting_ns"] == (2 * 7 * 100_000 if late else 0)
        assert row["own_ns"] == row["wall_ns"] - row["waited_ns"]  # type: ignore[operator]
    whole = {row["rank"]: row["kept_waiting_ns"] for row in tables["ranks"].rows()}
    assert whole[LATE] == sum(row["kept_waiting_ns"] for row in rows)  # type: ignore[misc]
    assert [row["awaited"] for row in tables["steps"].rows()] == [str(LATE)] * 2
    only = analyse_ranks(scope, first="imbalance", worst=1)
    assert {row["rank"] for row in only.main.rows()} == {LATE}
    assert [row["rank"] for row in only["ranks"].rows()] == [LATE]
    scope.trace.close()


@pytest.mark.slow
@needs_corpus
def test_ranks_made_of_a_real_one(tmp_path: Path) -> None:
    """Of a dozen ranks made of a real one, each with its own delay, the one without is named, by host too."""
    tool = CORPUS / "tools" / "make_ranks.py"
    if not tool.is_file():
        pytest.skip("no tool that makes ranks")
    folder = tmp_path / "ranks"
    subprocess.run([sys.executable, tool, "dlrm", "12", folder, CORPUS], check=True, timeout=600)
    trace = open_trace([folder], index_dir=tmp_path / "index")
    tables = analyse_ranks(Scope(trace, clocks=trace.clocks), group_by="host")
    assert next(tables["ranks"].rows())["rank"] == 4
    assert [(row["group"], row["worst"]) for row in tables["groups"].rows()] == [("node0", 4), ("node1", 8)]
    trace.close()
