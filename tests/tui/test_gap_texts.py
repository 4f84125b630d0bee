"""What a hatch says of a gap in a device's work: as much as its cells have room for."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

from tracelane.tui.draw.states import MIN_DETAIL, LaneGaps

US = 1000
GAP = LaneGaps(
    np.array([100 * US, 400 * US]),
    np.array([200 * US, 410 * US]),
    np.array([5, 9]),
    np.array([0, 1]),
    MappingProxyType({0: "flatten in a loader"}),
)
SHORT, FULL = "host late 100 µs", "host late 100 µs · flatten in a loader"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (len("host late"), "host late"),
        (len(SHORT) - 1, "host late"),
        (len(SHORT), SHORT),
        (len(SHORT) + MIN_DETAIL - 1, SHORT),
        (len(SHORT) + MIN_DETAIL, FULL),  # cut by who draws it
        (len(FULL), FULL),
    ],
)
def test_a_hatch_says_what_it_has_room_for(cells: int, expected: str) -> None:
    """The cause always, then how long it takes, then what the host did, from a few letters of it on."""
    assert GAP.text(0, cells) == expected


def test_without_more_to_say_it_is_the_length() -> None:
    """Of a gap of which nobody knows what the host did, cause and length are all there is."""
    text = "between kernels 10 µs"
    assert [GAP.text(1, cells) for cells in (99, len(text), len(text) - 1)] == [text, text, "between kernels"]


@pytest.mark.parametrize(
    ("start", "end", "number"),
    [
        (100, 200, 0),
        (140, 191, 0),
        (140, 190, None),  # half of the gap
        (90, 210, 0),
        (150, 250, None),  # half of the gap, and half of the time
        (149, 200, 0),
        (0, 200, None),  # half of the time
        (1, 200, 0),
        (400, 410, 1),
        (210, 390, None),
    ],
)
def test_the_gap_that_a_hatch_is_of(start: int, end: int, number: int | None) -> None:
    """A hatch is of the gap of which it has more than half and which takes more than half of it."""
    assert GAP.mostly_in(start * US, end * US) == number
