"""A terminal at the far end of a slow line: what it is sent comes slowly and late, what it answers late."""

from __future__ import annotations

import fcntl
import heapq
import os
import pty
import signal
import struct
import sys
import termios
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import TracebackType

from tests.tui.terminal_screen import TerminalScreen
from tests.waiting import PATIENCE_S
from tracelane.core.base.descriptors import readable

QUESTION = b"\x1b[6n"
ANSWER = b"\x1b[12;34R"
BUFFERED = 2 << 20
"""Bytes that wait at the near end before the program is held up: what an SSH window takes."""
PACKET = 1400


@dataclass(frozen=True)
class Delivered:
    """Some bytes that arrived at the far end."""

    at: float
    size: int


@dataclass
class SlowLine:
    """Runs a command on a terminal behind a line of so many bits a second and so much delay each way."""

    command: Sequence[str]
    size: tuple[int, int] = (100, 30)  # columns, lines
    _: KW_ONLY
    stated: tuple[int, int] | None = None  # what the terminal says its size is, where that is not so
    bits_per_s: float = 0.0  # 0: as fast as it comes
    delay_s: float = 0.0
    answers: bool = True  # whether the terminal answers where its cursor is
    environ: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None

    def __post_init__(self) -> None:
        environ = {**os.environ, "TERM": "xterm-256color", **self.environ}
        self.pid, self.terminal = fork_on_terminal(self.stated or self.size, self.command, environ, self.cwd)
        self.screen = TerminalScreen(*self.size)
        self.delivered: list[Delivered] = []
        self.questions = 0
        self.most_unanswered = 0  # questions that had no answer yet, where the program stands
        self.received = b""
        self.code: int | None = None
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._on_line = 0
        self._free_at = 0.0
        self._typed: list[tuple[float, int, bytes]] = []
        self._tail = b""
        self._sent_questions = self._sent_answers = 0
        self._read_tail = b""

    def __enter__(self) -> SlowLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.kill(self.pid, signal.SIGCONT)
            os.waitpid(self.pid, 0)
        self.hang_up()

    # -- what a person does ---------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Type a text: it arrives after the delay."""
        self._send(text.encode())

    def hold(self, key: str, seconds: float, per_s: float = 30.0) -> float:
        """Hold a key down; return when it was released."""
        began = time.monotonic()
        for number in range(int(seconds * per_s)):
            self.run(began + number / per_s - time.monotonic())
            self.type(key)
        return time.monotonic()

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size; what it showed is gone."""
        self.size = columns, lines
        self.screen = TerminalScreen(columns, lines)
        set_size(self.terminal, self.size)

    def hang_up(self) -> None:
        """Take the terminal away."""
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1

    def wait_for(self, text: str) -> None:
        """Wait until a text is on the screen."""

        def seen() -> bool:
            if self.has_ended():
                raise EOFError(f"ended with {self.code} before {text!r}: {self.received[-3000:]!r}")
            return text in self.screen.text

        self.wait_until(seen, f"{text!r}")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Let the line work until something holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited for {what}, saw {self.received[-3000:]!r}")
            self._turn(0.02)

    def forget_received(self) -> None:
        """Forget what was received; the screen stays."""
        self.received, self.delivered = b"", []

    def wait_for_bytes(self, text: str) -> None:
        """Wait until a text was received, wherever it stands or stood on the screen."""
        self.wait_until(lambda: text.encode() in self.received, f"{text!r}")

    def wait_for_quiet(self, seconds: float) -> None:
        """Wait until nothing arrived for so long, in which the program did not want to run either."""
        last = time.monotonic()

        def quiet() -> bool:
            nonlocal last
            if self.delivered:
                last = max(last, self.delivered[-1].at)
            if self._under_way or self._typed or wants_to_run(self.pid):
                last = time.monotonic()
            return time.monotonic() - last > seconds

        self.wait_until(quiet, "quiet")

    def wait_for_stillness(self, seconds: float) -> float:
        """Wait until the viewer's lanes stay as they are for so long; return when they changed last."""
        lanes, changed, busy = self.screen.lanes, time.monotonic(), time.monotonic()

        def still() -> bool:
            nonlocal lanes, changed, busy
            if self.screen.lanes != lanes:
                lanes, changed = self.screen.lanes, time.monotonic()
            if wants_to_run(self.pid):
                busy = time.monotonic()
            return time.monotonic() - max(changed, busy) > seconds

        self.wait_until(still, "stillness")
        return changed

    def wait_for_end(self) -> int:
        """Wait until the program has ended and all it wrote has arrived; return its exit code."""
        self.wait_until(lambda: self.has_ended() and not self._under_way, "the end")
        assert self.code is not None
        return self.code

    def wait_for_stop(self) -> None:
        """Wait until the program is stopped, as by Ctrl+Z."""
        self.wait_until(lambda: os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)[0] == self.pid, "a stop")
        self.run(0.05 + 2 * self.delay_s)

    def run(self, seconds: float) -> None:
        """Let the line work for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._turn(left)

    @property
    def answers_on_the_way(self) -> int:
        """How many answers the program has not had yet."""
        return sum(data == ANSWER for *_, data in self._typed)

    # -- the line -------------------------------------------------------------------------------------------

    def has_ended(self) -> bool:
        """Tell whether the program has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                while self._is_readable(0) and self._read():  # a read brings a part of what still waits
                    pass
        return self.code is not None

    def _turn(self, patience: float) -> None:
        now = time.monotonic()
        due = [at for at, *_ in (*self._under_way, *self._typed)]
        wait = max(0.0, min([patience, 0.1, *(at - now for at in due[:1]), *(at - now for at in due[-1:])]))
        if self._is_readable(wait, is_held_up=self._on_line > BUFFERED):
            self._read()
        now = time.monotonic()
        while self._typed and self._typed[0][0] <= now:
            data = heapq.heappop(self._typed)[2]
            self._sent_answers += data == ANSWER
            if self.terminal >= 0:
                os.write(self.terminal, data)
        while self._under_way and self._under_way[0][0] <= now:
            self._deliver(*self._under_way.popleft())

    def _is_readable(self, patience: float, is_held_up: bool = False) -> bool:
        """Wait until the terminal has something to be read, or for so long; the end is something too."""
        watched = [] if is_held_up or self.terminal < 0 else [self.terminal]
        return bool(readable(watched, patience))

    def _read(self) -> bool:
        """Send what a read brings on its way; return whether there was any."""
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # the program has ended
            data = b""
            time.sleep(0.005)
        count, self._read_tail = questions_in(self._read_tail, data)
        self._sent_questions += count
        self.most_unanswered = max(self.most_unanswered, self._sent_questions - self._sent_answers)
        step = PACKET if self.bits_per_s or self.delay_s else max(1, len(data))
        for start in range(0, len(data), step):
            packet = data[start : start + step]
            begins = max(time.monotonic(), self._free_at)
            self._free_at = begins + (len(packet) * 8 / self.bits_per_s if self.bits_per_s else 0.0)
            self._under_way.append((self._free_at + self.delay_s, packet))
            self._on_line += len(packet)
        return bool(data)

    def _deliver(self, at: float, packet: bytes) -> None:
        self._on_line -= len(packet)
        self.delivered.append(Delivered(at, len(packet)))
        self.received += packet
        self.screen.feed(packet)
        count, self._tail = questions_in(self._tail, packet)
        self.questions += count
        for _ in range(count if self.answers else 0):
            self._send(ANSWER)

    def _send(self, data: bytes) -> None:
        heapq.heappush(self._typed, (time.monotonic() + self.delay_s, len(self._typed), data))


