"""Reading a plain source with several processes: each takes byte ranges, and the ranges must fit together.

Where pictures are wanted the end of the file goes first, then small ranges spread over it, then what lies
between them, so that early on something is known of the whole trace. Small ranges cost more, so else there
are none but at the end. The result does not depend on it: parts are put in file order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from ..base import errors
from ..base.errors import CacheError, Cancelled, TracelaneError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from .child import Children, ChildrenError, source_facts
from .coarse import write_picture
from .columns import Part
from .columns_of import PartBuilder
from .cut import BLOCK_SIZE, Scanner
from .decode import DECODERS
from .envelope import Envelope, envelope
from .part_file import PartFile, open_part, write_part
from .problem import Problem
from .ranges import RangeEnd, Region, joins, region, within
from .reader import PART_SIZE, ReadResult, add_item, collector_paused, is_full, read_result, text_reader
from .source import Source
from .worker import read_range

RANGES_PER_WORKER = 4
"""At least so many ranges each, so that workers end at about the same time."""
SMALLEST_RANGE = 4 << 20
NUMBERS_PER_RANGE = 1 << 16
"""Part numbers set aside for one range."""
EARLY = 25
"""One such part of the text is read before the rest: what a first picture is made of."""
LAST = 256
"""One such part at the end of the file is read first of all: there names and devices stand."""
SMALLEST_EARLY = 64 << 10
SMALL = 1 << 20
"""Ranges of at most this size are read by the starter too, until the first worker is there."""

Pictured: TypeAlias = Callable[[Path], None]
"""Takes the file of a part's picture; it may be removed afterwards."""


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
    pictured: Pictured | None = None,
    started: Children | None = None,
) -> ReadResult:
    """Read a source into part files with `workers` processes; NotParallel if that cannot be done.

    They are made here unless they were `started` before; either way they are ended.
    `pictured`, where given, is called with the file of each part's picture (see `coarse`) as parts are read.
    Raises CacheError on a full disk, Cancelled. Files of a failed attempt stay in `folder`.
    """
    if not source.file.exists():
        raise NotParallel("its text is not in a file")
    try:
        with started or Children(workers, behind=pictured is not None) as children:
            where = region(source, DECODERS[decoder], block_size)  # while they start
            if where is None:
                raise NotParallel("its events cannot be told apart from its first megabyte")
            share = (where.size - where.begin) // (workers * RANGES_PER_WORKER)
            pieces = where.split(max(1, min(part_size, max(share, min(part_size, SMALLEST_RANGE)))))
            bounds, order = small_last(pieces, workers) if pictured is None else early_first(pieces)
            separator = where.separator
            for number in range(workers):
                children.send(
                    number,
                    {
                        "source": source_facts(source),
                        "folder": str(folder),
                        "decoder": decoder,
                        "block_size": block_size,
                        "separator": [separator.text.hex(), separator.end, separator.begin],
                        "pictures": pictured is not None,
                    },
                )

            def read_here(number: int, tell: Callable[[int, int], None]) -> _Range:
                files, end = read_range(
                    source,
                    folder,
                    _job(number, bounds),
                    decoder=decoder,
                    separator=separator,
                    block_size=block_size,
                    tell=tell,
                    finished=drawn,
                )
                return _Range(*bounds[number], tuple(files), end)

            def drawn(part: Part) -> None:
                if pictured is not None:
                    pictured(write_picture(part, folder))

            ranges = _read_ranges(
                children, bounds, order, source.size, progress, cancelled, pictured, read_here
            )
    except ChildrenError as error:
        raise NotParallel(str(error)) from error
    with collector_paused():
        ranges = _joined(source, folder, where, ranges, decoder, block_size, cancelled)
        tail, told, problems = _behind(source, folder, where, ranges, decoder, block_size, cancelled)
    files = [open_part(file) for one in ranges for file in one.files] + tail
    return read_result(files, told, problems)


def spread(count: int) -> list[int]:
    """Return 0..count-1 with the last first, then in bit-reversed order: early ones lie far apart."""
    if not count:
        return []
    bits = max(1, (count - 1).bit_length())
    order = sorted(range(count - 1), key=lambda number: int(f"{number:0{bits}b}"[::-1], 2))
    return [count - 1, *order]


def early_first(pieces: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Cut the begin of each piece off, and the end of the last; return all ranges in file order.

    And the order in which to read them: the end of the file, the begins, far apart ones first, then the rest.
    """
    bounds: list[tuple[int, int]] = []
    begins, rest = [], []
    size = pieces[-1][1] - pieces[0][0]
    last = pieces[-1][1] - max(SMALLEST_EARLY, size // LAST)
    for a, b in pieces:
        middle = min(b, a + max(SMALLEST_EARLY, (b - a) // EARLY))
        begins.append(len(bounds))
        bounds.append((a, middle))
        if middle < b:
            rest.append(len(bounds))
            bounds.append((middle, b))
    a, b = bounds[-1]
    end = [len(bounds)] if a < last else []
    if end:
        bounds[-1:] = [(a, last), (last, b)]
    order = [*end, *(begins[i] for i in spread(len(begins)))]
    return bounds, [*order, *(rest[i] for i in spread(len(rest)))]


def small_last(pieces: Sequence[tuple[int, int]], workers: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Cut the last pieces smaller, so that workers end at about the same time; return all ranges in file
    order, and the order in which to read them, which is that.
    """
    bounds = list(pieces[:-workers])
    for a, b in pieces[-workers:]:
        count = -(-(b - a) // SMALLEST_RANGE)
        bounds += pairwise([a + (b - a) * i // count for i in range(count + 1)])
    return bounds, list(range(len(bounds)))


def _read_ranges(
    children: Children,
    bounds: Sequence[tuple[int, int]],
    order: Sequence[int],
    size_of_all: int,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
    pictured: Pictured | None,
    read_here: Callable[[int, Callable[[int, int], None]], _Range],
) -> list[_Range]:
    """Let workers read all ranges, in this order, and return them in file order; the first are read here
    while workers start.
    """
    waiting = list(reversed(order))
    found: dict[int, _Range] = {}
    done = events = 0

    def told(size: int, met: int) -> None:
        nonlocal done, events
        done, events = done + size, events + met
        progress(Progress("reading", done, size_of_all, events))

    with collector_paused():
        while waiting and _size(bounds[waiting[-1]]) <= SMALL and children.receive(0.0) is None:
            if cancelled():
                raise Cancelled
            first = waiting.pop()
            found[first] = read_here(first, told)
    for number in range(min(len(children), len(waiting))):
        children.send(number, _job(waiting.pop(), bounds))
    while len(found) < len(bounds):
        if cancelled():
            raise Cancelled
        received = children.receive()
        if received is None:
            continue
        number, message = received
        if "progress" in message:
            told(message["progress"], message["events"])
        elif "picture" in message and pictured is not None:
            pictured(Path(message["picture"]))
        elif "done" in message:
            job = message["done"]
            end = RangeEnd(**message["end"])
            found[job] = _Range(*bounds[job], tuple(map(Path, message["files"])), end)
            if waiting:
                children.send(number, _job(waiting.pop(), bounds))
        elif "failed" in message:
            raise _as_raised(message)
    return [found[job] for job in range(len(bounds))]


def _size(bounds: tuple[int, int]) -> int:
    return bounds[1] - bounds[0]


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
                reader=text_reader(decoder),
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
