"""The viewer by mouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.small_trace import small_trace
from tests.tui.test_app_keys import shown
from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.draw.lines import title_cells
from tracelane.tui.lanes import messages

SIZE = (120, 40)
TITLES = title_cells(SIZE[0])


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder: Path = tmp_path_factory.mktemp("mouse")
    return small_trace(folder / "index")


async def test_click_selects_double_click_zooms(trace: Trace) -> None:
    """A click selects the slice under it and puts the cursor there; a double click zooms to it."""
    async with shown(trace, SIZE) as (app, pilot):
        cell = app.session.viewport.cell(5_013_000_000)
        await pilot.click("#lanes", offset=(TITLES + cell, 2))
        assert app.session.selection == SliceId(0, 11)
        assert app.session.viewport.cell(app.session.cursor) == cell
        before = app.session.viewport.span
        await pilot.click("#lanes", offset=(TITLES + cell, 2), times=2)
        assert app.session.viewport.span < before


async def test_click_on_empty_space_drops_the_selection(trace: Trace) -> None:
    """A click before the first slice of a row drops the selection and keeps the row focused."""
    async with shown(trace, SIZE) as (app, pilot):
        app.action_jump(0, 11)
        await pilot.click("#lanes", offset=(TITLES + app.session.viewport.cell(5_000_500_000), 2))
        assert app.session.selection is None
        assert app.session.focus is not None


async def test_click_on_a_title_folds(trace: Trace) -> None:
    """A click on a lane's title folds it, another opens it."""
    async with shown(trace, SIZE) as (app, pilot):
        height = app.layout_now.height
        await pilot.click("#lanes", offset=(3, 1))
        assert app.layout_now.height == height - 2
        await pilot.click("#lanes", offset=(3, 1))
        assert app.layout_now.height == height


async def test_wheel_and_drag(trace: Trace) -> None:
    """The wheel zooms about the mouse and pans; a drag measures; the minimap moves the view."""
    async with shown(trace, SIZE) as (app, pilot):
        view = app.session.viewport
        time = view.edge(30)
        app.main.query_one("#ruler").post_message(messages.Zoomed(2.0, time))
        await pilot.pause()
        assert app.session.viewport.span == view.span // 2
        assert abs(app.session.viewport.cell(time) - 30) <= 1
        start = app.session.viewport.start
        app.main.query_one("#lanes").post_message(messages.Panned(0.1))
        app.main.query_one("#lanes").post_message(messages.Scrolled(-3))
        await pilot.pause()
        assert app.session.viewport.start > start
        app.main.query_one("#ruler").post_message(messages.TimeDragged(time, time + 1_000_000))
        await pilot.pause()
        assert app.session.range == (time, time + 1_000_000)
        app.main.query_one("#minimap").post_message(messages.ViewMoved(view.end - 1))
        await pilot.pause()
        assert app.session.viewport.end == view.end
        await pilot.press("escape")
        assert app.session.range is None