def questions_in(tail: bytes, data: bytes) -> tuple[int, bytes]:
    """Return how many questions end in the data that follows a tail, and the tail of both."""
    both = tail + data
    return both.count(QUESTION), b"" if both.endswith(QUESTION) else both[-len(QUESTION) + 1 :]


def fork_on_terminal(
    size: tuple[int, int],
    command: Sequence[str],
    environ: Mapping[str, str],
    cwd: Path | None = None,
    stdin: Path | None = None,
) -> tuple[int, int]:
    """Run a command on a terminal of its own, of that many columns and lines from the start, and return its
    process and the terminal's other end.
    """
    ready, has_size = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:  # the child: its standard streams are the new terminal, which it can also open as /dev/tty
        try:
            os.close(has_size)
            os.read(ready, 1)
            if cwd is not None:
                os.chdir(cwd)
            if stdin is not None:
                os.dup2(os.open(stdin, os.O_RDONLY), 0)
            os.execvpe(command[0], list(command), dict(environ))
        finally:
            os._exit(127)
    set_size(terminal, size)
    os.close(ready)
    os.close(has_size)
    return pid, terminal


def set_size(terminal: int, size: tuple[int, int]) -> None:
    """Give a terminal so many columns and lines."""
    columns, lines = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def wants_to_run(pid: int) -> bool:
    """Tell whether a thread of a process or of a child of it runs, or waits for a processor.

    Where there is no /proc this is not known, and False.
    """
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            state = (thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            children = (thread / "children").read_text(encoding="utf-8").split()
        except OSError:  # it has ended
            continue
        if state in "RD" or any(wants_to_run(int(child)) for child in children):
            return True
    return False


def tracelane_command(*arguments: str) -> list[str]:
    """Return the command that runs this checkout's tracelane."""
    program = "import sys; from tracelane.tui.cli.main import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", program, *arguments]
