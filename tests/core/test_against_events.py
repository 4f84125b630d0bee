"""Tables of recordings from a GPU, held against plain loops over the events of their files."""

from __future__ import annotations

import gzip
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.corpus import ROOT
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table, Tables
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import Trace, open_trace

SAMPLES = ("activities", "gloo", "inference")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
TWICE = "gpu_user_annotation"
"""What spans work that is counted anyway: its own time is nobody's."""


@dataclass(frozen=True)
class Slice:
    """An event with a duration: times in ns, exact."""

    name: str
    category: str
    thread: tuple[str, str]
    start: int
    end: int
    args: dict[str, Any] = field(hash=False)

    @property
    def length(self) -> int:
        return self.end - self.start


def path_of(name: str) -> Path:
    return ROOT / "tests" / "samples" / "cuda" / f"{name}.pt.trace.json.gz"


@cache
def slices_of(name: str) -> tuple[Slice, ...]:
    """Return the slices of a file in order of time, the longer first."""
    text = gzip.decompress(path_of(name).read_bytes()).decode()
    slices = []
    for event in json.loads(text, parse_float=Decimal)["traceEvents"]:
        if event.get("ph") == "X":
            start, length = (int(Decimal(event[key]) * 1000) for key in ("ts", "dur"))
            thread = (str(event["pid"]), str(event["tid"]))
            args = event.get("args", {})
            slices.append(Slice(event["name"], event["cat"], thread, start, start + length, args))
    return tuple(sorted(slices, key=lambda one: (one.start, -one.end)))


@cache
def trace_of(name: str) -> Trace:
    return open_trace(path_of(name), index_dir=Path(mkdtemp(prefix="events-")))


@cache
def tables_of(name: str, analysis: str, **options: Any) -> Tables:
    row = next(row for row in ANALYSES if row.name == analysis)
    return row.run(Scope(trace_of(name)), **options)


def work_of(name: str) -> list[Slice]:
    return [one for one in slices_of(name) if one.category in WORK]


def launches_of(name: str) -> list[tuple[Slice, Slice]]:
    """Return each piece of device work with the call of its correlation."""
    calls = {one.args["correlation"]: one for one in slices_of(name) if one.category in CALLS}
    pairs = [(calls.get(one.args["correlation"]), one) for one in work_of(name)]
    return [(call, one) for call, one in pairs if call is not None]


def union(slices: Iterable[Slice]) -> int:
    """Return how many ns some slices cover."""
    total, reach = 0, -1
    for one in sorted(slices, key=lambda one: one.start):
        total += max(0, one.end - max(one.start, reach))
        reach = max(reach, one.end)
    return total


def own_times(slices: Iterable[Slice]) -> list[tuple[Slice, int, int]]:
    """Return each slice with the time of none directly inside it, and the number of those around it."""
    order = [*slices]
    own, depths = [one.length for one in order], [0] * len(order)
    stacks: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, one in enumerate(order):
        stack = stacks[one.thread]
        while stack and order[stack[-1]].end <= one.start:
            stack.pop()
        if stack:
            own[stack[-1]] -= one.length
        depths[number] = sum(one.end <= order[around].end for around in stack)
        stack.append(number)
    return [*zip(order, own, depths)]


def rows_by(table: Table, *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in table.rows()}


samples = pytest.mark.parametrize("name", SAMPLES)


@samples
def test_names_are_summed_up(name: str) -> None:
    """The table of a range counts each name of a category: calls, time, own time, extremes, the mean."""
    groups = defaultdict(list)
    for one, own, _ in own_times(slices_of(name)):
        if one.category != "Trace":
            groups[one.name, one.category].append((one.length, own))
    rows = rows_by(tables_of(name, "range")["range"], "name", "category")
    assert rows.keys() == groups.keys()
    whole = sum(own for key, pairs in groups.items() if key[1] != TWICE for _, own in pairs)
    for key, pairs in groups.items():
        lengths = [length for length, _ in pairs]
        row = rows[key]
        assert (row["count"], row["total_ns"]) == (len(lengths), sum(lengths))
        assert (row["min_ns"], row["max_ns"]) == (min(lengths), max(lengths))
        assert row["mean_ns"] == pytest.approx(sum(lengths) / len(lengths))
        assert row["self_ns"] == (0 if key[1] == TWICE else sum(own for _, own in pairs))
        assert row["share"] == pytest.approx(row["self_ns"] / whole)


