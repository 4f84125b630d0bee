"""A program that searches texts for regular expressions, which `pattern` starts, asks, and may end at any
moment.

    python -I -S pattern_search.py

Each line of standard input is a JSON list: an expression, its flags, "search" or "match", the seconds of
processor time that one text and all of them may take, and the texts. Lines of numbers answer, as they are
known: where the match in each text ends, -1 where there is none; the last line ends with "." and the seconds
that the texts took. Where they take too long it says what it knows and exits with TOO_LONG.

It is started by its path, with nothing of tracelane and no other package, in 15 ms.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import warnings

TOO_LONG = 3
TICKS = 20
"""So often the time is looked at within that of one text."""
MIN_TICK_S = 0.001
SAY_S = 0.02
"""So long answers are collected."""


class TimedSearch:
    """The search that answers one line, within its limits.

    A timer of processor time ticks, and the handler of its signal looks at the limits: Python's engine runs
    handlers while it searches. Another timer, set anew by each tick, ends the process where none runs.
    """

    def __init__(self, text_s: float, all_s: float) -> None:
        self._text_s, self._all_s = text_s, all_s
        self._tick_s = max(MIN_TICK_S, min(text_s, all_s) / TICKS)
        self._ticks = 0  # since the text was begun
        self._begun_s = time.process_time()
        self._said = time.monotonic()
        self._ends: list[int] = []
        self._is_saying = False

    def of(self, find: re.Pattern[str], how: str, texts: list[str]) -> None:
        """Say where the matches in some texts end, or end the process."""
        look = find.search if how == "search" else find.match
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, self._tick_s, self._tick_s)
        for text in texts:
            self._ticks = 0
            match = look(text)
            self._ends.append(-1 if match is None else match.end())
            if time.monotonic() - self._said > SAY_S:
                self._say("\n")
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self._say(f" . {self._spent_s}\n")

    @property
    def _spent_s(self) -> float:
        return time.process_time() - self._begun_s

    def _tick(self, *_: object) -> None:
        self._ticks += 1
        if self._is_saying:
            return
        if self._ticks * self._tick_s > self._text_s or self._spent_s > self._all_s:
            self._say("\n")
            os._exit(TOO_LONG)
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * self._text_s)

    def _say(self, end: str) -> None:
        """Write what is known since the last time; a tick never comes between."""
        self._is_saying = True
        data = (" ".join(map(str, self._ends)) + end).encode()
        while data:
            data = data[os.write(1, data) :]
        self._ends.clear()
        self._said = time.monotonic()
        self._is_saying = False


def main() -> None:
    """Answer until standard input ends."""
    warnings.simplefilter("ignore")  # Python's advice on what a later version may understand otherwise
    for line in sys.stdin.buffer:
        text, flags, how, text_s, all_s, texts = json.loads(line)
        TimedSearch(text_s, all_s).of(re.compile(text, flags), how, texts)


if __name__ == "__main__":
    main()
