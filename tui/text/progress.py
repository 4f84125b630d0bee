"""The progress bar on stderr: percent, MB/s and time left on one line that is gone when the work is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TextIO

from tracelane.core.base.output import StatusLine
from tracelane.core.base.progress import Progress
from tracelane.core.base.safe_text import safe

REFRESH_S = 0.1
SETTLE_S = 0.5
"""Rates are shown only after this long: earlier they jump about."""
BAR_CELLS = 24
MB = 1e6


class StagePace:
    """How long the stage at hand has been going on, and how far it was when it began."""

    def __init__(self) -> None:
        self.stage = ""
        self._began = 0.0
        self._first = 0

    def begins(self, progress: Progress, now: float) -> bool:
        """Take note of a state of the work at a time; True where another stage begins with it."""
        if progress.stage == self.stage:
            return False
        self.stage, self._began, self._first = progress.stage, now, progress.done
        return True

    def words(self, progress: Progress, now: float) -> list[str]:
        """Return percent, rate, time left and events, as far as they are known."""
        return progress_words(progress, progress.done - self._first, now - self._began)


def progress_words(progress: Progress, moved: int, elapsed: float) -> list[str]:
    """Return how far the work is, of which `moved` was done in the `elapsed` seconds of its stage."""
    share = progress.share
    parts = [] if share is None else [f"{int(share * 100)} %"]
    if elapsed >= SETTLE_S and moved > 0:
        rate = moved / elapsed
        parts.append(f"{rate / MB:.{0 if rate >= MB else 1}f} MB/s")
        if progress.total is not None:
            parts.append(f"{_seconds((progress.total - progress.done) / rate)} left")
    elif share is None:
        parts.append(f"{progress.done / MB:.0f} MB")
    if progress.events:
        parts.append(f"{progress.events:,} events")
    return parts


class ProgressBar:
    """A callable to hand to long work as `progress`; draws nothing unless the stream is a terminal."""

    def __init__(
        self, title: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._title = safe(title)
        self._status = StatusLine(stream)
        self._clock = clock
        self._glyphs = "█░" if self._status.encoding.startswith("utf") else "#-"
        self._pace = StagePace()
        self._next = 0.0

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, progress: Progress) -> None:
        """Show how far the work is, at most ten times a second."""
        if not self._status.is_live:
            return
        now = self._clock()
        if not self._pace.begins(progress, now) and now < self._next:
            return
        self._next = now + REFRESH_S
        self._status.show(self._line(progress, self._pace.words(progress, now)))

    def close(self) -> None:
        self._status.clear()

    def line(self, progress: Progress, elapsed: float) -> str:
        """Return the line for a state of the work, `elapsed` seconds after its only stage began."""
        return self._line(progress, progress_words(progress, progress.done, elapsed))

    def _line(self, progress: Progress, parts: Sequence[str]) -> str:
        share = progress.share
        bar = [] if share is None else [drawn_bar(share, BAR_CELLS, self._glyphs)]
        return "  ".join([f"{safe(progress.stage)} {self._title}", *bar, *parts])


def drawn_bar(share: float, cells: int, glyphs: str) -> str:
    """Return a bar of so many cells, filled up to a share; `glyphs` are those of full and empty cells."""
    full = int(share * cells)
    return glyphs[0] * full + glyphs[1] * (cells - full)


def _seconds(value: float) -> str:
    seconds = max(0, round(value))
    return f"{seconds} s" if seconds < 100 else f"{seconds // 60}:{seconds % 60:02d} min"
