"""Tables of what other programs define: they have the numbers and colours of those programs."""

from __future__ import annotations

import pytest
from rich.color import Color, ColorSystem

from tracelane.core.tables.compile.artefacts import KernelOrigin
from tracelane.core.tables.host.allocations import HOST_TYPES
from tracelane.core.tables.host.allocators import OWNERS, TYPE_NAMES
from tracelane.tui.draw.colour import ANSI


def test_device_types_are_numbered_as_in_c10() -> None:
    """c10 numbers its types of devices from 0 on without a gap; those with a meaning here are among them."""
    assert [*TYPE_NAMES] == [*range(21)]
    assert [TYPE_NAMES[number] for number in (0, 1, 12, 15, 20)] == [
        "CPU",
        "CUDA",
        "XPU",
        "HPU",
        "PrivateUse1",
    ]
    assert [TYPE_NAMES[number] for number in HOST_TYPES] == ["CPU", "MKLDNN", "IDEEP"]
    assert {TYPE_NAMES[number]: who for number, who in OWNERS.items()} == {
        "CUDA": "runtime",
        "PrivateUse1": "PyTorch",
    }


@pytest.mark.parametrize("name", ANSI)
def test_the_sixteen_colours_survive(name: str) -> None:
    """Each of the 16 colours is of the four levels of VGA, and a terminal of 16 colours shows it as it is."""
    assert {*ANSI[name]} <= {0, 85, 170, 255}
    assert Color.from_rgb(*ANSI[name]).downgrade(ColorSystem.STANDARD).number == Color.parse(name).number


@pytest.mark.parametrize(
    ("one", "other", "both"), [("a", "", "a"), ("", "b", "b"), ("a", "b", "a"), ("", "", "")]
)
def test_what_says_so_is_named(one: str, other: str, both: str) -> None:
    """Of two origins that are joined the first file that says something is named."""
    assert KernelOrigin(artefact=one).joined(KernelOrigin(artefact=other)).artefact == both
