"""What a row shows in each cell, also filtered, against brute force over the slices."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.events import complete, index_of
from tests.small_index import L, S, write_index
from tracelane.core.index.store import Index
from tracelane.core.query.busy import busy_of, instant_cells, lane_cells, sample_cells, spans
from tracelane.core.query.cells import Cells, row_cells
from tracelane.core.query.filter import parse
from tracelane.core.query.rowview import RowView, RowViews
from tracelane.core.trace import Trace
from tracelane.core.trace.hit_search import matches

BIG = 10**18
CATEGORIES = ("kernel", "cpu_op", "gpu_memcpy", "")


def touches(s: S, left: int, right: int) -> bool:
    if s.duration == 0:
        return left <= s.start < right
    return s.start < right and s.end > left


def brute(row: list[S], edges: list[int], categories: list[str]) -> list[tuple[int, int, str | None, int]]:
    """Return (count, longest, category, busy) per cell by looking at every slice."""
    out = []
    for left, right in itertools.pairwise(edges):
        inside = [(i, s) for i, s in enumerate(row) if touches(s, left, right)]
        if not inside:
            out.append((0, -1, None, 0))
            continue
        longest = max(inside, key=lambda pair: (pair[1].duration, -pair[0]))
        spent: dict[str, int] = {}
        for _, s in inside:
            ns = max(0, min(s.end, right) - max(s.start, left))
            spent[s.category] = spent.get(s.category, 0) + ns
        most = max(spent.values())
        best = [name for name, ns in spent.items() if ns == most]
        category = longest[1].category if longest[1].category in best else min(best, key=categories.index)
        out.append((len(inside), longest[0], category, sum(spent.values())))
    return out


def seen(index: Index, cells: Cells) -> list[tuple[int, int, str | None, int]]:
    return [
        (int(n), int(i), None if c < 0 else index.categories[int(c)], int(b))
        for n, i, c, b in zip(cells.count, cells.longest, cells.category, cells.busy)
    ]


def row_of(gaps: list[tuple[int, int, int]], start: int) -> list[S]:
    """Return a row of disjoint slices from (gap, duration, category number) triples."""
    row, at = [], start
    for gap, duration, kind in gaps:
        at += gap
        row.append(S(at, duration, f"n{len(row) % 7}", CATEGORIES[kind]))
        at += duration
    return row


def fits(row: list[S]) -> bool:
    return row[-1].end < 1 << 62 and row[0].start > -(1 << 62)


lengths = st.one_of(
    st.just(0), st.integers(0, 5), st.integers(0, 1000), st.sampled_from([1, 2**32 - 3, 2**33, BIG])
)
rows = st.lists(st.tuples(lengths, lengths, st.integers(0, 3)), min_size=1, max_size=30)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(rows, st.integers(-(10**6), 10**6), st.data())
def test_cells_equal_brute_force(tmp_path_factory: pytest.TempPathFactory, gaps, start, data) -> None:
    """Count, longest, dominant category and busy time are those of looking at every slice."""
    row = [s for s in row_of(gaps, start) if s.end < 1 << 62]
    if not row:
        return
    folder = tmp_path_factory.mktemp("index")
    index = open_row(folder, row)
    stamps = [t for s in row for t in (s.start, s.end)]
    near = st.builds(lambda t, d: t + d, st.sampled_from(stamps), st.integers(-2, 2))
    anywhere = st.integers(min(stamps) - 10, max(stamps) + 10)
    huge = st.sampled_from([-(1 << 70), 1 << 70, -(1 << 63), (1 << 63) - 1])
    edges = sorted(data.draw(st.lists(st.one_of(near, anywhere, near, huge), min_size=2, max_size=12)))
    check(index, row, edges)


def open_row(folder: Path, row: list[S], **more) -> Index:
    """Write one row as it stands (the order of equal stamps is part of the test) and open it."""
    write_index(folder, [L(slices=row, one_row=True)], **more)
    return Index.open(folder)


def check(index: Index, row: list[S], edges: list[int], offset: int = 0) -> None:
    """Compare every row of the lane with brute force over the slices that lie in it."""
    for number, entry in enumerate(index.rows):
        first, count = int(entry["first"]), int(entry["count"])
        ordinals = index.column("slices.ordinal")[first : first + count].tolist()
        by_ordinal = {s.ordinal: s for s in row}
        here = [by_ordinal[o] for o in ordinals]
        cells = row_cells(index, number, [e + offset for e in edges], offset)
        assert seen(index, cells) == brute(here, edges, index.categories)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 64, 65, 1000, 5000, 20000])
@pytest.mark.parametrize("width", [1, 7, 200])
def test_long_rows_equal_brute_force(tmp_path: Path, count: int, width: int) -> None:
    """Rows that need the pyramid and the stored sums answer as brute force does, at every zoom."""
    rng = random.Random(count * 1000 + width)
    gaps = [
        (
            rng.choice([0, 0, 1, 50]),
            rng.choice([0, 1, 3, 100, 2**32 + 7 if rng.random() < 0.01 else 5]),
            rng.randrange(4),
        )
        for _ in range(count)
    ]
    row = row_of(gaps, -500)
    index = open_row(tmp_path, row)
    low, high = row[0].start, row[-1].end
    for span in (high - low + 1, (high - low) // 3 + 1, 1000, width):
        begin = rng.randint(low, max(low, high - span))
        check_fast(index, row, [begin + i * span // width for i in range(width + 1)])


def check_fast(index: Index, row: list[S], edges: list[int]) -> None:
    starts = np.array([s.start for s in row])
    cells = row_cells(index, 0, edges)
    got = seen(index, cells)
    for cell, (left, right) in enumerate(itertools.pairwise(edges)):
        a = max(0, int(np.searchsorted(starts, left)) - 2)
        b = int(np.searchsorted(starts, right)) + 1
        expected = brute(row[a:b], [left, right], index.categories)[0]
        if expected[1] >= 0:
            expected = (expected[0], expected[1] + a, *expected[2:])
        assert got[cell] == expected, cell


def test_a_row_of_very_many_categories_equals_brute_force(tmp_path: Path, monkeypatch) -> None:
    """Where a row has too many categories for a table, the dominant one and the busy time are the same."""
    monkeypatch.setattr("tracelane.core.query.cells.MANY", 10)
    rng = random.Random(5)
    row = [S(i * 10, rng.choice([0, 3, 10]), "x", f"c{rng.randrange(300)}") for i in range(2000)]
    index = open_row(tmp_path, row)
    for edges in ([0, 10000, 15005, 20001], [3, 4, 5, 50, 55, 300], [-5, -1]):
        check(index, row, edges)


def test_offset_moves_edges_beyond_int64(tmp_path: Path) -> None:
    """A clock offset of any size is taken off before the edges meet the columns."""
    row = row_of([(0, 10, 0), (5, 10, 1)], 0)
    index = open_row(tmp_path, row)
    check(index, row, [-5, 0, 3, 12, 15, 20, 30], offset=1 << 80)


def test_spans_merge_and_never_hide(tmp_path: Path) -> None:
    """A slice over several cells is one whole span; crowded cells of one category merge; no cell is lost."""
    row = [S(0, 100, "long"), *[S(200 + i, 1, "tiny", "kernel") for i in range(50)], S(300, 5, "last")]
    index = open_row(tmp_path, row)
    edges = list(range(0, 401, 10))
    cells = row_cells(index, 0, edges)
    row_spans = spans(index, 0, cells)
    assert [(s.left, s.right, s.whole, s.slices) for s in row_spans] == [
        (0, 10, True, 1),
        (20, 25, False, 10),
        (30, 31, True, 1),
    ]
    covered = {cell for s in row_spans for cell in range(s.left, s.right)}
    assert covered == set(np.flatnonzero(cells.count).tolist())


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(-5, 5)), min_size=1, max_size=40), st.data())
def test_samples_equal_brute_force(tmp_path_factory: pytest.TempPathFactory, samples, data) -> None:
    """Counter bands are those of a step-wise line drawn from every sample."""
    folder = tmp_path_factory.mktemp("index")
    write_index(folder, [L(series={"a": samples})])
    index = Index.open(folder)
    edges = sorted(data.draw(st.lists(st.integers(-3, 45), min_size=2, max_size=8)))
    compare_samples(index, sorted(samples, key=lambda s: s[0]), edges)


def test_long_series_equal_brute_force(tmp_path: Path) -> None:
    """Series that need the pyramid give the same bands."""
    rng = random.Random(3)
    samples = sorted(((rng.randrange(10**6), rng.uniform(-5, 5)) for _ in range(9000)), key=lambda s: s[0])
    write_index(tmp_path, [L(series={"a": samples})])
    index = Index.open(tmp_path)
    compare_samples(index, samples, [i * 10**6 // 13 for i in range(14)])
    compare_samples(index, samples, [5000 + i * 100 for i in range(60)])


def compare_samples(index: Index, samples: list[tuple[int, float]], edges: list[int]) -> None:
    cells = sample_cells(index, 0, edges)
    for cell, (left, right) in enumerate(itertools.pairwise(edges)):
        inside = [v for t, v in samples if left <= t < right]
        before = [v for t, v in samples if t < left]
        held = list(inside)
        if (before and not any(t == left for t, _ in samples if left < right)) or (before and left == right):
            held.append(before[-1])
        assert cells.count[cell] == len(inside)
        until = [v for t, v in samples if t < right]
        if held:
            assert (cells.low[cell], cells.high[cell]) == (min(held), max(held))
        else:
            assert math.isnan(cells.low[cell]) and math.isnan(cells.high[cell])
        assert cells.last[cell] == until[-1] if until else math.isnan(cells.last[cell])


def test_instants_are_counted_per_cell(tmp_path: Path) -> None:
    """Every instant is in the one cell that holds its stamp."""
    write_index(tmp_path, [L(instants=[(t, "i", "") for t in (0, 5, 5, 9, 10, 30)])])
    cells = instant_cells(Index.open(tmp_path), 0, [0, 5, 10, 20, 31])
    assert cells.count.tolist() == [1, 3, 1, 1]
    assert cells.first.tolist() == [0, 1, 4, 5]


def test_folded_lane_shows_everything(tmp_path: Path) -> None:
    """A folded lane's cells are busy where its top row is, and never blank where an overlap lies."""
    lane = L(slices=[S(0, 10), S(2, 3), S(8, 30), S(50, 5)])
    write_index(tmp_path, [lane, L(tid="2", instants=[(25, "i", "")])])
    index = Index.open(tmp_path)
    edges = [0, 10, 20, 30, 40, 60]
    cells = lane_cells(index, 0, edges)
    assert (cells.count > 0).tolist() == [True, True, True, True, True]
    assert cells.busy.tolist() == [10, 10, 10, 8, 5]
    busy = busy_of([(index, 0, 0), (index, 1, 0)], edges)
    assert busy.peak.tolist() == [1.0, 1.0, 1.0, 0.8, 0.25]
    assert busy.count[2] >= 2 and busy.lanes == 2


