"""Texts in ASCII: the same number of cells, lookalikes where there are some."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tracelane.tui.draw.labels import ascii_text


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
