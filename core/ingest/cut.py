"""From a stream to decoded blocks and the envelope around them, in file order, in bounded memory.

The event array is found wherever it stands: under `traceEvents` of the top object whatever comes before it,
as a bare array, as one event per line, in several documents one behind the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from .cutter import BLOCK_SIZE, Block, Columnar, Cutter, Decode, Decoded, Item, Repaired
from .envelope import Envelope, EnvelopeReader, Stop, envelope
from .problem import Problem
from .separator import Separator
from .text.reader import STRETCH_SIZE, TextReader
from .window import Readable, Window

__all__ = ["BLOCK_SIZE", "Block", "Columnar", "Decode", "Decoded", "Item", "Repaired", "Scanner", "Separator"]

_BETWEEN_DOCUMENTS = re.compile(rb"[\s,;\x00\x1e]*+")
_BEGIN = re.compile(rb"[\[{]")


class Scanner:
    """Iterate once for the blocks of all event arrays; then `envelope`, `problems`, `form` and `found` hold.

    `decode` takes the text of a block, without brackets, and raises ValueError where it is no JSON. With
    `behind_array` (the form, "object" or "array") the stream begins behind the bracket that closed the event
    array, as ranges.RangeScanner found it, and what still comes is read. With a `reader`, what it can read
    as columns, `stretch` bytes at a time, is not decoded.
    """

    def __init__(
        self,
        stream: Readable,
        decode: Decode,
        block_size: int = BLOCK_SIZE,
        *,
        behind_array: str = "",
        reader: TextReader | None = None,
        stretch: int = STRETCH_SIZE,
    ) -> None:
        self.found = False
        self.form = ""
        self._problems: list[Problem] = []
        self._decode = decode
        self._window = Window(stream, block_size)
        self._reader = EnvelopeReader(self._window)
        self._documents = 0
        self._lines = False
        self._behind_array = behind_array
        self._text_reader = reader
        self._stretch = stretch

    @property
    def envelope(self) -> Envelope:
        """The keys around the events, so far."""
        return envelope(self._reader.values, self.form or "object")

    @property
    def problems(self) -> list[Problem]:
        """What was wrong outside of blocks, so far, in file order; each kind and reason once."""
        joined: dict[tuple[str, str], Problem] = {}
        for problem in sorted([*self._problems, *self._reader.problems], key=lambda p: p.offset or 0):
            key = problem.kind, problem.message
            first = joined.get(key)
            joined[key] = problem if first is None else replace(first, count=first.count + problem.count)
        return list(joined.values())

    def __iter__(self) -> Iterator[Item]:
        window = self._window
        if self._behind_array:
            self._new_document(self._behind_array)
            if self._behind_array == "object":
                yield from self._object(self._reader.resume())
        while self._next_document():
            if window.data[window.at] == ord("["):
                window.at += 1
                self._new_document("array")
                cutter = self._cutter()
                yield from cutter
            else:
                yield from self._object(self._reader.read_object())

    def head(self) -> str | None:
        """Read to the first event array only and return its form, the window standing in it; else None."""
        window = self._window
        if not self._next_document():
            return None
        if window.data[window.at] == ord("["):
            window.at += 1
            return "array"
        return "object" if self._reader.read_object() is Stop.EVENTS else None

    @property
    def window(self) -> Window:
        """What has been read and not yet used."""
        return self._window

    def _object(self, stop: Stop) -> Iterator[Item]:
        """Read a top-level object from where its reader stopped to its end."""
        if stop is Stop.EVENT:
            self._new_document("lines")
            yield from Cutter(self._window, self._decode, lines=True)
            return
        while stop is Stop.EVENTS:
            self._new_document("object")
            cutter = self._cutter()
            yield from cutter
            if not cutter.closed:
                message = "the file ends within the event array; what was whole has been read"
                self._problems.append(Problem("truncated", 1, self._window.offset, message))
                return
            stop = self._reader.resume()
        if stop is Stop.CUT_OFF:
            message = "the file ends within the keys around the events"
            self._problems.append(Problem("truncated", 1, self._reader.cut_off, message))

    def _cutter(self) -> Cutter:
        return Cutter(self._window, self._decode, reader=self._text_reader, stretch=self._stretch)

    def _new_document(self, form: str) -> None:
        self.found = True
        if form == "lines" and self.form == "lines":
            return
        self.form = "concatenated" if self.form else form

    def _next_document(self) -> bool:
        """Go to the next bracket that may begin a document; what stands before it is reported."""
        window = self._window
        garbage: int | None = None
        while True:
            match = _BETWEEN_DOCUMENTS.match(window.data, window.at)
            window.at = match.end() if match else window.at
            if window.left:
                begin = _BEGIN.search(window.data, window.at)
                if begin is None or begin.start() > window.at:
                    garbage = window.offset if garbage is None else garbage
                window.at = begin.start() if begin else len(window.data)
                if begin is not None:
                    break
            if not window.more():
                break
        if garbage is not None:
            message = "text that belongs to no event"
            self._problems.append(Problem("unreadable", 1, garbage, message))
        return window.left > 0
