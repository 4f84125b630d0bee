"""Ranks side by side: what each did, by host and group, who is waited for, what collectives move how fast."""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.test_flex import jobs_of_ranks
from tests.corpus import CORPUS, GOLDENS, needs
from tests.events import complete
from tests.json_tables import analysed
from tracelane.core.base.arrays import I64
from tracelane.core.base.errors import UsageError
from tracelane.core.query.filter import parse
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.peers.messages import bus_factor
from tracelane.core.tables.ranks.rank_tables import (
    analyse_ranks,
    collectives_table,
    heat_table,
    rank_steps_table,
    ranks_table,
)
from tracelane.core.tables.ranks.ranks import RankInStep, Ranks, ranks
from tracelane.core.tables.steps.step_sets import LOADERS
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.alignment import fitted_offsets
from tracelane.core.trace.collectives import Attendance, Collectives, match, medians
from tracelane.core.trace.hit_search import matches

DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
GLOO = CORPUS / "multirank" / "torch213_ddp_gloo_2ranks"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
US = 1000


def kernel(start: float, us: float, name: str) -> dict[str, Any]:
    return complete(start, us, name, "kernel", pid=0, tid=7)


def ranks_of(folder: Path, *of_rank: list[dict[str, Any]], world: int | None = None) -> Ranks:
    for rank, events in enumerate(of_rank):
        info = {"rank": rank, "world_size": world or len(of_rank)}
        (folder / f"rank{rank}.json").write_text(
            json.dumps({"distributedInfo": info, "host_name": f"pod-{rank}", "traceEvents": events}),
            encoding="utf-8",
        )
    return of_trace(folder)


def of_trace(path: Path, **more: Any) -> Ranks:
    trace = open_trace(path, **more)
    return ranks(Scope(trace, clocks=trace.clocks))


def two_steps(late: float) -> list[dict[str, Any]]:
    """Return two steps of 1 ms, each with compute of 300 µs + `late` and a collective that ends at 900."""
    events = []
    for step in (0, 1):
        at = 1000.0 * step
        events += [
            complete(at, 1000, f"ProfilerStep#{step}", "user_annotation"),
            kernel(at + 100, 300 + late, "gemm"),
            kernel(at + 400 + late, 500 - late, REDUCE),
        ]
    return events


def test_who_waits_for_whom(tmp_path: Path) -> None:
    """The rank that computes longer comes last, is the slowest of each step and keeps the other waiting."""
    report = ranks_of(tmp_path, two_steps(0), two_steps(150), world=3)
    one, other = report.ranks
    assert (one.rank, one.host, one.steps, one.step_ns, one.kernels) == (0, "pod-0", 2, 1000 * US, 4)
    assert (one.compute_ns, one.comm_ns, one.idle_ns) == (600 * US, 1000 * US, 200 * US)
    assert (other.compute_ns, other.comm_ns, other.idle_ns) == (900 * US, 700 * US, 200 * US)
    assert (one.last, one.waited_ns, one.kept_waiting_ns) == (0, 300 * US, 0)
    assert (other.last, other.waited_ns, other.kept_waiting_ns) == (2, 0, 300 * US)
    keys = ("step", "slowest", "slowest_own_ns", "fastest_own_ns")
    assert [tuple(row[key] for key in keys) for row in rank_steps_table(report).rows()] == [
        ("0", 1, 1000 * US, 850 * US),
        ("1", 1, 1000 * US, 850 * US),
    ]
    assert report.missing == (2,) and "missing: rank 2" in report.notes


def test_rows_lead_to_their_slices(tmp_path: Path) -> None:
    """A row leads to where a rank waited longest, to who came last, to the slowest rank's step."""
    report = ranks_of(tmp_path, two_steps(0), two_steps(150))
    trace = open_trace(tmp_path)
    for table, names, sources in (
        (ranks_table(report), ["ProfilerStep#0", REDUCE], [1, 0]),
        (collectives_table(report, 0), [REDUCE, REDUCE], [1, 1]),
        (rank_steps_table(report), ["ProfilerStep#0", "ProfilerStep#1"], [1, 1]),
    ):
        assert table.positions is not None and table.sources is not None
        assert table.sources.tolist() == sources
        indexes = [trace.indexes[source] for source in sources]
        assert [
            index.string(int(index.column("slices.name")[at]))
            for index, at in zip(indexes, table.positions.tolist())
        ] == names


