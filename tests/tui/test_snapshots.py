"""Pictures of the main screens; compared only under the versions that constraints.txt pins."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.corpus import ROOT
from tests.rank_files import straggler_files
from tests.tui.driver import wait_until_idle
from tests.tui.small_trace import small_trace
from tracelane.core.trace import open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config

PYTHON = (3, 11)
"""The pictures' Python; another one may order or word things differently."""


def _pinned() -> str:
    path = ROOT / "constraints.txt"
    match = (
        re.search(r"^textual==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if path.is_file()
        else None
    )
    return match[1] if match else ""


pytestmark = pytest.mark.skipif(
    version("textual") != _pinned() or sys.version_info[:2] != PYTHON,
    reason=f"pictures are compared under textual {_pinned()} and Python {PYTHON[0]}.{PYTHON[1]} only",
)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TracelaneApp]:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield TracelaneApp(small_trace(tmp_path / "index"), config=Config())
    monkeypatch.undo()
    time.tzset()


def test_first_screen(app: TracelaneApp, snap_compare: object) -> None:
    """Header, minimap, ruler with steps, host and device lanes, a counter, the first finding, the footer."""

    async def wait(pilot: Pilot[None]) -> None:
        await wait_until_idle(app, pilot)

    assert snap_compare(app, terminal_size=(100, 30), run_before=wait)  # type: ignore[operator]


def test_selected_kernel(app: TracelaneApp, snap_compare: object) -> None:
    """A selected kernel in white, its details with the chain to the launch, in the light theme."""

    async def choose(pilot: Pilot[None]) -> None:
        app.run_command("theme")
        app.action_jump(0, 14)
        await wait_until_idle(app, pilot)

    assert snap_compare(app, terminal_size=(120, 36), run_before=choose)  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_many_ranks(size: tuple[int, int], app: TracelaneApp, snap_compare: object, tmp_path: Path) -> None:
    """64 ranks as a map, of which one is late: all of them, by number, and what the overview says of them."""
    folder = straggler_files(tmp_path / "run", 64, late=45)
    ranks = TracelaneApp(open_trace(folder, index_dir=tmp_path / "index"), config=Config())

    async def wait(pilot: Pilot[None]) -> None:
        await wait_until_idle(ranks, pilot)

    assert snap_compare(ranks, terminal_size=size, run_before=wait)  # type: ignore[operator]
