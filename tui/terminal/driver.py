"""The terminal as the viewer drives it: asked after each frame, given back when stopped, let go when gone."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import sys
import termios
import threading
import tty
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Any, Final

from textual import events
from textual.driver import Driver
from textual.message import Message

from ..textual_inside import OpenDriver
from ..widget_message import WidgetMessage
from .boundary import BoundedApp
from .screen_diff import ScreenDiff
from .taken_screen import unguarded_host

if TYPE_CHECKING:
    from textual.app import App


# A terminal works through what it gets in its order, so that its answer to any question tells that all before
# it is drawn, also through ssh, where a write returns long before. Where the cursor stands every
# terminal since the VT100 says: to `CSI 6 n` it answers `CSI 12 ; 1 R` (Device Status Report in
# https://invisible-island.net/xterm/ctlseqs/ctlseqs.html). Nobody looks at the numbers.
QUESTION: Final = "\x1b[6n"
"""Asks the terminal where its cursor is: it answers once it has drawn all that came before."""
OTHER_SCREEN: Final = "\x1b[?1049h"
LOOK_EVERY_S: Final = 2.0
END_WITHIN_S: Final = 10
"""What is left to a viewer without a terminal to save its view and end; then the system ends it."""
PIECE: Final = 4096
"""Characters that are written at a time."""
TAKEN_WITHIN_S: Final = 3.0
"""So long the end waits for a terminal that takes nothing; then it discards the frames that wait."""
MAX_TAKING_S: Final = 30.0
"""So long it waits for one that takes them slowly."""
LOOK_AT_WRITES_S: Final = 0.001
# CAN gives up a sequence that is half sent, as `CSI 38;2;1` of a colour; then no colour, and no frame that is
# held back until it is whole (synchronized output, mode 2026).
INTERRUPTED: Final = "\x18\x1b[0m\x1b[?2026l"
"""Ends a sequence and a frame that were cut off."""
MAX_UNWRITTEN: Final = 10
"""Writes that may wait for a terminal that takes none: textual lets 30 wait, and then stands still."""
SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a program."""