def test_nobody_is_last_where_all_come_at_once(tmp_path: Path) -> None:
    """Ranks that begin together wait for nobody; a single file has a row without collectives."""
    report = ranks_of(tmp_path, two_steps(0), two_steps(0))
    assert [(rank.last, rank.waited_ns) for rank in report.ranks] == [(0, 0), (0, 0)]
    assert [one["last_rank"] for one in collectives_table(report, 0).rows()] == [None, None]
    alone = of_trace(tmp_path / "rank1.json")
    assert [(rank.rank, rank.collectives, rank.kernels) for rank in alone.ranks] == [(1, 0, 4)]
    assert len(alone.skew) == 0 and alone.missing == ()


def waiting_by_hand(result: Ranks, span: tuple[int, int]) -> tuple[dict[int, int], dict[int, int]]:
    """Return for how many ns of a span each rank waits in some collective, and how long the others wait for
    it in those that it alone comes last to, each ns of a rank once; ns by ns.
    """
    skew = result.skew
    waited: dict[int, set[int]] = {source: set() for source in skew.sources}
    pairs: dict[tuple[int, int], set[int]] = {}
    for number in range(len(skew)):
        entries = np.flatnonzero(skew.who.collective == number).tolist()
        begun = sorted((int(skew.starts[at]), int(skew.who.rank[at])) for at in entries)
        for at in entries:
            until = min(begun[-1][0], int(skew.ends[at]), span[1])
            ns = set(range(max(int(skew.starts[at]), span[0]), until))
            waited[skew.sources[skew.who.rank[at]]] |= ns
            if begun[-2][0] < begun[-1][0]:
                pairs.setdefault((begun[-1][1], int(skew.who.rank[at])), set()).update(ns)
    caused = dict.fromkeys(skew.sources, 0)
    for (guilty, _), ns in pairs.items():
        caused[skew.sources[guilty]] += len(ns)
    return {source: len(ns) for source, ns in waited.items()}, caused


@pytest.mark.parametrize("seed", range(12))
def test_waiting_is_counted_once_and_in_the_range(seed: int, tmp_path: Path) -> None:
    """A rank that waits in several collectives at once, as with gloo, waits each ns once, and the one that it
    waits for is charged with it once; of a range, also where it cuts collectives, what lies in it counts.
    """
    random = np.random.default_rng(seed)
    begun = [0.2 * number for number in range(6)]  # µs
    files = [
        [
            complete(at + late, 2 - late, f"gloo:all_reduce {number}", "user_annotation", tid=number)
            for number, (at, late) in enumerate(zip(begun, random.choice([0.0, 0.1, 0.35, 0.9], 6)))
        ]
        for _ in range(3)
    ]
    ranks_of(tmp_path, *files)
    trace = open_trace(tmp_path)
    whole = ranks(Scope(trace))
    low, high = trace.opening_span
    for span in ((low, high), (low + 300, low + 900), (low + 1100, high - 700)):
        result = ranks(Scope(trace, span))
        waited, caused = waiting_by_hand(whole, span)
        assert {rank.source: rank.waited_ns for rank in result.ranks} == waited
        assert {rank.source: rank.kept_waiting_ns for rank in result.ranks} == caused
    assert any(rank.kept_waiting_ns for rank in whole.ranks)


def test_a_range_counts_what_reaches_into_it(tmp_path: Path) -> None:
    """The second step's range has its collective and its step only."""
    ranks_of(tmp_path, two_steps(0), two_steps(150))
    trace = open_trace(tmp_path)
    report = ranks(Scope(trace, (1000 * US, 2000 * US), clocks=trace.clocks))
    assert len(report.skew) == 1 and [rank.steps for rank in report.ranks] == [1, 1]
    assert [rank.compute_ns for rank in report.ranks] == [300 * US, 450 * US]


def test_a_filter_and_lanes_choose_among_collectives(tmp_path: Path) -> None:
    """What a filter or the lanes leave out is in no row; a collective needs two ranks that still have it."""
    late = [kernel(2000, 50, "ncclDevKernel_AllGather(x)"), complete(2000, 50, "host")]
    ranks_of(tmp_path, [*two_steps(0), *late], [*two_steps(150), *late])
    trace = open_trace(tmp_path)
    whole = Scope(trace, clocks=trace.clocks)
    assert len(ranks(whole).skew) == 3
    chosen = replace(whole, where=matches(trace, parse("AllReduce"), trace.clocks).where)
    assert [row["name"] for row in collectives_table(ranks(chosen), 0).rows()] == ["all_reduce"] * 2
    lanes = {lane.index for lane in trace.lanes if lane.title == "thread 7" and lane.source == 0}
    assert len(lanes) == 1
    assert len(ranks(replace(whole, lanes=lanes)).skew) == 0


