"""A SambaTune report in the viewer: rows coloured by hypersection, the table of sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sambatune import HYPERFUNCTIONS, write_report
from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tests.tui.test_app_logs import typed
from tracelane.core.base.colours import key_of
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.draw.argument_colours import ArgumentColours


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(write_report(tmp_path), index_dir=tmp_path / "index")


async def test_the_panel(trace: Trace) -> None:
    """The sections stand with the tables, a row per hyperfunction and hypersection."""
    async with open_viewer(trace, (160, 50)) as (app, pilot):
        app.action_panel("sections")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        for name in HYPERFUNCTIONS:
            assert text.count(name) >= 3  # its lane, and a row for each hypersection
        assert "hs_backward" in text and "estimated latency (us)" in text


@pytest.mark.slow
async def test_colours(trace: Trace) -> None:
    """:colour takes category, name or an argument, alone goes back, and refuses what is none of these."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        for line, expected in (
            ("colour by name", "name"),
            ("colour by arg:PMUs", "arg:PMUs"),
            ("colour", "category"),
        ):
            await typed(pilot, line)
            assert app.session.colour_by == expected
        await typed(pilot, "colour by shape")
        assert "category, name or arg:KEY" in message(app)


def test_colours_by_argument(trace: Trace) -> None:
    """Slices of one value have one colour, of different values mostly not, and without it a quiet one."""
    positions = [at for row in trace.rows(0) for at in range(row.count)]
    import numpy as np

    keys = ArgumentColours().keys(trace, 0, "arg:hypersection", np.array(positions))
    names = [trace.arguments(trace.slice_id(trace.row(0, 0), at)).begin["hypersection"] for at in positions]
    assert len(set(zip(names, keys))) == len(set(names)) == len(set(keys)) == 2
    assert set(ArgumentColours().keys(trace, 0, "arg:nothing", np.array(positions))) == {"quiet"}


def test_a_colour_name_of_its_own() -> None:
    """A cname that Chrome does not know is a colour all the same: alike for alike names."""
    assert key_of("", "a", "hs_1") == key_of("", "b", "hs_1") != key_of("", "a", "hs_2")
    assert key_of("", "a", "good") == "=good"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`sections` prints the table, by either or both."""
    path = str(write_report(tmp_path))
    assert main(["sections", path, "--by", "hypersection", "--index-dir", str(tmp_path)]) == 0
    assert "hs_forward" in capsys.readouterr().out
