"""Gaps from keyboard and mouse: selected like anything else, with details, and left again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.events import complete
from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tests.tui.small_trace import MS, START
from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.session import GapId


async def test_from_gap_to_gap(trace: Trace) -> None:
    """i goes to the next gap of the row, → to what ends it, r makes it the range; the last one says so."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.action_jump(0, 4)
        await pilot.press("i")
        assert app.session.selection == GapId(0, 14)
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        for part in (
            "gap of 7 ms",
            "host wait: the host was late",
            "in 2 of 4 steps, 7 ms median",
            "launchKernel",
            "aten::linear",
        ):
            assert part in text, part
        await pilot.press("r")
        assert app.session.range == (START + 9 * MS, START + 16 * MS)
        await pilot.press("escape", "i")
        assert app.session.selection == GapId(0, 24)
        await pilot.press("left")
        assert app.session.selection == SliceId(0, 14)
        await pilot.press("i", "right")
        assert app.session.selection == SliceId(0, 24)
        await pilot.press("i", "i")
        assert "no gap" in message(app)
        await pilot.press("y")
        await wait_until_idle(app, pilot)


async def test_the_longest(trace: Trace) -> None:
    """I goes to the longest gap of the row, within the range if there is one."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.action_jump(0, 24)
        await pilot.press("I")
        assert app.session.selection == GapId(0, 14)
        app.action_jump(0, 24)
        await pilot.press("r")
        await pilot.press("I")
        assert "no gap in the work of this lane, in the range" in message(app)


async def test_a_click_between_two_slices(trace: Trace) -> None:
    """A click on the empty space between two slices selects the gap, drawn as such."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.action_jump(0, 4)
        canvas = app.main.query_one(LaneCanvas)
        y = app.store.layout_now.y_of(app.session.focus) - app.session.scroll  # type: ignore[arg-type, operator]
        x = canvas.size.width - canvas.time_cells + app.session.viewport.cell(START + 12 * MS)
        await pilot.click(canvas, offset=(x, y))
        assert app.session.selection == GapId(0, 14)
        await pilot.pause()
        assert "─ host late" in canvas.render_line(y).text
        await pilot.press("up", "escape")


@pytest.mark.parametrize("gap_us", [5, 500, 5_000])
async def test_a_narrow_gap_is_zoomed_to(tmp_path: Path, gap_us: int) -> None:
    """A gap of fewer than three cells, in which nothing would be seen, gets room; a wider one does not."""
    kernels = [(0, 5_000), (5_000 + gap_us, 5_000), (10_000 + gap_us, 90_000)]
    events = [
        complete(ts, dur, f"k{ts}", "kernel", pid=0, tid=7, args={"stream": 7, "device": 0})
        for ts, dur in kernels
    ]
    (tmp_path / "t.json").write_text(json.dumps(events))
    trace = open_trace(tmp_path / "t.json", index_dir=tmp_path / "index")
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        before = app.session.viewport
        await pilot.press("I")
        view = app.session.viewport
        assert isinstance(app.session.selection, GapId)
        assert gap_us * 1000 * view.width >= 3 * view.span
        assert (view == before) == (gap_us * 1000 * before.width >= 3 * before.span)
