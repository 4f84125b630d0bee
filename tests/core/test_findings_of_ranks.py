"""Ranks merged into one file are judged one by one: by their own steps, counts, times and devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.events import Event, complete, index_of, metadata
from tracelane.core.base.arrays import EMPTY, Intervals, merge
from tracelane.core.base.units import format_ns
from tracelane.core.tables.findings.facts import CaptureFacts
from tracelane.core.tables.findings.finding import Finding
from tracelane.core.tables.findings.judge import findings, unions_of_others
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.ranks.rank_tables import analyse_ranks
from tracelane.core.trace import Trace


def op(pid: int, ts: float, dur: float, name: str = "aten::op", cat: str = "cpu_op", **args: int) -> Event:
    return complete(ts, dur, name, cat, pid=pid, tid=pid, args=args)


def loop(pid: int, device: int, kernels_us: list[float], start: int = 0) -> list[Event]:
    """Steps of 1000 µs, each with one launch of a kernel; correlation ids count from 1 in each process."""
    events = []
    for n, us in enumerate(kernels_us):
        at = start + n * 1000
        events += [
            op(pid, at, 1000, f"ProfilerStep#{n}", "user_annotation"),
            op(pid, at + 5, 30, "aten::mm"),
            op(pid, at + 10, 10, "cudaLaunchKernel", "cuda_runtime", correlation=n + 1),
            complete(
                *(at + 30, us, f"k{n % 2}", "kernel"),
                pid=device,
                tid=7,
                args={"correlation": n + 1, "stream": 7, "device": device},
            ),
        ]
    return events


def judged(events: list[Event], folder: Path) -> dict[str, Finding]:
    return {one.rule: one for one in findings(Scope(Trace([index_of(events, folder)]))).findings}


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_steps_of_one_rank_count(ranks: int, tmp_path: Path) -> None:
    """A rank whose device is busy is said to be, by its own steps; the others' idle devices as well."""
    events = [event for n in range(1, ranks) for event in loop(100 + n, n, [50] * 6)]
    rows = judged([*events, *loop(100, 0, [960] * 6)], tmp_path)
    bound, idle = rows["device-bound"], rows["device-idle"]
    assert (bound.in_steps, bound.of_steps, bound.of_part, bound.parts) == (6, 6, "process 100", 1)
    assert (idle.in_steps, idle.of_steps, idle.parts) == (6, 6, ranks - 1)
    assert idle.of_part != "process 100" and bound.sources == idle.sources == (0,)


@pytest.mark.parametrize(("calls", "speaks"), [(300, False), (450, False), (600, True)])
def test_calls_count_for_each_rank(calls: int, speaks: bool, tmp_path: Path) -> None:
    """Many calls are those of one process, not of all together."""
    events = [op(pid, n * 3, 2, "aten::add_") for pid in (7, 8) for n in range(calls)]
    assert ("many-calls" in judged(events, tmp_path)) == speaks


def test_ranks_that_share_a_device(tmp_path: Path) -> None:
    """Work on a device to which two processes launch belongs to the one that launched it."""
    quick, slow = loop(100, 0, [20] * 5), loop(101, 0, [400] * 5, start=300)
    for event in slow:
        if event["cat"] == "kernel":
            event["tid"] = event["args"]["stream"] = 9
        if "correlation" in event["args"]:
            event["args"]["correlation"] += 100
    trace = Trace([index_of([*quick, *slow], tmp_path)])
    row = {one.rule: one for one in findings(Scope(trace)).findings}["device-idle"]
    assert (row.of_part, row.parts, row.in_steps, row.of_steps) == ("process 100", 2, 5, 5)
    assert "1.9 %" in row.text  # five kernels of 20 µs in 5 ms


