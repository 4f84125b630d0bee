"""Where an event begins in text of which nothing is sure, found in one pass."""

from __future__ import annotations

import re
from collections import deque

from ..base.json_text import STRING

MOST_OPEN = 64
"""So many of the objects that are open are kept, the innermost."""
FAR = 64
"""So far back it is looked for what stands before an event."""
AFTER_ONE = b",}"
"""What stands before an event that is not the first of a list. Events that an argument lists are no reason to
take the text around them for damaged where nothing but its end is missing.
"""
BEGIN = re.compile(rb'\{\s*+"([^"\\]{1,64})"\s*+:')
_TOKEN = re.compile(rb"(" + STRING + rb")(\s*+:)?+|[{}]", re.S)
_BEGIN_AT_END = re.compile(rb'\{\s*+"\Z')
_HEAD = {b'"ph"': 1, b'"ts"': 2, b'"pid"': 2, b'"name"': 2}
"""An object with a `ph` and one of the others is an event, not an argument that has a `ph` by chance."""
_EVENT = 3
_QUOTE, _OPEN_BRACE = b'"{'


def next_event(data: bytes, start: int, behind: bytes = b"") -> int | None:
    """Return where the event begins whose telling keys stand first from `start` on.

    `behind`: only one that one of these letters stands before. Where a quote is missing, strings are taken
    for what stands between them; one that ends in the begin of an object sets that right.
    """
    open_: deque[list[int]] = deque(maxlen=MOST_OPEN)  # where each begins, and what its keys tell
    at = start
    while (token := _TOKEN.search(data, at)) is not None:
        begin, at = token.span()
        byte = data[begin]
        if byte == _OPEN_BRACE:
            open_.append([begin, 0])
        elif byte != _QUOTE:
            if open_:
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
    """Return what stands before a place, blanks left out."""
    return data[max(0, at - FAR) : at].rstrip()[-1:]
