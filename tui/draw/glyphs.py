"""The characters that the timeline is drawn with: a Unicode set, and an ASCII one for other locales."""

from __future__ import annotations

import codecs
import locale
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from .labels import ascii_text


@dataclass(frozen=True)
class Glyphs:
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
ASCII = Glyphs("ascii", *map(ascii_text, astuple(UNICODE)[1:]))
"""What the last filter of a screen makes of them."""


def glyphs_for(encoding: str | None = None) -> Glyphs:
    """Return the Unicode set where the encoding (default: of standard output and the locale) can write it."""
    names = [encoding] if encoding else [getattr(sys.stdout, "encoding", None), locale.getencoding()]
    return UNICODE if all(_is_utf8(name) for name in names if name) else ASCII


def _is_utf8(name: str) -> bool:
    try:
        return codecs.lookup(name).name in ("utf-8", "utf-8-sig")
    except LookupError:
        return False


def eighths(wish: bool | None, environment: Mapping[str, str]) -> bool:
    """Tell whether slice edges are drawn in eighths: as TRACELANE_EIGHTHS (0 or 1) says, else as the settings
    wish, else unless over SSH, where they cost 1.6 times the bytes.
    """
    setting = environment.get("TRACELANE_EIGHTHS", "")
    if setting:
        return setting == "1"
    return not (environment.get("SSH_CONNECTION") or environment.get("SSH_TTY")) if wish is None else wish
