"""Logs, counters, device clocks and sections over a trace: opened, read at the cursor, moved, offered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.test_device_clocks import shifted, trace_of
from tests.events import write_demo_without_counters
from tests.sambatune import HYPERFUNCTIONS, write_report
from tests.tui.driver import message, open_viewer, press_keys, screen_text, type_command, wait_until_idle
from tests.tui.small_file import small_file
from tracelane.core.base.colours import key_of
from tracelane.core.demo.trace import write_demo
from tracelane.core.logs.counters import MEMORY, QUEUE, WithCounters, with_cheap_lanes, with_lanes
from tracelane.core.logs.overlay import LogOptions, Overlay, open_overlay
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.lanes import computed_lanes
from tracelane.tui.app import TracelaneApp
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.cli.trace_options import TraceOptions
from tracelane.tui.cli.view_request import ViewOptions, offered_log, session_of_options
from tracelane.tui.device_facts import stored_facts
from tracelane.tui.draw.colour import ArgumentColours
from tracelane.tui.view_line import view_line

INTERVAL_NS = 100_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return folder


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    return open_trace(folder / "rank0.pt.trace.json", index_dir=folder / "index")


@pytest.fixture(scope="module")
def overlay(folder: Path, trace: Trace) -> Overlay:
    return open_overlay(trace, [folder / "aiu-smi.log"], LogOptions())


@pytest.mark.slow
async def test_logs_are_removed(trace: Trace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`:smi none` takes a log's lanes away, with what was pinned, hidden or moved of them; the rest stays."""
    monkeypatch.chdir(folder)
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        await type_command(pilot, "smi none")
        assert "no log is shown with this trace" in message(app)
        before = app.session
        await type_command(pilot, "smi aiu-smi.log")
        await wait_until_idle(app, pilot)
        for key in ("p", ":"):
            await press_keys(app, pilot, key)
        await press_keys(app, pilot, *"log-later", "enter")
        assert app.session.pinned and app.session.clocks != before.clocks
        await type_command(pilot, "against")
        assert ":smi none removes the log" in message(app)
        await type_command(pilot, "smi none")
        await wait_until_idle(app, pilot)
        assert "without the lanes of aiu-smi.log" in message(app) and "pwr W" not in screen_text(app)
        assert app.trace is trace
        assert (app.session.pinned, app.session.clocks) == (before.pinned, before.clocks)
        for key in ("a", "down", "up", "enter", "u", "u", "U"):
            await press_keys(app, pilot, key)
        await type_command(pilot, "smi aiu-smi.log")
        await wait_until_idle(app, pilot)
        assert "pwr W" in screen_text(app)


