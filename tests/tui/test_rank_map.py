"""The map of many ranks: who is late is seen at once, and opens by a key or a click."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.segment import Segment

from tests.events import complete
from tests.rank_files import straggler_files
from tests.tui.driver import open_viewer, press_keys, screen_text
from tests.tui.fake_trace import LaneSpec, fake_trace
from tracelane.core.base.arrays import EMPTY, Intervals
from tracelane.core.tables.device.rank_activity import RankActivity, RankIntervals
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.device_facts import stored_facts
from tracelane.tui.draw.glyphs import ASCII, UNICODE, Glyphs
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import LineKind
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.opening import with_devices_in_view
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.rank_map import LATE, map_cells, map_gutter_title, map_segments
from tracelane.tui.draw.ranks import MAX_LINES, RankNotes, map_halves, rank_heads
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.panels.legend import legend_text
from tracelane.tui.session import Session, Viewport

LATE_RANK = 45
VIEW = Viewport(0, 1000, 50)
SESSION = Session(VIEW, 0)
EVERY_LOOK = [
    (depth, glyphs, dark) for depth in Depth for glyphs in (UNICODE, ASCII) for dark in (True, False)
]


def ranks_of(count: int) -> Trace:
    """Return a trace of so many ranks with a stream each."""
    return fake_trace(*[[LaneSpec("stream 7", slices=9)]] * count, are_ranks=True)


def activity_of(count: int, late: int) -> RankActivity:
    """Return ranks that all wait for one between 200 and 400 of 1,000 ns, and work before and after."""
    one, meets = (
        Intervals(np.array([0, 400]), np.array([200, 1000])),
        Intervals(np.array([200]), np.array([400])),
    )
    works = [one.union(meets) if rank == late else one for rank in range(count)]
    waits = [EMPTY if rank == late else meets for rank in range(count)]
    delays = [meets if rank == late else EMPTY for rank in range(count)]
    return RankActivity(tuple(range(count)), *(RankIntervals(tuple(each)) for each in (works, waits, delays)))


def notes_of(count: int, late: int) -> RankNotes:
    others = (rank for rank in range(count) if rank != late)
    return RankNotes(late, {late: "last in 4 of 4"}, (late, *others), activity_of(count, late))


@pytest.mark.parametrize("count", [1, 2, 13, 64, 127, 1024])
@pytest.mark.parametrize("lines", [1, 4, 16, 40])
@pytest.mark.parametrize("has_singles", [False, True])
def test_each_rank_has_its_half_of_a_line(count: int, lines: int, has_singles: bool) -> None:
    """All ranks are there once, in order, in no more lines than there are; halves are alike but the last, and
    where ranks are sorted the first have one each.
    """
    heads = list(rank_heads(ranks_of(count)).values())
    lines_of = list(map_halves(heads, lines, lines if has_singles else 0))
    halves = [half for line in lines_of for half in line]
    assert [rank for half in halves for rank in half] == heads and len(lines_of) <= lines
    assert all(len(line) == 2 for line in lines_of[:-1])
    singles = lines if has_singles else 0
    assert {len(half) for half in halves[:singles]} <= {1}
    assert len({len(half) for half in halves[singles:-1]}) <= 1


@pytest.mark.parametrize("height", [6, 15, 22, 40])
@pytest.mark.parametrize("count", [MAX_LINES, MAX_LINES + 1, 64, 1024])
def test_all_ranks_are_seen_without_scrolling(count: int, height: int) -> None:
    """Of more than 12 ranks all are in sight, by number or sorted; 12 and fewer have lines of their own."""
    trace = ranks_of(count)
    session = with_devices_in_view(trace, SESSION, height)
    for order in ((), tuple(reversed(range(count)))):
        layout = Layout(trace, session._replace(rank_order=order))
        lines = [line for line in layout.visible(0, height) if line is not None]
        ranks = [rank.source for line in lines for rank in line.ranks]
        if count <= MAX_LINES:
            assert not ranks
        else:
            assert sorted(ranks) == list(range(count)) and layout.height <= height
            assert not order or ranks == list(order)


@pytest.mark.parametrize("height", [15, 40])
def test_an_open_rank_stands_above_the_others(height: int) -> None:
    """Its lanes are in sight, and the others share what lines are left."""
    trace = ranks_of(64)
    session = with_devices_in_view(trace, SESSION._replace(unfolded=frozenset({(21, "")})), height)
    layout = Layout(trace, session)
    lines = [line for line in layout.visible(0, height) if line is not None]
    assert lines[0].title.startswith("rank 21") and lines[2].title == "stream 7"
    ranks = [rank.source for line in lines for rank in line.ranks]
    assert sorted(ranks) == [rank for rank in range(64) if rank != 21]


def test_ranks_that_are_read_have_their_place() -> None:
    """A rank that is not there yet is in the map from the start, so that nothing moves when it comes."""
    specs = [[LaneSpec("stream 7", slices=9)]] * 20
    whole, part = fake_trace(*specs, are_ranks=True), fake_trace(*specs, are_ranks=True, missing=[3, 4, 5])
    titles = []
    for trace in (whole, part):
        layout = Layout(trace, with_devices_in_view(trace, SESSION, 10))
        titles.append([line.title for line in layout.lines(0, 10)])
    assert titles[0] == titles[1]


@pytest.mark.parametrize("count", [64, 1024])
@pytest.mark.parametrize(("depth", "glyphs", "dark"), EVERY_LOOK)
def test_the_late_rank_stands_out(count: int, depth: Depth, glyphs: Glyphs, dark: bool) -> None:
    """While the others wait, the late rank's row differs from every other row, on every terminal; its line
    is named for it and says how often it comes last.
    """
    late = LATE_RANK if count == 64 else 777
    trace, notes = ranks_of(count), notes_of(count, late)
    session = with_devices_in_view(trace, SESSION, 22)
    layout = Layout(trace, session)
    palette = Palette(depth, dark)
    lines = layout.lines(0, layout.height)
    drawn = {}
    for line in lines:
        assert notes.activity is not None and line.kind is LineKind.RANKS
        drawn[line.title] = _cells(map_segments(line, notes.activity, VIEW, palette, glyphs))
        assert len(drawn[line.title]) == VIEW.width
    own = next(line for line in lines if late in {rank.source for rank in line.ranks})
    waiting = slice(10, 20)
    others = {tuple(cells[waiting]) for title, cells in drawn.items() if title != own.title}
    assert len(others) <= 2 and tuple(drawn[own.title][waiting]) not in others  # the last has a row less
    for room, text in ((18, f"rank {late} slow"), (30, "last in 4 of 4"), (11, f"rank {late}")):
        title, is_slowest = map_gutter_title(own, notes, glyphs.folded, room, glyphs)
        assert is_slowest and text in title and len(title) <= room


def _cells(segments: list[Segment]) -> list[tuple[str, str]]:
    return [(character, str(one.style)) for one in segments for character in one.text]


@pytest.mark.parametrize("span", [1000, 10**6, 10**12])
def test_a_short_delay_is_seen_from_afar(span: int) -> None:
    """However little of a cell it takes, the longest delay in view is as bright as any."""
    cells = map_cells(activity_of(64, LATE_RANK), Viewport(0, span, 50))
    codes = cells.of_ranks([LATE_RANK])
    assert int(codes.max()) == 16 * LATE + 8
    assert all((cells.of_ranks([rank]) // 16 != LATE).all() for rank in range(64) if rank != LATE_RANK)


def test_the_legend_says_what_the_map_shows() -> None:
    """The legend has the map's colours, as it draws them, where there is a map, and only there."""
    for count, has_map in ((64, True), (3, False)):
        trace = ranks_of(count)
        trace.drawn_categories = ()  # type: ignore[misc]
        text = legend_text(trace, Palette(Depth.TRUECOLOR), UNICODE, 200).plain
        assert ("the others wait for it" in text and "it waits for another" in text) is has_map


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """64 ranks, of which one comes last to each collective."""
    folder = tmp_path_factory.mktemp("ranks")
    yield open_trace(straggler_files(folder / "run", 64, LATE_RANK), index_dir=folder / "index")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_late_one_of_64_is_seen_at_once(run: Trace, size: tuple[int, int]) -> None:
    """It is named on the first screen; a key brings it to the top, another one opens it there, and what is
    open stands above the map; the key for the order brings the numbers back.
    """
    async with open_viewer(run, size) as (app, pilot):
        assert f"rank {LATE_RANK} " in _titles(app)
        before = screen_text(app)
        await press_keys(app, pilot, "l")
        lines = app.store.layout_now.visible(0, app.store.now.lane_lines)
        assert lines[0] is not None and lines[0].ranks[0].source == LATE_RANK
        await press_keys(app, pilot, "space")
        assert f"▾ rank {LATE_RANK}" in screen_text(app) and "thread 7" in screen_text(app)
        assert {rank.source for line in app.store.layout_now.lines(0, 99) for rank in line.ranks} == {
            rank for rank in range(64) if rank != LATE_RANK
        }
        await press_keys(app, pilot, "u", "l")
        assert _lanes(screen_text(app)) == _lanes(before)


