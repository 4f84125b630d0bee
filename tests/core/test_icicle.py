"""The drawing of a call tree: where its calls lie, what a line of cells shows, and which slices a call is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.tui.small_file import small_file
from tracelane.core.demo.trace import write_demo
from tracelane.core.tables.icicle import Icicle, icicle_of, row_categories
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.table import Table
from tracelane.core.tables.tree import ROOT, TreeRoots, sandwich, tree_table
from tracelane.core.tables.tree_slices import slices_of_node
from tracelane.core.trace import open_trace
from tracelane.core.trace.hit_search import hits_at

VIEWS: tuple[tuple[TreeRoots, bool], ...] = (
    ("all", False),
    ("all", True),
    ("thread", False),
    ("launch", False),
)
"""Of what the roots are made, and whether the tree is from the bottom."""


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Scope]]:
    """The whole of a small trace, of the demo's two ranks, and a third of them."""
    folder = tmp_path_factory.mktemp("icicle")
    traces = [
        open_trace(path, index_dir=folder / "index")
        for path in (small_file(folder), write_demo(folder / "demo")[:2])
    ]
    whole = [Scope(trace, clocks=trace.clocks) for trace in traces]
    start, end = traces[1].opening_span
    third = (end - start) // 3
    yield [*whole, replace(whole[1], range=(start + third, end - third))]
    for trace in traces:
        trace.close()


def path_of(table: Table, icicle: Icicle, row: int) -> list[str]:
    """Return the names of a call and what it lies in, the outermost first."""
    path = []
    while row != ROOT:
        path.append(str(table.data["name"][row]))
        row = int(icicle.parents[row])
    return path[::-1]


@pytest.mark.parametrize(("by", "from_bottom"), VIEWS)
def test_calls_lie_in_what_calls_them(scopes: list[Scope], by: TreeRoots, from_bottom: bool) -> None:
    """Each call is as wide as its time and lies within its caller, beside those of the same caller, the
    longest first; its subtree is the rows up to `behind`.
    """
    for scope in scopes:
        table = tree_table(scope, by, from_bottom)
        icicle = icicle_of(table)
        widths = icicle.ends - icicle.starts
        assert (widths >= table.numbers("total_ns")).all()
        for row, parent in enumerate(icicle.parents.tolist()):
            if parent != ROOT:
                assert icicle.starts[parent] <= icicle.starts[row] <= icicle.ends[row] <= icicle.ends[parent]
                assert parent < row < icicle.behind[parent] and icicle.behind[row] <= icicle.behind[parent]
        for level in icicle.levels:
            assert (icicle.starts[level][1:] >= icicle.ends[level][:-1]).all()
            same = icicle.parents[level][1:] == icicle.parents[level][:-1]
            totals = table.numbers("total_ns")[level]
            assert (totals[1:][same] <= totals[:-1][same]).all()
        assert icicle.width == widths[icicle.levels[0]].sum() if len(icicle) else icicle.width == 0


