"""Times as people type them."""

from __future__ import annotations

import pytest

from tracelane.core.base.errors import UsageError
from tracelane.tui.times import TimeFrame, parse_range, parse_span, parse_time

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


def test_midnight_goes_to_the_nearest_day() -> None:
    """A time without a date means the day on which it is nearest to the trace."""
    start = 1_718_927_990 * 10**9  # 23:59:50 UTC
    frame = TimeFrame(0, 30 * 10**9, wall_offset=start, zone="UTC")
    assert parse_time("00:00:05", frame) == 15 * 10**9
    assert parse_time("23:59:55", frame) == 5 * 10**9


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
