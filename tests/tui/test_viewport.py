"""Time and cells: the one place where they meet, exact at any magnitude."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tracelane.tui.session import Viewport

WIDTHS = st.integers(1, 400)
STARTS = st.integers(-(10**18), 10**19)
SPANS = st.integers(1, 10**19)


@st.composite
def viewports(draw: st.DrawFn) -> Viewport:
    width = draw(WIDTHS)
    return Viewport(draw(STARTS), max(width, draw(SPANS)), width)


@given(viewports(), st.data())
def test_a_time_lies_in_its_cell(view: Viewport, data: st.DataObject) -> None:
    """The cell of a time begins at or before it and ends after it, inside the view and out of it."""
    time = data.draw(st.integers(view.start - 2 * view.span, view.end + 2 * view.span))
    cell = view.cell(time)
    assert view.edge(cell) <= time < view.edge(cell + 1)


@given(viewports())
def test_edges_tile_the_view(view: Viewport) -> None:
    """The cells' edges run from the start to the end of the view and no cell is empty."""
    edges = view.edges()
    assert len(edges) == view.width + 1
    assert edges[0] == view.start and edges[-1] == view.end
    assert all(a < b for a, b in itertools.pairwise(edges))


@given(viewports(), st.floats(0.01, 100), st.data())
def test_zooming_keeps_the_place(view: Viewport, factor: float, data: st.DataObject) -> None:
    """The time that is zoomed about stays in view, at its cell or the one beside it."""
    about = data.draw(st.integers(view.start, view.end - 1))
    limits = (view.start - 10 * view.span, view.end + 10 * view.span)
    zoomed = view.zoomed(factor, about, limits)
    assert zoomed.width == view.width and zoomed.span >= view.width
    if zoomed.span < limits[1] - limits[0] and limits[0] < zoomed.start and zoomed.end < limits[1]:
        assert abs(zoomed.cell(about) - view.cell(about)) <= 1


@given(viewports(), st.integers(-3, 3))
def test_in_and_out_again_comes_back(view: Viewport, pans: int) -> None:
    """Panning to and fro ends where it began, as long as no limit is met."""
    limits = (view.start - 100 * view.span, view.end + 100 * view.span)
    moved = view
    for _ in range(abs(pans)):
        moved = moved.panned(0.5 if pans > 0 else -0.5, limits)
    for _ in range(abs(pans)):
        moved = moved.panned(-0.5 if pans > 0 else 0.5, limits)
    assert moved == view


@given(viewports(), WIDTHS)
def test_resizing_keeps_the_window(view: Viewport, width: int) -> None:
    """Another number of cells shows the same time from the same start, never below 1 ns a cell."""
    resized = view.resized(width)
    assert resized.start == view.start and resized.width == width
    assert resized.span == max(view.span, width)


@given(viewports(), STARTS, SPANS)
def test_the_view_stays_within_limits(view: Viewport, low: int, length: int) -> None:
    """Kept within limits, a view lies inside them, or around them where it is longer."""
    high = low + length
    limited = view.kept_within((low, high))
    assert limited.span == view.span
    if view.span <= length:
        assert low <= limited.start and limited.end <= high
    else:
        assert limited.start <= low and high <= limited.end