def test_one_rank_is_the_whole_source(tmp_path: Path) -> None:
    """Threads of another process without operators are no rank, nor is a device that holds calls."""
    events = [
        metadata("process_labels", 3, labels="MTIA 0"),
        *loop(100, 0, [50] * 3),
        op(3, 10, 5, "submit", "mtia_runtime"),
        op(3, 20, 50, "op", "mtia_ccp_events"),
        op(55, 0, 900, "main", "python_function"),
        op(56, 0, 900, "loop", "user_annotation"),
    ]
    parts = CaptureFacts(Scope(Trace([index_of(events, tmp_path)]))).parts(0)
    assert [(part.process, part.title) for part in parts] == [(None, "")]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("ranks", "late"), [(2, 1), (3, 0), (5, 3)])
def test_merged_ranks_are_compared(ranks: int, late: int, shared: bool, tmp_path: Path) -> None:
    """Each process is a rank with its own steps and collectives; who comes last is named, with its cost."""
    events = []
    for rank in range(ranks):
        pid, device, stream = 700 + rank, 0 if shared else rank, 7 + rank
        for n in range(4):
            at, delay = n * 2000, 150 if rank == late else 10 * rank
            ids = {"correlation": n + 1}
            events += [
                op(pid, at, 1900, f"ProfilerStep#{n}", "user_annotation"),
                op(pid, at + 5, 30, "c10d::allreduce_"),
                op(pid, at + 10, 10, "cudaLaunchKernel", "cuda_runtime", **ids),
                complete(
                    *(at + 100 + delay, 900 - delay, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel"),
                    pid=device,
                    tid=stream,
                    args={**ids, "stream": stream, "device": device},
                ),
            ]
    trace = Trace([index_of(events, tmp_path)])
    rows = {row["rank"]: row for row in analyse_ranks(Scope(trace))["ranks"].rows()}
    delays = [150 if rank == late else 10 * rank for rank in range(ranks)]
    cost = 4 * sum(150 - one for one in delays) * 1000
    assert next(iter(rows)) == late and sorted(rows) == list(range(ranks))
    assert {rank: row["waited_ns"] for rank, row in rows.items()} == {
        rank: 4 * (150 - one) * 1000 for rank, one in enumerate(delays)
    }
    assert (rows[late]["kept_waiting_ns"], rows[late]["last"]) == (cost, 4)
    assert {row["steps"] for row in rows.values()} == {4} and {r["kernels"] for r in rows.values()} == {4}
    (finding,) = [one for one in findings(Scope(trace)).findings if one.rule == "rank-imbalance"]
    assert finding.text.startswith(f"Process {700 + late} is last in 4 of 4 collectives")
    assert format_ns(cost) in finding.text and (finding.in_steps, finding.of_steps) == (4, 4)
    # Each place is the time from the first to the last arrival, and names the slice that came last.
    assert {one.end - one.start for one in finding.evidence} == {(150 - min(delays)) * 1000}
    assert all(one.slice is not None for one in finding.evidence)


def test_what_one_rank_lacks_is_judged_by_the_other(tmp_path: Path) -> None:
    """A rule that one rank's data suffice for is not called unchecked."""
    events = [*loop(100, 0, [50] * 4), op(101, 0, 100), op(101, 200, 100)]
    unchecked = dict(findings(Scope(Trace([index_of(events, tmp_path)]))).not_judged)
    assert "step-gap" not in unchecked and "memory-growth" in unchecked


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=3)


def intervals(spans: list[tuple[int, int]]) -> Intervals:
    starts, lengths = (np.array(values, np.int64) for values in zip(*spans)) if spans else (EMPTY.starts,) * 2
    return merge(starts, starts + lengths)


@given(st.lists(SPANS, min_size=1, max_size=6))
def test_what_others_claim_is_what_all_but_one_do(ranks: list[list[tuple[int, int]]]) -> None:
    """For each rank: the times of all others together, each ns once."""
    for number, union in enumerate(unions_of_others([intervals(spans) for spans in ranks])):
        others = [span for other, spans in enumerate(ranks) if other != number for span in spans]
        covered = {ns for start, length in others for ns in range(start, start + length)}
        assert union.length == len(covered)
        assert {int(ns) for a, b in zip(union.starts, union.ends) for ns in range(a, b)} == covered
