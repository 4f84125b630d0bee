"""Lanes computed from a trace and the counters inside it: what they hold, and their table."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.findings_traces import DEVICE
from tests.core.test_device_clocks import shifted, trace_of
from tests.corpus import CORPUS, file, for_files, needs
from tests.events import (
    arrow,
    complete,
    index_of,
    metadata,
    open_events,
    write_demo_without_counters,
    write_events,
)
from tracelane.core.base.clock import Clocks
from tracelane.core.demo.trace import write_demo
from tracelane.core.logs.counters import (
    MEMORY,
    QUEUE,
    WithCounters,
    thinned,
    with_cheap_lanes,
    with_lanes,
)
from tracelane.core.logs.overlay import LogOptions, open_overlay
from tracelane.core.logs.telemetry_tables import counters_table, unit_of
from tracelane.core.trace import Lane, Trace, open_trace

SPYRE = "aiu/spyre_torch_profiler/"
JAMIE = f"{SPYRE}jamie_mlp__upstream-main__adnan-cdx-spyre-dev-pf_2295057.1781947926439683971.pt.trace.json"
QWEN = "gpu/tl_h100_qwen_infer.json.gz"


def lanes_of(trace: Trace) -> dict[str, Lane]:
    """Return the computed lanes by process and name."""
    lanes: dict[str, Lane] = {}
    for process in trace.processes:
        if trace.sources[process.source].is_computed:
            for lane in trace.lanes[process.lanes.start : process.lanes.stop]:
                lanes[f"{process.title}: {lane.name}"] = lane
    return lanes


def samples_of(trace: Trace, lane: Lane) -> list[tuple[int, float]]:
    index, row = trace.indexes[lane.source], trace.indexes[lane.source].rows[lane.rows.start]
    at = slice(int(row["first"]), int(row["first"]) + int(row["count"]))
    return list(zip(index.column("samples.start")[at].tolist(), index.column("samples.value")[at].tolist()))


@needs(CORPUS)
def test_memory_lanes_hold_what_was_recorded(corpus_cache: Path) -> None:
    """A lane per allocator of the device, its samples the totals of the file, or those by size, in MiB."""
    trace = with_cheap_lanes(open_trace(CORPUS / JAMIE, index_dir=corpus_cache))
    lanes = lanes_of(trace)
    assert list(lanes) == ["AIU 0 · computed: runtime MiB", "AIU 0 · computed: PyTorch MiB"]
    events = json.loads((CORPUS / JAMIE).read_bytes(), parse_float=Decimal)["traceEvents"]
    records = [e for e in events if e["name"] == "[memory]" and e["args"]["Device Type"] == 20]
    expected = sorted((int(e["ts"] * 1000), e["args"]["Total Allocated"] / 2**20) for e in records)
    assert sorted(samples_of(trace, lanes["AIU 0 · computed: PyTorch MiB"])) == expected
    runtime = samples_of(trace, lanes["AIU 0 · computed: runtime MiB"])
    assert len(runtime) == 312 + 204 and min(value for _, value in runtime) >= 0


@needs(CORPUS)
def test_a_sample_has_the_arguments_of_its_record(corpus_cache: Path) -> None:
    """What stands in the file of a memory sample is the record that it was made of, under a log too."""
    trace = with_cheap_lanes(open_trace(CORPUS / JAMIE, index_dir=corpus_cache))
    log = CORPUS / "aiu_smi" / "PAIR1_jamie_mlp_upstream_utc_1s.txt"
    for view in (trace, open_overlay(trace, [log], LogOptions())):
        lane = lanes_of(view)["AIU 0 · computed: PyTorch MiB"]
        row = view.rows(lane)[0]
        for at in (0, 7, row.count - 1):
            arguments = view.event_arguments(row.source, view.ordinal(row, at)).begin
            value = view.sample(row, at)
            assert (arguments["Device Type"], arguments["Total Allocated"] / 2**20) == (20, value)


@needs(CORPUS)
def test_lanes_stand_below_their_device_and_its_logs(corpus_cache: Path) -> None:
    """The order is device, log, computed lanes; the files are still one, and time is the trace's."""
    own = open_trace(CORPUS / JAMIE, index_dir=corpus_cache)
    log = CORPUS / "aiu_smi" / "PAIR1_jamie_mlp_upstream_utc_1s.txt"
    trace = open_overlay(with_cheap_lanes(own), [log], LogOptions())
    titles = [process.title for process in trace.processes]
    at = titles.index("AIU 0 · computed")
    assert titles[at - 2 : at] == ["python 0 · AIU 0", "AIU 0 · aiu-smi 0"]
    assert [source.form for source in trace.files] == ["object", "aiu-smi text"]
    assert (trace.span, trace.opening_span) == (own.span, own.opening_span)
    lane = lanes_of(trace)["AIU 0 · computed: PyTorch MiB"]
    assert trace.lanes[lane.index].process in trace.processes


@needs(CORPUS)
def test_queue_lanes_count_launches(corpus_cache: Path) -> None:
    """At any time the lanes hold how many launches were called but not started, and not finished."""
    own = open_trace(CORPUS / QWEN, index_dir=corpus_cache)
    trace = with_lanes(with_cheap_lanes(own), QUEUE)
    lanes = lanes_of(trace)
    assert [name for name in lanes if "stream" not in name], "the memory lanes are still there"
    index, launches = own.indexes[0], own.launches(0)
    known = launches.launch != 0xFFFF_FFFF
    called = index.column("slices.start")[launches.launch[known]].astype(np.int64)
    starts = index.column("slices.start")[launches.kernels[known]].astype(np.int64)
    ends = starts + index.duration(launches.kernels[known])
    for word, until in (("waiting", starts), ("in flight", ends)):
        samples = samples_of(trace, lanes[f"GPU 0 · computed: stream 7 {word}"])
        times, values = [t for t, _ in samples], [v for _, v in samples]
        pick = random.Random(3)
        for time in (pick.randrange(times[0], times[-1]) for _ in range(200)):
            at = int(np.searchsorted(times, time, "right")) - 1
            expected = int((called <= time).sum() - (until <= time).sum())
            assert values[at] == expected


