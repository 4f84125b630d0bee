"""The clock of a device in the viewer: told when it cannot be right, estimated, set by hand, taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.test_device_clocks import shifted, trace_of
from tests.tui.driver import message, open_viewer
from tests.tui.small_file import small_file
from tests.tui.test_app_logs import typed
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.cli.opened import TraceOptions
from tracelane.tui.cli.view import ViewOptions, session_of_options
from tracelane.tui.view_line import view_line

KEY = (0, "0")


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return trace_of(shifted(-2000), tmp_path)


async def test_a_wrong_clock_is_told_and_mended(trace: Trace) -> None:
    """The trouble is said at the start; the command moves the device, again takes it back; u does too."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        assert "AIU 0: 4 of 4 kernels and copies begin before their launch began" in message(app)
        await typed(pilot, "device-clock")
        assert dict(app.session.clocks.offsets) == {KEY: 1_997_000}
        assert "AIU 0 moved by +1.997 ms" in message(app) and "(median)" in message(app)
        await typed(pilot, "device-clock")
        assert not app.session.clocks.offsets and "Device clocks as recorded" in message(app)
        await pilot.press("u")
        assert app.session.clocks.offsets[KEY] == 1_997_000


@pytest.mark.slow
async def test_a_clock_set_by_hand(trace: Trace) -> None:
    """:device-offset sets seconds, what is still wrong is told; auto estimates; alone it takes back."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        await typed(pilot, "device-offset 0.001")
        assert app.session.clocks.offsets[KEY] == 1_000_000
        assert "moved by +1 ms" in message(app) and "begin before their launch" in message(app)
        await typed(pilot, "device-offset auto")
        assert app.session.clocks.offsets[KEY] == 1_997_000
        await typed(pilot, "device-offset")
        assert not app.session.clocks.offsets
        await typed(pilot, "device-offset soon")
        assert "give a time" in message(app)


def test_the_option_gives_the_same(trace: Trace, tmp_path: Path) -> None:
    """--device-offset opens with the clock, and the line that copies a view holds it."""
    session = session_of_options(trace, ViewOptions(TraceOptions(device_offsets=("0=auto",))), 120)
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
