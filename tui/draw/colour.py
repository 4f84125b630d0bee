"""Colours of arguments' values and of the viewer's themes, and what terminals of fewer colours show."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet

from tracelane.core.base.arrays import I64
from tracelane.core.base.colours import RGB, key_of_value
from tracelane.core.base.errors import TracelaneError
from tracelane.core.trace import Trace

from ..config import DARK_THEME, LIGHT_THEME

MIN_CHROMA = 0.02
"""What has less chroma (OKLab) is a grey to the eye."""
HUE_WEIGHT = 0.12
"""A radian of hue counts as much as this difference of lightness (0..1) when a colour has to be replaced."""

# The 16 colours as rich matches them: a colour that equals one of these survives the way down unchanged.
ANSI: dict[str, RGB] = {
    "black": (0, 0, 0),
    "red": (170, 0, 0),
    "green": (0, 170, 0),
    "yellow": (170, 85, 0),
    "blue": (0, 0, 170),
    "magenta": (170, 0, 170),
    "cyan": (0, 170, 170),
    "white": (170, 170, 170),
    "bright_black": (85, 85, 85),
    "bright_red": (255, 85, 85),
    "bright_green": (85, 255, 85),
    "bright_yellow": (255, 255, 85),
    "bright_blue": (85, 85, 255),
    "bright_magenta": (255, 85, 255),
    "bright_cyan": (85, 255, 255),
    "bright_white": (255, 255, 255),
}


def oklab(colour: RGB) -> tuple[float, float, float]:
    """Return lightness, green to red and blue to yellow of an sRGB colour: equal distances look equal."""

    def linear(value: int) -> float:
        share = value / 255
        return float(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4)

    red, green, blue = (linear(value) for value in colour)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


@lru_cache(maxsize=1)
def _cube() -> tuple[tuple[RGB, tuple[float, float, float]], ...]:
    """Return those of the 256 colours that are no greys and look the same everywhere, each also in OKLab."""
    cube: list[tuple[RGB, tuple[float, float, float]]] = []
    for number in range(16, 232):
        triplet = Color.from_ansi(number).get_truecolor()
        colour = (triplet.red, triplet.green, triplet.blue)
        if math.hypot(*oklab(colour)[1:]) >= MIN_CHROMA:
            cube.append((colour, oklab(colour)))
    return tuple(cube)


@lru_cache(maxsize=1024)
def coloured_256(colour: RGB) -> RGB:
    """Return the one of the 256 colours that keeps the hue of a quiet colour. The nearest one by red, green
    and blue is often a grey: 216 colours have few that are pale.
    """
    lightness, a, b = oklab(colour)
    chroma = math.hypot(a, b)
    if chroma < MIN_CHROMA:
        return shown_as(colour, ColorSystem.EIGHT_BIT)

    def distance(other: tuple[float, float, float]) -> float:
        chroma_there = math.hypot(other[1], other[2])
        cosine = (a * other[1] + b * other[2]) / (chroma * chroma_there)
        turned = math.acos(max(-1.0, min(1.0, cosine)))
        paler = 1.5 if chroma_there < chroma else 1.0  # rather too strong than near to grey
        return (
            (other[0] - lightness) ** 2 + (paler * (chroma_there - chroma)) ** 2 + (HUE_WEIGHT * turned) ** 2
        )

    return min(_cube(), key=lambda entry: distance(entry[1]))[0]


@lru_cache(maxsize=4096)
def shown_as(colour: RGB, system: ColorSystem) -> RGB:
    """Return what a terminal of a colour system shows for a colour, as RGB."""
    if system in (ColorSystem.TRUECOLOR, ColorSystem.WINDOWS):
        return colour
    colour_there = Color.from_triplet(ColorTriplet(*colour)).downgrade(system)
    if system is ColorSystem.STANDARD:
        return list(ANSI.values())[colour_there.number or 0]
    triplet = colour_there.get_truecolor()
    return (triplet.red, triplet.green, triplet.blue)


class Surface(NamedTuple):
    """Colours of a theme, as #rrggbb."""

    foreground: str
    background: str
    panel: str
    dark: bool


SURFACES = {
    DARK_THEME: Surface("#d4d8e0", "#121418", "#1c2027", dark=True),
    LIGHT_THEME: Surface("#22262e", "#fafaf8", "#ecece7", dark=False),
}


BY_ARGUMENT = "arg:"
WITHOUT = "quiet"
"""Colour of slices that have no such argument."""
MAX_KNOWN = 1 << 18


class ArgumentColours:
    """Colour keys of slices by argument; alike for slices of one value."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, int], str] = {}

    def keys(self, trace: Trace, source: int, colour_by: str, positions: I64) -> list[str]:
        """Return the colour keys of slices; `colour_by` is arg: with the argument's name behind."""
        from tracelane.core.query.args import json_value_text  # few views are coloured so

        name = colour_by.removeprefix(BY_ARGUMENT)
        asked_positions = positions.tolist()
        missing = [at for at in asked_positions if (source, name, at) not in self._known]
        if missing:
            if len(self._known) + len(missing) > MAX_KNOWN:
                self._known.clear()
                missing = asked_positions
            try:
                values = trace.argument_values(source, name, np.array(missing, np.int64))
            except (TracelaneError, OSError):
                values = [None] * len(missing)
            for at, value in zip(missing, values):
                key = WITHOUT if value is None else key_of_value(json_value_text(value))
                self._known[source, name, at] = key
        return [self._known[source, name, at] for at in asked_positions]