@pytest.mark.slow
@pytest.mark.parametrize("cells", [0, 1, 7, 80, 300])
def test_a_cell_shows_what_lies_at_its_middle(scopes: list[Scope], cells: int) -> None:
    """As a plain search over all calls of the depth says, of the whole and of a call."""
    for scope in scopes:
        icicle = icicle_of(tree_table(scope))
        for root in (ROOT, 0, len(icicle) // 2):
            left, right = icicle.window(root)
            for depth, level in enumerate(icicle.levels):
                drawn = [ROOT] * cells
                for box in icicle.boxes(depth, (left, right), cells):
                    if box.nodes > 1:
                        assert box.right - box.left == 1
                    drawn[box.left : box.right] = [box.row] * (box.right - box.left)
                for cell in range(cells):
                    middle = left + (2 * cell + 1) * (right - left) // (2 * cells)
                    at = [row for row in level if icicle.starts[row] <= middle < icicle.ends[row]]
                    assert drawn[cell] == (at[0] if at else ROOT)


def _chain(widths: list[int]) -> Icicle:
    """Return calls one below the other."""
    count = len(widths)
    starts, rows = np.zeros(count, np.int64), np.arange(count)
    return Icicle(starts, np.array(widths, np.int64), rows, rows - 1, np.full(count, count))


def test_calls_as_wide_as_what_calls_them_are_one_line() -> None:
    """Wherever they are; the first and the last of them stay lines of their own, two between them are one."""
    for widths, lines in (
        ([100, 100, 100, 100, 50, 50], [0, 1, 1, 2, 3, 4]),
        ([100, 100, 100], [0, 1, 2]),
        ([100, 60, 60, 60, 60], [0, 1, 2, 2, 3]),
        ([], []),
    ):
        icicle = _chain(widths)
        assert icicle.lines.tolist() == lines
        assert [len(rows) for rows in icicle.levels] == [1] * len(set(lines))
        drawn = [int(rows[0]) for rows in icicle.levels]
        assert [drawn[line] for line in lines] == [icicle.drawn_row(row) for row in range(len(widths))]
        assert [lines.index(line) for line in lines] == [icicle.first_row(row) for row in range(len(widths))]


def test_callers_and_callees_of_a_name(scopes: list[Scope]) -> None:
    """Both begin with the name and its time; what it calls is what its outermost calls hold, path by path."""
    for scope in scopes:
        table = tree_table(scope)
        icicle, names = icicle_of(table), table.texts("name")
        total, own = table.numbers("total_ns"), table.numbers("self_ns")
        for name in sorted(set(names))[::7]:
            paths = [path_of(table, icicle, row) for row in range(len(table))]
            callers, callees = sandwich(table, icicle.parents, name)
            expected: dict[tuple[str, ...], int] = {}
            for path, ns in zip(paths, own.tolist()):
                if name in path:
                    below = tuple(path[path.index(name) :])
                    expected[below] = expected.get(below, 0) + ns
            drawn = icicle_of(callees)
            assert {
                tuple(path_of(callees, drawn, row)): ns
                for row, ns in enumerate(callees.numbers("self_ns").tolist())
            } == expected
            outermost = [
                row for row, path in enumerate(paths) if path[-1:] == [name] and path.count(name) == 1
            ]
            assert int(callers.numbers("total_ns")[0]) == int(total[outermost].sum())
            assert callers.texts("name")[0] == callees.texts("name")[0] == name


def test_walking(scopes: list[Scope]) -> None:
    """Beside a call stands the next one that is wide enough, below it the one with most time."""
    icicle = icicle_of(tree_table(scopes[1]))
    level = icicle.levels[0]
    assert icicle.neighbour(int(level[0]), -1, 0) == level[0]
    assert icicle.neighbour(int(level[0]), 1, 0) == level[1]
    assert icicle.neighbour(int(level[0]), 1, icicle.width) == level[0]
    assert icicle.parents[icicle.child(0)] == 0
    leaf = int(np.flatnonzero(icicle.behind == np.arange(len(icicle)) + 1)[0])
    assert icicle.child(leaf) == leaf


@pytest.mark.slow
@pytest.mark.parametrize(("by", "from_bottom"), VIEWS)
def test_a_call_leads_to_its_slices(scopes: list[Scope], by: TreeRoots, from_bottom: bool) -> None:
    """As many as the table counts, of its name, and the longest of them is the one that the row leads to."""
    for scope in scopes:
        check_slices(scope, by, from_bottom, 60)


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize(("by", "from_bottom"), VIEWS)
@pytest.mark.parametrize("name", ["gpu/hta_a100_resnet_ddp_nccl*", "gpu/tl_vllm_capture_python_functions*"])
def test_calls_of_real_traces_lead_to_their_slices(
    name: str, by: TreeRoots, from_bottom: bool, corpus_cache: Path
) -> None:
    """The same for real traces, some of their rows."""
    trace = open_trace(sorted(CORPUS.glob(name))[0], index_dir=corpus_cache)
    check_slices(Scope(trace, clocks=trace.clocks), by, from_bottom, 10)


def check_slices(scope: Scope, by: TreeRoots, from_bottom: bool, most: int) -> None:
    """Hold the slices of so many rows against the table."""
    table = tree_table(scope, by, from_bottom)
    icicle = icicle_of(table)
    assert table.positions is not None and table.sources is not None
    counted = 0
    for row in range(0, len(table), max(1, len(table) // most)):
        path = path_of(table, icicle, row)
        hits = slices_of_node(scope, path, by, from_bottom)
        calls = int(table.numbers("calls")[row])
        # Work without a launch has no calls; a lane is no call; not every call of a name launches work.
        if not path[0].startswith("(no launch") and not (by == "thread" and len(path) == 1):
            counted += 1
            launching = hits.count >= calls if by == "launch" else hits.count == calls
            assert launching, (path, hits.count, calls)
        source, position = int(table.sources[row]), int(table.positions[row])
        assert position in hits.positions[source].tolist(), path
    assert counted


def test_categories_are_those_of_the_slices(scopes: list[Scope]) -> None:
    """Each row has the category of the slice that it leads to."""
    scope = scopes[0]
    table = tree_table(scope)
    assert len(table)
    for row, category in enumerate(row_categories(scope.trace, table)):
        jump = table.jump(row)
        assert jump is not None
        detail = scope.trace.detail(scope.trace.slice_id_of(*jump))
        assert detail is not None and detail.category == category


def test_slices_as_hits_stand_where_they_are(scopes: list[Scope]) -> None:
    """Positions as hits have the starts of the slices in trace time."""
    trace = scopes[1].trace
    hits = hits_at(trace, [np.array([0, 1], np.uint32) for _ in trace.indexes], trace.clocks, "two each")
    assert hits.count == 2 * len(trace.indexes) and hits.filter.text == "two each"
    for source in range(len(trace.indexes)):
        positions, starts = hits.starts(source)[0]
        for position, start in zip(positions.tolist(), starts.tolist()):
            row, at = trace.find(trace.slice_id_of(source, position)) or (None, 0)
            assert row is not None and trace.bounds(row, at, trace.clocks)[0] == start
