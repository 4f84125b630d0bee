"""Search for arguments in a process of its own, so that the viewer goes on answering keys.

    python -m tracelane.core.query.scan_child

Its request is {"folder", "path", "filter", "titles", "rank", "shifts", "window"}, each of its answers
{"positions": in base64, "done", "total"}.
"""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..base.arrays import U32, AnyArray, distinct
from ..base.children import ChildFailedError, ChildrenError, Message, answer_request, answers_of
from ..base.errors import UnreadableError, UsageError
from ..base.progress import CancelledCallback, never
from ..index.store import Index
from .filter import Filter, parse
from .lookup import starts_of
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
    reported = np.empty(0, np.uint32)
    if int(index.column("blocks.length").sum()) >= WORTH and index.path != "-":
        try:
            for message in answers_of(MODULE, _request(job), cancelled):
                positions = np.frombuffer(b64decode(message["positions"]), np.uint32)
                reported = np.concatenate((reported, positions))
                yield ScanStep(positions, int(message["done"]), int(message["total"]))
            return
        except ChildFailedError as error:
            wrong_usage = error.exit_code == UsageError.exit_code
            raise (UsageError if wrong_usage else UnreadableError)(str(error)) from None
        except ChildrenError:
            pass  # not started, or killed, by a lack of memory perhaps: all again, in here
    for step in here(job, cancelled):
        yield ScanStep(np.setdiff1d(step.positions, reported, assume_unique=True), step.done, step.total)


def here(job: ScanJob, cancelled: CancelledCallback = never) -> Iterator[ScanStep]:
    search = Search(job.index, job.titles, job.rank, job.filter, cancelled)
    sure, unsure = search.by_columns()
    candidates = unsure
    if search.scanned:
        candidates = distinct(np.concatenate([sure, unsure])) if len(unsure) else sure
    return scan(job.index, search.to_scan(candidates), candidates, _in_window(job, candidates), cancelled)


def _in_window(job: ScanJob, candidates: U32) -> AnyArray:
    """Return which candidates overlap the job's window, as booleans."""
    if job.window is None or not len(candidates):
        return np.zeros(len(candidates), bool)
    index, at = job.index, candidates.astype(np.int64)
    starts = starts_of(index, at, np.array(job.shifts, np.int64))
    low, high = job.window
    overlap: AnyArray = (starts < high) & (starts + index.duration(at) > low)
    return overlap


def _request(job: ScanJob) -> Message:
    return {
        "folder": str(job.index.folder),
        "path": job.index.path,
        "filter": job.filter.text,
        "titles": job.titles,
        "rank": job.rank,
        "shifts": job.shifts,
        "window": job.window,
    }


# -- in the child -------------------------------------------------------------------------------------------


def _answers(request: Message) -> Iterator[Message]:
    for step in here(_job(request)):
        encoded = b64encode(step.positions.astype(np.uint32).tobytes()).decode()
        yield {"positions": encoded, "done": step.done, "total": step.total}


def _job(message: Message) -> ScanJob:
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
    sys.exit(answer_request(_answers))
