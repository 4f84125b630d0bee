"""Colour keys as Rich's styles, on terminals of any number of colours."""

from __future__ import annotations

from enum import Enum
from functools import cache, lru_cache, partial
from typing import NamedTuple

from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.style import Style

from tracelane.core.base.colours import (
    BLACK,
    DARK_SURFACE,
    FAMILIES,
    LIGHT_SURFACE,
    READABLE,
    RGB,
    WHITE,
    blend,
    colour_of,
    contrast,
    oklch,
    text_on,
)
from tracelane.core.base.numbers import whole_number

from .colour import ANSI, coloured_256, shown_as
from .runs import FULL


class Depth(Enum):
    """How many colours the terminal shows."""

    TRUECOLOR = "truecolor"
    EIGHT_BIT = "256"
    STANDARD = "16"
    NONE = "none"


SYSTEMS = {
    Depth.TRUECOLOR: ColorSystem.TRUECOLOR,
    Depth.EIGHT_BIT: ColorSystem.EIGHT_BIT,
    Depth.STANDARD: ColorSystem.STANDARD,
}
STEPS = {
    Depth.TRUECOLOR: (0, 1, 2, 3, 4, 5, 6, 7, 8),
    Depth.EIGHT_BIT: (0, 2, 2, 4, 4, 6, 6, 8, 8),
    Depth.STANDARD: (0, 8, 8, 8, 8, 8, 8, 8, 8),
    Depth.NONE: (0, 8, 8, 8, 8, 8, 8, 8, 8),
}
DEPTH_OF = {
    "truecolor": Depth.TRUECOLOR,
    "windows": Depth.STANDARD,
    "256": Depth.EIGHT_BIT,
    "standard": Depth.STANDARD,
}

MAP_KINDS = ("kernel", "collective", "late")
"""The colours of the map of ranks: they work, wait for another, or are the one that others wait for."""
LATE_INK = 0.4
"""How much of its colour the palest late cell has."""
MIN_INK = 0.2
"""How much of its hue the palest step has at least; more where it would not differ from an empty cell."""
OVERVIEW_LEVELS = (5, 7)
"""As bright as cells of so many eighths are states in the minimap, outside of the view and inside."""
FAINT_LEVEL = 6
"""In 256 colours a faint glyph is as bright as a cell of so many eighths."""
PALEST = 1.5
"""The contrast of the palest step to an empty cell."""

HASHED_16 = ("blue", "cyan", "green", "magenta", "bright_blue", "white", "yellow", "bright_magenta")


class Look(Enum):
    """How a run is drawn."""

    WHOLE = "whole"
    FAINT = "faint"  # glyph in the key's colour on the background: bands, textures
    MARK = "mark"  # glyph in the key's full colour on the background
    EDGE = "edge"  # the background's colour on a whole slice's: the empty part of its first cell
    BAR = "bar"  # a whole slice's colour on the background: heights, and the filled part of its last cell
    CHOSEN = "chosen"  # the selection
    BRACKET = "bracket"  # brackets and name of an annotation, on the background


class Tones(NamedTuple):
    """The colours of text and lines in one theme, from the strongest to that nearest to the background."""

    strong: RGB
    far: RGB
    middle: RGB
    near: RGB
    raised: RGB  # a background that is set off
    accent: RGB

    @classmethod
    def of(cls, surface: RGB, dark: bool, depth: Depth) -> Tones:
        strong = WHITE if dark else BLACK
        if depth is not Depth.STANDARD:
            accent = oklch(0.82, 0.13, 85) if dark else oklch(0.55, 0.14, 60)
            far, middle, near, raised = (blend(surface, strong, share) for share in (0.88, 0.55, 0.22, 0.07))
            return cls(strong, far, middle, near, raised, accent)
        if dark:
            names = ("bright_white", "white", "bright_black", "bright_yellow")
        else:
            names = ("black", "bright_black", "white", "yellow")
        far, middle, near, accent = (ANSI[name] for name in names)
        return cls(strong, far, middle, near, surface, accent)


