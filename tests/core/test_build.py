"""Building an index: every event, flow end and string finds its place, whatever the parts were."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.batches import Part
from tests.core.loops import BOTH, loops_of
from tests.events import (
    Event,
    async_event,
    begin,
    build_parts,
    complete,
    counter,
    end,
    event,
    every_phase,
    flow,
    index_of,
    metadata,
    part_of,
    parts_of,
    read_result,
)
from tests.waiting import running_threads, wait_until
from tracelane.core.base import arrays
from tracelane.core.base.errors import CacheError, Cancelled
from tracelane.core.base.progress import Progress, never
from tracelane.core.base.units import TIME_LIMIT
from tracelane.core.index import batches as module
from tracelane.core.index import column_files, id_lanes, lane_writer, pyramid
from tracelane.core.index import events as events_module
from tracelane.core.index.batches import SourceStrings
from tracelane.core.index.build import build
from tracelane.core.index.column_files import ColumnFiles
from tracelane.core.index.format import BLOCK, FLOW_COUNTS, LONG, NONE, LaneKind, RowKind, SliceFlag
from tracelane.core.index.loops import MAX_OPEN_SEARCHED
from tracelane.core.index.options import BUFFERS
from tracelane.core.index.store import Index
from tracelane.core.index.workers import BuildJob, Worker, Workers
from tracelane.core.read.batch import string_table
from tracelane.core.read.batch_store import BatchStore, store_batch
from tracelane.core.read.promoted import PROMOTED, Kind


def files(folder: Path) -> dict[str, bytes]:
    """Everything in an index folder but where the blocks of the source lie, which is the cut's own."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(("blocks.", "manifest"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [[1], [200], [7, 8, 100, 333], list(range(1, 600, 3))])
def test_parts_do_not_matter(tmp_path: Path, cuts: list[int]) -> None:
    """One part or many: every file is the same, byte for byte, and so are read_report and bounds."""
    events = every_phase(n=600)
    one = index_of(events, tmp_path / "one")
    many = index_of(events, tmp_path / "many", [cut for cut in cuts if cut < len(events)])
    assert files(tmp_path / "one") == files(tmp_path / "many")
    for key in ("read_report", "start_ns", "end_ns", "tables"):
        assert one.manifest[key] == many.manifest[key]


@pytest.mark.slow
@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("threads, native", [(1, False), (1, True), (2, True), (8, True), (8, False)])
def test_threads_and_loops_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, native: bool, in_files: bool
) -> None:
    """However many threads there are, and whether the loops run in C, every file is the same."""
    parts = parts_of(every_phase(n=600), [200])

    def built(name: str, threads: int, native: bool) -> dict[str, bytes]:
        (tmp_path / name).mkdir()
        buffers = 0 if in_files else BUFFERS
        build_parts(parts, tmp_path / name, Workers(threads, native=native, buffers=buffers))
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    whole = built("whole", 1, False)
    monkeypatch.setattr(events_module, "GROUP", 50)
    assert any(name.startswith("promoted.") for name in whole)
    assert built("again", threads, native) == whole


def test_stored_batches_are_batches_in_memory(tmp_path: Path) -> None:
    """Batches that were written to a file, narrowed, give the same index."""
    events = every_phase(seed=4)
    index_of(events, tmp_path / "memory", [100])
    folder = tmp_path / "disk"
    folder.mkdir()
    batches, tables = zip(*(part.batch(number) for number, part in enumerate(parts_of(events, [100]))))
    with BatchStore(tmp_path) as store:
        stored = [store_batch(batch, store) for batch in batches]
        build(read_result(stored, tables), folder, Workers())
    assert files(tmp_path / "memory") == files(folder)


def test_scratch_files_are_removed(tmp_path: Path) -> None:
    """Columns that do not fit into memory lie in files meanwhile, with the same result, and leave nothing."""
    events = every_phase(seed=9)
    index_of(events, tmp_path / "memory")
    index_of(events, tmp_path / "files", [50], buffers=0)
    assert files(tmp_path / "memory") == files(tmp_path / "files")
    assert not (tmp_path / "files" / "scratch").exists()


