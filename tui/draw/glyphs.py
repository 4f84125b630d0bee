"""The characters that the timeline is drawn with, and texts cut to cells: nothing ever breaks the grid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from tracelane.core.base.output import writes_unicode
from tracelane.core.base.units import about_ns

ELLIPSIS_FROM = 5
"""In fewer cells the letters are worth more than the sign that some are missing."""

_SHARED = re.compile(
    r"^(?:aten::|nn\.Module: |autograd::engine::evaluate_function: |[^\s()]+\.pyx?\(\d+\): )+"
)
"""What so many names begin with that it tells nothing where room is short."""

_LOOKALIKES = {
    character: plain
    for plain, characters in {
        "+": "✓╭╮╰╯┌┐└┘├┤┬┴┼▅",
        "-": "·—–─━╴╶↔▔▃",
        "=": "═▄",
        ".": "▁▎▍░",
        "*": "◆•▆±",
        "#": "▇█▉▊▋┃",
        ":": "▂▒┊",
        "%": "▓",
        "|": "│║▏▐▕",
        "<": "←◂",
        ">": "→▸▌",
        "^": "↑▲▴",
        "v": "↓▾▼",
        "~": "…≈⋯⌇",
        "!": "⚠",
        "x": "×",
        "u": "µμ",
        "'": "’╵╷",
        '"': "“”",
        "{": "╞",
        "}": "╡",
        " ": "🔎",
    }.items()
    for character in characters
}
NO_DOTS = 0x2800
LEFT_DOTS, RIGHT_DOTS = (0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08)
"""The dots of both columns of a Braille pattern (Unicode, chapter 21.1), from below, added to NO_DOTS."""
DOTS = {
    chr(NO_DOTS + dots): plain
    for left, right, plain in zip(LEFT_DOTS, RIGHT_DOTS, "_-~^")
    for dots in range(1, 0x100)
    if dots & (left | right)
}
"""The patterns that lines are drawn with, and what is as high as the topmost of their dots in ASCII."""
_LOOKALIKES |= DOTS


@lru_cache(maxsize=2048)
def fit(text: str, width: int, ellipsis: str = "…", filler: str = " ") -> str:
    """Return the text in exactly `width` cells: shortened, or filled at its right."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        if width >= ELLIPSIS_FROM and ellipsis:
            return set_cell_size(text, width - 1) + ellipsis
        return set_cell_size(text, width)
    return text + filler * (width - length)


@lru_cache(maxsize=2048)
def fit_middle(text: str, width: int, ellipsis: str = "…") -> str:
    """Return the text in exactly `width` cells, shortened in its middle: titles differ at both ends."""
    length = cell_len(text)
    if length <= width or width < 2 * ELLIPSIS_FROM:
        return fit(text, width, ellipsis)
    tail = (width - 1) // 2
    head = set_cell_size(text, width - 1 - tail)
    at, room = len(text), tail
    while at and (cells := cell_len(text[at - 1])) <= room:
        at, room = at - 1, room - cells
    return fit(head + ellipsis + text[at:], width, "")


def length_title(kind: str, length: int, cells: int) -> str:
    """Return what a line is of and, where there is room, how long that is (ns), to three digits."""
    texts = [about_ns(length)]
    texts.append(" ".join(texts[-1].split()[:2]))  # "31 min" of "31 min 04 s"
    fitting = (f"{kind} {text}" for text in texts if len(kind) + 1 + len(text) <= cells)
    return next(fitting, kind.removesuffix(" of"))


@lru_cache(maxsize=2048)
def label_in(label: str, width: int) -> str:
    """Return a label without the prefix that many names share, where it does not fit otherwise."""
    if cell_len(label) <= width:
        return label
    return _SHARED.sub("", label, count=1) or label


@lru_cache(maxsize=2048)
def ascii_text(text: str) -> str:
    """Return a text of the same width in ASCII: what looks like each character, else a ? for every cell."""
    return text if text.isascii() else "".join(c if c.isascii() else _plain(c) for c in text)


