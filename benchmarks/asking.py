"""A command that answers a question about a trace: the first time, and with its answer beside the index."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path
from typing import Any

from benchmarks.indexing import TRACELANE
from benchmarks.memory import Cost, measured_python
from tracelane.core.index.version import DERIVED


def asked_twice(command: str, trace: Path, index_dir: Path, rounds: int) -> dict[str, Any]:
    """Return what a command takes the first time that it is asked of an indexed trace, and again: medians."""
    runs: dict[str, list[Cost]] = {"first": [], "again": []}
    for _ in range(rounds):
        forget_answers(index_dir)
        for costs in runs.values():
            arguments = (command, str(trace), "--index-dir", str(index_dir))
            costs.append(measured_python(TRACELANE, *arguments, watched=False))
    return {
        "command": command,
        "bytes": trace.stat().st_size,
        **{name: _median(costs) for name, costs in runs.items()},
    }


def forget_answers(index_dir: Path) -> None:
    """Remove what was computed of the traces that are indexed there."""
    for folder in index_dir.glob(f"*/*/{DERIVED}"):
        shutil.rmtree(folder)


def _median(costs: list[Cost]) -> dict[str, float]:
    return {
        "seconds": round(statistics.median(each.seconds for each in costs), 2),
        "cpu_s": round(statistics.median(each.cpu_s for each in costs), 2),
    }
