"""Reading a plain source with several processes: each takes byte ranges, and the ranges must fit together.

The last range goes first and the others in spread order, so that early on something is known of the whole
trace. The result does not depend on it: parts are put in file order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import errors
from ..base.errors import CacheError, Cancelled, TracelaneError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from .child import Children, ChildrenError
from .columns import Problem
from .columns_of import PartBuilder
from .cut import BLOCK_SIZE, Scanner
from .decode import DECODERS
from .envelope import Envelope, envelope
from .part_file import PartFile, open_part, write_part
from .ranges import RangeEnd, Region, joins, region, within
from .reader import PART_SIZE, ReadResult, add_item, collector_paused, is_full, read_result
from .source import Source
from .worker import read_range, source_facts

RANGES_PER_WORKER = 4
"""At least so many ranges each, so that workers end at about the same time."""
SMALLEST_RANGE = 4 << 20
NUMBERS_PER_RANGE = 1 << 16
"""Part numbers set aside for one range."""


class NotParallel(Exception):  # noqa: N818 - a reason, not an error
    """The source cannot be read by several processes here; the message says why."""


@dataclass(frozen=True)
class _Range:
    """A range as read: which bytes it stands for, its part files, and how it ended."""

    a: int
    b: int
    files: tuple[Path, ...]
    end: RangeEnd


def read_in_parallel(
    source: Source,
    folder: Path,
    *,
    workers: int,
    decoder: str = "orjson",
    part_size: int = PART_SIZE,
    block_size: int = BLOCK_SIZE,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> ReadResult:
    """Read a source into part files with `workers` processes; NotParallel if that cannot be done.

    Raises CacheError on a full disk, Cancelled. Files of a failed attempt stay in `folder`.
    """
    if not source.file.exists():
        raise NotParallel("its text is not in a file")
    where = region(source, DECODERS[decoder], block_size)
    if where is None:
        raise NotParallel("its events cannot be told apart from its first megabyte")
    share = (where.size - where.begin) // (workers * RANGES_PER_WORKER)
    bounds = where.split(max(1, min(part_size, max(share, min(part_size, SMALLEST_RANGE)))))
    ranges = _read_ranges(source, folder, where, bounds, workers, decoder, block_size, progress, cancelled)
    with collector_paused():
        ranges = _joined(source, folder, where, ranges, decoder, block_size, cancelled)
        tail, told, problems = _behind(source, folder, where, ranges, decoder, block_size, cancelled)
    files = [open_part(file) for one in ranges for file in one.files] + tail
    return read_result(files, told, problems)


def spread(count: int) -> list[int]:
    """Return 0..count-1 with the last first, then in bit-reversed order: early ones lie far apart."""
    bits = max(1, (count - 1).bit_length())
    order = sorted(range(count - 1), key=lambda number: int(f"{number:0{bits}b}"[::-1], 2))
    return [count - 1, *order]


def _read_ranges(
    source: Source,
    folder: Path,
    where: Region,
    bounds: Sequence[tuple[int, int]],
    workers: int,
    decoder: str,
    block_size: int,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
) -> list[_Range]:
    """Let workers read all ranges and return them in file order."""
    separator = where.separator
    greeting = {
        "source": source_facts(source),
        "folder": str(folder),
        "decoder": decoder,
        "block_size": block_size,
        "separator": [separator.text.hex(), separator.end, separator.begin],
    }
    waiting = spread(len(bounds))[::-1]
    found: dict[int, _Range] = {}
    done = events = 0
    try:
        with Children(min(workers, len(bounds)), greeting) as children:
            for number in range(len(children)):
                children.send(number, _job(waiting.pop(), bounds))
            while len(found) < len(bounds):
                if cancelled():
                    raise Cancelled
                received = children.receive()
                if received is None:
                    continue
                number, message = received
                if "progress" in message:
                    done += message["progress"]
                    events += message["events"]
                    progress(Progress("reading", done, source.size, events))
                elif "done" in message:
                    job = message["done"]
                    end = RangeEnd(**message["end"])
                    found[job] = _Range(*bounds[job], tuple(map(Path, message["files"])), end)
                    if waiting:
                        children.send(number, _job(waiting.pop(), bounds))
                elif "failed" in message:
                    raise _as_raised(message)
    except ChildrenError as error:
        raise NotParallel(str(error)) from error
    return [found[job] for job in range(len(bounds))]


def _job(number: int, bounds: Sequence[tuple[int, int]]) -> dict[str, Any]:
    a, b = bounds[number]
    return {"job": number, "first": number == 0, "a": a, "b": b, "number": number * NUMBERS_PER_RANGE}


def _as_raised(message: dict[str, Any]) -> TracelaneError:
    """Return the error that a worker reports."""
    kind = getattr(errors, message["failed"], CacheError)
    error: TracelaneError = kind(message["message"])
    return error


def _joined(
    source: Source,
    folder: Path,
    where: Region,
    ranges: list[_Range],
    decoder: str,
    block_size: int,
    cancelled: CancelledCallback,
) -> list[_Range]:
    """Read again as one what was cut at a wrong place, and drop what lies behind the event array."""
    spare = len(ranges) * NUMBERS_PER_RANGE
    while runs := joins([one.end for one in ranges]):
        for first, last in reversed(runs):
            if cancelled():
                raise Cancelled
            for one in ranges[first : last + 1]:
                _remove(one)
            job = {"a": ranges[first].a, "b": ranges[last].b, "first": first == 0, "number": spare}
            files, end = read_range(
                source,
                folder,
                job,
                decoder=decoder,
                separator=where.separator,
                block_size=block_size,
                tell=lambda size, events: None,
            )
            spare += NUMBERS_PER_RANGE
            ranges[first : last + 1] = [_Range(job["a"], job["b"], tuple(files), end)]
    kept = within([one.end for one in ranges])
    for one in ranges[kept:]:
        _remove(one)
    return ranges[:kept]


def _remove(one: _Range) -> None:
    for file in one.files:
        file.unlink()


def _behind(
    source: Source,
    folder: Path,
    where: Region,
    ranges: Sequence[_Range],
    decoder: str,
    block_size: int,
    cancelled: CancelledCallback,
) -> tuple[list[PartFile], Envelope, list[Problem]]:
    """Read what stands behind the event array: more keys, perhaps more documents with events."""
    last = ranges[-1].end
    problems = list(where.head.problems)
    if last.array_end is None:
        if where.form == "object":
            message = "the file ends within the event array; what was whole has been read"
            problems.append(Problem("truncated", 1, last.end, message))
        return [], envelope(where.values, where.form), problems
    stream = source.open(last.array_end)
    files: list[PartFile] = []
    try:
        scanner = Scanner(stream, DECODERS[decoder], block_size, behind_array=where.form)
        builder = PartBuilder((1 << 30) + 1)
        for item in scanner:
            if cancelled():
                raise Cancelled
            add_item(builder, item)
            if is_full(builder, PART_SIZE):
                files.append(open_part(write_part(builder.finish(), folder)))
                builder = PartBuilder(builder.number + 1)
        if builder.events:
            files.append(open_part(write_part(builder.finish(), folder)))
    finally:
        stream.close()
    told = scanner.envelope
    values = {**where.values, **told.values}
    return files, envelope(values, told.form), [*problems, *scanner.problems]
