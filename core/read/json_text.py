"""A bounded window over a text; where JSON values and events begin and end in one, sound or not, found
without decoding or recursion.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..base.numbers import whole_number

Read: TypeAlias = Callable[[int, int], bytes]
"""Returns the text at an offset, so many bytes of it; fewer only at its end."""
LOOK_BEHIND = 72
"""Bytes before `at` that stay in `data`: some patterns look behind."""


class Window:
    """Bytes `data` of a text from offset `base` on; all before `at` is done."""

    def __init__(self, read: Read, begin: int, block_size: int) -> None:
        self._read = read
        self.block_size = block_size
        self.move(begin)

    def move(self, begin: int) -> None:
        """Go on elsewhere, with nothing read yet."""
        self.base, self.at = begin, 0
        self.data, self.ended = b"", False

    @property
    def offset(self) -> int:
        return self.base + self.at

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def more(self, size: int = 0) -> bool:
        """Let go of what is done and read at least a block; False when the text has ended."""
        if self.ended:
            return False
        done = max(0, self.at - LOOK_BEHIND)
        self.base += done
        self.at -= done
        self.data = self.data[done:]
        new = self._read(self.base + len(self.data), max(size, self.block_size))
        if not new:
            self.ended = True
            return False
        self.data += new
        return True


STRING = rb'"(?:[^"\\]++|\\.)*+("?+)'
"""A JSON string, or all text behind a quote that no other closes: then its group is empty."""
TOKEN = re.compile(rb"(" + STRING + rb")(\s*+:)?+|[{}\[\]]", re.S)
"""What gives a text its structure: brackets and strings, in the third group the colon behind a key. Whatever
the text, a search takes what it has looked at.
"""
_OPEN = frozenset(b"{[")
_QUOTE, _OPEN_BRACE, _CLOSE_BRACE, _CLOSE = b'"{}]'

_ESCAPES = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_MEANINGS = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Structure:
    """What stands between `start` and the end of a text that begins between the elements of an array."""

    ends: list[int]  # just behind each object or array that is an element
    close: int | None  # the bracket that closes the array itself; nothing behind it was looked at
    depth: int  # brackets left open at the end of the text
    stray: int | None = None  # a brace that closes nothing; nothing behind it was looked at


def structure(data: bytes, start: int = 0) -> Structure:
    """Find the elements of an array from its inside; exact where strings are well-formed, linear in time."""
    ends: list[int] = []
    depth = 0
    for token in TOKEN.finditer(data, start):
        at = token.start()
        byte = data[at]
        if byte == _QUOTE:
            if not token.group(2):
                return Structure(ends, None, depth)
        elif byte in _OPEN:
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                ends.append(at + 1)
            elif depth < 0:
                closes = byte == _CLOSE
                return Structure(ends, at if closes else None, 0, None if closes else at)
    return Structure(ends, None, depth)


def text_of(raw: bytes) -> str:
    """Return the text of the inside of a JSON string, whatever is wrong with it. Bad UTF-8 and lone
    surrogates become U+FFFD; a backslash that escapes nothing stands for itself; control characters stay.
    """
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    text = _ESCAPES.sub(
        lambda match: chr(whole_number(match[1], 16)) if match[1] else _MEANINGS[match[2]], text
    )
    if _LONE.search(text):
        text = _LONE.sub("\ufffd", _PAIR.sub(_joined, text))
    return text


def _joined(pair: re.Match[str]) -> str:
    high, low = map(ord, pair.group())
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


MAX_OPEN = 64
"""So many of the objects that are open are kept, the innermost."""
FAR = 64
"""So far back it is looked for what stands before an event."""
AFTER_ONE = b",}"
"""What stands before an event that is not the first of a list. Events that an argument lists are no reason to
take the text around them for damaged where nothing but its end is missing.
"""
BEGIN = re.compile(rb'\{\s*+"([^"\\]{1,64})"\s*+:')
_BEGIN_AT_END = re.compile(rb'\{\s*+"\Z')
_PHASE = b'"ph"'
_HEAD = {_PHASE: 1, b'"ts"': 2, b'"pid"': 2, b'"name"': 2}
"""An object with a `ph` and one of the others is an event, not an argument that has a `ph` by chance."""
_EVENT = 3


def next_event(data: bytes, start: int, behind: bytes = b"") -> int | None:
    """Return where the event begins whose telling keys stand first from `start` on. `behind`: only one that
    one of these letters stands before. Where a quote is missing, strings are taken for what stands between
    them; one that ends in the begin of an object sets that right.
    """
    if data.find(_PHASE, start) < 0:  # by far the quickest to see, in a hole or a string of megabytes
        return None
    open_: deque[list[int]] = deque(maxlen=MAX_OPEN)  # where each begins, and what its keys tell
    at = start
    while (token := TOKEN.search(data, at)) is not None:
        begin, at = token.span()
        byte = data[begin]
        if byte != _QUOTE:
            if byte == _OPEN_BRACE:
                open_.append([begin, 0])
            elif byte == _CLOSE_BRACE and open_:
                open_.pop()
        elif token.group(3) is None:
            brace = _BEGIN_AT_END.search(data, max(begin, at - FAR), at)
            if brace is not None and BEGIN.match(data, brace.start()):
                at = brace.start()
        elif open_:
            top = open_[-1]
            top[1] |= _HEAD.get(token.group(1), 0)
            if top[1] == _EVENT and (not behind or _before(data, top[0]) in behind):
                return top[0]
    return None


def _before(data: bytes, at: int) -> bytes:
    return data[max(0, at - FAR) : at].rstrip()[-1:]