@pytest.mark.slow
async def test_a_log_opened_in_the_viewer(
    trace: Trace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`:smi` lays a log over the trace: its lanes come in sight and its clock is told."""
    monkeypatch.chdir(folder)
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        assert "pwr W" not in screen_text(app)
        await type_command(pilot, "smi aiu-smi.log")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert text.split()[0] == "rank0.pt.trace.json"  # the header's name is the trace's
        assert "AIU 0 · aiu-smi 0" in text and "pwr W" in text and "hostcpu %" in text
        assert "txpci" not in text  # not shown at first
        assert "UTC+00:00" in message(app)
        await type_command(pilot, "smi nowhere.log")
        await wait_until_idle(app, pilot)
        assert "nowhere.log: No such file" in message(app)


async def test_a_log_beside_is_laid_over_by_two_enters(folder: Path) -> None:
    """:smi proposes the log beside the trace, and none once it lies over it."""
    trace = open_trace(folder / "rank0.pt.trace.json", index_dir=folder / "index")
    async with open_viewer(trace, (80, 24)) as (app, pilot):
        await type_command(pilot, "smi")
        await wait_until_idle(app, pilot)  # the log is looked for
        await press_keys(app, pilot, "enter")
        assert isinstance(app.trace, Overlay)
        assert "aiu-smi.log" in message(app)
        await type_command(pilot, "smi")
        await wait_until_idle(app, pilot)  # the log is looked for
        await press_keys(app, pilot, "enter")
        assert len(app.trace.placed) == 1


async def test_moving_a_log(overlay: Overlay) -> None:
    """Two commands move the log by its sampling interval, :smi-offset sets its lag, u takes both back."""
    source = overlay.log_sources[0]
    proposed = overlay.placed[0].proposal.lag_s
    async with open_viewer(overlay, (120, 40)) as (app, pilot):
        app.run_command("log-later")
        await pilot.pause()
        assert app.session.clocks.offset(source) == INTERVAL_NS
        assert "set by hand" in message(app)
        await pilot.press("u")
        assert app.session.clocks.offset(source) == 0
        app.run_command("log-earlier")
        await pilot.pause()
        assert app.session.clocks.offset(source) == -INTERVAL_NS
        await type_command(pilot, "smi-offset 1.5")
        assert app.session.clocks.offset(source) == round((proposed - 1.5) * 1e9)
        assert "lag +1.5 s" in message(app)
        await type_command(pilot, "smi-offset")
        assert app.session.clocks.offset(source) == 0
        await type_command(pilot, "smi-offset soon")
        assert "give seconds" in message(app)


@pytest.mark.slow
async def test_the_read_out_follows_the_cursor(overlay: Overlay) -> None:
    """On a log's lane the details show value, meaning and line of the log at the cursor, nothing selected."""
    row = overlay.row(next(lane for _, lane, metric in overlay.metrics() if metric.column.name == "pwr"), 0)
    start, end = overlay.opening_span
    lines = set()
    async with open_viewer(overlay, (140, 50)) as (app, pilot):
        await type_command(pilot, "only pwr")
        await pilot.press("down", "down")
        for share in (0.1, 0.5, 0.9):
            await type_command(pilot, f"goto +{share * (end - start) / 1e6:.0f}ms")
            await wait_until_idle(app, pilot)
            text, reading = screen_text(app), overlay.reading(row, app.session.cursor)
            assert reading is not None and app.session.selection is None
            assert f"pwr {reading.value:.15g} W" in text
            assert f"line {reading.line}" in text and "power drawn by the card" in text
            lines.add(reading.line)
    assert len(lines) == 3


async def test_a_range_on_a_log_s_lane(overlay: Overlay) -> None:
    """With a range the details of a power lane tell its mean, extremes and energy, as the log has it."""
    start, _ = overlay.opening_span
    span = (start + 400_000_000, start + 600_000_000)
    row = overlay.row(next(lane for _, lane, metric in overlay.metrics() if metric.column.name == "pwr"), 0)
    series = overlay.series(row.source, row.number)
    assert series is not None
    pieces = [
        (min(end, span[1]) - max(begin, span[0]), watts)
        for begin, end, watts in zip(series.start_ns.tolist(), series.end_ns.tolist(), series.value.tolist())
        if end > span[0] and begin < span[1]
    ]
    joules = sum(length * watts for length, watts in pieces) / 1e9
    async with open_viewer(overlay, (140, 50)) as (app, pilot):
        await type_command(pilot, "only pwr")
        await pilot.press("down", "down")
        app.store.show(app.session._replace(range=span))
        await wait_until_idle(app, pilot)
        assert f"mean {joules / 0.2:.6g} W" in screen_text(app)
        assert f"{min(w for _, w in pieces):.6g} .. {max(w for _, w in pieces):.6g} W" in screen_text(app)
        assert f", {joules:.6g} J" in screen_text(app)


def test_the_picture(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal the picture has the lanes, low where the device waits, and the clock is told."""
    log = str(folder / "aiu-smi.log")
    arguments = [str(folder / "rank0.pt.trace.json"), "--smi", log, "--index-dir", str(tmp_path)]
    assert main([*arguments, "--width", "160", "--height", "45"]) == 0
    text = capsys.readouterr().out
    (busy,) = [line for line in text.split("\n") if line.startswith("  busy %")]
    drawn = busy.replace("┃", "│").split("│")[1]  # beside the scrollbar's thumb
    assert "⠉⠉" in drawn and "⣀⣀" in drawn
    assert "aiu-smi.log: UTC+00:00" in text
    assert "lies beside" not in text


def test_a_log_beside_is_offered(trace: Trace, folder: Path, tmp_path: Path) -> None:
    """A log in the trace's folder is named with what opens it; elsewhere nothing is said."""
    assert offered_log(trace, "--smi {path}") == (f"Found aiu-smi.log: --smi {folder / 'aiu-smi.log'}")
    alone = tmp_path / "alone.json"
    alone.write_text(
        '{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "pid": 0, "tid": 0, "name": "a"}]}', encoding="utf-8"
    )
    with_nothing = open_trace(alone, index_dir=tmp_path / "index")
    assert offered_log(with_nothing, "") == ""


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
        base = app.trace.below_logs
        assert isinstance(base, WithCounters)
        return base.computed.column("samples.start").tolist()

    moved = with_cheap_lanes(trace_of(shifted(-2000), tmp_path / "moved"))
    right = with_lanes(trace_of(shifted(0), tmp_path / "right"), QUEUE)
    async with open_viewer(moved, size=(120, 60)) as (app, pilot):
        app.run_command("queue-lanes")
        await wait_until_idle(app, pilot)
        as_stamped, focus = samples(app), app.session.focus
        app.clocks.set_device_offset("0.002")
        await wait_until_idle(app, pilot)
        assert samples(app) == right.computed.column("samples.start").tolist() != as_stamped
        assert app.session.focus == focus
        await press_keys(app, pilot, "u")
        assert samples(app) == as_stamped


async def test_a_sample_is_told_as_computed(demo: Trace) -> None:
    """Enter on a memory lane selects the sample at the cursor; its record's arguments are read."""
    async with open_viewer(demo, size=(120, 60)) as (app, pilot):
        lane = computed_lanes(app.trace, MEMORY)[0]
        app.run_command("queue-lanes")
        await wait_until_idle(app, pilot)
        while app.session.focus is not None and app.session.focus.lane != lane:
            await pilot.press("shift+up")
        await press_keys(app, pilot, "enter")
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


KEY = (0, "0")


@pytest.fixture
def trace_devices(tmp_path: Path) -> Trace:
    return trace_of(shifted(-2000), tmp_path)


async def test_a_wrong_clock_is_told_and_mended(trace_devices: Trace) -> None:
    """The trouble is said at the start, also where it was found before; the command moves the device, again
    takes it back; u does too.
    """
    trouble = "AIU 0: 4 of 4 kernels and copies begin before their launch began"
    async with open_viewer(trace_devices, (120, 40)) as (app, _):
        assert trouble in message(app) and message(app).count(trouble) == 1
    assert stored_facts(trace_devices, trace_devices.clocks) is not None
    async with open_viewer(trace_devices, (120, 40)) as (app, pilot):
        assert trouble in message(app) and message(app).count(trouble) == 1
        await type_command(pilot, "device-clock")
        assert dict(app.session.clocks.offsets) == {KEY: 1_997_000}
        assert "AIU 0 moved by +1.997 ms" in message(app) and "(median)" in message(app)
        await type_command(pilot, "device-clock")
        assert not app.session.clocks.offsets and "Device clocks as recorded" in message(app)
        await pilot.press("u")
        assert app.session.clocks.offsets[KEY] == 1_997_000


@pytest.mark.slow
async def test_a_clock_set_by_hand(trace_devices: Trace) -> None:
    """:device-offset sets seconds, what is still wrong is told; auto estimates; alone it takes back."""
    async with open_viewer(trace_devices, (120, 40)) as (app, pilot):
        await type_command(pilot, "device-offset 0.001")
        assert app.session.clocks.offsets[KEY] == 1_000_000
        assert "moved by +1 ms" in message(app) and "begin before their launch" in message(app)
        await type_command(pilot, "device-offset auto")
        assert app.session.clocks.offsets[KEY] == 1_997_000
        await type_command(pilot, "device-offset")
        assert not app.session.clocks.offsets
        await type_command(pilot, "device-offset soon")
        assert "give a time" in message(app)


def test_the_option_gives_the_same(trace_devices: Trace, tmp_path: Path) -> None:
    """--device-offset opens with the clock, and the line that copies a view holds it."""
    session = session_of_options(trace_devices, ViewOptions(TraceOptions(device_offsets=("0=auto",))), 120)
    assert dict(session.clocks.offsets) == {KEY: 1_997_000}
    file = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    session = session_of_options(file, ViewOptions(TraceOptions(device_offsets=("0=-0.00003",))), 120)
    assert "--device-offset 0=-0.00003 " in view_line(file, session) + " "


def test_tables_take_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table says which device was moved by how much, and which there are where none is meant."""
    path = str(small_file(tmp_path))
    assert main(["launches", path, "--device-offset", "0=-0.00003"]) == 0
    assert "AIU 0 moved by -30 µs" in capsys.readouterr().out
    assert main(["kernels", path, "--device-offset", "nine=1"]) == EXIT_USAGE
    assert "there is 0" in capsys.readouterr().err


@pytest.fixture
def trace_sections(tmp_path: Path) -> Trace:
    return open_trace(write_report(tmp_path), index_dir=tmp_path / "index")


async def test_the_panel(trace_sections: Trace) -> None:
    """The sections stand with the tables, a row per hyperfunction and hypersection."""
    async with open_viewer(trace_sections, (160, 50)) as (app, pilot):
        app.action_panel("sections")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        for name in HYPERFUNCTIONS:
            assert text.count(name) >= 3  # its lane, and a row for each hypersection
        assert "hs_backward" in text and "estimated latency (us)" in text


@pytest.mark.slow
async def test_colours(trace_sections: Trace) -> None:
    """:colour takes category, name or an argument, alone goes back, and refuses what is none of these."""
    async with open_viewer(trace_sections, (120, 40)) as (app, pilot):
        for line, expected in (
            ("colour by name", "name"),
            ("colour by arg:PMUs", "arg:PMUs"),
            ("colour", "category"),
        ):
            await type_command(pilot, line)
            assert app.session.colour_by == expected
        await type_command(pilot, "colour by shape")
        assert "category, name or arg:KEY" in message(app)


def test_colours_by_argument(trace_sections: Trace) -> None:
    """Slices of one value have one colour, of different values mostly not, and without it a quiet one."""
    positions = [at for row in trace_sections.rows(0) for at in range(row.count)]
    import numpy as np

    keys = ArgumentColours().keys(trace_sections, 0, "arg:hypersection", np.array(positions))
    names = [
        trace_sections.arguments(trace_sections.slice_id(trace_sections.row(0, 0), at)).begin["hypersection"]
        for at in positions
    ]
    assert len(set(zip(names, keys))) == len(set(names)) == len(set(keys)) == 2
    assert set(ArgumentColours().keys(trace_sections, 0, "arg:nothing", np.array(positions))) == {"quiet"}


def test_a_colour_name_of_its_own() -> None:
    """A cname that Chrome does not know is a colour all the same: alike for alike names."""
    assert key_of("", "a", "hs_1") == key_of("", "b", "hs_1") != key_of("", "a", "hs_2")
    assert key_of("", "a", "good") == "=good"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`sections` prints the table, by either or both."""
    path = str(write_report(tmp_path))
    assert main(["sections", path, "--by", "hypersection", "--index-dir", str(tmp_path)]) == 0
    assert "hs_forward" in capsys.readouterr().out
