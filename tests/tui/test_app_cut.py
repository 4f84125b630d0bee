"""Cutting the range from the viewer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot

from tests.events import complete, open_events
from tests.tui.driver import open_viewer, wait_until_idle
from tracelane.core.base.clock import Clocks
from tracelane.core.trace import open_trace
from tracelane.tui.app import TracelaneApp


async def ordered(app: TracelaneApp, pilot: Pilot[None], line: str) -> str:
    """Type a command line; return what the footer says in the end."""
    await pilot.press("colon")
    app.screen.query_one("Prompt Input").value = line
    await pilot.press("enter")
    await wait_until_idle(app, pilot)
    return app.message


async def test_cut_writes_the_range_and_never_over_a_file(tmp_path: Path) -> None:
    """What lies in the range is written, clocks taken back; without a range or over a file it is refused."""
    events = [complete(100 * n, 50, f"s{n}") for n in range(10)]
    trace = open_events(tmp_path, events)
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        out = tmp_path / "cut.json.gz"
        assert "no range" in await ordered(app, pilot, f"cut {out}")
        assert "FILE.json" in await ordered(app, pilot, "cut")
        app.store.show(replace(app.session, range=(310_000, 520_000)))
        assert await ordered(app, pilot, f"cut {out}") == f"saved {out}: 3 slices"
        assert "give another name" in await ordered(app, pilot, f"cut {out}")
        app.store.show(replace(app.session, clocks=Clocks().shifted((0, ""), 200_000)))
        moved = tmp_path / "moved.json"
        assert await ordered(app, pilot, f"cut {moved}") == f"saved {moved}: 3 slices"
        # A device with a clock of its own: what stands in the range on the screen is what is written.
        app.store.show(replace(app.session, clocks=Clocks().shifted((0, "1"), -100_000)))
        device = tmp_path / "device.json"
        assert await ordered(app, pilot, f"cut {device}") == f"saved {device}: 3 slices"
    names = []
    for path in (out, moved, device):
        index = open_trace(path, index_dir=tmp_path / "index").indexes[0]
        names.append(index.strings(index.column("slices.name")))
    assert names == [["s3", "s4", "s5"], ["s1", "s2", "s3"], ["s4", "s5", "s6"]]
