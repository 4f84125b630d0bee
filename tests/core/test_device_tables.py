"""Tables of device work: against HTA's exact numbers, plain statistics and the raw events."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.hta import EXACT, HEAD, RANKS, golden, opened, rule_050
from tests.corpus import CASES, CORPUS, GOLDENS, file, for_files, needs
from tests.events import complete, index_of
from tracelane.core.base.arrays import merge
from tracelane.core.base.errors import UsageError
from tracelane.core.base.short_names import short_names
from tracelane.core.tables.device.breakdown import (
    STREAMS,
    device_table,
    exclusive,
    type_table,
)
from tracelane.core.tables.device.idle import gap_table, idle, idle_table
from tracelane.core.tables.device.kernels import instances, kernels
from tracelane.core.tables.device.launches import analyse_launches, begun_work, launched
from tracelane.core.tables.device.memory import copies, kind_of
from tracelane.core.tables.frame.frame_columns import (
    COLUMNS,
    KindRule,
    by_rule,
    gap_rows,
    timed_work,
)
from tracelane.core.tables.frame.kinds import kernel_types
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.work_device import GAP_CLASSES
from tracelane.core.trace import Trace, open_trace

HTA_TYPES = {"compute": "COMPUTATION", "communication": "COMMUNICATION", "memory": "MEMORY"}


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("rule", [rule_050, kernel_types], ids=["hta", "own"])
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_temporal_breakdown_is_exact(
    name: str, rank: str, rule: KindRule, corpus_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every sum equals HTA's formula over exact stamps to 1 ns, with HTA's kernel types and with ours."""
    expected = golden(name)["per_rank"][rank][EXACT]
    monkeypatch.setitem(COLUMNS, "type", lambda work: by_rule(work, rule))
    work = timed_work(Scope(opened(name, rank, corpus_cache), allocations=True))
    (device,) = device_table(work)
    temporal = expected["temporal"]
    assert device["rank"] == int(rank)
    assert device["slices"] == expected["gpu_rows"]
    assert device["kernel_time_ns"] == temporal["kernel_time"]
    assert device["busy_ns"] == temporal["busy"]
    assert device["idle_ns"] == temporal["idle"]
    assert device["compute_ns"] == temporal["compute"]
    assert device["non_compute_ns"] == temporal["non_compute"]
    assert device["comm_ns"] == expected["comm_comp_overlap"]["comm"]
    assert device["comm_compute_overlap_ns"] == expected["comm_comp_overlap"]["overlap"]
    types = {
        " overlapping ".join(HTA_TYPES[part] for part in key.split("+")): ns
        for key, ns in ((row["type"], row["ns"]) for row in type_table(work))
    }
    assert types == expected["kernel_type_with_memory"]
    assert device["compute_ns"] == golden(name)["per_rank"][rank][HEAD]["temporal"]["compute"]
    assert sum(row["slices"] for row in STREAMS.of(work.group("stream"))) == expected["gpu_rows"]


A100, MI250, H100 = (
    f"gpu/{name}.json.gz"
    for name in ("hta_a100_resnet_ddp_nccl", "hta_mi250_minitoy_rocm62", "tl_h100_qwen_infer")
)
SAMPLED = ("cuda/gloo.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz", "cuda/inference.pt.trace.json.gz")


@for_files("name", [A100, MI250, *SAMPLED])
def test_a_device_leads_to_its_longest_work(name: str, corpus_cache: Path) -> None:
    """The jump of a device's row is a slice of the longest duration that its kernels have."""
    scope = Scope(open_trace(file(name), index_dir=corpus_cache))
    table = device_table(timed_work(scope))
    assert table.positions is not None and len(table.positions) == len(table) == 1
    (length,) = scope.trace.indexes[0].duration(table.positions)
    assert length == kernels(scope).data["max_ns"].max()  # type: ignore[union-attr]


