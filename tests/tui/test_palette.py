"""Colours: by category, by name, by cname; readable in every theme and on every terminal."""

from __future__ import annotations

import pytest
from rich.color import ColorSystem, ColorType

from tracelane.tui.draw.colour import ANSI, contrast, luminance, shown_as
from tracelane.tui.draw.palette import CNAMES, FAMILIES, HASHED, Depth, Look, Palette, depth_of, key_of

KEYS = [*FAMILIES, *(f"~{n}" for n in range(HASHED)), *(f"={name}" for name in CNAMES)]


@pytest.mark.parametrize(
    ("category", "name", "cname", "by", "key"),
    [
        ("cpu_op", "aten::mm", "", "category", "cpu_op"),
        ("Kernel", "gemm", "", "category", "kernel"),
        ("cuda_runtime", "cudaLaunchKernel", "", "category", "runtime"),
        ("privateuse1_runtime", "launch", "", "category", "runtime"),
        ("cuda_driver", "cuLaunchKernel", "", "category", "driver"),
        ("kernel", "ncclDevKernel_AllReduce", "", "category", "collective"),
        ("cpu_op", "c10d::allreduce_", "", "category", "collective"),
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
    """Every text has a contrast of at least 4 as it is shown (3.5 on pale runs, 2.8 with 16 colours)."""
    palette = Palette(depth, dark)
    for key in KEYS:
        for look in (Look.WHOLE, Look.OTHER, Look.MANY, Look.CHOSEN):
            style = palette.style(key, look)
            if style.bgcolor is None or style.color is None:
                continue
            front, back = (tuple(colour.get_truecolor()) for colour in (style.color, style.bgcolor))
            least = 2.8 if depth is Depth.STANDARD else 3.5 if look is Look.MANY else 4.0
            assert contrast(front, back) >= least, (key, look, front, back)  # type: ignore[arg-type]


@pytest.mark.parametrize("dark", [True, False])
def test_runs_stand_out_from_the_background(dark: bool) -> None:
    """A run of any category is told from an empty cell."""
    palette = Palette(Depth.TRUECOLOR, dark)
    for key in (key for key in KEYS if not key.startswith("=")):
        assert contrast(palette.rgb(key), palette.surface) >= 1.5, key


def test_families_differ() -> None:
    """The categories that stand side by side in one trace have visibly different colours."""
    palette = Palette(Depth.TRUECOLOR, True)
    side_by_side = ["cpu_op", "python", "annotation", "runtime", "kernel", "memcpy", "overhead", "collective"]
    colours = [palette.rgb(key) for key in side_by_side]
    for i, one in enumerate(colours):
        for other in colours[i + 1 :]:
            assert sum(abs(a - b) for a, b in zip(one, other)) > 40


def test_the_number_of_styles_is_bounded() -> None:
    """All keys in all looks stay below 1000 styles, and each is made once."""
    palette = Palette()
    for _ in range(2):
        for key in KEYS:
            for look in Look:
                palette.style(key, look)
    assert palette.style_count < 1000
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
