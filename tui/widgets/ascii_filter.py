"""The whole screen in ASCII, for locales that can write nothing else: cell for cell, nothing moves."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from ..draw.labels import ascii_text


class AsciiFilter(LineFilter):
    """Replaces every character beyond ASCII by one that looks like it, else by a question mark per cell."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isascii()
            else Segment(ascii_text(segment.text), segment.style, segment.control)
            for segment in segments
        ]
