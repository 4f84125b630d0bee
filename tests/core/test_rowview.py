"""A filtered row draws what brute force over the slices left of it says."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest

from tests.events import complete, index_of
from tests.small_index import L, S, write_index
from tracelane.core.index.store import Index
from tracelane.core.query.cells import row_cells
from tracelane.core.query.filter import parse
from tracelane.core.query.rowview import RowView, RowViews
from tracelane.core.trace import Trace
from tracelane.core.trace.hit_search import matches

KINDS = ("kernel", "cpu_op", "gpu_memcpy")


def brute(left_over: list[tuple[int, S]], low: int, high: int) -> tuple[int, int, int]:
    """Return (count, index of the longest, busy ns) of a cell by looking at every slice left."""
    inside = [
        (i, s)
        for i, s in left_over
        if (s.start < high and s.end > low if s.duration else low <= s.start < high)
    ]
    if not inside:
        return 0, -1, 0
    longest = max(inside, key=lambda pair: (pair[1].duration, -pair[0]))[0]
    return len(inside), longest, sum(min(s.end, high) - max(s.start, low) for _, s in inside if s.duration)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "share"), [(1, 1.0), (30, 0.5), (3000, 0.9), (9000, 0.05), (50, 0.0)])
def test_cells_equal_brute_force_over_what_is_left(tmp_path: Path, count: int, share: float) -> None:
    """Few or many slices, long ones too: count, longest and busy time are those of the slices left."""
    pick = random.Random(count)
    row, at = [], 5
    for number in range(count):
        ns = pick.choice([0, 3, 1000, 2**33 if number % 50 == 0 else 7])
        row.append(S(at, ns, f"n{number % 5}", pick.choice(KINDS)))
        at += ns + pick.choice([0, 1, 20])
    write_index(tmp_path, [L(slices=row, one_row=True)])
    index = Index.open(tmp_path)
    ordinals = index.column("slices.ordinal").tolist()
    row = sorted(row, key=lambda s: ordinals.index(s.ordinal))
    indices = np.array([i for i in range(count) if pick.random() < share], np.int64)
    view = RowView(index, 0, indices)
    assert (view.count, view.hidden) == (len(indices), count - len(indices))
    for width in (1, 7, 40):
        low = pick.randrange(at)
        high = pick.randrange(low, at + 50) + width
        edges = [low + (high - low) * i // width for i in range(width + 1)]
        cells = view.cells([edge + 11 for edge in edges], 11)
        left_over = [(i, row[i]) for i in indices.tolist()]
        expected = [brute(left_over, a, b) for a, b in itertools.pairwise(edges)]
        assert list(zip(cells.count.tolist(), cells.longest.tolist(), cells.busy.tolist())) == expected


def test_a_view_of_everything_is_the_row(tmp_path: Path) -> None:
    """Where nothing is hidden the view answers as the row itself, category included."""
    pick = random.Random(3)
    starts = sorted(pick.sample(range(10**6), 2000))
    row = [S(a, pick.randrange(b - a + 1), "x", pick.choice(KINDS)) for a, b in itertools.pairwise(starts)]
    write_index(tmp_path, [L(slices=row, one_row=True)])
    index = Index.open(tmp_path)
    view = RowView(index, 0, np.arange(len(row)))
    edges = list(range(0, 10**6, 12_345))
    ours, theirs = vars(view.cells(edges)), vars(row_cells(index, 0, edges))
    assert theirs and ours.keys() == theirs.keys()
    for name, column in theirs.items():
        assert ours[name].tolist() == column.tolist(), name


def test_views_are_made_once_and_bounded(tmp_path: Path) -> None:
    """The views of a filter's rows are kept while there is room for them."""
    events = [complete(i * 10, 5, f"n{i % 2}", tid=1 + i % 3) for i in range(60)]
    trace = Trace([index_of(events, tmp_path / "index")])
    hits = matches(trace, parse("n1"))
    roomy, tight = RowViews(hits), RowViews(hits, cache_bytes=1)
    rows = [trace.row(lane, 0).number for lane in trace.lanes]
    assert [roomy.of(0, row).hidden for row in rows] == [10, 10, 10]
    assert all(roomy.of(0, row) is roomy.of(0, row) for row in rows)
    first = tight.of(0, rows[0])
    tight.of(0, rows[1])
    assert tight.of(0, rows[0]) is not first
