"""Zones of wall times: names, offsets, this machine's; what is none of them is refused."""

from __future__ import annotations

import time
from datetime import UTC

import pytest

from tracelane.core.base.errors import UsageError
from tracelane.tui.clock import TimeWriter
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.lines import LineContext
from tracelane.tui.draw.palette import Depth, palette_for
from tracelane.tui.draw.ruler import Origin, ruler_lines
from tracelane.tui.session import Session, Viewport
from tracelane.tui.zone import moment_of, zone_of, zone_text

SUMMER = 1_783_598_400 * 10**9
"""2026-07-09 12:00 UTC."""


@pytest.mark.parametrize(
    ("name", "clock", "text"),
    [
        ("UTC", "12:00", "UTC"),
        ("Z", "12:00", "UTC"),
        ("Europe/Zurich", "14:00", "UTC+02:00"),
        ("-04:00", "08:00", "UTC-04:00"),
        ("UTC+5:30", "17:30", "UTC+05:30"),
        ("+0530", "17:30", "UTC+05:30"),
        ("+2", "14:00", "UTC+02:00"),
    ],
)
def test_zones(name: str, clock: str, text: str) -> None:
    """The local time is the zone's at that time of the year, and the zone is told by its offset."""
    moment = moment_of(SUMMER, name)
    assert moment is not None
    assert f"{moment:%H:%M}" == clock and zone_text(moment) == text


def test_this_machines_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the machine's own zone holds."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        for name in ("", "local"):
            moment = moment_of(SUMMER, name)
            assert moment is not None and f"{moment:%H:%M} {zone_text(moment)}" == "08:00 UTC-04:00"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("name", ["Nowhere/Else", "+99", "../etc/passwd", "\0", "12"])
def test_no_zones(name: str) -> None:
    """What is no zone is refused by name."""
    with pytest.raises(UsageError, match="no time zone"):
        zone_of(name)


def test_no_calendar_reaches() -> None:
    """A stamp beyond every calendar has no local time."""
    assert moment_of(10**30) is None and moment_of(-(10**30)) is None
    assert moment_of(0, "UTC") is not None and zone_of("utc") is UTC


def test_ruler_and_details_tell_the_same_zone() -> None:
    """The ruler's ticks and the details' stamp are of the session's zone, and both name it."""
    stamps = TimeWriter(0, (0,), SUMMER, zone="+02:00")
    assert stamps.wall(5) == "2026-07-09 14:00:00.000000005 UTC+02:00"
    view = Viewport(0, 100 * 10**9, 60)
    session = Session(view, 0, ruler="wall", zone="+02:00")
    look = LineContext(palette_for(Depth.NONE, True, None, False), UNICODE, 20, 60)
    line = "".join(segment.text for segment in ruler_lines(session, Origin(0, 0, SUMMER), [], look, 1)[0])
    assert "14:00:00" in line and "14:00:50" in line
    assert line.rstrip().endswith(" UTC+02:00")
