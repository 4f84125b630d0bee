"""Elements too large to decode: their fixed keys picked out as they pass, in bounded memory."""

from __future__ import annotations

from typing import Any

from .envelope import EnvelopeReader
from .problem import Problem
from .window import Window

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
