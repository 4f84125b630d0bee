"""Searching and filtering in the viewer: what is typed, found, marked, walked and hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from tests.events import complete, open_events
from tests.tui.driver import open_viewer, press_keys, wait_until, wait_until_idle
from tracelane.core.base.errors import Cancelled
from tracelane.core.query.filter import Filter, parse
from tracelane.core.query.views import SliceId
from tracelane.core.tables.host.slice_table import hit_table
from tracelane.core.trace import Trace
from tracelane.core.trace.hit_search import SearchProgress, find, matches
from tracelane.tui.app import TracelaneApp
from tracelane.tui.controllers import searching
from tracelane.tui.draw.runs import HIT, SliceRow
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.lanes.strips import Minimap
from tracelane.tui.panels.table import TablePane
from tracelane.tui.screens.answer import PickScreen
from tracelane.tui.widgets.bars import Bar
from tracelane.tui.widgets.prompt import Prompt

EVENTS = [
    complete(100 * i + 10 * j, 8, f"{name}{j}", cat, tid=tid, args={"Ev Idx": i})
    for i in range(4)
    for j, (name, cat, tid) in enumerate([("mm", "cpu_op", 1), ("add", "cpu_op", 1), ("gemm", "kernel", 7)])
]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("search")
    return open_events(folder, EVENTS)


async def typed(app: TracelaneApp, pilot: Pilot[None], key: str, text: str) -> None:
    await pilot.press(key)
    for character in text:
        await pilot.press({" ": "space", ":": "colon", ">": "greater_than_sign"}.get(character, character))
    await press_keys(app, pilot, "enter")


def runs_of(app: TracelaneApp, lane: int) -> list[tuple[str, bool]]:
    """Return (name of the slice, whether it is marked) of what a lane's top row draws."""
    reader = app.main.query_one(LaneCanvas).reader
    assert reader is not None
    session = app.session
    row = reader.row(app.trace.lanes[lane], 0, session.viewport, session.clocks, session.colour_by)
    assert isinstance(row, SliceRow)
    return [
        (app.trace.name(app.trace.row(lane, 0), run.at), bool(run.flags & HIT))
        for run in row.runs
        if run.at >= 0
    ]


def header(app: TracelaneApp) -> str:
    return " | ".join(piece.plain for piece in app.main.query_one("#header", Bar).pieces)


async def test_search_marks_counts_and_walks(trace: Trace) -> None:
    """/ counts and marks what matches on lanes and minimap; n and N walk it in time order; Esc clears it."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        await typed(app, pilot, "slash", "mm")
        assert app.message.startswith("8 slices, 64 µs")
        assert "/mm: 8" in header(app)
        assert [mark for name, mark in runs_of(app, 0)] == [name[0] == "m" for name, _ in runs_of(app, 0)]
        assert all(mark for _, mark in runs_of(app, 1))
        strips = app.main.query_one(Minimap).render_line(0)
        assert any(segment.style and segment.style.underline for segment in strips)
        app.store.show(app.session._replace(cursor=app.trace.span[0]))
        seen = []
        for _ in range(3):
            await pilot.press("n")
            seen.append(app.session.selection)
        assert seen == [SliceId(0, 0), SliceId(0, 2), SliceId(0, 3)]
        assert app.message == "hit 3 of 8: mm0, 8 µs, thread 1"
        await pilot.press("N")
        assert app.session.selection == SliceId(0, 2)
        await pilot.press("N", "N")
        assert "the first of 8 hits" in app.message
        await press_keys(app, pilot, "escape")
        assert app.session.search == "" and app.session.selection is not None
        assert not any(mark for _, mark in runs_of(app, 0)) and "/mm" not in header(app)


async def test_behind_the_last_hit_stands_the_last(trace: Trace) -> None:
    """Where no hit is selected and none follows, n goes to the last, N to the first; then it is told
    that there are no others.
    """
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        await typed(app, pilot, "slash", "mm")
        for key, cursor, number, which in (("n", 1, 8, "last"), ("N", 0, 1, "first")):
            app.store.show(app.session._replace(cursor=app.trace.span[cursor], selection=None))
            await pilot.press(key)
            assert app.message.startswith(f"hit {number} of 8: ")
            await pilot.press(key)
            assert f"the {which} of 8 hits" in app.message


async def test_the_header_has_room_for_what_was_found(trace: Trace) -> None:
    """At 80 columns it is said beside the name, before what else there is to say of the trace."""
    async with open_viewer(trace, (80, 24)) as (app, pilot):
        await typed(app, pilot, "slash", "mm")
        assert header(app).split(" | ")[1] == "/mm: 8"


async def test_star_searches_for_the_selected_name(trace: Trace) -> None:
    """* finds all slices of exactly the selected one's name."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        app.action_jump(0, 1)
        await press_keys(app, pilot, "asterisk")
        assert app.session.search == "name='add1'"
        assert app.message.startswith("4 slices")