def test_queues_of_a_made_trace(tmp_path: Path) -> None:
    """Two launches before the first start make a queue of two; the second ends last."""
    launches = [complete(ts, 2, "launch", "cuda_runtime", args={"correlation": ts}) for ts in (10, 20)]
    kernels = [complete(ts + 20, 10, "k", "kernel", pid=0, tid=7, args={"stream": 7}) for ts in (10, 20)]
    arrows = [arrow(launch["ts"], launch, kernel) for launch, kernel in zip(launches, kernels)]
    events = [metadata("process_labels", 0, labels="GPU 0"), *launches, *chain(*arrows), *kernels]
    path = write_events(tmp_path / "made.json", events)
    trace = with_lanes(open_trace(path, index_dir=tmp_path / "index"), QUEUE)
    waiting, flying = (samples_of(trace, lane) for lane in lanes_of(trace).values())
    assert waiting == [(10_000, 1), (20_000, 2), (30_000, 1), (40_000, 0)]
    assert flying == [(10_000, 1), (20_000, 2), (40_000, 1), (50_000, 0)]


def test_queues_follow_the_clock_of_their_device(tmp_path: Path) -> None:
    """Queues under a device's offset are those of a file in which the device's stamps are moved so."""
    moved, right = trace_of(shifted(-2000), tmp_path / "moved"), trace_of(shifted(0), tmp_path / "right")
    clocks = Clocks().shifted((0, str(DEVICE)), 2_000_000)
    trace = with_lanes(moved, QUEUE, clocks=clocks)
    expected = with_lanes(right, QUEUE)
    assert trace.device_clocks == clocks
    for name, lane in lanes_of(expected).items():
        assert samples_of(trace, lanes_of(trace)[name]) == samples_of(expected, lane)
    memory = with_lanes(trace, MEMORY)
    assert memory.device_clocks == clocks
    assert len(lanes_of(memory)) == len(lanes_of(trace)) == 2


def test_a_trace_without_either_keeps_the_place(tmp_path: Path) -> None:
    """Nothing to compute gives no lanes, but the source's place, so that later lanes move nothing."""
    own = open_events(tmp_path, [complete(0, 5)])
    trace = with_cheap_lanes(own)
    assert lanes_of(trace) == {}
    assert len(trace.indexes) == 2
    assert len(trace.lanes) == len(own.lanes)
    assert isinstance(with_lanes(trace, MEMORY), WithCounters)


def test_no_curve_is_drawn_twice(tmp_path: Path) -> None:
    """What a file has as a counter already, value by value, is not computed again."""
    write_demo(tmp_path)
    own = open_trace(tmp_path / "rank0.pt.trace.json", index_dir=tmp_path / "index")
    assert lanes_of(with_cheap_lanes(own)) == {} == lanes_of(with_lanes(own, MEMORY))


def test_lanes_move_with_the_clock_of_their_rank(tmp_path: Path) -> None:
    """Where ranks are aligned, a rank's computed lanes are moved as far as the rank itself."""
    write_demo_without_counters(tmp_path)
    own = open_trace(sorted(tmp_path.glob("rank*.json")), index_dir=tmp_path / "index")
    trace = with_cheap_lanes(own)
    lanes = lanes_of(trace)
    assert [name.split(" · ")[0] for name in lanes] == ["rank 0 AIU 0", "rank 0 AIU 0"] + ["rank 1 AIU 0"] * 2
    for name, lane in lanes.items():
        rank = int(name.split()[1])
        owner = next(p for p in own.processes if p.source == rank and "AIU" in p.labels)
        assert trace.clocks.offset(lane.source, lane.pid) == own.clocks.offset(rank, owner.pid)


@pytest.mark.parametrize("count", [5, 100, 1000, 1013])
def test_thinning_keeps_the_extremes(count: int) -> None:
    """Of a long series the least and greatest of each stretch stay, in order, the last value too."""
    pick = random.Random(count)
    values = np.array([pick.randrange(1000) for _ in range(count)])
    positions = thinned(values, 100)
    assert len(positions) <= max(100, 1) + 25
    assert (np.diff(positions) > 0).all()
    assert positions[-1] == count - 1
    size = 1 if count <= 100 else -(-count // 50)
    for begin in range(0, count, size):
        group = values[begin : begin + size]
        inside = values[positions[(positions >= begin) & (positions < begin + size)]]
        assert inside.min() == group.min()
        assert inside.max() == group.max()


COUNTED = (
    "gpu/kineto_tb_gpu_metrics_counters.json",
    "chrome/catapult_instance_counters.json",
    "chrome/catapult_simple_trace.json",
    "chrome/viztracer_vdb_basic.json",
)


@for_files("name", COUNTED)
def test_every_series_is_summed_up(name: str, corpus_cache: Path) -> None:
    """Each series of each counter has a row with its samples, least and greatest value as in the file."""
    whole = json.loads(file(name).read_text(encoding="utf-8"))
    events = whole["traceEvents"] if isinstance(whole, dict) else whole
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            title = f"{event['name']} {event['id']}" if "id" in event else event["name"]
            for series, value in event["args"].items():
                values[title, series].append(float(value))
    table = counters_table(open_trace(file(name), index_dir=corpus_cache))
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
