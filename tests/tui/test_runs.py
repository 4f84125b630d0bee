"""Runs: what the cells of a row show, as plain tuples."""

from __future__ import annotations

import pytest

from tracelane.core.query.cells import Span
from tracelane.tui.draw.runs import (
    OPEN_LEFT,
    OPEN_RIGHT,
    OVERLAP,
    RAGGED,
    TOUCH,
    WHOLE,
    Facts,
    ManyNames,
    Run,
    run_at,
    slice_runs,
)

EDGES = list(range(100, 201, 10))  # ten cells of 10 ns


def whole(left: int, right: int, index: int = 0) -> Span:
    return Span(left, right, 0, index, 1, True)


def many(left: int, right: int, count: int, index: int = 0) -> Span:
    return Span(left, right, 0, index, count, False)


def fact(start: int, end: int, key: str = "kernel", label: str = "gemm", flags: int = 0) -> Facts:
    return Facts(key, label, start, end, flags)


def test_labels_need_three_cells() -> None:
    """Runs of three cells or more carry their label, narrower ones none."""
    spans = [whole(0, 2, 0), whole(3, 6, 1)]
    runs = slice_runs(spans, [fact(100, 120), fact(130, 160)], EDGES)
    assert [run.label for run in runs] == ["", "gemm"]


def test_open_ends_are_marked() -> None:
    """A slice that begins before the view or ends after it says so."""
    (run,) = slice_runs([whole(0, 10)], [fact(50, 300)], EDGES)
    assert run.flags & OPEN_LEFT and run.flags & OPEN_RIGHT and run.flags & WHOLE
    (run,) = slice_runs([whole(0, 10)], [fact(100, 200)], EDGES)
    assert not run.flags & (OPEN_LEFT | OPEN_RIGHT)


def test_touching_neighbours_of_one_colour_are_told() -> None:
    """A run that begins where one of its colour ends says so; no shade tells them apart."""
    spans = [whole(0, 2, 0), whole(2, 4, 1), whole(4, 6, 2), whole(7, 9, 3)]
    facts = [fact(100, 120), fact(120, 140), fact(140, 160), fact(170, 190)]
    assert [bool(run.flags & TOUCH) for run in slice_runs(spans, facts, EDGES)] == [False, True, True, False]
    facts[1] = fact(120, 140, "memcpy")
    assert not any(run.flags & TOUCH for run in slice_runs(spans, facts, EDGES))


def test_unclosed_and_overlapping_slices_keep_their_flags() -> None:
    """Flags of a slice reach its run; a run that stands for several has no ragged edge."""
    runs = slice_runs(
        [whole(0, 3), many(4, 6, 5)],
        [fact(100, 130, flags=RAGGED | OVERLAP), fact(140, 150, flags=RAGGED)],
        EDGES,
    )
    assert runs[0].flags & RAGGED and runs[0].flags & OVERLAP
    assert not runs[1].flags & RAGGED and runs[1].slices == 5


def test_several_slices_are_called_by_where_the_time_is() -> None:
    """Where it is known how many slices lie in a run and which name takes most time, the run says that."""
    (run,) = slice_runs([many(0, 8, 5)], [fact(100, 110)], EDGES, {0: ManyNames("conv", "28 %", 120)})
    assert (run.slices, run.label, run.share) == (120, "conv", "28 %")


def test_levels_are_those_of_the_cells() -> None:
    """A run has the levels of its cells, none where all are full or eighths show its edges."""
    levels = bytes((8, 3, 8, 8, 1, 0, 0, 0, 0, 0))
    spans, facts = (
        [whole(0, 2, 0), whole(2, 4, 1), whole(4, 5, 2)],
        [fact(100, 114), fact(120, 140), fact(143, 144)],
    )
    for eighths, drawn in ((False, [(8, 3), (), (1,)]), (True, [(), (), (1,)])):
        runs = slice_runs(spans, facts, EDGES, eighths=eighths, levels=levels)
        assert [tuple(run.levels) for run in runs] == drawn


@pytest.mark.parametrize(
    ("start", "end", "left", "right"),
    [(100, 130, 0, 8), (105, 130, 4, 8), (100, 125, 0, 4), (109, 121, 7, 1), (103, 128, 2, 6)],
)
def test_edges_in_eighths(start: int, end: int, left: int, right: int) -> None:
    """Ends inside a cell are told in eighths of it, and a slice never vanishes from a cell it touches."""
    (run,) = slice_runs([whole(0, 3)], [fact(start, end)], EDGES, eighths=True)
    assert (run.left_eighths, run.right_eighths) == (left, right)


def test_each_run_has_its_own_edges() -> None:
    """A run whose neighbour begins in the next cell still ends where it ends, and that one begins later."""
    runs = slice_runs([whole(0, 2), whole(2, 4)], [fact(100, 115), fact(125, 140)], EDGES, eighths=True)
    assert runs[0].right_eighths == 4 and runs[1].left_eighths == 4


def test_run_at() -> None:
    """The run of a cell is found, and none in a gap."""
    runs = slice_runs([whole(0, 2, 7), whole(4, 6, 8)], [fact(100, 120), fact(140, 160)], EDGES)
    assert [getattr(run_at(runs, cell), "at", None) for cell in range(7)] == [7, 7, None, None, 8, 8, None]
    assert isinstance(runs[0], Run)
