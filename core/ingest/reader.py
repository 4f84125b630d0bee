"""Reading a source into parts: in this process and file order, or by workers where that pays.

Both ways yield the same events in the same order; only where parts begin and end differs.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import Cancelled, UnreadableError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from .child import Children, worker_count
from .coarse import write_picture
from .columns import Part
from .columns_of import PartBuilder
from .cut import BLOCK_SIZE, Columnar, Item, Repaired, Scanner
from .decode import DECODERS
from .envelope import Envelope
from .ledger import NO_EVENTS, add_counts, merge_problems
from .part_file import PartFile, open_part, write_part
from .problem import Problem
from .source import Source
from .text.reader import STRETCH_SIZE, TextReader

PART_SIZE = 16 << 20
"""Bytes of text per part."""
PART_WEIGHT = 12 << 20
"""A part ends early when its strings and metadata take about so much memory."""
MOST_EVENTS = 1 << 20
"""A part ends early at so many elements, however short they are."""
FIRST_PART = 4 << 20
"""Bytes of text in the first part where pictures are drawn: the first of them is to come soon."""
PROGRESS_BYTES = 4 << 20


@dataclass(frozen=True)
class ReadResult:
    """What reading a whole source came to; parts in file order."""

    parts: tuple[PartFile, ...]
    envelope: Envelope
    events: int
    counts: dict[str, int]
    problems: tuple[Problem, ...]
    sequential_because: str = ""  # why only one process read it, where more were asked for


class Reading:
    """Iterate once for the parts of a source in file order; then `envelope`, `problems` and `found` hold."""

    def __init__(
        self,
        source: Source,
        *,
        decoder: str = "orjson",
        part_size: int = PART_SIZE,
        block_size: int = BLOCK_SIZE,
        first_part: int | None = None,
        progress: ProgressCallback = no_progress,
        cancelled: CancelledCallback = never,
    ) -> None:
        """Prepare to read; the source is opened when the iteration begins.

        With `first_part` the first part is that small; each further one is twice as large, up to `part_size`.
        """
        self.envelope = Envelope()
        self.problems: list[Problem] = []
        self.found = False
        self._source = source
        self._decode = DECODERS[decoder]
        self._text_reader = text_reader(decoder)
        self._part_size = part_size
        self._first_part = part_size if first_part is None else first_part
        self._block_size = block_size
        self._progress = progress
        self._cancelled = cancelled

    def __iter__(self) -> Iterator[Part]:
        stream = self._source.open()
        try:
            scanner = Scanner(
                stream,
                self._decode,
                self._block_size,
                reader=self._text_reader,
                stretch=min(STRETCH_SIZE, self._first_part, self._part_size),
            )
            builder = PartBuilder(0)
            size, events, told = self._first_part, 0, 0
            for item in scanner:
                if self._cancelled():
                    raise Cancelled
                add_item(builder, item)
                full = is_full(builder, min(size, self._part_size))
                if full or builder.bytes - told >= PROGRESS_BYTES:
                    told = builder.bytes
                    done, known = stream.position_on_disk(), self._source.size or None
                    self._progress(Progress("reading", done, known, events + builder.events))
                if full:
                    events += builder.events
                    yield builder.finish()
                    builder = PartBuilder(builder.number + 1)
                    size, told = 2 * size, 0
            if builder.events or builder.number == 0:
                yield builder.finish()
            self.found = scanner.found
            self.envelope = scanner.envelope
            self.problems = [*scanner.problems, *([stream.damage] if stream.damage else [])]
        finally:
            stream.close()


def text_reader(decoder: str) -> TextReader | None:
    """Return what reads text as columns; None beside the reference decoder, whose result must be its own."""
    return TextReader() if decoder == "orjson" else None


def add_item(builder: PartBuilder, item: Item) -> None:
    """Add what a scanner yields to a part."""
    if isinstance(item, Columnar):
        builder.add_text(item.offset, item.read)
        return
    block = item.block
    if isinstance(item, Repaired):
        builder.add(block.offset, block.data, item.events, repaired=True, length=block.length)
        for problem in item.problems:
            builder.report(problem)
    else:
        builder.add(block.offset, block.data, item.events)


def is_full(builder: PartBuilder, part_size: int) -> bool:
    """Whether a part is to be finished before the next block."""
    return builder.bytes >= part_size or builder.weight >= PART_WEIGHT or builder.events >= MOST_EVENTS


def read_parts(
    source: Source,
    decoder: str = "orjson",
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Reading:
    """Return the parts of a source as an iterable, read in this process; see `Reading`."""
    return Reading(source, decoder=decoder, progress=progress, cancelled=cancelled)


def read_to_folder(
    source: Source,
    folder: Path,
    *,
    decoder: str = "orjson",
    workers: int | None = None,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
    pictured: Callable[[Path], None] | None = None,
    started: Children | None = None,
) -> ReadResult:
    """Read a source into part files in `folder`, with worker processes where that pays.

    `pictured`, where given, is called with the file of each part's picture (see `coarse`) as parts are read;
    `started` are workers that have been started already.

    Sound JSON without events is an empty trace with a problem. Raises UnreadableError where neither an event
    nor that stands in the source, CacheError on a full disk, Cancelled.
    """
    count = worker_count(source, workers)
    why = ""
    if count > 1:
        from .parallel import NotParallel, read_in_parallel

        try:
            return read_in_parallel(
                source,
                folder,
                decoder=decoder,
                workers=count,
                progress=progress,
                cancelled=cancelled,
                pictured=pictured,
                started=started,
            )
        except NotParallel as reason:
            why = str(reason)
            for file in folder.glob("part-*"):
                file.unlink()
    first = None if pictured is None else FIRST_PART
    reading = Reading(source, decoder=decoder, first_part=first, progress=progress, cancelled=cancelled)
    files = []
    with collector_paused():
        for part in reading:
            files.append(open_part(write_part(part, folder)))
            if pictured is not None:
                pictured(write_picture(part, folder))
    problems = reading.problems
    if not reading.found:
        if problems:
            raise UnreadableError(f"{source.path}: no trace events in it")
        problems = [Problem(NO_EVENTS, 1, None, "sound JSON, but without an array of traceEvents")]
    return read_result(files, reading.envelope, problems, why)


def read_result(
    files: list[PartFile], envelope: Envelope, problems: list[Problem], why: str = ""
) -> ReadResult:
    """Return the books over all parts; `problems` are those that belong to no part."""
    counts = add_counts([*(file.counts for file in files), {p.kind: p.count for p in problems}])
    everything = merge_problems([*(file.problems for file in files), problems])
    return ReadResult(tuple(files), envelope, sum(file.events for file in files), counts, everything, why)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from going through millions of decoded objects that have no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
