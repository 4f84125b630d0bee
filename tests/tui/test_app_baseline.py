"""A baseline: kept by a command, seen on the ruler, and every table held against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tests.tui.small_trace import MS, START
from tracelane.core.query.steps import STEP_NAME
from tracelane.core.tables.range_table import range_table
from tracelane.core.tables.registry import PANELS
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace
from tracelane.tui.panels.table import TablePane


async def test_kept_and_dropped(trace: Trace) -> None:
    """The command keeps the step at the cursor, else the range; the same again is dropped, Esc drops it last,
    u brings it back.
    """
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.store.show(replace(app.session, cursor=trace.span[1]))
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline is None and "step at the cursor" in message(app)
        first, second = trace.steps[:2]
        app.store.show(replace(app.session, cursor=first.start))
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline == (first.start, first.end)
        assert "╞" in screen_text(app) and "baseline" in screen_text(app)
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline is None and "Baseline cleared" in message(app)
        app.run_command("baseline")
        await pilot.press(">", "r")
        app.run_command("baseline")
        assert app.session.baseline == app.session.range == (second.start, second.end)
        await pilot.press("escape")
        assert app.session.range is None and app.session.baseline is not None
        await pilot.press("escape")
        assert app.session.baseline is None
        await pilot.press("u")
        assert app.session.baseline == (second.start, second.end)


async def test_an_annotation_before_the_step(trace: Trace) -> None:
    """Of a selection an annotation is kept, of any other slice the step around the cursor."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        step = trace.steps[1]
        app.action_jump(step.id.source, step.id.ordinal)
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline == (step.start, step.end)
        app.action_jump(0, 14)
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline is None
        app.run_command("baseline")
        await pilot.pause()
        assert app.session.baseline == (step.start, step.end)


def without_number(name: str) -> str:
    """A step's name without its number."""
    return STEP_NAME if name.startswith(STEP_NAME) else name


@pytest.mark.slow
async def test_every_table_grows_changes(trace: Trace) -> None:
    """With another range on show, each table has Δ columns and says against what, steps in one row; with the
    same range none.
    """
    async with open_viewer(trace, (220, 50)) as (app, pilot):
        first, second = trace.steps[:2]
        app.store.show(replace(app.session, cursor=first.start))
        app.run_command("baseline")
        await pilot.press(">", "r")
        for name in (name for name, (_, panel) in PANELS.items() if panel.is_compared):
            app.action_panel(name)
            await wait_until_idle(app, pilot)
            table = app.main.query_one(f"#{name}", TablePane).shown_table
            assert table is not None and any(column.change for column in table.columns), name
            assert "against step " in table.scope and "step" in table.scope.split("against")[0], name
            assert "Δ" in screen_text(app), name
        app.action_panel("table")
        await wait_until_idle(app, pilot)
        shown_table = app.main.query_one("#table", TablePane).shown_table
        assert shown_table is not None
        now, past = (
            {
                without_number(row["name"]): row
                for row in range_table(Scope(trace, (step.start, step.end))).rows()
            }
            for step in (second, first)
        )
        assert [row["presence"] for row in shown_table.rows() if STEP_NAME in row["name"]] == ["both"]
        for row in shown_table.rows():
            name = without_number(row["name"])
            sides = [int(side[name]["total_ns"] or 0) if name in side else 0 for side in (now, past)]
            assert row["total_ns_delta"] == sides[0] - sides[1]
        app.run_command("baseline")
        await pilot.pause()
        await wait_until_idle(app, pilot)
        plain = app.main.query_one("#table", TablePane).shown_table
        assert plain is not None and not any(column.change for column in plain.columns)


async def test_changes_are_sorted_by_size(trace: Trace) -> None:
    """Sorting by a Δ column puts the largest change first, whatever its sign."""
    async with open_viewer(trace, (160, 50)) as (app, pilot):
        app.store.show(replace(app.session, range=(START, START + 14 * MS)))
        app.run_command("baseline")
        await pilot.press("escape", "t", "t")
        await wait_until_idle(app, pilot)
        pane = app.main.query_one("#table", TablePane)
        table = pane.shown_table
        assert table is not None and table.scope.startswith("whole trace against range")
        titles = [column.title for column in pane.table._columns]
        pane.table.sort(titles.index("Δ total"), descending=True)
        sizes = [abs(int(table.value(row, "total_ns_delta") or 0)) for row in pane.table.order.tolist()]
        assert sizes == sorted(sizes, reverse=True)
