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
    allocator_uses,
    curve_table,
    memory,
    peak_table,
    unreleased_table,
)
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.allocators import allocators
from tracelane.core.tables.overview.overview import overview
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
ALL = (
    *FILES,
    "aiu/acelyzer_spyre_mlp_tb.pt.trace.json",
    *(
        f"{SPYRE}{name}.pt.trace.json"
        for name in (
            "small_bmm__planned-only__adnan-cdx-spyre-dev-pf_2285674.1781942687331038417",
            "jamie_mlp__coordinate-remap__adnan-cdx-spyre-dev-pf_2287539.1781943722321619225",
            "small_bmm__branch-baseline__adnan-cdx-spyre-dev-pf_2285565.1781942605666606040",
            "prefill_bmm__coordinate-remap__adnan-cdx-spyre-dev-pf_2286246.1781943122909563031",
            "prefill_bmm__branch-baseline__adnan-cdx-spyre-dev-pf_2286133.1781942901332832643",
            "decode_bmm__branch-baseline__adnan-cdx-spyre-dev-pf_2286769.1781943257492156581",
            "decode_bmm__upstream-main__adnan-cdx-spyre-dev-pf_2294891.1781947844789580072",
        )
    ),
    "verdicts/resnet50_lost_memsets.json.gz",
    "verdicts/a100_first_run.json.gz",
    "verdicts/gh200_transformer_shapes.json.gz",
    "gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz",
    "gpu/tl_vllm_capture_python_functions.pt.trace.json.gz",
    "cuda/stacks.pt.trace.json.gz",
)
"""All that have records."""
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


def live_of(use: AllocatorUse, numbers: Any) -> dict[int, tuple[int, int]]:
    one, of = use.allocator, use.allocator.allocations
    return {
        int(of.addresses[at]): (int(one.times[of.begins[at]]), int(of.bytes[at]))
        for at in numbers.tolist()
        if of.begins[at] >= 0
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
        if one.known_by != "recorded":
            assert walk.curve[0][1] < 0, "what the file says is used unless it cannot be"
            continue
        assert list(zip(one.times.tolist(), one.total.tolist())) == walk.curve
        assert use.first_bytes == walk.before
        assert live_of(use, use.unreleased) == walk.live
        assert use.peak_bytes == walk.peak
        assert live_of(use, use.at_peak) == walk.at_peak


def changes_of(name: str) -> dict[tuple[int, int], list[tuple[int, int, int | None]]]:
    """Return (time, change, recorded total) by allocator; an AIU's runtime allocates by Memset (Device)."""
    by_allocator: dict[tuple[int, int], list[tuple[int, int, int | None]]] = {}
    for one in events_of(name):
        if one.get("name") == "[memory]":
            args = one["args"]
            row = ns(one["ts"]), int(args["Bytes"]), args.get("Total Allocated")
            by_allocator.setdefault((args["Device Type"], args["Device Id"]), []).append(row)
    if (1, 0) in by_allocator and (20, 0) in by_allocator:
        names = ("Memset (Device)", "Memory (Allocation)")
        slices = [e for e in events_of(name) if e.get("name") in names and e.get("ph") == "X"]
        rows = [(ns(e["ts"]), int(e["args"]["bytes"]), None) for e in slices]
        by_allocator[1, 0] = rows + by_allocator[1, 0]
    return by_allocator


@pytest.mark.slow
@for_files("name", ALL)
def test_peaks_are_those_of_a_walk_and_no_level_is_negative(name: str, corpus_cache: Path) -> None:
    """Of every allocator the peak is that of a walk over its changes, and no level is negative."""
    uses = by_pair(memory(Scope(opened(name, corpus_cache))).uses)
    changes = changes_of(name)
    assert uses.keys() == changes.keys()
    for pair, rows in changes.items():
        one = uses[pair].allocator
        assert one.total.min() >= 0
        assert one.reserved is None or one.reserved.min() >= 0
        totals = [total for _, _, total in rows if total is not None and total >= 0]
        if len(totals) == len(rows):
            assert one.known_by == "recorded"
            assert one.total.max() == max(totals)
        else:
            level, sums = 0, []
            for _, change, _ in sorted(rows, key=lambda row: row[0]):
                level += change
                sums.append(level)
            before = int(one.total[0]) - sums[0]
            assert before >= max(0, -min(sums))
            assert one.total.tolist() == [before + total for total in sums]
            if not any(change > 0 for _, change, _ in rows):
                assert uses[pair].peak is None
                continue
        assert uses[pair].peak_bytes == max(int(one.total[0]) - int(one.changes[0]), *one.total.tolist())


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
        if use.allocator.known_by != "recorded":
            continue
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
            thread = records[time, int(one.records.addresses[at])]
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
    """PyTorch's allocator and the runtime's stand in two rows; the runtime's totals are by size."""
    report = memory(Scope(opened(FILES[1], corpus_cache)))
    rows = {row["name"]: row for row in allocator_table(report).rows()}
    assert rows.keys() == {"CPU", "AIU 0 PyTorch", "AIU 0 runtime"}
    row = rows["AIU 0 runtime"]
    sizes = [int(e["args"]["bytes"]) for e in events_of(FILES[1]) if e.get("name") == "Memset (Device)"]
    assert (row["allocations"], row["allocated_bytes"]) == (len(sizes), sum(sizes)) == (312, 1_291_862_016)
    assert (row["releases"], row["released_bytes"]) == (204, 855_638_016)
    assert row["known_by"] == "by size, start unknown"
    assert row["last_bytes"] - row["first_bytes"] == sum(sizes) - row["released_bytes"]
    assert row["peak_bytes"] >= row["last_bytes"]
    assert any("with sizes and without addresses" in note for note in report.notes)


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
    assert use.allocator.known_by == "summed, start unknown"
    assert use.allocator.total.tolist() == [170, 70, 130, 160, 90, 30], "70 were there before"
    assert (use.peak_bytes, use.peak_at) == (170, 15_000)
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
    assert [(row["at_ns"], row["allocated"]) for row in curve][:2] == [(15_000, 170), (20_000, 70)]


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    """Without records the table is empty and says what would make the profiler write them."""
    path = write_events(tmp_path / "plain.json", [complete(0, 5)])
    report = memory(Scope(open_trace(path, index_dir=tmp_path / "index")))
    assert not report.uses
    assert "profile_memory=True" in report.notes[0]
    assert len(allocator_table(report)) == len(curve_table(report)) == 0


def test_who_asks_for_allocators_counts_no_copies(
    unrecorded_trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Findings and the overview ask what allocators hold, rank by rank, and have no table of copies made."""

    def copies(scope: Scope) -> Table:
        raise AssertionError("nobody asks what was copied")

    monkeypatch.setattr("tracelane.core.tables.device.memory.copies", copies)
    scope = Scope(unrecorded_trace)
    assert allocator_uses(scope)
    with pytest.raises(AssertionError, match="nobody asks"):
        memory(scope)
    assert "memory-limit" in dict(findings(scope).not_judged)
    assert overview(scope, ())["memory"]