def test_collectives_follow_the_clock_of_their_device(tmp_path: Path) -> None:
    """A device moved by as much as its rank came early to the collectives keeps nobody waiting."""
    ranks_of(tmp_path, two_steps(0), two_steps(150))
    trace = open_trace(tmp_path)
    moved = ranks(Scope(trace, clocks=trace.clocks.shifted((0, "0"), 150 * US)))
    assert [(rank.last, rank.waited_ns) for rank in moved.ranks] == [(0, 0), (0, 0)]


@needs(CORPUS)
@pytest.mark.slow
def test_skew_of_real_ranks_is_that_of_their_files(corpus_cache: Path) -> None:
    """Of the DLRM collectives the last rank and the spread of starts are those of the events in the files."""
    report = of_trace(DLRM, index_dir=corpus_cache)
    offsets = [rank.clock.offset_ns for rank in report.ranks]
    starts: dict[str, list[list[int]]] = {"all_reduce": [], "all_to_all": []}
    for path, offset in zip(sorted(DLRM.iterdir()), offsets):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        for name, word in (("all_reduce", "AllReduce"), ("all_to_all", "SendRecv")):
            of_kind = [e["ts"] for e in events if e.get("cat") == "kernel" and word in e["name"]]
            starts[name].append([ts * 1000 + offset for ts in sorted(of_kind)])
    expected = {}
    for name, of_rank in starts.items():
        for number, began in enumerate(zip(*of_rank)):
            expected[name, number] = (max(began) - min(began), str(began.index(max(began))))
    table = collectives_table(report, 0)
    rows = list(table.rows())
    assert {(row["name"], row["number"]): (row["spread_ns"], row["last"]) for row in rows} == expected
    assert [rank.last for rank in report.ranks] == [
        sum(last == str(rank) for _, last in expected.values()) for rank in range(4)
    ]


@needs(CORPUS)
@pytest.mark.parametrize("folder", [DLRM, GLOO])
def test_the_object_says_all_of_it(folder: Path, corpus_cache: Path) -> None:
    """JSON has offset and residual of each rank, and each rank's times in each collective."""
    trace = open_trace(folder, index_dir=corpus_cache)
    whole = analysed("ranks", Scope(trace, clocks=trace.clocks))
    assert len(whole["ranks"]) == len(list(folder.iterdir()))
    for rank in whole["ranks"]:
        assert {"rank", "host", "path", "offset_ns", "residual_ns", "step_ns"} <= rank.keys()
    residual = {rank["rank"]: rank["residual_ns"] for rank in whole["ranks"]}
    for one in whole["collectives"]:
        spread = max(one["starts_ns"]) - min(one["starts_ns"])
        assert one["spread_ns"] == spread and one["last_rank"] in one["ranks"]
        if one["name"] in ("all_reduce", "send_recv"):
            assert one["end_spread_ns"] <= max(residual.values())


RANKS = 8
LATE = 5
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
        (folder / name).write_text(json.dumps(trace), encoding="utf-8")
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


@needs(CORPUS)
@pytest.mark.slow
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


RULE = "rank-imbalance"


