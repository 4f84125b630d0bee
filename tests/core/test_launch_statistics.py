"""Launches and queues against HTA's formulas over exact stamps: every step kept, nothing rounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.hta import EXACT, RANKS, golden, opened
from tests.corpus import CASES, needs_cases, needs_corpus, needs_goldens
from tests.events import complete, index_of
from tracelane.core import open_trace
from tracelane.core.tables.launches import analyse_launches, begun_work, launched
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace

KEYS = {"call": "cpu_duration", "kernel": "gpu_duration", "delay": "launch_delay"}
COUNTS = {
    "short_kernels": "short_gpu_kernels",
    "long_calls": "runtime_outliers_gt50us",
    "long_delays": "launch_delay_outliers_gt100us",
}
WITHOUT_CORRELATION = "spyre_decode_bmm_upstream-main"
"""Its runtime calls have correlation 0, which the reference joins each with each; here flows tell."""
MORE_STREAMS = {WITHOUT_CORRELATION: {"1"}, "tl_mi300_resnet_train_rank0of8": {"4"}}
"""Streams with launches by calls whose names the reference does not know."""


def _totals(scope: Scope) -> dict[str, Any]:
    """Return the sums over pairs of call and work, and what is said of each side of the pairs."""
    tables = analyse_launches(scope)
    (sums,) = tables["pairs"]
    pairs = launched(begun_work(scope))
    sides = {"call": pairs.call_ns, "kernel": pairs.kernel_ns, "delay": pairs.delay}
    statistics = {
        side: {
            "total_ns": int(values.sum()),
            "min_ns": values.min(),
            "max_ns": values.max(),
            "mean_ns": values.mean(),
            "median_ns": np.median(values),
        }
        for side, values in sides.items()
        if len(values)
    }
    assert [sums[f"{side}_ns"] for side in sides] == [int(values.sum()) for values in sides.values()]
    return {**tables["launches"].totals, **sums, **statistics}


@needs_corpus
@needs_goldens
@pytest.mark.parametrize(("name", "rank"), [pair for pair in RANKS if pair[0] != WITHOUT_CORRELATION])
def test_statistics_are_exact(name: str, rank: str, corpus_cache: Path) -> None:
    """Number, sum, mean, median, extremes and outliers of calls, kernels and delays are the reference's."""
    part = golden(name)["per_rank"][rank]
    expected = part[EXACT]["launch_stats_any_runtime_or_driver_call_with_a_device_slice"]
    totals = _totals(Scope(opened(name, rank, corpus_cache), allocations=True))
    assert totals["count"] == expected["n"]
    assert totals["without_launch"] == part["kernels_without_launch_in_trace"]
    for ours, theirs in KEYS.items():
        for key in ("sum", "min", "max"):
            assert totals[ours][{"sum": "total_ns"}.get(key, f"{key}_ns")] == expected[theirs][key], (
                ours,
                key,
            )
        for key in ("mean", "median"):
            assert totals[ours][f"{key}_ns"] == pytest.approx(expected[theirs][key]), (ours, key)
    assert {key: totals[key] for key in COUNTS} == {key: expected[theirs] for key, theirs in COUNTS.items()}


@needs_corpus
@needs_goldens
def test_a_correlation_of_nothing_joins_nothing(corpus_cache: Path) -> None:
    """Where all correlations are 0 a kernel has the launch of its flow or none, not every call."""
    expected = golden(WITHOUT_CORRELATION)["per_rank"]["0"][EXACT]
    totals = _totals(Scope(opened(WITHOUT_CORRELATION, "0", corpus_cache), allocations=True))
    assert totals["count"] > 0 and totals["count"] + totals["without_launch"] == expected["gpu_rows"]
    assert (
        expected["launch_stats_any_runtime_or_driver_call_with_a_device_slice"]["n"]
        > 100 * expected["gpu_rows"]
    )


@needs_corpus
@needs_goldens
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_queues_are_exact(name: str, rank: str, corpus_cache: Path) -> None:
    """Per stream the changes of the queue, their mean and their maximum are the reference's."""
    expected = golden(name)["per_rank"][rank][EXACT]["queue_length"]
    rows = analyse_launches(Scope(opened(name, rank, corpus_cache), allocations=True))["queues"]
    by_stream = {str(row["stream"]).removeprefix("stream "): row for row in rows}
    assert by_stream.keys() - expected.keys() == MORE_STREAMS.get(name, set())
    for stream, theirs in expected.items():
        row = by_stream[stream]
        assert (row["count"], row["max"]) == (theirs["count"], theirs["max"])
        assert row["mean"] == pytest.approx(theirs["mean"])


@needs_cases
def test_a_launch_is_a_call(tmp_path: Path) -> None:
    """A graph launch that started four kernels is one launch of 1.000 ms, and four pairs."""
    trace = open_trace([CASES / "adversarial" / "graph.json"], index_dir=tmp_path)
    tables = analyse_launches(Scope(trace))
    (row,) = tables["launches"]
    assert (row["count"], row["kernels"], row["call_ns"]) == (1, 4, 1_000_000)
    assert (row["delay_ns"], row["waiting_ns"], row["latency_ns"]) == (100_000, 0, 100_000)
    (pairs,) = tables["pairs"]
    assert (pairs["count"], pairs["call_ns"]) == (4, 4_000_000)
    trace.close()


def test_delay_is_waiting_and_latency(tmp_path: Path) -> None:
    """While its stream runs earlier work a launch waits; the rest of its delay is its own latency."""
    ids = [{"correlation": n} for n in (1, 2, 3)]
    events = [
        complete(0, 10, "a", "cuda_runtime", args=ids[0]),
        complete(20, 10, "b", "cuda_runtime", args=ids[1]),
        complete(40, 10, "c", "cuda_runtime", args=ids[2]),
        complete(15, 85, "first", "kernel", pid=0, args=ids[0]),
        complete(104, 10, "second", "kernel", pid=0, args=ids[1]),
        complete(200, 10, "third", "kernel", pid=0, args=ids[2]),
    ]
    trace = Trace([index_of(events, tmp_path)])
    rows = {row["name"]: row for row in analyse_launches(Scope(trace)).main}
    parts = {name: (row["delay_ns"], row["waiting_ns"], row["latency_ns"]) for name, row in rows.items()}
    assert parts == {"a": (5_000, 0, 5_000), "b": (74_000, 70_000, 4_000), "c": (150_000, 64_000, 86_000)}
    late = Scope(trace, (trace.span[0] + 100_000, trace.span[1]))
    assert {row["name"]: row["waiting_ns"] for row in analyse_launches(late).main} == {
        "b": 70_000,
        "c": 64_000,
    }