def test_pieces_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is the same bytes however little is treated at once, and when all scratch lies in files."""
    times = np.random.default_rng(3).integers(0, (900, 30), (500, 2)).tolist()
    events = [*every_phase(), *(complete(start, length, pid=88) for start, length in times)]
    cuts = [7, 100, 101, 300]
    index_of(events, tmp_path / "whole", cuts)
    monkeypatch.setattr(arrays.pieces, "__defaults__", (7,))
    monkeypatch.setattr(pyramid, "BATCH", BLOCK)
    for owner, name in ((lane_writer, "PIECE"), (events_module, "GROUP"), (events_module, "SLOTS_PIECE")):
        monkeypatch.setattr(owner, name, 3)
    index_of(events, tmp_path / "pieces", cuts, buffers=0)
    assert files(tmp_path / "whole") == files(tmp_path / "pieces")


def test_pieces_of_shared_lanes_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that share lanes, begun in any order, lie in the same lanes however little is treated at once."""
    times = np.random.default_rng(7).integers(0, (4000, 200), (300, 2)).tolist()
    events = [
        async_event(phase, time, f"0x{number:x}" if number % 2 else number, "span")
        for number, (start, length) in enumerate(times)
        for phase, time in (("b", start), ("n", start + length // 2), ("e", start + length))
    ]
    events += [counter(start, "mem", used=length, free=start) for start, length in times]
    monkeypatch.setattr(id_lanes, "MAX_LANES", 20)
    index = index_of(events, tmp_path / "whole", [100, 700])
    assert 1 < np.count_nonzero(index.lanes["kind"] == LaneKind.ASYNC) < 300
    monkeypatch.setattr(arrays.pieces, "__defaults__", (5,))
    for owner in (events_module, id_lanes):
        monkeypatch.setattr(owner, "PIECE", 5)
    index_of(events, tmp_path / "pieces", [100, 700], buffers=0)
    assert files(tmp_path / "whole") == files(tmp_path / "pieces")


@pytest.mark.parametrize("seed", range(4))
def test_every_event_has_a_place(tmp_path: Path, seed: int) -> None:
    """Every timed event is a slice, an end, an instant or a sample; rows are sorted and disjoint."""
    events = every_phase(seed)
    index = index_of(events, tmp_path)
    placed = [
        *index.column("slices.ordinal").tolist(),
        *index.column("ends.ordinal").tolist(),
        *index.column("instants.ordinal").tolist(),
        *set(index.column("samples.ordinal").tolist()),
    ]
    want = [i for i, e in enumerate(events) if e["ph"] not in "Mstf" and isinstance(e["ts"], float)]
    assert sorted(placed) == want
    index.check(*index.manifest["columns"])
    start, n = index.column("slices.start"), len(index.column("slices.start"))
    finish = start + index.duration(range(n))
    parent = index.column("slices.parent").astype(np.int64)
    child = np.flatnonzero(parent != NONE)
    assert (start[parent[child]] <= start[child]).all() and (finish[parent[child]] >= finish[child]).all()
    firsts = {RowKind.SLICES: 0, RowKind.INSTANTS: 0, RowKind.SAMPLES: 0}
    for row in index.rows:
        assert row["first"] == firsts[RowKind(int(row["kind"]))]
        firsts[RowKind(int(row["kind"]))] += int(row["count"])
        own = slice(int(row["first"]), int(row["first"] + row["count"]))
        if row["kind"] == RowKind.SLICES:
            assert (start[own][1:] >= finish[own][:-1]).all()
            assert (start[own][0], finish[own][-1]) == (row["start"], row["end"])
        else:
            times = index.column("instants.start" if row["kind"] == RowKind.INSTANTS else "samples.start")[
                own
            ]
            assert (np.diff(times) >= 0).all() and (times[0], times[-1]) == (row["start"], row["end"])
    assert [int(x) for x in index.lanes["first_row"]] == [0, *np.cumsum(index.lanes["rows"])[:-1].tolist()]


@pytest.mark.parametrize("seed", [2, 3])
def test_promoted_arguments_follow_their_events(tmp_path: Path, seed: int) -> None:
    """A promoted value stands at the slice or instant of its event; of begin and end the end's holds."""
    events = every_phase(seed)
    part = part_of(events)
    index = index_of(events, tmp_path)
    slices = {o: i for i, o in enumerate(index.column("slices.ordinal").tolist())}
    for position, ordinal in zip(
        index.column("ends.position").tolist(), index.column("ends.ordinal").tolist()
    ):
        slices[ordinal] = position
    instants = {o: i for i, o in enumerate(index.column("instants.ordinal").tolist())}
    for argument in PROMOTED:
        column = part.promoted.get(argument.key)
        want_slices: dict[int, Any] = {}
        want_instants: dict[int, Any] = {}
        for ordinal, value in zip(column["ordinal"].tolist(), column["value"].tolist()) if column else ():
            value = part.strings[value] if argument.kind is Kind.TEXT else value
            if ordinal in slices:
                want_slices[slices[ordinal]] = value
            elif ordinal in instants:
                want_instants[instants[ordinal]] = value
        name = f"promoted.{argument.key}"
        for want, at, values in (
            (want_slices, f"{name}.position", f"{name}.value"),
            (want_instants, f"{name}.instant", f"{name}.instant_value"),
        ):
            got = index.column(values).tolist()
            got = index.strings(got) if argument.kind is Kind.TEXT else got
            assert dict(zip(index.column(at).tolist(), got)) == want
            assert (np.diff(index.column(at).astype(np.int64)) > 0).all()


def titles(index: Index) -> list[tuple[str, list[str]]]:
    """(pid, tids or names of its lanes) in display order."""
    processes = []
    for process in index.processes:
        lanes = index.lanes[int(process["first_lane"]) : int(process["first_lane"] + process["lanes"])]
        texts = [
            index.string(lane["tid"] if lane["kind"] == LaneKind.THREAD else lane["name"]) for lane in lanes
        ]
        processes.append((index.string(process["pid"]), texts))
    return processes


def test_display_order(tmp_path: Path) -> None:
    """Processes by sort index, number, text, the profiler's own notes last; threads likewise; then async
    lanes, then counters.
    """
    events: list[Event] = [
        *(complete(1, 1, pid=p) for p in (10, 9, "b", "a", -1, 2.5)),
        *(complete(1, 1, pid=p) for p in ("", "Traces", "Spans", None)),
        *(complete(1, 1, tid=t) for t in (10, 9, "x", 7)),
        counter(1, "zeta", v=1), counter(1, "alpha", v=1),
        event("b", 1, "n", cat="net", id=1), event("b", 1, "n", cat="gc", id=1),
        metadata("process_sort_index", 10, sort_index=-3),
        metadata("process_sort_index", "Spans", sort_index=-9),
        metadata("process_sort_index", "b", sort_index=9),
        metadata("thread_sort_index", 1, 10, sort_index=-3),
        metadata("thread_sort_index", 1, 7, sort_index="5"),
    ]  # fmt: skip
    processes = titles(index_of(events, tmp_path))
    notes = ['"Spans"', '""', '"Traces"', "null"]
    assert [pid for pid, _ in processes] == ["10", "-1", "1", "2.5", "9", '"a"', '"b"', *notes]
    assert processes[2][1] == ["10", "9", '"x"', "7", "gc", "net", "alpha", "zeta"]


def test_the_last_metadata_hold(tmp_path: Path) -> None:
    """Names, labels and sort indices: the last in the file holds, unusable ones are passed by."""
    events = [
        metadata("thread_name", 1, 1, name="first"),
        metadata("thread_name", 1, 1, name="second"),
        complete(1, 1),
        metadata("thread_name", 1, 5, name="nothing there"),
        metadata("process_name", 1, 0, name="old"),
        metadata("process_name", 1, 7, name="new"),
        metadata("process_label", 1, labels="AIU 3"),
        metadata("process_sort_index", 1, sort_index="no number"),
        metadata("process_name", 8, name="idle"),
    ]
    events[3]["args"]["name"] = 12
    for cuts in ([], [1, 5]):
        index = index_of(events, tmp_path / str(len(cuts)), cuts)
        process, idle = index.processes
        assert [index.string(process[key]) for key in ("name", "labels")] == ["new", "AIU 3"]
        assert index.string(index.lanes[0]["name"]) == "second"
        assert (process["empty"], process["lanes"], idle["lanes"], process["sort"]) == (1, 1, 0, 0)


def test_counters(tmp_path: Path) -> None:
    """A lane per counter and id, a row per series by first event, then name, samples by time."""
    events = [
        counter(5, "mem", used=1, free=9),
        counter(2, "mem", used=2, free=8),
        counter(3, "mem", id=None, extra=1),
        {**counter(3, "mem", used=4), "id": 7},
    ]
    index = index_of(events, tmp_path)
    assert [index.string(lane["tid"]) for lane in index.lanes] == ["", "7"]
    assert [index.string(row["series"]) for row in index.rows] == ["free", "used", "extra", "used"]
    assert index.column("samples.value").tolist() == [8, 9, 2, 1, 1, 4]
    assert (index.read_report["counter_samples"], index.read_report["counter_values"]) == (4, 6)


def test_long_and_clamped_times(tmp_path: Path) -> None:
    """Durations beyond 4.29 s are exact; times beyond the limit are clamped and marked."""
    huge = 10**17
    index = index_of(
        [complete(0, 10**7, "long"), complete(1, 5 * 10**6, "child"), complete(huge, huge, "beyond", tid=2)],
        tmp_path,
    )
    assert index.duration([0, 1]).tolist() == [10**10, 5 * 10**9]
    assert index.self_time([0, 1]).tolist() == [5 * 10**9, 5 * 10**9]
    assert index.column("slices.duration")[0] == LONG
    assert index.end(2) <= TIME_LIMIT and index.flag(2) & SliceFlag.CLAMPED
    assert (index.manifest["start_ns"], index.manifest["end_ns"]) == (0, TIME_LIMIT)


@pytest.mark.parametrize(
    "events",
    [[], ["text", 5, None], [metadata("process_name", 1, name="x")], [end(1)], [begin(1)], [complete(1, 0)]],
)
def test_nearly_nothing(tmp_path: Path, events: list[Any]) -> None:
    """Traces without slices, or with one of no length, are traces too."""
    index = index_of(events, tmp_path)
    assert index.read_report["events"] == len(events)
    index.check(*index.manifest["columns"])


def test_cancelled_and_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request to stop is heard, progress is told, and a full disk is one clear line."""
    parts = parts_of(every_phase())
    with pytest.raises(Cancelled):
        build_parts(parts, tmp_path, Workers(cancelled=lambda: True))
    reports: list[Progress] = []
    build_parts(parts, tmp_path, progress=reports.append)
    assert reports[-1].done == reports[-1].total

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tracelane.core.index.column_files.ColumnWriter._write", full)
    with pytest.raises((CacheError, OSError), match="No space"):
        build_parts(parts, tmp_path)
    with pytest.raises(CacheError, match="cannot write"), ColumnFiles(tmp_path / "absent", "u1") as columns:
        columns.writer("x", "u1")
    with pytest.raises(CacheError, match="cannot write"):
        column_files.Scratch(tmp_path / "absent", 0).array(10, "u1")


def lanes_of_one_slice() -> Part:
    return part_of([complete(i, 5, pid=i % 7, tid=i) for i in range(5000)])


def deeply_nested() -> Part:
    return part_of([complete(i, 200_000 - 2 * i, "deep") for i in range(100_000)])


@pytest.mark.slow
@pytest.mark.parametrize("make, expected", [(lanes_of_one_slice, 5000), (deeply_nested, 100_000)])
def test_odd_shapes_take_no_longer(tmp_path: Path, make: Any, expected: int) -> None:
    """5,000 lanes of one slice, or 100,000 rows in one lane, are built in seconds."""
    part = make()
    began = time.process_time()
    build_parts([part], tmp_path)
    assert time.process_time() - began < 20
    assert len(Index.open(tmp_path).rows) == expected


def arrows(index: Index) -> list[tuple[str | None, str | None]]:
    """(source, target) slice names of all flows, in stored order; None where an end lies in no slice."""
    names = index.strings(index.column("slices.name"))

    def name(position: int) -> str | None:
        return None if position == NONE else names[position]

    source, target = index.column("flows.source").tolist(), index.column("flows.target").tolist()
    return [(name(s), name(t)) for s, t in zip(source, target)]


def books(index: Index, category: str = "ac2g") -> list[int]:
    """starts, steps, ends, paired, orphan_starts, orphan_ends."""
    return list(index.read_report["flows"][category].values())


GPU = {"pid": 0, "tid": 7}


@pytest.mark.parametrize(
    "events, want",
    [
        # deepest slice that contains the stamp; for an end without bp the next one that begins there
        ([complete(0, 10, "op"), complete(2, 3, "launch"), flow("s", 3, 1)], "launch"),
        ([complete(0, 10, "op"), complete(2, 3, "launch"), flow("s", 5, 1)], "op"),
        ([complete(0, 10, "op"), flow("s", 10, 1)], None),
        ([complete(4, 0, "mark"), flow("s", 4, 1)], "mark"),
        ([complete(0, 10, "op"), flow("s", 3, 1, tid=2)], None),
        # several begin at the stamp: correlation, then the nearest before it in the file, then the deepest
        (
            [
                complete(2, 9, "a", args={"correlation": 5}, cat="cuda_runtime"),
                complete(2, 4, "b"),
                flow("s", 2, 5),
            ],
            "a",
        ),
        ([complete(2, 4, "b"), complete(2, 9, "a"), flow("s", 2, 5)], "a"),
        ([flow("s", 2, 5), complete(2, 9, "a"), complete(2, 4, "b")], "b"),
        # overlapping slices: the one opened last
        ([complete(0, 10, "a"), complete(5, 10, "b"), complete(6, 1, "c"), flow("s", 8, 1)], "b"),
        ([complete(0, 10, "a"), complete(5, 10, "b"), complete(6, 1, "c"), flow("s", 14, 1)], "b"),
    ],
)
def test_starts_bind(tmp_path: Path, events: list[Event], want: str | None) -> None:
    """A start belongs to the deepest slice of its track around its stamp."""
    starts = [e for e in events if e["ph"] == "s"]
    index = index_of(
        [*events, complete(20, 1, "k", **GPU), flow("f", 20, starts[0]["id"], bp="e", **GPU)],
        tmp_path / "again",
    )
    assert arrows(index) == [(want, "k")]


@pytest.mark.parametrize(
    "bp, ts, want",
    [("e", 3, "a"), ("e", 12, None), (None, 3, "b"), (None, 15, "b"), (None, 16, None), (None, 0, "a")],
)
def test_ends_bind(tmp_path: Path, bp: str | None, ts: float, want: str | None) -> None:
    """An end with bp=e belongs to the slice around it, one without to the next that begins."""
    events = [
        complete(0, 1, "src"),
        flow("s", 0, 1),
        complete(0, 10, "a", **GPU),
        complete(15, 3, "b", **GPU),
    ]
    index = index_of([*events, flow("f", ts, 1, bp=bp, **GPU)], tmp_path)
    assert arrows(index) == [("src", want)]


def test_chains_and_fans(tmp_path: Path) -> None:
    """Steps link on, one start serves many ends, several starts of one id pair by time."""
    events: list[Event] = []
    for ts in (0, 10, 20, 30, 40, 50):
        events.append(complete(ts, 5, f"x{ts}"))
    events += [
        flow("s", 1, "chain"), flow("t", 11, "chain"), flow("f", 21, "chain", bp="e"),
        flow("s", 2, 7), flow("f", 12, 7, bp="e"), flow("f", 22, 7, bp="e"),
        flow("s", 31, 7), flow("f", 41, 7, bp="e"), flow("f", 51, 8, bp="e"),
        flow("s", 3, 8, "other"), flow("f", 52, 8, "other", bp="e"), flow("s", 4, 9),
    ]  # fmt: skip
    index = index_of(events, tmp_path)
    assert sorted(arrows(index), key=str) == [
        ("x0", "x10"), ("x0", "x10"), ("x0", "x20"), ("x0", "x50"), ("x10", "x20"), ("x30", "x40"),
    ]  # fmt: skip
    assert books(index) == [4, 1, 5, 4, 1, 1]
    assert books(index, "other") == [1, 0, 1, 1, 0, 0]


def test_an_end_before_every_start_follows_the_first(tmp_path: Path) -> None:
    """Kernels whose clock is off still have their launches."""
    events = [complete(0, 1, "k", **GPU), flow("f", 0, 1, bp="e", **GPU)]
    for ts in (100, 200):
        events += [complete(ts, 5, f"launch{ts}"), flow("s", ts, 1)]
    assert arrows(index_of(events, tmp_path)) == [("launch100", "k")]


def test_both_ways_are_sorted(tmp_path: Path) -> None:
    """Flows stand by source, unbound ones last, and by_target lists them by target."""
    events: list[Event] = [flow("s", 999, 50), complete(500, 1, "end"), flow("f", 500, 50, bp="e")]
    for i in range(30):
        events += [complete(i * 10, 5, f"x{i}"), flow("s", i * 10, i)]
        events += [complete(i * 7 % 30 * 10, 4, "k", **GPU), flow("f", i * 7 % 30 * 10, i, bp="e", **GPU)]
    index = index_of(events, tmp_path)
    source, target = index.column("flows.source"), index.column("flows.target")
    assert (np.diff(source.astype(np.int64)) >= 0).all() and source[-1] == NONE
    assert (np.diff(target[index.column("flows.by_target")].astype(np.int64)) >= 0).all()
    assert sorted(index.column("flows.by_target").tolist()) == list(range(31))


ENDS = st.lists(
    st.tuples(st.sampled_from("stf"), st.integers(0, 3), st.integers(0, 8), st.integers(0, 1)), max_size=40
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@pytest.mark.parametrize("loops", BOTH)
@given(ends=ENDS, kind=st.sampled_from([1, 3]))
def test_pairing_equals_the_definition(loops: str, ends: list[tuple[str, int, int, int]], kind: int) -> None:
    """Each step and end follows the latest start or step of its key before it, else the key's first start. A
    flow without ends has one: its last step.
    """
    n = len(ends)
    table: dict[str, Any] = {
        "phase": np.array([ord(e[0]) for e in ends], np.uint8),
        "id_value": np.array([e[1] for e in ends], np.int64),
        "start": np.array([e[2] for e in ends], np.int64),
        "ordinal": np.arange(n, dtype=np.uint32),
        "category": np.zeros(n, np.uint32),
        "id_kind": np.full(n, kind, np.uint8),
    }
    pid = np.array([e[3] for e in ends], np.uint32)
    source, target, counts = loops_of(loops).pair(table, pid, 1)
    want, paired = set(), 0
    order = sorted(range(n), key=lambda i: (ends[i][2], i))
    for at, i in enumerate(order):
        if ends[i][0] == "s":
            continue
        own = [j for j in order if ends[j][1] == ends[i][1] and (kind == 1 or pid[j] == pid[i])]
        before = [j for j in own if order.index(j) < at and ends[j][0] in "st"]
        starts = [j for j in own if ends[j][0] == "s"]
        paired += ends[i][0] == "f" and bool(starts)
        if before or starts:
            want.add(((before[-1:] or starts)[0], i))
    for key in {(e[1], kind == 3 and e[3]) for e in ends}:
        phases = [e[0] for e in ends if (e[1], kind == 3 and e[3]) == key]
        paired += "s" in phases and "t" in phases and "f" not in phases
    assert set(zip(source.tolist(), target.tolist())) == want
    assert len(source) == len(want) and counts[0][FLOW_COUNTS.index("paired")] == paired


def by_stack(opens: list[bool], stacks: list[int]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pairs, unclosed begins and unmatched ends, one event at a time."""
    open_: dict[int, list[int]] = {}
    pairs, unmatched = [], []
    for i, (is_begin, stack) in enumerate(zip(opens, stacks)):
        own = open_.setdefault(stack, [])
        if is_begin:
            own.append(i)
        elif own:
            pairs.append((own.pop(), i))
        else:
            unmatched.append(i)
    return sorted(pairs), sorted(i for own in open_.values() for i in own), unmatched


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@pytest.mark.parametrize("kind", BOTH)
@given(stacks=st.lists(st.lists(st.sampled_from("BESFbeXi"), max_size=30), max_size=6))
def test_equals_a_stack(kind: str, stacks: list[list[str]]) -> None:
    """Partners are those of a stack, in one stack and in several at once; other events have none."""
    phases = [phase for stack in stacks for phase in stack]
    of = [i for i, stack in enumerate(stacks) for _ in stack]
    bounds = np.cumsum([0, *map(len, stacks)]).astype(np.uint64)
    codes = np.array([ord(phase) for phase in phases], np.uint8)
    got = loops_of(kind).match(bounds, codes, np.zeros(len(phases), np.uint32))
    some = [i for i, phase in enumerate(phases) if phase in "BESFbe"]
    pairs, _, _ = by_stack([phases[i] in "BSb" for i in some], [of[i] for i in some])
    want = [NONE] * len(phases)
    for opening, closing in pairs:
        want[some[opening]], want[some[closing]] = some[closing], some[opening]
    assert got.tolist() == want


@pytest.mark.parametrize("kind", BOTH)
@given(
    events=st.lists(st.tuples(st.sampled_from("bSeF"), st.integers(0, 3)), max_size=MAX_OPEN_SEARCHED + 40)
)
def test_asynchronous_ends_close_the_begin_of_their_name(kind: str, events: list[tuple[str, int]]) -> None:
    """Of the open begins the one begun last that has the name; 0 is no name, which fits each."""
    open_: list[int] = []
    want = [NONE] * len(events)
    for at, (phase, name) in enumerate(events):
        if phase in "bS":
            open_.append(at)
            continue
        known = [one for one in open_[-MAX_OPEN_SEARCHED:] if not name or events[one][1] in (0, name)]
        if known:
            open_.remove(known[-1])
            want[known[-1]], want[at] = at, known[-1]
    phases, names = zip(*events) if events else ((), ())
    codes = np.array([ord(phase) for phase in phases], np.uint8)
    got = loops_of(kind).match(np.array([0, len(events)], np.uint64), codes, np.array(names, np.uint32))
    assert got.tolist() == want


@pytest.mark.parametrize("kind", BOTH)
def test_few_open_begins_are_looked_at(kind: str) -> None:
    """An end whose begin has more open ones inside it than are searched closes none, so that a million of
    them take no time.
    """
    for inside in (MAX_OPEN_SEARCHED - 1, MAX_OPEN_SEARCHED):
        names = np.array([1, *[2] * inside, 1], np.uint32)
        codes = np.array([*b"b" * (inside + 1), *b"e"], np.uint8)
        got = loops_of(kind).match(np.array([0, len(names)], np.uint64), codes, names)
        assert bool(got[-1] == 0) is (inside < MAX_OPEN_SEARCHED)


def slices(index: Index) -> list[tuple[str, int, int]]:
    """(name, start, duration) of all slices by position."""
    n = len(index.column("slices.start"))
    names = index.strings(index.column("slices.name"))
    return list(zip(names, index.column("slices.start").tolist(), index.duration(range(n)).tolist()))


def flags(index: Index) -> dict[str, int]:
    """SliceFlag bits by slice name, where there are any."""
    names = index.strings(index.column("slices.name"))
    pairs = zip(index.column("flags.position").tolist(), index.column("flags.value").tolist())
    return {names[position]: value for position, value in pairs}


def test_ends_close_the_innermost_begin(tmp_path: Path) -> None:
    """Pairs keep both ordinals, names of ends are ignored, and each thread has its own stack."""
    index = index_of(
        [begin(1, "a"), begin(2, "b"), begin(2, "other", tid=2), end(5, name="a"), end(9), end(4, tid=2)],
        tmp_path,
    )
    assert slices(index) == [("a", 1000, 8000), ("b", 2000, 3000), ("other", 2000, 2000)]
    assert index.column("ends.ordinal").tolist() == [4, 3, 5]
    assert set(flags(index).values()) == {SliceFlag.PAIR}


def test_order_is_time_then_file(tmp_path: Path) -> None:
    """An end that stands before its begin in the file is matched by time; at one time the file decides."""
    index = index_of([end(5), begin(1, "a"), begin(7, "b"), end(7), end(7)], tmp_path)
    assert slices(index) == [("a", 1000, 4000), ("b", 7000, 0)]
    assert index.read_report["unmatched_end"] == 1


def test_leftovers_are_kept(tmp_path: Path) -> None:
    """An unclosed begin reaches to the end of its lane and is marked, an end without begin is an instant."""
    index = index_of([end(1), begin(2, "open"), complete(3, 40, "x"), event("i", 50)], tmp_path)
    assert ("open", 2000, 48000) in slices(index)
    assert flags(index)["open"] == SliceFlag.UNCLOSED
    assert index.column("instants.phase").tolist() == [ord("E"), ord("i")]
    lane = index.lanes[0]
    assert (lane["slices"], lane["unclosed"], lane["depth"], lane["overlapping"]) == (1, 1, 1, 0)
    assert (
        index.read_report["unmatched_begin"],
        index.read_report["unmatched_end"],
        index.read_report["slices"],
    ) == (
        1,
        1,
        1,
    )
    assert (index.manifest["start_ns"], index.manifest["end_ns"]) == (3000, 43000)


def test_a_nameless_begin_takes_its_ends_name(tmp_path: Path) -> None:
    """What only the end says of a slice is used."""
    index = index_of([begin(1, name=None), end(2, name="told late", cat="late")], tmp_path)
    assert slices(index) == [("told late", 1000, 1000)]
    assert index.categories[index.column("slices.category")[0]] == "late"


def lanes(index: Index, kind: LaneKind) -> list[tuple[str, str, str, int]]:
    """(pid, name, id, slices) of the lanes of a kind."""
    return [
        (
            index.string(index.processes[lane["process"]]["pid"]),
            index.string(lane["name"]),
            index.string(lane["tid"]),
            int(lane["slices"]),
        )
        for lane in index.lanes
        if lane["kind"] == kind
    ]


PAIR = [("b", 1), ("e", 5)]


@pytest.mark.parametrize(
    "first, second, together",
    [
        ({"id": 1}, {"id": 1}, True),
        ({"id": 1}, {"id": "1"}, False),
        ({"id": 1}, {"id": 1, "pid": 2}, False),
        ({"id": 1}, {"id": 1, "tid": 2}, True),
        ({"id": 1}, {"id": 1, "cat": "b"}, False),
        ({"id": None, "id2": {"local": "1"}}, {"id": None, "id2": {"local": "1"}, "pid": 2}, False),
        ({"id": None, "id2": {"global": "1"}}, {"id": None, "id2": {"global": "1"}, "pid": 2}, True),
        ({"id": 1, "scope": "s"}, {"id": 1, "scope": "s", "pid": 2}, True),
        ({"id": 1, "scope": "s"}, {"id": 1, "scope": "t"}, False),
    ],
)
def test_async_keys(tmp_path: Path, first: Event, second: Event, together: bool) -> None:
    """Plain and local ids hold within a process and category, global and scoped ones everywhere."""
    events = [async_event("b", 1, **first), async_event("e", 5, **second)]
    index = index_of(events, tmp_path)
    assert index.read_report["async_spans"] == together
    assert len(lanes(index, LaneKind.ASYNC)) == (1 if together else 2)
    assert (
        index.read_report["async_unmatched_begin"]
        == index.read_report["async_unmatched_end"]
        == (not together)
    )


def test_async_spans_nest_and_carry_marks(tmp_path: Path) -> None:
    """b and e nest by id, n, T and p are marks on the lane, legacy S and F a span."""
    index = index_of(
        [
            async_event("b", 1, 1, "outer"),
            async_event("b", 2, 1, "inner"),
            async_event("n", 3, 1, "mark"),
            async_event("e", 4, 1),
            async_event("e", 9, 1),
            async_event("S", 1, 5, "legacy"),
            async_event("T", 2, 5, "step"),
            async_event("F", 3, 5),
        ],
        tmp_path,
    )
    assert sorted(slices(index)) == [("inner", 2000, 2000), ("legacy", 1000, 2000), ("outer", 1000, 8000)]
    assert lanes(index, LaneKind.ASYNC) == [("1", "async", "1", 2), ("1", "async", "5", 1)]
    assert index.strings(index.column("instants.name")) == ["mark", "step"]
    kinds = [int(row["kind"]) for row in index.rows]
    assert kinds == [RowKind.SLICES, RowKind.SLICES, RowKind.INSTANTS, RowKind.SLICES, RowKind.INSTANTS]
    assert index.manifest["start_ns"] is None  # async spans are no thread slices


def test_many_ids_share_lanes(tmp_path: Path) -> None:
    """Beyond 1,000 ids of a process's category, ids are packed by time: as many lanes as are open at once."""
    events = []
    for i in range(1500):
        events += [async_event("b", 10 * i, i, f"a{i}"), async_event("e", 10 * i + 15, i)]
    index = index_of(events, tmp_path)
    async_lanes = [lane for lane in index.lanes if lane["kind"] == LaneKind.ASYNC]
    assert [int(lane["ids"]) for lane in async_lanes] == [750, 750]
    assert all(int(lane["depth"]) == 1 and not lane["overlapping"] for lane in async_lanes)
    assert len(slices(index)) == 1500


TEXTS = [["", "b", "a", "naïve ☃"], [""], ["", "a", "x" * 3000, "b", "c"]]


def source_strings(kind: str, tables: list[list[str]]) -> SourceStrings:
    encoded = [string_table([text.encode() for text in texts], []) for texts in tables]
    return SourceStrings(encoded, loops_of(kind), np.empty)


def written(strings: SourceStrings, kind: str, folder: Path) -> list[str]:
    with ColumnFiles(folder, "u1") as columns:
        strings.write(columns.writer("blob", "u1"), columns.writer("offset", "i8"), loops_of(kind))
        columns.finish()
        blob, offsets = columns.read("blob").tobytes(), columns.read("offset").tolist()
    return [blob[a:b].decode() for a, b in pairwise(offsets)]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("piece", [1, 10, 1 << 16])
def test_numbers_follow_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, piece: int
) -> None:
    """Texts are numbered as they are used first, whichever table has them, and written by number."""
    monkeypatch.setattr(module, "STRING_PIECE", piece)
    strings = source_strings(kind, TEXTS)
    strings.use(2, np.array([4, 1], np.uint32))
    strings.use(0, np.array([2, 1, 3], np.uint32))
    strings.use(2, np.array([1, 3, 2], np.uint32))
    assert [numbers.tolist() for numbers in strings.maps[:3]] == [
        [0, 3, 2, 4], [0], [0, 2, 5, 3, 1]
    ]  # fmt: skip
    assert strings.numbers(["b", "new", "", "newer", "new"]).tolist() == [3, 6, 0, 7, 6]
    texts = ["", "c", "a", "b", "naïve ☃", "x" * 3000, "new", "newer"]
    assert written(strings, kind, tmp_path) == texts
    assert [strings.text(number) for number in range(strings.count)] == texts


@pytest.mark.parametrize("kind", BOTH)
def test_without_any_string(tmp_path: Path, kind: str) -> None:
    """The empty string is always there, as number 0."""
    strings = source_strings(kind, [])
    assert strings.count == 1 and strings.numbers([""]).tolist() == [0]
    assert written(strings, kind, tmp_path) == [""]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(st.text(max_size=12), max_size=40, unique=True),
    uses=st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 39), max_size=20)), max_size=8),
)
def test_tables_do_not_matter(texts: list[str], uses: list[tuple[int, list[int]]]) -> None:
    """The same uses give the same numbers, whatever the tables in which the texts stand, in C too."""
    texts = ["", *(text for text in texts if text)]
    orders = [list(range(len(texts))), [0, *range(len(texts) - 1, 0, -1)]]
    tables = [[texts[number] for number in order] for order in orders]
    results = []
    for kind in BOTH:
        for given_tables in ([tables[0]], tables, [tables[1], tables[0], tables[1]]):
            strings = source_strings(kind, given_tables)
            for table, some in uses:
                table %= len(given_tables)
                where = [given_tables[table].index(texts[one]) for one in some if one < len(texts)]
                strings.use(table, np.array(list(dict.fromkeys(where)), np.uint32))
            results.append([strings.text(number) for number in range(strings.count)])
    want = dict.fromkeys(["", *(texts[one] for _, some in uses for one in some if one < len(texts))])
    assert all(result == list(want) for result in results)


