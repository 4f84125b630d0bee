"""The panel of the call tree: reached by its key, drawn and listed, zoomed into, and left for the slices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from tests.tui.driver import open_viewer, press_keys, screen_text, wait_until_idle
from tracelane.core.tables.host.tree_nodes import ROOT
from tracelane.core.tables.registry import PANELS
from tracelane.core.trace import Trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.commands.table import COMMANDS
from tracelane.tui.panels.panel import TREE_SLICES, TREES
from tracelane.tui.panels.tree import TreePane
from tracelane.tui.screens.lists import help_rows, listed


@asynccontextmanager
async def tree_shown(
    trace: Trace, size: tuple[int, int] = (140, 40), name: str = "tree"
) -> AsyncIterator[tuple[TracelaneApp, Pilot[None], TreePane]]:
    """Open a trace, show a panel of its call tree, and move the arrows there."""
    async with open_viewer(trace, size) as (app, pilot):
        app.action_panel(name)
        await wait_until_idle(app, pilot)
        await press_keys(app, pilot, "tab")
        yield app, pilot, app.main.query_one(f"#{name}", TreePane)


@pytest.mark.parametrize("query", ["flame", "call tree", "icicle", "left-heavy", "stack"])
def test_the_list_of_commands_names_it(query: str) -> None:
    """Whatever people call it, the palette's first row is the call tree."""
    assert listed(help_rows({}), query)[0].command_id == "panel-tree"


@pytest.mark.slow
async def test_its_key_shows_each_of_its_trees(trace: Trace) -> None:
    """The key shows the tree from the top, then from the bottom, by thread and by launch."""
    (key,) = next(entry.keys for entry in COMMANDS if entry.id == "panel-tree")
    async with open_viewer(trace, (140, 40)) as (app, pilot):
        for name in TREES:
            await press_keys(app, pilot, key)
            pane = app.main.query_one(f"#{name}", TreePane)
            assert app.session.panel == name and pane.shown_table is not None and len(pane.shown_table)
            assert PANELS[name][1].title in screen_text(app)
            assert pane.flame.drawn is not None and pane.flame.drawn.labels[0][:6] in screen_text(app)
            assert " calls …" not in screen_text(app)  # as none lies in one of its own name


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_zooming_into_a_call_and_back(trace: Trace, size: tuple[int, int]) -> None:
    """f gives the chosen call the whole width and lists what lies in it, f again all; u goes out one call."""
    async with tree_shown(trace, size) as (_, pilot, pane):
        drawn = pane.flame.drawn
        assert drawn is not None
        row = next(row for row in range(len(drawn.icicle)) if drawn.icicle.child(row) != row)
        pane.flame.row = drawn.icicle.child(row)
        await pilot.press("f")
        assert pane.flame.root == drawn.icicle.child(row)
        first, behind = drawn.icicle.rows_below(pane.flame.root)
        assert pane.table.row_count == behind - first == len(pane.shown_table or ())
        await pilot.press("u")
        assert pane.flame.root == row
        await pilot.press("up", "f")
        assert pane.flame.root == ROOT and pane.table.row_count == len(drawn.icicle)


async def test_callers_above_and_callees_below(trace: Trace) -> None:
    """* draws what calls the chosen name above what it calls, Enter the same of another name, u goes back."""
    async with tree_shown(trace) as (app, pilot, pane):
        drawn = pane.flame.drawn
        assert drawn is not None
        row = next(row for row in range(len(drawn.icicle)) if drawn.icicle.child(row) != row)
        pane.flame.row = child = drawn.icicle.child(row)
        await press_keys(app, pilot, "asterisk")
        assert pane.is_sandwich and pane.flame.drawn is not None and pane.callers.drawn is not None
        assert pane.flame.drawn.labels[0] == pane.callers.drawn.labels[0] == drawn.labels[child]
        await press_keys(app, pilot, "tab", "enter")
        assert pane.flame.drawn.labels[0] == drawn.labels[row]
        await pilot.press("u")
        assert not pane.is_sandwich and pane.flame.drawn is drawn


async def test_drawing_and_table_choose_the_same_call(trace: Trace) -> None:
    """Moving in one moves the other; Tab goes from the drawing to the table, then to the lanes."""
    async with tree_shown(trace) as (app, pilot, pane):
        await pilot.press("down", "right", "up", "down")
        assert pane.table.row == pane.flame.row
        await pilot.press("tab", "down", "down")
        assert app.focused is pane.table and pane.table.row == pane.flame.row
        await pilot.press("tab")
        assert app.focused is app.main.query_one("#lanes")


async def test_where_there_is_little_room_one_takes_the_others_place(trace: Trace) -> None:
    """At 80x24 the drawing is there first, and the table while it has the arrows."""
    async with tree_shown(trace, (80, 24)) as (app, pilot, pane):
        assert pane.flame.display and pane.flame.size.height > 2 and not pane.table.size.height
        await press_keys(app, pilot, "tab")
        assert pane.table.size.height > 2 and not pane.flame.size.height
        await press_keys(app, pilot, "tab")
        assert pane.flame.size.height > 2


@pytest.mark.slow
@pytest.mark.parametrize("in_table", [False, True])
async def test_enter_lists_the_slices_of_a_call(trace: Trace, in_table: bool) -> None:
    """As many as its row counts, the longest first; Enter on one selects it."""
    async with tree_shown(trace) as (app, pilot, pane):
        if in_table:
            await pilot.press("tab")
        assert pane.flame.drawn is not None
        table, row = pane.flame.drawn.table, pane.flame.row
        await press_keys(app, pilot, "enter")
        assert app.session.panel == TREE_SLICES
        assert f"{int(table.numbers('calls')[row])} slice" in screen_text(app)
        await press_keys(app, pilot, "enter")
        position = table.jump(row)
        assert position is not None and app.session.selection == trace.slice_id_of(*position)


async def test_the_tree_is_that_of_the_range(trace: Trace) -> None:
    """After going to a step the key means that step; another range is counted anew."""
    async with open_viewer(trace, (140, 40)) as (app, pilot):
        await press_keys(app, pilot, "3")
        whole = app.main.query_one("#tree", TreePane).shown_table
        app.store.show(app.session._replace(range=(trace.steps[0].start, trace.steps[0].end)))
        await wait_until_idle(app, pilot)
        part = app.main.query_one("#tree", TreePane).shown_table
        assert whole is not None and part is not None
        assert part.totals["self_ns"] < whole.totals["self_ns"] and part.scope != whole.scope
