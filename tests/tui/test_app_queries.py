"""Queries in the viewer: rows are listed and lead to slices, become a lane, and saved ones are panels."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
from textual.pilot import Pilot

from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tests.tui.small_trace import STEPS
from tracelane.core.base.ids import SliceId
from tracelane.core.logs.counters import WithCounters
from tracelane.core.trace import Trace
from tracelane.tui.actions.counters import computed_lanes
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config, read_config
from tracelane.tui.panels.table import TablePane

KERNELS = "select id, name, ts, dur from kernels order by ts"


async def ask(app: TracelaneApp, pilot: Pilot[None], text: str) -> None:
    """Type a query and wait for its rows."""
    app.verbs["sql"](text)
    await wait_until_idle(app, pilot)


async def test_rows_lead_to_slices(trace: Trace) -> None:
    """What is typed after :sql is listed; Enter on a row selects its slice."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        await pilot.press(":", *"sql id, name, ts, dur from kernels order by ts")
        await pilot.press("enter")
        await wait_until_idle(app, pilot)
        pane = app.main.query_one("#query", TablePane)
        assert pane.shown_table is not None and len(pane.shown_table) == STEPS
        await pilot.press("down", "enter")
        await wait_until_idle(app, pilot)
        assert app.session.selection == SliceId(0, 14)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select nothing from kernels", "nothing"),
        ("select * from nowhere", "nowhere"),
        ("select 1; drop table slices", "one"),
        ("", ":sql select"),
    ],
)
async def test_errors_are_one_line(trace: Trace, query: str, error: str) -> None:
    """A query that cannot be answered is refused in one line, and the viewer goes on."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        await pilot.press(":", *"sql ")
        await pilot.press("escape")
        app.attempt(lambda: app.verbs["sql"](query))
        await wait_until_idle(app, pilot)
        assert error in message(app).lower() and "\n" not in message(app)
        assert not app.queries.is_running


async def test_rows_become_a_lane(trace: Trace) -> None:
    """Rows with ts and dur are drawn as how many run at a time; the same command removes the lane."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        await ask(app, pilot, KERNELS)
        app.run_command("sql-lane")
        await wait_until_idle(app, pilot)
        lanes = computed_lanes(app.trace, "query")
        assert len(lanes) == 1 and app.session.focus is not None and app.session.focus.lane == lanes[0]
        assert isinstance(app.trace, WithCounters)
        (counter,) = [one for one in app.trace.computed.counters if one.kind == "query"]
        kernels = [one for one in trace.lanes if one.slices == STEPS and one.kind.name == "THREAD"]
        assert counter.values.tolist() == [1, 0] * STEPS and kernels
        assert "query" in screen_text(app)
        await pilot.press("p")
        assert app.session.pinned == (lanes[0],)
        app.run_command("sql-lane")
        await wait_until_idle(app, pilot)
        assert computed_lanes(app.trace, "query") == []


async def test_rows_without_times_are_no_lane(trace: Trace) -> None:
    """What is missing is said."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        app.run_command("sql-lane")
        assert "no query" in message(app)
        await ask(app, pilot, "select name from kernels")
        app.run_command("sql-lane")
        await wait_until_idle(app, pilot)
        assert message(app) == "a lane needs rows with ts and dur: the query has no ts and no dur"


async def test_saved_queries_are_panels(trace: Trace) -> None:
    """The key again shows the saved queries one after the other, each with its rows, by its name."""
    queries = {"kernels by time": KERNELS, "steps": "select number from steps"}
    config = Config(queries=MappingProxyType(queries))
    async with open_viewer(trace, (140, 36), config) as (app, pilot):
        await pilot.press("4", "4")
        await wait_until_idle(app, pilot)
        assert app.session.panel == "query-1" and "kernels by time" in screen_text(app)
        assert f"{STEPS} rows" in screen_text(app)
        await pilot.press("4")
        await wait_until_idle(app, pilot)
        assert app.session.panel == "query-2" and "number" in screen_text(app).lower()
        await pilot.press("4")
        assert app.session.panel == "query"


def test_queries_of_the_configuration(tmp_path: Path) -> None:
    """They stand below [queries], by name; one that is no text is complained about."""
    path = tmp_path / "config.toml"
    path.write_text('[queries]\n"slow kernels" = "select name from kernels"\nodd = 3\n')
    config = read_config(path)
    assert dict(config.queries) == {"slow kernels": "select name from kernels"}
    assert config.complaints == (f"{path}: the query odd must be a text such as 'select …'",)
