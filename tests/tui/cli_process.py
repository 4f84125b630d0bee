"""Running the command line: here, or in a process of its own, with and without a terminal."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.tui.slow_line import fork_on_terminal
from tests.tui.terminal_screen import TerminalScreen
from tests.waiting import PATIENCE_S
from tracelane.core.base.descriptors import readable
from tracelane.tui.cli.main import main

PROGRAM = "import sys\n{code}\nfrom tracelane.tui.cli.main import main\nsys.exit(main())"


def tracelane(
    *arguments: str, code: str = "", cwd: Path | None = None, stdin: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line without a terminal; `code` runs before it."""
    with open(stdin or os.devnull, "rb") as source:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM.format(code=code), *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            cwd=cwd,
            stdin=source,
            check=False,
        )


def tracelane_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process: as `tracelane` does, where nothing depends on the process. A
    picture waits until all is counted, however much else the machine does.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    patient = patch("tracelane.tui.cli.view.MAX_WAIT_S", PATIENCE_S)
    with patient, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        code = main(list(arguments))
    texts = []
    for stream in streams:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(list(arguments), code, *texts)


def start_tracelane(*arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start the command line without a terminal, to be spoken to while it runs."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(code=""), *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


@dataclass(frozen=True)
class Played:
    """What a session on a terminal wrote, and how it ended."""

    screen: str
    code: int


def on_terminal(
    *arguments: str,
    play: tuple[tuple[str, str], ...] = (),
    cwd: Path | None = None,
    stdin: Path | None = None,
    size: tuple[int, int] = (100, 30),
    **environment: str,
) -> Played:
    """Run the command line on a terminal of its own; `play` is (wait for this text, then type that).

    Each text is one that the screen does not show when the keys before it are typed, and no first key is
    Enter, which goes where a finding offers once there is one: else the load decides what keys do.
    """
    assert not play or not play[0][1].startswith("\r"), "Enter depends on whether findings are there"
    command = [sys.executable, "-c", PROGRAM.format(code=""), *arguments]
    environ = {**os.environ, "TERM": "xterm-256color", **environment}
    pid, terminal = fork_on_terminal(size, command, environ, cwd, stdin)
    seen, screen = "", TerminalScreen(*size)
    try:
        for awaited, typed in play:
            assert awaited not in screen.text, f"{awaited!r} is there already: it tells nothing"
            seen += _until(terminal, awaited, screen)
            os.write(terminal, typed.encode())
        seen += _until(terminal, None, screen)
        _, status = os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        os.close(terminal)
    return Played(seen, os.waitstatus_to_exitcode(status))


def _until(terminal: int, awaited: str | None, screen: TerminalScreen) -> str:
    """Read until a text was sent or stands on the screen, or (None) until the other side is closed."""
    deadline = time.monotonic() + PATIENCE_S
    seen = b""
    while awaited is None or not (seen and (awaited.encode() in seen or awaited in screen.text)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited for {awaited!r}, saw {seen[-2000:]!r}")
        if not readable([terminal], 0.2):
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:  # EIO: the child is gone
            data = b""
        if not data:
            if awaited is not None:
                raise EOFError(f"ended while waiting for {awaited!r}, saw {seen[-2000:]!r}")
            break
        seen += data
        screen.feed(data)
    return seen.decode(errors="replace")
