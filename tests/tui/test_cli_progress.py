"""The progress bar: what it says, and where it says nothing."""

from __future__ import annotations

import io

import pytest

from tracelane.core.base.output import ERASE
from tracelane.core.base.progress import Progress
from tracelane.tui.text.progress import REFRESH_S, ProgressBar


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        """It is one."""
        return True


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return its time."""
        return self.now


@pytest.mark.parametrize(
    ("progress", "elapsed", "present", "absent"),
    [
        (Progress("reading", 0, 200_000_000), 0.0, ["reading t.json", "0 %"], ["MB/s", "left"]),
        (Progress("reading", 50_000_000, 200_000_000), 2.0, ["25 %", "25 MB/s", "6 s left"], []),
        (Progress("reading", 200_000_000, 200_000_000), 2.0, ["100 %", "100 MB/s", "0 s left"], []),
        (Progress("reading", 10**6, 10**9), 1.0, ["0 %", "1 MB/s", "16:39 min left"], []),
        (Progress("reading", 5_000_000, None), 0.1, ["5 MB"], ["%", "left"]),
        (Progress("reading", 5_000_000, None, 1234), 1.0, ["5 MB/s", "1,234 events"], ["%", "left"]),
    ],
)
def test_line_says_how_far(progress: Progress, elapsed: float, present: list[str], absent: list[str]) -> None:
    """Percent, rate and time left are right, and left out where they are not known."""
    line = ProgressBar("t.json", Terminal()).line(progress, elapsed)
    assert all(part in line for part in present), line
    assert not any(part in line for part in absent), line


def test_draws_rarely_and_cleans_up() -> None:
    """At most ten times a second, one line over the other, and nothing is left on the screen."""
    stream, clock = Terminal(), Clock()
    with ProgressBar("t.json", stream, clock) as bar:
        for step in range(1000):
            bar(Progress("reading", step, 1000))
            clock.now += REFRESH_S / 50
    drawn = stream.getvalue()
    assert 15 <= drawn.count(ERASE) <= 25
    assert drawn.endswith(ERASE) and "\n" not in drawn


def test_quiet_without_a_terminal() -> None:
    """A log file gets no bar."""
    stream = io.StringIO()
    with ProgressBar("t.json", stream) as bar:
        bar(Progress("reading", 1, 2))
    assert stream.getvalue() == ""


def test_hostile_names_stay_text() -> None:
    """A file name with an escape sequence does not reach the terminal as one."""
    stream = Terminal()
    with ProgressBar("\x1b[2Jt.json", stream) as bar:
        bar(Progress("reading", 1, 2))
    assert "\x1b[2J" not in stream.getvalue()
