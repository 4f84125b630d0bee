"""Drawing columns: sums, longest slices and extremes are what a scan of the row finds."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.events import complete, counter, index_of
from tracelane.core.index.column_checks import check_values
from tracelane.core.index.format import BLOCK, FANOUT, NO_SUMS, NONE
from tracelane.core.index.pyramid import category_sums, extremes, longest, sums_begin

DRAWING = ("category_sums", "row_categories", "pyramid.longest", "pyramid.low", "pyramid.high")
COUNTS = st.lists(st.sampled_from([1, 2, 63, 64, 65, 128, 1000, 1025, 3000]), min_size=1, max_size=6)


def blocks(values: Any, size: int) -> list[Any]:
    return [values[i : i + size] for i in range(0, len(values), size)]


@settings(max_examples=40, deadline=None)
@given(COUNTS, st.integers(1, 9), st.integers(0, 99))
def test_category_sums(counts: list[int], categories: int, seed: int) -> None:
    """Per row: its categories, and their time before each block, totals last."""
    random = np.random.default_rng(seed)
    total = sum(counts)
    duration, category = random.integers(0, 10**12, total), random.integers(0, categories, total) * 3
    got = category_sums(np.array(counts), duration, category, 3 * categories)
    at = sums_at = categories_at = 0
    for r, n in enumerate(counts):
        mine, ns = category[at : at + n], duration[at : at + n]
        own = sorted(set(mine.tolist()))
        assert got.categories[categories_at : categories_at + len(own)].tolist() == own
        lines = [[0] * len(own)]
        for block in range(0, n, BLOCK):
            inside = slice(block, block + BLOCK)
            spent = [int(ns[inside][mine[inside] == c].sum()) for c in own]
            lines.append([a + b for a, b in zip(lines[-1], spent)])
        want = [value for line in lines for value in line]
        assert got.sums_count[r] == len(want)
        assert got.sums[sums_at : sums_at + len(want)].tolist() == want
        at, sums_at, categories_at = at + n, sums_at + len(want), categories_at + len(own)


def test_rows_of_very_many_categories_store_no_sums() -> None:
    """Sums never outgrow the slices: a row of 20,000 categories says that it has none; its neighbours do."""
    counts = np.array([3, 20_000, 100])
    category = np.concatenate(([0, 1, 0], np.arange(20_000), np.zeros(100, np.int64)))
    got = category_sums(counts, np.ones(len(category), np.int64), category, 20_000)
    assert got.category_count.tolist() == [2, 20_000, 1]
    assert got.sums_count.tolist() == [4, 0, 3]
    assert got.sums.tolist() == [0, 0, 2, 1, 0, 64, 100]
    assert sums_begin(np.array([0, 4, 4]), got.sums_count).tolist() == [0, NO_SUMS, 4]


@settings(max_examples=40, deadline=None)
@given(COUNTS, st.integers(0, 99))
def test_pyramids(counts: list[int], seed: int) -> None:
    """Level after level up to one entry: the first longest slice per block, least and greatest sample."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 9, sum(counts))
    want: list[int] = []
    low: list[float] = []
    high: list[float] = []
    at = 0
    for n in counts:
        entries, size = list(range(at, at + n)), BLOCK
        lows = highs = values[at : at + n].tolist()
        while len(entries) > (BLOCK if size == BLOCK else 1):
            entries = [max(group, key=lambda i: (values[i], -i)) for group in blocks(entries, size)]
            lows, highs = [min(b) for b in blocks(lows, size)], [max(b) for b in blocks(highs, size)]
            want, low, high, size = want + entries, low + lows, high + highs, FANOUT
        at += n
    assert longest(np.array(counts), values).tolist() == want
    got = extremes(np.array(counts), values.astype(np.float64))
    assert (got[0].tolist(), got[1].tolist()) == (low, high)


def test_stored_for_long_rows(tmp_path: Path) -> None:
    """Every row finds its sums and its pyramid by the row table."""
    events = [complete(i * 10, 4 + i % 3, "x", f"c{i % 3}") for i in range(5000)]
    events += [complete(i * 10, 5, "y", tid=2) for i in range(100)]
    events += [counter(i, "mem", used=i % 50) for i in range(200)]
    index = index_of(events, tmp_path)
    long, short, samples = index.rows
    assert index.column("pyramid.longest")[short["pyramid"]] == short["first"]
    assert index.column("pyramid.high")[int(samples["pyramid"]) + 4] == 49
    totals = index.column("category_sums")[int(long["sums"]) + 79 * 3 : int(long["sums"]) + 80 * 3]
    assert totals.sum() == index.duration(range(5000)).sum()


def test_a_longest_slice_of_another_row_is_refused(tmp_path: Path) -> None:
    """Each row's entries name slices of the row, from its first to its last; else the column is damaged."""
    index = index_of([complete(i * 10, 5, "x", tid=tid) for tid in (1, 2) for i in range(200)], tmp_path)
    sound = index.column("pyramid.longest")
    check_values("pyramid.longest", sound, index)
    for row in index.rows:
        first, end, own = (
            int(row["first"]),
            int(row["first"] + row["count"]),
            slice(int(row["pyramid"]), None),
        )
        for value, is_sound in ((first - 1, False), (first, True), (end - 1, True), (end, False)):
            wrong = sound.copy()
            wrong[own][:2] = value if value >= 0 else NONE
            with nullcontext() if is_sound else pytest.raises(ValueError, match=r"pyramid\.longest"):
                check_values("pyramid.longest", wrong, index)


def test_more_than_one_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of rows and pieces of long ones leave no seam: the columns are those of one batch."""
    events = [
        complete(i * 10 + j, 9 - 2 * j, "x", f"c{i % 3}", tid=i % 4) for i in range(300) for j in range(3)
    ]
    events += [complete(i * 6_000_000_000, (i * 7 % 50) * 100_000_000, "z", tid=9) for i in range(300)]
    events += [complete(i, 1, "w", f"c{i}", tid=8) for i in range(500)]  # too many categories for sums
    events += [counter(i, "mem", used=i * 37 % 1100) for i in range(1100)]
    whole = index_of(events, tmp_path / "one")
    monkeypatch.setattr("tracelane.core.index.pyramid.BATCH", BLOCK)
    pieces = index_of(events, tmp_path / "many")
    assert np.array_equal(whole.rows, pieces.rows)
    for name in DRAWING:
        assert np.array_equal(whole.column(name), pieces.column(name))
