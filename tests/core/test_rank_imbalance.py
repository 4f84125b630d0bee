"""Of several ranks the one is named that the others wait for, with what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete
from tracelane.core import open_trace
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.rank_tables import heat_table, ranks_table
from tracelane.core.tables.ranks import RankInStep, Ranks, ranks
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace

RULE = "rank-imbalance"


def written(folder: Path, late: int | None, count: int = 8) -> Trace:
    """Ranks with five collectives that end together; all but the late one begin to wait earlier."""
    for rank in range(count):
        events = [complete(0, 9000, "ProfilerStep#1", "user_annotation", pid=5)]
        for number in range(5):
            end = 1500 * (number + 1)
            length = 300 if rank == late else 700 + 10 * rank if late is not None else 300 + rank
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
            arguments = {"stream": 7, "device": 0, "Process Group Name": "0"}
            events.append(complete(end - length, length, name, "kernel", pid=0, tid=7, args=arguments))
            events.append(complete(end - 1400, 400, "gemm", "kernel", pid=0, tid=7, args={"stream": 7}))
        info = {"rank": rank, "world_size": count, "backend": "nccl"}
        text = json.dumps({"distributedInfo": info, "traceEvents": events})
        (folder / f"rank{rank}.1700000000000.pt.trace.json").write_text(text)
    return open_trace([folder], index_dir=folder / "index")


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 3, 7])
def test_the_culprit_is_named(late: int, tmp_path: Path) -> None:
    """The rank that comes last is the finding's and the first of the table, not one of those that wait."""
    trace = written(tmp_path, late)
    (finding,) = [one for one in findings(Scope(trace)).findings if one.rule == RULE]
    assert trace.rank(finding.sources[0]) == late
    assert finding.text.startswith(f"Rank {late} is last in 5 of 5 collectives")
    waited = 5 * sum(400 + 10 * rank for rank in range(8) if rank != late) * 1000
    rows = list(ranks_table(ranks(Scope(trace))).rows())
    assert (rows[0]["rank"], rows[0]["kept_waiting_ns"]) == (late, waited)
    assert [row["kept_waiting_ns"] for row in rows] == [waited, *([0] * 7)]
    trace.close()


def test_ranks_that_come_together_are_no_finding(tmp_path: Path) -> None:
    """Where ranks come within a few µs of each other nobody is blamed."""
    trace = written(tmp_path, None)
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
    trace = written(tmp_path, 3, 2)
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


@needs_corpus
def test_a_real_capture(corpus_cache: Path) -> None:
    """Of four ranks of a recommendation model the others wait 16.4 ms for rank 2."""
    trace = open_trace([CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    (finding,) = [one for one in findings(scope).findings if one.rule == RULE]
    assert finding.of_part == "rank 2" and "16.4 ms" in finding.text
    assert next(ranks_table(ranks(scope)).rows())["rank"] == 2
    trace.close()
