"""Where the event arrays of a source begin, and what stands around them.

An array is taken for the events under `traceEvents` of the top object, whatever comes before it, as a bare
array, as events one behind the other, in several documents one behind the other.
"""

from __future__ import annotations

import re

from .envelope import Envelope, EnvelopeReader, Stop, envelope
from .json_text import Window
from .problem import OTHER_TEXT, REPEATED_KEY, Problem
from .text_source import TextSource

BLOCK_SIZE = 256 << 10
_BETWEEN_DOCUMENTS = re.compile(rb"[\s,;\x00\x1e]*+")
_BEGIN = re.compile(rb"[\[{]")
_EVENT_KEY = re.compile(rb'"ph"\s*:')
"""What only an event has: without it text between documents is none."""
REPEATED = "traceEvents appears more than once in one object: the events of all are read"
TRUNCATED = "the file ends inside the event array: the complete events were read"


class Documents:
    """Finds one event array after the other; between two calls of `next` the caller reads the events."""

    def __init__(self, text: TextSource, block_size: int = BLOCK_SIZE) -> None:
        """Stand at the beginning of a text, of which `block_size` bytes are read at a time."""
        self.form = ""  # until there was an array of events, if an empty one
        self._problems: list[Problem] = []
        self._window = Window(text.read, text.start, block_size)
        self._envelope = EnvelopeReader(self._window)
        self._array_form = ""  # of the last array: "object", "array" or "lines"

    @property
    def envelope(self) -> Envelope:
        return envelope(self._envelope.values, self.form or "object")

    @property
    def problems(self) -> list[Problem]:
        """What was wrong outside of the events, so far, in file order."""
        return sorted([*self._problems, *self._envelope.problems], key=lambda problem: problem.offset or 0)

    def next(self, end: int = 0, *, closed: bool = False) -> int | None:
        """Return where the first element of the next array may begin; `end`: where the array before was read
        to, behind its bracket if `closed`.
        """
        stop = None
        if self._array_form:
            if not closed:
                if self._array_form == "object":
                    self._problems.append(Problem("truncated", 1, end, TRUNCATED))
                return None
            self._window.move(end)
            if self._array_form == "object":
                stop = self._envelope.resume()
                if stop is Stop.EVENTS:
                    self._problems.append(Problem(REPEATED_KEY, 1, self._window.offset, REPEATED))
                    return self._window.offset  # an array of the same document
        while True:
            if stop is Stop.EVENTS:
                return self._begin_array("object")
            if stop is Stop.EVENT:
                return self._begin_array("lines")
            if stop is Stop.CUT_OFF and not self._closes_though_broken():
                message = "the file ends within the keys around the events"
                self._problems.append(Problem("truncated", 1, self._envelope.cut_off, message))
            if self._envelope.endless is not None:
                self._window.move(self._envelope.endless)
                stop = self._envelope.retry()
                continue
            if not self._next_document():
                return None
            if self._window.data[self._window.at] == ord("["):
                self._window.at += 1
                return self._begin_array("array")
            stop = self._envelope.read_object()

    def _closes_though_broken(self) -> bool:
        """Tell whether the text ends with a bracket, and only what is broken before makes it look cut off: a
        quote that is not escaped leaves the rest within a string.
        """
        is_broken = any(problem.kind == "broken envelope" for problem in self._envelope.problems)
        return bool(self._array_form) and is_broken and self._window.data.rstrip()[-1:] in (b"}", b"]")

    def _begin_array(self, form: str) -> int:
        if not (form == "lines" and self.form == "lines"):
            self.form = "concatenated" if self.form else form
        self._array_form = form
        return self._window.offset

    def _next_document(self) -> bool:
        """Go to the next bracket that may begin a document; what stands before it is reported."""
        window = self._window
        garbage: int | None = None
        holds_event = False
        while True:
            match = _BETWEEN_DOCUMENTS.match(window.data, window.at)
            window.at = match.end() if match else window.at
            if window.left:
                begin = _BEGIN.search(window.data, window.at)
                if begin is None or begin.start() > window.at:
                    garbage = window.offset if garbage is None else garbage
                    stop = begin.start() if begin else len(window.data)
                    holds_event |= _EVENT_KEY.search(window.data, window.at, stop) is not None
                window.at = begin.start() if begin else len(window.data)
                if begin is not None:
                    break
            if not window.more():
                break
        if garbage is not None:
            kind = "unreadable" if holds_event else OTHER_TEXT
            self._problems.append(Problem(kind, 1, garbage, "text that belongs to no event"))
        return window.left > 0
