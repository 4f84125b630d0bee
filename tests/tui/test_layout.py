"""The layout: which line shows what, folds, hidden and quiet lanes, positions; never more work than lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.events import complete, index_of
from tests.tui.fake_trace import LaneSpec, fake_trace
from tracelane.core.index.format import LaneKind
from tracelane.core.query.filter import parse
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.core.trace.hit_search import matches
from tracelane.tui.actions.view import in_view
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.lane_choice import toggle_fold
from tracelane.tui.draw.layout import FOLD_LANES, Layout, layout_of
from tracelane.tui.draw.line import Half, LineKind, alike, lane_key, process_key
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.ranks import RANK_PARTS, rank_heads
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.session import FOLD_ROWS, RowKey, Session, Viewport

SESSION = Session(Viewport(0, 1_000_000, 100), 0)
QUIET = {"slices": 3, "start": 10, "end": 20}


def titles(trace: Trace, session: Session = SESSION) -> list[str]:
    layout = Layout(trace, session)
    return [line.title for line in layout.lines(0, layout.height)]


def test_a_process_then_its_rows() -> None:
    """A process's title is followed by the rows of its lanes, the lane's title at its first row."""
    trace = fake_trace([LaneSpec("main", rows=3), LaneSpec("worker")], [LaneSpec("stream 7")])
    assert titles(trace) == ["process 0", "main", "", "", "worker", "process 1", "stream 7"]
    lines = Layout(trace, SESSION).lines(0, 99)
    assert [line.depth for line in lines] == [-1, 0, 1, 2, 0, -1, 0]


def test_lines_agree_with_each_other() -> None:
    """One line, many lines and a row's position tell the same, at every offset."""
    trace = fake_trace([LaneSpec("a", rows=30), LaneSpec("b", rows=2)], [LaneSpec("c", rows=5)], empty=2)
    layout = Layout(trace, SESSION)
    whole = layout.lines(0, layout.height)
    assert len(whole) == layout.height
    for y in range(layout.height):
        assert layout.line(y) == whole[y]
        assert layout.lines(y, 3) == whole[y : y + 3]
        key = whole[y].row_key
        if key is not None:
            assert layout.y_of(key) == y
    assert layout.line(-1) is None and layout.line(layout.height) is None


