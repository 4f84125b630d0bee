"""Ranges by key, and the table that speaks of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tests.tui.small_file import events, small_file
from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.panels.table import TablePane
from tracelane.tui.widgets.table import VirtualTable

LAUNCH = next(n for n, event in enumerate(events()) if event["name"] == "launch")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The small file, opened."""
    folder = tmp_path_factory.mktemp("ranges")
    return open_trace(small_file(folder), index_dir=folder / "index")


async def test_a_range_follows_the_cursor_until_it_ends(trace: Trace) -> None:
    """v begins at the cursor, moves draw the range out either way, v ends it, Esc drops it."""
    async with open_viewer(trace) as (app, pilot):
        await pilot.press(*["right"] * 6, "v")
        begin = app.session.cursor
        assert app.session.range == (begin, app.session.viewport.edge(app.session.viewport.cell(begin) + 1))
        await pilot.press("right", "right", "right")
        assert app.session.range == (begin, app.session.cursor)
        await pilot.press(*["left"] * 5)
        assert app.session.range == (app.session.cursor, begin)
        await pilot.press("v")
        final = app.session.range
        await pilot.press("left")
        assert app.session.range == final
        await pilot.press("escape")
        assert app.session.range is None
        await pilot.press("v", "right", "escape", "right")
        assert app.session.range is None


async def test_the_selection_becomes_the_range(trace: Trace) -> None:
    """r takes the selected slice's time; with nothing selected that of the step at the cursor, if any."""
    async with open_viewer(trace) as (app, pilot):
        await pilot.press("home", "r")
        assert app.session.range == (trace.steps[0].start, trace.steps[0].end)
        app.store.show(replace(app.session, range=None, cursor=trace.span[1]))
        await pilot.press("r")
        assert "nothing is selected" in message(app)
        app.action_jump(0, LAUNCH)
        await pilot.press("r")
        thing = app.store.selected
        assert app.session.range == (thing.start, thing.end)


async def test_the_table_speaks_of_the_range(trace: Trace) -> None:
    """3 shows the whole trace's names, then those of the range; sorting stays; Enter goes to the longest."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        await pilot.press("t", "t")
        await wait_until_idle(app, pilot)
        pane = app.main.query_one("#table", TablePane)
        assert pane.shown_table is not None and "whole trace" in screen_text(app)
        assert pane.shown_table.totals["slices"] == len(trace.indexes[0].column("slices.start"))
        rows = pane.query_one(VirtualTable)
        assert rows.sorted_by == (4, True)
        rows.sort(2, descending=True)
        app.action_jump(0, LAUNCH)
        await pilot.press("r")
        await wait_until_idle(app, pilot)
        assert pane.shown_table.scope.startswith("range +") and rows.sorted_by == (2, True)
        assert pane.shown_table.totals["slices"] < len(trace.indexes[0].column("slices.start"))
        assert app.focused is rows
        rows.cursor = 0
        row = rows.row
        await pilot.press("enter")
        await pilot.pause()
        assert row is not None and pane.shown_table.positions is not None
        ordinal = trace.indexes[0].column("slices.ordinal")[pane.shown_table.positions[row]]
        assert app.session.selection == SliceId(0, int(ordinal))


@pytest.mark.slow
async def test_only_narrows_the_table(trace: Trace) -> None:
    """With `:only` the table counts the lanes shown and says how many they are."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        await pilot.press("t", "t", ":")
        await pilot.press(*"only stream", "enter")
        await wait_until_idle(app, pilot)
        table = app.main.query_one("#table", TablePane).shown_table
        assert table is not None and " lanes" in table.scope
        assert set(table.data["category"]) == {"kernel"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "panel", "shown_there"),
    [
        ("ttttt", "ops", "# of Calls"),
        ("t", "kernels", "Median"),
        ("5", "steps", "Wall"),
        ("6", "time", "Busy %"),
        ("66", "idle", "Host wait"),
        ("666", "gaps", "In steps"),
        ("6666", "launches", "Delay"),
    ],
)
async def test_the_other_tables(trace: Trace, key: str, panel: str, shown_there: str) -> None:
    """t shows kernels, again and again ops, 5 the steps, 6 device time, again what idles and waits."""
    async with open_viewer(trace, (220, 50)) as (app, pilot):
        await pilot.press(*key)
        await wait_until_idle(app, pilot)
        assert app.session.panel == panel and shown_there in screen_text(app)
        await pilot.press("1", "t", "t", "t")
        await wait_until_idle(app, pilot)
        assert "Busy share" in screen_text(app)


async def test_a_filter_narrows_the_table(trace: Trace) -> None:
    """With `:filter` the table counts what matches, and says that it is filtered."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        await pilot.press("t", "t", ":")
        await pilot.press(*"filter cat:kernel", "enter")
        await wait_until_idle(app, pilot)
        await wait_until_idle(app, pilot)
        table = app.main.query_one("#table", TablePane).shown_table
        assert table is not None and table.scope.endswith("filtered")
        assert set(table.data["category"]) == {"kernel"}
