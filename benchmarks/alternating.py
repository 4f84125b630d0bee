"""Reading a trace, by tracelane and by others, in turns: each in a process of its own, the median counts."""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.forms import FORMS
from benchmarks.indexing import committed
from benchmarks.made_trace import write_made_trace
from benchmarks.memory import free_memory, measured, measured_python

ENGINE = "TRACELANE_PERFETTO"
"""Names the script that runs Perfetto's engine under node: it prints JSON with `total_s` and `rssMB`."""
ENGINE_MEMORY = 3
"""Bytes of memory that the engine may need per byte of text."""
EXCERPT = 60_000_000
IJSON = f"""
import sys, ijson
class Head:
    def __init__(self, file): self.file, self.left = file, {EXCERPT}
    def read(self, size=-1):
        data = self.file.read(min(size, self.left) if size >= 0 else self.left)
        self.left -= len(data)
        return data
try:
    for _ in ijson.items(Head(open(sys.argv[1], "rb")), "traceEvents.item", use_float=True): pass
except ijson.IncompleteJSONError: pass
"""


@dataclass(frozen=True)
class Run:
    """What one run took; 0 MB where its memory was not looked at."""

    seconds: float
    resident_mb: int = 0


@dataclass(frozen=True)
class Contestant:
    """A way to read the trace; `missing` says why it is left out."""

    name: str
    text: int  # bytes of JSON
    run: Callable[[], Run]
    missing: str = ""


def alternating(
    folder: Path, size: float, threads: int, index_dir: Path, rounds: int
) -> list[dict[str, Any]]:
    """Return the median seconds of each contestant on a made trace of so many bytes, and all of them."""
    paths = {}
    for form, (name, options) in FORMS.items():
        paths[form] = folder / f"made-{size:.0f}-{name}"
        if not paths[form].exists():
            write_made_trace(paths[form], size=size, **options)
    os.sync()  # or it would be written while others are measured
    plain = next(iter(paths.values()))
    text = plain.stat().st_size
    contestants = [
        Contestant(f"tracelane, {form}", size, _indexing(path, threads, index_dir, size))
        for form, path in paths.items()
        for size in (text if path.suffix == ".gz" else path.stat().st_size,)
    ]
    contestants.append(Contestant("tracelane, one thread", text, _indexing(plain, 1, index_dir, text)))
    contestants.append(Contestant("ijson.items, the first 60 MB scaled", text, _ijson(plain, text)))
    contestants.append(_engine(plain, text))
    runs: dict[str, list[Run]] = {each.name: [] for each in contestants}
    for _ in range(rounds):
        for each in contestants:
            if not each.missing:
                runs[each.name].append(each.run())
    return [_result(each, runs[each.name]) for each in contestants]


def _result(contestant: Contestant, runs: list[Run]) -> dict[str, Any]:
    if contestant.missing:
        return {"name": contestant.name, "not_run": contestant.missing}
    seconds = sorted(round(run.seconds, 2) for run in runs)
    median = statistics.median(run.seconds for run in runs)
    resident = max(run.resident_mb for run in runs)
    return {
        "name": contestant.name,
        "seconds": round(median, 2),
        "mb_per_s": round(contestant.text / 1e6 / median, 1),
        "seconds_of_all": seconds,
        **({"resident_mb": resident} if resident else {}),
    }


def _indexing(path: Path, threads: int, index_dir: Path, text: int) -> Callable[[], Run]:
    return lambda: Run(float(committed(path, threads, index_dir, text)["seconds"]))


def _ijson(path: Path, text: int) -> Callable[[], Run]:
    scale = max(1.0, text / EXCERPT)
    return lambda: Run(measured_python(IJSON, str(path), watched=False).seconds * scale)


def _engine(path: Path, text: int) -> Contestant:
    """Return Perfetto's engine, or why it is left out."""
    name = "Perfetto's engine, as its page runs it"
    script, node = os.environ.get(ENGINE, ""), shutil.which("node")
    missing = ""
    if not Path(script).is_file():
        missing = f"left out: {ENGINE} names no script that runs it"
    elif node is None:
        missing = "left out: there is no node"
    elif text * ENGINE_MEMORY > free_memory():
        missing = "left out: it needs more memory than there is"

    def run() -> Run:
        output = json.loads(measured([node or "node", script, str(path)], watched=False).output)
        return Run(float(output["total_s"]), int(output.get("rssMB", 0)))

    return Contestant(name, text, run, missing)
