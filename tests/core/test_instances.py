"""Every run of a kernel and the histogram of their durations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.core.hta import golden, opened
from tests.corpus import CORPUS, needs_corpus, needs_goldens
from tracelane.core.tables.instances import instances
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.scope import Scope

pytestmark = [needs_corpus, needs_goldens]


@pytest.mark.parametrize("order", ["slowest", "time"])
def test_runs_of_one_kernel(order: str, corpus_cache: Path) -> None:
    """All runs of a name are listed in the order asked for, with what they were launched with."""
    scope = Scope(opened("hta_a100_resnet_ddp_nccl", "0", corpus_cache))
    table, _ = instances(scope, "AllReduce", order)  # type: ignore[arg-type]
    (row,) = [row for row in kernels(scope).rows() if "AllReduce" in str(row["name"])]
    assert (len(table), table.totals["total_ns"]) == (row["count"], row["total_ns"])
    key, turn = ("duration_ns", -1) if order == "slowest" else ("start_ns", 1)
    values = [int(value) * turn for value in table.data[key]]
    assert values == sorted(values)
    (file,) = (source["file"] for source in golden("hta_a100_resnet_ddp_nccl")["inputs"].values())
    events = json.loads(gzip.decompress((CORPUS / file.removeprefix("share/")).read_bytes()))["traceEvents"]
    slowest = max(
        (e for e in events if "AllReduce" in e["name"] and "grid" in e["args"]), key=lambda e: e["dur"]
    )
    (slowest_row,) = [row for row in table.rows() if row["duration_ns"] == max(table.data["duration_ns"])]
    for key, argument in (("grid", "grid"), ("block", "block")):
        assert json.loads(str(slowest_row[key])) == slowest["args"][argument]
    assert slowest_row["registers"] == slowest["args"]["registers per thread"]
    assert slowest_row["shared_memory"] == slowest["args"]["shared memory"]
    assert slowest_row["stream"] == str(slowest["args"]["stream"])
    assert table.positions is not None
    index = scope.trace.indexes[0]
    assert index.duration(table.positions).tolist() == list(table.data["duration_ns"])
    for position, step in zip(table.positions.tolist(), table.data["step"]):
        held = [s.label for s in scope.trace.steps if s.start <= index.start(position) < s.end]
        assert held == [step] if step else not held


@pytest.mark.parametrize("name", ["", "AllReduce", "Memset", "no such kernel"])
def test_histogram_counts_each_run_once(name: str, corpus_cache: Path) -> None:
    """The classes touch, cover all durations, and hold every run and all of the time."""
    scope = Scope(opened("hta_a100_resnet_ddp_nccl", "0", corpus_cache))
    table, histogram = instances(scope, name, limit=5)
    rows = list(histogram.rows())
    assert len(table) == min(5, int(table.totals["count"] or 0))
    assert sum(row["count"] for row in rows) == table.totals["count"]
    assert sum(row["total_ns"] for row in rows) == table.totals["total_ns"]
    assert [row["to_ns"] for row in rows[:-1]] == [row["from_ns"] for row in rows[1:]]
    for row in rows:
        assert row["from_ns"] * row["count"] <= row["total_ns"] <= row["to_ns"] * row["count"]
