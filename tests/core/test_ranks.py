"""Ranks side by side: what each did, who came last to collectives, who was slowest in a step."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete
from tests.json_tables import analysed
from tracelane.core import open_trace
from tracelane.core.query.filter import parse
from tracelane.core.tables.rank_tables import collectives_table, rank_steps_table, ranks_table
from tracelane.core.tables.ranks import Ranks, ranks
from tracelane.core.tables.scope import Scope
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
            json.dumps({"distributedInfo": info, "host_name": f"pod-{rank}", "traceEvents": events})
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
    assert [
        (step.label, step.slowest, step.slowest_own_ns, step.fastest_own_ns) for step in report.steps
    ] == [
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


def test_a_range_counts_what_begins_in_it(tmp_path: Path) -> None:
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


@pytest.mark.slow
@needs_corpus
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


@needs_corpus
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