@for_files("name", [A100, *SAMPLED])
def test_halves_of_a_trace_add_up(name: str, corpus_cache: Path) -> None:
    """Busy time, compute and communication of two touching ranges are those of both together."""
    trace = open_trace(file(name), index_dir=corpus_cache)
    start, end = trace.span
    middle = start + (end - start) * 2 // 5 + 12_345
    (whole,) = device_table(timed_work(Scope(trace)))
    halves = [device_table(timed_work(Scope(trace, part)))[0] for part in ((start, middle), (middle, end))]
    for what in ("busy_ns", "compute_ns", "comm_ns", "memory_ns", "comm_compute_overlap_ns"):
        assert sum(half[what] for half in halves) == whole[what], what


def test_combinations_of_types_match_counting_every_ns() -> None:
    """The time of each combination is the number of ns in which exactly these types run."""
    random = np.random.default_rng(5)
    for _ in range(50):
        sets, seen = [], np.zeros((3, 120), np.bool_)
        for number in range(3):
            starts = random.integers(0, 100, int(random.integers(0, 6)))
            ends = starts + random.integers(0, 20, len(starts))
            sets.append(merge(starts, ends))
            for a, b in zip(starts.tolist(), ends.tolist()):
                seen[number, a:b] = True
        names = ("compute", "communication", "memory")
        expected: dict[str, int] = {}
        for column in seen.T:
            key = "+".join(name for name, on in zip(names, column) if on)
            if key:
                expected[key] = expected.get(key, 0) + 1
        assert exclusive(sets) == expected


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_classes_equal_the_exact_reference(name: str, rank: str, corpus_cache: Path) -> None:
    """Per stream the rows, the idle time, and ns and number of gaps of each class are exact."""
    expected = golden(name)["per_rank"][rank][EXACT]["idle_breakdown"]
    rows = {
        row["stream"].replace(" ", ""): row
        for row in idle_table(idle(Scope(opened(name, rank, corpus_cache), allocations=True)))
    }
    assert rows.keys() == expected.keys()
    for stream, row in rows.items():
        theirs = expected[stream]
        assert row["slices"] == theirs["rows"]
        assert row["idle_ns"] == theirs["total_idle"]
        for kind in GAP_CLASSES:
            class_ = theirs.get(kind, {"idle": 0, "gaps": 0})
            assert (row[f"{kind}_ns"], row[f"{kind}_gaps"]) == (class_["idle"], class_["gaps"]), (
                stream,
                kind,
            )


@for_files("name", [A100, *SAMPLED[:2]])
def test_longest_gaps_tell_what_ended_them(name: str, corpus_cache: Path) -> None:
    """The listed gaps are the longest, each from the end of one slice to the start of the next, and a host
    wait names a launch that began inside the gap.
    """
    trace = open_trace(file(name), index_dir=corpus_cache)
    work = idle(Scope(trace))
    gaps = gap_rows(work)
    lengths = np.sort(gaps.gap)[::-1]
    table = gap_table(work, 25)
    assert table.data["gap_ns"].tolist() == lengths[:25].tolist()  # type: ignore[union-attr]
    assert table.positions is not None
    index = trace.indexes[0]
    waits = [row for row in table.rows() if row["class"] == "host_wait"]
    assert waits
    for row in waits:
        assert 0 < row["launch_after_ns"] <= row["gap_ns"]
    for row, position in zip(table.rows(), table.positions.tolist()):
        assert index.start(position) == row["start_ns"] + row["gap_ns"]
        assert row["launch"].startswith("cu") and row["host"]
    columns = index.column("slices.start")
    assert (columns[gaps.position] == gaps.start).all()
    assert (columns[gaps.before] + index.duration(gaps.before) == gaps.reach).all()
    assert (gaps.launch >= 0).all()
    assert sum(table.data["gap_ns"].tolist()) <= idle_table(work).totals["idle_ns"]  # type: ignore[union-attr]


@for_files("name", [H100, SAMPLED[2]])
def test_the_limit_of_a_kernel_wait_can_be_set(name: str, corpus_cache: Path) -> None:
    """With no limit at all every gap that the host did not cause is "other"; the host's stay the same."""
    scope = Scope(open_trace(file(name), index_dir=corpus_cache))
    (usual,), (strict,) = idle_table(idle(scope)), idle_table(idle(scope, 0))
    for what in ("ns", "gaps"):
        assert strict[f"kernel_wait_{what}"] == 0
        assert strict[f"other_{what}"] == usual[f"kernel_wait_{what}"]
        assert strict[f"host_wait_{what}"] == usual[f"host_wait_{what}"]


