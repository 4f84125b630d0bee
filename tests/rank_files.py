"""Small traces of ranks, and their indexing as a test lets it go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.events import complete
from tracelane.core.base.errors import UnreadableError
from tracelane.core.base.progress import Progress
from tracelane.core.index.cached import IndexJob
from tracelane.core.index.captures import Choice
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.opening import Gathering, pays_gathering, resolve_files, states_of
from tracelane.core.index.options import IndexOptions
from tracelane.core.read.source import open_source

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
STEPS = 20


def rank_file(folder: Path, rank: int, world: int, late_us: float = 0.0, begin_us: float = 100.0) -> Path:
    """Write a host lane and a stream of one rank, whose clock is `late_us` behind that of the rank before."""
    folder.mkdir(exist_ok=True)
    at = begin_us - late_us * rank
    events: list[dict[str, Any]] = []
    for n in range(STEPS):
        events.append(complete(at + 1000 * n, 900, f"ProfilerStep#{n}", "user_annotation", pid=50, tid=50))
        events.append(complete(at + 1000 * n + 10, 300, "aten::mm", pid=50, tid=50))
        events.append(complete(at + 1000 * n, 500, REDUCE, "kernel", pid=0, tid=7))
        events.append(complete(at + 1000 * n + 600, 100, f"gemm_{rank}", "kernel", pid=0, tid=7))
    info = {"rank": rank, "world_size": world}
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}), encoding="utf-8")
    return path


def rank_files(folder: Path, world: int, late_us: float = 0.0) -> Path:
    """Write the files of some ranks and return their folder."""
    for rank in range(world):
        rank_file(folder, rank, world, late_us)
    return folder


def straggler_files(folder: Path, world: int, late: int, steps: int = 4) -> Path:
    """Write ranks of a host lane and a stream that meet in a collective in each step, to which the rank
    `late` comes 400 µs after the first; return their folder.
    """
    folder.mkdir(exist_ok=True)
    for rank in range(world):
        delay = 400 if rank == late else rank % 7 * 10
        events: list[dict[str, Any]] = []
        for n in range(steps):
            at = 1000.0 * n
            events.append(complete(at, 990, f"ProfilerStep#{n}", "user_annotation", pid=50, tid=50))
            events.append(complete(at + 5, 200, "aten::mm", pid=50, tid=50))
            events.append(complete(at + 100, 200 + delay, "gemm", "kernel", pid=0, tid=7))
            events.append(complete(at + 300 + delay, 500 - delay, REDUCE, "kernel", pid=0, tid=7))
        info = {"rank": rank, "world_size": world}
        text = json.dumps({"distributedInfo": info, "traceEvents": events})
        (folder / f"rank{rank}.json").write_text(text, encoding="utf-8")
    return folder


def gathering_of(paths: Sequence[Path], options: IndexOptions) -> Gathering | None:
    """Begin to index what paths stand for as the viewer does; None where that is not worth processes."""
    files = resolve_files(paths, Choice(), options.index_dir)
    states = states_of(files, options)
    return Gathering(files, states, options) if pays_gathering(states) else None


class Scripted:
    """An `Indexing` that ends files when the test says so; what is built is built here."""

    def __init__(self, jobs: Sequence[IndexJob], options: IndexOptions, *, stands_back: bool) -> None:
        self.written: list[str] = []
        self.failed: dict[str, Exception] = {}
        self.events: list[str] = []
        self.closed = False
        self.error: Exception | None = None
        self._jobs = {job.path: job for job in jobs}
        self._options = options
        self.stands_back = stands_back
        self._doing: dict[str, Progress] = {}

    @property
    def progress(self) -> Progress:
        total = sum(job.size for job in self._jobs.values())
        return Progress("indexing", total // 4, total, 100)

    def doing(self, path: str) -> Progress | None:
        return self._doing.get(path)

    def await_running(self) -> None:
        pass

    def poll(self, wait: float = 0.0) -> bool:
        if self.error is not None:
            raise self.error
        return len(self.written) + len(self.failed) == len(self._jobs)

    def close(self) -> None:
        self.closed = True

    # -- what the test does ---------------------------------------------------------------------------------

    def read(self, path: Path, stage: str = "reading") -> None:
        """Tell that half of a file was read."""
        size = self._jobs[str(path)].size
        self._doing[str(path)] = Progress(stage, size // 2, size)

    def finish(self, *paths: Path) -> None:
        """Write the indexes of these files."""
        for path in paths:
            ingest_index(open_source(path), self._options).close()
            self._doing.pop(str(path), None)
            self.written.append(str(path))

    def fail(self, path: Path) -> None:
        """Tell that a file is no trace."""
        self.failed[str(path)] = UnreadableError(f"{path}: no trace events in it")
