"""Ops: PyTorch's own key_averages, reproduced from the trace file row for row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import GOLDENS, needs_goldens
from tracelane.core.analysis.op_groups import parse_grouping
from tracelane.core.analysis.ops import ops
from tracelane.core.analysis.scope import Scope
from tracelane.core.trace import open_trace

FOLDER = GOLDENS / "key_averages"
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


@needs_goldens
@pytest.mark.parametrize(("name", "by"), CASES)
def test_rows_are_those_of_torch(name: str, by: str, corpus_cache: Path) -> None:
    """Same rows in the same order; counts and memory exact, times to 1 ns."""
    trace = open_trace(FOLDER / f"{name}{PAIRS[name]}", index_dir=corpus_cache)
    golden = _golden(name)
    table = ops(Scope(trace), parse_grouping(by)) if by else ops(Scope(trace))
    extra = {"": None, "shape": "input_shapes", "stack:5": "stack"}[by]
    rows, expected = list(table.rows()), golden[TABLES[by]]

    def shown(row: dict[str, Any]) -> tuple[Any, ...]:
        more = row[extra] if extra else ""
        more = ";".join(more) if extra == "stack" and isinstance(more, list) else str(more)
        return row.get("name", row.get("key")), row.get("annotation", row.get("is_user_annotation")), more

    assert [shown(row) for row in rows] == [shown(row) for row in expected]
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
