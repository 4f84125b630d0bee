"""Colours of slices, for the viewer and for pictures alike: which colour a slice has, and RGB arithmetic.

A colour key is a short text, e.g. "kernel", "~17" (hashed), "=good" (a reserved Chrome name).
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple, TypeAlias

from .held import held_by_name
from .kineto import STEP, WAITS, SliceKind, slice_kind, work_kind
from .numbers import whole_number

RGB: TypeAlias = tuple[int, int, int]

BLACK: RGB = (0, 0, 0)
WHITE: RGB = (255, 255, 255)
DARK_TEXT: RGB = (16, 18, 22)
LIGHT_TEXT: RGB = (244, 246, 250)
READABLE = 4.5
"""The contrast of a text that is easy to read (WCAG 2, level AA)."""
DARK_SURFACE: RGB = (18, 20, 24)
LIGHT_SURFACE: RGB = (250, 250, 248)

HASHED = 24
"""Hashed keys "~0".."~23": few enough to keep the styles countable, enough to tell neighbours apart."""


def oklch(lightness: float, chroma: float, hue: float) -> RGB:
    """Return the sRGB colour of OKLCH coordinates (lightness 0..1, hue in degrees), clipped to the gamut.
    Equal lightness looks equally bright at every hue, which is what keeps a palette calm. Source of the
    matrices: https://bottosson.github.io/posts/oklab/
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
    return 0.2126 * _LINEAR[colour[0]] + 0.7152 * _LINEAR[colour[1]] + 0.0722 * _LINEAR[colour[2]]