@samples
def test_kernels_are_summed_up(name: str) -> None:
    """The table of kernels has the statistics of the lengths of all device work of a name."""
    groups = defaultdict(list)
    for one in work_of(name):
        groups[one.name].append(one.length)
    rows = rows_by(tables_of(name, "kernels")["kernels"], "name")
    assert rows.keys() == {(each,) for each in groups}
    whole = sum(map(sum, groups.values()))
    for each, lengths in groups.items():
        row = rows[each,]
        assert (row["count"], row["total_ns"]) == (len(lengths), sum(lengths))
        assert (row["min_ns"], row["max_ns"]) == (min(lengths), max(lengths))
        assert row["mean_ns"] == pytest.approx(statistics.fmean(lengths))
        assert row["median_ns"] == pytest.approx(statistics.median(lengths))
        assert row["share"] == pytest.approx(sum(lengths) / whole)
        if len(lengths) > 1:
            assert row["stdev_ns"] == pytest.approx(statistics.stdev(lengths), rel=1e-3, abs=1)
            percentile = statistics.quantiles(lengths, n=20, method="inclusive")[-1]
            assert row["p95_ns"] == pytest.approx(percentile, rel=1e-6, abs=1)
    assert [row["total_ns"] for row in rows.values()] == sorted(map(sum, groups.values()), reverse=True)


@samples
def test_streams_are_busy_or_idle(name: str) -> None:
    """From its first work to its last a stream is busy while any of it runs, and idle between."""
    streams = defaultdict(list)
    for one in work_of(name):
        streams[str(one.args["stream"])].append(one)
    busy = rows_by(tables_of(name, "breakdown")["streams"], "stream")
    idle = rows_by(tables_of(name, "idle")["streams"], "stream")
    assert busy.keys() == idle.keys() == {(stream,) for stream in streams}
    for stream, slices in streams.items():
        span, covered = max(one.end for one in slices) - min(one.start for one in slices), union(slices)
        row, gaps = busy[stream,], idle[stream,]
        assert (row["slices"], row["kernel_time_ns"]) == (len(slices), span)
        assert (row["busy_ns"], row["idle_ns"]) == (covered, span - covered)
        assert row["sum_ns"] == sum(one.length for one in slices)
        assert (gaps["slices"], gaps["idle_ns"]) == (len(slices), span - covered)
        kinds = ("host_wait", "kernel_wait", "other")
        assert sum(gaps[f"{kind}_ns"] for kind in kinds) == gaps["idle_ns"]
        assert sum(gaps[f"{kind}_gaps"] for kind in kinds) == gaps["gaps"]
        assert sum(gaps[f"{kind}_share"] for kind in kinds) == pytest.approx(1)
    (device,) = tables_of(name, "breakdown")["devices"].rows()
    assert device["busy_ns"] == union(work_of(name))
    assert device["busy_ns"] + device["idle_ns"] == device["kernel_time_ns"]
    assert device["memory_ns"] == union(one for one in work_of(name) if one.category != "kernel")


@samples
def test_launches_and_what_then_waited(name: str) -> None:
    """Each call has the work of its correlation, which waited from the end of the call to its own start."""
    groups = defaultdict(list)
    for call, one in launches_of(name):
        groups[call.name].append((call, one, max(0, one.start - call.end)))
    rows = rows_by(tables_of(name, "launches")["launches"], "name")
    assert rows.keys() == {(each,) for each in groups}
    for each, pairs in groups.items():
        row, delays = rows[each,], [delay for *_, delay in pairs]
        assert row["kernels"] == len(pairs)
        assert row["kernel_ns"] == sum(one.length for _, one, _ in pairs)
        assert row["call_ns"] == sum(call.length for call, *_ in pairs)
        assert (row["call_max_ns"], row["delay_max_ns"]) == (max(c.length for c, *_ in pairs), max(delays))
        assert row["delay_ns"] == sum(delays) == row["waiting_ns"] + row["latency_ns"]
        assert row["delay_mean_ns"] == pytest.approx(statistics.fmean(delays))
        assert row["delay_median_ns"] == pytest.approx(statistics.median(delays))
        assert row["short_kernels"] == sum(one.length < call.length for call, one, _ in pairs)


@samples
def test_trees_add_up(name: str) -> None:
    """A node of the tree has the time of its calls: its own and its children's; roots lie in none."""
    nodes = rows_by(tables_of(name, "tree")["tree"], "node")
    children = defaultdict(int)
    for row in nodes.values():
        children[row["parent"]] += row["total_ns"]
    for (node,), row in nodes.items():
        assert row["total_ns"] == row["self_ns"] + children[node]
        above = nodes.get((row["parent"],))
        assert row["depth"] == (0 if above is None else above["depth"] + 1)
    timed = own_times(one for one in slices_of(name) if one.category not in ("Trace", TWICE))
    assert sum(row["self_ns"] for row in nodes.values()) == sum(own for _, own, _ in timed)
    assert sum(row["calls"] for row in nodes.values()) == len(timed)
    roots = sum(one.length for one, _, depth in timed if depth == 0)
    assert children[-1] == roots


@samples
def test_summaries_are_of_the_same(name: str) -> None:
    """The metrics of a trace are those of its tables."""
    values = {row["name"]: row["value"] for row in tables_of(name, "summary")["metrics"].rows()}
    assert values["kernels.calls"] == len(work_of(name))
    assert values["kernels.total"] == sum(one.length for one in work_of(name))
    assert values["idle.kernel_wait"] == sum(
        row["kernel_wait_ns"] for row in tables_of(name, "idle")["streams"].rows()
    )
