"""Launches and queues against HTA's formulas over exact stamps: every step kept, nothing rounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.hta import EXACT, RANKS, golden, opened
from tests.corpus import needs_corpus, needs_goldens
from tracelane.core.tables.launches import LaunchTimes, launch_table, launches, queue_table, statistics_table
from tracelane.core.tables.scope import Scope

pytestmark = [needs_corpus, needs_goldens]
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


def _totals(found: LaunchTimes) -> dict[str, Any]:
    return {**launch_table(found).totals, **{row["of"]: row for row in statistics_table(found).rows()}}


@pytest.mark.parametrize(("name", "rank"), [pair for pair in RANKS if pair[0] != WITHOUT_CORRELATION])
def test_statistics_are_exact(name: str, rank: str, corpus_cache: Path) -> None:
    """Number, sum, mean, median, extremes and outliers of calls, kernels and delays are the reference's."""
    part = golden(name)["per_rank"][rank]
    wanted = part[EXACT]["launch_stats_any_runtime_or_driver_call_with_a_device_slice"]
    told = _totals(launches(Scope(opened(name, rank, corpus_cache))))
    assert told["count"] == wanted["n"]
    assert told["without_launch"] == part["kernels_without_launch_in_trace"]
    for ours, theirs in KEYS.items():
        for key in ("sum", "min", "max"):
            assert told[ours][{"sum": "total_ns"}.get(key, f"{key}_ns")] == wanted[theirs][key], (ours, key)
        for key in ("mean", "median"):
            assert told[ours][f"{key}_ns"] == pytest.approx(wanted[theirs][key]), (ours, key)
    assert {key: told[key] for key in COUNTS} == {key: wanted[theirs] for key, theirs in COUNTS.items()}


def test_a_correlation_of_nothing_joins_nothing(corpus_cache: Path) -> None:
    """Where all correlations are 0 a kernel has the launch of its flow or none, not every call."""
    wanted = golden(WITHOUT_CORRELATION)["per_rank"]["0"][EXACT]
    told = _totals(launches(Scope(opened(WITHOUT_CORRELATION, "0", corpus_cache))))
    assert told["count"] > 0 and told["count"] + told["without_launch"] == wanted["gpu_rows"]
    assert (
        wanted["launch_stats_any_runtime_or_driver_call_with_a_device_slice"]["n"] > 100 * wanted["gpu_rows"]
    )


@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_queues_are_exact(name: str, rank: str, corpus_cache: Path) -> None:
    """Per stream the changes of the queue, their mean and their maximum are the reference's."""
    wanted = golden(name)["per_rank"][rank][EXACT]["queue_length"]
    rows: list[dict[str, Any]] = list(queue_table(launches(Scope(opened(name, rank, corpus_cache)))).rows())
    found = {str(row["stream"]).removeprefix("stream "): row for row in rows}
    assert found.keys() - wanted.keys() == MORE_STREAMS.get(name, set())
    for stream, theirs in wanted.items():
        row = found[stream]
        assert (row["count"], row["max"]) == (theirs["count"], theirs["max"])
        assert row["mean"] == pytest.approx(theirs["mean"])
