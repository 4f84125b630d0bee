"""Arrows between lanes over free cells only, and what b and o lead to between ops, launches and kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.segment import Segment

from tests.events import arrow, complete, flow, open_events
from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.core.trace.arrows import MAX, arrows_in_view, arrows_of
from tracelane.tui.actions.select import Target, back_from, on_from
from tracelane.tui.draw.arrows import Weaver, free_cells
from tracelane.tui.draw.glyphs import ASCII, UNICODE, Glyphs
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.palette import Depth, palette_for
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.draw.runs import HATCH, Run
from tracelane.tui.draw.segments import slice_segments
from tracelane.tui.session import Session, Viewport

TITLES, AREA = 16, 100
US = 1000


@pytest.fixture
def make_trace(tmp_path: Path) -> Callable[[list[dict[str, Any]]], Trace]:
    """Return how to make a trace of events."""

    def make(events: list[dict[str, Any]]) -> Trace:
        return open_events(tmp_path, events)

    return make


def _lines(
    trace: Trace, session: Session, height: int = 12, glyphs: Glyphs = UNICODE, arrows: bool = True
) -> list[str]:
    look = LineContext(palette_for(Depth.TRUECOLOR, True, None, False), glyphs, TITLES, AREA)
    layout = Layout(trace, session)
    lines, reader = layout.visible(session.scroll, height), RowReader(trace)
    if arrows:
        drawn = Weaver(reader).lines(lines, layout, session, look)
    else:
        drawn = [line_segments(line, reader, session, look) for line in lines]
    assert all(sum(part.cell_length for part in line) == TITLES + AREA for line in drawn)
    return ["".join(part.text for part in line)[TITLES:] for line in drawn]


def _seen(selection: SliceId | None, start: int = 0, span: int = 100, **more: Any) -> Session:
    return Session(Viewport(start * US, span * US, AREA), start * US, selection=selection, **more)


LAUNCH, KERNEL = complete(10, 5, "launch", "cuda_runtime"), complete(40, 20, "kernel", "kernel", tid=3)
TWO = [LAUNCH, complete(0, 5, "between", tid=2), KERNEL, *arrow(1, LAUNCH, KERNEL)]


def test_round_one_corner(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """From a launch to a kernel later on another lane: down from the launch's end, across to the head."""
    trace = make_trace(TWO)
    for selected in (SliceId(0, 0), SliceId(0, 2)):
        lines = _lines(trace, _seen(selected))
        assert lines[2][14] == "│"
        assert lines[3][14:40] == "└" + "─" * 24 + "▸"
    assert lines != _lines(trace, _seen(None))


def test_an_arrow_meets_the_near_line_of_a_row_of_two(
    make_trace: Callable[[list[dict[str, Any]]], Trace],
) -> None:
    """Where a kernel has two lines, arrows from above end at the upper one, those from below at the other."""
    launch, kernel = complete(10, 5, "launch", "cuda_runtime", tid=5), complete(40, 20, "k", "kernel", tid=3)
    below = [kernel, complete(0, 5, "between", tid=4), launch, *arrow(1, launch, kernel)]
    lines = _lines(make_trace(below), _seen(SliceId(0, 0), device_lines=2))
    assert "k" in lines[1] and "k" not in lines[2]
    assert lines[2][14:40] == "┌" + "─" * 24 + "▸" and lines[3][14] == "│"
    lines = _lines(make_trace(TWO), _seen(SliceId(0, 0), device_lines=2))
    assert lines[3][14:40] == "└" + "─" * 24 + "▸" and not lines[4][:40].strip()