class TerminalDriver(OpenDriver):
    """Textual's driver of terminals, with what slow lines, job control and broken connections need. The event
    loop calls what signals ask for.
    """

    @dataclass
    class Ended(WidgetMessage):
        """The connection broke, or the program is asked to end."""

        code: int  # the exit code that says so

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        # Of a terminal that knows no size Textual is told 24 lines here and 25 there, and lays itself out for
        # both in turn, without end.
        super().__init__(app, debug=debug, mouse=mouse, size=size or shutil.get_terminal_size())
        self.pace = Pace()
        self._screen = ScreenDiff()
        self._unasked = 0  # characters written since the last question
        self._writes = 0
        self._suspended = False
        host = app.host if isinstance(app, BoundedApp) else unguarded_host()
        self._guard, self._first_screen = host.guard, host.screen
        self._output = Output(sys.__stderr__ or sys.stderr, partial(self._end, signal.SIGHUP))
        self.write_to(self._output)
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread
            loop.add_signal_handler(signal.SIGTSTP, self.stop_as_asked)
            loop.add_signal_handler(signal.SIGCONT, self._continued)
            loop.add_signal_handler(signal.SIGHUP, self._output.let_go)
            loop.add_signal_handler(signal.SIGTERM, self._end, signal.SIGTERM)
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                loop.add_signal_handler(signal.SIGINT, self._end, signal.SIGINT)
        loop.call_later(LOOK_EVERY_S, self._look_for_terminal)

    # -- pacing ---------------------------------------------------------------------------------------------

    def write(self, data: str) -> None:
        """Write what changes the picture, and remember that there is something to draw."""
        if OTHER_SCREEN in data and self._first_screen.take_over():
            data = data.replace(OTHER_SCREEN, "")  # which would clear the first picture
        sent = self._screen.update_for(data, self._terminal_size)
        self._unasked += len(sent)
        self._writes += 1
        super().write(sent)

    @property
    def is_stalled(self) -> bool:
        """Whether the terminal takes nothing at present: a frame more would only wait in memory."""
        return self._writes - self._output.writes > MAX_UNWRITTEN

    def forget(self) -> None:
        """Take nothing of what the terminal shows for known: something else may have written on it."""
        self._screen.forget()

    def ask(self) -> None:
        """Ask the terminal whether it has drawn what was written since the last time, if anything was."""
        if self._unasked and self.pace.asks:
            self.pace.count_question()
            self.write(QUESTION)
        self._unasked = 0

    def process_message(self, message: Message) -> None:
        """Count an answer where it comes in; the App hears of it as of everything."""
        if isinstance(message, events.CursorPosition):
            self.pace.count_answer()
        super().process_message(message)

    def disable_input(self) -> None:
        """Let the last answers come in first: after this they would be typed into the shell."""
        if not self._output.gone:
            self.pace.settle()
        super().disable_input()

    @property
    def _terminal_size(self) -> tuple[int, int]:
        """Columns and lines, as they are now: another size than before means that the picture is gone."""
        try:
            size = os.get_terminal_size(self._output.fileno())
        except OSError:
            return (0, 0)
        return size if all(size) else shutil.get_terminal_size()

    # -- taking and giving back -----------------------------------------------------------------------------

    def start_application_mode(self) -> None:
        """Take the terminal; the guard knows how it was."""
        if self._guard is not None:
            with suppress(termios.error):
                before = termios.tcgetattr(self.fileno)
                self._guard.hold(before, self.local_flags(before[tty.LFLAG]))
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        """Give the terminal back; what one that takes nothing has not taken by then is thrown away."""
        if self._discard_frames():
            self.write(INTERRUPTED)
        super().stop_application_mode()

    def _discard_frames(self) -> bool:
        """Wait until the terminal has taken all frames. Where it takes nothing discard them, to make room for
        what gives it back, and return True.
        """
        written, since, late = -1, 0.0, 0.0
        until = monotonic() + MAX_TAKING_S
        while self._output.flushed < self._writes and not self._output.gone:
            if written != self._output.pieces and late <= TAKEN_WITHIN_S and monotonic() < until:
                written, since = self._output.pieces, monotonic()
            late = monotonic() - since
            if late > 2 * TAKEN_WITHIN_S:
                self._output.let_go()
            elif late > TAKEN_WITHIN_S:
                self._discard()
            sleep(LOOK_AT_WRITES_S)
        if late <= TAKEN_WITHIN_S:
            return False
        self._discard()
        return True

    def _discard(self) -> None:
        """Throw away what lies in the system's queue; a signal has the thread that writes notice the room."""
        with suppress(termios.error, ValueError):  # ValueError: not the main thread
            termios.tcflush(self._output.fileno(), termios.TCOFLUSH)
            before = signal.signal(signal.SIGURG, lambda *_: None)
            if self.writer is not None:
                signal.pthread_kill(self.writer, signal.SIGURG)
            signal.signal(signal.SIGURG, before)

    def close(self) -> None:
        """Send what was written, after which the terminal is as it was."""
        self._discard_frames()
        super().close()
        if self._guard is not None and not self._output.gone:
            self._guard.release()

    # -- job control ----------------------------------------------------------------------------------------

    def suspend_application_mode(self) -> None:
        super().suspend_application_mode()
        self._suspended = True

    def resume_application_mode(self) -> None:
        """Take the terminal again, and have all redrawn."""
        self._suspended = False
        self.pace = Pace()
        self.forget()
        super().resume_application_mode()
        self.process_message(Driver.SignalResume())

    def _continued(self) -> None:
        if not self._suspended:  # SIGSTOP, which nobody hears of: the shell has used the terminal since
            self.suspend_application_mode()
        self.go_on()

    # -- the end --------------------------------------------------------------------------------------------

    def _look_for_terminal(self) -> None:
        """Notice that the terminal is gone where no signal says so: to a child of a shell that was killed."""
        poll = select.poll()
        poll.register(self.fileno, 0)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            self._output.let_go()
        else:
            asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look_for_terminal)

    def run_input_thread(self) -> None:
        """Read the keyboard until the end, or until there is none."""
        try:
            super().run_input_thread()
        except OSError:
            self._output.let_go()

    def _end(self, number: int) -> None:
        self.process_message(self.Ended(SIGNALLED + number))