def _linear(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


_LINEAR = tuple(map(_linear, range(256)))


def contrast(one: RGB, other: RGB) -> float:
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


class Hue(NamedTuple):
    """A colour family: OKLCH hue, chroma, and lightness on dark and on light; in 256 colours the indexes of
    its steps from pale to full, on dark and on light; of the 16 colours one for dark and one for light.
    """

    hue: float
    chroma: float
    lightness: tuple[float, float]
    dark: tuple[int, int, int, int]
    light: tuple[int, int, int, int]
    ansi: tuple[str, str]


FAMILIES: dict[str, Hue] = {
    "cpu_op": Hue(
        264, 0.062, (0.38, 0.785), (237, 24, 60, 61), (153, 117, 111, 110), ("bright_blue", "cyan")
    ),
    "python": Hue(
        116, 0.01, (0.36, 0.831), (239, 240, 241, 242), (252, 251, 250, 249), ("bright_black", "white")
    ),
    "annotation": Hue(
        308, 0.139, (0.751, 0.711), (60, 96, 139, 183), (183, 182, 177, 140), ("magenta", "bright_blue")
    ),
    "runtime": Hue(
        90, 0.163, (0.373, 0.806), (238, 64, 100, 101), (186, 184, 180, 178), ("yellow", "bright_magenta")
    ),
    "driver": Hue(
        70, 0.094, (0.374, 0.81), (58, 94, 95, 137), (186, 185, 180, 179), ("yellow", "bright_magenta")
    ),
    "blocking": Hue(
        72, 0.17, (0.63, 0.691), (58, 94, 136, 172), (185, 178, 142, 172), ("bright_yellow", "yellow")
    ),
    "kernel": Hue(
        156, 0.084, (0.873, 0.42), (22, 65, 72, 151), (151, 108, 65, 22), ("bright_green", "green")
    ),
    "memcpy": Hue(194, 0.095, (0.68, 0.52), (23, 30, 31, 37), (116, 73, 66, 31), ("cyan", "blue")),
    "memset": Hue(
        218, 0.062, (0.832, 0.643), (59, 66, 109, 116), (152, 116, 38, 33), ("white", "bright_black")
    ),
    "overhead": Hue(
        31, 0.139, (0.586, 0.738), (88, 124, 95, 196), (217, 216, 209, 174), ("red", "bright_red")
    ),
    "collective": Hue(
        52, 0.165, (0.76, 0.58), (94, 130, 166, 209), (216, 208, 202, 166), ("bright_red", "red")
    ),
    "memory": Hue(
        326, 0.172, (0.593, 0.597), (89, 90, 96, 134), (219, 176, 170, 134), ("bright_magenta", "magenta")
    ),
    "sync": Hue(
        30, 0.05, (0.724, 0.707), (59, 95, 138, 181), (182, 181, 174, 138), ("bright_white", "black")
    ),
    "trace": Hue(
        260, 0.015, (0.55, 0.8), (238, 240, 242, 244), (252, 250, 248, 246), ("bright_black", "white")
    ),
    "async": Hue(184, 0.06, (0.768, 0.7), (29, 36, 43, 79), (152, 115, 79, 73), ("green", "cyan")),
    "counter": Hue(236, 0.06, (0.64, 0.74), (24, 31, 67, 67), (153, 110, 74, 67), ("blue", "cyan")),
    "quiet": Hue(
        265, 0.015, (0.52, 0.8), (238, 239, 240, 241), (252, 251, 250, 248), ("bright_black", "white")
    ),
}
"""Hue, chroma and lightness were searched for so that what stands side by side in a trace differs for
everybody, for red-green-blind eyes too: tests/tui/test_palette.py says by how much.
"""
FAMILY_OF = {
    SliceKind.OP: "cpu_op",
    SliceKind.PYTHON: "python",
    SliceKind.ANNOTATION: "annotation",
    SliceKind.CALL: "runtime",
    SliceKind.DRIVER_CALL: "driver",
    SliceKind.KERNEL: "kernel",
    SliceKind.COPY: "memcpy",
    SliceKind.FILL: "memset",
    SliceKind.COLLECTIVE: "collective",
    SliceKind.WAIT: "sync",
    SliceKind.MEMORY: "memory",
    SliceKind.OVERHEAD: "overhead",
    SliceKind.PROFILER: "trace",
}
"""The colour family of each kind of slice; others have one by a hash of their name or category."""
_CALLS = {SliceKind.CALL, SliceKind.DRIVER_CALL}
"""Calls in which the host waits for the device are of the family "blocking"."""

CNAMES: dict[str, RGB] = {
    "thread_state_uninterruptible": (182, 125, 143),
    "thread_state_iowait": (255, 140, 0),
    "thread_state_running": (126, 200, 148),
    "thread_state_runnable": (133, 160, 210),
    "thread_state_sleeping": (240, 240, 240),
    "thread_state_unknown": (199, 155, 125),
    "background_memory_dump": (0, 180, 180),
    "light_memory_dump": (0, 0, 180),
    "detailed_memory_dump": (180, 0, 180),
    "vsync_highlight_color": (0, 0, 255),
    "generic_work": (125, 125, 125),
    "good": (0, 125, 0),
    "bad": (180, 125, 0),
    "terrible": (180, 0, 0),
    "black": (0, 0, 0),
    "grey": (221, 221, 221),
    "white": (255, 255, 255),
    "yellow": (255, 255, 0),
    "olive": (100, 100, 0),
    "rail_response": (67, 135, 253),
    "rail_animation": (244, 74, 63),
    "rail_idle": (238, 142, 0),
    "rail_load": (13, 168, 97),
    "startup": (230, 230, 0),
    "heap_dump_stack_frame": (128, 128, 128),
    "heap_dump_object_type": (0, 0, 255),
    "heap_dump_child_node_arrow": (204, 102, 0),
    "cq_build_running": (255, 255, 119),
    "cq_build_passed": (153, 238, 102),
    "cq_build_failed": (238, 136, 136),
    "cq_build_abandoned": (187, 187, 187),
    "cq_build_attempt_runnig": (222, 222, 75),
    "cq_build_attempt_running": (222, 222, 75),
    "cq_build_attempt_passed": (103, 218, 35),
    "cq_build_attempt_failed": (197, 81, 81),
}
"""Chrome's reserved colour names (the misspelt one is theirs)."""

_DIGITS = str.maketrans("", "", "0123456789")


@held_by_name
def key_of_name(name: str) -> str:
    """Return the hashed colour key of a name; digits do not count: `step 1` and `step 2` look alike."""
    return f"~{zlib.crc32(name.translate(_DIGITS).encode('utf-8', 'replace')) % HASHED}"


@held_by_name
def key_of_value(text: str) -> str:
    """Return the hashed colour key of a value, digits included."""
    return f"~{zlib.crc32(text.encode('utf-8', 'replace')) % HASHED}"


@held_by_name
def key_of(
    category: str, name: str, cname: str = "", colour_by: str = "category", is_work: bool = False
) -> str:
    """Return the colour key of a slice, which may be work of a device. `cname` wins where it is one of the
    reserved names; then the category, or where there is none another `cname`, or the name, also where
    `colour_by` asks for it. Collectives stand out, whatever their category.
    """
    if cname in CNAMES:
        return "=" + cname
    if cname and not category and colour_by == "category":
        return key_of_value(cname)
    if is_work and colour_by == "category":
        return FAMILY_OF[work_kind(category, name)]
    if colour_by == "name" or not category:
        return key_of_name(name)
    kind = slice_kind(category, name)
    if kind in _CALLS and WAITS.search(name):
        return "blocking"
    return FAMILY_OF.get(kind) or key_of_name(category)


def drawn_kind(category: str, name: str) -> SliceKind:
    """Return what a slice is drawn as: the profiler's steps, which were operators once, as annotations."""
    return SliceKind.ANNOTATION if name.startswith(STEP) else slice_kind(category)


def colour_of(key: str, dark: bool) -> RGB:
    if key.startswith("="):
        return CNAMES[key[1:]]
    if key.startswith("~"):
        # Neighbouring numbers get far-apart hues; two lightness rings double the choice.
        number = whole_number(key[1:])
        hue = (number % (HASHED // 2)) * 360 / (HASHED // 2) + 15
        ring = 0.035 if number < HASHED // 2 else -0.055
        return oklch((0.72 if dark else 0.66) + ring, 0.082, hue)
    family = FAMILIES.get(key, FAMILIES["trace"])
    return oklch(family.lightness[0 if dark else 1], family.chroma, family.hue)


def hexed(colour: RGB) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)
