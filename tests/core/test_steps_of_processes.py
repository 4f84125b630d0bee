"""Steps of several processes of one file: each counts what its own process and devices did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.events import complete, index_of
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.steps import step_metrics, steps
from tracelane.core.trace import Trace

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
    return list(steps(scope).steps.rows())


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
    groups = list(steps(Scope(trace)).groups.rows())
    assert [row["count"] for row in groups] == [3] * ranks
    assert [row.get("process", "100") for row in groups] == [str(100 + number) for number in range(ranks)]


@pytest.mark.parametrize("where", WHERE)
def test_windows_and_what_is_outside_are_the_whole(where: str, tmp_path: Path) -> None:
    """By window the steps of all processes and what none of them holds are all device time, none counted
    twice; work that is nobody's counts in the windows of all, which is said.
    """
    events = [*_rank(0, where), *_rank(1, where, 30)]
    scope = replace(Scope(Trace([index_of(events, tmp_path / "a")])), attribute="window")
    table = steps(scope).steps
    assert table.totals["shared_ns"] == 0
    whole = 3 * (300 + 500) * 1000
    assert int(table.numbers("device_ns").sum()) + table.totals["outside_ns"] == whole
    alone = complete(100, 50, "nobody's", "kernel", pid=50, tid=3)
    scope = replace(Scope(Trace([index_of([*events, alone], tmp_path / "b")])), attribute="window")
    table = steps(scope).steps
    inside = int(table.numbers("device_ns").sum())
    assert table.totals["shared_ns"] == 50_000
    assert inside + table.totals["outside_ns"] - table.totals["shared_ns"] == whole + 50_000
