"""What the drawing of every line needs: colours, glyphs, widths; and the titles left of the time area."""

from __future__ import annotations

from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style

from .glyphs import Glyphs, fit
from .palette import Palette
from .ranks import RankNotes

NARROW_TITLE = 16
WIDE_TITLE = 30


def title_cells(width: int) -> int:
    """Return how many of `width` cells the lane titles take, their separator included: 16 at 80, up to 30."""
    if width < 60:
        return max(4, width // 4)
    return min(WIDE_TITLE, NARROW_TITLE + max(0, width - 80) * 14 // 120)


class LineContext(NamedTuple):
    """The values that the drawing of every line needs."""

    palette: Palette
    glyphs: Glyphs
    titles: int  # cells of the titles, the separator included
    area: int  # cells of the time area
    ranks: RankNotes = RankNotes()


def gutter(
    title: str, look: LineContext, style: Style | None = None, has_thumb: bool = False
) -> list[Segment]:
    """Return what stands left of the time area: a title, dim if in no style of its own, and the separator, or
    the scrollbar's thumb in its place.
    """
    palette, glyphs = look.palette, look.glyphs
    text = fit(title, look.titles - 1, glyphs.ellipsis)
    style = (style or palette.dim) if text.strip() else palette.line
    if has_thumb:
        return [Segment(text, style), Segment(glyphs.thumb, palette.dim)]
    if style is palette.line:
        return [Segment(text + glyphs.separator, style)]
    return [Segment(text, style), Segment(glyphs.separator, palette.line)]
