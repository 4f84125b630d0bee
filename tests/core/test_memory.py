"""Allocators: curve, peak, what was live at it and what stayed, against a walk through the file's records."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, file, for_files, needs
from tests.events import complete, event, metadata, open_events, write_events
from tests.json_tables import analysed
from tracelane.core.tables.device.memory import (
    AllocatorUse,
    allocator_table,
    curve_table,
    memory,
    peak_table,
    unreleased_table,
)
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.allocations import allocators
from tracelane.core.trace import Trace, open_trace

SPYRE = "aiu/spyre_torch_profiler/"
FILES = (
    "aiu/mlp_trace.json",
    f"{SPYRE}jamie_mlp__upstream-main__adnan-cdx-spyre-dev-pf_2295057.1781947926439683971.pt.trace.json",
    "cpu/torch213_mlp_shapes_mem_stack_steps.json.gz",
    "cpu/torch213_graph_breaks_stack_mem.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_mi300_qwen_infer.json.gz",
    *(f"cpu/torch_{release}_training.pt.trace.json.gz" for release in ("2.1", "2.13", "2.14")),
)
HOSTS = ("cpu_op", "user_annotation")


@dataclass
class Walked:
    """One allocator's records as a person would keep the books."""

    curve: list[tuple[int, int]] = field(default_factory=list)
    live: dict[int, tuple[int, int]] = field(default_factory=dict)  # address -> (time, bytes)
    before: int = 0
    at_peak: dict[int, tuple[int, int]] = field(default_factory=dict)
    peak: int = 0
    count: int = 0


@cache
def events_of(name: str) -> list[dict[str, Any]]:
    path = file(name)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        return list(json.loads(stream.read(), parse_float=Decimal)["traceEvents"])


def ns(value: Any) -> int:
    return int(Decimal(value) * 1000)


def walked(name: str, low: int = -(1 << 62), high: int = 1 << 62) -> dict[tuple[int, int], Walked]:
    """Walk through the records in [low, high) by time; `live` is what was allocated in it and stayed."""
    by_allocator: dict[tuple[int, int], Walked] = {}
    records = [e for e in events_of(name) if e.get("name") == "[memory]"]
    for record in sorted(records, key=lambda e: ns(e["ts"])):
        args, time = record["args"], ns(record["ts"])
        if not low <= time < high:
            continue
        books = by_allocator.setdefault((args["Device Type"], args["Device Id"]), Walked())
        if args["Bytes"] > 0:
            books.live[args["Addr"]] = (time, args["Bytes"])
        else:
            books.live.pop(args["Addr"], None)
        books.count += 1
        books.curve.append((time, args["Total Allocated"]))
        if books.count == 1:
            books.before = args["Total Allocated"] - args["Bytes"]
            books.peak = books.before
        if args["Total Allocated"] > books.peak:
            books.peak, books.at_peak = args["Total Allocated"], dict(books.live)
    return by_allocator


def opened(name: str, cache_dir: Path) -> Trace:
    return open_trace(file(name), index_dir=cache_dir)


def by_pair(uses: tuple[AllocatorUse, ...]) -> dict[tuple[int, int], AllocatorUse]:
    return {(use.allocator.device_type, use.allocator.device_id): use for use in uses}


def live_of(use: AllocatorUse, records: Any) -> dict[int, tuple[int, int]]:
    one = use.allocator
    return {
        int(one.addresses[at]): (int(one.times[at]), int(one.changes[at]))
        for at in records.tolist()
        if one.changes[at] > 0
    }


@pytest.mark.slow
@for_files("name", FILES)
def test_curve_peak_and_what_stayed_are_those_of_a_walk(name: str, corpus_cache: Path) -> None:
    """Allocators are the file's pairs of type and id; each curve, peak and list is that of its records."""
    trace = opened(name, corpus_cache)
    books, uses = walked(name), by_pair(memory(Scope(trace)).uses)
    assert uses.keys() == books.keys()
    for pair, use in uses.items():
        walk, one = books[pair], use.allocator
        assert one.recorded
        assert list(zip(one.times.tolist(), one.total.tolist())) == walk.curve
        assert use.first_bytes == walk.before
        assert live_of(use, use.unreleased) == walk.live
        if one.releases_only:
            assert use.peak is None
        else:
            assert use.peak_bytes == walk.peak
            assert live_of(use, use.at_peak) == walk.at_peak


