"""A viewer that dies leaves the terminal as it was, and one line says why."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.corpus import thinned
from tests.tui.slow_line import PATIENCE_S, SlowLine, tracelane_command
from tests.waiting import is_alive, wait_until

SIZE = (100, 30)
PLAIN_MODES = {"7", "25"}
"""Modes of a terminal that no program holds: lines wrap, the cursor is seen."""
A_MOMENT_S = 0.3
SLICES = 40_000
"""So many that the columns of the index are mapped."""
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "trace.json"
    events = [
        {"ph": "X", "name": f"op{n % 7}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5}
        for n in range(SLICES)
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


@pytest.fixture(scope="module")
def index(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    command = tracelane_command("index", str(trace), "--index-dir", str(folder))
    subprocess.run(command, check=True, capture_output=True)
    return folder


@contextmanager
def shell(trace: Path, index: Path, *options: str) -> Iterator[SlowLine]:
    """A shell that starts the viewer in a job of its own, as an interactive one does, and stays."""
    command = tracelane_command("view", str(trace), "--index-dir", str(index), "--fresh", *options)
    reset = (
        "import signal, os, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = shlex.join([sys.executable, "-c", reset, *command])
    with SlowLine(["/bin/sh", "-c", f"{words}; echo ended with $?; exec sleep 60"], SIZE) as line:
        line.wait_for("lane")
        line.wait_for_quiet(A_MOMENT_S)
        yield line


def viewer_of(line: SlowLine) -> int:
    children = Path(f"/proc/{line.pid}/task/{line.pid}/children").read_text().split()
    assert len(children) == 1
    return int(children[0])


def guards_of(viewer: int) -> list[int]:
    """Return the viewer's child processes, of which one guards the terminal."""
    return list(map(int, Path(f"/proc/{viewer}/task/{viewer}/children").read_text().split()))


def is_plain(line: SlowLine) -> bool:
    flags = termios.tcgetattr(line.terminal)[3]
    return bool(flags & termios.ECHO and flags & termios.ICANON and flags & termios.ISIG)


def wait_until_plain(line: SlowLine) -> None:
    until = time.monotonic() + PATIENCE_S
    while not (is_plain(line) and line.screen.modes == PLAIN_MODES):
        assert time.monotonic() < until, (line.screen.modes, line.received[-1000:])
        line.run(0.05)


WAYS: dict[str, tuple[str, int, str]] = {
    "SIGKILL": ("a signal that it cannot answer", 137, ""),
    "SIGSEGV": ("a segmentation fault", 139, "Segmentation fault"),
    "SIGBUS": ("a bus error: a file", 135, "Bus error"),
    "SIGABRT": ("Aborted", 134, "Aborted"),
    "SIGHUP": ("SIGHUP", 129, ""),
}
"""By signal: what the line says, the exit code, what the log says."""


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(WAYS, 2))
def test_a_viewer_that_dies(trace: Path, index: Path, tmp_path: Path, name: str) -> None:
    """Echo, lines, the screen, the cursor and the mouse are as before; one line tells why."""
    why, code, logged = WAYS[name]
    log = tmp_path / "viewer.log"
    with shell(trace, index, "--log", str(log)) as line:
        assert not is_plain(line) and "1049" in line.screen.modes and "1003" in line.screen.modes
        os.kill(viewer_of(line), signal.Signals[name])
        line.wait_for_bytes(f"ended with {code}")
        line.wait_for_bytes(f"tracelane was ended by {why}")
        wait_until_plain(line)
    wait_until(lambda: logged in log.read_text())  # the guard writes it after the line


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(["SIGTERM", "SIGINT"], 2))
def test_a_viewer_that_is_asked_to_end(trace: Path, index: Path, name: str) -> None:
    """It gives the terminal back by itself and its exit code names the signal."""
    with shell(trace, index) as line:
        os.kill(viewer_of(line), signal.Signals[name])
        line.wait_for_bytes(f"ended with {128 + signal.Signals[name]}")
        wait_until_plain(line)
        assert b"was ended" not in line.received and b"Traceback" not in line.received


@pytest.mark.slow
def test_a_mapped_file_that_shrinks(trace: Path, index: Path) -> None:
    """Where a column of the open index is cut short, the line names that cause."""
    with shell(trace, index) as line:
        for column in index.glob("**/*.*"):
            if column.stat().st_size > 1 << 16:
                os.truncate(column, 0)
        line.type("wwwwddddt")
        line.wait_for_bytes("ended with 135")
        line.wait_for_bytes("a file that it reads became shorter")
        wait_until_plain(line)
    subprocess.run(["rm", "-r", str(index)], check=True)
    subprocess.run(tracelane_command("index", str(trace), "--index-dir", str(index)), check=True)


@pytest.mark.slow
def test_a_viewer_that_is_stopped(trace: Path, index: Path) -> None:
    """Killed while it is stopped it says nothing: the terminal is the shell's."""
    with shell(trace, index) as line:
        viewer = viewer_of(line)
        line.type("\x1a")
        wait_until_plain(line)
        wait_until(lambda: is_stopped(viewer), "the viewer's stop")
        guards = guards_of(viewer)
        os.kill(viewer, signal.SIGKILL)
        line.wait_for_bytes("ended with 137")
        line.wait_until(lambda: not any(map(is_alive, guards)), "the end of the guard")
        line.run(A_MOMENT_S)
        assert guards and b"was ended" not in line.received


def is_stopped(process: int) -> bool:
    """Tell whether a process is stopped by job control."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.slow
def test_nobody_stays_behind(trace: Path, index: Path) -> None:
    """After quitting there is no guard left, and it has said nothing."""
    with shell(trace, index) as line:
        guards = guards_of(viewer_of(line))
        assert guards
        line.type("q")
        line.wait_for_bytes("ended with 0")
        wait_until_plain(line)
        wait_until(lambda: not any(is_alive(guard) for guard in guards), "the end of the guard")
        assert b"was ended" not in line.received
