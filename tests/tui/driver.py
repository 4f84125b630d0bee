"""Drives the viewer in tests: opens it, reads its screen, and waits for conditions, never for times."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from rich.console import Console
from textual._context import active_app
from textual.app import App
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerState

from tests.waiting import PATIENCE_S
from tracelane.core.trace import Trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config

POLL_S = 0.01
MAX_S = 10.0
MANY_TURNS = 1000


@asynccontextmanager
async def running(app: App[Any], size: tuple[int, int] = (100, 30)) -> AsyncIterator[Pilot[Any]]:
    """Run an App on a screen of that many columns and lines."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot


@asynccontextmanager
async def open_viewer(
    trace: Trace, size: tuple[int, int] = (100, 30), config: Config | None = None
) -> AsyncIterator[tuple[TracelaneApp, Pilot[None]]]:
    """Open a trace in the viewer, with all that is looked up at first, such as what Enter offers."""
    app = TracelaneApp(trace, config=config or Config())
    async with running(app, size) as pilot:
        await wait_until_idle(app, pilot)
        yield app, pilot


def screen_text(app: App[Any]) -> str:
    """Return what is to be read on the screen, line by line."""
    width, height = app.size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=False,
        color_system=None,
        legacy_windows=False,
    )
    console.print(app.screen._compositor)
    return console.file.getvalue()  # type: ignore[attr-defined]


def message(app: TracelaneApp) -> str:
    """Return what the footer says."""
    return app.message


async def wait_until(pilot: Pilot[Any], holds: Callable[[], bool], what: str = "the condition") -> None:
    """Let the App run until something holds and all it has drawn since is on the screen."""
    deadline = monotonic() + PATIENCE_S
    while not holds():
        if monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_S:.0f} s for {what}")
        await pilot.pause(POLL_S)
    await pilot.pause()


async def wait_until_idle(app: App[Any], pilot: Pilot[Any]) -> None:
    """Let the App run until no message, no delayed call and no work in the background is left.

    A table that was replaced by a newer one (its worker is cancelled) is no failure.
    """
    deadline, turns_idle = monotonic() + PATIENCE_S, 0
    while app.is_running and turns_idle < 2:  # what ended in the first is drawn in the second
        await pilot.pause()
        if unfinished(app) or delayed(app):
            if monotonic() > deadline:
                raise TimeoutError(f"the viewer still works after {PATIENCE_S:.0f} s: {unfinished(app)}")
            turns_idle = 0
            await asyncio.sleep(POLL_S)
        else:
            turns_idle += 1


async def press_keys(app: App[Any], pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one after the other, and let the App do all that comes of them."""
    await pilot.press(*keys)
    await wait_until_idle(app, pilot)


def unfinished(app: App[Any]) -> list[str]:
    """Return the names of what works in the background."""
    working = (WorkerState.PENDING, WorkerState.RUNNING)
    return [worker.name for worker in app.workers if worker.state in working]


def delayed(app: App[Any]) -> bool:
    """Tell whether a call is to come after a delay, such as the panel that follows once keys are at rest."""
    return any(
        timer._repeat is not None and timer._task is not None and not timer._task.done()
        for timer in app._timers
    )


async def wait_until_handled(*_: float) -> None:
    """Let the App run until each of its widgets waits for a message and the screen is drawn.

    It stands in for textual's `wait_for_idle`, which takes 20 ms at rest for the end of all work: so does a
    process that gets no processor for so long. A handler that waits for an answer is not waited for longer
    than `MAX_S`.
    """
    app = active_app.get()
    deadline, turns = monotonic() + MAX_S, 0
    while app.is_running and app._exception is None and monotonic() < deadline:
        turns += 1
        await asyncio.sleep(0 if turns < MANY_TURNS else POLL_S)
        if has_messages(app):
            continue
        screen = app.screen_stack[-1] if app._screen_stacks.get(app._current_mode) else None
        if screen is None or app._batch_count or not has_to_draw(screen):
            return
        screen._on_timer_update()


def has_to_draw(screen: Screen[Any]) -> bool:
    """Tell whether a screen has changed since it was drawn."""
    changed = screen._dirty_widgets or screen._layout_required or screen._repaint_required
    return bool(changed or screen._callbacks)


def has_messages(app: App[Any]) -> bool:
    """Tell whether a message waits or is handled."""
    return any(handles_message(pump) for pump in (app, *app._registry))


def handles_message(pump: MessagePump) -> bool:
    """Tell whether a message of a widget, a screen or an App waits or is handled."""
    if pump._closed or not pump._running:
        return False
    came = pump._message_queue.ready_event
    return came.is_set() or not came._waiters  # type: ignore[attr-defined]


async def type_command(pilot: Pilot[None], line: str) -> None:
    """Type a command line."""
    names = {" ": "space", "/": "slash", "-": "minus", ".": "full_stop", "_": "underscore"}
    await pilot.press("colon", *(names.get(c, c) for c in line), "enter")
    await pilot.pause()