class Output:
    """A terminal to write to, until it is gone: what is written after that is nobody's."""

    def __init__(self, file: IO[str], when_gone: Callable[[], None]) -> None:
        """Write to a file; `when_gone` is called once, by the thread that finds it gone."""
        self._file = file
        self._when_gone = when_gone
        self.gone = False
        self.writes = 0
        """Counts what was written."""
        self.pieces = 0
        """Counts the pieces of it: how far a terminal is that takes a large frame slowly."""
        self.flushed = 0
        """Counts what of it the terminal has taken."""

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, text: str) -> None:
        try:
            for at in range(0, len(text), PIECE):
                self._file.write(text[at : at + PIECE])
                self.pieces += 1
        except OSError:
            self.let_go()
        self.writes += 1

    def flush(self) -> None:
        writes = self.writes
        try:
            self._file.flush()
        except OSError:
            self.let_go()
        self.flushed = writes

    def let_go(self) -> None:
        """Put nothing in the terminal's place, so that no later write or flush fails."""
        if self.gone:
            return
        self.gone = True
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.close(nothing)
        signal.alarm(END_WITHIN_S)
        self._when_gone()


UNANSWERED: Final = 2
"""Frames that may be under way: one being drawn, one on the line."""
MAX_UNANSWERED: Final = 4
"""The same on a long line that carries them all: while none has waited behind another."""
UNHINDERED: Final = 1.5
"""An answer that took so many times the shortest time at most has waited for nothing but the way."""
PATIENCE_S: Final = 1.0
"""How long a frame waits for a terminal that has not answered yet."""
PATIENCE_WITH_KNOWN_S: Final = 5.0
"""The same for one that has answered: its line may only be slow."""


class Pace:
    """Counts questions and answers, from the App's thread and from the one that reads the keyboard."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._questions: deque[float] = deque()  # when, of the questions without an answer
        self._shortest = inf  # from a question to its answer
        self._allowed = UNANSWERED
        self._answers = False  # whether the terminal answered when it was last waited for
        self._given_up = False

    @property
    def asks(self) -> bool:
        """Whether questions are asked at all: not of a terminal that never answers."""
        return not self._given_up

    @property
    def full(self) -> bool:
        """Whether the next frame has to wait."""
        return len(self._questions) >= self._allowed

    @property
    def patience(self) -> float:
        """How many seconds a frame may wait."""
        return PATIENCE_WITH_KNOWN_S if self._answers else PATIENCE_S

    def count_question(self) -> None:
        with self._changed:
            self._questions.append(monotonic())

    def count_answer(self) -> None:
        """Count an answer; a late one shows that the terminal does answer."""
        with self._changed:
            if self._questions:
                took = monotonic() - self._questions.popleft()
                self._shortest = min(self._shortest, took)
                unhindered = took <= UNHINDERED * self._shortest
                self._allowed = MAX_UNANSWERED if unhindered else UNANSWERED
            self._answers, self._given_up = True, False
            self._changed.notify_all()

    def lost(self) -> None:
        """Expect no more answers to what was asked; of a terminal that was silent before too, none at all."""
        with self._changed:
            self._given_up = not self._answers
            self._questions.clear()
            self._answers, self._allowed = False, UNANSWERED

    def settle(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until all is answered, no longer than a frame would of an unknown terminal; expect no more."""
        deadline = monotonic() + patience_s
        with self._changed:
            while self._questions and (left := deadline - monotonic()) > 0:
                self._changed.wait(left)
            self._questions.clear()
