"""Walks by keys over the strips: the verdict's bar, the minimap, and the strip of steps in the overview."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot

from tests.core.findings_traces import launched, op, step, trace_of
from tests.tui.driver import message, open_viewer, press_keys, wait_until_idle
from tests.tui.test_walks import check_place
from tracelane.core.base.units import about_ns
from tracelane.core.trace import Trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.lanes.strips import Minimap, Verdict
from tracelane.tui.panels.overview import DetailsPane
from tracelane.tui.steps import step_marks

SIZE = (120, 40)
LENGTHS = (900, 850, 940, 2300, 700, 910, 1200)
KEYS = ("tab", "shift+tab", "left", "right", "up", "down", "enter", "escape")


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Steps of which no two take as long, each with a kernel that the host launches late."""
    events, at = [], 0
    for number, length in enumerate(LENGTHS):
        events += [step(number, at, length), op(at + 1, length - 300, "aten::mm")]
        events += launched(at + length - 290, 5, at + length - 280, 200, "gemm")
        at += length + 100
    return trace_of(events, tmp_path)


def strip_row(pane: DetailsPane) -> int:
    return next(number for number, row in enumerate(pane.rows) if row.steps)


def cells_of_strip(app: TracelaneApp, pane: DetailsPane) -> list[Offset]:
    """Return the first cell of each step on the strip, from the left."""
    left, top = pane.region.offset
    offsets = {}
    for y in range(pane.size.height):
        for x in range(pane.size.width):
            cell = app.screen.get_style_at(left + x, top + y).meta.get("cell")
            if cell is not None:
                offsets[cell] = Offset(x, y)
    return [offsets[cell] for cell in sorted(offsets)][:: len(offsets) // len(LENGTHS)]


async def to_strip(app: TracelaneApp, pilot: Pilot[None]) -> DetailsPane:
    """Give the arrows to the strip of steps, from the lanes on the whole trace."""
    pane = app.main.query_one(DetailsPane)
    await press_keys(app, pilot, "tab", *["down"] * strip_row(pane))
    return pane


async def test_arrows_choose_each_step(trace: Trace) -> None:
    """On the strip what is said is the step that Enter shows: the longest first, then any by arrows, at whose
    ends they go on to the rows beside it.
    """
    async with open_viewer(trace, SIZE) as (app, pilot):
        marks = step_marks(trace, app.session.clocks, app.session.steps)
        said = [f"{one.title}  {about_ns(one.end - one.start)}" for one in marks]
        longest = LENGTHS.index(max(LENGTHS))
        pane = await to_strip(app, pilot)
        assert message(app) == said[longest]
        await press_keys(app, pilot, "right")
        assert message(app) == said[longest]
        walk = [*range(longest + 1, len(marks)), *reversed(range(len(marks) - 1))]
        for before, number in zip([longest, *walk], walk):
            await press_keys(app, pilot, "right" if number > before else "left")
            assert message(app) == said[number]
        await press_keys(app, pilot, "left")
        assert pane.has_focus and message(app) != said[0]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(LENGTHS)))
async def test_enter_shows_the_chosen_step(number: int, trace: Trace) -> None:
    """Enter on a step shows that step, as a click on its cell does, and the arrows stay where they are."""
    longest = LENGTHS.index(max(LENGTHS))
    async with open_viewer(trace, SIZE) as (app, pilot):
        mark = step_marks(trace, app.session.clocks, app.session.steps)[number]
        first, pane = app.session, await to_strip(app, pilot)
        by = "right" if number > longest else "left"
        await press_keys(app, pilot, "right", *[by] * abs(number - longest), "enter")
        by_keys, text = app.session, message(app)
        assert by_keys.viewport.start <= mark.start and mark.end <= by_keys.viewport.end
        assert text.startswith(mark.title)
        app.store.show(first)
        await wait_until_idle(app, pilot)
        await pilot.click(pane, cells_of_strip(app, pane)[number])
        await wait_until_idle(app, pilot)
        assert (app.session.viewport, message(app)) == (by_keys.viewport, text)


@pytest.mark.slow
@pytest.mark.parametrize("size", [SIZE, (80, 24), (100, 18)])
@pytest.mark.parametrize("seed", range(4))
async def test_no_walk_over_strips_loses_the_arrows(seed: int, size: tuple[int, int], trace: Trace) -> None:
    """Whatever keys come after one another, something that is seen has the arrows, and the view lies in the
    trace; two shift+Tab and Esc at most lead back to the lanes.
    """
    chosen = random.Random(seed)
    async with open_viewer(trace, size) as (app, pilot):
        for _ in range(40):
            await press_keys(app, pilot, chosen.choice(KEYS))
            focused = app.screen.focused
            assert app.screen is app.main and focused is not None and focused.display and focused.region
            check_place(app.trace, app.session)
        await press_keys(app, pilot, "escape", "escape", "escape", "escape")
        canvas = app.main.query_one(LaneCanvas)
        assert app.main.focused is canvas
        await press_keys(app, pilot, "shift+tab")
        assert isinstance(app.main.focused, Verdict | Minimap)
