"""The viewer over a slow line: how long the picture moves on after a held key is released, and its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.memory import memory_of
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.walk import SIZE

HELD_S = 4.0
DELAY_S = 0.08
BITS_PER_S = (1e6, 2e6, 10e6)
SETTLED_S = 1.5
OVER_SSH = {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22", "COLORTERM": ""}


def lines(trace: Path, index_dir: Path) -> list[dict[str, Any]]:
    """Return the lag of lines of several speeds; the terminal that does not answer is not paced."""
    runs = [held_key(trace, index_dir, speed, answers=True) for speed in BITS_PER_S]
    return [*runs, *(held_key(trace, index_dir, speed, answers=False) for speed in BITS_PER_S)]


def held_key(trace: Path, index_dir: Path, bits_per_s: float, answers: bool) -> dict[str, Any]:
    """Hold a key on a line, and return what happened after its release."""
    command = tracelane_command("view", str(trace), "--fresh", "--index-dir", str(index_dir))
    with SlowLine(
        command, SIZE, bits_per_s=bits_per_s, delay_s=DELAY_S, answers=answers, environ=OVER_SSH
    ) as line:
        line.wait_for("details")
        line.wait_for_quiet(SETTLED_S)
        for key in "WW":
            line.type(key)
            line.wait_for_quiet(SETTLED_S / 2)
        before = len(line.delivered)
        released = line.hold("d", HELD_S)
        last = line.wait_for_stillness(SETTLED_S)
        moved = line.delivered[before:]
        held = memory_of(line.pid)
        line.type("q")
        line.wait_for_end()
    return {
        "bits_per_s": bits_per_s,
        "delay_s": DELAY_S,
        "answers": answers,
        "lag_s": round(last - released, 2),
        "bytes": sum(piece.size for piece in moved),
        "viewer_private_bytes": held.private,
    }
