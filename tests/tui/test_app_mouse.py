"""The viewer by mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from tests.events import complete, index_of
from tests.tui.driver import message, open_viewer
from tests.tui.small_trace import small_trace
from tracelane.core.base.units import format_ns
from tracelane.core.query.views import SliceId
from tracelane.core.tables.device.states import longest_in
from tracelane.core.trace import Trace, trace_of
from tracelane.tui.app import TracelaneApp
from tracelane.tui.draw.line import lane_key
from tracelane.tui.draw.line_context import title_cells
from tracelane.tui.draw.runs import HATCH
from tracelane.tui.draw.verdict import STATES, StateShares, part_cells, part_text, share_texts
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.lanes.strips import Verdict
from tracelane.tui.session import GapId, RowKey

SIZE = (120, 40)
TITLES = title_cells(SIZE[0])


def y_of(app: TracelaneApp, lane: int) -> int:
    """The line of a lane's first row."""
    y = app.store.layout_now.y_of(RowKey(lane_key(app.trace.lanes[lane]), 0))
    assert y is not None
    return y


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder: Path = tmp_path_factory.mktemp("mouse")
    return small_trace(folder / "index")


async def test_click_selects_double_click_zooms(trace: Trace) -> None:
    """A click selects the slice under it and puts the cursor there; a double click zooms to it."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        cell = app.session.viewport.cell(5_013_000_000)
        y = y_of(app, 0) + 1
        await pilot.click("#lanes", offset=(TITLES + cell, y))
        assert app.session.selection == SliceId(0, 11)
        assert app.session.viewport.cell(app.session.cursor) == cell
        before = app.session.viewport.span
        await pilot.click("#lanes", offset=(TITLES + cell, y), times=2)
        assert app.session.viewport.span < before


async def test_click_on_empty_space_drops_the_selection(trace: Trace) -> None:
    """A click before the first slice of a row drops the selection and keeps the row focused."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        app.action_jump(0, 11)
        await pilot.click(
            "#lanes", offset=(TITLES + app.session.viewport.cell(5_000_500_000), y_of(app, 0) + 1)
        )
        assert app.session.selection is None
        assert app.session.focus is not None


async def test_click_on_a_title_folds(trace: Trace) -> None:
    """A click on a lane's title folds it, another opens it."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        height = app.store.layout_now.height
        y = y_of(app, 0)
        await pilot.click("#lanes", offset=(3, y))
        assert app.store.layout_now.height == height - 2
        await pilot.click("#lanes", offset=(3, y))
        assert app.store.layout_now.height == height


def turn(app: TracelaneApp, widget: str, x: int, event: type[events.MouseEvent], **keys: bool) -> None:
    """Turn the wheel over a cell of the second line of a widget, or of its only one."""
    target = app.main.query_one(widget)
    y = min(1, target.size.height - 1)
    held = {"shift": False, "meta": False, "ctrl": False} | keys
    target.post_message(event(target, x, y, 0, 0, 0, **held))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widget", "keys"),
    [("#lanes", {"ctrl": True}), ("#ruler", {}), ("#ruler", {"ctrl": True}), ("#minimap", {})],
)
async def test_the_wheel_zooms_about_the_mouse(trace: Trace, widget: str, keys: dict[str, bool]) -> None:
    """Over ruler and minimap, and with ctrl over the lanes, what lies under the mouse stays there."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        first = app.session.viewport
        x = TITLES + 30
        # The minimap shows the whole trace, so the time under the mouse is the same at first.
        time = first.edge(30)
        for _ in range(3):
            turn(app, widget, x, events.MouseScrollUp, **keys)
            await pilot.pause()
        near = app.session.viewport
        assert near.span < first.span / 3
        assert abs(near.cell(time) - 30) <= 4
        for _ in range(3):
            turn(app, widget, x, events.MouseScrollDown, **keys)
            await pilot.pause()
        assert abs(app.session.viewport.span - first.span) <= first.span // 50


