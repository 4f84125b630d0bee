"""Search for arguments in a process of its own, so that the viewer goes on answering keys.

    python -m tracelane.core.query.scan_child

Its standard input is a JSON object per line, the first the job: {"folder", "path", "filter", "titles",
"rank", "shifts", "window"}. Every line of standard output is {"positions": in base64, "done", "total"},
the last one {"finished"} or {"failed": a sentence}. It ends when its standard input does.
"""

from __future__ import annotations

import signal
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import U32, AnyArray
from ..base.children import Children, ChildrenError, lines, tell
from ..base.errors import Cancelled, TracelaneError, UnreadableError, UsageError
from ..base.progress import CancelledCallback, never
from ..index.store import Index
from .filter import Filter, parse
from .lookup import rows_of
from .scan import ScanStep, scan
from .search import Search

MODULE = "tracelane.core.query.scan_child"
WORTH = 8 << 20
"""A source of fewer bytes than this is searched faster than a process starts."""


@dataclass(frozen=True)
class ScanJob:
    """A search of one index: titles and clock offsets (ns) of its lanes, and the title of its rank."""

    index: Index
    filter: Filter
    titles: tuple[str, ...]
    rank: str
    shifts: tuple[int, ...]
    window: tuple[int, int] | None  # trace time: what begins or ends in it comes first


def scanned(job: ScanJob, cancelled: CancelledCallback = never) -> Iterator[ScanStep]:
    """Yield what a filter with arguments that are not in columns finds in an index, step by step.

    By a process of its own where there is enough to read and one can be started, else here. Raises Cancelled,
    UnreadableError.
    """
    index = job.index
    is_large = int(index.column("blocks.length").sum()) >= WORTH and index.path != "-"
    children = _started(job) if is_large else None
    if children is None:
        yield from here(job, cancelled)
        return
    with closing(children):
        reported = np.empty(0, np.uint32)
        try:
            for step in _received(children, cancelled):
                reported = np.concatenate((reported, step.positions))
                yield step
            return
        except ChildrenError:
            pass  # killed, by a lack of memory perhaps: all again, in here
    for step in here(job, cancelled):
        yield ScanStep(np.setdiff1d(step.positions, reported, assume_unique=True), step.done, step.total)


def here(job: ScanJob, cancelled: CancelledCallback = never) -> Iterator[ScanStep]:
    search = Search(job.index, job.titles, job.rank, job.filter, cancelled)
    sure, unsure = search.by_columns()
    candidates = unsure
    if search.scanned:
        candidates = np.union1d(sure, unsure) if len(unsure) else sure
    return scan(job.index, search.to_scan(candidates), candidates, _in_window(job, candidates), cancelled)


def _in_window(job: ScanJob, candidates: U32) -> AnyArray:
    """Return which candidates overlap the job's window, as booleans."""
    if job.window is None or not len(candidates):
        return np.zeros(len(candidates), bool)
    index, at = job.index, candidates.astype(np.int64)
    shift = np.array(job.shifts, np.int64)[index.rows["lane"].astype(np.int64)][rows_of(index, at)]
    starts = index.column("slices.start")[at] + shift
    low, high = job.window
    overlap: AnyArray = (starts < high) & (starts + index.duration(at) > low)
    return overlap


def _started(job: ScanJob) -> Children | None:
    message = {
        "folder": str(job.index.folder),
        "path": job.index.path,
        "filter": job.filter.text,
        "titles": job.titles,
        "rank": job.rank,
        "shifts": job.shifts,
        "window": job.window,
    }
    try:
        return Children(1, message, module=MODULE)
    except ChildrenError:
        return None


def _received(children: Children, cancelled: CancelledCallback) -> Iterator[ScanStep]:
    while True:
        if cancelled():
            raise Cancelled
        received = children.receive()
        if received is None:
            continue
        message = received[1]
        if "failed" in message:
            wrong_usage = message["exit_code"] == UsageError.exit_code
            raise (UsageError if wrong_usage else UnreadableError)(str(message["failed"]))
        if "finished" in message:
            return
        positions = np.frombuffer(b64decode(message["positions"]), np.uint32)
        yield ScanStep(positions, int(message["done"]), int(message["total"]))


# -- in the child -------------------------------------------------------------------------------------------


def main() -> int:
    """Do the job that the first line of standard input names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter decides what Ctrl+C means
    try:
        for step in here(_job(next(lines()))):
            encoded = b64encode(step.positions.astype(np.uint32).tobytes()).decode()
            tell({"positions": encoded, "done": step.done, "total": step.total})
    except (TracelaneError, OSError) as error:
        code = error.exit_code if isinstance(error, TracelaneError) else UnreadableError.exit_code
        tell({"failed": str(error), "exit_code": code})
        return 1
    tell({"finished": True})
    return 0


def _job(message: dict[str, Any]) -> ScanJob:
    index = Index.open(Path(message["folder"]))
    index.path = message["path"]
    window = message["window"]
    return ScanJob(
        index,
        parse(message["filter"]),
        tuple(message["titles"]),
        message["rank"],
        tuple(message["shifts"]),
        None if window is None else (window[0], window[1]),
    )


if __name__ == "__main__":
    sys.exit(main())