@for_files("name", FILES)
def test_a_range_counts_the_records_in_it(name: str, corpus_cache: Path) -> None:
    """In the middle half of the records' time only its records count, and the level before it is kept."""
    trace = opened(name, corpus_cache)
    times = sorted(ns(e["ts"]) for e in events_of(name) if e.get("name") == "[memory]")
    low, high = times[len(times) // 4], times[3 * len(times) // 4]
    books, uses = walked(name, low, high), by_pair(memory(Scope(trace, (low, high))).uses)
    assert uses.keys() == books.keys()
    for pair, use in uses.items():
        walk = books[pair]
        assert (use.end - use.begin, use.first_bytes) == (walk.count, walk.before)
        assert live_of(use, use.unreleased) == walk.live
        if use.peak is not None:
            assert use.peak_bytes == walk.peak
            assert low <= use.peak_at < high


@for_files("name", FILES[2:])
def test_the_op_is_the_innermost_around_the_record(name: str, corpus_cache: Path) -> None:
    """Of the ops and annotations of the thread whose time holds the record none lies inside the one named."""
    trace = opened(name, corpus_cache)
    hosts = [e for e in events_of(name) if e.get("ph") == "X" and e.get("cat") in HOSTS]
    spans = [(e["pid"], e["tid"], ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in hosts]
    records = {
        (ns(e["ts"]), e["args"]["Addr"]): (e["pid"], e["tid"])
        for e in events_of(name)
        if e.get("name") == "[memory]"
    }
    checked = 0
    for one in allocators(Scope(trace)):
        for at in range(0, len(one), max(1, len(one) // 40)):
            time = int(one.times[at])
            thread = records[time, int(one.addresses[at])]
            around = [(b, e) for pid, tid, b, e in spans if (pid, tid) == thread and b <= time < e]
            position = one.op_at(at)
            if around:
                assert position is not None
                index = one.index
                assert (index.start(position), index.end(position)) in around
                assert index.end(position) - index.start(position) == min(e - b for b, e in around)
                checked += 1
    assert checked > 10


@needs(CORPUS)
def test_the_allocators_of_an_aiu_are_kept_apart(corpus_cache: Path) -> None:
    """PyTorch's allocator and the runtime's stand in two rows; the runtime's totals are called no amounts."""
    report = memory(Scope(opened(FILES[1], corpus_cache)))
    rows = {row["name"]: row for row in allocator_table(report).rows()}
    assert rows.keys() == {"CPU", "AIU 0 PyTorch", "AIU 0 runtime"}
    assert rows["AIU 0 runtime"]["peak_bytes"] is None
    assert rows["AIU 0 runtime"]["last_bytes"] is None
    assert any("only releases are recorded" in note for note in report.notes)


@needs(CORPUS)
@pytest.mark.slow
def test_records_without_category_or_totals(corpus_cache: Path) -> None:
    """Traces of 2021 tell only what was given and taken: the curve is their sum, by device type."""
    name = "gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz"
    records = [e for e in events_of(name) if e.get("name") == "[memory]"]
    assert records
    assert not any("cat" in e or "Addr" in e["args"] for e in records)
    levels: dict[int, list[int]] = {}
    for one in sorted(records, key=lambda e: ns(e["ts"])):
        curve = levels.setdefault(one["args"]["Device Type"], [0])
        curve.append(curve[-1] + one["args"]["Bytes"])
    uses = memory(Scope(opened(name, corpus_cache))).uses
    assert {use.allocator.device_type: use.peak_bytes for use in uses} == {
        kind: max(curve) for kind, curve in levels.items()
    }


def record(ts: float, change: int, address: int, **more: Any) -> dict[str, Any]:
    args = {"Device Type": 0, "Device Id": -1, "Bytes": change, "Addr": address, **more}
    return event("i", ts, "[memory]", cat="cpu_instant_event", s="t", args=args)


@pytest.fixture
def unrecorded_trace(tmp_path: Path) -> Trace:
    """Totals are not recorded; address 1 is given twice, 2 was allocated before the trace, 3 stays."""
    events = [
        metadata("process_name", 1, name="python"),
        complete(0, 100, "outer"),
        complete(10, 20, "aten::empty"),
        record(15, 100, 1),
        record(20, -100, 1),
        record(40, 60, 1),
        record(50, 30, 3),
        record(60, -70, 2),
        record(200, -60, 1),
    ]
    return open_events(tmp_path, events)


def test_reused_earlier_and_kept_memory(unrecorded_trace: Trace) -> None:
    """An address given again is another allocation; a release alone tells of memory from before the trace."""
    report = memory(Scope(unrecorded_trace))
    (use,) = report.uses
    assert not use.allocator.recorded
    assert use.allocator.total.tolist() == [100, 0, 60, 90, 20, -40]
    assert (use.peak_bytes, use.peak_at) == (100, 15_000)
    peak = list(peak_table(report).rows())
    assert [(row["bytes"], row["start_ns"], row["held_ns"], row["name"]) for row in peak] == [
        (100, 15_000, 5_000, "aten::empty"),
        (70, None, None, "before the trace"),
    ]
    unreleased = unreleased_table(report)
    assert [(row["bytes"], row["end_ns"], row["name"]) for row in unreleased.rows()] == [(30, None, "outer")]
    positions = peak_table(report).positions
    assert positions is not None
    assert positions[0] >= 0 > positions[1], "what was there before has no slice to jump to"


def test_what_a_limit_leaves_out_is_told(unrecorded_trace: Trace) -> None:
    """A list cut at one row says how many bytes are not in it."""
    notes = peak_table(memory(Scope(unrecorded_trace)), limit=1).notes
    assert notes == ("CPU: 1 smaller ones, 70 B, are not listed",)


def test_json_and_curve(unrecorded_trace: Trace) -> None:
    """JSON has plain values and the device's numbers; the curve has a row per record."""
    report = memory(Scope(unrecorded_trace))
    assert analysed("memory", Scope(unrecorded_trace))["allocators"][0]["device_type"] == 0
    curve = list(curve_table(report).rows())
    assert [(row["at_ns"], row["allocated"]) for row in curve][:2] == [(15_000, 100), (20_000, 0)]


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    """Without records the table is empty and says what would make the profiler write them."""
    path = write_events(tmp_path / "plain.json", [complete(0, 5)])
    report = memory(Scope(open_trace(path, index_dir=tmp_path / "index")))
    assert not report.uses
    assert "profile_memory=True" in report.notes[0]
    assert len(allocator_table(report)) == len(curve_table(report)) == 0
