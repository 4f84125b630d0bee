"""The command line's entry: what is a command, what is a path, and how failing looks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.waiting import PATIENCE_S
from tracelane.core.base.errors import CacheError, UnreadableError, UsageError
from tracelane.tui.cli import main as entry
from tracelane.tui.cli.main import MEMORY_HINT, main, with_command

from .cli_process import tracelane, tracelane_here


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        (["trace.json"], ["view", "trace.json"]),
        (["./index"], ["view", "./index"]),
        (["-"], ["view", "-"]),
        (["--from", "+1ms", "t.json"], ["view", "--from", "+1ms", "t.json"]),
        (["info.json", "index"], ["view", "info.json", "index"]),
        (["info", "t.json"], ["info", "t.json"]),
        (["view", "info"], ["view", "info"]),
        (["--version"], ["--version"]),
        (["--help"], ["--help"]),
        (["--", "info"], ["view", "--", "info"]),
    ],
)
def test_view_is_inserted_before_paths(given: list[str], understood: list[str]) -> None:
    """Only an exact command, --help or --version in first place is not a trace to view."""
    assert with_command(given) == understood


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["view"],
        ["info", "a", "b"],
        ["--no-such-option"],
        ["view", "--width", "x", "t.json"],
        ["cache", "clear", "--older-than", "soon"],
        ["view", "--threads", "many", "t.json"],
        ["view", "--lanes", "(", "t.json"],
        ["view", "-", "-"],
    ],
)
def test_usage_errors_exit_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the command line does not understand ends with 64 and something on stderr."""
    assert main(arguments) == 64
    captured = capsys.readouterr()
    assert captured.err and not captured.out and "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UnreadableError("x.json is empty"), 2, "tracelane: x.json is empty\n"),
        (UsageError("no such step"), 64, "tracelane: no such step\n"),
        (CacheError("no room"), 1, "tracelane: no room\n"),
        (PermissionError(13, "Permission denied", "out"), 1, "tracelane: out: Permission denied\n"),
        (MemoryError(), 1, f"tracelane: {MEMORY_HINT}\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
        (
            ValueError("two\nlines \x1b[31m"),
            1,
            "tracelane: this should not have happened: ValueError: two lines ⟨U+001B⟩[31m "
            "(TRACELANE_DEBUG=1 shows where)\n",
        ),
    ],
)
def test_every_failure_is_one_line(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A failure is told in one harmless line with its exit code; being interrupted says nothing."""

    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(entry, "_let_go", lambda stream: None)
    monkeypatch.setattr(entry.tracelane, "get_command", lambda ctx, name: failing)
    assert main(["info"]) == code
    assert capsys.readouterr().err == text


def test_debug_shows_where(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With TRACELANE_DEBUG=1 the traceback comes with the line."""

    @click.command()
    def failing() -> None:
        raise ValueError("oops")

    monkeypatch.setenv("TRACELANE_DEBUG", "1")
    monkeypatch.setattr(entry.tracelane, "get_command", lambda ctx, name: failing)
    assert main(["info"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_version() -> None:
    """--version names the installed package, whether it has its native core, and what it runs on."""
    from importlib.metadata import version

    from tracelane.core.native.library import native_library

    native = native_library()
    done = tracelane_here("--version")
    first, *others = [line for line in done.stdout.splitlines() if not line.startswith("  commit ")]
    assert (done.returncode, first) == (0, f"tracelane {version('tracelane')}")
    assert others[0] == f"  native core {f'no ({native.reason})' if native.functions is None else 'yes'}"
    names = [line.split()[0] for line in others[1:]]
    assert {"index", "Python", "click", "numpy", "orjson", "rich", "textual"} <= set(names)
    assert f"  numpy {version('numpy')}" in others


def test_help_needs_neither_textual_nor_numpy() -> None:
    """--help answers without loading the viewer or the arrays."""
    code = "sys.modules.update(textual=None, numpy=None, rich=None)"
    done = tracelane("--help", code=code)
    assert done.returncode == 0, done.stderr


def test_missing_numpy_is_told_in_one_line(tmp_path: Path) -> None:
    """Without numpy one line says how to get the image's."""
    done = tracelane("info", "t.json", code="sys.modules['numpy'] = None", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "--system-site-packages" in done.stderr


def test_closed_pipe_is_quiet() -> None:
    """A reader that goes away ends the command without a word."""
    program = "import sys; from tracelane.tui.cli.main import main; sys.exit(main(['--help']))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
