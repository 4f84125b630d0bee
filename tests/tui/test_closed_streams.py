"""Standard streams that are closed, or full, end a command in one line at most, never in a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import in_turn
from tests.tui.cli_commands import BUG, CODES, commands
from tests.tui.small_file import small_file

WORDS = {
    "collect": ("{}", "-o", "store"),
    "cut": ("{}", "--step", "0", "-o", "cut.json"),
    "export": ("{}", "-o", "out.html"),
    "report": ("{}", "-o", "out.html"),
    "bundle": ("{}", "-o", "out.zip"),
    "check": ("{}", "--max", "kernels.calls=9"),
    "diff": ("{}", "{}"),
    "history": ("{}", "{}"),
    "sql": ("{}", "select 1"),
    "chain": ("{}", "--at", "+1us"),
    "completion": ("bash",),
    "cache": (),
    "demo": (),
    "capture": ("{}",),
    "watch": ("{}", "--", "true"),
}
"""What follows a command, where that is not a trace alone."""
WAYS = {
    "stdout": ">&-",
    "stdin": "<&-",
    "both": ">&- <&-",
    "a pipe's end": "| true",
    "a full disk": "> /dev/full",
}
NAMES = [name for name, _ in commands()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("closed")
    small_file(folder)
    return folder


@pytest.mark.parametrize(("name", "way"), in_turn([*NAMES, "--version", "--help", ""], WAYS, 2))
@pytest.mark.slow
def test_a_closed_stream_is_one_line_at_most(name: str, way: str, folder: Path, tmp_path: Path) -> None:
    """Every command ends with a documented code, and says one line at most of what is closed."""
    words = WORDS.get(name.split()[0] if name else "", () if name.startswith("-") or not name else ("{}",))
    arguments = [*name.split(), *(word.format(folder / "small.json") for word in words)]
    script = f'"$0" -m tracelane "$@" {WAYS[way]}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, *arguments],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode in CODES
    lines = [line for line in done.stderr.splitlines() if "closed" in line or "space left" in line]
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert BUG not in done.stderr and len(lines) <= 1


def test_what_needs_no_output_is_done(folder: Path, tmp_path: Path) -> None:
    """A table that goes to a file is written there; no file that is opened takes the place of a stream."""
    script = '"$0" -m tracelane kernels "$1" -o table.txt <&- >&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, str(folder / "small.json")],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        check=False,
    )
    assert done.returncode == 0 and "Kernel" in (tmp_path / "table.txt").read_text(encoding="utf-8")


def test_it_is_said_why_nothing_is_printed(folder: Path, tmp_path: Path) -> None:
    """A command that has something to print fails, and says that standard output is closed."""
    script = '"$0" -m tracelane --version >&-'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1
    assert done.stderr == "tracelane: standard output is closed: there is nowhere to print to\n"
