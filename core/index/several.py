"""Indexing several files at once: each by a process of its own, as many at a time as there are cores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import Cancelled, TracelaneError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..ingest.child import Children, ChildrenError
from ..ingest.source import Source, open_source
from .cache import locate

WORKER = "tracelane.core.index.several_worker"
WORTH_IT = 8 << 20
"""Less text than this is indexed in the process that asks: starting others takes longer."""
LEAST_WORK = 256 << 10
"""A file counts as so many bytes at least."""
INFLATED = 8
"""Packed files hold about so many times their size."""


@dataclass(frozen=True)
class _Job:
    path: str | Path
    size: int  # on disk
    work: int  # estimated bytes of text


def index_several(
    paths: Sequence[str | Path],
    *,
    index_dir: Path | None = None,
    decoder: str = "orjson",
    workers: int | None = None,
    force: bool = False,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> frozenset[str | Path]:
    """Write the indexes of those files that have none yet, side by side, and return which were written.

    Files that cannot be indexed are passed over: opening them says why. Raises Cancelled.
    """
    jobs = [job for path in paths if (job := _job(path, index_dir, force)) is not None]
    if len(jobs) < 2 or sum(job.work for job in jobs) < WORTH_IT:
        return frozenset()
    jobs.sort(key=lambda job: job.work)  # the largest is taken first: it is at the end
    cores = workers or os.cpu_count() or 1
    count = max(1, min(cores, len(jobs)))
    if count < 2:
        return frozenset()
    greeting = {
        "index_dir": None if index_dir is None else str(index_dir),
        "decoder": decoder,
        "workers": max(1, cores // count),
        "force": force,
    }
    try:
        return _indexed(jobs, count, greeting, progress, cancelled)
    except ChildrenError:  # no processes to be had: whoever asks goes on alone
        return frozenset()


def _job(path: str | Path, index_dir: Path | None, force: bool) -> _Job | None:
    """Return what there is to do for a file, None where that is nothing, or not for another process."""
    if not os.path.isfile(path):
        return None
    try:
        source: Source = open_source(path)
        place = locate(dict(source.fingerprint), index_dir)
    except (TracelaneError, OSError):
        return None
    if place.temporary or (place.exists() and not force):
        return None
    text = source.size * (1 if source.packing == "plain" else INFLATED)
    return _Job(path, source.size, max(text, LEAST_WORK))


def _indexed(
    jobs: list[_Job],
    count: int,
    greeting: Mapping[str, object],
    progress: ProgressCallback,
    cancelled: CancelledCallback,
) -> frozenset[str | Path]:
    total = sum(job.size for job in jobs)
    written: set[str | Path] = set()
    done: dict[int, int] = {}
    events: dict[int, int] = {}
    finished = 0
    with Children(count, dict(greeting), module=WORKER) as children:
        at: dict[int, _Job] = {}
        running = 0
        for number in range(count):
            at[number] = jobs.pop()
            children.send(number, {"path": str(at[number].path)})
            running += 1
        while running:
            if cancelled():
                raise Cancelled
            received = children.receive()
            if received is None:
                continue
            number, message = received
            if "done" in message:
                done[number], events[number] = int(message["done"]), int(message["events"])
            elif "finished" in message:
                finished += at[number].size
                done[number] = 0
                if message["finished"]:
                    written.add(at[number].path)
                running -= 1
                if jobs:
                    at[number] = jobs.pop()
                    children.send(number, {"path": str(at[number].path)})
                    running += 1
            else:
                continue
            read = finished + sum(done.values())
            progress(Progress("indexing", min(read, total), total, sum(events.values())))
    return frozenset(written)
