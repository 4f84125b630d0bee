"""What becomes of the viewer when it is stopped, asked to end, killed, or loses its terminal."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tui.slow_line import SlowLine, tracelane_command, wants_to_run
from tests.tui.terminal_screen import NOT_DRAWN, lanes_of
from tests.waiting import PATIENCE_S, is_alive, wait_until
from tracelane.core.demo.trace import write_demo

SIZE = (100, 30)
A_MOMENT_S = 0.3
LEFT_AS_FOUND = {"7", "25"}
"""Modes that a terminal has set when a program leaves it: lines wrap, the cursor is seen."""

OFFER = "Enter shows it"
"""What the verdict offers until something is looked at, in each process anew."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with no log beside it, which the viewer would offer."""
    file = write_demo(tmp_path_factory.mktemp("demo"))[0]
    return file.rename(tmp_path_factory.mktemp("alone") / file.name)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index folder: the viewer is started often here."""
    return tmp_path_factory.mktemp("index")


@contextmanager
def viewer(demo: Path, index: Path, *options: str) -> Iterator[SlowLine]:
    with SlowLine(tracelane_command("view", str(demo), "--index-dir", str(index), *options), SIZE) as line:
        line.wait_for(OFFER)
        line.wait_for_quiet(A_MOMENT_S)
        yield line


def drawn_lanes(line: SlowLine) -> str:
    line.wait_until(lambda: NOT_DRAWN not in line.screen.text, "all of the screen")
    line.wait_for_quiet(A_MOMENT_S)
    assert NOT_DRAWN not in line.screen.text
    return line.screen.lanes


def wait_until_left(line: SlowLine) -> None:
    """Wait until all has arrived that gives the terminal back as it was."""
    line.wait_until(lambda: line.screen.modes == LEFT_AS_FOUND, "the terminal as it was")


@pytest.mark.slow
def test_stopped_and_continued(demo: Path, index: Path) -> None:
    """Ctrl+Z gives the terminal back as it was; going on draws the same picture whole, and keys work."""
    with viewer(demo, index, "--fresh") as line:
        line.type("ww")
        before = drawn_lanes(line)
        for _ in range(2):
            line.type("\x1a")
            line.wait_for_stop()
            wait_until_left(line)
            os.kill(line.pid, signal.SIGCONT)
            line.wait_for("lanes")
            assert drawn_lanes(line) == before
        line.type("s")
        assert drawn_lanes(line) != before
        line.type("q")
        assert line.wait_for_end() == 0
        assert line.screen.modes == LEFT_AS_FOUND


@pytest.mark.slow
def test_stopped_without_a_word(demo: Path, index: Path) -> None:
    """After SIGSTOP, which no program hears of, the picture comes back too, and each key counts once."""
    with viewer(demo, index, "--fresh") as line:
        line.type("ww")
        before = drawn_lanes(line)
        os.kill(line.pid, signal.SIGSTOP)
        line.wait_for_stop()
        line.resize(*SIZE)  # the shell has written over it
        os.kill(line.pid, signal.SIGCONT)
        assert drawn_lanes(line) == before
        line.type("Z")  # twice would be never
        assert drawn_lanes(line) != before
        line.type("Z")
        assert drawn_lanes(line) == before


@pytest.mark.slow
def test_drawn_anew(demo: Path, index: Path) -> None:
    """Ctrl+L draws all that another program has written over, on an open trace."""
    with viewer(demo, index, "--fresh") as line:
        before = drawn_lanes(line)
        line.resize(*SIZE)  # as large as it was: only the picture is gone
        line.type("\x0c")
        line.wait_for("redrawn")
        line.type("\x1b")  # that lies over the panel's tabs
        line.wait_until(lambda: line.screen.lanes == before, "the picture")


@pytest.mark.slow
def test_told_of_the_same_size(demo: Path, index: Path) -> None:
    """A terminal that is attached to again, as dtach does, says the size that it had: all is drawn anew."""
    with viewer(demo, index, "--fresh") as line:
        before = drawn_lanes(line)
        line.resize(*SIZE)
        os.kill(line.pid, signal.SIGWINCH)
        line.wait_until(lambda: line.screen.lanes == before, "the picture")


@pytest.mark.slow
def test_stopped_from_outside(demo: Path, index: Path) -> None:
    """SIGTSTP stops it as Ctrl+Z does, also while it draws."""
    with viewer(demo, index, "--fresh") as line:
        line.type("wwwwww")
        os.kill(line.pid, signal.SIGTSTP)
        line.wait_for_stop()
        wait_until_left(line)
        os.kill(line.pid, signal.SIGCONT)
        assert drawn_lanes(line)


def fill(line: SlowLine) -> None:
    """Have the viewer draw until its terminal, which nobody reads from now on, takes no more."""
    for at in range(10_000):
        waiting = array("i", [0])
        fcntl.ioctl(line.terminal, termios.FIONREAD, waiting)
        if at > 60 and waiting[0] > 2000:
            return
        os.write(line.terminal, b"wdsa"[at % 4 : at % 4 + 1])
        time.sleep(0.03)
    raise TimeoutError("the terminal takes everything")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "q"])
def test_the_end_before_a_silent_terminal(demo: Path, index: Path, how: str) -> None:
    """Where nobody reads the terminal the viewer ends all the same, as otherwise, and gives it back."""
    with viewer(demo, index, "--fresh") as line:
        fill(line)
        if how == "q":
            os.write(line.terminal, b"q")
        else:
            os.kill(line.pid, signal.Signals[how])
        ended: list[int] = []

        def has_ended() -> bool:
            pid, status = os.waitpid(line.pid, os.WNOHANG)
            if pid:
                ended.append(os.waitstatus_to_exitcode(status))
            return bool(pid)

        wait_until(has_ended, "the end")
        line.code = ended[0]
        assert line.code == (0 if how == "q" else 128 + signal.Signals[how])
        line.run(A_MOMENT_S)
        assert line.screen.modes == LEFT_AS_FOUND


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGHUP", "hang up", "SIGTERM"])
def test_a_broken_connection(demo: Path, index: Path, how: str) -> None:
    """The view is kept, nothing is said, and no process stays behind."""
    with viewer(demo, index, "--fresh") as line:
        line.type("0ww")
        line.wait_for_quiet(A_MOMENT_S)
        if how == "hang up":
            line.type("dddddddd")  # it is drawing
            line.run(0.05)
            line.hang_up()
        else:
            line.type("dd")  # no further than the trace goes: a refusal would lie over the lowest lanes
            line.wait_for_quiet(A_MOMENT_S)
            before = line.screen.lanes
            os.kill(line.pid, signal.Signals[how])
        number = signal.SIGTERM if how == "SIGTERM" else signal.SIGHUP
        assert line.wait_for_end() == 128 + number
        assert b"Traceback" not in line.received and b"Error" not in line.received
        wait_until(lambda: processes_of(line.pid) == [], "the end of all its processes")
    if how != "hang up":
        with viewer(demo, index) as line:
            assert drawn_lanes(line).replace(OFFER, " " * len(OFFER)) == before


@pytest.mark.slow
def test_a_terminal_that_goes_without_a_word(demo: Path, index: Path) -> None:
    """Where SIGHUP does not arrive, the viewer sees for itself that its terminal is gone."""
    command = tracelane_command("view", str(demo), "--index-dir", str(index), "--fresh")
    deaf = (
        "import signal, subprocess, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        f"sys.exit(subprocess.call({command!r}))"
    )
    with SlowLine([sys.executable, "-c", deaf], SIZE) as line:
        line.wait_for("lanes")
        line.wait_for_quiet(A_MOMENT_S)
        line.hang_up()
        assert line.wait_for_end() == 128 + signal.SIGHUP


def processes_of(group: int) -> list[str]:
    """Return the processes of a session that are left."""
    listing = subprocess.run(
        ["ps", "-s", str(group), "-o", "args="], capture_output=True, encoding="utf-8", check=False
    )
    return [line for line in listing.stdout.splitlines() if "defunct" not in line]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_detached_and_attached(demo: Path, index: Path, tmp_path: Path) -> None:
    """In tmux the picture is whole after attaching again, also in another size, and keys go on working."""
    tmux = ["tmux", "-S", str(tmp_path / "tmux"), "-f", os.devnull]

    def pane() -> str:
        return subprocess.run(
            [*tmux, "capture-pane", "-p"], capture_output=True, encoding="utf-8", check=True
        ).stdout

    def viewer_id() -> int:
        name = [*tmux, "display-message", "-p", "#{pane_pid}"]
        return int(subprocess.run(name, capture_output=True, encoding="utf-8", check=True).stdout)

    def steady_pane(text: str = "lanes") -> str:
        last: list[str] = ["", "", ""]

        def stays() -> bool:
            time.sleep(A_MOMENT_S)
            last[:] = [*last[1:], "busy" if wants_to_run(viewer_id()) else pane()]
            return text in last[-1] and len(set(last)) == 1

        wait_until(stays, f"{text!r}")
        return last[-1]

    def plain_lanes(picture: str) -> list[str]:
        return [line.replace(OFFER, "").rstrip() for line in lanes_of(picture).splitlines()]

    def attached(size: tuple[int, int]) -> SlowLine:
        return SlowLine([*tmux, "attach"], size)

    command = tracelane_command("view", str(demo), "--index-dir", str(index), "--fresh")
    subprocess.run([*tmux, "new-session", "-d", "-x", "100", "-y", "30", *command], check=True)
    try:
        subprocess.run([*tmux, "set", "-g", "status", "off"], check=True)
        with attached(SIZE) as line:
            line.wait_for("lanes")
            first = steady_pane()
            subprocess.run([*tmux, "detach-client"], check=True)
            line.wait_for_end()
        subprocess.run([*tmux, "send-keys", "w", "u"], check=True)
        with attached(SIZE) as line:
            line.wait_for("lanes")
            wait_until(lambda: plain_lanes(steady_pane()) == plain_lanes(first), "the picture as it was")
        with attached((80, 24)) as line:
            line.wait_for("lanes")
            small = steady_pane()
            assert max(map(len, small.split("\n"))) <= 80 and small != first
            line.type("ww")
            line.wait_until(lambda: lanes_of(pane()) != lanes_of(small), "the keys' picture")
            line.type("q")
            line.wait_for_end()
    finally:
        subprocess.run([*tmux, "kill-server"], capture_output=True, check=False)


PLAIN_MODES = {"7", "25"}
"""Modes of a terminal that no program holds: lines wrap, the cursor is seen."""
SLICES = 40_000
"""So many that the columns of the index are mapped."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "trace.json"
    events = [
        {"ph": "X", "name": f"op{n % 7}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5}
        for n in range(SLICES)
    ]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def index_guard(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    command = tracelane_command("index", str(trace), "--index-dir", str(folder))
    subprocess.run(command, check=True, capture_output=True)
    return folder


@contextmanager
def shell(trace: Path, index_guard: Path, *options: str) -> Iterator[SlowLine]:
    """A shell that starts the viewer in a job of its own, as an interactive one does, and stays."""
    command = tracelane_command("view", str(trace), "--index-dir", str(index_guard), "--fresh", *options)
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
    children = Path(f"/proc/{line.pid}/task/{line.pid}/children").read_text(encoding="utf-8").split()
    assert len(children) == 1
    return int(children[0])


def guards_of(viewer: int) -> list[int]:
    """Return the viewer's child processes, of which one guards the terminal."""
    return list(map(int, Path(f"/proc/{viewer}/task/{viewer}/children").read_text(encoding="utf-8").split()))


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


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_a_viewer_that_dies(trace: Path, index_guard: Path, tmp_path: Path, name: str) -> None:
    """Echo, lines, the screen, the cursor and the mouse are as before; one line tells why."""
    why, code, logged = WAYS[name]
    log = tmp_path / "viewer.log"
    with shell(trace, index_guard, "--log", str(log)) as line:
        assert not is_plain(line) and "1049" in line.screen.modes and "1003" in line.screen.modes
        os.kill(viewer_of(line), signal.Signals[name])
        line.wait_for_bytes(f"ended with {code}")
        line.wait_for_bytes(f"tracelane was ended by {why}")
        wait_until_plain(line)
    wait_until(lambda: logged in log.read_text(encoding="utf-8"))  # the guard writes it after the line


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_viewer_that_is_asked_to_end(trace: Path, index_guard: Path, name: str) -> None:
    """It gives the terminal back by itself and its exit code names the signal."""
    with shell(trace, index_guard) as line:
        os.kill(viewer_of(line), signal.Signals[name])
        line.wait_for_bytes(f"ended with {128 + signal.Signals[name]}")
        wait_until_plain(line)
        assert b"was ended" not in line.received and b"Traceback" not in line.received


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow
def test_a_mapped_file_that_shrinks(trace: Path, index_guard: Path) -> None:
    """Where a column of the open index is cut short, the line names that cause."""
    with shell(trace, index_guard) as line:
        for column in index_guard.glob("**/*.*"):
            if column.stat().st_size > 1 << 16:
                os.truncate(column, 0)
        line.type("wwwwddddt")
        line.wait_for_bytes("ended with 135")
        line.wait_for_bytes("a file that it reads became shorter")
        wait_until_plain(line)
    subprocess.run(["rm", "-r", str(index_guard)], check=True)
    subprocess.run(tracelane_command("index", str(trace), "--index-dir", str(index_guard)), check=True)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow
def test_a_viewer_that_is_stopped(trace: Path, index_guard: Path) -> None:
    """Killed while it is stopped it says nothing: the terminal is the shell's."""
    with shell(trace, index_guard) as line:
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
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for processes in /proc")
@pytest.mark.slow
def test_nobody_stays_behind(trace: Path, index_guard: Path) -> None:
    """After quitting there is no guard left, and it has said nothing."""
    with shell(trace, index_guard) as line:
        guards = guards_of(viewer_of(line))
        assert guards
        line.type("q")
        line.wait_for_bytes("ended with 0")
        wait_until_plain(line)
        wait_until(lambda: not any(is_alive(guard) for guard in guards), "the end of the guard")
        assert b"was ended" not in line.received