@pytest.mark.slow
async def test_a_filter_hides_and_says_how_much(trace: Trace) -> None:
    """:filter draws only what matches, and the header says how much it hides; alone it ends."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        await typed(app, pilot, "colon", "filter add arg.'Ev Idx'>1")
        assert "10 of 12 slices hidden" in header(app)
        assert [name for name, _ in runs_of(app, 0)] == ["add1", "add1"] and runs_of(app, 1) == []
        await typed(app, pilot, "slash", "-mm")
        assert "/-mm: 2" in header(app), "what is hidden is not found"
        await pilot.press("escape", "enter")
        first = app.session.selection
        await pilot.press("right")
        assert {first, app.session.selection} == {SliceId(0, 7), SliceId(0, 10)}, "what is hidden is passed"
        await pilot.press("right")
        assert "the last one on this row" in app.message
        await typed(app, pilot, "colon", "filter")
        assert "hidden" not in header(app) and len(runs_of(app, 0)) >= 8


@pytest.mark.slow
async def test_up_and_down_pass_over_what_a_filter_hides(tmp_path: Path) -> None:
    """With a filter ↑ ↓ and J K reach only slices that it leaves: past hidden ancestors, rows and lanes."""
    nest = [("step", 0, 100), ("hidden", 5, 90), ("wanted", 10, 30), ("hidden", 50, 30), ("wanted", 55, 10)]
    events = [complete(ts, ns, name, "cpu_op", tid=1) for name, ts, ns in nest]
    events += [complete(12, 9, "hidden", "cpu_op", tid=1), complete(13, 5, "wanted", "cpu_op", tid=1)]
    events += [complete(0, 90, "hidden", "cpu_op", tid=2), complete(20, 9, "hidden", "cpu_op", tid=3)]
    events += [complete(60, 9, "wanted", "cpu_op", tid=3), complete(10, 5, "wanted", "kernel", tid=4)]
    trace = open_events(tmp_path, events)
    async with open_viewer(trace, (100, 30)) as (app, pilot):
        await typed(app, pilot, "colon", "filter wanted")
        await typed(app, pilot, "slash", "wanted")
        await pilot.press("n")
        reached = {}
        for keys in (["down"] * 8, ["up"] * 8, ["shift+up"] * 4, ["shift+down"] * 4):
            for key in keys:
                await pilot.press(key)
                selection = app.session.selection
                assert isinstance(selection, SliceId)
                row, index = trace.find(selection) or pytest.fail("no such slice")
                assert trace.name(row, index) == "wanted", key
                reached[trace.lanes[row.lane].tid, row.depth] = True
        assert len({depth for tid, depth in reached if tid == "1"}) > 1, "nested ones of a lane are reached"
        assert {tid for tid, _ in reached} == {"1", "3", "4"}


async def test_a_wrong_search_says_why_and_changes_nothing(trace: Trace) -> None:
    """What means nothing is told in the footer."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        await press_keys(app, pilot, "slash", "d", "u")
        assert app.session.search == "du"
        await typed(app, pilot, "r", ">1")
        assert "ns, us, ms or s" in app.message and app.session.search == ""
        await typed(app, pilot, "slash", "nosuchname")
        assert "no slice matches nosuchname" in app.message
        await pilot.press("n")
        assert "no slice matches" in app.message


def rows_listed(app: TracelaneApp) -> list[tuple[str, str]]:
    """Return (name, lane) of the rows that list what was found, as they are sorted."""
    pane = app.main.query_one("#hits", TablePane)
    table = pane.shown_table
    assert table is not None
    return [
        (str(table.value(row, "name")), str(table.value(row, "lane"))) for row in pane.table.order.tolist()
    ]


async def test_what_was_found_is_listed_sorted_and_gone_to(trace: Trace) -> None:
    """z lists the hits in order of time, a column sorts them, Enter goes to one; so with another search."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        await pilot.press("z")
        assert "no search yet" in app.message
        await typed(app, pilot, "slash", "mm")
        await press_keys(app, pilot, "z")
        assert [name for name, _ in rows_listed(app)] == ["mm0", "gemm2"] * 4
        await pilot.press("down", "enter")
        assert app.session.selection == SliceId(0, 2)
        await pilot.press("right")
        assert [name for name, _ in rows_listed(app)] == ["gemm2"] * 4 + ["mm0"] * 4
        await typed(app, pilot, "slash", "add dur>1us")
        await wait_until_idle(app, pilot)
        assert [name for name, _ in rows_listed(app)] == ["add1"] * 4


async def test_the_list_is_empty_once_the_search_is_left(trace: Trace) -> None:
    """Esc leaves the list, then the search: no rows stay below a line that says that there is none."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        for _ in range(2):
            await typed(app, pilot, "slash", "mm")
            await press_keys(app, pilot, "z")
            await wait_until_idle(app, pilot)
            assert "gemm2" in shown_rows(app)
            await press_keys(app, pilot, "escape", "escape")
            await wait_until_idle(app, pilot)
            assert app.session.search == "" and "gemm2" not in shown_rows(app)


