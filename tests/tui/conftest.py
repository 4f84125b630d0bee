"""Fixtures for tests of the viewer."""

from __future__ import annotations

import pytest
from textual.app import App

from tracelane.tui.terminal.boundary import BoundedApp


@pytest.fixture
def errors_are_shown() -> None:
    """Let the viewer go on after an error, as it does for users, instead of failing the test."""


@pytest.fixture(autouse=True)
def _errors_fail_the_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "errors_are_shown" not in request.fixturenames:
        monkeypatch.setattr(BoundedApp, "report_error", App._handle_exception)
