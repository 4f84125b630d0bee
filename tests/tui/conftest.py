"""Fixtures for tests of the viewer."""

from __future__ import annotations

import pytest

from tracelane.tui.viewer import background


@pytest.fixture(autouse=True)
def _unforeseen_errors_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FORGIVING", False)