def written_imbalance(folder: Path, late: int | None, count: int = 8, loading: Sequence[int] = ()) -> Trace:
    """Ranks with five collectives that end together; all but the late one begin to wait earlier. Those of
    `loading` wait for input 240 µs before each.
    """
    for rank in range(count):
        events = [complete(0, 9000, "ProfilerStep#1", "user_annotation", pid=5)]
        for number in range(5):
            end = 1500 * (number + 1)
            length = 300 if rank == late else 700 + 10 * rank if late is not None else 300 + rank
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
            arguments = {"stream": 7, "device": 0, "Process Group Name": "0"}
            events.append(complete(end - length, length, name, "kernel", pid=0, tid=7, args=arguments))
            events.append(complete(end - 1400, 400, "gemm", "kernel", pid=0, tid=7, args={"stream": 7}))
            if rank in loading:
                events.append(complete(end - 960, 240, f"{LOADERS}#X.__next__", "user_annotation", pid=5))
        info = {"rank": rank, "world_size": count, "backend": "nccl"}
        text = json.dumps({"distributedInfo": info, "traceEvents": events})
        (folder / f"rank{rank}.1700000000000.pt.trace.json").write_text(text, encoding="utf-8")
    return open_trace([folder], index_dir=folder / "index")


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 3, 7])
def test_the_culprit_is_named(late: int, tmp_path: Path) -> None:
    """The rank that comes last is the finding's and the first of the table, not one of those that wait."""
    trace = written_imbalance(tmp_path, late)
    (finding,) = [one for one in findings(Scope(trace)).findings if one.rule == RULE]
    assert trace.rank(finding.sources[0]) == late
    assert finding.text.startswith(f"Rank {late} is last in 5 of 5 collectives")
    waited = 5 * sum(400 + 10 * rank for rank in range(8) if rank != late) * 1000
    rows = list(ranks_table(ranks(Scope(trace))).rows())
    assert (rows[0]["rank"], rows[0]["kept_waiting_ns"]) == (late, waited)
    assert [row["kept_waiting_ns"] for row in rows] == [waited, *([0] * 7)]
    trace.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loading", "cause"),
    [((), ""), (range(8), ""), ([2], "dataloader"), ([1], "")],
    ids=["no loader", "all alike", "the late one", "another one"],
)
def test_what_all_ranks_have_alike_makes_none_of_them_late(
    loading: Sequence[int], cause: str, tmp_path: Path
) -> None:
    """The late rank is explained by what it has more of than the others; `ranks` names it, too."""
    trace = written_imbalance(tmp_path, 2, loading=loading)
    (finding,) = [one for one in findings(Scope(trace)).findings if one.rule == RULE]
    assert (trace.rank(finding.sources[0]), finding.caused_by) == (2, cause)
    assert analyse_ranks(Scope(trace))["ranks"].totals["straggler"] == 2
    trace.close()


def test_ranks_that_come_together_are_no_finding(tmp_path: Path) -> None:
    """Where ranks come within a few µs of each other nobody is blamed."""
    trace = written_imbalance(tmp_path, None)
    assert RULE not in {one.rule for one in findings(Scope(trace)).findings}
    trace.close()


def with_steps(result: Ranks, numbers: int, steps: int, cost: Callable[[int, int], int]) -> Ranks:
    """Return as many ranks with as many steps, in which the others wait for a rank as long as `cost` says."""
    times = [replace(result.ranks[0], source=number, rank=number + 1000) for number in range(numbers)]
    in_steps = [
        RankInStep(number, str(step), 1, 900, 800, 100, cost(number, step), 10 * step)
        for number in range(numbers)
        for step in range(steps)
    ]
    return replace(result, ranks=tuple(times), in_steps=tuple(in_steps))


@pytest.mark.slow
def test_the_heat_map_shows_who_is_waited_for_when(tmp_path: Path) -> None:
    """A character per rank and step; of many that share a place the worst, and which it is."""
    trace = written_imbalance(tmp_path, 3, 2)
    result = ranks(Scope(trace))
    few = heat_table(with_steps(result, 3, 4, lambda number, step: 90 * (number == 1 and step > 1) + number))
    rows = list(few.rows())
    assert [row["heat"] for row in rows] == ["....", "1199", "1111"] and few.is_drawn
    assert [(row["ranks"], row["rank"], row["step"], row["kept_waiting_ns"]) for row in rows] == [
        ("1000", 1000, "0", 0),
        ("1001", 1001, "2", 91),
        ("1002", 1002, "0", 2),
    ]
    assert few.jump(1) == (1, 20)
    many = heat_table(with_steps(result, 1024, 100, lambda number, step: int((number, step) == (341, 60))))
    lines = {row["ranks"]: row["heat"] for row in many.rows()}
    assert len(lines) == 30 and {len(line) for line in lines.values()} == {48}
    ((label, line),) = [(label, line) for label, line in lines.items() if "9" in line]
    low, high = map(int, label.split("-"))
    assert low <= 1341 <= high and line.index("9") == 60 * 48 // 100 and line.count(".") == 47
    alone = replace(result, in_steps=())
    assert len(heat_table(alone)) == 0 and not heat_table(alone).notes
    trace.close()


@needs(CORPUS)
def test_a_real_capture(corpus_cache: Path) -> None:
    """Of four ranks of a recommendation model the others wait 16.4 ms for rank 2."""
    trace = open_trace([CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    (finding,) = [one for one in findings(scope).findings if one.rule == RULE]
    assert finding.of_part == "rank 2" and "16.4 ms" in finding.text
    assert next(ranks_table(ranks(scope)).rows())["rank"] == 2
    trace.close()


CELLS = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 4)), st.integers(-(10**6), 10**6), min_size=1
)


