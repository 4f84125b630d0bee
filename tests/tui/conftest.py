"""Fixtures for tests of the viewer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import CORPUS, HOSTILE_MAKER
from tests.tui.driver import wait_until_handled
from tests.tui.small_file import small_file
from tests.tui.small_trace import small_trace
from tests.waiting import PATIENCE_S
from tracelane.core.base.errors import TracelaneError
from tracelane.core.demo.trace import write_demo
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.terminal.boundary import BoundedApp
from tracelane.tui.textual_inside import OpenApp


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Four steps of 10 ms, with an op, a launch and a kernel each."""
    return small_trace(tmp_path / "index")


@pytest.fixture(scope="session")
def file_trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The small file, opened once for all tests that only look at it."""
    folder = tmp_path_factory.mktemp("small")
    return open_trace(small_file(folder), index_dir=folder / "index")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rank of the demo."""
    return write_demo(tmp_path_factory.mktemp("demo"))[0]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One index folder for the tests of a file."""
    return str(tmp_path_factory.mktemp("indexes"))


@pytest.fixture(autouse=True)
def _keys_are_acted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{module}.wait_for_idle", wait_until_handled)


@pytest.fixture(autouse=True)
def _pictures_wait_until_all_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracelane.tui.cli.view.MAX_WAIT_S", PATIENCE_S)


@pytest.fixture
def errors_are_shown() -> None:
    """Let the viewer go on after an error, as it does for users, instead of failing the test."""


@pytest.fixture(autouse=True)
def _errors_fail_the_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "errors_are_shown" in request.fixturenames:
        return
    show = BoundedApp.report_error

    def fail(app: BoundedApp, error: Exception) -> None:
        if isinstance(error, TracelaneError):  # bad input, which users are told of
            show(app, error)
        elif not app.concerns_nobody(error):
            try:
                raise error  # rich prints only what is being handled
            except Exception:
                OpenApp.take_error(app, error)

    monkeypatch.setattr(BoundedApp, "report_error", fail)


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of real traces made hostile, made once."""
    folder = tmp_path_factory.mktemp("hostile") / "made"
    subprocess.run(
        [sys.executable, str(HOSTILE_MAKER), str(folder), str(CORPUS)],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    return folder