class Palette:
    """Styles for colour keys in one theme on one terminal, each made once."""

    def __init__(
        self,
        depth: Depth = Depth.TRUECOLOR,
        dark: bool = True,
        surface: RGB | None = None,
        paint: bool = True,
    ) -> None:
        """Make the palette of a theme; `paint=False` leaves the background of empty cells alone."""
        self.depth = depth
        self.dark = dark
        self.surface = surface or (DARK_SURFACE if dark else LIGHT_SURFACE)
        self._styles: dict[tuple[str, Look], Style] = {}
        self.inks = cache(partial(self._by_level, has_text=True))
        """The styles of cells with text, by colour key and by how many eighths slices cover: the more, the
        brighter. Levels that look alike have the same style object.
        """
        self.fills = cache(partial(self._by_level, has_text=False))
        """The same for cells without text."""
        self._least_ink = cache(self._least_ink_of)
        self.overview = cache(self._overview)
        self.map_cell = cache(self._map_cell)
        """The style of a cell of the map of ranks: (code of the glyph, of the ground) -> style."""
        self.coloured = depth is not Depth.NONE
        """Whether colour carries meaning at all."""
        self.shaded = depth in (Depth.TRUECOLOR, Depth.EIGHT_BIT)
        """Whether there are shades: with 16 colours and fewer, textures and edges take their place."""
        self.has_low_overview = depth is Depth.STANDARD
        """Whether the minimap takes the lower half of its line: none of 16 colours is pale."""
        self.steps = STEPS[depth]
        """For each level 0..8 of a cell the level that it looks like."""
        self.step_table = bytes((*self.steps, *range(len(self.steps), 256)))
        """The same for `bytes.translate`."""
        self._background = self.surface if paint and self.coloured else None
        self._tones = tones = Tones.of(self.surface, dark, depth)
        self._add_text_styles(tones)
        self._add_cursor_styles(tones)
        self._add_picture_styles(tones)

    def _add_text_styles(self, tones: Tones) -> None:
        background = self._background
        self.blank = self._style(None, background)
        self.title = self._style(tones.far if self.depth is Depth.STANDARD else tones.middle, background)
        self.process = self._style(tones.far, tones.raised, bold=True)
        self.process_rest = self._style(tones.near, tones.raised)
        self.dim = self._style(tones.middle, background)
        self.gap_text = self._style(tones.middle, background)
        """Why a gap is there."""
        self.line = self._style(tones.near, background)
        hint = blend(self.surface, tones.strong, 0.42) if self.shaded else tones.middle
        self.hint = self._style(hint, background)
        self.accent = self._style(tones.accent, background, bold=True)
        self.accent_plain = self._style(tones.accent, background)
        self.ruler = self._style(tones.far, background)

    def _add_cursor_styles(self, tones: Tones) -> None:
        accent = tones.accent
        self.cursor = self._style(accent, self._background, bold=True, reverse=not self.coloured)
        if self.coloured:
            self.cursor_on = Style(color=self.cursor.color, bold=True)
            self._on_accent = self._style(text_on(shown_as(accent, SYSTEMS[self.depth])), accent, bold=True)
        else:
            self.cursor_on = Style(bold=True)
            self._on_accent = Style(bold=True, underline=True)
        marked = tones.near if self.depth is Depth.STANDARD else blend(self.surface, accent, 0.30)
        self.range = self._style(tones.far, marked, underline=not self.coloured)
        self.in_range = self._style(None, blend(self.surface, accent, 0.13) if self.shaded else tones.near)
        self.range_edge = self.accent_plain
        self.range_end = Style(
            color=self.accent.color, bgcolor=self.range.bgcolor, underline=self.range.underline
        )

    def _add_picture_styles(self, tones: Tones) -> None:
        background = self._background
        self.step = self.style("annotation", Look.FAINT) if self.dark else self.title
        faint = self._base("counter")
        self.minimap = self._style(self._paler(faint, 0.6) if self.shaded else tones.near, background)
        self.view = self._style(
            self._paler(faint, 0.3) if self.shaded else faint,
            blend(self.surface, tones.strong, 0.1) if self.shaded else background,
            bold=not self.coloured,
        )

    def style(self, key: str, look: Look = Look.WHOLE) -> Style:
        style = self._styles.get((key, look))
        if style is None:
            style = self._styles[key, look] = self._new_style(key, look)
        return style

    def _by_level(self, key: str, has_text: bool) -> tuple[Style, ...]:
        if self.depth is Depth.NONE:
            return (self.blank,) * (FULL + 1)
        styles = {0: self.ruler if has_text else self.blank}
        for level in self.steps:
            if level not in styles:
                ground = self.ground(key, level)
                styles[level] = self._style(text_on(ground) if has_text else None, ground)
        return tuple(styles[level] for level in self.steps)

    def ground(self, key: str, level: int) -> RGB:
        """Return the colour, as this terminal shows it, of a cell of which slices cover so many eighths."""
        family = FAMILIES.get(key)
        if family is not None and self.depth is Depth.EIGHT_BIT:
            return _indexed((family.dark if self.dark else family.light)[(level + 1) // 2 - 1])
        if level < FULL and self.shaded:
            least = self._least_ink(key)
            share = least + (1 - least) * (level - 1) / (FULL - 1)
            return shown_as(blend(self.surface, self._base(key), share), SYSTEMS[self.depth])
        return shown_as(self._base(key), SYSTEMS[self.depth])

    def _least_ink_of(self, key: str) -> float:
        base, ground = self._base(key), shown_as(self.surface, SYSTEMS[self.depth])
        for hundredths in range(round(100 * MIN_INK), 100):
            pale = shown_as(blend(self.surface, base, hundredths / 100), SYSTEMS[self.depth])
            if contrast(pale, ground) >= PALEST:
                return hundredths / 100
        return MIN_INK  # the colour itself, which the file gave, is as good as the background

    def _overview(self, key: str, is_inside: bool) -> Style:
        """Return the style of the minimap's cells of a colour, of no state where that is empty, inside of the
        view or beside it.
        """
        plain = self.view if is_inside else self.minimap
        if not key or not self.coloured:
            return plain
        colour = self.ground(key, OVERVIEW_LEVELS[is_inside])
        return self._style(colour, None) + Style(bgcolor=plain.bgcolor)

    def _map_cell(self, glyph: int, ground: int) -> Style:
        """Return the style of a cell whose glyph and ground show 16 times the place of a kind in MAP_KINDS,
        from 1 on, plus a level; 0: nothing.
        """
        return self._style(self._map_colour(glyph), self._map_colour(ground) or self._background)

    def _map_colour(self, code: int) -> RGB | None:
        kind, level = divmod(code, 16)
        if not kind:
            return None
        if (key := MAP_KINDS[kind - 1]) != "late":
            return self.ground(key, level)
        return blend(self.surface, self._tones.accent, LATE_INK + (1 - LATE_INK) * level / FULL)

    def cursor_letter(self, style: Style) -> Style:
        """Return the style of a letter that the cursor stands on: set off from its neighbours of a style."""
        return style + (
            self._on_accent if self.coloured else self._on_accent + Style(reverse=not style.reverse)
        )

    def rgb(self, key: str) -> RGB:
        if self.depth is Depth.NONE:
            return WHITE if self.dark else BLACK
        return shown_as(self._base(key), SYSTEMS[self.depth])

    def _base(self, key: str) -> RGB:
        if key.startswith("~") and self.depth is Depth.STANDARD:
            return ANSI[HASHED_16[whole_number(key[1:]) % len(HASHED_16)]]
        if not key.startswith(("~", "=")):
            family = FAMILIES.get(key, FAMILIES["trace"])
            if self.depth is Depth.STANDARD:
                return ANSI[family.ansi[0 if self.dark else 1]]
            if self.depth is Depth.EIGHT_BIT:
                return _indexed((family.dark if self.dark else family.light)[-1])
        return colour_of(key, self.dark)

    def _new_style(self, key: str, look: Look) -> Style:
        if self.depth is Depth.NONE:
            return Style(reverse=True, bold=True) if look is Look.CHOSEN else Style()
        base = self._base(key)
        if look is Look.CHOSEN:
            ground = WHITE if self.dark else BLACK
            return self._style(text_on(ground), ground, bold=True)
        if look is Look.BRACKET:
            return self._style(self._readable(base), self._background)
        if not self.shaded and look in (Look.FAINT, Look.MARK):
            return self._style(base, self._background, bold=look is Look.MARK)
        family = FAMILIES.get(key)
        if look in (Look.FAINT, Look.MARK) and family is not None and self.depth is Depth.EIGHT_BIT:
            return self._style(
                self.ground(key, FAINT_LEVEL if look is Look.FAINT else FULL),
                self._background,
                bold=look is Look.MARK,
            )
        if look in (Look.FAINT, Look.MARK):
            share = 0.25 if look is Look.FAINT else 0.0
            colour = base if self.dark else blend(base, BLACK, 0.35)
            return self._style(self._paler(colour, share), self._background, bold=look is Look.MARK)
        if look is Look.BAR:
            return Style(color=self.fills(key)[FULL].bgcolor, bgcolor=self.blank.bgcolor)
        if look is Look.EDGE:
            return Style(color=self._style(self.surface, None).color, bgcolor=self.fills(key)[FULL].bgcolor)
        return self.inks(key)[FULL]

    def _readable(self, base: RGB) -> RGB:
        """Return the quietest tint of a colour that can be read on the background."""
        if self.shaded:
            for share in range(9, -1, -1):
                colour = self._paler(base if self.dark else blend(base, BLACK, 0.5), share / 10)
                if contrast(colour, self.surface) >= READABLE:
                    return colour
        return self._tones.far if self.depth is Depth.STANDARD else self._tones.middle

    def _paler(self, colour: RGB, share: float) -> RGB:
        """Return a colour with a share of the background in it; of 256 one that keeps the hue."""
        mixed = blend(colour, self.surface, share)
        return coloured_256(mixed) if self.depth is Depth.EIGHT_BIT else mixed

    def _style(
        self,
        colour: RGB | None,
        ground: RGB | None,
        bold: bool = False,
        reverse: bool = False,
        underline: bool = False,
    ) -> Style:
        if self.depth is Depth.NONE:
            return Style(bold=bold or None, reverse=reverse or None, underline=underline or None)
        system = SYSTEMS[self.depth]
        return Style(
            color=None if colour is None else _colour(shown_as(colour, system)),
            bgcolor=None if ground is None else _colour(shown_as(ground, system)),
            bold=bold or None,
        )


@lru_cache(maxsize=256)
def _indexed(number: int) -> RGB:
    triplet = Color.from_ansi(number).get_truecolor()
    return (triplet.red, triplet.green, triplet.blue)


def _colour(rgb: RGB) -> Color:
    return Color.from_triplet(ColorTriplet(*rgb))


@lru_cache(maxsize=16)
def palette_for(depth: Depth, dark: bool, surface: RGB | None = None, paint: bool = True) -> Palette:
    """Return the palette of a theme, made once."""
    return Palette(depth, dark, surface, paint)


def depth_of(color_system: str | None, no_color: bool) -> Depth:
    """Return the colour depth for rich's name of a colour system; none with NO_COLOR or no colour system."""
    if no_color or color_system is None:
        return Depth.NONE
    return DEPTH_OF.get(color_system, Depth.STANDARD)
