"""What stands between two events, as one writer puts it: found in the text, never fixed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_BETWEEN = re.compile(rb'(\s*)\}(\s*,\s*)\{(\s*)("(?:[^"\\]|\\.){0,60}+")?')
_BETWEEN_LINES = re.compile(rb'(\s*)\}(\s*,?\s*)\{(\s*)("(?:[^"\\]|\\.){0,60}+")?')


@dataclass(frozen=True)
class Separator:
    """The text between two events as the writer puts it; the event ends `lead` bytes + a brace into it."""

    text: bytes
    end: int  # where in the text the first event ends
    begin: int  # where in the text the next event begins


def sniff(data: bytes, start: int, ends: list[int], lines: bool = False) -> Separator | None:
    """Return what most often separates the elements whose ends are known, or None where it cannot be told.

    In compact texts the next event's first key is part of it, as lists of objects in arguments look alike.
    """
    seen: Counter[tuple[bytes, bytes, bytes, bytes]] = Counter()
    pattern = _BETWEEN_LINES if lines else _BETWEEN
    for end in ends[:2000]:
        low = end - 1
        while low > start and data[low - 1] in b" \t\r\n":
            low -= 1
        match = pattern.match(data, low)
        if match and match.start(2) == end:
            seen[match[1], match[2], match[3], match[4] or b""] += 1
    if not seen:
        return None
    (lead, between, inner, key), _ = seen.most_common(1)[0]
    text = lead + b"}" + between + b"{"
    if b"\n" not in lead and not lines and key:
        text += inner + key
    return Separator(text, len(lead) + 1, len(lead) + 1 + len(between))


def guess(data: bytes, start: int) -> Separator | None:
    """Return a separator from the looks of the text alone, for texts whose structure is broken."""
    for match in _BETWEEN.finditer(data, start):
        lead, between, inner, key = match.group(1, 2, 3, 4)
        if key:
            text = lead + b"}" + between + b"{" + (b"" if b"\n" in lead else inner + key)
            return Separator(text, len(lead) + 1, len(lead) + 1 + len(between))
    return None