WORDS = {"COMPUTATION": "compute", "COMMUNICATION": "communication", "MEMORY": "memory"}


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_rows_equal_the_exact_reference(
    name: str, rank: str, corpus_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Per name the count, sum, min, max are exact; mean and deviation to rounding; the type is HTA's."""
    monkeypatch.setitem(COLUMNS, "type", lambda work: by_rule(work, rule_050))
    table = kernels(Scope(opened(name, rank, corpus_cache), allocations=True))
    expected = {row["name"]: row for row in golden(name)["per_rank"][rank][EXACT]["kernels"]}
    rows = {str(row["name"]): row for row in table.rows()}
    assert rows.keys() == expected.keys()
    for label, row in rows.items():
        theirs = expected[label]
        exact = (theirs["count"], theirs["sum"], theirs["min"], theirs["max"])
        assert (row["count"], row["total_ns"], row["min_ns"], row["max_ns"]) == exact
        assert row["mean_ns"] == pytest.approx(theirs["mean"], abs=1e-6)
        if row["count"] == 1:
            assert row["stdev_ns"] is None
        else:
            assert row["stdev_ns"] == pytest.approx(theirs["std"], rel=1e-9, abs=1e-6)
        assert row["type"] == WORDS[theirs["kernel_type"]]
    totals = table.data["total_ns"]
    assert all(a >= b for a, b in pairwise(totals)), "most time first"


@for_files(
    "name, streams", [(A100, {"7": "mixed", "40": "communication"}), (SAMPLED[0], None), (SAMPLED[2], None)]
)
def test_groups_hold_the_same_time(name: str, streams: dict[str, str] | None, corpus_cache: Path) -> None:
    """By short name, stream or type the rows hold the same slices; jumps lead to the longest of a row."""
    trace = open_trace(file(name), index_dir=corpus_cache)
    by_name = kernels(Scope(trace))
    for by in ("short", "stream", "type"):
        table = kernels(Scope(trace), by)
        assert int(np.sum(table.data["count"])) == by_name.totals["count"]
        assert int(np.sum(table.data["total_ns"])) == by_name.totals["total_ns"]
    types = {str(row["name"]): row["type"] for row in kernels(Scope(trace), "stream").rows()}
    assert streams in (None, {title.split()[-1]: kind for title, kind in types.items()})
    assert by_name.positions is not None
    index = trace.indexes[0]
    for row, position in zip(by_name.rows(), by_name.positions.tolist()):
        assert index.string(int(index.column("slices.name")[position])) == row["name"]
        assert int(index.duration([position])[0]) == row["max_ns"]
    short = kernels(Scope(trace), "short")
    assert sorted(short.data["name"]) == sorted(short_names(sorted(by_name.texts("name"))))


@needs(CORPUS, GOLDENS)
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
@for_files("path", [A100, *SAMPLED])
def test_histogram_counts_each_run_once(name: str, path: str, corpus_cache: Path) -> None:
    """Classes touch, cover all durations, hold every run and all of the time; a name of none is an error."""
    scope = Scope(open_trace(file(path), index_dir=corpus_cache))
    if not any(name.lower() in row["name"].lower() for row in kernels(scope).rows()):
        with pytest.raises(UsageError, match=f"no device work here has a name that matches '{name}'"):
            instances(scope, name, limit=5)
        return
    table, histogram = instances(scope, name, limit=5)
    rows = list(histogram.rows())
    assert len(table) == min(5, int(table.totals["count"] or 0))
    assert sum(row["count"] for row in rows) == table.totals["count"]
    assert sum(row["total_ns"] for row in rows) == table.totals["total_ns"]
    assert [row["to_ns"] for row in rows[:-1]] == [row["from_ns"] for row in rows[1:]]
    for row in rows:
        assert row["from_ns"] * row["count"] <= row["total_ns"] <= row["to_ns"] * row["count"]


FILES = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "gpu/hta_mi250_minitoy_rocm62.json.gz",
    "gpu/kineto_tb_gpu_metrics_counters.json",
    "aiu/mlp_trace.json",
    *("cuda/inference.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"),
)
CATEGORIES = ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset")


