"""One chunk of an event array to a batch: the events that begin in it, wherever it was cut.

Chunks lie on a grid of fixed size, whatever reads them. A thread begins a chunk at what looks like the begin
of an event and reads up to the first event that begins behind the chunk. If that is not where the next chunk
was begun, that one is read again from there: from the begin of the array on, each then begins at an event.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import Cancelled
from .batch import Batch
from .envelope import EnvelopeReader
from .json_text import Window
from .problem import CORRUPT, CUT_SHORT, Problem
from .repair import WRITTEN_SO, Repair, RepairedEvent, closes_array, learn_habits
from .scan_reference import PAD, NewScanner, Reason, ReferenceScanner, ScanStop, ScanText, ScanWatch
from .text_source import TextSource
from .tolerant import Habits

CHUNK_SIZE = 16 << 20
SLACK = 256 << 10
"""So much text behind a chunk is read at once, for the end of its last event."""
LOOK_BEHIND = 4 << 10
"""So much text before a chunk is looked at, for an event that begins right at its begin."""
MAX_EVENT_LENGTH = 16 << 20
"""Longer events are not read whole: their fixed keys are picked out as they pass."""
HABITS_FROM = 256 << 10
"""The habits of a writer near a place are those of its cell of so many bytes."""
FOLLOWING = 4 << 10
"""So much text behind a bracket tells whether it closes the array."""
_BETWEEN = re.compile(rb"\}[ \t\r\n]*+,?[ \t\r\n]*+\{")


class ReadChunk(NamedTuple):
    """How far a chunk was read, and its batch."""

    number: int
    begin: int  # where its first event was taken to begin
    end: int  # where the next event begins, or the text or the array ends
    closed: bool  # `end` is behind the bracket that closes the array
    ended: bool  # the text ended
    batch: Batch
    is_broken: bool = False  # what stands at `end` is what damage of the packed data has left of text
    in_doubt: bool = False  # some of the text was mended that may be so, too


def habits_of(text: TextSource) -> Callable[[int], Habits]:
    """Return what tells how the writer of a text writes near an offset."""

    @lru_cache(maxsize=1)
    def of_cell(cell: int) -> Habits:
        return learn_habits(text.read(max(text.start, cell * HABITS_FROM), HABITS_FROM))

    return lambda offset: of_cell(offset // HABITS_FROM)


class ChunkReader:
    """Reads chunks with a scanner of its own; one per thread."""

    def __init__(
        self,
        text: TextSource,
        new_scanner: NewScanner,
        *,
        thread: int = 0,
        chunk_size: int = CHUNK_SIZE,
        longest: int = MAX_EVENT_LENGTH,
    ) -> None:
        self.watch = ScanWatch()
        self.scanner: ReferenceScanner = new_scanner(self.watch)
        self._source = text
        self._thread = thread
        self._chunk_size = chunk_size
        self._longest = longest
        self._buffer = np.zeros(chunk_size + SLACK + LOOK_BEHIND + PAD, np.uint8)
        self._is_known = True  # that the chunk begins where an event does
        self._in_doubt = False
        self._repair = Repair(text.read, habits_of(text))  # a method of this object would be a circle

    def read(self, number: int, begin: int | None) -> ReadChunk:
        """Read the chunk of a number, from an offset where an event may begin, or from where one seems to.
        Its batch consists of views of memory that the next chunk uses.
        """
        cell = number * self._chunk_size
        limit = max(cell + self._chunk_size, begin or 0)
        self.scanner.begin()
        self._is_known, self._in_doubt = begin is not None, False
        if begin is None:
            text = self._load(max(self._source.start, cell - LOOK_BEHIND), limit + SLACK)
            begin = self._event_at(text, cell)
        else:
            text = self._load(begin, limit + SLACK)
        at = begin
        while True:
            if self.watch.cancel[0]:
                raise Cancelled
            stop = self.scanner.scan(text, at - text.offset, limit - text.offset, self._longest)
            at = text.offset + stop.at
            if stop.reason is Reason.LIMIT:
                break
            closing = text.offset + stop.begin
            if stop.reason is Reason.CLOSED and closes_array(self._source.read(closing, FOLLOWING)):
                at = closing + 1
                break
            going_on = self._go_on(text, stop)
            if going_on is None:
                batch = self.scanner.finish(number, self._thread)
                return ReadChunk(number, begin, closing, False, True, batch, is_broken=True)
            at, text = going_on
        batch = self.scanner.finish(number, self._thread)
        ended = stop.reason is Reason.LIMIT and text.is_last and stop.at >= text.size
        closed = stop.reason is Reason.CLOSED
        return ReadChunk(number, begin, at, closed, ended, batch, in_doubt=self._in_doubt)

    def _go_on(self, text: ScanText, stop: ScanStop) -> tuple[int, ScanText] | None:
        """Do what is to be done where the scanner stopped; return where to scan on, and the text there. None
        where reading ends, as the packed data is damaged.
        """
        at, begin = text.offset + stop.at, text.offset + stop.begin
        if stop.reason is Reason.TEXT:
            if text.size - stop.at <= self._longest:
                more = max(2 * (text.size - stop.at), SLACK)
                return at, self._load(at, at + more)
            data = text.bytes(stop.at, text.size)
            begin = at + len(data) - len(data.lstrip(b" \t\r\n,"))
            if not self._repair.swallowed(begin, self._longest):
                return self._read_oversized(begin)
        elif stop.reason is Reason.LONG:
            return self._read_oversized(begin)
        return self._mend(begin, text)

    def _is_garbage(self, least: int) -> bool:
        """Tell whether text that is not sound is what damage has left: the packed data is in doubt so far at
        least. Where the chunk began at a guess the text may be sound, in the middle of an event: then nothing
        is inflated to find out.
        """
        if self._source.doubt(is_sure=self._is_known) >= least:
            return True
        self._in_doubt = self._in_doubt or not self._is_known
        return False

    def _mend(self, begin: int, text: ScanText) -> tuple[int, ScanText] | None:
        columns = self.scanner.columns
        item, resume = self._repair.mend(begin)
        if isinstance(item, RepairedEvent):
            is_garbage = item.why not in WRITTEN_SO and self._is_garbage(CORRUPT)
        else:
            is_garbage = self._is_garbage(CORRUPT if item.cut_off else CUT_SHORT)
        if is_garbage:
            return None
        if isinstance(item, RepairedEvent):
            end = item.offset + item.length
            self.scanner.writer.write(item.value, item.offset, end, repaired=True)
            if item.why:
                columns.report(Problem("repaired", 1, item.offset, item.why))
        else:
            kind = "truncated" if item.cut_off else "unreadable"
            columns.report(Problem(kind, 1, item.offset, item.why))
            columns.new_block = True
        if text.offset <= resume <= text.offset + text.size - FOLLOWING:
            return resume, text  # nearly all of it is still to be read
        return resume, self._load(resume, resume + SLACK)

    def _read_oversized(self, begin: int) -> tuple[int, ScanText] | None:
        if self._is_garbage(CORRUPT):
            return None
        window = Window(self._source.read, begin, SLACK)
        window.more()
        value, length, problem = read_oversized(window)
        self.scanner.writer.write(value, begin, begin + length, repaired=True)
        self.scanner.columns.report(problem)
        end = begin + length
        return end, self._load(end, end + SLACK)

    def _event_at(self, text: ScanText, cell: int) -> int:
        """Return the offset from which on an event seems to begin, at or after `cell`."""
        for match in _BETWEEN.finditer(text.data[: text.size].data):  # no copy of what may be 16 MB
            begin = text.offset + match.end() - 1
            if begin >= cell:
                return begin
        return text.offset + text.size

    def _load(self, begin: int, end: int) -> ScanText:
        size = end - begin
        if size + PAD > len(self._buffer):
            self._buffer = np.zeros(size + PAD, np.uint8)
        count = self._source.read_into(self._buffer[:size], begin)
        self._buffer[count : count + PAD] = 0
        return ScanText(self._buffer, begin, count, count < size)


ARGUMENTS = frozenset({"args", "attr"})


def read_oversized(window: Window) -> tuple[Any, int, Problem]:
    """Pass over the element at the window's place; return it cut, its length in bytes, and the report.
    Strings over 4 KB and nested values over 64 KB are replaced by a note of their size. What is no object is
    replaced by such a note as a whole.
    """
    begin = window.offset
    reader = EnvelopeReader(window, of_event=True, enter=ARGUMENTS)
    value: Any
    if window.data[window.at] == ord("{"):
        reader.read_object()
        value = reader.values
    else:
        reader.skip_value()
        value = f"({window.offset - begin:,} bytes)"
    length = window.offset - begin
    megabytes = length / (1 << 20)
    message = f"an event of {megabytes:,.0f} MB: read without its large arguments"
    return value, length, Problem("oversized", 1, begin, message)
