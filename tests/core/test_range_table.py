"""The range's table: sums per name and category, busy time per lane, held to plain loops."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest

from tests.corpus import CASES, needs_cases, thinned
from tests.events import complete, index_of
from tracelane.core import open_trace
from tracelane.core.index.store import Index
from tracelane.core.tables import range_table as module
from tracelane.core.tables import scope as scope_module
from tracelane.core.tables.range_table import lane_table, range_table
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace

RANGES = (None, (0, 1_000), (17_000, 90_000), (5_000, 5_001), (399_000, 400_000), (700_000, 800_000))


def _index(folder: Path, seed: int) -> Index:
    pick = random.Random(seed)
    events = [
        complete(
            pick.randrange(400),
            pick.choice([0, 1, 5, 40, 200]),
            f"n{pick.randrange(5)}",
            pick.choice(["cpu_op", "kernel", ""]),
            tid=1 + i % 3,
        )
        for i in range(400)
    ]
    return index_of(events, folder)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Three threads of slices that nest and overlap at random, names in several categories."""
    return Trace([_index(tmp_path / "a", 5)])


def _inside(trace: Trace, range_: tuple[int, int] | None) -> list[tuple[str, str, int, int, int, int]]:
    """Return (name, category, lane, start, end, position) of every slice, cut to the range."""
    slices = []
    index = trace.indexes[0]
    for row in index.rows:
        for at in range(int(row["first"]), int(row["first"]) + int(row["count"])):
            start, end = index.start(at), index.end(at)
            if range_ is not None:
                low, high = range_
                if not (start < high and (end > low or start == end >= low)):
                    continue
                start, end = max(start, low), min(end, high)
            name = index.string(int(index.column("slices.name")[at]))
            kind = index.categories[int(index.column("slices.category")[at])]
            slices.append((name, kind, int(row["lane"]), start, end, at))
    return slices


@pytest.mark.slow
@pytest.mark.parametrize("range_", RANGES)
@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_sums_are_those_of_a_loop(
    trace: Trace, range_: tuple[int, int] | None, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count, total, mean, least, most and the longest slice of each name are what a plain loop finds."""
    monkeypatch.setattr(scope_module, "CHUNK", chunk)
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name, kind, _, start, end, _ in _inside(trace, range_):
        times[name, kind].append(end - start)
    table = range_table(Scope(trace, range_))
    assert len(table) == len(times)
    for number, row in enumerate(table.rows()):
        spent = times[str(row["name"]), str(row["category"])]
        assert (row["count"], row["total_ns"], row["min_ns"], row["max_ns"]) == (
            len(spent),
            sum(spent),
            min(spent),
            max(spent),
        )
        assert row["mean_ns"] == pytest.approx(sum(spent) / len(spent))
        assert table.positions is not None
        (longest,) = [s for s in _inside(trace, range_) if s[5] == table.positions[number]]
        assert longest[:2] == (row["name"], row["category"])
        assert longest[4] - longest[3] == row["max_ns"]


@pytest.mark.parametrize("range_", RANGES)
def test_self_time_is_shared_out_whole(trace: Trace, range_: tuple[int, int] | None) -> None:
    """Self times are those of all chunks, and the shares add up to one."""
    table = range_table(Scope(trace, range_))
    own = sum(int(chunk.self_times.sum()) for chunk in Scope(trace, range_).chunks())
    assert table.totals["self_ns"] == own
    assert sum(float(row["share"] or 0) for row in table.rows()) == pytest.approx(1 if own else 0)


@pytest.mark.slow
@pytest.mark.parametrize(("range_", "odd", "chunk"), thinned(product(RANGES, [False, True], [7, 1 << 20]), 3))
def test_busy_is_time_in_which_anything_runs(
    trace: Trace, range_: tuple[int, int] | None, odd: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lane is busy at each µs at which one of its slices runs, counted once, with and without a filter."""
    monkeypatch.setattr(scope_module, "CHUNK", chunk)
    busy: dict[int, set[int]] = defaultdict(set)
    for _, _, lane, start, end, at in _inside(trace, range_):
        if not odd or at % 2:
            busy[lane] |= set(range(start, end))
    where = (lambda index, positions: positions % 2 == 1) if odd else None
    table = lane_table(Scope(trace, range_, where=where))
    actual = {int(str(row["lane"]).split()[-1]) - 1: row["busy_ns"] for row in table.rows()}
    assert actual == {lane: len(ns) for lane, ns in busy.items()}
    low, high = range_ or trace.span
    for row in table.rows():
        assert row["share"] == pytest.approx(int(row["busy_ns"] or 0) / (high - low))


def test_several_sources_are_one_table(tmp_path: Path) -> None:
    """A name of two files is one row, its longest slice in the file that has it."""
    trace = Trace([_index(tmp_path / "a", 5), _index(tmp_path / "b", 6)])
    both = range_table(Scope(trace))
    alone = [range_table(Scope(trace, source=source)) for source in (0, 1)]
    assert both.totals["slices"] == 800
    for number, row in enumerate(both.rows()):
        rows = [
            (other, source, at)
            for source, table in enumerate(alone)
            for at, other in enumerate(table.rows())
            if (other["name"], other["category"]) == (row["name"], row["category"])
        ]
        assert row["total_ns"] == sum(int(other["total_ns"] or 0) for other, _, _ in rows)
        assert row["max_ns"] == max(int(other["max_ns"] or 0) for other, _, _ in rows)
        assert both.sources is not None and both.positions is not None
        index = trace.indexes[int(both.sources[number])]
        assert int(index.duration([int(both.positions[number])])[0]) == row["max_ns"]


def test_too_many_names_are_counted(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the most rows a note says what is left out."""
    monkeypatch.setattr(module, "MOST_ROWS", 4)
    table = range_table(Scope(trace))
    assert len(table) == 4 and "more names" in table.notes[0]


@needs_cases
def test_a_devices_annotation_is_no_work(tmp_path: Path) -> None:
    """An annotation over a kernel with gaps has no time of its own, and keeps no lane busy."""
    trace = open_trace([CASES / "adversarial" / "gpu_ann.json"], index_dir=tmp_path)
    rows = {(row["name"], row["category"]): row for row in range_table(Scope(trace)).rows()}
    assert rows["k", "kernel"]["self_ns"] == 1_900_000
    assert rows["ProfilerStep#1", "gpu_user_annotation"]["self_ns"] == 0
    assert rows["ProfilerStep#1", "gpu_user_annotation"]["total_ns"] == 2_000_000
    busy = {row["lane"]: (row["count"], row["busy_ns"]) for row in lane_table(Scope(trace)).rows()}
    assert busy == {"thread 7": (2, 1_900_000), "thread 100": (2, 100_000)}
    trace.close()