@cache
def events_of(name: str) -> list[dict[str, Any]]:
    path = file(name)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        events = json.loads(stream.read(), parse_float=Decimal)["traceEvents"]
    return [e for e in events if e.get("cat") in CATEGORIES and e.get("ph") == "X"]


@pytest.mark.slow
@for_files("name", FILES)
@pytest.mark.parametrize("half", [False, True])
def test_sums_are_those_of_the_file(name: str, half: bool, corpus_cache: Path) -> None:
    """Count, bytes and ns by kind are exact; of a range those that start in it count whole."""
    trace = open_trace(file(name), index_dir=corpus_cache)
    events = events_of(name)
    starts = sorted(int(e["ts"] * 1000) for e in events)
    span = (starts[len(starts) // 4], starts[3 * len(starts) // 4] + 1) if half else None
    expected: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for e in events:
        if span is None or span[0] <= int(e["ts"] * 1000) < span[1]:
            sums = expected[kind_of(e["name"], name.startswith("aiu/"))]
            sums[0] += 1
            sums[1] += e["args"].get("bytes", 0)
            sums[2] += int(e["dur"] * 1000)
            sums[3] += int(e["dur"] * 1000) if "bytes" in e["args"] else 0
    rows = list(copies(Scope(trace, span)).rows())
    assert {(row["name"], row["memory"]): [row["count"], row["bytes"], row["time_ns"]] for row in rows} == {
        key: sums[:3] for key, sums in expected.items()
    }
    for row in rows:
        _, size, _, sized = expected[str(row["name"]), str(row["memory"])]
        moved = sized and row["name"] != "Allocation"
        assert row["bandwidth"] == (pytest.approx(size / sized * 1e9) if moved else None)


@for_files("name", [FILES[0], "cuda/inference.pt.trace.json.gz"])
def test_what_the_profiler_wrote_of_each_copy(name: str, corpus_cache: Path) -> None:
    """The recorded bandwidths, weighted by time, are what bytes and time give; GB are 10^9 bytes."""
    trace = open_trace(file(name), index_dir=corpus_cache)
    for row in copies(Scope(trace)).rows():
        assert row["recorded_mean"] == pytest.approx(row["bandwidth"], rel=1e-2)
    most = max(float(e["args"]["memory bandwidth (GB/s)"]) for e in events_of(name))
    assert max(row["recorded_max"] for row in copies(Scope(trace)).rows()) == pytest.approx(most * 1e9)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memcpy HtoD (Pageable -> Device)", ("HtoD", "Pageable → Device")),
        ("Memcpy (DtoH)", ("DtoH", "")),
        ("Memcpy PtoP (Device -> Device)", ("PtoP", "Device → Device")),
        ("Memset (Device)", ("Memset", "")),
        ("CopyDeviceToHost", ("DtoH", "")),
        ("Memcpy (<unknown>)", ("Memcpy (<unknown>)", "")),
        ("dma_request", ("dma_request", "")),
    ],
)
def test_kinds_by_name(name: str, kind: tuple[str, str]) -> None:
    """Every profiler's way to name a copy gives its kind; an unknown one stays as it is."""
    assert kind_of(name) == kind


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


@needs(CORPUS, GOLDENS)
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


@needs(CORPUS, GOLDENS)
def test_a_correlation_of_nothing_joins_nothing(corpus_cache: Path) -> None:
    """Where all correlations are 0 a kernel has the launch of its flow or none, not every call."""
    expected = golden(WITHOUT_CORRELATION)["per_rank"]["0"][EXACT]
    totals = _totals(Scope(opened(WITHOUT_CORRELATION, "0", corpus_cache), allocations=True))
    assert totals["count"] > 0 and totals["count"] + totals["without_launch"] == expected["gpu_rows"]
    assert (
        expected["launch_stats_any_runtime_or_driver_call_with_a_device_slice"]["n"]
        > 100 * expected["gpu_rows"]
    )


@needs(CORPUS, GOLDENS)
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


@needs(CASES)
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
