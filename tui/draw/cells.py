"""A line cell by cell, to be drawn over: the one place that knows letters of two cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

_NARROW = re.compile("[\x20-\x7e\xa0-\xac\xae-\u02ff\u2026\u2500-\u25fc\u2801-\u28ff]*")
"""Texts of letters of one cell each: those of names, and what is drawn with."""


class LineCells:
    """A line of cells, each with a letter and a style; what is drawn later covers what was there.

    A letter of two cells stands in the first of them, and "" in the second: "a层b" is a, 层, "", b. Where one
    of them alone is drawn over, or has a style of its own, both are blank but for what was drawn.

    Most lines have nothing laid over them, and what is one segment per run is drawn sooner than cells: a line
    is taken apart when it is drawn over first.
    """

    def __init__(self, segments: Iterable[Segment], blank: Style) -> None:
        """Take a line that was drawn; segments without a style have that of what is blank."""
        self._segments: list[Segment] | None = list(segments)
        self._blank = blank
        self._characters: list[str] = []
        self._styles: list[Style] = []
        self._begins: set[int] = set()  # where segments began: what was drawn apart stays apart

    @classmethod
    def empty(cls, width: int, style: Style) -> LineCells:
        return cls([Segment(" " * width, style)], style)

    def put(self, left: int, text: str, style: Style | None = None) -> None:
        """Write a text from a cell on, cut at both ends of the line; without a style in its cells' own."""
        self._take_apart()
        first = max(0, left)
        written = characters(text_in(characters(text), first - left, len(self._characters) - left))
        if not written:
            return
        last = first + len(written)
        for edge in (first, last):  # no letter stands on both sides of it
            if 0 < edge < len(self._characters) and not self._characters[edge]:
                self._characters[edge - 1] = self._characters[edge] = " "
        self._characters[first:last] = written
        if style is not None:
            self._styles[first:last] = [style] * len(written)
            self._begins.difference_update(range(first + 1, last))

    def paint(self, left: int, right: int, style: Style, only: Style | None = None) -> None:
        """Give cells [left, right) a style; with `only` those alone that have just that one."""
        self._take_apart()
        for cell in range(max(0, left), min(len(self._styles), right)):
            if only is None or self._styles[cell] is only:
                self._styles[cell] = style

    def add(self, left: int, right: int, style: Style) -> None:
        """Lay a style over those of cells [left, right)."""
        self._take_apart()
        own = both = None
        for cell in range(max(0, left), min(len(self._styles), right)):
            if both is None or self._styles[cell] is not own:
                own = self._styles[cell]
                both = own + style
            self._styles[cell] = both

    def character(self, cell: int) -> tuple[str, range, Style]:
        """Return the letter in a cell, the cells that it takes, and its style."""
        self._take_apart()
        first = cell - (not self._characters[cell])
        is_wide = first + 1 < len(self._characters) and not self._characters[first + 1]
        return self._characters[first], range(first, first + 1 + is_wide), self._styles[first]

    def segments(self) -> list[Segment]:
        """Return the line in segments of one style each."""
        if self._segments is not None:
            return self._segments
        texts, styles = self._characters, self._styles
        if "" in texts:
            for cell, text in enumerate(texts):
                if not text and styles[cell] is not styles[cell - 1]:
                    texts[cell - 1] = texts[cell] = " "  # a wide letter has one style
        segments: list[Segment] = []
        begin = 0
        for cell in range(1, len(styles) + 1):
            if cell in self._begins or styles[cell] is not styles[begin]:
                segments.append(Segment("".join(texts[begin:cell]), styles[begin]))
                begin = cell
        return segments

    def parts(self) -> Iterator[tuple[range, Segment]]:
        """Yield the segments with the cells that they take."""
        end = 0
        for segment in self.segments():
            begin, end = end, end + segment.cell_length
            yield range(begin, end), segment

    def _take_apart(self) -> None:
        if self._segments is not None:
            for text, style, _ in self._segments:
                own = characters(text)
                self._characters.extend(own)
                self._styles.extend([self._blank if style is None else style] * len(own))
                self._begins.add(len(self._characters))
            self._segments = None


def characters(text: str) -> Sequence[str]:
    """Return what stands in each cell of a text: a letter and what combines with it, "" behind a wide one."""
    return text if text.isascii() or _NARROW.fullmatch(text) else _characters(text)


@lru_cache(maxsize=2048)
def _characters(text: str) -> tuple[str, ...]:
    cells: list[str] = []
    before = ""  # what combines with a letter, and has none before it
    for character in text:
        width = cell_len(character)
        if width:
            cells.extend((before + character, *[""] * (width - 1)))
            before = ""
        elif cells:
            cells[-1 if cells[-1] else -2] += character
        else:
            before += character
    return tuple(cells)


def text_in(cells: Sequence[str], left: int, right: int) -> str:
    """Return the letters in cells [left, right) as a text; of one that is cut in two a blank."""
    left, right = max(0, left), max(0, right)
    if isinstance(cells, str):
        return cells[left:right]
    inside = list(cells[left:right])
    if inside and not inside[0]:
        inside[0] = " "
    if inside and right < len(cells) and not cells[right]:
        inside[-1] = " "
    return "".join(inside)
