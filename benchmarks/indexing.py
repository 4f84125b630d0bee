"""Indexing: how fast, with how much memory, and how large the index is."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.memory import measured_python
from tracelane.core.trace import open_trace

TRACELANE = "import sys; from tracelane.tui.cli.main import main; sys.exit(main(sys.argv[1:]))"
COMMITTED = (
    "import sys; from pathlib import Path; from tracelane.core.index.indexing import ingest_index\n"
    "from tracelane.core.read.source import open_source\n"
    "from tracelane.core.index.options import IndexOptions\n"
    "options = IndexOptions(Path(sys.argv[3]), threads=int(sys.argv[2]), force=True)\n"
    "ingest_index(open_source(sys.argv[1]), options)"
)
TEXT_COLUMNS = ("strings.", "derived")
"""Files of an index that are counted apart: names and texts, and what is written after it."""


@dataclass(frozen=True)
class Indexed:
    """One run of `tracelane index`."""

    workers: int
    run: dict[str, Any]  # what it cost
    facts: dict[str, Any]  # what it said
    text_bytes: int  # of the JSON, inflated
    folder: Path  # where the index lies


def indexed(trace: Path, workers: int, index_dir: Path, watched: bool = True) -> Indexed:
    """Index a trace anew with so many processes; for its time alone they are not to be watched."""
    arguments = ["index", str(trace), "--force", "--json", "--threads", str(workers)]
    cost = measured_python(TRACELANE, *arguments, "--index-dir", str(index_dir), watched=watched)
    with contextlib.closing(open_trace(trace, index_dir=index_dir)) as opened:
        index = opened.indexes[0]
        text = int(index.column("blocks.offset")[-1] + index.column("blocks.length")[-1])
        folder = Path(index.folder)
    run = {
        "seconds": round(cost.seconds, 2),
        "cpu_s": round(cost.cpu_s, 2),
        "mb_per_s": round(text / 1e6 / cost.seconds, 1),
        "peak_private_bytes": cost.peak.private,
        "peak_proportional_bytes": cost.peak.proportional,
    }
    return Indexed(workers, run, json.loads(cost.output), text, folder)


def committed(trace: Path, workers: int, index_dir: Path, text_bytes: int) -> dict[str, Any]:
    """Return what it costs to index a trace anew up to the committed index, without what follows it."""
    cost = measured_python(COMMITTED, str(trace), str(workers), str(index_dir), watched=False)
    return {
        "seconds": round(cost.seconds, 2),
        "cpu_s": round(cost.cpu_s, 2),
        "mb_per_s": round(text_bytes / 1e6 / cost.seconds, 1),
    }


def indexing(trace: Path, workers: Sequence[int], index_dir: Path, rounds: int) -> dict[str, Any]:
    """Return what indexing a trace costs with so many processes each; the index stays.

    The speed of a machine that others share wavers: all are measured in turns, and the median counts. The
    memory is that of runs of their own.
    """
    done = [indexed(trace, count, index_dir) for count in workers]
    last = done[-1]
    times: dict[int, list[dict[str, Any]]] = {count: [] for count in workers}
    for _ in range(rounds):
        for count in workers:
            times[count].append(indexed(trace, count, index_dir, watched=False).run)
    sizes = {path.relative_to(last.folder).as_posix(): path.stat().st_size for path in files_of(last.folder)}
    texts = sum(size for name, size in sizes.items() if name.startswith(TEXT_COLUMNS))
    slices = max(1, last.facts["slices"])
    return {
        "trace": trace.name,
        "bytes": trace.stat().st_size,
        "text_bytes": last.text_bytes,
        "events": last.facts["events"],
        "slices": last.facts["slices"],
        "workers": {str(each.workers): median_run(times[each.workers], each.run) for each in done},
        "index_bytes": sum(sizes.values()),
        "index_bytes_per_slice": round((sum(sizes.values()) - texts) / slices, 1),
        "apart_bytes_per_slice": round(texts / slices, 1),
    }


def larger(small: Path, large: Path, workers: int, index_dir: Path, rounds: int) -> dict[str, Any]:
    """Return what indexing a large trace costs, and how much processor time a MB of it takes beside one of a
    small trace, in turns; the memory is that of a run of its own.
    """
    watched = indexed(large, workers, index_dir)
    runs: dict[Path, list[dict[str, Any]]] = {small: [], large: []}
    text_bytes = {large: watched.text_bytes}
    for _ in range(rounds):
        for trace, times in runs.items():
            once = indexed(trace, workers, index_dir, watched=False)
            text_bytes[trace] = once.text_bytes
            times.append(once.run)
    per_mb = {
        trace: statistics.median(run["cpu_s"] for run in times) / text_bytes[trace] * 1e9
        for trace, times in runs.items()
    }
    return {
        "bytes": text_bytes[large],
        "small_bytes": text_bytes[small],
        "events": watched.facts["events"],
        "slices": watched.facts["slices"],
        "workers": workers,
        **median_run(runs[large], watched.run),
        "cpu_ms_per_mb": round(per_mb[large], 2),
        "small_cpu_ms_per_mb": round(per_mb[small], 2),
    }


def median_run(runs: list[dict[str, Any]], watched: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the run of middle duration, with the memory of one that was watched."""
    runs = sorted(runs, key=lambda run: float(run["seconds"]))
    memory = {key: value for key, value in (watched or {}).items() if key.startswith("peak")}
    return {**runs[len(runs) // 2], **memory, "seconds_of_all": [run["seconds"] for run in runs]}


def files_of(folder: Path) -> list[Path]:
    """Return all files of an index."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
