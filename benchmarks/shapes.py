"""Traces that are large in one way: one lane, ids or names; what indexing them takes, and how much memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.indexing import COMMITTED
from benchmarks.memory import measured_python

AT_ONCE = 10_000
"""Events that are written at once."""
LANES, IDS, NAMES = 10_000_000, 5_000_000, 1_000_000
"""Slices of one lane, ids of two events each, slices of one name each; of a trace of a gigabyte."""


def _slice(number: int) -> str:
    return f'{{"ph":"X","pid":1,"tid":1,"ts":{number},"dur":0.7,"cat":"cpu_op","name":"work"}}'


def _pair(number: int) -> str:
    both = f'"pid":1,"tid":1,"cat":"a","name":"span","id":{number}'
    return f'{{"ph":"b","ts":{number},{both}}},{{"ph":"e","ts":{number}.5,{both}}}'


def _named(number: int) -> str:
    name = f"void kernel<{number}>()"
    return f'{{"ph":"X","pid":1,"tid":1,"ts":{number},"dur":0.7,"cat":"kernel","name":"{name}"}}'


SHAPES: dict[str, tuple[Callable[[int], str], int]] = {
    "slices of one lane": (_slice, LANES),
    "ids": (_pair, IDS),
    "names": (_named, NAMES),
}


def shapes(folder: Path, size: float, workers: int, index_dir: Path) -> list[dict[str, Any]]:
    """Return what indexing each shape costs; a tenth of a gigabyte has a tenth of what is many."""
    return [_shape(name, folder, size, workers, index_dir) for name in SHAPES]


def _shape(name: str, folder: Path, size: float, workers: int, index_dir: Path) -> dict[str, Any]:
    of, most = SHAPES[name]
    count = max(1, round(most * size / 1e9))
    path = folder / f"{name.replace(' ', '-')}-{count}.json"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(_pieces(of, count))
    os.sync()  # or it would be written while others are measured
    cost = measured_python(COMMITTED, str(path), str(workers), str(index_dir))
    row = {"shape": name, "count": count, "bytes": path.stat().st_size, "cpu_s": round(cost.cpu_s, 2)}
    path.unlink()  # three of them take more room than what is measured
    return {**row, "peak_private_bytes": cost.peak.private}


def _pieces(of: Callable[[int], str], count: int) -> Iterator[str]:
    yield '{"traceEvents":['
    for begin in range(0, count, AT_ONCE):
        yield "," * (begin > 0) + ",\n".join(map(of, range(begin, min(begin + AT_ONCE, count))))
    yield "]}"
