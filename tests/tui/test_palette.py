"""Colours: by category, by name, by cname; readable in every theme and on every terminal; and ASCII."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from rich.cells import cell_len
from rich.color import Color, ColorSystem, ColorType

from tracelane.core.base.arrays import F64
from tracelane.core.base.colours import CNAMES, FAMILIES, HASHED, RGB, contrast, key_of, luminance
from tracelane.tui.draw.colour import ANSI, MIN_CHROMA, oklab, shown_as
from tracelane.tui.draw.glyphs import UNICODE, ascii_text
from tracelane.tui.draw.palette import Depth, Look, Palette, depth_of
from tracelane.tui.draw.runs import SampleRow
from tracelane.tui.draw.segments import counter_segments

KEYS = [*FAMILIES, *(f"~{n}" for n in range(HASHED)), *(f"={name}" for name in CNAMES)]
CHIEF = (
    "cpu_op",
    "python",
    "annotation",
    "runtime",
    "blocking",
    "kernel",
    "memcpy",
    "memset",
    "overhead",
    "collective",
    "memory",
)
EYES = {
    "all": np.eye(3),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}


def _rgb(colour: Color) -> RGB:
    triplet = colour.get_truecolor()
    return (triplet.red, triplet.green, triplet.blue)


def _oklab(colour: RGB, eyes: F64) -> F64:
    value = np.array(colour) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    seen: F64 = lab @ np.cbrt(cones @ np.clip(eyes @ linear, 0, 1))
    return seen


@pytest.mark.parametrize(
    ("category", "name", "cname", "by", "key"),
    [
        ("cpu_op", "aten::mm", "", "category", "cpu_op"),
        ("Kernel", "gemm", "", "category", "kernel"),
        ("cuda_runtime", "cudaLaunchKernel", "", "category", "runtime"),
        ("cuda_runtime", "cudaDeviceSynchronize", "", "category", "blocking"),
        ("cuda_driver", "cuStreamSynchronize", "", "category", "blocking"),
        ("cuda_runtime", "cudaMemcpyAsync", "", "category", "runtime"),
        ("privateuse1_runtime", "launch", "", "category", "runtime"),
        ("cuda_driver", "cuLaunchKernel", "", "category", "driver"),
        ("kernel", "ncclDevKernel_AllReduce", "", "category", "collective"),
        ("cpu_op", "c10d::allreduce_", "", "category", "collective"),
        ("kernel", "HCOLL_AllReduce_ring_bf16", "", "category", "collective"),
        ("kernel", "x", "terrible", "category", "=terrible"),
        ("kernel", "x", "no such colour", "category", "kernel"),
        ("cpu_op", "x", "good", "name", "=good"),
    ],
)
def test_keys(category: str, name: str, cname: str, by: str, key: str) -> None:
    """A slice's colour key follows its cname, else its category, collectives apart."""
    assert key_of(category, name, cname, by) == key


def test_names_without_category_differ_but_not_by_digits() -> None:
    """Where there is no category the name decides, and numbered names look alike."""
    assert key_of("", "step 1") == key_of("", "step 22")
    assert len({key_of("", name) for name in ("load", "send", "wait", "merge", "spill", "sort")}) > 3
    assert key_of("my_category", "a") == key_of("my_category", "b")


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.STANDARD])
def test_labels_can_be_read(depth: Depth, dark: bool) -> None:
    """Every label has a contrast of at least 4.5 as it is shown, however bright its cell is."""
    palette = Palette(depth, dark)
    for key in KEYS:
        for style in (*palette.inks(key), palette.style(key), palette.style(key, Look.CHOSEN)):
            assert style.color is not None and style.bgcolor is not None
            front, back = (_rgb(colour) for colour in (style.color, style.bgcolor))
            assert contrast(front, back) >= 4.5, (key, front, back)


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.STANDARD])
def test_texts_can_be_read(depth: Depth, dark: bool) -> None:
    """Titles, ruler and notes have a contrast of at least 4.5 on what they stand on, hints one of 3."""
    palette = Palette(depth, dark)
    texts = (palette.title, palette.process, palette.dim, palette.ruler, palette.accent)
    for style, least in (*((text, 4.5) for text in texts), (palette.hint, 3.0), (palette.step, 3.0)):
        assert style.color is not None
        back = palette.surface if style.bgcolor is None else _rgb(style.bgcolor)
        assert contrast(_rgb(style.color), back) >= least, style


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT])
def test_the_more_is_covered_the_more_is_seen(depth: Depth, dark: bool) -> None:
    """With each step a cell stands out more from an empty one, and none is as the step before."""
    palette = Palette(depth, dark)
    for key in (key for key in KEYS if key in CHIEF):
        seen = [palette.surface, *(palette.ground(key, level) for level in sorted(set(palette.steps) - {0}))]
        lights = [luminance(colour) for colour in seen]
        assert lights == sorted(lights, reverse=not dark) and len(set(lights)) == len(lights), key


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.STANDARD])
def test_the_palest_ink_is_seen(depth: Depth, dark: bool) -> None:
    """A cell of which slices cover least has a contrast of 1.5 to an empty one, in every mode."""
    palette = Palette(depth, dark)
    background = palette.blank.bgcolor
    assert background is not None
    for key in (key for key in KEYS if not key.startswith("=")):
        assert contrast(palette.ground(key, 1), _rgb(background)) >= 1.495, key


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.STANDARD])
def test_the_host_whispers(depth: Depth, dark: bool) -> None:
    """Python, operators and calls that do not wait are paler than any work of a device, in every mode; a call
    that waits for it is louder than they are.
    """
    palette = Palette(depth, dark)
    background = palette.blank.bgcolor
    assert background is not None
    seen = {key: contrast(palette.ground(key, 8), _rgb(background)) for key in FAMILIES}
    host = [seen[key] for key in ("python", "cpu_op", "runtime", "driver")]
    devices = [seen[key] for key in ("kernel", "memcpy", "memset", "collective")]
    assert max(host) < min(devices)
    assert seen["blocking"] > max(host)


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT])
def test_kernels_weigh_most(depth: Depth, dark: bool) -> None:
    """Nothing that fills cells differs more from the background, by luminance, than kernels."""
    palette = Palette(depth, dark)
    background = palette.blank.bgcolor
    assert background is not None
    weights = {
        key: abs(luminance(palette.ground(key, 8)) - luminance(_rgb(background)))
        for key in KEYS
        if not key.startswith("=") and key != "annotation"
    }
    assert max(weights, key=lambda key: weights[key]) == "kernel"


