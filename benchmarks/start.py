"""From the command to its first picture, on a terminal: a trace that is indexed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.indexing import TRACELANE
from benchmarks.memory import PROC, family
from benchmarks.spread import spread
from tests.tui.slow_line import ANSWER, QUESTION
from tests.tui.walk import SIZE
from tracelane.core.index.version import DERIVED
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.terminal.first_picture import SHOW
from tracelane.tui.terminal.taken_screen import NAME

STARTS = 9
PATIENCE_S = 60.0
TURN_S = 0.01
KEEP_S = 0.3
"""The viewer has kept its picture so long after it has shown it."""
LANES = (UNICODE.unfolded.encode(), UNICODE.folded.encode())
"""Only titles of lanes have them."""


@dataclass(frozen=True)
class Seen:
    """When the first frame with lanes had come, from the command on; the processor time of all its processes
    by then.
    """

    seconds: float
    cpu_s: float


def starts(trace: Path, index_dir: Path) -> dict[str, Any]:
    """Return how long it takes from the command to the last byte of the first picture of an indexed trace,
    warm, where it is drawn and where it is kept of the last time; and how many times as long as Python takes
    to import numpy: the least of each, in turns.
    """
    seen(trace, index_dir)
    importing: list[float] = []
    runs: dict[str, list[Seen]] = {"drawn": [], "reopened": []}
    for _ in range(STARTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numpy"], check=True)
        importing.append(time.perf_counter() - began)
        for picture in index_dir.glob(f"*/*/{DERIVED}/{NAME}"):
            picture.unlink()
        for times in runs.values():
            times.append(seen(trace, index_dir))
    numpy = min(importing)
    return {name: {**_spread(times), **_in_numpy(times, numpy)} for name, times in runs.items()}


def _in_numpy(runs: Sequence[Seen], numpy_s: float) -> dict[str, float]:
    least = min(each.seconds for each in runs)
    return {"numpy_ms": round(numpy_s * 1000, 1), "times_numpy": round(least / numpy_s, 2)}


def seen(trace: Path, index_dir: Path) -> Seen:
    """Run the viewer until a whole frame with lanes is on its terminal, and end it."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    began, text = time.perf_counter(), b""
    with viewer_on(inner, TRACELANE, "view", str(trace), "--fresh", "--index-dir", str(index_dir)) as viewer:
        os.close(inner)
        while SHOW.encode() not in text[max(text.find(glyph) for glyph in LANES) :]:
            if time.perf_counter() - began > PATIENCE_S or viewer.poll() is not None:
                raise RuntimeError(f"no lanes, but {text[-500:]!r}")
            if select.select([terminal], [], [], TURN_S)[0]:
                with suppress(OSError):  # it has ended
                    data = os.read(terminal, 1 << 16)
                    os.write(terminal, ANSWER * data.count(QUESTION))
                    text += data
        first_sight = Seen(time.perf_counter() - began, cpu_of(family(viewer.pid)))
        time.sleep(KEEP_S)
    os.close(terminal)
    return first_sight


@contextmanager
def viewer_on(
    terminal: int, program: str, *arguments: str, descriptors: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the viewer as a Python program text; at the end kill it, so that it keeps no view, and wait for
    the processes below it.
    """
    viewer = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"},
        start_new_session=True,
        pass_fds=descriptors,
    )
    try:
        yield viewer
    finally:
        below = family(viewer.pid)
        viewer.kill()
        viewer.wait()
        until = time.perf_counter() + PATIENCE_S
        while any(map(_lives, below)) and time.perf_counter() < until:
            time.sleep(TURN_S)


def _lives(pid: int) -> bool:
    return _facts(pid)[:1] not in ([], ["Z"])


def cpu_of(pids: Sequence[int]) -> float:
    """Return the seconds of processor that processes, and children of theirs that have ended, took so far."""
    ticks = sum(int(number) for pid in pids for number in _facts(pid)[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _facts(pid: int) -> list[str]:
    """Return what /proc tells of a process from its state on, nothing where there is none."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def _spread(runs: Sequence[Seen]) -> dict[str, Any]:
    processor = statistics.median(each.cpu_s for each in runs)
    return {**spread([each.seconds for each in runs]), "processor_ms": round(processor * 1000, 1)}
