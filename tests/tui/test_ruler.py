"""The ruler: ticks at nice times, in cells where they belong, whatever the span."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tracelane.core.export.marks import Mark
from tracelane.tui.draw.glyphs import ASCII, UNICODE
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.ruler import (
    Origin,
    RulerMarks,
    ruler_lines,
    steps_in,
    tick_label,
    tick_step,
    ticks,
    time_text,
    wall_text,
)
from tracelane.tui.session import Session, Viewport
from tracelane.tui.steps import StepMark

LOOK = LineContext(Palette(Depth.NONE), UNICODE, 16, 64)


def text_of(lines: list) -> list[str]:
    return ["".join(segment.text for segment in line) for line in lines]


@given(st.integers(1, 10**19), st.integers(1, 400))
def test_steps_are_one_two_five(span: int, width: int) -> None:
    """Ticks are 1, 2 or 5 times a power of ten apart, not closer than asked, and as close as that allows."""
    step = tick_step(span, width, 14)
    assert int(str(step).rstrip("0")) in (1, 2, 5)
    assert step * width >= span * 14
    if step > 1:
        assert step * width <= 2.5 * (span * 14 + width)


def test_a_step_has_its_number_where_its_title_has_no_room() -> None:
    """A narrow step says which one it is: `12`, not `ste`."""
    session = Session(Viewport(0, 64, 64), 0)
    steps = [StepMark("11", 0, 20), StepMark("12", 20, 26), StepMark("warm_up", 26, 32)]
    above, _ = text_of(ruler_lines(session, Origin(0, 0, None), steps, LOOK, 2))
    assert above[16:48] == "┊step 11            ┊12   ┊warm…".ljust(32)


@pytest.mark.parametrize("width", range(16, 40))
def test_wide_letters_take_two_cells(width: int) -> None:
    """Titles of steps in letters of two cells leave the line as wide as the screen, wherever they are cut."""
    steps = [StepMark("训练步骤一", 0, 17), StepMark("验证", 17, 64)]
    look = LOOK._replace(area=width)
    above, _ = text_of(ruler_lines(Session(Viewport(0, 64, width), 0), Origin(0), steps, look, 2))
    assert cell_len(above) == look.titles + width and "训" in above


@given(
    st.integers(-(10**18), 10**18),
    st.integers(1, 10**18),
    st.integers(20, 300),
    st.integers(-(10**18), 10**18),
)
def test_ticks_lie_on_multiples_inside_the_view(start: int, span: int, width: int, origin: int) -> None:
    """Every tick is a multiple of the step away from the origin, in the view, and none is missing."""
    view = Viewport(start, max(span, width), width)
    times = ticks(view, origin)
    step = tick_step(view.span, view.width)
    assert all(view.start <= time < view.end and (time - origin) % step == 0 for time in times)
    assert len(times) in (view.span // step, view.span // step + 1)


@pytest.mark.parametrize(
    ("time", "step", "label"),
    [
        (0, 1, "0"),
        (5, 1, "5 ns"),
        (1_500, 500, "1.5 µs"),
        (2_000_000, 1_000_000, "2 ms"),
        (2_500_000, 100_000, "2.5 ms"),
        (12_000_000_000, 1_000_000_000, "12 s"),
        (12_000_000_001, 1, "12.000000001 s"),
        (-1_500_000, 500_000, "-1.5 ms"),
        (1_234_000_000_000, 10**9, "1 234 s"),
    ],
)
def test_tick_labels(time: int, step: int, label: str) -> None:
    """A tick's label has the unit of its size and the digits its step needs, no more."""
    assert tick_label(time, step) == label


