"""The scripted walk: from the whole trace to a microsecond, along it, and back; what each frame cost."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from textual import events
from textual.driver import Driver
from textual.drivers.headless_driver import HeadlessDriver
from textual.widgets import Input

from tests.tui.driver import delayed, unfinished, wait_until_idle
from tests.waiting import PATIENCE_S
from tracelane.core.trace import Trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.commands.table import COMMANDS
from tracelane.tui.config import Config
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.lanes.look import glyphs
from tracelane.tui.session import ZOOM_LEAP, ZOOM_STEP
from tracelane.tui.terminal.screen_diff import RESET, ScreenDiff

SIZE = (200, 50)
NEAR_NS = 1000
"""How little time the walk goes down to."""
PANS = 12
START_S = 0.5
"""What comes after the first picture has come by then."""
QUIET_S = 0.04


@dataclass(frozen=True)
class Frame:
    """What a key cost."""

    key: str
    size: int  # bytes sent to the terminal
    drawn: int  # bytes of the frame as it was drawn, whether it changed or not
    segments: int  # coloured pieces in that
    rows: int  # rows of lanes asked for
    numpy_calls: int
    seconds: float  # until it was painted
    cpu_s: float


class Recorder(HeadlessDriver):
    """A terminal that keeps what is sent to it, shortened as for a real one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.drawn: list[str] = []
        self.written: list[str] = []
        self._diff = ScreenDiff()

    @property
    def is_headless(self) -> bool:
        """Frames are made as for a terminal."""
        return False

    def write(self, data: str) -> None:
        """Keep what is drawn, and what is sent of it."""
        self.drawn.append(data)
        self.written.append(self._diff.update_for(data, self._app.size))


class RecordedApp(TracelaneApp):
    """The viewer on a recorder."""

    painted = 0

    def get_driver_class(self) -> type[Driver]:
        """Record."""
        return Recorder

    def post_display_hook(self) -> None:
        """Count the frame."""
        super().post_display_hook()
        self.painted += 1

    def take_output(self) -> tuple[str, str]:
        """Return what was sent since the last time, and what was drawn."""
        driver = self.terminal
        assert isinstance(driver, Recorder)
        output = "".join(driver.written), "".join(driver.drawn)
        driver.written, driver.drawn = [], []
        return output


def keys_of(trace: Trace, fine: bool = True) -> list[str]:
    """Return the walk's keys: zoom in to a microsecond, panning half way and there, out again, see all.

    The fine walk zooms by 1.5 at a time, the other tenfold.
    """
    start, end = trace.opening_span
    closer, farther, factor = ("w", "s", ZOOM_STEP) if fine else ("W", "S", ZOOM_LEAP)
    depth, span = 0, float(end - start)
    while span > NEAR_NS:
        depth, span = depth + 1, span / factor
    pans = ["d"] * PANS + ["a"] * (PANS // 2)
    pans = pans if fine else pans[:: PANS // 3]
    half = depth // 2
    return [closer] * half + pans + [closer] * (depth - half) + pans + [farther] * depth + ["0"]


async def walk(
    trace: Trace, keys: Sequence[str], counting: bool = True, size: tuple[int, int] = SIZE
) -> list[Frame]:
    """Press the keys one after the other, each when the frame before is painted.

    Counting calls slows frames down: times mean something only without it.
    """
    app = RecordedApp(trace, config=Config())
    frames: list[Frame] = []
    async with app.run_test(headless=False, size=size):
        await _quiet(app, START_S)
        for key in keys:
            app.take_output()
            painted = app.painted
            with counted(counting) as count:
                began, cpu = time.perf_counter(), time.process_time()
                app.post_message(events.Key(key, key if len(key) == 1 else None))
                while app.painted == painted:
                    assert time.perf_counter() - began < PATIENCE_S, f"{key} painted nothing"
                    await asyncio.sleep(0.0005)
                seconds = time.perf_counter() - began
                cpu = time.process_time() - cpu
                await _quiet(app, QUIET_S)
            sent, drawn = app.take_output()
            lengths, segments = (len(sent.encode()), len(drawn.encode())), drawn.count(RESET)
            frames.append(Frame(key, *lengths, segments, count.rows, count.numpy_calls, seconds, cpu))
    return frames


async def modal_costs(
    trace: Trace, before: Sequence[str], leaving: Collection[str], size: tuple[int, int]
) -> dict[str, tuple[int, int]]:
    """Run `before`, then every command but those for leaving, and return the bytes that opening and closing
    take of each that opens a screen of its own: that is opened a second time, once nothing else is painted.
    """
    app, costs = RecordedApp(trace, config=Config()), dict[str, tuple[int, int]]()
    async with app.run_test(headless=False, size=size) as pilot:
        await _quiet(app, START_S)

        async def run(name: str, wait: Awaitable[None]) -> int:
            app.run_command(name)
            await wait
            return len(app.take_output()[0].encode())

        async def close(wait: Awaitable[None]) -> int:
            await pilot.press("escape")
            await wait
            return len(app.take_output()[0].encode())

        for name in before:
            await run(name, wait_until_idle(app, pilot))
        for name in (entry.id for entry in COMMANDS if entry.id not in leaving):
            if app.session.selection is None:
                await run("details", wait_until_idle(app, pilot))
            await run(name, wait_until_idle(app, pilot))
            if app.screen is not app.main:
                await close(_quiet(app, QUIET_S))
                costs[name] = await run(name, _quiet(app, QUIET_S)), await close(_quiet(app, QUIET_S))
            elif isinstance(app.focused, Input):
                await close(wait_until_idle(app, pilot))
    return costs


async def first_picture(trace: Trace, seen: Callable[[], object] = lambda: None) -> None:
    """Show a trace, and leave as soon as its lanes are painted, all of them in one frame; `seen` is called
    before leaving.
    """
    app = RecordedApp(trace, config=Config())
    async with app.run_test(headless=False, size=SIZE):
        written, began = "", time.perf_counter()
        while not {glyphs().unfolded, glyphs().folded} & set(written):  # only titles of lanes have them
            assert time.perf_counter() - began < PATIENCE_S, "no picture"
            await asyncio.sleep(0.0005)
            written += app.take_output()[0]
        seen()


async def _quiet(app: RecordedApp, seconds: float) -> None:
    """Wait until nothing was painted for so many seconds of turns of the loop, and nothing is under way."""
    painted, left = app.painted, seconds
    while left > 0 or unfinished(app) or delayed(app):
        await asyncio.sleep(QUIET_S / 4)
        left -= QUIET_S / 4
        if app.painted != painted:
            painted, left = app.painted, seconds


@dataclass
class Count:
    """Rows asked for and calls into numpy."""

    rows: int = 0
    numpy_calls: int = 0


@contextmanager
def counted(really: bool) -> Iterator[Count]:
    """Count while the context lasts."""
    count = Count()
    if not really:
        yield count
        return
    asking = {RowReader._draw.__code__, RowReader._lane_cells.__code__}

    def called(frame: FrameType, event: str, what: Any) -> None:
        if event == "call":
            if frame.f_code in asking:
                count.rows += 1
        elif event == "c_call" and _of_numpy(what):
            count.numpy_calls += 1

    before: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(called)
    try:
        yield count
    finally:
        sys.setprofile(before)


def _of_numpy(function: Any) -> bool:
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    return module.startswith("numpy")
