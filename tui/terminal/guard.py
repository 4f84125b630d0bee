"""A tiny process that gives the terminal back where the viewer cannot: after a crash, or when it is killed.

It is a copy of the viewer's process, made before that has loaded much, in a session of its own, so that
no signal of the terminal reaches it. The viewer tells it through a pipe, a line at a time:

    hold NUMBERS   the terminal is about to be changed: its attributes, and the local flags that it gets
    release        the terminal is as it was
    end TEXT       the viewer ends without having given the terminal back
    bye            the viewer ends

When the pipe ends without a word, the viewer is dead. What faulthandler has written before that tells why.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tracelane.core.base.descriptors import readable
from tracelane.core.base.private import make_folders
from tracelane.core.base.safe_text import safe

LFLAG, CONTROL_CHARACTERS = 3, 6
"""Places in what `termios.tcgetattr` returns."""
RESTORE: Final = (
    b"\x18\x1b[0m"  # cut off a sequence that was not finished; plain colours
    b"\x1b[?2026l\x1b[?2004l\x1b[?2048l\x1b[?7h"  # held frames, bracketed paste, sizes as input; wrap lines
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # the mouse
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"  # kitty's keys, the other screen, the cursor, focus
)
IGNORED: Final = (
    *("SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGTSTP"),
    *("SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGWINCH"),
)
FATAL: Final = "Fatal Python error: "
CRASHES: Final = {
    "Bus error": "a bus error: a file that it reads became shorter, or a disk failed",
    "Segmentation fault": "a segmentation fault",
}
KILLED: Final = "a signal that it cannot answer (kill -9, or the system where memory ran out)"


class TerminalGuard:
    """The viewer's end of the pipe to the process that guards the terminal."""

    def __init__(self, pipe: int, process: int) -> None:
        """Tell a process what becomes of the terminal; see `start_guard`."""
        self._pipe = pipe
        self._process = process

    def hold(self, before: list[Any], raw: int) -> None:
        """The terminal had these attributes, and is about to have these local flags."""
        characters = (code if isinstance(code, int) else code[0] for code in before[CONTROL_CHARACTERS])
        self._tell(" ".join(map(str, ("hold", raw, *before[:CONTROL_CHARACTERS], *characters))))

    def release(self) -> None:
        """The terminal is as it was before `hold`."""
        self._tell("release")

    def close(self, reason: str = "") -> None:
        """End the guard; a terminal that is still held is given back first, with the reason."""
        self._tell(f"end {reason}" if reason else "bye")
        faulthandler.disable()
        os.close(self._pipe)
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # the guard may have been killed
            os.write(self._pipe, f"{line}\n".encode())


def start_guard(log: Path | None) -> TerminalGuard | None:
    """Start a process that guards the terminal of this one; None where there is none, or no process can be
    had. What ended the viewer is also written to `log`.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    # Held back until the guard ignores them: a Ctrl+C that comes as it begins would raise an error in it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [getattr(signal, name) for name in IGNORED])
    try:
        viewer_id = os.getpid()
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            try:
                _guard(viewer_id, reader, terminal, log)
            finally:
                os._exit(0)
    except OSError:
        os.close(terminal)
        return None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(reader)
    os.close(terminal)
    faulthandler.enable(writer)
    return TerminalGuard(writer, process)


# -- the guard ----------------------------------------------------------------------------------------------


def _guard(viewer_id: int, reader: int, terminal: int, log: Path | None) -> None:
    """Wait until the viewer ends, then give the terminal back if the viewer has not."""
    os.setsid()
    for name in IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    _close_all_but(reader, terminal)
    viewer = _opened_process(viewer_id)
    held: list[int] = []
    crash: list[str] = []
    reason, rest = "", b""
    while True:
        ready = readable([reader, *viewer])
        if reader not in ready:  # dead, while another process may still have its end of the pipe
            ready = readable([reader], 0)
        data = os.read(reader, 1 << 16) if ready else b""
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            word, _, text = line.decode("utf-8", "replace").partition(" ")
            if word == "hold":
                held = list(map(int, text.split()))
            elif word == "release":
                held = []
            elif word == "end":
                _give_back(terminal, held, text)
                return
            elif word == "bye":
                _restore(terminal, held)
                return
            else:
                crash.append(f"{word} {text}".rstrip())
                if crash[-1].startswith(FATAL):  # at once: the shell goes on as soon as the viewer is dead
                    fatal = crash[-1].removeprefix(FATAL)
                    reason = CRASHES.get(fatal, fatal)
                    _give_back(terminal, held, f"{reason}{f' (more in {log})' if log else ''}", always=True)
    if crash and log is not None:
        with suppress(OSError):
            _append(log, [f"the viewer was ended by {reason}", *crash])
    if not reason:
        _give_back(terminal, held, KILLED)


def _give_back(terminal: int, held: Sequence[int], reason: str, always: bool = False) -> None:
    """Give the terminal back and say why, unless the viewer has done so."""
    _restore(terminal, held)
    if held or always:
        with suppress(OSError):
            os.write(terminal, f"\rtracelane was ended by {safe(reason)}\r\n".encode())


def _restore(terminal: int, held: Sequence[int]) -> None:
    """Set modes and attributes as they were before the viewer; attributes only if they are still the
    viewer's: by now the shell may have set its own.
    """
    if not held:
        return
    with suppress(OSError, termios.error):
        os.write(terminal, RESTORE)
        raw, *before = held
        if termios.tcgetattr(terminal)[LFLAG] == raw:
            characters = [bytes([code]) for code in before[CONTROL_CHARACTERS:]]
            termios.tcflush(terminal, termios.TCIFLUSH)  # the mouse goes on sending until it is told not to
            attributes: list[Any] = [*before[:CONTROL_CHARACTERS], characters]
            termios.tcsetattr(terminal, termios.TCSANOW, attributes)


def _close_all_but(*open_descriptors: int) -> None:
    """Close what the viewer has open: nobody who waits for the end of it is to wait for this process."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    first = 3
    for descriptor in sorted(open_descriptors):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def _opened_process(process: int) -> list[int]:
    """Return a descriptor that can be read once a process is dead, where the system has such."""
    if sys.platform != "linux":
        return []
    with suppress(OSError, AttributeError):
        return [os.pidfd_open(process)]
    return []


def _append(log: Path, lines: Sequence[str]) -> None:
    make_folders(log.parent)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    file = os.open(log, flags, 0o600)
    os.write(file, "".join(f"{safe(line)}\n" for line in lines).encode())
    os.close(file)
