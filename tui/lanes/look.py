"""How the timeline's widgets learn what their terminal and theme can show."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from textual.color import Color, ColorParseError
from textual.filter import LineFilter
from textual.widget import Widget

from tracelane.core.base.colours import DARK_SURFACE, LIGHT_SURFACE, RGB

from ..draw.glyphs import ASCII, Glyphs, glyphs_for
from ..draw.line_context import LineContext, title_cells
from ..draw.palette import Palette, depth_of, palette_for
from ..draw.segments import ascii_segments


def look_of(widget: Widget) -> LineContext:
    """Return the palette, glyphs and column widths for a widget as wide as the screen area it stands in."""
    width = max(2, widget.size.width)
    titles = title_cells(width)
    return LineContext(palette_of(widget), glyphs(), titles, max(1, width - titles))


def palette_of(widget: Widget) -> Palette:
    """Return the palette of the App's theme on its terminal."""
    app = widget.app
    theme = app.current_theme
    surface = _surface(theme.background or theme.surface or "", theme.dark)
    return palette_for(depth_of(app.console.color_system, app.no_color), theme.dark, surface)


@lru_cache(maxsize=32)
def _surface(name: str, dark: bool) -> RGB:
    try:
        colour = Color.parse(name)
    except ColorParseError:
        return DARK_SURFACE if dark else LIGHT_SURFACE
    if colour.ansi is not None or not name:
        return DARK_SURFACE if dark else LIGHT_SURFACE
    return (colour.r, colour.g, colour.b)


@lru_cache(maxsize=1)
def glyphs() -> Glyphs:
    """Return the characters that this process's locale can write."""
    return glyphs_for()


class AsciiFilter(LineFilter):
    """The whole screen in ASCII, for locales that can write nothing else: cell for cell, nothing moves."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return ascii_segments(segments, ASCII)
