"""The whole screen in ASCII, for locales that can write nothing else: cell for cell, nothing moves."""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_LOOKALIKES = {
    character: plain
    for plain, characters in {
        "+": "✓╭╮╰╯┌┐└┘├┤┬┴┼",
        "-": "·—–─━═╴╶↔▔",
        "_": "▁▂",
        "=": "▃▄▅",
        "#": "▆▇█▓▉▊▋",
        ":": "▒░",
        "|": "│┃║▏▎▍▌▕┊",
        "<": "←",
        ">": "→▸",
        "^": "↑▲",
        "v": "↓▾▼",
        "~": "…≈",
        "!": "⚠",
        "x": "×",
        "u": "µμ",
        "'": "’╵╷",
        '"': "“”",
        "*": "◆•",
        " ": "🔎",
    }.items()
    for character in characters
}


class AsciiFilter(LineFilter):
    """Replaces every character beyond ASCII by one that looks like it, else by a question mark per cell."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments in ASCII."""
        return [
            segment
            if segment.text.isascii()
            else Segment(ascii_only(segment.text), segment.style, segment.control)
            for segment in segments
        ]


@lru_cache(maxsize=4096)
def ascii_only(text: str) -> str:
    """Return a text of the same width in cells, in ASCII."""
    return "".join(c if c.isascii() else _one(c) for c in text)


def _one(character: str) -> str:
    width = cell_len(character)
    return _LOOKALIKES.get(character, "?").ljust(width, "?")[:width]