@pytest.mark.parametrize("eyes", ["all", "deutan", "protan"])
@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize(
    ("depth", "level", "least"),
    [
        (Depth.TRUECOLOR, 8, 0.06),
        (Depth.TRUECOLOR, 4, 0.025),
        (Depth.EIGHT_BIT, 8, 0.05),
        (Depth.EIGHT_BIT, 6, 0.04),
        (Depth.EIGHT_BIT, 4, 0.04),
        (Depth.EIGHT_BIT, 2, 0.03),
    ],
)
def test_families_differ(depth: Depth, level: int, least: float, dark: bool, eyes: str) -> None:
    """What stands side by side in a trace differs in every state, also for eyes without red or green: OKLab
    distances of colours simulated after Machado, Oliveira and Fernandes (2009).
    """
    palette = Palette(depth, dark)
    eyes = eyes if level == 8 or depth is Depth.TRUECOLOR else "all"  # of 256, few are pale enough
    colours = {key: _oklab(palette.ground(key, level), EYES[eyes]) for key in CHIEF}
    for one, other in combinations(CHIEF, 2):
        assert np.linalg.norm(colours[one] - colours[other]) >= least, (one, other)


@pytest.mark.parametrize("dark", [True, False])
def test_families_differ_in_sixteen_colours(dark: bool) -> None:
    """In 16 colours each of the chief categories has one of its own, in every look, and so has what stands
    beside it on a lane.
    """
    palette = Palette(Depth.STANDARD, dark)
    for lane in (
        ("cpu_op", "python", "runtime", "blocking", "overhead", "collective", "memory"),
        ("kernel", "memcpy", "memset", "collective", "sync", "memory"),
    ):
        assert len({palette.ground(key, 8) for key in lane}) == len(lane)
    assert len({palette.ground(key, 8) for key in CHIEF}) == len(CHIEF)
    assert len({palette.style(key, Look.FAINT).color for key in CHIEF}) == len(CHIEF)


@pytest.mark.parametrize("dark", [True, False])
def test_counters_and_minimap_are_quiet_in_sixteen_colours(dark: bool) -> None:
    """In 16 colours all counters have one colour, which is no bright one, and the minimap no ground."""
    palette = Palette(Depth.STANDARD, dark)
    row = SampleRow(((3, 3), (2, 5), (0, 8), (8, 8), (-1, -1)), (), "", (0.0, 8.0))
    drawn = [part.style for part in counter_segments(row, palette, UNICODE)]
    colours = {style.color for style in drawn if style is not None} - {None}
    assert colours == {palette.view.color} == {palette.style("counter", Look.FAINT).color}
    assert not colours & {
        Color.from_rgb(*rgb) for name, rgb in ANSI.items() if "bright" in name or name == "white"
    }
    assert palette.view.bgcolor == palette.minimap.bgcolor == palette.blank.bgcolor


