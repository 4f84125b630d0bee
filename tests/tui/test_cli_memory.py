"""`tracelane memory`: the table that comes first; its panel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.driver import open_viewer, wait_until_idle
from tracelane.core.demo.trace import write_demo
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.panels.table import TablePane


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rank of the demo trace."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return sorted(folder.glob("*.json"))[0]


def test_the_table_that_comes_first(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As text all tables stand below each other, the one asked for first."""
    assert main(["memory", str(demo), "--first", "copies"]) == 0
    text = capsys.readouterr().out
    assert text.index("Copies: whole trace") < text.index("Memory: whole trace")


async def test_the_panel_turns_through_its_tables(demo: Path, tmp_path: Path) -> None:
    """7 shows the allocators, then what was live at the peak, whose rows lead to the op; then the copies."""
    trace = open_trace(demo, index_dir=tmp_path)
    async with open_viewer(trace) as (app, pilot):
        seen = []
        for _ in range(3):
            await pilot.press("7")
            await wait_until_idle(app, pilot)
            seen.append(app.session.panel)
            pane = app.main.query_one(f"#{app.session.panel}", TablePane)
            assert pane.shown_table is not None
            assert len(pane.shown_table)
            if app.session.panel == "memory-peak":
                await pilot.press("enter")
                await wait_until_idle(app, pilot)
                assert app.store.selected is not None
        assert seen == ["memory", "memory-peak", "copies"]