def shown_rows(app: TracelaneApp) -> str:
    """Return what is to be read in the rows of the list of hits."""
    table = app.main.query_one("#hits", TablePane).table
    return "\n".join(table.render_line(y).text for y in range(table.size.height))


async def test_star_in_the_details_asks_which_value(trace: Trace) -> None:
    """With the arrows in the details, * lists name, category, lane and arguments, Enter searches for one."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        app.action_jump(0, 4)
        await press_keys(app, pilot, "tab", "asterisk")
        assert isinstance(app.screen, PickScreen)
        await press_keys(app, pilot, "end", "enter")
        assert app.session.search == "arg.'Ev Idx'=1"
        assert app.store.now.search.hits is not None and app.store.now.search.hits.count == 3


async def test_esc_stops_a_search_and_keeps_what_it_has_found(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a search goes on its hits show with the share looked through; Esc stops it, Esc again ends it."""

    def endless(trace: Trace, search: Filter, *_: object) -> Iterator[SearchProgress]:
        cancelled = _[-1]
        assert callable(cancelled)
        yield SearchProgress(matches(trace, parse("add")), 0.25)
        while not cancelled():
            sleep(0.01)
        raise Cancelled

    async with open_viewer(trace, (120, 30)) as (app, pilot):
        monkeypatch.setattr(searching, "find", endless)
        app.searching.search_for("arg.nothing")
        await wait_until(pilot, lambda: app.store.now.search.hits is not None, "hits")
        assert "/arg.nothing: 4 in 25%" in header(app)
        await pilot.press("n")
        assert " of 4: " in app.message
        await press_keys(app, pilot, "escape")
        assert "/arg.nothing: 4 in 25%, stopped" in header(app) and app.session.search == "arg.nothing"
        monkeypatch.setattr(searching, "find", find)
        app.searching.search_for("arg.nothing")
        await wait_until_idle(app, pilot)
        assert "/arg.nothing: 0" in header(app) and "stopped" not in header(app), "begun anew"
        await press_keys(app, pilot, "escape")
        assert app.session.search == "" and "arg.nothing" not in header(app)


async def test_what_was_found_comes_in_while_the_viewer_closes(trace: Trace) -> None:
    """A list that is ready when the panel's table is gone already is dropped, without a word."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        app.searching.search_for("add")
        await press_keys(app, pilot, "z")
        table = hit_table(trace, app.store.now.search.hits, lambda: False)
        await app.main.query_one("#hits", TablePane).table.remove()
        app.hit_list._have_listed(app.store.now.search.hits, table)
        assert not app.panels.shows_panel


async def test_searched_while_it_is_typed(trace: Trace) -> None:
    """Hits are counted before Enter; Esc leaves all as it was, without a place in the history."""
    async with open_viewer(trace, (100, 30)) as (app, pilot):
        before = app.session
        await press_keys(app, pilot, "slash", *"mm")
        assert app.session.search == "mm" and app.message.startswith("8 slices")
        await press_keys(app, pilot, "escape")
        assert app.session == before and not app.store.now.history.past


async def test_keys_that_come_together_are_typed(trace: Trace) -> None:
    """A line that a key opens takes the keys of the same read, in their order, though they have commands."""
    async with open_viewer(trace, (100, 30)) as (app, pilot):
        for key in ("slash", *"mmQw"):
            app.post_message(events.Key(key, "/" if key == "slash" else key))
        await wait_until_idle(app, pilot)
        assert app.is_running and app.main.query_one(Prompt).query_one(Input).value == "mmQw"


async def test_keys_that_come_together_with_enter_follow_it(trace: Trace) -> None:
    """Keys of one read are carried out in their order: Backspace before what is typed after it, and what
    follows Enter is no part of the line but a key of the lanes, or of a line that opens then.
    """
    async with open_viewer(trace, (100, 30)) as (app, pilot):
        for key in ("slash", *"gexmz", *["left"] * 2, "backspace", "m", "end", "backspace", "enter", "n"):
            app.post_message(events.Key(key, "/" if key == "slash" else key if len(key) == 1 else None))
        await wait_until_idle(app, pilot)
        assert app.session.search == "gemm" and app.session.selection is not None
        for key in ("colon", *"search mm", "enter", "slash", *"relu"):
            name = {"slash": "/", "colon": ":"}.get(key, key)
            app.post_message(events.Key("space" if key == " " else key, name if len(name) == 1 else None))
        await wait_until_idle(app, pilot)
        line = app.main.query_one(Prompt)
        assert line.is_open and line.query_one(Input).value == "relu"