def table_of(cells: dict[tuple[int, int], int]) -> tuple[Attendance, I64]:
    """Return cells as a table whose collectives are numbered without holes, and their values."""
    rows = sorted({row for row, _ in cells})
    keys = sorted(cells)
    collective = np.array([rows.index(row) for row, _ in keys], np.int64)
    who = Attendance(len(rows), 5, collective, np.array([rank for _, rank in keys], np.int64))
    return who, np.array([cells[key] for key in keys], np.int64)


@given(CELLS)
def test_reductions_are_those_of_a_plain_table(cells: dict[tuple[int, int], int]) -> None:
    """Least, most, sum and the entries of a rank, against dictionaries."""
    who, values = table_of(cells)
    plain = [
        [value for key, value in sorted(cells.items()) if key[0] == row]
        for row in sorted({k[0] for k in cells})
    ]
    assert who.least(values).tolist() == [min(row) for row in plain]
    assert who.most(values).tolist() == [max(row) for row in plain]
    assert who.sums(values).tolist() == [sum(row) for row in plain]
    for rank in range(5):
        assert sorted(values[who.of_rank(rank)].tolist()) == sorted(
            v for (_, r), v in cells.items() if r == rank
        )
    middles, counts = medians(who.collective, values, who.collectives)
    assert counts.tolist() == [len(row) for row in plain]
    assert all(abs(m - statistics.median(row)) < 1 for m, row in zip(middles.tolist(), plain))


@pytest.mark.slow
@given(CELLS, st.sets(st.integers(0, 40)))
def test_taken_collectives_have_two_ranks_at_least(cells: dict[tuple[int, int], int], out: set[int]) -> None:
    """Entries that are left alone go with those that were left out."""
    who, values = table_of(cells)
    mask = np.array([at not in out for at in range(len(who))], np.bool_)
    subset, left = who.take(mask)
    assert all(subset.sizes > 1)
    by_row: dict[int, list[int]] = {}
    for at in np.flatnonzero(mask).tolist():
        by_row.setdefault(int(who.collective[at]), []).append(int(values[at]))
    assert values[left].tolist() == [value for row in by_row.values() if len(row) > 1 for value in row]


def pipeline(ranks: int) -> list[Collectives]:
    """Return ranks in a row, each sharing ten collectives with the next, rank n's clock n µs ahead."""
    by_rank = []
    for rank in range(ranks):
        groups = [(f"pp_{at}", "all_reduce") for at in (rank - 1, rank) if 0 <= at < ranks - 1]
        family = np.repeat(np.arange(len(groups), dtype=np.int64), 10)
        number = np.tile(np.arange(10, dtype=np.int64), len(groups))
        ends = 10**6 * (1 + number) + 1000 * rank
        by_rank.append(
            Collectives(
                np.arange(len(ends), dtype=np.int64),
                ends - 500,
                ends,
                tuple(groups),
                family,
                number,
                (True,) * len(groups),
            )
        )
    return by_rank


@pytest.mark.parametrize("ranks", [2, 7, 1024])
def test_ranks_in_a_row_are_aligned_over_each_other(ranks: int) -> None:
    """Every rank is reached over the one before it; a table of 1,024 ranks by 10,230 collectives would take
    84 MB a column.
    """
    matched = match(pipeline(ranks))
    assert len(matched) == 10 * (ranks - 1) and len(matched.who) == 2 * len(matched)
    clocks = fitted_offsets(matched, [0] * ranks)
    assert [clock.offset_ns for clock in clocks] == [-1000 * rank for rank in range(ranks)]
    assert {clock.residual_ns for clock in clocks} == {0}


MI300 = CORPUS / "gpu" / "tl_mi300_resnet_train_rank0of8.json.gz"
A100 = CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz"
KEYS = ("name", "dtype", "bytes", "group_size", "pure_ns", "algbw", "busbw", "wait_ns", "ranks_missing")


def reference_of(path: Path, key: str) -> Any:
    name = path.name.partition(".")[0]
    return json.loads((GOLDENS / "efficiency" / f"{name}.json").read_text(encoding="utf-8"))[key]


def collectives(path: Path, **more: Any) -> list[dict[str, Any]]:
    trace = open_trace([path], **more)
    rows = list(analyse_ranks(Scope(trace, clocks=trace.clocks))["collectives"].rows())
    trace.close()
    return rows


