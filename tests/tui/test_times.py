"""Times as people type them, and zones of wall times."""

from __future__ import annotations

import time
from datetime import UTC

import pytest

from tracelane.core.base.errors import UsageError
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.palette import Depth, palette_for
from tracelane.tui.draw.ruler import Origin, ruler_lines
from tracelane.tui.session import Session, Viewport
from tracelane.tui.times import (
    TimeFrame,
    TimeWriter,
    moment_of,
    parse_range,
    parse_span,
    parse_time,
    zone_of,
    zone_text,
)

HOUR = 3600 * 10**9
WALL = 1_718_871_200 * 10**9  # 2024-06-20 08:13:20 UTC
FRAME = TimeFrame(
    start=5_000_000,
    end=9_000_000,
    file_offset=100,
    wall_offset=WALL,
    steps=(
        ("3", 5_000_000, 6_000_000),
        ("4", 6_000_000, 7_500_000),
        ("ProfilerStep#9", 8_000_000, 9_000_000),
    ),
    zone="UTC",
    marks=(("Slow part", 6_100_000, 6_200_000), ("slow part", 6_300_000, 6_300_000), ("", 1, 1)),
)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("+12.5ms", 17_500_000),
        ("+ 3 µs", 5_003_000),
        ("+0.0000005ms", 5_000_000),  # half a ns goes to the even one
        ("+1.5ns", 5_000_002),
        ("+7min", 5_000_000 + 7 * 60 * 10**9),
        ("@5000.5", 5_000_500 + 100),
        ("@5533068085033.188", 5_533_068_085_033_188 + 100),
        ("@-1", -1000 + 100),
        ("@5e3", 5_000_100),
        ("08:13:20.006", 6_000_000),
        ("2024-06-20 08:13:20.0065", 6_500_000),
        ("09:13", HOUR - 20 * 10**9),
        ("step:4", 6_000_000),
        ("step:9", 8_000_000),
        ("step:nth:0", 5_000_000),
        ("step:nth:-1", 8_000_000),
        ("mark:slow part", 6_300_000),
        ("mark:SLOW PART", 6_100_000),
    ],
)
def test_readings(text: str, time: int) -> None:
    """Every reading gives the exact ns."""
    assert parse_time(text, FRAME) == time


def test_a_step_is_a_span() -> None:
    """A step names its whole length, anything else one stamp."""
    assert parse_span("step:4", FRAME) == (6_000_000, 7_500_000)
    assert parse_span("+1us", FRAME) == (5_001_000, 5_001_000)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("12.5", "step:4"),
        ("12.5ms", "+12.5ms"),
        ("-3ms", "@"),
        ("soon", "no time"),
        ("", "no time"),
        ("step:17", "no step 17"),
        ("step:nth:8", "3 steps"),
        ("25:00:00", "25:00:00"),
        ("@1e999999999", "too far"),
        ("+1e5ms", "no time"),
    ],
)
def test_refusals_name_the_readings(text: str, word: str) -> None:
    """A bare number and nonsense are refused, and the message helps."""
    with pytest.raises(UsageError) as refusal:
        parse_time(text, FRAME)
    assert word in str(refusal.value)


def test_what_a_trace_does_not_tell() -> None:
    """Without a base time there is no wall clock, without steps no step."""
    bare = TimeFrame(0, 10)
    for text in ("09:00:00", "step:1"):
        with pytest.raises(UsageError):
            parse_time(text, bare)


@pytest.mark.parametrize("start", [0, 400 * HOUR, -400 * HOUR])
def test_midnight_goes_to_the_nearest_day(start: int) -> None:
    """A time without a date means the day on which it is nearest to the trace, wherever its axis begins."""
    wall = 1_718_927_990 * 10**9  # 23:59:50 UTC
    frame = TimeFrame(start, start + 30 * 10**9, wall_offset=wall - start, zone="UTC")
    assert parse_time("00:00:05", frame) == start + 15 * 10**9
    assert parse_time("23:59:55", frame) == start + 5 * 10**9


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("+1ms..+2ms", (6_000_000, 7_000_000)),
        ("@5000..step:4", (5_000_100, 7_500_000)),
        ("step:3", (5_000_000, 6_000_000)),
        ("step:3..4", (5_000_000, 7_500_000)),
        ("step:nth:0..-1", (5_000_000, 9_000_000)),
        ("mark:Slow part", (6_100_000, 6_200_000)),
        ("+0.5ms .. mark:Slow part", (5_500_000, 6_200_000)),
    ],
)
def test_stretches(text: str, span: tuple[int, int]) -> None:
    """FROM..TO, steps and marks with a length are stretches of time."""
    assert parse_range(text, FRAME) == span


@pytest.mark.parametrize("text", ["+1ms", "+2ms..+1ms", "..", "+1ms..", "mark:slow part", "mark:no", "1..2"])
def test_no_stretches(text: str) -> None:
    """What has no length, or is no time, is refused in a sentence."""
    with pytest.raises(UsageError):
        parse_range(text, FRAME)


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
