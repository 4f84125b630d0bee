"""Work away from the screen: an error in it is told, and the viewer goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.small_file import small_file
from tests.tui.test_app_keys import message, settled, shown
from tracelane.core.tables import ops
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.viewer import background


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Any trace."""
    return open_trace(small_file(tmp_path), index_dir=tmp_path / "index")


async def test_an_error_is_told(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that fails in a way that nobody foresaw says so in the footer; other panels work."""

    def fail(*_: object) -> None:
        raise ValueError("odd\nnumbers")

    monkeypatch.setattr(background, "FORGIVING", True)
    monkeypatch.setattr(ops, "ops", fail)
    async with shown(trace) as (app, pilot):
        await pilot.press("3")
        await settled(app, pilot)
        assert message(app) == "this should not have happened: ValueError: odd numbers"
        await pilot.press("t")
        await settled(app, pilot)
        assert app.is_running
        assert app.session.panel == "table"