def test_three_rulers() -> None:
    """A time is written from the start, as in the file (µs), or on the wall clock."""
    session = Session(Viewport(0, 1000, 10), 0)
    origin = Origin(1_000_000, 0, 3_600 * 10**9)
    assert time_text(1_500_000, session, origin, 1000) == "500 µs"
    assert time_text(1_500_001, session._replace(ruler="file"), origin) == "@1500.001"
    in_file = [time_text(1_520_000, session._replace(ruler="file"), origin, 10**n) for n in range(4)]
    assert in_file == ["@1520.000", "@1520.00", "@1520.0", "@1520"]
    around_zero = [time_text(ns, session._replace(ruler="file"), origin) for ns in (-1_500, -1, 0, 1)]
    assert around_zero == ["@-1.500", "@-0.001", "@0.000", "@0.001"]
    utc = session._replace(ruler="wall", zone="UTC")
    assert time_text(1_500_000, utc, origin, 500_000) == "01:00:00.0015"
    india = session._replace(ruler="wall", zone="+05:30")
    assert time_text(1_500_000, india, origin, 500_000) == "06:30:00.0015"
    assert time_text(1_500_000, session._replace(ruler="wall"), Origin(1_000_000), 1000) == "500 µs"
    assert wall_text(10**30).endswith("s")


@given(st.integers(0, 10**18), st.integers(1, 10**18), st.integers(-5, 70), st.sampled_from([1, 2]))
def test_the_ruler_fills_its_lines(start: int, span: int, cursor: int, height: int) -> None:
    """Every line is exactly as wide as the screen, wherever cursor, range and steps lie."""
    view = Viewport(start, max(64, span), 64)
    session = Session(view, view.edge(cursor), range=(view.edge(cursor - 3), view.edge(cursor + 9)))
    steps = [StepMark("3", view.edge(-2), view.edge(5)), StepMark("4", view.edge(5), view.edge(30))]
    for glyphs in (UNICODE, ASCII):
        look = LineContext(Palette(Depth.NONE), glyphs, 16, 64)
        lines = text_of(ruler_lines(session, Origin(0), steps, look, height))
        assert len(lines) == height
        assert all(len(line) == 80 for line in lines)


@pytest.mark.parametrize("ruler", ["relative", "file", "wall"])
@pytest.mark.parametrize("span", [640_000, 914_000, 5_000_000_000])
def test_the_cursor_covers_no_digit(ruler: str, span: int) -> None:
    """Wherever the cursor stands, the labels that are there without it are there in full, and in order."""
    view = Viewport(0, span, 64)
    origin = Origin(0, 0, 1_700_000_000_000_000_000)

    def lower(time: int) -> str:
        session = Session(view, time, ruler=ruler, zone="UTC")
        return text_of(ruler_lines(session, origin, (), LOOK, 1))[-1][LOOK.titles :]

    labels = lower(-1).replace(UNICODE.tick, " ").split()
    assert len(labels) >= 3
    for cell in range(60):  # behind it stands the zone
        line = lower(view.edge(cell))
        assert line[cell] == UNICODE.cursor
        plain = line.replace(UNICODE.tick, " ").replace(UNICODE.cursor, "")
        assert "".join(plain.split()) == "".join(labels)


def test_cursor_steps_and_range_are_shown() -> None:
    """The cursor stands in its cell, steps carry their names, the range its length."""
    view = Viewport(0, 64_000, 64)
    steps = [StepMark("3", 0, 30_000), StepMark("4", 30_000, 60_000)]
    session = Session(view, 10_500, range=(40_000, 50_000))
    upper, lower = text_of(ruler_lines(session, Origin(0), steps, LOOK, 2))
    assert "step 3" in upper and "step 4" in upper and "10 µs" in upper
    assert lower[16 + 10] == UNICODE.cursor
    assert lower[16 + 40] == UNICODE.range_left and lower[16 + 49] == UNICODE.range_right
    assert "10.5 µs" in lower[:16]