@pytest.mark.parametrize("dark", [True, False])
def test_counters_keep_their_hue_in_256_colours(dark: bool) -> None:
    """In 256 colours no counter that varies is grey: each is within a sixth of the circle of the hue that it
    has in truecolor, and none is as loud as a kernel.
    """
    exact, palette = Palette(Depth.TRUECOLOR, dark), Palette(Depth.EIGHT_BIT, dark)
    loud = contrast(palette.ground("kernel", 8), palette.surface) if dark else 21.0
    full, here = (
        _rgb(colour)
        for colour in (one.style("counter", Look.FAINT).color for one in (exact, palette))
        if colour
    )
    (_, a, b), (_, c, d) = oklab(full), oklab(here)
    assert np.hypot(c, d) >= MIN_CHROMA
    assert np.arccos(min(1.0, (a * c + b * d) / (np.hypot(a, b) * np.hypot(c, d)))) < np.pi / 3
    assert contrast(here, palette.surface) < loud
    for style in (palette.minimap, palette.view):
        assert style.color is not None and np.hypot(*oklab(_rgb(style.color))[1:]) >= MIN_CHROMA


@pytest.mark.parametrize("dark", [True, False])
def test_families_differ_in_glyphs_of_256_colours(dark: bool) -> None:
    """In 256 colours the chief categories also differ where a glyph stands on the background."""
    palette = Palette(Depth.EIGHT_BIT, dark)
    for look in (Look.FAINT, Look.MARK):
        colours = {}
        for key in CHIEF:
            colour = palette.style(key, look).color
            assert colour is not None
            colours[key] = np.array(oklab(_rgb(colour)))
        for one, other in combinations(CHIEF, 2):
            assert np.linalg.norm(colours[one] - colours[other]) >= 0.03, (look, one, other)


def test_oklab_is_that_of_its_definition() -> None:
    """The distances of colours are those of matrices multiplied as the definition says."""
    for colour in ((0, 0, 0), (255, 255, 255), (12, 200, 99), (95, 135, 175)):
        assert np.allclose(oklab(colour), _oklab(colour, EYES["all"]))


def test_the_number_of_styles_is_bounded() -> None:
    """All keys in all looks and steps stay below 2000 styles, and each is made once."""
    palette = Palette()
    styles = set()
    for _ in range(2):
        for key in KEYS:
            styles |= {id(palette.style(key, look)) for look in Look}
            styles |= {id(style) for style in (*palette.inks(key), *palette.fills(key))}
    assert len(styles) < 2000
    assert palette.style("kernel") is palette.style("kernel")


def test_without_colours_no_style_has_any() -> None:
    """With NO_COLOR no style carries a colour, and the selection is told by reverse video."""
    palette = Palette(Depth.NONE)
    styles = [palette.style(key, look) for key in KEYS for look in Look]
    styles += [value for value in vars(palette).values() if hasattr(value, "bgcolor")]
    assert all(style.color is None and style.bgcolor is None for style in styles)
    assert palette.style("kernel", Look.CHOSEN).reverse


def test_sixteen_colours_are_the_terminals_own() -> None:
    """With 16 colours every colour used is one of them, so that nothing is mapped to another."""
    palette = Palette(Depth.STANDARD)
    for key in KEYS:
        for look in Look:
            style = palette.style(key, look)
            for colour in (style.color, style.bgcolor):
                if colour is not None:
                    assert tuple(colour.get_truecolor()) in ANSI.values()
                    assert colour.type is ColorType.TRUECOLOR


def test_what_256_colours_show_is_stable() -> None:
    """A colour mapped to 256 colours maps to itself (greys: to the next one)."""
    for key in KEYS:
        once = shown_as(Palette().rgb(key), ColorSystem.EIGHT_BIT)
        again = shown_as(once, ColorSystem.EIGHT_BIT)
        assert all(abs(a - b) <= 10 for a, b in zip(once, again))


@pytest.mark.parametrize(
    ("system", "no_color", "depth"),
    [
        ("truecolor", False, Depth.TRUECOLOR),
        ("256", False, Depth.EIGHT_BIT),
        ("standard", False, Depth.STANDARD),
        ("truecolor", True, Depth.NONE),
        (None, False, Depth.NONE),
    ],
)
def test_depth(system: str | None, no_color: bool, depth: Depth) -> None:
    """The colour depth follows the console's colour system and NO_COLOR."""
    assert depth_of(system, no_color) is depth


def test_luminance_is_that_of_the_standard() -> None:
    """Luminance and contrast agree with WCAG's own examples."""
    assert luminance((255, 255, 255)) == pytest.approx(1.0)
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21.0)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("python 12 · CPU", "python 12 - CPU"),
        ("12 µs → 3 μs …", "12 us > 3 us ~"),
        ("▸ │╵▇", "> |'#"),
        ("优 é", "?? ?"),
        ("e\u0301", "e"),
        ("plain", "plain"),
    ],
)
def test_lookalikes(text: str, plain: str) -> None:
    """Each character becomes what looks like it, a ? for every cell of anything else."""
    assert ascii_text(text) == plain
    assert cell_len(ascii_text(text)) == cell_len(text)