@needs(CORPUS, GOLDENS)
def test_one_rank_of_eight_by_its_kernels(corpus_cache: Path) -> None:
    """The all-reduces of a single rank are those of the reference numbers, marked as one rank of eight."""
    reference = reference_of(MI300, "collectives")["per_collective"]
    rows = [row for row in collectives(MI300, index_dir=corpus_cache) if row["name"] == "all_reduce"]
    assert len(rows) == len(reference) == 6
    for row, one in zip(rows, reference):
        size, ns = int(one["In msg nelems"]) * 2, round(one["comm_latency"] * 1000)
        values = ("all_reduce", "BFloat16", size, 8, ns, size / ns, size / ns * 1.75, None, 7)
        assert tuple(row[key] for key in KEYS) == pytest.approx(values)
    assert (rows[0]["bytes"], rows[0]["pure_ns"]) == (5_746_640, 6_911_678)
    assert (round(rows[0]["algbw"], 4), round(rows[0]["busbw"], 4)) == (0.8314, 1.4550)


@needs(CORPUS, GOLDENS)
def test_several_ranks_by_their_annotations(corpus_cache: Path) -> None:
    """Kernels without sizes have those of the annotation around their launch, as in the reference numbers."""
    reference = reference_of(DLRM, "collectives_derived")["rows"]
    rows = collectives(DLRM, index_dir=corpus_cache)
    assert [row["ranks"] for row in rows] == [[0, 1, 2, 3]] * len(reference)
    for row, one in zip(rows, reference):
        assert [f"nccl:{row['name']}"] == one["collective"]
        assert (row["dtype"], row["bytes"]) == (one["dtype"], max(one["bytes_in_per_rank"]))
        assert (row["pure_ns"], row["group_size"], row["ranks_missing"]) == (one["min_dur_ns"], 8, 4)
        assert row["algbw"] == pytest.approx(one["algbw_GB_per_s_min_dur"], abs=1e-6)
        assert row["busbw"] == pytest.approx(one["busbw_GB_per_s_min_dur"], abs=1e-6)
        starts, ends = row["starts_ns"], row["ends_ns"]
        assert row["wait_ns"] == sum(min(max(starts), end) - start for start, end in zip(starts, ends))


@needs(CORPUS)
@pytest.mark.parametrize(
    ("path", "row"),
    [
        (A100, ("broadcast", "Float", 53120 * 4, 2, 30_975, 212480 / 30975, 212480 / 30975, 1)),
        (GLOO, ("all_reduce", "float", 134154 * 4, 2, 414_770, 536616 / 414770, 536616 / 414770, 0)),
    ],
)
def test_first_collectives(path: Path, row: tuple[Any, ...], corpus_cache: Path) -> None:
    """Kernels of a rank of two by their arguments, and calls of the host by their own."""
    first = collectives(path, index_dir=corpus_cache)[0]
    assert tuple(first[key] for key in KEYS if key != "wait_ns") == pytest.approx(row)


@pytest.mark.parametrize("joined", [False, True])
def test_sizes_in_names(joined: bool, tmp_path: Path) -> None:
    """In a FLEX job trace names say what went over the wire: what is sent or received, whichever is more; of
    ranks in one file each counts its own.
    """
    folder = jobs_of_ranks(tmp_path / "jobs", {3: 0, 5: 60})
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8").replace("SenRdmaSend_1 ", "SenRdmaSend_1 [4096B] ")
        path.write_text(text.replace("SenRdmaRecv_0 ", "SenRdmaRecv_0 [512B] "), encoding="utf-8")
    if joined:
        events = [
            event
            for path in sorted(folder.iterdir())
            for event in json.loads(path.read_text(encoding="utf-8"))
        ]
        folder = tmp_path / "joined.json"
        folder.write_text(json.dumps(events), encoding="utf-8")
    rows = collectives(folder, index_dir=tmp_path / "i")
    assert [row["bytes"] for row in rows] == [4096] * 4
    assert all(row["algbw"] == row["busbw"] == 4096 / row["pure_ns"] for row in rows)


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        *(("all_reduce", 1.75), ("reduce_scatter", 0.875), ("all_gather", 0.875), ("all_to_all", 0.875)),
        *(("broadcast", 1.0), ("reduce", 1.0), ("send_recv", 1.0), ("barrier", None)),
    ],
)
def test_bus_bandwidth_is_that_of_nccl(kind: str, factor: float | None) -> None:
    """Among eight ranks the factors are those that NCCL's tests print; among unknown ones most have none."""
    assert bus_factor(kind, 8) == factor
    assert bus_factor(kind, None) is None
