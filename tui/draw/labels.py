"""Texts cut to cells: wide and combining characters never break the grid."""

from __future__ import annotations

import re
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

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
        "*": "◆•▆",
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