@pytest.mark.parametrize("widget", ["#lanes", "#ruler"])
async def test_the_wheel_pans_with_shift(trace: Trace, widget: str) -> None:
    """With shift the wheel moves the view by a tenth of its width, zoom kept; at the end the footer tells."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        await pilot.press("W")
        first = app.session.viewport
        turn(app, widget, TITLES + 5, events.MouseScrollDown, shift=True)
        await pilot.pause()
        moved = app.session.viewport
        assert moved.span == first.span
        assert abs(moved.start - first.start - first.span // 10) <= first.span // first.width
        turn(app, widget, TITLES + 5, events.MouseScrollUp, shift=True)
        await pilot.pause()
        assert abs(app.session.viewport.start - first.start) <= first.span // first.width
        for _ in range(120):
            turn(app, widget, TITLES + 5, events.MouseScrollUp, shift=True)
        await pilot.pause()
        assert message(app) == "the trace starts here"


async def test_a_wheel_that_turns_sideways_pans(trace: Trace) -> None:
    """What a touchpad sends over the lanes moves the view like the wheel with shift."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        await pilot.press("W")
        first = app.session.viewport
        turn(app, "#lanes", TITLES + 5, events.MouseScrollRight)
        await pilot.pause()
        assert first.start < app.session.viewport.start < first.end
        turn(app, "#lanes", TITLES + 5, events.MouseScrollLeft)
        await pilot.pause()
        assert abs(app.session.viewport.start - first.start) <= first.span // first.width


async def test_the_wheel_scrolls_the_lanes(trace: Trace) -> None:
    """Without a key the wheel over the lanes scrolls them by three lines, as far as there are any."""
    async with open_viewer(trace, (120, 18)) as (app, pilot):
        app.run_command("legend")  # what has something in it takes its room from the lanes
        await pilot.pause()
        view, last = app.session.viewport, app.store.layout_now.scrolled(10**6, app.store.now.lane_lines)
        assert last > 3
        turn(app, "#lanes", TITLES + 5, events.MouseScrollDown)
        await pilot.pause()
        assert app.session.scroll == 3
        for _ in range(10):
            turn(app, "#lanes", TITLES + 5, events.MouseScrollDown)
        await pilot.pause()
        assert app.session.scroll == last
        for _ in range(10):
            turn(app, "#lanes", TITLES + 5, events.MouseScrollUp)
        await pilot.pause()
        assert app.session.scroll == 0 and app.session.viewport == view


async def test_the_ruler_by_mouse(trace: Trace) -> None:
    """A click on the ruler puts the cursor there; a drag over it takes the range, to either side."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        view = app.session.viewport
        await pilot.click("#ruler", offset=(TITLES + 30, 0))
        assert view.cell(app.session.cursor) == 30 and app.session.range is None
        for begin, end in ((20, 50), (50, 20)):
            await pilot.mouse_down("#ruler", offset=(TITLES + begin, 0))
            await pilot.hover("#ruler", offset=(TITLES + 40, 0))
            assert app.session.range is not None
            await pilot.hover("#ruler", offset=(TITLES + end, 0))
            await pilot.mouse_up("#ruler", offset=(TITLES + end, 0))
            low, high = sorted((begin, end))
            assert app.session.range == (view.edge(low), view.edge(high + 1)), (begin, end)
        assert app.session.viewport == view and "zooms to it" in message(app)
        await pilot.press("f")
        assert app.session.viewport.start <= view.edge(20) < view.edge(51) <= app.session.viewport.end
        assert app.session.viewport.span < view.span / 2


async def test_a_drag_over_the_lanes_selects_nothing(trace: Trace) -> None:
    """A drag over slices takes the range, the selection stays; a move without a button does nothing."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        app.action_jump(0, 11)
        view, before = app.session.viewport, app.session
        await pilot.hover("#lanes", offset=(TITLES + 30, 2))
        assert app.session == before
        await pilot.mouse_down("#lanes", offset=(TITLES + 20, 2))
        await pilot.hover("#lanes", offset=(TITLES + 40, 3))
        await pilot.mouse_up("#lanes", offset=(TITLES + 40, 3))
        assert app.session.range == (view.edge(20), view.edge(41))
        assert app.session.selection == SliceId(0, 11)


