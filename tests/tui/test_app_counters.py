"""Computed lanes in the viewer: shown at the start, hidden and shown by command, selected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.test_device_clocks import shifted, trace_of
from tests.events import write_demo_without_counters
from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tracelane.core.logs.counters import MEMORY, QUEUE, WithCounters, with_cheap_lanes, with_lanes
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.counters import base_of, computed_lanes
from tracelane.tui.app import TracelaneApp


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """The first rank of the demo, with its memory lanes."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo_without_counters(folder)
    trace = open_trace(folder / "rank0.pt.trace.json", index_dir=folder / "index")
    yield with_cheap_lanes(trace)
    trace.close()


async def test_memory_lanes_are_shown_and_hidden(demo: Trace) -> None:
    """They stand below the device at the start; the command hides them, and shows them again."""
    async with open_viewer(demo, size=(120, 60)) as (app, pilot):
        assert "allocated MiB" in screen_text(app)
        assert "and 1 more" not in screen_text(app), "what is computed is no file"
        app.run_command("memory-lanes")
        await wait_until_idle(app, pilot)
        assert "allocated MiB" not in screen_text(app)
        app.run_command("memory-lanes")
        await wait_until_idle(app, pilot)
        assert "allocated MiB" in screen_text(app)


async def test_queue_lanes_come_by_command(demo: Trace) -> None:
    """The command computes them, goes there, and says what they hold; again: they are hidden."""
    async with open_viewer(demo, size=(120, 60)) as (app, pilot):
        app.run_command("queue-lanes")
        await wait_until_idle(app, pilot)
        assert "waiting: launched, not started" in message(app)
        lanes = computed_lanes(app.trace, QUEUE)
        assert app.session.focus is not None
        assert app.session.focus.lane == lanes[0]
        assert len(computed_lanes(app.trace, MEMORY)) == 2, "the memory lanes stay"
        app.run_command("queue-lanes")
        assert set(lanes) <= app.session.hidden_lanes


async def test_queues_follow_the_clock_of_a_device(tmp_path: Path) -> None:
    """Moving a device, and going back, computes the queues anew; view, focus and what is hidden stay."""

    def samples(app: TracelaneApp) -> list[int]:
        base = base_of(app.trace)
        assert isinstance(base, WithCounters)
        return base.computed.column("samples.start").tolist()

    moved = with_cheap_lanes(trace_of(shifted(-2000), tmp_path / "moved"))
    right = with_lanes(trace_of(shifted(0), tmp_path / "right"), QUEUE)
    async with open_viewer(moved, size=(120, 60)) as (app, pilot):
        app.run_command("queue-lanes")
        await wait_until_idle(app, pilot)
        as_stamped, focus = samples(app), app.session.focus
        app.device_clocks.set_device_offset("0.002")
        await wait_until_idle(app, pilot)
        assert samples(app) == right.computed.column("samples.start").tolist() != as_stamped
        assert app.session.focus == focus
        await pilot.press("u")
        await wait_until_idle(app, pilot)
        assert samples(app) == as_stamped


async def test_a_sample_is_told_as_computed(demo: Trace) -> None:
    """Enter on a memory lane selects the sample at the cursor; its record's arguments are read."""
    async with open_viewer(demo, size=(120, 60)) as (app, pilot):
        lane = computed_lanes(app.trace, MEMORY)[0]
        app.run_command("queue-lanes")
        await wait_until_idle(app, pilot)
        while app.session.focus is not None and app.session.focus.lane != lane:
            await pilot.press("shift+up")
        await pilot.press("enter")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "computed from the trace" in text
        assert "Total Allocated" in text


async def test_nothing_to_compute_is_said(tmp_path: Path) -> None:
    """Without launches and records both commands say why there are no lanes."""
    from tests.tui.small_file import small_file

    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    async with open_viewer(trace) as (app, pilot):
        app.run_command("memory-lanes")
        await wait_until_idle(app, pilot)
        assert "no [memory] records" in message(app)