def test_many_strings() -> None:
    """The hash table grows, and every text is found again."""
    texts = ["", *(f"name {number}" for number in range(20_000))]
    strings = source_strings("native", [texts, texts[::-1][:-1]])
    for at in range(1, len(texts), 700):
        strings.use(0, np.arange(at, min(at + 700, len(texts)), dtype=np.uint32))
    assert strings.count == len(texts)
    strings.use(1, np.arange(len(texts) - 1, dtype=np.uint32))
    assert strings.count == len(texts)
    assert strings.numbers(texts).tolist() == list(range(len(texts)))


BOUNDS = np.array([0, 4], np.uint64)
START, ORDINAL = np.zeros(4, np.int64), np.arange(4, dtype=np.uint32)


def sorts_for_ever(begun: threading.Event | None = None) -> BuildJob:
    """A job that runs loops until one of them is stopped."""

    def run(worker: Worker) -> None:
        if begun is not None:
            begun.set()
        while True:
            worker.loops.order(BOUNDS, START, None, ORDINAL)

    return run


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_all_jobs_are_done(threads: int, native: bool) -> None:
    """Every job is done once, the first ones are begun first, and the end is told."""
    begun: list[int] = []
    counts: list[int] = []

    def job(number: int) -> BuildJob:
        return lambda worker: begun.append(number)

    Workers(threads, never, native).run(
        [job(number) for number in range(30)], np.empty, lambda: counts.append(len(begun))
    )
    assert sorted(begun) == list(range(30)) and counts[-1] == 30
    if threads == 1:
        assert begun == list(range(30))


@pytest.mark.parametrize("native", [True, False])
def test_a_failure_stops_the_others(native: bool) -> None:
    """What a job raises is raised, loops of other threads end, and no thread is left."""
    begun = threading.Event()

    def fail(_: Worker) -> None:
        begun.wait()
        raise CacheError("No space left on device")

    before = running_threads()
    with pytest.raises(CacheError, match="No space"):
        Workers(2, never, native).run([sorts_for_ever(begun), fail, fail], np.empty)
    wait_until(lambda: running_threads() <= before)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_request_to_stop_reaches_the_loops(threads: int, native: bool) -> None:
    """Loops that run end when it is asked for, and Cancelled is raised; asked before, nothing begins."""
    begun = threading.Event()
    before = running_threads()
    with pytest.raises(Cancelled):
        Workers(threads, begun.is_set, native).run([sorts_for_ever(begun), sorts_for_ever()], np.empty)
    with pytest.raises(Cancelled):
        Workers(threads, begun.is_set, native).run([sorts_for_ever()], np.empty)
    wait_until(lambda: running_threads() <= before)
