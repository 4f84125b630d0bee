"""The counters inside a trace as a table, against the raw events."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete, index_of
from tracelane.core.logs.telemetry_tables import counters_table, unit_of
from tracelane.core.trace import Trace, open_trace

COUNTED = (
    "gpu/kineto_tb_gpu_metrics_counters.json",
    "chrome/catapult_instance_counters.json",
    "chrome/catapult_simple_trace.json",
    "chrome/viztracer_vdb_basic.json",
)


@needs_corpus
@pytest.mark.parametrize("name", COUNTED)
def test_every_series_is_summed_up(name: str, corpus_cache: Path) -> None:
    """Each series of each counter has a row with its samples, least and greatest value as in the file."""
    whole = json.loads((CORPUS / name).read_text())
    events = whole["traceEvents"] if isinstance(whole, dict) else whole
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            title = f"{event['name']} {event['id']}" if "id" in event else event["name"]
            for series, value in event["args"].items():
                values[title, series].append(float(value))
    table = counters_table(open_trace(CORPUS / name, index_dir=corpus_cache))
    rows = {(row["counter"], row["series"]): row for row in table.rows()}
    assert rows.keys() == values.keys()
    for key, row in rows.items():
        low, high = min(values[key]), max(values[key])
        assert (row["samples"], row["min"], row["max"]) == (len(values[key]), low, high)
        assert low <= float(row["mean"] or 0) <= high


def test_means_are_over_time(tmp_path: Path) -> None:
    """A value counts for as long as it holds; a stretch has only what holds in it."""
    events: list[dict[str, Any]] = [complete(0, 100, "op")]
    for at, watts in ((0, 10), (10, 50), (30, 20)):
        events.append({"ph": "C", "name": "Power", "pid": 1, "ts": at, "args": {"Watts": watts}})
    events.append({"ph": "C", "name": "late", "pid": 1, "ts": 100, "args": {"Percent": 7}})
    trace = Trace([index_of(events, tmp_path / "index")])
    rows = {row["counter"]: row for row in counters_table(trace).rows()}
    power, late = rows["Power"], rows["late"]
    assert (power["unit"], power["samples"], power["min"], power["max"]) == ("W", 3, 10, 50)
    assert power["mean"] == pytest.approx(
        (10 * 10 + 20 * 50 + 70 * 20) / 100, rel=1e-5
    )  # its last ns is drawn
    assert (late["unit"], late["samples"], late["mean"]) == ("%", 1, 7)
    start = trace.span[0]
    (part,) = counters_table(trace, (start + 20_000, start + 40_000)).rows()
    assert (part["samples"], part["mean"]) == (2, 35)


@pytest.mark.parametrize(
    ("name", "series", "unit"),
    [
        ("PT Active", "Percent", "%"),
        ("TransferBW", "GB/s", "GB/s"),
        ("Coll_Bandwidth", "GBps", "GB/s"),
        ("memory (MiB)", "value", "MiB"),
        ("gpu", "clock MHz", "MHz"),
        ("ConcurrentPreps", "Concurrency", ""),
        ("BW DmaI", "Bytes", ""),
    ],
)
def test_a_unit_is_told_where_it_is_known(name: str, series: str, unit: str) -> None:
    """Units come from the series, else from the name; what a rate calls its bytes is none."""
    assert unit_of(name, series) == unit
