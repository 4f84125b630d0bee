"""What is seen of an indexed trace, and how soon: reopening, frames after keys, picture, arguments."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.spread import spread
from benchmarks.start import starts
from tests.tui.walk import SIZE, first_picture, keys_of, walk
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.cli.viewer import COLLECTING
from tracelane.tui.text.picture import picture

REOPENINGS = 5
PICTURES = 5
ARGUMENTS = 200
SEED = 1


def reopening(trace: Path, index_dir: Path) -> dict[str, Any]:
    """Return how long it takes from a command's imports to the first full picture, warm, and from there to
    the end where the user leaves at once.
    """
    times: list[float] = []
    cpu: list[float] = []
    leaving: list[float] = []

    def once() -> None:
        began, cpu_began = time.perf_counter(), time.process_time()

        def seen() -> None:
            times.append(time.perf_counter() - began)
            cpu.append(time.process_time() - cpu_began)

        opened = open_trace(trace, index_dir=index_dir)
        asyncio.run(first_picture(opened, seen))
        opened.close()
        leaving.append(time.perf_counter() - began - times[-1])

    for _ in range(1 + REOPENINGS):
        once()
    return {
        "to_picture": spread(times[1:]),
        "processor_time": spread(cpu[1:]),
        "leaving": spread(leaving[1:]),
        **starts(trace, index_dir),
    }


def frames(trace: Path, index_dir: Path) -> dict[str, Any]:
    """Return what the frames of the scripted walk cost: bytes as they are sent and, before what the terminal
    shows already is left out, as they are drawn; segments are those drawn. Garbage is collected as the
    command has it done, in a process that holds no more than the viewer's.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTING)
    opened = open_trace(trace, index_dir=index_dir)
    keys = keys_of(opened)
    counts = asyncio.run(walk(opened, keys))
    times = asyncio.run(walk(opened, keys, counting=False))
    result = {
        "slices": opened.sources[0].read_report["slices"],
        "keys": len(keys),
        "size": f"{SIZE[0]}x{SIZE[1]}",
        "key_to_frame": spread([frame.seconds for frame in times]),
        "processor_time": spread([frame.cpu_s for frame in times]),
        "bytes": _mean_and_most([frame.size for frame in counts]),
        "drawn": _mean_and_most([frame.drawn for frame in counts]),
        "segments": _mean_and_most([frame.segments for frame in counts]),
        "rows": _mean_and_most([frame.rows for frame in counts]),
        "numpy_calls": _mean_and_most([frame.numpy_calls for frame in counts]),
        "static_picture": spread([_timed(lambda: _picture(opened)) for _ in range(PICTURES)]),
        "arguments": _arguments(opened),
    }
    opened.close()
    return result


def _picture(trace: Trace) -> None:
    picture(trace, first_session(trace, SIZE[0]), SIZE)


def _arguments(trace: Trace) -> dict[str, Any]:
    events = trace.sources[0].read_report["events"]
    chosen = [random.Random(SEED).randrange(events) for _ in range(ARGUMENTS)]
    return spread([_timed(lambda ordinal=ordinal: trace.event_arguments(0, ordinal)) for ordinal in chosen])


def _timed(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def _mean_and_most(counts: Sequence[int]) -> dict[str, Any]:
    return {"mean": round(statistics.mean(counts), 1), "most": max(counts)}
