"""Many small files of ranks: `index`, and the viewer until all lanes are drawn and until all is known."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import statistics
import struct
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.indexing import TRACELANE
from benchmarks.made_trace import write_made_ranks
from benchmarks.memory import family, measured_python
from benchmarks.start import TURN_S, Seen, cpu_of, viewer_on
from benchmarks.watched_viewer import DRAWN, IDLE, KNOWN
from tests.tui.slow_line import ANSWER, QUESTION
from tests.tui.walk import SIZE

ROOT = Path(__file__).resolve().parent.parent
WATCHED = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom benchmarks.watched_viewer import main; main()"
PATIENCE_S = 300.0


def many_ranks(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Return what so many ranks take, in turns, each without an index at first: medians."""
    ranks = folder / f"ranks-{count}"
    write_made_ranks(ranks, count)
    os.sync()  # or they would be written while others are measured
    indexing: list[Seen] = []
    drawn: list[Seen] = []
    known: list[Seen] = []
    index_dir = folder / "ranks-index"
    for _ in range(rounds):
        cost = measured_python(TRACELANE, "index", str(ranks), "--index-dir", str(index_dir), watched=False)
        indexing.append(Seen(cost.seconds, cost.cpu_s))
        shutil.rmtree(index_dir)
        first_drawn, last_idle = _viewed(ranks, index_dir)
        drawn.append(first_drawn)
        known.append(last_idle)
        shutil.rmtree(index_dir)
    size = sum(path.stat().st_size for path in ranks.iterdir())
    shutil.rmtree(ranks)
    return {
        "ranks": count,
        "bytes": size,
        "index": _median(indexing),
        "drawn": _median(drawn),
        "known": _median(known),
    }


def _viewed(ranks: Path, index_dir: Path) -> tuple[Seen, Seen]:
    """Run the viewer on a terminal until all is known: when all lanes were drawn, and when all was known."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    reading, writing = os.pipe()
    seen: dict[str, Seen] = {}
    began, text = time.perf_counter(), b""
    options = ("--fresh", "--index-dir", str(index_dir))
    with viewer_on(
        inner, WATCHED, str(writing), "view", str(ranks), *options, descriptors=[writing]
    ) as viewer:
        os.close(inner)
        while KNOWN not in seen:
            if time.perf_counter() - began > PATIENCE_S or viewer.poll() is not None:
                raise RuntimeError(f"not all became known, but {text[-500:]!r}")
            ready = select.select([terminal, reading], [], [], TURN_S)[0]
            if reading in ready:
                now = Seen(time.perf_counter() - began, cpu_of(family(viewer.pid)))
                seen.update(dict.fromkeys(os.read(reading, 1 << 10).decode().split(), now))
            if terminal in ready:
                with suppress(OSError):  # it has ended
                    data = os.read(terminal, 1 << 16)
                    os.write(terminal, ANSWER * data.count(QUESTION))
                    text = text[-500:] + data
    for descriptor in (terminal, reading, writing):
        os.close(descriptor)
    return seen[DRAWN], seen[IDLE]


def _median(runs: Sequence[Seen]) -> dict[str, float]:
    return {
        "seconds": round(statistics.median(each.seconds for each in runs), 2),
        "cpu_s": round(statistics.median(each.cpu_s for each in runs), 2),
    }
