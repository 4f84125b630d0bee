"""Reading a source: chunk by chunk, by as many threads as there are cores, into batches in file order.

The native scanner lets other threads run while it works.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

from ..base.errors import Cancelled, UnreadableError, UsageError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..base.threads import BackgroundThread, usual_threads
from ..native.library import native_library
from .batch import PLAIN_SCALE, Batch, ColumnBuffers, PlainNumbering, StringTable, TimeScale
from .batch_store import BatchStore, store_batch
from .checkpoints import CheckpointLog
from .chunks import CHUNK_SIZE, MAX_EVENT_LENGTH, ChunkReader, ReadChunk
from .documents import TRUNCATED, Documents
from .envelope import Envelope
from .origin import other_origin
from .packed_text import PackedTextLog
from .problem import (
    CORRUPT,
    DAMAGED,
    NO_EVENTS,
    OTHER_TEXT,
    SOUND,
    UNVERIFIED,
    Problem,
    add_counts,
    merge_problems,
)
from .promoted import PromotedTable
from .scan_native import NativeScanner
from .scan_reference import NewScanner, ReferenceScanner, ScanWatch
from .source import Source
from .text_source import TextSource, text_source

NATIVE, PYTHON = "native", "python"
THREADS_FROM = 16 << 20
"""Smaller sources are read by one thread."""
POLL_S = 0.02
"""So often it is asked whether the source is still wanted."""
CUT_THERE = "what comes behind that is not read"
RELEASE_BEHIND = 1 << 20
"""Inflated text is held so far behind where reading stands: damage is judged by what stands around it."""


class ReadResult(NamedTuple):
    """What reading a whole source came to; batches in file order."""

    batches: tuple[Batch, ...]
    tables: tuple[StringTable, ...]  # by reading thread, see `Batch.table`
    envelope: Envelope
    events: int
    counts: dict[str, int]
    problems: tuple[Problem, ...]
    decoder: str  # NATIVE or PYTHON: which scanner read
    origin_ns: int = 0  # what times count from
    checkpoints: CheckpointLog | None = None  # where inflating the text can begin
    packed_text: PackedTextLog | None = None  # the text itself, where it is read only once


class OtherOriginError(Exception):
    """Reading ended early, as more times are exact where they count from another origin."""

    def __init__(self, origin_ns: int) -> None:
        super().__init__()
        self.origin_ns = origin_ns


class _Job(NamedTuple):
    """A chunk of array number `array` that is to be read: from `begin`, or from what looks like an event."""

    array: int
    number: int
    begin: int | None


DECODER_VARIABLE = "TRACELANE_DECODER"
"""The environment variable that chooses the scanner: "native" or "python", which takes far longer."""


def scanner_name(decoder: str) -> str:
    """Return which scanner reads where `decoder` is asked for: the plain one where there is no library, or
    where the environment says so.
    """
    name = os.environ.get(DECODER_VARIABLE) or decoder
    if name not in (NATIVE, PYTHON):
        raise UsageError(f"{DECODER_VARIABLE} is {NATIVE} or {PYTHON}, not {name!r}")
    return NATIVE if PYTHON not in (name, decoder) and native_library().functions is not None else PYTHON


def new_scanner(decoder: str, promoted: PromotedTable, scale: TimeScale = PLAIN_SCALE) -> NewScanner:
    def make(watch: ScanWatch) -> ReferenceScanner:
        if decoder == NATIVE:
            return NativeScanner(promoted, watch, scale)
        return ReferenceScanner(ColumnBuffers(promoted, scale), PlainNumbering(), watch)

    return make


class ReadOptions(NamedTuple):
    """How a source is read; what comes of it does not depend on this."""

    decoder: str = NATIVE
    threads: int | None = None  # as many as there are cores
    chunk_size: int = CHUNK_SIZE  # bytes that a thread reads at once
    longest: int = MAX_EVENT_LENGTH  # bytes; longer events are counted and passed over
    origin_ns: int | None = None  # what times count from; None: from 0, OtherOriginError where that is wrong


DEFAULT_READ_OPTIONS = ReadOptions()


class SourceReading:
    """One source being read; a context manager that leaves no thread behind."""

    def __init__(
        self,
        source: Source,
        store: BatchStore,
        options: ReadOptions = DEFAULT_READ_OPTIONS,
        progress: ProgressCallback = no_progress,
        cancelled: CancelledCallback = never,
    ) -> None:
        """Open the source and begin to read it into batches, whose columns lie in `store`."""
        self._store = store
        self.decoder = scanner_name(options.decoder)
        self._source, self._origin = source, options.origin_ns or 0
        self._may_move = options.origin_ns is None
        self._chunk_size = options.chunk_size
        self._promoted = PromotedTable()
        self._progress = progress
        self._cancelled = cancelled
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._results: SimpleQueue[ReadChunk | BaseException] = SimpleQueue()
        self._checkpoints = CheckpointLog(store.others) if source.has_checkpoints else None
        is_kept = not source.seekable and source.kind != "stdin"
        self._packed_text = PackedTextLog(store.others, source.text_start) if is_kept else None
        self._text: TextSource = text_source(source, self._checkpoints, self._packed_text)
        scale = TimeScale(source.time_digits, self._origin)
        # Python's own scanner runs in one thread at a time anyway.
        alone = self.decoder == PYTHON or (source.seekable and source.size < THREADS_FROM)
        threads = usual_threads() if options.threads is None else options.threads
        self._readers = [
            ChunkReader(
                self._text,
                new_scanner(self.decoder, self._promoted, scale),
                thread=thread,
                chunk_size=options.chunk_size,
                longest=options.longest,
            )
            for thread in range(1 if alone else threads)
        ]
        self._events = 0
        self._ahead: int | None = None
        self._cut: int | None = None
        """Where reading ended, as packed data is damaged and the text is garbage."""
        self._threads: list[BackgroundThread] = []
        try:
            for reader in self._readers:
                self._threads.append(BackgroundThread(partial(self._serve, reader)))
        except MemoryError:
            self.__exit__()
            raise

    def __enter__(self) -> SourceReading:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers:
            reader.watch.cancel[0] = 1
        for _thread in self._threads:
            self._jobs.put(None)
        self._text.stop()
        for thread in self._threads:
            thread.join()
        self._text.close()

    def read(self) -> ReadResult:
        """Read everything. Sound JSON without events is an empty trace with a problem. Raises UnreadableError
        where neither an event nor that stands in the source, CacheError on a full disk, OtherOriginError,
        Cancelled.
        """
        documents = Documents(self._text)
        batches: list[Batch] = []
        begin, count = self._next_array(documents), 0
        while begin is not None:
            self._ahead = None
            end, closed = self._read_array(begin, count, batches)
            if self._cut is not None:
                break
            begin, count = self._next_array(documents, end, closed=closed), count + 1
        self._check_origin(batches)
        is_told = any(problem.kind == "truncated" for batch in batches for problem in batch.problems)
        around = [one for one in documents.problems if not (is_told and one.message == TRUNCATED)]
        problems = merge_problems([around, self._problems_of_packing()])
        if not documents.form or (self._cut is not None and not batches):
            if damage := [one for one in problems if one.kind in (DAMAGED, UNVERIFIED)]:
                raise UnreadableError(
                    f"{self._source.path}: no trace events before this: {damage[0].message}"
                )
            if problems:
                raise UnreadableError(f"{self._source.path}: no trace events in it")
            problems = (Problem(NO_EVENTS, 1, None, "sound JSON, but without an array of traceEvents"),)
        events = sum(batch.events for batch in batches)
        counts = add_counts([*(batch.counts for batch in batches), {p.kind: p.count for p in problems}])
        if (counts.get("unreadable") or counts.get(OTHER_TEXT)) and events == counts.get("not_object", 0):
            # Prose and source code have brackets, too.
            raise UnreadableError(f"{self._source.path}: no trace events in it")
        self._tell()
        return ReadResult(
            tuple(batches),
            tuple(reader.scanner.table() for reader in self._readers),
            documents.envelope,
            events,
            counts,
            merge_problems([*(batch.problems for batch in batches), problems]),
            self.decoder,
            self._origin,
            self._checkpoints,
            self._packed_text,
        )

    def _check_origin(self, batches: Sequence[Batch]) -> None:
        origin = other_origin(batches) if self._may_move else 0
        if origin:
            raise OtherOriginError(origin)

    def _next_array(self, documents: Documents, end: int = 0, *, closed: bool = False) -> int | None:
        """Return where the next array may begin; None, too, where what stands before it is garbage."""
        before = len(documents.problems)
        begin = documents.next(end, closed=closed)
        if len(documents.problems) > before and self._text.doubt() == CORRUPT:
            self._cut = documents.problems[before].offset
            return None
        return begin

    def _problems_of_packing(self) -> list[Problem]:
        """Return what is wrong with packed data; where reading ended for it, where in the file that was."""
        problems = self._text.problems
        if self._cut is None:
            return problems
        at = self._source.position_on_disk(self._cut)
        kinds = (DAMAGED, UNVERIFIED)
        words = f"the compressed data is damaged at byte {at:,} of the file: copy the file again; {CUT_THERE}"
        return [Problem(DAMAGED, 1, at, words), *(one for one in problems if one.kind not in kinds)]

    # -- threads -------------------------------------------------------------------------------------------

    def _serve(self, reader: ChunkReader) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                chunk = reader.read(job.number, job.begin)
                batch = replace(chunk.batch, number=job.number << 16 | job.array & 0xFFFF)
                self._results.put(chunk._replace(batch=store_batch(batch, self._store)))
            except BaseException as error:
                self._results.put(error)

    # -- one array -----------------------------------------------------------------------------------------

    def _read_array(self, begin: int, array: int, batches: list[Batch]) -> tuple[int, bool]:
        """Read the events from `begin` on into batches; return where they end, and whether in a bracket."""
        number = begin // self._chunk_size  # the chunk that is next in file order, and where it begins
        jobs = self._chunks(number)
        again: deque[_Job] = deque([_Job(array, number, begin)])
        results: dict[int, ReadChunk] = {}
        running: dict[int, int] = {}  # where the text begins that each chunk is read from
        while True:
            while len(running) <= len(self._threads):  # one more waits, so that nobody waits for it
                job = again.popleft() if again else self._next_job(jobs, array, number, begin)
                if job is None:
                    break
                running[job.number] = self._chunk_size * job.number if job.begin is None else job.begin
                self._jobs.put(job)
            if not running:
                return begin, False  # the text ended otherwise than its size said
            result = self._result()
            del running[result.number]
            results[result.number] = result
            while (done := results.get(number)) is not None:
                if done.begin != begin:  # the chunk was cut where no event begins
                    del results[number]
                    again.append(_Job(array, number, begin))
                    break
                if done.in_doubt and self._text.doubt() > SOUND:
                    del results[number]
                    again.append(_Job(array, number, begin))
                    break
                del results[number]
                self._text.release(min([done.end, *running.values()]) - RELEASE_BEHIND)
                if done.batch.events or done.batch.problems:
                    batches.append(done.batch)
                    if len(batches) == 1:
                        self._check_origin(batches)
                if done.is_broken:
                    self._cut = done.end
                if done.closed or done.ended:
                    for _ in running:
                        self._result()
                    return done.end, done.closed
                number, begin = number + 1, done.end

    def _chunks(self, first: int) -> Iterator[int]:
        """Return the numbers of all chunks behind the first, in the order in which they are to be read."""
        if not self._source.seekable:
            return itertools.count(first + 1)
        count = (self._source.size - 1) // self._chunk_size - first
        return iter(range(first + 1, first + 1 + count))

    def _next_job(self, numbers: Iterator[int], array: int, current: int, begin: int) -> _Job | None:
        """Return the next chunk to be read, None if there is none, or text would have to be held for it.
        `begin`: where the `current` chunk begins. Of those that lie before it nothing is left to be read.
        """
        if self._ahead is None:
            self._ahead = next(numbers, None)
        number = self._ahead
        if number is None or (not self._source.seekable and number > current + len(self._threads)):
            return None
        self._ahead = None
        return _Job(array, number, begin if self._chunk_size * number < begin else None)

    def _result(self) -> ReadChunk:
        """Return the next chunk that has been read, telling progress meanwhile."""
        while True:
            if self._cancelled():
                raise Cancelled
            self._tell()
            try:
                result = self._results.get(timeout=POLL_S)
            except Empty:
                ended = [thread for thread in self._threads if thread.ended]
                if ended and self._results.empty():  # what a thread puts there, it puts before it ends
                    ended[0].check()
                continue
            if isinstance(result, BaseException):
                raise result
            self._events += result.batch.events
            return result

    def _tell(self) -> None:
        done = self._text.position_on_disk()
        if done is None:
            done = min(self._source.size, sum(int(reader.watch.progress[0]) for reader in self._readers))
        self._progress(Progress("reading", done, self._source.size, self._events))
