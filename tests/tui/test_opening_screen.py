"""While a trace is being indexed: a provisional picture that can be moved in, and the trace in its place."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot

from tests.reading import batches_of_file
from tests.tui.driver import message, screen_text, wait_until, wait_until_idle
from tests.tui.driver import running as run_app
from tracelane.core.base.errors import UnreadableError
from tracelane.core.base.progress import Progress
from tracelane.core.index.cache import IndexLocation, locate
from tracelane.core.index.indexing import Indexing
from tracelane.core.index.ingest import build_here, opened_index
from tracelane.core.index.sketching import Sketching
from tracelane.core.read.coarse import write_picture
from tracelane.core.read.source import Source, open_source
from tracelane.core.trace import trace_of
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config
from tracelane.tui.draw.line import lane_key
from tracelane.tui.prepared import OneFile, Prepared
from tracelane.tui.screens.opening import QUESTION, OpeningScreen, StopQuestion
from tracelane.tui.session import RowKey, Session, Viewport


def events() -> list[dict[str, object]]:
    trace_events: list[dict[str, object]] = []
    for n in range(400):
        common = {"ph": "X", "ts": 100 * n, "dur": 60 + n % 7}
        trace_events.append({"cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": n % 3, **common})
        trace_events.append({"cat": "kernel", "name": "gemm", "pid": 0, "tid": 8, **common})
    trace_events += [
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 2, "args": {"name": "autograd"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 8, "args": {"name": "stream 8"}},
    ]
    return trace_events


class Scripted:
    """An `Indexing` that tells what the test lets it tell; the index itself is there already."""

    def __init__(self, source: Source, location: IndexLocation) -> None:
        self.source, self.location = source, location
        self.progress = Progress("reading", 0, 1000)
        self.picture: Path | None = None
        self.committed = False
        self.error: Exception | None = None
        self.polls = 0

    def poll(self) -> bool:
        self.polls += 1
        if self.error is not None:
            raise self.error
        return self.committed


@pytest.fixture
def running(tmp_path: Path) -> Scripted:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events()}))
    source = open_source(path)
    location = locate(dict(source.fingerprint), tmp_path / "index")
    build_here(source, location).close()
    return Scripted(source, location)


def drawn(running: Scripted, folder: Path) -> None:
    """Draw the whole file, as the process would."""
    announced: list[Path] = []
    sketching = Sketching(folder, announced.append)
    for batch, table in batches_of_file(running.source.file):
        sketching.take(write_picture(batch, table, folder))
    running.picture = announced[-1]
    running.progress = Progress("reading", 250, 1000, 100)


@asynccontextmanager
async def viewer_of(
    running: Scripted, before: Session | None = None
) -> AsyncIterator[tuple[TracelaneApp, Pilot[None]]]:
    def prepare() -> Prepared:
        source, location = running.source, running.location
        return Prepared(trace_of(source.path, opened_index(source, location)), before, notes=("a note",))

    app = TracelaneApp(OneFile(cast(Indexing, running), "t.json", prepare, before), config=Config())
    async with run_app(app) as pilot:
        yield app, pilot


def provisional(app: TracelaneApp) -> OpeningScreen:
    """The screen with the provisional picture."""
    screen = app.screen_stack[0]
    assert isinstance(screen, OpeningScreen)
    return screen


async def until_drawn(app: TracelaneApp, pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: bool(provisional(app).sketch.lanes), "a picture")


async def until_opened(app: TracelaneApp, pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: app.opening is None and app.composed, "the trace")
    await wait_until_idle(app, pilot)


@pytest.mark.slow
async def test_a_provisional_picture(running: Scripted, tmp_path: Path) -> None:
    """Lanes appear as they are read, with names and busy time, without labels, called provisional."""
    async with viewer_of(running) as (app, pilot):
        assert "provisional" in screen_text(app) and "t.json" in screen_text(app)
        drawn(running, tmp_path)
        await until_drawn(app, pilot)
        text = screen_text(app)
        for part in ("provisional", "indexing", "25 %", "python 7", "autograd", "stream 8", "thread 1", "▅"):
            assert part in text, part
        assert "aten" not in text and "gemm" not in text


async def test_settling_keeps_the_place(running: Scripted, tmp_path: Path) -> None:
    """Lane, time window and cursor stay where they were when the trace takes the picture's location."""
    async with viewer_of(running) as (app, pilot):
        drawn(running, tmp_path)
        await until_drawn(app, pilot)
        await pilot.press("w", "w", "w", "d", "left", "left", "j", "j", "j")
        before = provisional(app).session
        lanes = [line.split("│")[0].strip(" ▌▾") for line in screen_text(app).splitlines()]
        running.committed = True
        await until_opened(app, pilot)
        after = app.session
        assert (after.viewport, after.cursor, after.focus) == (before.viewport, before.cursor, before.focus)
        assert after.focus is not None and after.focus.lane.tid == "1"
        now = [line.split("│")[0].strip(" ▌▾") for line in screen_text(app).splitlines()]
        assert lanes.index("thread 1") == now.index("thread 1")
        assert "39.96 ms" in screen_text(app) and "provisional" not in screen_text(app)
        assert message(app) == "a note"
        await pilot.press("enter")
        assert app.session.selection is not None