def test_straight(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """Where one stands over the other the line is straight, its head beside the target."""
    a, b = complete(10, 30, "a"), complete(30, 40, "b", tid=3)
    trace = make_trace([a, complete(0, 5, "x", tid=2), b, *arrow(1, a, b)])
    assert _lines(trace, _seen(SliceId(0, 0)))[2][30] == "▾"


def test_back(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """A target that clocks put before its source is pointed at from its right."""
    a, b = complete(60, 10, "a"), complete(30, 10, "b", tid=3)
    trace = make_trace([a, complete(0, 5, "x", tid=2), b, *arrow(1, a, b)])
    assert _lines(trace, _seen(SliceId(0, 0)))[3][40:61] == "◂" + "─" * 19 + "┘"


@pytest.mark.parametrize(("start", "span", "part"), [(0, 30, "kernel ▸"), (30, 60, "◂ launch")])
def test_out_of_sight(
    make_trace: Callable[[list[dict[str, Any]]], Trace], start: int, span: int, part: str
) -> None:
    """An end before or after what is seen is named at the edge of its line, with its direction."""
    lines = _lines(make_trace(TWO), _seen(SliceId(0, 0), start, span))
    assert any(line.strip().startswith(part) or line.strip().endswith(part) for line in lines), lines


@pytest.mark.parametrize(("busy_from", "expected"), [(103, "◂"), (140, "◂ launch"), (100, "")])
def test_without_room_for_the_name_a_head_leads_to_the_edge(
    make_trace: Callable[[list[dict[str, Any]]], Trace], busy_from: int, expected: str
) -> None:
    """An end before the view is named at the edge; where other slices leave too little room for the name a
    head stands there, where they leave none nothing does.
    """
    launch, kernel = complete(0, 5, "launch", "cuda_runtime"), complete(150, 20, "kernel", "kernel", tid=3)
    busy = complete(busy_from, 195 - busy_from, "x")
    lines = _lines(make_trace([launch, busy, kernel, *arrow(1, launch, kernel)]), _seen(SliceId(0, 2), 100))
    assert lines[1][: busy_from - 100].strip(" ─└┘┌┐│") == expected


def test_above_and_below(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """An end on a lane out of sight is named on the last or first line, with its direction."""
    trace = make_trace(TWO)
    assert "▾ kernel" in _lines(trace, _seen(SliceId(0, 0)), height=3)[2]
    assert "▴ launch" in _lines(trace, _seen(SliceId(0, 0), scroll=2), height=2)[0]


def test_below_what_is_counted(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """An end on the lane in whose place the last line counts the lanes below is out of sight too."""
    last = _lines(make_trace([*TWO, complete(80, 5, "after", tid=4)]), _seen(SliceId(0, 0)), height=4)[3]
    assert "▾ kernel" in last


def test_never_over_anything(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """Every cell that shows something without arrows shows the same with them."""
    events: list[dict[str, Any]] = []
    for n in range(12):
        launch = complete(n * 8, 3, f"launch {n}", "cuda_runtime")
        kernel = complete(n * 8 + (n * 7) % 5, 3, f"kernel {n}", "kernel", tid=3)
        events += [launch, complete(n * 8 + n % 5, 4, f"op {n}", tid=2), kernel, *arrow(n, launch, kernel)]
    trace = make_trace(events)
    for glyphs in (UNICODE, ASCII):
        for start, span in ((0, 100), (20, 30), (50, 10)):
            for selected in (None, SliceId(0, 0), SliceId(0, 37)):
                session = _seen(selected, start, span, flows=True)
                plain = _lines(trace, session, glyphs=glyphs, arrows=False)
                drawn = _lines(trace, session, glyphs=glyphs)
                assert drawn != plain
                for before, after in zip(plain, drawn):
                    assert all(a == b for a, b in zip(before, after) if a != " ")


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_the_words_of_a_hatch_are_not_free(glyphs: Glyphs) -> None:
    """Arrows go over a hatch and not over why it is there."""
    look = LineContext(palette_for(Depth.TRUECOLOR, True, None, False), glyphs, TITLES, 40)
    hatch = Run(0, 40, "sync", "host late 9 ms", -1, 0, HATCH)
    segments = slice_segments([hatch], 40, look.palette, glyphs)
    text = "".join(part.text for part in segments)
    free = free_cells([Segment(" " * TITLES, look.palette.title), *segments], look)
    words = range(text.index("host"), text.index("ms") + 2)
    assert not any(free[cell] for cell in words)
    assert free[0] and all(free[words.stop + 2 :])


def test_correlation_draws_too(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """Without a flow the link by correlation is drawn, from either end; never from kernel to kernel."""
    trace = make_trace(
        [
            complete(10, 5, "launch", "cuda_runtime", args={"correlation": 7}),
            complete(40, 20, "kernel", "kernel", tid=3, args={"correlation": 7}),
            complete(70, 20, "kernel", "kernel", tid=3, args={"correlation": 7}),
        ]
    )
    pairs = [(arrow.source.ordinal, arrow.target.ordinal) for arrow in arrows_of(trace, SliceId(0, 0)).drawn]
    assert pairs == [(0, 1), (0, 2)]
    assert [a.source.ordinal for a in arrows_of(trace, SliceId(0, 2)).drawn] == [0]


@pytest.mark.parametrize("count", [3, 200])
def test_all_in_view_are_bounded(make_trace: Callable[[list[dict[str, Any]]], Trace], count: int) -> None:
    """All flows with an end in view are counted, each once; at most MAX of them are drawn."""
    events: list[dict[str, Any]] = []
    for n in range(count):
        launch, kernel = complete(n * 10, 3, "l"), complete(n * 10 + 5, 3, "k", tid=2)
        events += [launch, kernel, *arrow(n, launch, kernel)]
    trace = make_trace(events)
    rows = [trace.row(lane, 0) for lane in trace.lanes]
    for start, end in ((0, count * 10), (0, 7), (4, 12), (13, 14)):
        expected = sum(
            (n * 10 < end and n * 10 + 3 > start) or (n * 10 + 5 < end and n * 10 + 8 > start)
            for n in range(count)
        )
        in_view = arrows_in_view(trace, [(row, start * US, end * US) for row in rows])
        assert len(in_view.drawn) + in_view.more == expected
        assert len(in_view.drawn) == min(MAX, expected) == len(set(in_view.drawn))


async def test_key(make_trace: Callable[[list[dict[str, Any]]], Trace]) -> None:
    """F draws all flows in view and says how many; again, none but the selection's."""
    trace = make_trace(TWO)
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        assert "▸" not in screen_text(app).split("kernel")[0][-80:]
        app.run_command("flows")
        await pilot.pause()
        assert message(app) == "1 flow in view drawn"
        await wait_until_idle(app, pilot)
        assert "─▸" in screen_text(app)
        app.run_command("flows")
        await pilot.pause()
        await wait_until_idle(app, pilot)
        assert "─▸" not in screen_text(app) and not app.session.flows
        app.store.show(app.session._replace(selection=SliceId(0, 2)))
        await wait_until_idle(app, pilot)
        assert "─▸" in screen_text(app)


OP, GRAPH, K1, K2, BACKWARD = 0, 1, 2, 3, 4


def trace_of(tmp_path: Path) -> Trace:
    ids = {"correlation": 7}
    events = [
        complete(0, 100, "aten::mm", "cpu_op"),
        complete(10, 20, "graphLaunch", "cuda_runtime", args=ids),
        complete(50, 10, "k1", "kernel", pid=0, args=ids),
        complete(70, 10, "k2", "kernel", pid=0, args=ids),
        complete(200, 10, "MmBackward0", "cpu_op", tid=2),
        flow("s", 0, 1, "fwdbwd"),
        flow("f", 200, 1, "fwdbwd", bp="e", tid=2),
    ]
    return open_events(tmp_path, events)


def test_on_from_an_op_leads_to_all_its_kernels(tmp_path: Path) -> None:
    """Beside where its own flows lead, an op leads to what the launches within it started."""
    trace = trace_of(tmp_path)
    assert on_from(trace, SliceId(0, OP)) == [
        Target(SliceId(0, BACKWARD), "fwdbwd"),
        Target(SliceId(0, K1), "launch"),
        Target(SliceId(0, K2), "launch"),
    ]


def test_on_from_a_launch_and_back(tmp_path: Path) -> None:
    """A graph launch leads to each of its kernels, each of them back to it, and it is said by what."""
    trace = trace_of(tmp_path)
    assert on_from(trace, SliceId(0, GRAPH)) == [
        Target(SliceId(0, K1), "correlation"),
        Target(SliceId(0, K2), "correlation"),
    ]
    for kernel in (K1, K2):
        assert back_from(trace, SliceId(0, kernel)) == [Target(SliceId(0, GRAPH), "correlation")]