@pytest.mark.parametrize(
    ("rows", "device_rows", "expected", "last"),
    [
        (2, FOLD_ROWS, [0, 0, 1, 1], "stream 7"),
        (5, 3, [0, 0, 1, 1, 2, 2, 3], "+2 rows"),
        (4, 3, [0, 0, 1, 1, 2, 2, 3, 3], "stream 7"),
    ],
)
def test_rows_of_two_lines(rows: int, device_rows: int, expected: list[int], last: str) -> None:
    """Each row in which a device works may have two lines: the same row, of which the first has the name of
    the lane, the position and the fold; rows of the host have one.
    """
    trace = fake_trace([LaneSpec("main", rows=2)], [LaneSpec("stream 7", rows=rows)], labels=("CPU", "GPU 0"))
    session = SESSION._replace(device_lines=2, device_rows=device_rows)
    layout = Layout(trace, session)
    lines = layout.lines(0, layout.height)
    of_host, of_device = (
        [(y, line) for y, line in enumerate(lines) if line.lane is lane] for lane in trace.lanes
    )
    assert [line.half for _, line in of_host] == [Half.WHOLE] * 2
    assert [line.depth for _, line in of_device] == expected
    doubled = [line for _, line in of_device if line.kind is LineKind.ROW]
    assert [line.half for line in doubled] == [Half.UPPER, Half.LOWER] * (len(doubled) // 2)
    assert [line.title for line in doubled] == ["stream 7"] + [""] * (len(doubled) - 1)
    for y, line in of_device:
        own = RowKey(lane_key(trace.lanes[1]), line.depth)
        assert layout.line(y) == line and layout.y_of(own) == y - (line.half is Half.LOWER)
    below = layout.visible(0, layout.height - 2)[-1]
    assert below is not None and below.title.endswith("below")
    assert of_device[-1][1].title == last or last == "stream 7"
    assert layout_of(trace, session._replace(device_lines=1), layout).height < layout.height


def test_the_second_line_of_a_row_is_in_sight_too() -> None:
    """A row of two lines that gets the focus is scrolled to so far that both are seen."""
    specs = [LaneSpec(f"stream {number}") for number in range(30)]
    trace = fake_trace(specs, labels=("GPU 0",))
    session = SESSION._replace(device_lines=2)
    layout = Layout(trace, session)
    for height in (4, 9, 10, 11):
        for lane in trace.lanes:
            seen = in_view(session._replace(focus=RowKey(lane_key(lane), 0)), layout, height)
            visible = layout.visible(seen.scroll, height)
            assert [line.half for line in visible if line and line.lane is lane] == [Half.UPPER, Half.LOWER]


def test_deep_lanes_open_folded() -> None:
    """A lane deeper than 24 rows shows 24 and a line that counts the rest; unfolded it shows all."""
    trace = fake_trace([LaneSpec("deep", rows=100)])
    layout = Layout(trace, SESSION)
    assert layout.height == 1 + FOLD_ROWS + 1
    more = layout.line(1 + FOLD_ROWS)
    assert more is not None and more.kind is LineKind.MORE and more.title == "+76 rows"
    opened = toggle_fold(SESSION, more, trace)
    assert Layout(trace, opened).height == 1 + 100
    first = Layout(trace, opened).line(1)
    assert first is not None
    assert Layout(trace, toggle_fold(opened, first, trace)).height == 1 + FOLD_ROWS + 1
    hidden_row = RowKey(lane_key(trace.lanes[0]), 99)
    assert layout.y_of(hidden_row) == 1 + FOLD_ROWS


def test_crowded_processes_open_folded() -> None:
    """A process of more than 50 lanes opens as one line that stands for them, and unfolds and folds again."""
    trace = fake_trace([LaneSpec(f"t{i}") for i in range(FOLD_LANES + 1)])
    layout = Layout(trace, SESSION)
    line = layout.line(0)
    assert layout.height == 1 and line is not None
    assert line.folded and line.title == "process 0 · 51 lanes" and len(line.members) == 51
    opened = toggle_fold(SESSION, line, trace)
    layout = Layout(trace, opened)
    assert layout.height == 1 + 51
    header = layout.line(0)
    assert header is not None
    assert Layout(trace, toggle_fold(opened, header, trace)).height == 1


def test_folding_a_lane_and_a_process() -> None:
    """A folded lane takes one line, a folded process too, and both come back."""
    trace = fake_trace([LaneSpec("main", rows=3), LaneSpec("worker")])
    row = Layout(trace, SESSION).line(2)
    assert row is not None
    folded = toggle_fold(SESSION, row, trace)
    assert titles(trace, folded) == ["process 0", "main", "worker"]
    line = Layout(trace, folded).line(1)
    assert line is not None and line.kind is LineKind.LANE and line.depth == 0
    assert toggle_fold(folded, line, trace).folded == frozenset()
    header = Layout(trace, SESSION).line(0)
    assert header is not None
    assert titles(trace, toggle_fold(SESSION, header, trace)) == ["process 0 · 2 lanes"]
    trace = fake_trace(
        [LaneSpec("main")], [LaneSpec("a"), *(LaneSpec(f"idle {i}", **QUIET) for i in range(3))]
    )
    folded = SESSION._replace(folded=frozenset({process_key(trace.processes[1])}))
    assert titles(trace, folded) == ["process 0", "main", "process 1 · 4 lanes"]
    layout = Layout(trace, folded)
    assert [layout.y_of(RowKey(lane_key(lane), 0)) for lane in trace.lanes] == [1, 2, 2, 2, 2]
    only_marks = fake_trace([LaneSpec("main"), LaneSpec("marks", rows=0, slices=0, instants=3)])
    assert [line.depth for line in Layout(only_marks, SESSION).lines(0, 9)] == [-1, 0, 0]


def test_folded_ranks() -> None:
    """A folded rank has a line, or one for each part of what its devices do; one lane is not counted. Where
    the title has scrolled away the first of them takes its place.
    """
    specs = [LaneSpec("stream 1"), LaneSpec("main")]
    trace = fake_trace(specs, specs, [LaneSpec("main")], are_ranks=True)
    lines = Layout(trace, SESSION).lines(0, 9)
    assert [line.title for line in lines] == ["rank 0 · 2 lanes", "rank 1 · 2 lanes", "rank 2"]
    assert [line.members for line in lines] == [(0,), (2,), (4,)]
    assert {line.part for line in lines} == {""}
    for count in (2, 3):
        layout = Layout(trace, SESSION._replace(rank_lines=count))
        parts = [line.part for line in layout.lines(0, layout.height)]
        assert parts == [*RANK_PARTS[:count], *RANK_PARTS[:count], ""]
        assert all(layout.y_of(RowKey(lane_key(trace.lanes[lane]), 0)) == count for lane in (2, 3))
    many = Layout(fake_trace(*[specs] * 4, are_ranks=True), SESSION._replace(rank_lines=3))
    above = [many.title_above(scroll, 6) for scroll in range(6)]
    assert above == [None, many.line(0), None, None, many.line(3), None]


def test_ranks_that_are_not_there_yet_have_no_title_above_them() -> None:
    """What is said of a missing rank stays where it is: no title of another rank stands on it."""
    trace = fake_trace(*[[LaneSpec("main", rows=4)]] * 4, are_ranks=True, missing=(1, 2))
    unfolded = frozenset(process_key(head) for head in rank_heads(trace).values())
    layout = Layout(trace, SESSION._replace(unfolded=unfolded))
    missing = [y for y in range(layout.height) if layout.lines(y, 1)[0].kind is LineKind.MISSING]
    assert len(missing) == 2
    for y in missing:
        assert layout.scrolled(y, 5) == y and layout.title_above(y, 5) is None


def test_what_a_filter_empties_is_hidden(tmp_path: Path) -> None:
    """A lane of which a filter leaves nothing has no line; hits of another filter count for nothing."""
    events = [complete(0, 9, "a", tid=1), complete(0, 9, "b", tid=2)]
    trace = Trace([index_of(events, tmp_path / "two")])
    hits, session = matches(trace, parse("a"), trace.clocks), SESSION._replace(filter="a")
    layout = layout_of(trace, session, None, hits)
    assert [line.lane.tid for line in layout.lines(0, 9) if line.lane] == ["1"] and layout.hidden_lanes == 1
    assert layout_of(trace, session, layout, hits) is layout
    other = layout_of(trace, SESSION._replace(filter="b"), None, hits)
    assert len([line for line in other.lines(0, 9) if line.lane]) == 2


def test_quiet_threads_fold_into_one_line() -> None:
    """Several threads with hardly anything in them take one line; show_quiet brings them back."""
    trace = fake_trace([LaneSpec("main"), *(LaneSpec(f"idle {i}", **QUIET) for i in range(5))])
    layout = Layout(trace, SESSION)
    assert titles(trace) == ["process 0", "main", "5 quiet threads"] and layout.quiet_lanes == 5
    line = layout.line(2)
    assert line is not None and line.members == (1, 2, 3, 4, 5)
    assert layout.y_of(RowKey(lane_key(trace.lanes[3]), 0)) == 2
    assert len(titles(trace, toggle_fold(SESSION, line, trace))) == 7


@pytest.mark.parametrize(
    ("specs", "labels", "why"),
    [
        ([LaneSpec("main"), LaneSpec("one", **QUIET)], "", "one line for one thread saves nothing"),
        ([LaneSpec("one", **QUIET), LaneSpec("two", **QUIET)], "", "nothing else would be left"),
        ([LaneSpec("main"), *[LaneSpec("stream 7", **QUIET)] * 2], "", "streams are device lanes"),
        ([LaneSpec("main"), *[LaneSpec("x", **QUIET)] * 2], "AIU 0", "the process is a device"),
        (
            [LaneSpec("main"), *[LaneSpec("x", **QUIET, kind=LaneKind.COUNTER)] * 2],
            "",
            "counters are no threads",
        ),
        ([LaneSpec("main"), *[LaneSpec("x", start=10, end=20)] * 2], "", "many slices"),
        ([LaneSpec("main"), *[LaneSpec("x", **QUIET, unclosed=1)] * 2], "", "something never ended"),
    ],
)
def test_what_is_never_quiet(specs: list, labels: str, why: str) -> None:
    """Some lanes keep their own line however little they hold."""
    assert len(titles(fake_trace(specs, labels=[labels]))) == 1 + len(specs), why


def test_lanes_outside_the_first_window_open_folded() -> None:
    """A lane of many rows that the first window does not reach takes one line until it is unfolded."""
    trace = fake_trace([LaneSpec("main"), LaneSpec("far", rows=20, start=10**15, end=10**15 + 5)])
    assert titles(trace) == ["process 0", "main", "far"]
    line = Layout(trace, SESSION).line(2)
    assert line is not None and line.kind is LineKind.LANE
    opened = toggle_fold(SESSION, line, trace)
    assert len(titles(trace, opened)) == 22
    row = Layout(trace, opened).line(5)
    assert row is not None
    assert len(titles(trace, toggle_fold(opened, row, trace))) == 3
    for rows, kind in ((1, LineKind.ROW), (2, LineKind.LANE)):
        trace = fake_trace([LaneSpec("main"), LaneSpec("far", rows=rows, start=10**15, end=10**15 + 5)])
        line = Layout(trace, SESSION).line(2)
        assert line is not None and line.kind is kind, "a lane of one row takes one line anyway"


def test_hidden_lanes_are_counted() -> None:
    """What is hidden by any means, and what is empty, is counted in the last line."""
    trace = fake_trace([LaneSpec("t 1"), LaneSpec("t 2"), LaneSpec("main")], [LaneSpec("gpu")], [], empty=12)
    assert titles(trace)[-1] == "12 empty lanes and 1 empty process not shown"
    assert titles(fake_trace([LaneSpec("t 1")], empty=1))[-1] == "1 empty lane not shown"
    cases = [
        (SESSION._replace(hidden_lanes=frozenset({lane_key(trace.lanes[2])})), 1, ["t 1", "t 2", "gpu"]),
        (SESSION._replace(hidden_alike=(alike("t 7"),)), 2, ["main", "gpu"]),
        (
            SESSION._replace(hidden_processes=frozenset({process_key(trace.processes[1])})),
            1,
            ["t 1", "t 2", "main"],
        ),
        (SESSION._replace(only="^t|gpu"), 1, ["t 1", "t 2", "gpu"]),
        (SESSION._replace(only="T ("), 4, []),
    ]
    for session, hidden, left in cases:
        layout = Layout(trace, session)
        assert layout.hidden_lanes == hidden
        assert session is not cases[0][0] or layout.y_of(RowKey(lane_key(trace.lanes[2]), 0)) is None
        assert [line.title for line in layout.lines(0, 99) if line.kind is LineKind.ROW] == left
        assert titles(trace, session)[-1].endswith(f"{hidden} lane{'s' if hidden > 1 else ''} hidden")


def test_pinned_lanes_stay_above() -> None:
    """Pinned lanes stand above the scrolled ones with their process's name, and a rule under them."""
    trace = fake_trace([LaneSpec(f"t{i}") for i in range(40)])
    session = SESSION._replace(pinned=(lane_key(trace.lanes[30]),), scroll=10)
    layout = Layout(trace, session)
    lines = layout.visible(session.scroll, 20)
    assert len(lines) == 20
    first, rule, title, third = lines[:4]
    assert first is not None and first.title == "t30 · process 0" and first.pinned
    assert rule is not None and rule.kind is LineKind.RULE
    assert title == layout.line(0)
    assert third is not None and third.lane == trace.lanes[10]
    assert [layout.line_at(y, 10, 20) for y in range(20)] == lines


def test_pinned_lanes_of_many_rows_are_cut() -> None:
    """All pinned lanes together have twelve rows at most; below few lines no title stays."""
    trace = fake_trace([LaneSpec("a", rows=8), LaneSpec("b", rows=8), LaneSpec("c", rows=8)])
    layout = Layout(trace, SESSION._replace(pinned=tuple(map(lane_key, trace.lanes[:2]))))
    rows = [(line.lane and line.lane.title, line.depth) for line in layout.pinned[:-1]]
    assert rows == [*(("a", depth) for depth in range(8)), *(("b", depth) for depth in range(4))]
    assert layout.title_above(3, 8) is None and layout.title_above(3, 9) == layout.line(0)


@pytest.mark.parametrize("height", range(9))
def test_nothing_at_all(height: int) -> None:
    """A trace without lanes has no line, and no title above any."""
    assert Layout(fake_trace(), SESSION).visible(0, height) == [None] * height


@pytest.mark.slow
@pytest.mark.parametrize("height", [1, 2, 3, 10, 200])
@pytest.mark.parametrize("pinned", [0, 1, 5])
def test_any_height(height: int, pinned: int) -> None:
    """However high the lane area, it gets exactly so many lines, and scrolling stops at the ends."""
    trace = fake_trace([LaneSpec(f"t{i}") for i in range(40)])
    session = SESSION._replace(pinned=tuple(lane_key(lane) for lane in trace.lanes[:pinned]))
    layout = Layout(trace, session)
    for scroll in (-5, 0, 7, 10**6):
        lines = layout.visible(scroll, height)
        assert len(lines) == height
        assert [layout.line_at(y, scroll, height) for y in range(height)] == lines
    if height <= 10:
        assert layout.visible(10**6, height)[-1] == layout.line(layout.height - 1)


def test_overlap_rows_are_marked() -> None:
    """Rows beyond the nesting depth of a lane with overlaps are marked as such, others are not."""
    trace = fake_trace(
        [LaneSpec("s", rows=4, depth=2, overlapping=3, instants=1), LaneSpec("t", rows=3, depth=2)]
    )
    lines = [line for line in Layout(trace, SESSION).lines(0, 99) if line.kind is LineKind.ROW]
    assert [line.overlap for line in lines] == [False, False, True, False, False, False, False]


def test_a_layout_is_kept_while_moving() -> None:
    """Zooming, selecting and scrolling keep the layout, folding makes a new one."""
    trace = fake_trace([LaneSpec("main", rows=3)])
    layout = layout_of(trace, SESSION)
    moved = SESSION._replace(
        viewport=Viewport(5, 500, 100), cursor=9, scroll=1, focus=RowKey(lane_key(trace.lanes[0]), 1)
    )
    assert layout_of(trace, moved, layout) is layout
    folded = SESSION._replace(folded=frozenset({lane_key(trace.lanes[0])}))
    assert layout_of(trace, folded, layout) is not layout


def test_a_frame_does_not_depend_on_the_trace() -> None:
    """With 5,000 lanes and 100,000 rows a frame makes its own lines only."""
    reads = 0

    class Counted(list):  # type: ignore[type-arg]
        def __getitem__(self, index: int) -> object:  # type: ignore[override]
            nonlocal reads
            reads += 1
            return super().__getitem__(index)

    trace = fake_trace(*([LaneSpec(f"t{i}", rows=20) for i in range(50)] for _ in range(100)))
    trace.lanes = Counted(trace.lanes)  # type: ignore[assignment]
    layout = Layout(trace, SESSION)
    assert layout.height == 100 + 100_000
    reads = 0
    assert len(layout.lines(60_000, 50)) == 50
    assert reads <= 50


def test_what_is_below_is_counted_and_the_bar_shows_where_one_is() -> None:
    """The last line says how many lanes are below it, the thumb goes from top to end; where all is seen there
    is none of it.
    """
    trace = fake_trace([LaneSpec(f"t{n}", rows=3) for n in range(10)])
    layout = Layout(trace, SESSION)
    lines = layout.visible(0, 11)
    assert lines[-1] is not None and lines[-1].title == "7 more lanes below"
    assert layout.thumb(0, 11).start == 0
    end = layout.height - 11
    assert layout.visible(end, 11)[-1] == layout.line(layout.height - 1)
    assert layout.thumb(end, 11).stop == 11
    assert not layout.says_more(0, layout.height) and not layout.thumb(0, layout.height)
    deep = Layout(fake_trace([LaneSpec("deep", rows=FOLD_ROWS)]), SESSION)
    last = deep.visible(0, 10)[-1]
    assert last is not None and last.title == f"{1 + FOLD_ROWS - 9} more rows below"


@pytest.mark.parametrize(
    ("pinned", "height", "last", "begin", "end", "until"),
    [
        # lanes pinned, lines, what the last says, the thumb at both ends, the last scroll with more below
        (0, 2, "p", range(1), range(1, 2), -1),  # too few to say anything
        (0, 3, "10 more lanes below", range(1), range(2, 3), 28),
        (0, 12, "7 more lanes below", range(4), range(8, 12), 19),  # a lane's first row is its lane's
        (0, 13, "6 more lanes below", range(5), range(8, 13), 18),
        (1, 3, "10 more lanes below", range(1), range(2, 3), 28),  # too few for pinned ones
        (1, 4, "11 more lanes below", range(2, 3), range(3, 4), 29),
        (1, 13, "7 more lanes below", range(2, 5), range(10, 13), 20),
    ],
)
def test_what_is_below_pinned_lanes(
    pinned: int, height: int, last: str, begin: range, end: range, until: int
) -> None:
    """Pinned lanes and their rule take their lines from those that scroll, of few lines none."""
    trace = fake_trace([LaneSpec("p"), *(LaneSpec(f"t{n}", rows=3) for n in range(10))])
    session = SESSION._replace(pinned=tuple(lane_key(lane) for lane in trace.lanes[:pinned]))
    layout = Layout(trace, session)
    line = layout.visible(0, height)[-1]
    assert line is not None and line.title == last
    assert (layout.thumb(0, height), layout.thumb(10**6, height)) == (begin, end)
    assert max((scroll for scroll in range(99) if layout.says_more(scroll, height)), default=-1) == until


def test_titles_stay_at_the_top() -> None:
    """Wherever lines begin, the first is the title of their process, and the next row has its lane's title;
    the last line of a process leaves its place to no title.
    """
    trace = fake_trace(*([LaneSpec(f"{process}{n}", rows=4) for n in range(3)] for process in "ab"))
    layout = Layout(trace, SESSION)
    for scroll in range(layout.height - 8):
        first, second = layout.visible(scroll, 8)[:2]
        beginning = layout.line(scroll)
        assert first is not None and second is not None and beginning is not None
        if (following := layout.line(scroll + 1)) and following.process != beginning.process:
            assert first.lane is not None and first.title == first.lane.title
        else:
            assert first.kind is LineKind.PROCESS and first.process == beginning.process
            assert second.lane is not None and second.title == second.lane.title
            assert (second.lane, second.depth) == (following.lane, following.depth)
    assert layout.visible(3, 4)[0] != layout.line(0)  # too few lines for a title
    assert layout.visible(3, 5)[0] == layout.line(0)
    assert layout.title_above(0, 8) is None  # that line is the title
    counters = fake_trace([LaneSpec("memory", rows=9, kind=LaneKind.COUNTER)])
    second = Layout(counters, SESSION).visible(3, 6)[1]
    assert second is not None and not second.title  # the row is drawn with its series' name


@pytest.mark.parametrize("height", [1, 3, 5, 11])
@pytest.mark.parametrize("begin", [0, 20, 10**6])
def test_the_focus_is_never_under_a_line_that_says_something_else(height: int, begin: int) -> None:
    """Whatever row is focused, scrolling to it from anywhere shows it, and no title in its place or the line
    that says what is below.
    """
    trace = fake_trace(*([LaneSpec(f"t{n}", rows=3) for n in range(5)] for _ in range(3)))
    layout = Layout(trace, SESSION)
    lines = [layout.line(y) for y in range(layout.height)]
    assert sum(line is not None and line.row_key is not None for line in lines) > height
    for line in lines:
        assert line is not None
        if line.row_key is not None:
            session = in_view(SESSION._replace(focus=line.row_key, scroll=begin), layout, height)
            assert any(
                one is not None and one.holds(line.row_key) for one in layout.visible(session.scroll, height)
            )


def test_frames_that_fill_little_fold_with_those_above_them(tmp_path: Path) -> None:
    """Frames that span a thread, and rows of frames below them that fill less than a tenth, are one line; a
    row that fills more, or holds anything else, is drawn.
    """
    spanning = [complete(at, 1000 - at, f"f{at}.py({at}): f", "python_function") for at in range(2)]
    little = [complete(at, 10, f"short.py({at}): g", "python_function") for at in (10, 900)]
    nested = [complete(at + 2, 5, f"inner.py({at}): h", "python_function") for at in (10, 900)]
    op = complete(14, 1, "aten::mm", "cpu_op")
    trace = Trace([index_of([*spanning, *little, *nested, op], tmp_path / "few")])
    layout = Layout(trace, SESSION)
    rows = [line for line in layout.lines(0, layout.height) if line.kind is LineKind.ROW]
    assert [(line.depth, line.frames) for line in rows] == [(1, range(4)), (4, range(0))]
    key = lane_key(trace.lanes[0])
    assert [layout.y_of(RowKey(key, depth)) for depth in range(5)] == [1, 1, 1, 1, 2]
    wide = complete(300, 200, "wide.py(1): g", "python_function")
    trace = Trace([index_of([*spanning, *little, *nested, op, wide], tmp_path / "wide")])
    layout = Layout(trace, SESSION)
    rows = [line for line in layout.lines(0, layout.height) if line.kind is LineKind.ROW]
    assert [(line.depth, line.frames) for line in rows] == [(0, range(2))] + [
        (at, range(0)) for at in (2, 3, 4)
    ]


@pytest.mark.parametrize(
    ("share", "category", "depths"),
    [(0.96, "cpu_op", [0, 2]), (0.94, "cpu_op", [0, 1, 2]), (0.96, "cuda_runtime", [0, 1, 2])],
)
def test_a_chain_is_one_line(share: float, category: str, depths: list[int], tmp_path: Path) -> None:
    """A row whose slices are each repeated by one child of their category for 95 % of their time stands for
    this child's row, too; less, two children that share it or a call within an operator are drawn.
    """
    events = []
    for at in range(0, 10_000, 1000):
        events += [
            complete(at, 900, "aten::to", "cpu_op"),
            complete(at, 900 * share, "aten::copy_", category),
        ]
        events += [complete(at, 420, "a", "cpu_op"), complete(at + 430, 420, "b", "cpu_op")]
    trace = Trace([index_of(events, tmp_path / "chain")])
    layout = Layout(trace, SESSION)
    rows = [line for line in layout.lines(0, layout.height) if line.kind is LineKind.ROW]
    assert [line.depth for line in rows] == depths
    key = lane_key(trace.lanes[0])
    assert layout.y_of(RowKey(key, 1)) == (1 if len(depths) == 2 else 2)
    opened = Layout(trace, SESSION._replace(unfolded=frozenset({key})))
    assert [line.depth for line in opened.lines(0, opened.height) if line.kind is LineKind.ROW] == [0, 1, 2]
    brute = trace.row_columns(trace.lanes[0]).repeat_those_above(0.95).tolist()
    assert brute == [depth not in depths for depth in range(3)]


def test_frames_with_slivers_beside_them_fold(tmp_path: Path) -> None:
    """Frames of 99 % of a thread fold below an annotation, though others stand in their rows; those of less
    do not. Each folded slice keeps its line, is marked when searched and drawn when selected.
    """
    outer = [complete(at, 10_000 - at, f"outer{at}.py(1): f", "python_function") for at in range(3)]
    step = complete(3, 9_997, "capture", "user_annotation")
    near = [complete(50 + at, 9_920 - 2 * at, f"near{at}.py(1): f", "python_function") for at in range(3)]
    slivers = [complete(10, 20, "before", "cpu_op"), complete(11, 8, "within", "cpu_op")]
    slivers += [complete(12, 2, "deepest.py(1): f", "python_function")]
    short = [complete(60 + at, 9_800 - 2 * at, f"short{at}.py(1): f", "python_function") for at in range(3)]
    sibling = [complete(9_900, 30, "beside.py(1): f", "python_function")]
    trace = Trace([index_of([*outer, step, *near, *slivers, *short, *sibling], tmp_path / "near")])
    layout = Layout(trace, SESSION)
    rows = [line for line in layout.lines(0, layout.height) if line.kind is LineKind.ROW]
    expected = [(2, range(3)), (3, range(0)), (6, range(4, 7)), (7, range(7, 10))]
    assert [(line.depth, line.frames) for line in rows] == expected
    key = lane_key(trace.lanes[0])
    assert [layout.y_of(RowKey(key, depth)) for depth in range(10)] == [1, 1, 1, 2, 3, 3, 3, 4, 4, 4]
    opened = Layout(trace, SESSION._replace(unfolded=frozenset({key})))
    drawn = [line.depth for line in opened.lines(0, opened.height) if line.kind is LineKind.ROW]
    assert drawn == list(range(10))

    look, view = LineContext(Palette(Depth.NONE), UNICODE, 16, 100), Viewport(0, 10_000_000, 100)
    reader, session = RowReader(trace), SESSION._replace(viewport=view)
    text = "".join(part.text for part in line_segments(rows[2], reader, session, look))
    assert "⋯ 3 frames … f " in text
    reader.look_for(matches(trace, parse("before"), trace.clocks), None)
    marked = line_segments(rows[2], reader, session, look)
    assert [part.style is not None and part.style.underline for part in marked].count(True) == 1
    session = session._replace(selection=SliceId(0, 7), viewport=Viewport(0, 100_000, 100))
    text = "".join(part.text for part in line_segments(rows[2], reader, session, look))
    assert "⋯ before" in text and "3 frames" not in text.partition("before")[0]