async def test_the_minimap_by_mouse(trace: Trace) -> None:
    """A click on the minimap centres the view there, zoom kept; a drag takes a range."""
    async with open_viewer(trace, SIZE) as (app, pilot):
        whole = app.session.viewport
        await pilot.press("W")
        span = app.session.viewport.span
        await pilot.click("#minimap", offset=(TITLES + 60, 0))
        view = app.session.viewport
        assert abs(whole.cell(view.start + view.span // 2) - 60) <= 1 and view.span == span
        await pilot.mouse_down("#minimap", offset=(TITLES + 20, 0))
        await pilot.hover("#minimap", offset=(TITLES + 40, 0))
        await pilot.mouse_up("#minimap", offset=(TITLES + 35, 0))
        assert app.session.range == (whole.edge(20), whole.edge(36)) and app.session.viewport == view
        await pilot.hover("#minimap", offset=(TITLES + 50, 0))
        assert app.session.range == (whole.edge(20), whole.edge(36))


async def test_what_the_mouse_is_over_is_named(trace: Trace) -> None:
    """Over a slice the message line says its name and how long it takes, until the mouse leaves it or a
    command answers; nothing else on the screen moves.
    """
    async with open_viewer(trace, SIZE) as (app, pilot):
        cell, y = app.session.viewport.cell(5_013_000_000), y_of(app, 0) + 1
        room = app.main.query_one("#lanes").size
        await pilot.hover("#lanes", offset=(TITLES + cell, y))
        row = app.trace.row(app.trace.lanes[0], 1)
        at = app.trace.slice_at(row, 5_013_000_000)
        assert at is not None
        start, end = app.trace.bounds(row, at)
        assert message(app) == f"{app.trace.label(row, at)}  {format_ns(end - start)}"
        assert app.main.query_one("#lanes").size == room
        await pilot.hover("#lanes", offset=(2, y))
        assert not message(app)


async def test_the_verdict_under_the_mouse(trace: Trace) -> None:
    """Over a part of the bar the message line says how much time it is, and of how much; over the title, the
    sentence below or beside it nothing.
    """
    async with open_viewer(trace, SIZE) as (app, pilot):
        spent = app.main.query_one(Verdict).facts
        assert spent is not None and spent.spent is not None
        await pilot.hover(Verdict, offset=(TITLES, 0))
        name, share = next(iter(share_texts(spent.spent))).rsplit(" ", 2)[:2]
        assert message(app).startswith(f"{name}: {share} %, ") and " of " in message(app)
        for x, y in ((2, 0), (TITLES, 1)):
            await pilot.hover(Verdict, offset=(x, y))
            assert not message(app)


@given(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=len(STATES)), st.integers(20, 200))
def test_each_cell_of_the_verdict_says_its_part(values: list[float], area: int) -> None:
    """All cells of the bar say something, each part is said, and the parts take turns as they are drawn."""
    shares = StateShares("AIU 0", 10**9, {key: one / sum(values) for key, one in zip(STATES, values)})
    parts = part_cells(shares, area)
    assert [cell for _, cells in parts for cell in cells] == list(range(area)) and all(
        cells for _, cells in parts
    )
    texts = [part_text(shares, part) for part, _ in parts]
    assert len(texts) == len(set(texts)) and len(texts) >= min(len(values), 2)


async def test_parts_of_the_bar_lead_to_where_they_last_longest(trace: Trace) -> None:
    """A click on a part shows the longest time of its state, which no other of that state exceeds; the arrows
    choose parts, each of which is said, and Enter answers as the click.
    """
    async with open_viewer(trace, SIZE) as (app, pilot):
        verdict, reader = app.main.query_one(Verdict), app.main.query_one(LaneCanvas).reader
        assert verdict.facts is not None and verdict.facts.spent is not None and reader is not None
        parts = part_cells(verdict.facts.spent, app.session.viewport.width)
        states = app.main.query_one(LaneCanvas).states
        assert states is not None and len(parts) > 1
        await pilot.press("shift+tab")
        for number, (part, cells) in enumerate(parts):
            longest = longest_in(states.of_devices, part.states)
            assert longest is not None
            await pilot.click(Verdict, offset=(TITLES + cells.start, 0))
            by_mouse, said = app.session, message(app)
            assert said.startswith(f"longest {part.name}, {format_ns(longest[1] - longest[0])}")
            assert by_mouse.cursor == longest[0]
            assert by_mouse.viewport.start <= longest[0] and longest[1] <= by_mouse.viewport.end
            app.dismiss_message()
            await pilot.press("right" if number else "left")
            assert message(app) == part_text(verdict.facts.spent, part)
            await pilot.press("enter")
            assert (app.session.viewport, app.session.selection, message(app)) == (
                by_mouse.viewport,
                by_mouse.selection,
                said,
            )
            app.dismiss_message()
        await pilot.press("escape")
        assert app.main.focused is app.main.query_one(LaneCanvas)


async def test_the_minimap_by_keys(trace: Trace) -> None:
    """What the mouse is over is said; the arrows go from the middle of the view on, and Enter answers as a
    click there does.
    """
    async with open_viewer(trace, SIZE) as (app, pilot):
        await pilot.press("W")
        await pilot.hover("#minimap", offset=(TITLES + 60, 0))
        text = message(app)
        assert " from the start" in text
        await pilot.click("#minimap", offset=(TITLES + 60, 0))
        by_mouse = app.session.viewport
        await pilot.hover("#lanes", offset=(2, 30))
        await pilot.press("shift+tab", "shift+tab")
        assert message(app) == text
        await pilot.press(*["left"] * 10, "enter")
        assert app.session.viewport != by_mouse
        await pilot.press(*["right"] * 10, "enter")
        assert app.session.viewport == by_mouse
        await pilot.press("shift+tab")
        assert app.main.focused is app.main.query_one(LaneCanvas) and not message(app)


async def test_a_hatch_by_mouse_and_by_key(trace: Trace) -> None:
    """Over a hatch it is said in full why the device does nothing; a click and Enter there select the gap."""
    async with open_viewer(trace, (160, 40)) as (app, pilot):
        canvas = app.main.query_one(LaneCanvas)
        await pilot.press("escape", "down", "down")
        hatches = [
            (y, run, line)
            for y in range(canvas.size.height)
            if (line := canvas.line_at(y)) is not None and line.lane is not None and canvas.reader is not None
            for row in [
                canvas.reader.row(
                    line.lane, line.depth, app.session.viewport, app.session.clocks, app.session.colour_by
                )
            ]
            for run in getattr(row, "runs", ())
            if run.flags & HATCH
        ]
        assert hatches
        y, run, line = max(hatches, key=lambda one: one[1].left)  # not the time before the first work
        cell = (run.left + run.right) // 2
        await pilot.hover("#lanes", offset=(title_cells(160) + cell, y))
        assert message(app).startswith(run.label.partition(" ")[0])
        await pilot.click("#lanes", offset=(title_cells(160) + cell, y))
        selected = app.session.selection
        assert isinstance(selected, GapId)
        app.store.go(app.session._replace(selection=None, focus=line.row_key))
        await pilot.pause()
        app.run_command("details")
        await pilot.pause()
        assert app.session.selection == selected


@pytest.mark.parametrize("size", [(80, 24), (80, 13), (80, 8)])
async def test_strips_that_are_not_there_take_no_arrows(trace: Trace, size: tuple[int, int]) -> None:
    """On low screens, and beside a maximised panel, arrows go to what is seen; else it is said why not."""
    async with open_viewer(trace, size) as (app, pilot):
        for is_maximised in (False, True):
            app.maximised = is_maximised
            await pilot.pause()
            for command in ("verdict", "verdict", "verdict", "minimap"):
                app.run_command(command)
                await pilot.pause()
                assert app.main.focused is None or app.main.focused.display
                if not app.main.query_one("#minimap").display and command == "minimap":
                    assert "need more lines" in message(app)


async def test_a_click_selects_what_lies_under_it(tmp_path: Path) -> None:
    """Of slices that are drawn as one run the longest in the cell is selected, also where there are longer
    ones elsewhere in the run.
    """
    events = [complete(10 * at, 5 + at % 3, f"op{at % 2}", pid=7, tid=7) for at in range(20_000)]
    index = index_of(events, tmp_path)
    async with open_viewer(trace_of("t.json", index), SIZE) as (app, pilot):
        y = y_of(app, 0)
        for cell in range(3, app.session.viewport.width - 3, 7):
            await pilot.click("#lanes", offset=(TITLES + cell, y))
            selected = app.session.selection
            assert isinstance(selected, SliceId)
            start, end = (app.session.viewport.edge(at) for at in (cell, cell + 1))
            at = 10_000 * selected.ordinal  # events are in order of time
            assert start < at + 7_000 and at < end, cell
