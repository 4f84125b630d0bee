"""What the tests see of a program on a terminal is all that it wrote there."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.tui.slow_line import SlowLine
from tests.waiting import is_alive, wait_until

FILLS = """
import os, sys
os.set_blocking(1, False)
written = 0
try:
    while True:
        written += os.write(1, b"x")
except BlockingIOError:
    open(sys.argv[1], "w", encoding="ascii").write(str(written))
"""
"""Writes as much as a terminal holds before anybody reads, which is more than one read brings, and ends."""


def test_what_is_unread_at_the_end_arrives(tmp_path: Path) -> None:
    """Of a program that ended before anything of it was read, as on a loaded machine, nothing is lost."""
    count = tmp_path / "count"
    with SlowLine([sys.executable, "-c", FILLS, str(count)]) as line:
        wait_until(lambda: not is_alive(line.pid), "the end of the program")
        assert line.wait_for_end() == 0
        assert len(line.received) == int(count.read_text(encoding="ascii")) > 4096
