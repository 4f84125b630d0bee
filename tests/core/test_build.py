"""Building an index: every event finds its place, in display order, whatever the parts were."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.batches import Part
from tests.events import (
    Event,
    begin,
    build_parts,
    complete,
    counter,
    end,
    event,
    every_phase,
    index_of,
    metadata,
    part_of,
    parts_of,
    read_result,
)
from tracelane.core.base.errors import CacheError, Cancelled
from tracelane.core.base.progress import Progress
from tracelane.core.index import column_files, lane_writer
from tracelane.core.index import events as events_module
from tracelane.core.index.build import build
from tracelane.core.index.column_files import ColumnFiles
from tracelane.core.index.format import LONG, NONE, LaneKind, RowKind, SliceFlag
from tracelane.core.index.store import Index
from tracelane.core.index.workers import Workers
from tracelane.core.read.batch_store import BatchStore, store_batch
from tracelane.core.read.columns import TIME_LIMIT
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
    for key in ("read_report", "start_ns", "end_ns", "bounds", "tables"):
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
        build_parts(parts, tmp_path / name, Workers(threads, native=native))
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    whole = built("whole", 1, False)
    monkeypatch.setattr(events_module, "GROUP", 50)
    if in_files:
        monkeypatch.setattr(column_files.Scratch.__init__, "__defaults__", (0,))
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


def test_scratch_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that do not fit into memory lie in files meanwhile, with the same result, and leave nothing."""
    events = every_phase(seed=9)
    index_of(events, tmp_path / "memory")
    monkeypatch.setattr(column_files.Scratch.__init__, "__defaults__", (0,))
    index_of(events, tmp_path / "files", [50])
    assert files(tmp_path / "memory") == files(tmp_path / "files")
    assert not (tmp_path / "files" / "scratch").exists()


def test_pieces_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is the same bytes however little is treated at once, and when all scratch lies in files."""
    times = np.random.default_rng(3).integers(0, (900, 30), (500, 2)).tolist()
    events = [*every_phase(), *(complete(start, length, pid=88) for start, length in times)]
    cuts = [7, 100, 101, 300]
    index_of(events, tmp_path / "whole", cuts)
    monkeypatch.setattr(column_files.Scratch.__init__, "__defaults__", (0,))
    for module, name in ((lane_writer, "PIECE"), (events_module, "GROUP"), (events_module, "SLOTS_PIECE")):
        monkeypatch.setattr(module, name, 3)
    index_of(events, tmp_path / "pieces", cuts)
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
    assert index.verify() == []
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
    assert index.verify() == []


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
