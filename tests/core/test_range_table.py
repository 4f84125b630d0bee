"""The range's table and the name that takes most time of a window, held to plain loops."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import CASES, needs
from tests.events import complete, index_of
from tests.small_index import L, S, write_index
from tracelane.core.index.store import Index
from tracelane.core.query.drawn import BLOCK_READ, LeadingName, RowSlices, leading_names
from tracelane.core.tables.frame import scope as scope_module
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host import range_table as module
from tracelane.core.tables.host.range_table import lane_table, range_table
from tracelane.core.trace import Trace, open_trace

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
@pytest.mark.parametrize(("range_", "odd", "chunk"), product(RANGES, [False, True], [7, 1 << 20]))
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
    monkeypatch.setattr(module, "MAX_ROWS", 4)
    table = range_table(Scope(trace))
    assert len(table) == 4 and "more names" in table.notes[0]


@needs(CASES)
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


NAMES = ("gemm", "copy", "relu")


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> tuple[RowSlices, list[S]]:
    """A row of 6,000 slices with pauses, in which a name that is rare at first takes most time at last."""
    chance, at, slices = np.random.default_rng(3), 1_000, []
    for number in range(6_000):
        name = NAMES[int(chance.integers(3))] if number < 4_000 else NAMES[number % 4 % 3]
        ns = int(chance.integers(0, 50)) * (3 if name == "copy" and number > 4_000 else 1)
        slices.append(S(at, ns, name))
        at += ns + int(chance.integers(0, 30))
    folder = tmp_path_factory.mktemp("index") / "index"
    write_index(folder, [L(slices, one_row=True)])
    index = Index.open(folder)
    return RowSlices(index, 0, index.column("slices.start")[:]), slices


def plain(slices: list[S], left: int, right: int) -> tuple[Counter[str], int]:
    """Return the ns of each name inside a window, and how many slices touch it."""
    totals: Counter[str] = Counter()
    count = 0
    for one in slices:
        inside = min(one.end, right) - max(one.start, left)
        if inside > 0 or left <= one.start < right:
            count += 1
            totals[one.name] += max(0, inside)
    return totals, count


@pytest.mark.slow
@given(st.lists(st.integers(0, 300_000), min_size=2, max_size=8, unique=True))
def test_the_name_and_its_share_are_exact(row: tuple[RowSlices, list[S]], edges: list[int]) -> None:
    """Of windows whose slices are all read, name, share and count are what adding up one by one gives."""
    edges.sort()
    slices, listed = row
    for lead, left, right in zip(leading_names(slices, edges[:-1], edges[1:]), edges, edges[1:]):
        totals, count = plain(listed, left, right)
        assert lead.is_exact and lead.slices == count
        if not sum(totals.values()):
            assert lead.name == -1 and lead.share == 0
            continue
        name = slices.index.string(lead.name)
        assert totals[name] == max(totals.values())
        assert lead.share == pytest.approx(totals[name] / sum(totals.values()))


def test_a_sample_is_said_and_stays_while_panning(row: tuple[RowSlices, list[S]]) -> None:
    """Of more slices than may be read a sample says so, is near the truth, and reads the same blocks after a
    step to the side.
    """
    slices, listed = row
    whole = (0, listed[-1].end + 1)
    (lead,) = leading_names(slices, [whole[0]], [whole[1]], most=8 * BLOCK_READ)
    totals, count = plain(listed, *whole)
    assert not lead.is_exact and lead.slices == count
    assert abs(lead.share - totals[slices.index.string(lead.name)] / sum(totals.values())) < 0.1
    (aside,) = leading_names(slices, [listed[9].start], [whole[1]], most=8 * BLOCK_READ)
    assert aside.name == lead.name and abs(aside.share - lead.share) < 0.01


def test_a_filtered_row_counts_what_is_left(row: tuple[RowSlices, list[S]]) -> None:
    """Of a row of which a filter leaves some slices, only these count."""
    slices, listed = row
    left = np.array([i for i, one in enumerate(listed) if one.name == "relu"], np.int64)
    some = RowSlices(slices.index, 0, slices.starts[left], left)
    (lead,) = leading_names(some, [0], [listed[-1].end])
    assert lead == LeadingName(lead.name, 1.0, len(left), True)
    assert slices.index.string(lead.name) == "relu"