@pytest.mark.parametrize(
    ("baseline", "range_", "upper"),
    [
        ((4, 44), None, "╞═══════════ baseline 40 µs ═══════════╡"),
        ((4, 44), (42, 43), "╞═══════════ baseline 40 µs ════════1 µs"),
        ((4, 44), (20, 22), "╞══════════════2 µs════ baseline 40 µs ╡"),
        ((4, 44), (6, 43), "╞═├───────────────37 µs───────────────┤╡"),
    ],
)
def test_the_lengths_of_range_and_baseline(
    baseline: tuple[int, int], range_: tuple[int, int] | None, upper: str
) -> None:
    """The baseline's length gives way to the range and to its length, which never run into one number."""
    times = [None if pair is None else (1000 * pair[0], 1000 * pair[1]) for pair in (baseline, range_)]
    session = Session(Viewport(0, 64_000, 64), 0, baseline=times[0], range=times[1])
    line, _ = text_of(ruler_lines(session, Origin(0), [], LOOK, 2))
    assert line[16 + 4 :].rstrip() == upper


@pytest.mark.parametrize(("begin", "is_named"), [(6, False), (7, False), (8, True)])
def test_the_length_of_a_range_and_a_steps_name_are_two_words(begin: int, is_named: bool) -> None:
    """Where the length of a short range would stand right behind a step's name, the name is left out."""
    steps = [StepMark("5", 0, 60_000)]
    session = Session(Viewport(0, 64_000, 64), 0, range=(1000 * begin, 1000 * (begin + 4)))
    line, _ = text_of(ruler_lines(session, Origin(0), steps, LOOK, 2))
    assert "4 µs" in line.split("step 5 ")[-1] and ("step 5 " in line) == is_named


def test_steps_per_frame_are_bounded() -> None:
    """However many steps lie in the view, at most two per cell and a remainder are drawn."""
    steps = [StepMark(str(i), 10 * i, 10 * i + 10) for i in range(10_000)]
    assert len(steps_in(steps, Viewport(0, 100_000, 100))) <= 400
    assert [step.label for step in steps_in(steps, Viewport(100, 100, 100))] == [
        str(i) for i in range(10, 20)
    ]


@pytest.mark.parametrize(("cell", "nanosecond"), [(10_000_000, False), (1_000, False), (20, True)])
def test_the_files_long_numbers_can_be_read(cell: int, nanosecond: bool) -> None:
    """In 80 columns the cursor's time keeps its last digits; ticks neither run together nor trail zeros."""
    start = 1_700_000_000_123_456_000
    view = Viewport(start, 64 * cell, 64)
    session = Session(view, view.edge(20), ruler="file")
    (line,) = text_of(ruler_lines(session, Origin(0), [], LOOK, 1))
    cursor = time_text(session.cursor, session, Origin(0), 1)
    corner = line[:15].strip()
    assert "…" in corner and corner.partition("…")[2] in cursor and len(corner.partition("…")[2]) >= 11
    labels = [part for part in line[16:].split(UNICODE.tick)[1:] if part.strip()]
    assert len(labels) > 1
    assert all(len(label.rstrip()) < len(label) for label in labels[:-1])
    assert all(("." in label) == nanosecond for label in labels)


@pytest.mark.parametrize("width", [64, 100, 170])
@pytest.mark.parametrize("begin", [0, 17, 40, 61])
def test_labels_never_run_into_marks_and_range_ends(width: int, begin: int) -> None:
    """A tick whose label would stand where a mark or an end of the range does has none; labels are whole or
    absent.
    """
    view = Viewport(0, 100_000_000, width)
    labels = 0
    for at in range(0, 100_000_000, 3_700_000):
        session = Session(view, 99_000_000, range=(begin * 1_000_000, begin * 1_000_000 + 20_000_000))
        marks = [Mark(at, at, "here")]
        look = LineContext(Palette(Depth.NONE), UNICODE, 16, width)
        line = "".join(
            segment.text for segment in ruler_lines(session, Origin(0), (), look, 1, RulerMarks(marks))[0]
        )[16:]
        for label in re.findall(r"[\d.]+[^\d.]*", line):
            labels += 1
            number = re.match(r"[\d.]+( ms)?", label)
            assert number is not None and (number[0] == "0" or number[0].endswith(" ms")), line
    assert labels > 20
