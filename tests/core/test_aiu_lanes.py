"""An AIU's lanes: streams, copies and memory management as its profilers write them, on every sample."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs_corpus, thinned
from tests.events import complete, index_of, metadata
from tracelane.core.tables.copies import copies
from tracelane.core.tables.explain import explain
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.range_table import range_table
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Lane, Trace, open_trace

SAMPLES = sorted(
    [
        *CORPUS.glob("aiu/spyre_torch_profiler/*.json"),
        CORPUS / "aiu/mlp_trace.json",
        *CORPUS.glob("aiu/acelyzer*"),
    ]
)
MEMORY_LANES = {"400": "Memory management:", "401": "Memory management +1"}
SPANS = 2
"""Slices of category Trace in each sample: one of PyTorch's profiler, one of the AIU's."""


def on_device(path: Path) -> dict[str, Counter[str]]:
    """Return the names on each lane of pid 0 as the file has them, by tid."""
    names: dict[str, Counter[str]] = {}
    for event in json.loads(path.read_bytes())["traceEvents"]:
        if event.get("ph") == "X" and event.get("pid") == 0:
            names.setdefault(str(event["tid"]), Counter())[event["name"]] += 1
    return names


def names_of(trace: Trace, lane: Lane) -> Counter[str]:
    names: Counter[str] = Counter()
    for row in trace.rows(lane):
        names.update(trace.name(row, at) for at in range(row.count))
    return names


@needs_corpus
@pytest.mark.parametrize("path", thinned(SAMPLES, 4), ids=lambda path: path.name[:34])
def test_lanes_of_the_samples(path: Path, corpus_cache: Path) -> None:
    """All of a sample's device lanes stand below the AIU, memory management first, with what the file has."""
    trace = open_trace(path, index_dir=corpus_cache)
    (device,) = [process for process in trace.processes if process.labels == "AIU 0"]
    lanes = [trace.lanes[number] for number in device.lanes]
    expected = on_device(path)
    assert {lane.tid: names_of(trace, lane) for lane in lanes} == expected
    titles = {lane.tid: lane.title for lane in lanes}
    for tid, title in titles.items():
        assert title == MEMORY_LANES.get(tid, title) and (tid in MEMORY_LANES or title.startswith("Stream "))
    assert list(titles) == sorted(titles, key=lambda tid: (tid not in MEMORY_LANES, tid))
    managed = {name for tid in MEMORY_LANES for name in expected.get(tid, ())}
    assert managed <= {"Memset (Device)", "Memory (Release)"}


@needs_corpus
@pytest.mark.parametrize("path", thinned(SAMPLES, 4), ids=lambda path: path.name[:34])
def test_memory_management_of_the_samples(path: Path, corpus_cache: Path) -> None:
    """A Memset (Device) counts as an allocation, of no bandwidth; its meaning and the release's are told."""
    trace = open_trace(path, index_dir=corpus_cache)
    sets = sum(names["Memset (Device)"] for names in on_device(path).values())
    (row,) = copies(Scope(trace)).rows()
    assert (row["name"], row["count"]) == ("Allocation", sets) and row["bytes"]
    assert row["bandwidth"] is None and row["recorded_mean"] is None
    for name, word in (("Memset (Device)", "allocated"), ("Memory (Release)", "freed")):
        explanation = explain(name, trace, 0)
        assert explanation is not None and word in explanation.line


@needs_corpus
@pytest.mark.parametrize("path", thinned(SAMPLES, 4), ids=lambda path: path.name[:34])
def test_spans_count_nowhere(path: Path, corpus_cache: Path) -> None:
    """The profiler's spans over the whole recording are in no table's sums, and what is left out is told."""
    trace = open_trace(path, index_dir=corpus_cache)
    table = range_table(Scope(trace))
    assert "Trace" not in [row["category"] for row in table.rows()]
    slices = sum(lane.slices for lane in trace.lanes)
    assert dict(table.totals)["slices"] == slices - SPANS
    assert [note for note in table.notes if f"{SPANS} slices" in note]
    assert not [row for row in kernels(Scope(trace)).rows() if "rofiler" in str(row["name"])]


def copy(tid: int, ts: float, kind: str) -> dict[str, Any]:
    args = {"call": kind, "device": 0, "correlation": 0, "bytes": 4096, "memory bandwidth (GB/s)": "N/A"}
    return complete(ts, 10, f"Memcpy ({kind})", "gpu_memcpy", pid=0, tid=tid, args=args)


def test_copies_of_every_kind(tmp_path: Path) -> None:
    """Copies are told apart by kind; a lane called " " is named for the one whose overlaps it holds."""
    lanes = {100: "Memcpy (HtoD):", 101: " ", 200: "Memcpy (DtoH):", 300: "Memcpy (DtoD):", 305: " ", 7: " "}
    kinds = {100: "HtoD", 101: "HtoD", 200: "DtoH", 300: "DtoD", 305: "PtoP", 7: "PtoP"}
    events = [metadata("process_labels", 0, labels="AIU 0")]
    for number, (tid, name) in enumerate(lanes.items()):
        events.append(metadata("thread_name", 0, tid, name=name))
        events.append(copy(tid, 100 + 5 * number, kinds[tid]))
    events.append(complete(0, 5, "aiuLaunchControlBlocks", "privateuse1_runtime", pid=1, tid=1))
    trace = Trace([index_of(events, tmp_path)])
    titles = {lane.tid: lane.title for lane in trace.lanes}
    assert titles["101"] == "Memcpy (HtoD) +1" and titles["305"] == "Memcpy (DtoD) +5"
    assert titles["100"] == "Memcpy (HtoD):" and titles["7"] == "thread 7"
    rows = {str(row["name"]): row["count"] for row in copies(Scope(trace)).rows()}
    assert rows == {"HtoD": 2, "DtoH": 1, "DtoD": 1, "PtoP": 2}
