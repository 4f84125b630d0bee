"""Runs and segments: what the cells of a row show, exactly as wide as it, with and without colours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment

from tracelane.core.query.cells import Span
from tracelane.tui.draw.glyphs import ASCII, UNICODE, Glyphs, ascii_text, fit, fit_middle, glyphs_for, padded
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.runs import (
    FULL,
    OPEN_LEFT,
    OPEN_RIGHT,
    OVERLAP,
    RAGGED,
    TOUCH,
    WHOLE,
    BusyRow,
    Facts,
    InstantCell,
    ManyNames,
    Run,
    SampleRow,
    run_at,
    slice_runs,
)
from tracelane.tui.draw.segments import (
    SelectedCells,
    busy_segments,
    compact_count,
    counter_segments,
    levels_of,
    mark_segments,
    share_label,
    slice_segments,
)

NAMES = st.one_of(
    st.sampled_from(["aten::mm", "层归一化", "e\u0301te\u0301", "🚀 launch 🚀", "a", "", "ﷺ", "x" * 300]),
    st.text(st.characters(blacklist_categories=("Cc", "Cs", "Cf", "Cn")), max_size=30),
)
PALETTES = [Palette(depth, dark) for depth in Depth for dark in (True, False)]


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[Run], int]:
    width = draw(st.integers(1, 120))
    runs, cell = [], 0
    while True:
        left = cell + draw(st.integers(0, 6))
        right = left + draw(st.integers(1, 30))
        if right > width:
            return runs, width
        whole = draw(st.booleans())
        flags = draw(st.sampled_from([0, OPEN_LEFT, OPEN_RIGHT, RAGGED, TOUCH])) | WHOLE if whole else 0
        label = draw(NAMES) if right - left >= 3 else ""
        edges = (draw(st.integers(0, 7)), draw(st.integers(1, 8))) if whole and right - left > 1 else (0, 8)
        count = 1 if whole else draw(st.integers(2, 10**7))
        share = "" if whole else draw(st.sampled_from(["", "28 %", "≈5 %"]))
        levels = bytes(draw(st.integers(1, FULL)) for _ in range(left, right)) if edges == (0, 8) else b""
        runs.append(Run(left, right, "kernel", label, len(runs), count, flags, *edges, share, levels))
        cell = right


def text_of(segments: list[Segment]) -> str:
    return "".join(segment.text for segment in segments)


@given(rows(), st.sampled_from(PALETTES), st.sampled_from([UNICODE, ASCII]), st.data())
def test_a_row_has_exactly_its_width(
    row: tuple[list[Run], int], palette: Palette, glyphs: Glyphs, data: st.DataObject
) -> None:
    """Whatever names, flags and selection a row has, its segments fill exactly its cells."""
    runs, width = row
    left = data.draw(st.integers(0, width - 1))
    number = data.draw(st.integers(0, len(runs)))
    chosen = data.draw(st.sampled_from([None, SelectedCells(number, left, min(width, left + 3))]))
    segments = slice_segments(runs, width, palette, glyphs, chosen, data.draw(st.booleans()))
    assert sum(segment.cell_length for segment in segments) == width
    assert cell_len(text_of(segments)) == width


@given(rows(), st.sampled_from(PALETTES))
def test_few_segments_per_run(row: tuple[list[Run], int], palette: Palette) -> None:
    """A row makes one segment per run and gap, at most two more per run for its edges, and one for each
    change of brightness; heights of one colour make one.
    """
    runs, width = row
    steps = sum(a != b for run in runs for a, b in zip(run.levels, run.levels[1:]))
    assert len(slice_segments(runs, width, palette, UNICODE)) <= 4 * len(runs) + 1 + steps
    bars = [run._replace(left_eighths=0, right_eighths=8, label="") for run in runs]
    assert len(slice_segments(bars, width, palette, UNICODE, has_bars=True)) <= 2 * len(runs) + 1


@given(NAMES, st.integers(0, 40))
def test_fitting_is_exact(text: str, width: int) -> None:
    """A text is cut or filled to exactly its cells, by either end or in its middle."""
    for fitted in (fit(text, width), fit_middle(text, width), padded(text, width), fit(text, width, "", "-")):
        assert cell_len(fitted) == width


def test_the_middle_is_what_goes() -> None:
    """A title that is too long keeps both its ends."""
    assert fit_middle("thread 12345 (python)", 13) == "thread…ython)"


@pytest.mark.parametrize("width", range(10, 40))
def test_both_ends_of_a_title_are_about_as_long(width: int) -> None:
    """What goes from the middle leaves as much of the begin as of the end, one character more at most."""
    text = "".join(map(chr, range(0x100, 0x180)))
    begin, end = fit_middle(text, width).split("…")
    assert text.startswith(begin) and text.endswith(end) and len(begin) - len(end) in (0, 1)


def test_without_colours_brackets_carry_the_meaning() -> None:
    """Without colours slices stand in brackets, open ends have none, several are texture and count."""
    runs = [
        Run(0, 14, "kernel", "aten::linear", 0, 1, WHOLE),
        Run(14, 20, "kernel", "mm", 1, 1, WHOLE | OPEN_RIGHT),
        Run(22, 23, "kernel", "", 2, 1, WHOLE),
        Run(24, 40, "kernel", "gemm", 3, 120, 0, share="28 %", levels=bytes((6,)) * 16),
        Run(41, 50, "kernel", "open", 4, 1, WHOLE | RAGGED),
    ]
    text = text_of(slice_segments(runs, 52, Palette(Depth.NONE), UNICODE))
    assert text == "[aten::linear][mm ──  │ ▓·gemm 28 %▓▓▓▓▓ [open ──⌇  "
    plain = text_of(slice_segments(runs, 52, Palette(Depth.NONE), ASCII))
    assert plain == "[aten::linear][mm --  | %-gemm 28 %%%%%% [open --~  "


def test_the_selection_is_seen_without_colours() -> None:
    """The selected slice is in reverse video; inside an aggregated run only its cells are."""
    runs = [Run(0, 10, "kernel", "gemm", 3, 1, WHOLE), Run(10, 30, "kernel", "many", 9, 120, 0)]
    palette = Palette(Depth.NONE)
    first = slice_segments(runs, 30, palette, UNICODE, SelectedCells(3, 0, 10))
    assert first[0].style is not None and first[0].style.reverse and first[0].text == "[gemm ───]"
    inside = slice_segments(runs, 30, palette, UNICODE, SelectedCells(20, 12, 13))
    marked = [segment for segment in inside if segment.style is not None and segment.style.reverse]
    assert [segment.text for segment in marked] == [UNICODE.single]


LENGTHS = {"bars": 9, "shades": 5, "lefts": 9, "baseline": 3}
"""Glyphs that are several: levels of a bar; begin, middle and end of a stretch."""


def test_ascii_glyphs_are_ascii() -> None:
    """The ASCII set holds nothing else, each glyph of either set takes one cell."""
    for glyphs in (UNICODE, ASCII):
        for name, value in glyphs._asdict().items():
            if name == "name":
                continue
            if glyphs is ASCII:
                assert value.isascii()
            assert all(cell_len(character) == 1 for character in value)
            assert len(value) == LENGTHS.get(name, 1)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-8", "unicode"),
        ("UTF8", "unicode"),
        ("ANSI_X3.4-1968", "ascii"),
        ("latin-1", "ascii"),
        ("?", "ascii"),
    ],
)
def test_glyphs_follow_the_locale(encoding: str, name: str) -> None:
    """Where the locale is not UTF-8 the drawing is ASCII."""
    assert glyphs_for(encoding).name == name


def test_marks_count() -> None:
    """An instant is a mark, up to nine are a digit, more a star."""
    marks = [InstantCell(1, "memory", 1, 0), InstantCell(2, "memory", 9, 1), InstantCell(5, "memory", 10, 10)]
    assert text_of(mark_segments(marks, 8, Palette(Depth.NONE), UNICODE)) == " ▾9  *  "


def test_counter_levels() -> None:
    """Values become eighths of the scale, nothing before the first sample; a flat series is half high."""
    nan = float("nan")
    assert levels_of([nan, 0, 2, 4], [nan, 0, 8, 4], 0, 8) == [(-1, -1), (0, 0), (2, 8), (4, 4)]
    assert levels_of([5.0], [5.0], 5.0, 5.0) == [(4, 4)]


@pytest.mark.parametrize(
    ("levels", "extent", "text"),
    [
        ([(-1, -1), (0, 0), (0, 0), (8, 8), (8, 8)], (388.0, 440.0), " ⣀⣀⠏⠉"),
        ([(8, 8), (0, 0), (2, 2), (4, 4)], (388.0, 440.0), "⠉⣆⠤⠒"),
        ([(0, 8), (0, 8), (-1, -1), (3, 5)], (0.0, 1.0), "⣿⣿ ⠶"),
        ([(-1, -1), (0, 0), (0, 0)], None, " ──"),
    ],
)
def test_counters_are_lines(
    levels: list[tuple[int, int]], extent: tuple[float, float] | None, text: str
) -> None:
    """A counter is a line within its range that leads from cell to cell; one that never varies is thin."""
    row = SampleRow(tuple(levels), (), "", extent)
    assert text_of(counter_segments(row, Palette(Depth.NONE), UNICODE)) == text
    assert ascii_text(text).isascii() and "?" not in ascii_text(text)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=40))
def test_a_line_has_no_hole(levels: list[tuple[int, int]]) -> None:
    """A cell has all dots from its least to its greatest value, and those that join it to the one before."""
    row = SampleRow(tuple((min(pair), max(pair)) for pair in levels), (), "", (0.0, 1.0))
    before: set[int] = set()
    for character, (low, high) in zip(
        text_of(counter_segments(row, Palette(Depth.NONE), UNICODE)), row.levels
    ):
        bits = ord(character) - 0x2800
        left = {at for at, bit in enumerate((0x40, 0x04, 0x02, 0x01)) if bits & bit}
        right = {at for at, bit in enumerate((0x80, 0x20, 0x10, 0x08)) if bits & bit}
        assert right == set(range(min(3, low // 2), min(3, high // 2) + 1)) <= left
        assert not before or any(abs(one - other) <= 1 for one in before for other in left)
        assert sorted(left) == list(range(min(left), max(left) + 1))
        before = right


def test_busy_levels() -> None:
    """A cell in which anything lies is never blank, an empty one always; one that waits is hatched."""
    row = BusyRow((-1, 0, 4, 8, 3), ("a",) * 5, hatched=(False,) * 4 + (True,))
    assert text_of(busy_segments(row, Palette(Depth.NONE), UNICODE)) == " ▁▄█░"


@pytest.mark.parametrize(
    ("count", "text"),
    [(2, "2"), (999, "999"), (1000, "1.0k"), (12_345, "12k"), (999_999, "999k"), (10**6, "1.0M")],
)
def test_compact_counts(count: int, text: str) -> None:
    """Counts take at most four cells and are never rounded up."""
    assert compact_count(count) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, ""), (1.0, ""), (0.003, "<1 %"), (0.28, "28 %"), (0.997, ">99 %")],
)
def test_a_share_is_never_rounded_to_none_or_all(share: float, text: str) -> None:
    """Of many steps, each with a name of its own, the longest has less than 1 % of the time, not 0 %."""
    assert share_label(share, is_exact=True) == text
    assert share_label(share, is_exact=False) == (text and f"≈{text.lstrip('<>')}")


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.STANDARD])
def test_edges_have_their_slices_colour(depth: Depth, dark: bool) -> None:
    """The eighths at both ends show the slice in its own colour, the rest as an empty cell."""
    palette = Palette(depth, dark)
    run = Run(2, 9, "kernel", "mm", 0, 1, WHOLE, 3, 5)
    left, body, right = slice_segments([run], 10, palette, UNICODE)[1:4]
    assert body.style is not None and left.style is not None and right.style is not None
    assert left.text == UNICODE.lefts[3] and right.text == UNICODE.lefts[5]
    assert left.style.bgcolor == body.style.bgcolor == right.style.color
    assert left.style.color == palette.blank.bgcolor == right.style.bgcolor


EDGES = list(range(100, 201, 10))  # ten cells of 10 ns


def whole(left: int, right: int, index: int = 0) -> Span:
    return Span(left, right, 0, index, 1, True)


def many(left: int, right: int, count: int, index: int = 0) -> Span:
    return Span(left, right, 0, index, count, False)


def fact(start: int, end: int, key: str = "kernel", label: str = "gemm", flags: int = 0) -> Facts:
    return Facts(key, label, start, end, flags)


def test_labels_need_three_cells() -> None:
    """Runs of three cells or more carry their label, narrower ones none."""
    spans = [whole(0, 2, 0), whole(3, 6, 1)]
    runs = slice_runs(spans, [fact(100, 120), fact(130, 160)], EDGES)
    assert [run.label for run in runs] == ["", "gemm"]


def test_open_ends_are_marked() -> None:
    """A slice that begins before the view or ends after it says so."""
    (run,) = slice_runs([whole(0, 10)], [fact(50, 300)], EDGES)
    assert run.flags & OPEN_LEFT and run.flags & OPEN_RIGHT and run.flags & WHOLE
    (run,) = slice_runs([whole(0, 10)], [fact(100, 200)], EDGES)
    assert not run.flags & (OPEN_LEFT | OPEN_RIGHT)


def test_touching_neighbours_of_one_colour_are_told() -> None:
    """A run that begins where one of its colour ends says so; no shade tells them apart."""
    spans = [whole(0, 2, 0), whole(2, 4, 1), whole(4, 6, 2), whole(7, 9, 3)]
    facts = [fact(100, 120), fact(120, 140), fact(140, 160), fact(170, 190)]
    assert [bool(run.flags & TOUCH) for run in slice_runs(spans, facts, EDGES)] == [False, True, True, False]
    facts[1] = fact(120, 140, "memcpy")
    assert not any(run.flags & TOUCH for run in slice_runs(spans, facts, EDGES))


def test_unclosed_and_overlapping_slices_keep_their_flags() -> None:
    """Flags of a slice reach its run; a run that stands for several has no ragged edge."""
    runs = slice_runs(
        [whole(0, 3), many(4, 6, 5)],
        [fact(100, 130, flags=RAGGED | OVERLAP), fact(140, 150, flags=RAGGED)],
        EDGES,
    )
    assert runs[0].flags & RAGGED and runs[0].flags & OVERLAP
    assert not runs[1].flags & RAGGED and runs[1].slices == 5


def test_several_slices_are_called_by_where_the_time_is() -> None:
    """Where it is known how many slices lie in a run and which name takes most time, the run says that."""
    (run,) = slice_runs([many(0, 8, 5)], [fact(100, 110)], EDGES, {0: ManyNames("conv", "28 %", 120)})
    assert (run.slices, run.label, run.share) == (120, "conv", "28 %")


def test_levels_are_those_of_the_cells() -> None:
    """A run has the levels of its cells, none where all are full or eighths show its edges."""
    levels = bytes((8, 3, 8, 8, 1, 0, 0, 0, 0, 0))
    spans, facts = (
        [whole(0, 2, 0), whole(2, 4, 1), whole(4, 5, 2)],
        [fact(100, 114), fact(120, 140), fact(143, 144)],
    )
    for eighths, drawn in ((False, [(8, 3), (), (1,)]), (True, [(), (), (1,)])):
        runs = slice_runs(spans, facts, EDGES, eighths=eighths, levels=levels)
        assert [tuple(run.levels) for run in runs] == drawn


@pytest.mark.parametrize(
    ("start", "end", "left", "right"),
    [(100, 130, 0, 8), (105, 130, 4, 8), (100, 125, 0, 4), (109, 121, 7, 1), (103, 128, 2, 6)],
)
def test_edges_in_eighths(start: int, end: int, left: int, right: int) -> None:
    """Ends inside a cell are told in eighths of it, and a slice never vanishes from a cell it touches."""
    (run,) = slice_runs([whole(0, 3)], [fact(start, end)], EDGES, eighths=True)
    assert (run.left_eighths, run.right_eighths) == (left, right)


def test_each_run_has_its_own_edges() -> None:
    """A run whose neighbour begins in the next cell still ends where it ends, and that one begins later."""
    runs = slice_runs([whole(0, 2), whole(2, 4)], [fact(100, 115), fact(125, 140)], EDGES, eighths=True)
    assert runs[0].right_eighths == 4 and runs[1].left_eighths == 4


def test_run_at() -> None:
    """The run of a cell is found, and none in a gap."""
    runs = slice_runs([whole(0, 2, 7), whole(4, 6, 8)], [fact(100, 120), fact(140, 160)], EDGES)
    assert [getattr(run_at(runs, cell), "at", None) for cell in range(7)] == [7, 7, None, None, 8, 8, None]
    assert isinstance(runs[0], Run)
