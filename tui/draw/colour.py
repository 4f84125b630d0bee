"""RGB arithmetic: perceptual hues, blending, luminance, and what 256 and 16 colours can show."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet

RGB: TypeAlias = tuple[int, int, int]

BLACK: RGB = (0, 0, 0)
WHITE: RGB = (255, 255, 255)
DARK_TEXT: RGB = (16, 18, 22)
LIGHT_TEXT: RGB = (244, 246, 250)
READABLE = 4.5
"""The contrast of a text that is easy to read (WCAG 2, level AA)."""
LEAST_CHROMA = 0.02
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


def oklch(lightness: float, chroma: float, hue: float) -> RGB:
    """Return the sRGB colour of OKLCH coordinates (lightness 0..1, hue in degrees), clipped to the gamut.

    Equal lightness looks equally bright at every hue, which is what keeps a palette calm.
    Source of the matrices: https://bottosson.github.io/posts/oklab/
    """
    a = chroma * math.cos(math.radians(hue))
    b = chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _encoded(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _encoded(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _encoded(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )


def _encoded(linear: float) -> int:
    linear = min(1.0, max(0.0, linear))
    value = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
    return round(255 * value)


def blend(colour: RGB, other: RGB, share: float) -> RGB:
    """Return `colour` with a share (0..1) of `other` in it."""
    keep = 1.0 - share
    return (
        round(colour[0] * keep + other[0] * share),
        round(colour[1] * keep + other[1] * share),
        round(colour[2] * keep + other[2] * share),
    )


def luminance(colour: RGB) -> float:
    """Return the relative luminance 0..1 (WCAG 2)."""

    def linear(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])


def contrast(one: RGB, other: RGB) -> float:
    """Return the contrast ratio of two colours, 1..21 (WCAG 2)."""
    a, b = luminance(one), luminance(other)
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def text_on(background: RGB) -> RGB:
    """Return dark or light, whichever reads better on the background; black or white where neither does well.

    On any colour black or white has a contrast of 4.58 at least.
    """
    for pair in ((DARK_TEXT, LIGHT_TEXT), (BLACK, WHITE)):
        text = max(pair, key=lambda colour: contrast(colour, background))
        if contrast(text, background) >= READABLE:
            break
    return text


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
        if math.hypot(*oklab(colour)[1:]) >= LEAST_CHROMA:
            cube.append((colour, oklab(colour)))
    return tuple(cube)


@lru_cache(maxsize=1024)
def coloured_256(colour: RGB) -> RGB:
    """Return the one of the 256 colours that keeps the hue of a quiet colour. The nearest one by red, green
    and blue is often a grey: 216 colours have few that are pale.
    """
    lightness, a, b = oklab(colour)
    chroma = math.hypot(a, b)
    if chroma < LEAST_CHROMA:
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