async def test_untouched_it_opens_as_ever(running: Scripted, tmp_path: Path) -> None:
    """Who only looked sees the first view that the trace always opens with."""
    async with viewer_of(running) as (app, pilot):
        drawn(running, tmp_path)
        await until_drawn(app, pilot)
        running.committed = True
        await until_opened(app, pilot)
        assert (app.session.viewport.start, app.session.viewport.end) == app.trace.opening_span
        assert app.session.focus is None


async def test_read_again_it_begins_where_it_was(running: Scripted, tmp_path: Path) -> None:
    """A trace that was shown before keeps its time window and cursor in the picture and after it."""
    trace = trace_of(running.source.path, opened_index(running.source, running.location))
    lane = lane_key(trace.lanes[2])
    before = Session(Viewport(9_000_000, 2_000_000, 70), 9_500_000, RowKey(lane, 0), folded=frozenset({lane}))
    async with viewer_of(running, before) as (app, pilot):
        drawn(running, tmp_path)
        await until_drawn(app, pilot)
        seen = provisional(app).session
        assert (seen.viewport.start, seen.viewport.span, seen.cursor) == (9_000_000, 2_000_000, 9_500_000)
        running.committed = True
        await until_opened(app, pilot)
        viewport = before.viewport.resized(app.session.viewport.width)
        opened = replace(before, viewport=viewport, devices_first=True)
        assert replace(app.session, scroll=0, host_rows=before.host_rows) == opened


async def test_escape_never_cancels(running: Scripted, tmp_path: Path) -> None:
    """Esc says that indexing goes on, as often as it is pressed."""
    async with viewer_of(running) as (app, pilot):
        await pilot.press("escape", "escape", "escape")
        assert app.is_running and app.return_code is None
        assert "indexing goes on" in message(app)


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "stops"), [("y", True), ("n", False), ("escape", False), ("w", False)])
async def test_ctrl_c_asks_first(running: Scripted, tmp_path: Path, answer: str, stops: bool) -> None:
    """Ctrl+C asks; only y stops, and while it asks the picture stays."""
    async with viewer_of(running) as (app, pilot):
        drawn(running, tmp_path)
        await until_drawn(app, pilot)
        await pilot.press("ctrl+c")
        assert isinstance(app.screen, StopQuestion)
        assert QUESTION in screen_text(app) and app.return_code is None
        running.committed = True  # the answer comes first
        polls = running.polls
        await wait_until(pilot, lambda: running.polls > polls + 2, "a look at the index")
        assert isinstance(app.screen, StopQuestion)
        await pilot.press(answer)
        if stops:
            assert app.return_code == 130
        else:
            await until_opened(app, pilot)


async def test_the_palette_stops_too(running: Scripted) -> None:
    """The command of the palette asks as well; when nothing is indexed any more it says so."""
    async with viewer_of(running) as (app, pilot):
        app.run_command("stop-indexing")
        await pilot.pause()
        assert isinstance(app.screen, StopQuestion)
        await pilot.press("n")
        running.committed = True
        await until_opened(app, pilot)
        await pilot.press("ctrl+c")
        assert "nothing is being indexed" in message(app) and app.is_running


async def test_quitting(running: Scripted) -> None:
    """q leaves at once."""
    async with viewer_of(running) as (app, pilot):
        await pilot.press("q")
        assert app.return_code == 0 and app.trouble is None


async def test_what_needs_the_index_says_so(running: Scripted, tmp_path: Path) -> None:
    """Commands on slices, tables and searches wait for the index, and say it; moves wait for lanes."""
    async with viewer_of(running) as (app, pilot):
        await pilot.press("w")
        assert "nothing has been read yet" in message(app)
        drawn(running, tmp_path)
        await until_drawn(app, pilot)
        for key, title in (("slash", "Search"), ("enter", "Select, details"), ("3", "Call tree, flame")):
            await pilot.press(key)
            assert message(app).startswith(title) and "when the index is there" in message(app)
        await pilot.press("ö")
        assert message(app) == "ö does nothing here: ? shows all keys"


async def test_failing_is_told_after_leaving(running: Scripted) -> None:
    """What is no trace ends the viewer, which hands the reason on."""
    async with viewer_of(running) as (app, pilot):
        running.error = UnreadableError("t.json: no trace events in it")
        await wait_until(pilot, lambda: app.return_code is not None, "the end")
        assert app.return_code == 0
        assert app.trouble is running.error
