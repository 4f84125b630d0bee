"""Logs in the viewer and in the picture: opened, read out at the cursor, moved, offered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tracelane.core.demo.trace import write_demo
from tracelane.core.logs.opening import open_overlay
from tracelane.core.logs.overlay import LogOptions, Overlay
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.cli.view import offered_log

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


async def typed(pilot: Pilot[None], line: str) -> None:
    """Type a command line."""
    names = {" ": "space", "/": "slash", "-": "minus", ".": "full_stop", "_": "underscore"}
    await pilot.press("colon", *(names.get(c, c) for c in line), "enter")
    await pilot.pause()


@pytest.mark.slow
async def test_a_log_opened_in_the_viewer(
    trace: Trace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`:smi` lays a log over the trace: its lanes come in sight and its clock is told."""
    monkeypatch.chdir(folder)
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        assert "pwr W" not in screen_text(app)
        await typed(pilot, "smi aiu-smi.log")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "AIU 0 · aiu-smi 0" in text and "pwr W" in text and "hostcpu %" in text
        assert "txpci" not in text  # not shown at first
        assert "UTC+00:00" in message(app)
        await typed(pilot, "smi nowhere.log")
        await wait_until_idle(app, pilot)
        assert "nowhere.log: No such file" in message(app)


async def test_a_log_beside_is_laid_over_by_two_enters(folder: Path) -> None:
    """:smi proposes the log beside the trace, and none once it lies over it."""
    trace = open_trace(folder / "rank0.pt.trace.json", index_dir=folder / "index")
    async with open_viewer(trace, (80, 24)) as (app, pilot):
        await typed(pilot, "smi")
        await pilot.press("enter")
        await wait_until_idle(app, pilot)
        assert isinstance(app.trace, Overlay)
        assert "aiu-smi.log" in message(app)
        await typed(pilot, "smi")
        await pilot.press("enter")
        await wait_until_idle(app, pilot)
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
        await typed(pilot, "smi-offset 1.5")
        assert app.session.clocks.offset(source) == round((proposed - 1.5) * 1e9)
        assert "lag +1.5 s" in message(app)
        await typed(pilot, "smi-offset")
        assert app.session.clocks.offset(source) == 0
        await typed(pilot, "smi-offset soon")
        assert "give seconds" in message(app)


async def test_no_log_to_move(trace: Trace) -> None:
    """Without a log the keys say how to get one."""
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        app.run_command("log-later")
        await pilot.pause()
        assert ":smi FILE" in message(app)


@pytest.mark.slow
async def test_the_read_out_follows_the_cursor(overlay: Overlay) -> None:
    """On a log's lane the details show value, meaning and line of the log at the cursor, nothing selected."""
    row = overlay.row(next(lane for _, lane, metric in overlay.metrics() if metric.column.name == "pwr"), 0)
    start, end = overlay.opening_span
    lines = set()
    async with open_viewer(overlay, (140, 50)) as (app, pilot):
        await typed(pilot, "only pwr")
        await pilot.press("down", "down")
        for share in (0.1, 0.5, 0.9):
            await typed(pilot, f"goto +{share * (end - start) / 1e6:.0f}ms")
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
        await typed(pilot, "only pwr")
        await pilot.press("down", "down")
        app.store.show(replace(app.session, range=span))
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
    assert "█" in drawn and ("▁" in drawn or "▂" in drawn)
    assert "aiu-smi.log: UTC+00:00" in text
    assert "lies beside" not in text


def test_a_log_beside_is_offered(trace: Trace, folder: Path, tmp_path: Path) -> None:
    """A log in the trace's folder is named with what opens it; elsewhere nothing is said."""
    assert offered_log(trace, "--smi {path}") == (f"Found aiu-smi.log: --smi {folder / 'aiu-smi.log'}")
    alone = tmp_path / "alone.json"
    alone.write_text('{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "pid": 0, "tid": 0, "name": "a"}]}')
    with_nothing = open_trace(alone, index_dir=tmp_path / "index")
    assert offered_log(with_nothing, "") == ""