def test_folded_lane_shows_what_annotations_hold(tmp_path: Path) -> None:
    """Where annotations lie on top the cells of a folded lane are busy with what is in them, and have the
    category of annotations where nothing is.
    """
    step, part = S(0, 40, "step", "user_annotation"), S(10, 20, "forward", "user_annotation")
    write_index(tmp_path, [L(slices=[step, part, S(10, 10), S(12, 5), S(40, 10)])])
    index = Index.open(tmp_path)
    numbers = {category: number for number, category in enumerate(index.categories)}
    annotation, op = numbers["user_annotation"], numbers["cpu_op"]
    cells = lane_cells(index, 0, [0, 10, 20, 30, 40, 50, 60], leaving_out=[annotation])
    assert cells.busy.tolist() == [0, 10, 0, 0, 10, 0]
    assert cells.category.tolist() == [annotation, op, annotation, annotation, op, -1]
    assert (cells.count > 0).tolist() == [True] * 5 + [False]


def test_work_does_not_grow_with_the_row(tmp_path: Path) -> None:
    """A row four times as long costs a zoomed-out query about the same number of elements read."""
    reads = {}
    for count in (16000, 64000):
        row = row_of([(1, 3, i % 3) for i in range(count)], 0)
        index = open_row(tmp_path / str(count), row)
        read = Reads(index)
        row_cells(read, 0, [i * row[-1].end // 20 for i in range(21)])  # type: ignore[arg-type]
        reads[count] = read.total
    assert reads[64000] < reads[16000] * 2


class Reads:
    """An index that counts the durations asked of it."""

    def __init__(self, index: Index) -> None:
        self._index, self.total = index, 0

    def duration(self, positions):
        self.total += len(positions)
        return self._index.duration(positions)

    def durations_between(self, begin, end):
        self.total += end - begin
        return self._index.durations_between(begin, end)

    def __getattr__(self, name):
        return getattr(self._index, name)


KINDS = ("kernel", "cpu_op", "gpu_memcpy")


def brute_rowview(left_over: list[tuple[int, S]], low: int, high: int) -> tuple[int, int, int]:
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
        expected = [brute_rowview(left_over, a, b) for a, b in itertools.pairwise(edges)]
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