def _plain(character: str) -> str:
    width = cell_len(character)
    return _LOOKALIKES.get(character, "?").ljust(width, "?")[:width]


@lru_cache(maxsize=2048)
def padded(text: str, width: int, ellipsis: str = "…") -> str:
    """Return a label for a run: one cell of air at its left where there is room for it."""
    if width >= cell_len(text) + 2:
        return " " + fit(text, width - 1, ellipsis)
    return fit(text, width, ellipsis)


class Glyphs(NamedTuple):
    """One set of drawing characters, each one cell wide."""

    name: str
    unfolded: str  # before the title of what is open
    folded: str
    folded_frames: str  # before the count of Python frames that one line stands for
    pinned: str
    selected: str  # left of the focused row
    slowest: str  # after the title of the rank that the others wait for, where there is no room for a word
    overlap: str  # marks a row that holds overlapping slices
    many: str  # prefix of a count of aggregated slices
    ellipsis: str  # end of a shortened text
    shades: str  # five densities of a cell, from empty to full
    filler: str  # fills a slice after its label where colour does not tell it
    ragged: str  # right end of an unclosed slice
    edge: str  # left edge of a slice that touches one of its own colour
    instant: str
    instants: str  # more than nine in a cell
    single: str  # a slice of one cell without colours
    cursor: str
    rule: str
    tick: str
    range_left: str
    range_right: str
    range_fill: str
    baseline: str  # left end, filling and right end of the baseline
    step: str
    bars: str  # nine heights of a cell, from empty to full, from below
    lefts: str  # nine widths of a cell, from empty to full, from the left
    separator: str  # between titles and the time area
    thumb: str  # the same beside the lines that a scrollbar's thumb takes

    @property
    def ascii(self) -> bool:
        return self.name == "ascii"


UNICODE = Glyphs(
    name="unicode",
    unfolded="▾",
    folded="▸",
    folded_frames="⋯",
    pinned="◆",
    selected="▌",
    slowest="◂",
    overlap="≈",
    many="·",
    ellipsis="…",
    shades=" ░▒▓█",
    filler="─",
    ragged="⌇",
    edge="▏",
    instant="▾",
    instants="*",
    single="│",
    cursor="▼",
    rule="─",
    tick="╵",
    range_left="├",
    range_right="┤",
    range_fill="─",
    baseline="╞═╡",
    step="┊",
    bars=" ▁▂▃▄▅▆▇█",
    lefts=" ▏▎▍▌▋▊▉█",
    separator="│",
    thumb="┃",
)
ASCII = Glyphs("ascii", *map(ascii_text, UNICODE[1:]))
"""What the last filter of a screen makes of them."""


TITLE_MARKS: Final[Mapping[str, tuple[str, bool]]] = MappingProxyType(
    {
        "selected": ("the focused row", True),
        "folded": ("folded: a click opens it", False),
        "unfolded": ("open: a click folds it", False),
        "folded_frames": ("rows that repeat each other, as one", False),
        "pinned": ("pinned", False),
        "overlap": ("row of slices that overlap without nesting", False),
        "slowest": ("the slowest rank: the others wait for it", True),
    }
)
"""What the characters beside titles mean, and whether they are set off."""


def glyphs_for(encoding: str | None = None) -> Glyphs:
    """Return the Unicode set where the encoding (default: of standard output and the locale) can write it."""
    return UNICODE if writes_unicode(encoding) else ASCII


def eighths(wish: bool | None, environment: Mapping[str, str]) -> bool:
    """Tell whether slice edges are drawn in eighths: as TRACELANE_EIGHTHS (0 or 1) says, else as the settings
    wish, else unless over SSH, where they cost 1.6 times the bytes.
    """
    setting = environment.get("TRACELANE_EIGHTHS", "")
    if setting:
        return setting == "1"
    return not (environment.get("SSH_CONNECTION") or environment.get("SSH_TTY")) if wish is None else wish
