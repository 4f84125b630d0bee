"""A line cell by cell: what is drawn over it stands in its cells alone, whatever letters are wide."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tracelane.tui.draw.cells import _NARROW, LineCells, characters, text_in

BLANK, RED, BOLD = Style(color="blue"), Style(color="red"), Style(bold=True)
CHARACTERS = "ab ─░…×é层🚀ﷺ\u0301"
TEXTS = st.text(st.sampled_from(CHARACTERS), max_size=12)
EDGES = st.integers(-4, 40)
LINES = st.lists(st.tuples(TEXTS, st.sampled_from([BLANK, RED])).map(lambda one: Segment(*one)), max_size=4)


def contents(segments: list[Segment]) -> list[tuple[str, Style | None]]:
    """Return the letter and the style of each cell, of a wide letter twice."""
    return [
        (character, segment.style)
        for segment in segments
        for character in segment.text
        for _ in range(cell_len(character))
    ]


@given(TEXTS)
def test_letters_are_the_text(text: str) -> None:
    """A text taken apart has as many cells as it takes, and is the same put together."""
    assert len(characters(text)) == cell_len(text)
    if cell_len(text):
        assert "".join(characters(text)) == text


def test_what_counts_as_narrow_is() -> None:
    """No letter of those that are taken for one cell wide takes more or less."""
    narrow = [chr(code) for code in range(0x10000) if _NARROW.fullmatch(chr(code))]
    assert len(narrow) > 500 and all(cell_len(character) == 1 for character in narrow)


@given(TEXTS, EDGES, EDGES)
def test_a_part_of_a_text_has_its_cells(text: str, left: int, right: int) -> None:
    """Of a letter that is cut in two a blank stays, so that a part is as wide as its cells."""
    width = max(0, min(right, cell_len(text)) - max(0, left))
    assert cell_len(text_in(characters(text), left, right)) == width


CHANGES: dict[str, Callable[[LineCells, int, int], None]] = {
    "put": lambda cells, left, right: cells.put(left, "x" * max(0, right - left), BOLD),
    "put in their style": lambda cells, left, right: cells.put(left, "x" * max(0, right - left)),
    "put what is wide": lambda cells, left, right: cells.put(left, "层" * (max(0, right - left) // 2), BOLD),
    "paint": lambda cells, left, right: cells.paint(left, right, BOLD),
    "paint blanks": lambda cells, left, right: cells.paint(left, right, BOLD, BLANK),
    "add": lambda cells, left, right: cells.add(left, right, BOLD),
}


@pytest.mark.parametrize("name", CHANGES)
@given(line=LINES, left=EDGES, right=EDGES)
def test_nothing_else_changes(name: str, line: list[Segment], left: int, right: int) -> None:
    """Whatever is drawn over some cells, the line keeps its width, and other cells what they show, but for a
    letter of which one half is drawn over: it is blank.
    """
    before, cells = contents(line), LineCells(line, BLANK)
    CHANGES[name](cells, left, right)
    after = contents(cells.segments())
    assert len(after) == len(before) == sum(segment.cell_length for segment in line)
    for cell, (was, now) in enumerate(zip(before, after)):
        if not left <= cell < right:
            assert now == was or (cell in (left - 1, right) and now == (" ", was[1]))


@given(LINES, EDGES, EDGES)
def test_what_is_put_stands_there(line: list[Segment], left: int, right: int) -> None:
    """A text stands in its cells, in its style or in theirs."""
    width = sum(segment.cell_length for segment in line)
    for style in (BOLD, None):
        cells = LineCells(line, BLANK)
        cells.put(left, "x" * max(0, right - left), style)
        for cell in range(max(0, left), min(right, width)):
            assert contents(cells.segments())[cell] == ("x", style or contents(line)[cell][1])


@given(LINES, EDGES, EDGES)
def test_what_was_drawn_apart_stays_apart(line: list[Segment], left: int, right: int) -> None:
    """Segments are cut where a style begins or ends, and never joined; a line as it was drawn is the same."""
    assert LineCells(line, BLANK).segments() == line
    cells = LineCells(line, BLANK)
    cells.add(left, right, BOLD)
    begins = [span.start for span, _ in LineCells(line, BLANK).parts() if span]
    again = [span.start for span, _ in cells.parts() if span]
    width = sum(segment.cell_length for segment in line)
    edges = {max(0, left), right} if max(0, left) < min(right, width) else set()
    assert set(again) == {edge for edge in {*begins, *edges} if edge < width}


def test_a_wide_letter_has_one_style() -> None:
    """Where a style ends within a wide letter both of its cells are blank; a cursor takes both."""
    cells = LineCells([Segment("a层b", BLANK)], BLANK)
    assert [cells.character(cell)[:2] for cell in range(4)] == [
        ("a", range(1)),
        ("层", range(1, 3)),
        ("层", range(1, 3)),
        ("b", range(3, 4)),
    ]
    cells.paint(2, 4, RED)
    assert cells.segments() == [Segment("a ", BLANK), Segment(" b", RED)]
