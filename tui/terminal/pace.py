"""How far the terminal is behind: questions asked of it and answers that came."""

from __future__ import annotations

import threading
from collections import deque
from math import inf
from time import monotonic
from typing import Final

UNANSWERED: Final = 2
"""Frames that may be under way: one being drawn, one on the line."""
MOST_UNANSWERED: Final = 4
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
        """Begin with nothing asked."""
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
                self._allowed = MOST_UNANSWERED if unhindered else UNANSWERED
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
