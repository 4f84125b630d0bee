"""Which parts of the screen there are at which height, and that together they fill it."""

from __future__ import annotations

import pytest

from tracelane.tui.draw.room import MIN_LANES, Room, Strips, room_of

FROM = {
    "footer": 3,
    "header": 4,
    "ruler": 4,
    "panel": 10,
    "verdict": 12,
    "path": 12,
    "minimap": 14,
    "message": 18,
}
"""The least lines of a screen on which a part is shown."""
STRIPS = Strips(verdict=2, minimap=2, ruler=1, path=1)
LINES = range(1, 100)


def rooms(panel: int = 12, empty: bool = True) -> dict[int, Room]:
    return {lines: room_of(lines, panel, False, empty, STRIPS) for lines in LINES}


@pytest.mark.parametrize("part", FROM)
def test_a_part_comes_with_the_lines_that_it_needs(part: str) -> None:
    """Each part is shown from some height on, and on all higher screens."""
    assert [lines for lines, room in rooms().items() if getattr(room, part)] == [*range(FROM[part], 100)]
    assert FROM.keys() == set(Room._fields)


@pytest.mark.parametrize(("panel", "empty"), [(12, True), (12, False), (40, False), (500, False)])
def test_parts_and_lanes_fill_the_screen(panel: int, empty: bool) -> None:
    """No line is left over; lanes have one at least, and more before there is a panel."""
    for lines, room in rooms(panel, empty).items():
        assert sum(room) + room.lanes(lines) == lines and room.lanes(lines) >= 1
        assert not room.panel or room.lanes(lines) + sum(room[1:5]) >= MIN_LANES
    assert all(sum(room_of(lines, panel, True, empty, STRIPS)) == lines for lines in LINES)


@pytest.mark.parametrize("message", range(8))
def test_a_message_hides_no_lane_that_is_needed(message: int) -> None:
    """A panel grows with a message that covers it, as far as that leaves enough lanes; it never shrinks."""
    for lines, room in rooms().items():
        panel = room.with_message(lines, message).panel
        assert panel >= room.panel and (panel > 0) == (room.panel > 0)
        if panel > room.panel:
            assert room.with_message(lines, message).lanes(lines) >= MIN_LANES and message > 1
            assert panel <= message + 1
        elif room.panel and message > 1 and room.lanes(lines) > MIN_LANES:
            assert room.panel >= message + 1
