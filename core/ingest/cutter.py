"""Cutting the event array into blocks of whole events; the decode is the proof that a cut was right.

A block ends at the last separator in it (sniffed from the text, never fixed). A cut inside a string or nested
value leaves an open quote or bracket, so that it cannot decode: if blocks tile the array and all decode, all
cuts were right. Only where one does not, the block's structure is scanned exactly, and what still does not
decode goes to `repair`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..base.json_text import Structure, last_comma, odd_byte, structure
from .oversized import scan_oversized
from .problem import Problem
from .repair import repair_array
from .separator import Separator, guess, sniff
from .text.reader import STRETCH_SIZE, ReadText, TextReader
from .window import PAD, Window

BLOCK_SIZE = 256 * 1024
OVERSIZED = 16 << 20
"""An element of more bytes is not decoded: its fixed keys are picked out as it passes."""
LEAST_TEXT = 1 << 16
"""Less text than this is not worth reading as columns."""
PATIENCE = 1 << 20
"""So much text without a separator or a whole element is looked at before it is taken for broken."""

Decode: TypeAlias = Callable[[bytes], list[object]]

_GAP = re.compile(rb"[\s,]*")


@dataclass(frozen=True)
class Block:
    """Whole events joined by their separators: `[` + data + `]` decodes unless it was repaired."""

    offset: int  # of the first event's first byte in the inflated UTF-8 text
    data: bytes
    skipped: int = 0  # bytes of an oversized event that stand behind `data` and were not kept

    @property
    def length(self) -> int:
        """How many bytes of the text the block covers."""
        return len(self.data) + self.skipped


@dataclass(frozen=True)
class Decoded:
    """A block that decodes as it stands."""

    block: Block
    events: list[object]
    pieces: None = None


@dataclass(frozen=True)
class Repaired:
    """A block whose text is no JSON array (or not kept whole), with what could be read of it."""

    block: Block
    events: list[object]
    problems: list[Problem]


@dataclass(frozen=True)
class Columnar:
    """Text that was read as columns, from `offset` on."""

    offset: int
    read: ReadText


Item: TypeAlias = Decoded | Repaired | Columnar


class Cutter:
    """Yields the blocks of one event array from a window that stands inside it.

    `lines`: the elements stand one after another without an array around them, commas between them or not.
    Where the text is a range of the array, its ends may be wrong: its last block is not repaired while
    `tail_in_doubt`, nor its first unless `head_proven`.
    """

    def __init__(
        self,
        window: Window,
        decode: Decode,
        *,
        lines: bool = False,
        separator: Separator | None = None,
        head_proven: bool = True,
        tail_in_doubt: Callable[[], bool] = lambda: False,
        reader: TextReader | None = None,
        stretch: int = STRETCH_SIZE,
    ) -> None:
        """With a `reader`, what it can read as columns, `stretch` bytes at a time, is not decoded."""
        self.closed = False  # the bracket that ends the array has been passed
        self.wrong_head = False
        self.wrong_tail = False
        self.separator = separator
        self.head_proven = head_proven
        self._window = window
        self._decode = decode
        self._lines = lines
        self._commas = not lines
        self._tail_in_doubt = tail_in_doubt
        self._reader = None if lines else reader
        self._stretch = stretch
        self._decoded_to = 0

    def __iter__(self) -> Iterator[Item]:
        window = self._window
        while True:
            if window.left < window.block_size:
                window.more()
            if not self._skip_gap():
                return
            separator = self.separator
            if separator is not None and (columnar := self._as_columns(separator)) is not None:
                self.head_proven = True
                yield columnar
                continue
            start = window.at
            data = window.data
            cut = -1
            if separator is not None and (found := data.rfind(separator.text, start)) >= 0:
                cut = found + separator.end
                item = self._straight(start, cut, separator)
                if item is not None:
                    self.head_proven = True
                    yield item
                    window.at = cut
                    continue
            yield from self._slowly(start, cut)
            if self.closed or self.wrong_head or self.wrong_tail:
                return

    def _as_columns(self, separator: Separator) -> Columnar | None:
        """Read the next stretch of text as columns; None where it must be decoded."""
        window = self._window
        if self._reader is None or window.offset < self._decoded_to:
            return None
        if not self._reader.is_due():
            self._decoded_to = window.offset + self._stretch
            return None
        left = window.left
        while window.left < self._stretch and window.more(self._stretch - window.left):
            pass
        start, limit = window.at, len(window.data)
        limit -= 0 if window.ended else PAD  # else all would be copied to have some more behind it
        end = window.data.rfind(separator.text, start, limit) + separator.end
        if end - start >= LEAST_TEXT:
            read = self._reader.read(window.data, start, end, separator)
            if read is not None:
                window.at = end
                return Columnar(window.base + start, read)
        self._decoded_to = window.base + max(end, start + 1)
        window.put_back(left)  # as if nothing had been tried: where a block ends counts for what is broken
        return None

    def _straight(self, start: int, cut: int, separator: Separator) -> Decoded | Repaired | None:
        """Decode what stands before the last separator, if the cut was right."""
        text = self._window.data[start:cut]
        block = Block(self._window.base + start, text)
        if self._commas:
            events = self._try(text)
            return None if events is None else Decoded(block, events)
        between = separator.text[separator.end : separator.begin]
        if b"\n" not in between:  # it could stand in a string as well
            return None
        events = self._try(
            text.replace(
                separator.text, separator.text[: separator.end] + b"," + separator.text[separator.end :]
            )
        )
        return None if events is None else Repaired(block, events, [])

    def _skip_gap(self) -> bool:
        """Go to the next element or bracket; False at the end of the text."""
        window = self._window
        while True:
            match = _GAP.match(window.data, window.at)
            window.at = match.end() if match else window.at
            if window.left:
                return True
            if not window.more():
                return False

    def _try(self, text: bytes) -> list[object] | None:
        try:
            return self._decode(text)
        except (ValueError, RecursionError):
            return None

    def _slowly(self, start: int, cut: int) -> Iterator[Item]:
        """Handle what the separator alone could not: the array's end, wrong cuts, odd or broken text."""
        window = self._window
        while True:
            data = window.data
            found = structure(data, start)
            if found.close is not None and not self.head_proven:
                self.wrong_head = True  # it may close a list in an event
                return
            end = self._end_of_whole(start, found)
            item = self._whole(start, end, found.ends) if end is not None else None
            if item is not None and end is not None:
                self._learn(start, found.ends)
                self.head_proven = True
                if item.block.length:
                    yield item
                self._step(end, found.close)
                return
            sound = found.stray is None and odd_byte(data, start) is None
            if sound and end is None and not window.ended:
                most = OVERSIZED if self.head_proven else PATIENCE
                if window.left > most:
                    break
                base = window.base
                window.more(min(3 * window.left, most + 1 - window.left))
                start = window.at
                cut -= window.base - base if cut >= 0 else 0
                continue
            if not self.head_proven:
                break
            if window.ended and self._tail_in_doubt():
                self.wrong_tail = True
                return
            if not sound:
                if cut < 0 and not window.ended and window.left < PATIENCE:
                    window.more(window.left)
                    start = window.at
                    continue
                if cut < 0 and (separator := guess(data, start)) is not None:
                    self.separator = separator
                    cut = data.rfind(separator.text, start) + separator.end
                end = cut if cut > start else None
            end = len(data) if end is None else end
            item = self._repair(start, end, patient=window.left <= OVERSIZED and not window.ended)
            if item is None:
                window.more(window.left)
                start = window.at
                cut = -1 if self.separator is None else window.data.rfind(self.separator.text, start)
                cut += 0 if cut < 0 or self.separator is None else self.separator.end
                continue
            if item.block.length:
                yield item
            return
        if self.head_proven:
            yield self._oversized()
        else:
            self.wrong_head = True

    def _end_of_whole(self, start: int, found: Structure) -> int | None:
        """Return up to where the structure promises whole elements, or None."""
        if found.close is not None:
            return found.close
        if found.ends:
            return found.ends[-1]
        if found.depth or found.in_string or found.stray is not None:
            return None
        return len(self._window.data) if self._window.ended else last_comma(self._window.data, start)

    def _step(self, end: int, close: int | None) -> None:
        self._window.at = end
        if close is not None:
            self._window.at = close + 1
            self.closed = True

    def _whole(self, start: int, end: int, ends: list[int]) -> Decoded | Repaired | None:
        """Decode the elements between two places, if that can be done."""
        data = self._window.data
        while end > start and data[end - 1] in b" \t\r\n,":
            end -= 1
        text = data[start:end]
        block = Block(self._window.base + start, text)
        if self._commas or not text:
            events = self._try(text)
            if events is not None:
                return Decoded(block, events)
            if not self._lines:
                return None
        pieces = []
        low = start
        for high in ends:
            if high > end:
                break
            pieces.append(data[low:high].strip(b" \t\r\n,"))
            low = high
        events = self._try(b",".join(pieces))
        if events is None:
            return None
        self._commas = False
        return Repaired(block, events, [])

    def _learn(self, start: int, ends: list[int]) -> None:
        found = sniff(self._window.data, start, ends, self._lines)
        self.separator = found or self.separator

    def _repair(self, start: int, end: int, *, patient: bool) -> Repaired | None:
        """Repair a stretch of text; None, when patient, if it ends within its first element."""
        window = self._window
        text = window.data[start:end]
        offset = window.base + start
        at_end = not patient and (end == len(window.data) or not window.ended)
        repairs, close, used = repair_array(text, self._decode, offset, at_end=at_end)
        if not used and close is None and not at_end:
            if patient:
                return None
            repairs, close, used = repair_array(text, self._decode, offset, at_end=True)
        text = text[:used]
        window.at = start + used
        if close is not None:
            window.at += 1
            self.closed = True
        events = [event.value for event in repairs.events]
        return Repaired(Block(offset, text), events, repairs.problems())

    def _oversized(self) -> Repaired:
        window = self._window
        offset = window.offset
        head = window.data[window.at : window.at + PATIENCE]
        event, length, problem = scan_oversized(window)
        return Repaired(Block(offset, head[:length], max(0, length - len(head))), [event], [problem])