def _titles(app: object) -> str:
    return "\n".join(line.partition("│")[0] for line in screen_text(app).splitlines())  # type: ignore[arg-type]


def _lanes(text: str) -> list[str]:
    return [line for line in text.splitlines() if "rank" in line and "│" in line]


@pytest.mark.slow
async def test_enter_and_a_click_open_the_latest_of_a_line(run: Trace) -> None:
    """On the line of the late rank both open that rank, whichever other shares its line."""
    async with open_viewer(run, (120, 40)) as (app, pilot):
        top = app.screen.query_one("LaneCanvas").region.y
        lines = app.store.layout_now.visible(0, app.store.now.lane_lines)
        at = next(
            y for y, line in enumerate(lines) if line and LATE_RANK in {one.source for one in line.ranks}
        )
        await pilot.click(offset=(5, top + at))
        await press_keys(app, pilot)
        assert (LATE_RANK, "") in app.session.unfolded
        await press_keys(app, pilot, "u", *["down"] * (at + 1), "enter")
        assert (LATE_RANK, "") in app.session.unfolded


def test_before_waits_are_known_it_shows_devices(tmp_path: Path) -> None:
    """A line of the map is empty where the devices of its ranks do nothing, however busy their hosts are."""
    world = MAX_LINES + 2
    for rank in range(world):
        events = [complete(10 * n, 9, "aten::mm", "cpu_op", pid=50, tid=50) for n in range(100)]
        events.append(complete(0, 400, "gemm", "kernel", pid=0, tid=7))
        info = {"rank": rank, "world_size": world}
        text = json.dumps({"distributedInfo": info, "traceEvents": events})
        (tmp_path / f"rank{rank}.json").write_text(text, encoding="utf-8")
    trace = open_trace(tmp_path, index_dir=tmp_path / "index")
    session = with_devices_in_view(trace, SESSION, 22)._replace(viewport=Viewport(*trace.span, 50))
    reader, look = RowReader(trace), LineContext(Palette(Depth.NONE), UNICODE, 10, 50)
    for line in Layout(trace, session).lines(0, 22):
        text = "".join(segment.text for segment in line_segments(line, reader, session, look, False))[-50:]
        assert text[:19].strip() and not text[22:].strip()


@pytest.mark.slow
async def test_what_the_map_shows_is_stored(run: Trace) -> None:
    """The next first picture has the map as it was counted."""
    async with open_viewer(run, (120, 40)) as (app, _):
        notes = app.screen.query_one("LaneCanvas").ranks  # type: ignore[attr-defined]
    facts = stored_facts(run, run.clocks)
    assert facts is not None and facts.notes.activity is not None and notes.activity is not None
    assert facts.notes._replace(activity=None) == notes._replace(activity=None)
    edges = np.linspace(*run.span, 50).astype(np.int64)
    for stored, counted in zip(facts.notes.activity.in_cells(edges), notes.activity.in_cells(edges)):
        assert np.array_equal(stored, counted) and counted.any()
