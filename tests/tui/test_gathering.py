"""Several files that are still being indexed: those that are there are shown, and nothing moves when others
come.
"""

from __future__ import annotations

import gc
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from weakref import ref

import pytest
from textual.pilot import Pilot

from tests.rank_files import Scripted, gathering_of, rank_file, rank_files
from tests.tui.driver import message, running, screen_text, wait_until, wait_until_idle
from tests.tui.small_file import small_file
from tracelane.core.base.errors import CacheError, UnreadableError
from tracelane.core.index.opening import Gathering
from tracelane.core.index.options import IndexOptions
from tracelane.core.trace import Trace, open_trace, trace_of_opened
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config
from tracelane.tui.controllers.drawing import DrawingController
from tracelane.tui.controllers.gathering import GatheringController
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.ranks import MAX_LINES
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.screens.files import QUESTION, StopQuestion
from tracelane.tui.screens.lists import HelpScreen
from tracelane.tui.session import LaneKey, RowKey, Session, Viewport
from tracelane.tui.view_state import Carried, PendingFiles, Prepared, carried, session_over
from tracelane.tui.widgets.prompt import Prompt

US = 1000


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracelane.core.index.opening.Indexing", Scripted)
    monkeypatch.setattr("tracelane.core.index.opening.SEVERAL_WORTH_IT", 1)
    monkeypatch.setattr("tracelane.tui.controllers.gathering.INTERVAL_S", 0.0)


def gathered(folder: Path) -> tuple[Gathering, Scripted]:
    """Begin with the traces of a folder."""
    index_dir = folder.parent / "index"
    gathering = gathering_of([folder], IndexOptions(index_dir))
    assert gathering is not None
    return gathering, cast(Scripted, gathering._indexing)


def paths_of(gathering: Gathering) -> list[Path]:
    return [Path(member.path) for member in gathering.members]


@asynccontextmanager
async def viewer_of(
    gathering: Gathering, before: Carried | None = None, size: tuple[int, int] = (100, 30)
) -> AsyncIterator[tuple[TracelaneApp, Pilot[None]]]:
    def prepare() -> Prepared:
        trace = trace_of_opened(gathering.all())
        return Prepared(trace, None if before is None else session_over(before, trace), ("a note",))

    app = TracelaneApp(PendingFiles(gathering, "run", prepare, before), config=Config())
    async with running(app, size) as pilot:
        yield app, pilot


def there(app: TracelaneApp) -> int:
    """How many files lanes are shown of."""
    return len(app.trace.members) - len(app.trace.missing) if app.composed else 0


async def until_there(app: TracelaneApp, pilot: Pilot[None], count: int) -> None:
    await wait_until(pilot, lambda: app.composed and there(app) == count)


async def until_all_there(app: TracelaneApp, pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: app.store.is_ready and app.composed)


async def until_looked_at(app: TracelaneApp, pilot: Pilot[None]) -> None:
    """Wait until the trace of all files is there, and have the viewer look whether it may show it."""
    gathering = app.opening
    assert isinstance(gathering, GatheringController)
    await wait_until(pilot, lambda: gathering._prepared is not None, "the trace of all files")
    gathering._watch_files()


def titles(app: TracelaneApp) -> list[str]:
    """What stands left of the lanes on the screen."""
    return [line.split("│")[0].strip() for line in screen_text(app).splitlines() if "│" in line]


def line_of(app: TracelaneApp, key: RowKey) -> int:
    """On which line of the lane area a row is seen."""
    y = app.store.layout_now.y_of(key)
    assert y is not None
    return y - app.store.layout_now.scrolled(app.session.scroll, app.store.now.lane_lines)


async def test_the_files_before_the_first_is_there(tmp_path: Path) -> None:
    """How many there are, how far each is that is being read, and which wait."""
    gathering, script = gathered(rank_files(tmp_path / "run", 6))
    async with viewer_of(gathering) as (app, pilot):
        script.read(paths_of(gathering)[0])
        script.read(paths_of(gathering)[1], "index")
        await wait_until(pilot, lambda: screen_text(app).count("building the index") == 2)
        text = screen_text(app)
        for part in ("run", "0 of 6 ranks", "indexing", "25 %", "100 events", "4 wait: ranks 2-5"):
            assert part in text, part
        assert any("rank 0" in line and "█" in line and "50 %" in line for line in text.splitlines())
        for key, said in (
            ("w", "Zoom in: when the first file is there"),
            ("3", "Call tree, flame: when all files are"),
        ):
            await pilot.press(key)
            assert said in screen_text(app)
        await pilot.press("escape", "escape")
        assert "indexing continues" in screen_text(app) and app.is_running


async def test_one_file(tmp_path: Path) -> None:
    """A file by itself says how much of it is read and what waits for it; then its trace is shown."""
    gathering, script = gathered(rank_files(tmp_path / "run", 1))
    async with viewer_of(gathering) as (app, pilot):
        script.read(paths_of(gathering)[0])
        await wait_until(pilot, lambda: "50 % of " in screen_text(app))
        text = screen_text(app)
        assert all(part in text for part in ("run", "indexing", "rank0.json", "100 events"))
        assert "of 1" not in text
        for key, title in (("w", "Zoom in"), ("3", "Call tree, flame"), ("slash", "Search")):
            await pilot.press(key)
            assert f"{title}: when the file is there" in screen_text(app)
        await pilot.press("escape", "escape")
        assert "indexing continues" in screen_text(app) and app.is_running
        script.finish(paths_of(gathering)[0])
        await until_all_there(app, pilot)
        assert message(app) == "a note" and app.opening is None
        assert (app.session.viewport.start, app.session.viewport.end) == app.trace.opening_span
        await pilot.press("ctrl+c")
        assert "nothing is being indexed" in message(app) and app.is_running


@pytest.mark.parametrize("ending", [(), ("enter",), ("escape",)])
async def test_a_line_typed_too_early_waits(ending: tuple[str, ...], tmp_path: Path) -> None:
    """Letters after the key of a search do nothing else while a file is read: the line has them once it can
    be asked for, and is answered at once after Enter; Esc drops it.
    """
    gathering, script = gathered(rank_files(tmp_path / "run", 1))
    async with viewer_of(gathering) as (app, pilot):
        before = app.session
        await pilot.press("slash", *"zmmq", "backspace")
        assert message(app) == "Search: when the file is there: zmm" and app.session is before
        await pilot.press(*ending)
        assert (message(app) == "") == (ending == ("escape",))
        script.finish(paths_of(gathering)[0])
        await until_all_there(app, pilot)
        await wait_until_idle(app, pilot)
        prompt = app.main.query_one(Prompt)
        assert prompt.is_open == (not ending)
        if prompt.is_open:
            await pilot.press("x", "enter")
            await wait_until_idle(app, pilot)
        assert app.session.search == {(): "zmmx", ("enter",): "zmm", ("escape",): ""}[ending]


async def test_after_the_line_keys_act_again(tmp_path: Path) -> None:
    """With Enter the line ends, and arrows were never part of it."""
    gathering, script = gathered(rank_files(tmp_path / "run", 2))
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths_of(gathering)[0])
        await until_there(app, pilot, 1)
        start = app.session.viewport
        await pilot.press("slash", "down", "x", "enter", "w")
        assert app.session.viewport != start and app.session.focus is not None


@pytest.mark.slow
async def test_lanes_before_the_last_file_is_there(tmp_path: Path) -> None:
    """The first file's lanes are drawn at once, the others have their places; tables wait for all."""
    gathering, script = gathered(rank_files(tmp_path / "run", 6))
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths_of(gathering)[2])
        await until_there(app, pilot, 1)
        lanes = titles(app)
        ranks = [title for title in lanes if "rank" in title]
        assert [title.split(" · ")[0].lstrip("▸ ") for title in ranks] == [f"rank {n}" for n in range(6)]
        assert [title.startswith("▸") for title in ranks] == [False, False, True, False, False, False]
        text = screen_text(app)
        assert "1 of 6 ranks" in text and UNICODE.step in text
        await wait_until(pilot, lambda: screen_text(app).count("waits") == 5, "what is said of the others")
        for key, title in (
            ("3", "Call tree, flame"),
            ("slash", "Search"),
            ("m", "Mark"),
            ("9", "Ranks"),
        ):
            await pilot.press(key)
            assert message(app) == f"{title}: when all files are there"
            await pilot.press("escape")
        app.action_panel("kernels")
        assert app.session.panel == "details"
        await pilot.press("down", "space", "down", "enter")
        assert app.session.selection is not None and app.session.selection.source == 2
        await pilot.press("escape")
        assert app.session.selection is None and not message(app)
        await pilot.press("escape", "escape")
        assert "indexing continues" in message(app) and app.is_running


async def test_how_far_the_others_are(tmp_path: Path) -> None:
    """On the line of each of the others stands how far it is, and below the lanes the same in one line."""
    gathering, script = gathered(rank_files(tmp_path / "run", 6))
    paths = paths_of(gathering)
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths[0])
        script.read(paths[1])
        await until_there(app, pilot, 1)
        script.read(paths[2], "index")
        script.fail(paths[5])
        below = "rank 1: 50 %, rank 2: building the index; 2 wait: ranks 3-4; rank 5: cannot be read"
        await wait_until(pilot, lambda: below in screen_text(app))
        await wait_until(
            pilot, lambda: screen_text(app).count("building the index") == 2, "the lines to follow"
        )
        lines = {line.split("│")[0].strip(): line for line in screen_text(app).splitlines() if "│" in line}
        assert "████████░░░░░░░░ 50 % of " in lines["rank 1"] and "building the index" in lines["rank 2"]
        assert "waits" in lines["rank 3"] and "cannot be read: no trace events in it" in lines["rank 5"]


async def test_how_far_many_are(tmp_path: Path) -> None:
    """Ranks that share a line say together how far they are, until one of them is there."""
    gathering, script = gathered(rank_files(tmp_path / "run", 40))
    paths = paths_of(gathering)
    async with viewer_of(gathering, size=(120, 24)) as (app, pilot):
        script.read(paths[1])
        await wait_until(pilot, lambda: " % of " in screen_text(app))
        lines = [line for line in screen_text(app).splitlines() if "ranks" in line and "│" in line]
        texts = [line.split("│")[1].strip() for line in lines]
        assert texts[0].startswith("waits, ") and len(texts) > 5 and set(texts[1:]) == {"waits"}
        script.finish(paths[0])
        await until_there(app, pilot, 1)
        assert titles(app)[-len(lines) :] == [line.split("│")[0].strip() for line in lines]
        assert screen_text(app).count("waits") == len(lines) - 1


async def test_files_that_are_no_ranks(tmp_path: Path) -> None:
    """Files without ranks have a line each while they are read, below those that are there."""
    paths = [small_file(tmp_path).rename(tmp_path / f"{name}.json") for name in "abc"]
    gathering = gathering_of(paths, IndexOptions(tmp_path / "index"))
    assert gathering is not None
    script = cast(Scripted, gathering._indexing)
    async with viewer_of(gathering) as (app, pilot):
        script.read(paths[2])
        await wait_until(pilot, lambda: " % of " in screen_text(app))
        assert titles(app)[-3:] == ["a.json", "b.json", "c.json"]
        script.finish(paths[1])
        await until_there(app, pilot, 1)
        assert titles(app)[-2:] == ["a.json", "c.json"]
        script.finish(paths[0], paths[2])
        await until_all_there(app, pilot)
        assert [Path(source.path).name for source in app.trace.sources[:3]] == ["a.json", "b.json", "c.json"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (20, 5), (5, 2), (1, 1), (300, 100)])
async def test_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    """Any size of terminal shows what it can, before and after there are lanes."""
    gathering, script = gathered(rank_files(tmp_path / "run", 3))
    paths = paths_of(gathering)
    async with viewer_of(gathering, size=size) as (app, pilot):
        script.finish(paths[1])
        await until_there(app, pilot, 1)
        await pilot.press("shift+down", "w", "enter")
        script.finish(paths[0], paths[2])
        await until_all_there(app, pilot)


async def test_nothing_moves_when_others_come(tmp_path: Path) -> None:
    """Time window, cursor, lane and its line on the screen, folds stay as files come above and below."""
    gathering, script = gathered(rank_files(tmp_path / "run", 4))
    paths = paths_of(gathering)
    async with viewer_of(gathering, size=(100, 14)) as (app, pilot):
        script.finish(paths[2])
        await until_there(app, pilot, 1)
        await pilot.press("w", "w", "d", "left", "shift+down", "shift+down")
        before = app.session
        assert before.focus is not None and before.focus.lane.source == 2
        line = line_of(app, before.focus)
        for count, path in enumerate((paths[0], paths[3]), 2):
            script.finish(path)
            await until_there(app, pilot, count)
            now = app.session
            assert (now.viewport, now.cursor, now.focus) == (before.viewport, before.cursor, before.focus)
            assert line_of(app, before.focus) == line
        await pilot.press("u")
        assert app.session.viewport.span >= before.viewport.span


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1, 3])
async def test_settling_keeps_the_place(tmp_path: Path, rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """When all are there collectives set the clocks; the lane looked at stays where it was."""
    # Lines are drawn anew once it is known what devices did: before or after this looks at them.
    monkeypatch.setattr(DrawingController, "look_at_busy_shares", lambda drawing: None)
    gathering, script = gathered(rank_files(tmp_path / "run", 4, late_us=30))
    paths = paths_of(gathering)
    async with viewer_of(gathering, size=(100, 14)) as (app, pilot):
        script.finish(paths[rank])
        await until_there(app, pilot, 1)
        await pilot.press("W", "shift+down", "shift+down")
        start = app.session.cursor
        app.store.go(app.session._replace(range=(start, start + 5 * US)))
        await pilot.press("w")
        left, before = ref(app.trace), app.session
        assert before.focus is not None and before.focus.lane.source == rank
        line = line_of(app, before.focus)
        drawn, above = screen_text(app).splitlines(), app.main.query_one(LaneCanvas).region.y
        script.finish(*(path for path in paths if path != paths[rank]))
        await until_all_there(app, pilot)
        now = app.session
        offset = 30 * US * rank
        assert now.clocks.offset(rank) == offset and now.focus == before.focus
        assert now.viewport == before.viewport._replace(start=before.viewport.start + offset)
        assert now.cursor == before.cursor + offset
        assert now.range == (start + offset, start + offset + 5 * US)
        assert line_of(app, now.focus) == line
        assert "4 ranks" in screen_text(app) and "a note" in message(app)
        app.dismiss_message()
        await wait_until_idle(app, pilot)
        before_all, now_all = (lines[above + line] for lines in (drawn, screen_text(app).splitlines()))
        assert work_in(before_all) == work_in(now_all)
        await pilot.press("9")
        assert app.session.panel == "ranks"
        await pilot.press("u")
        assert app.session.viewport.span > now.viewport.span and app.session.clocks == now.clocks
        gc.collect()
        assert left() is None, "the trace of the first file alone is held"


def work_in(line: str) -> str:
    """Return a line with a # for each cell in which a device works, whether that is known or an outline, and
    without what it waits for.
    """
    title, _, cells = line.partition("│")
    return title + re.sub(r"[^#]", " ", re.sub("[─▁▂▃▄▅▆▇█]", "#", cells))


@pytest.mark.slow
async def test_untouched_it_opens_as_ever(tmp_path: Path) -> None:
    """Who only looked sees in the end what the trace opens with that was indexed before."""
    folder = rank_files(tmp_path / "run", 3, late_us=30)
    gathering, script = gathered(folder)
    paths = paths_of(gathering)
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths[1])
        await until_there(app, pilot, 1)
        script.finish(paths[0], paths[2])
        await until_all_there(app, pilot)
        await wait_until_idle(app, pilot)
        waited, text = app.session, titles(app)
    direct = TracelaneApp(open_trace(folder, index_dir=tmp_path / "index"), config=Config())
    async with direct.run_test(size=(100, 30)) as pilot:
        await wait_until_idle(direct, pilot)
        assert direct.session == waited and titles(direct) == text


async def test_lanes_are_laid_out_twice_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Showing more files lays their lanes out to see how many lines their ranks share, and as they are shown:
    of many files that takes longer than drawing them.
    """
    traces: list[Trace] = []
    fill = Layout._fill

    def counted(layout: Layout, session: Session) -> None:
        traces.append(layout.trace)
        fill(layout, session)

    monkeypatch.setattr(Layout, "_fill", counted)
    gathering, script = gathered(rank_files(tmp_path / "run", MAX_LINES + 2))
    paths = paths_of(gathering)
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths[1])
        await until_there(app, pilot, 1)
        some = app.trace
        script.finish(*(path for path in paths if path != paths[1]))
        await until_all_there(app, pilot)
        await wait_until_idle(app, pilot)
        assert [traces.count(trace) for trace in (some, app.trace)] == [2, 2]


async def test_what_fails_is_named_and_the_rest_opens(tmp_path: Path) -> None:
    """A file that is no trace is told of meanwhile and in the end; lanes of later ranks stay focused."""
    gathering, script = gathered(rank_files(tmp_path / "run", 3))
    paths = paths_of(gathering)
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths[2])
        await until_there(app, pilot, 1)
        await pilot.press("shift+down", "shift+down", "shift+down", "w")
        focus = app.session.focus
        assert focus is not None and focus.lane.source == 2
        script.fail(paths[0])
        await wait_until(pilot, lambda: "cannot be read: no trace events in it" in screen_text(app))
        await wait_until(pilot, lambda: "1 cannot be read" in screen_text(app), "the header to say so")
        assert app.session.focus == focus
        script.finish(paths[1])
        await until_all_there(app, pilot)
        assert [member.rank for member in app.trace.members] == [1, 2]
        assert app.session.focus == focus._replace(lane=focus.lane._replace(source=1))
        assert "rank0.json: no trace events in it" in " ".join(app.trace.sources[0].notes)


async def test_where_all_fail(tmp_path: Path) -> None:
    """Where no file is a trace the viewer ends and hands the reason on."""
    gathering, script = gathered(rank_files(tmp_path / "run", 2))
    async with viewer_of(gathering) as (app, pilot):
        for path in paths_of(gathering):
            script.fail(path)
        await wait_until(pilot, lambda: app.return_code is not None)
        assert isinstance(app.trouble, UnreadableError) and not app.store.is_ready


async def test_where_the_processes_are_ended(tmp_path: Path) -> None:
    """What goes wrong with the processes ends the viewer, which hands it on."""
    gathering, script = gathered(rank_files(tmp_path / "run", 2))
    async with viewer_of(gathering) as (app, pilot):
        script.error = CacheError("no space left")
        await wait_until(pilot, lambda: app.return_code is not None)
        assert app.trouble is script.error


@pytest.mark.slow
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize(("answer", "stops"), [("y", True), ("n", False)])
async def test_ctrl_c_asks_first(tmp_path: Path, some: bool, answer: str, stops: bool) -> None:
    """Ctrl+C asks, before and after there are lanes; while it asks nothing below it changes."""
    gathering, script = gathered(rank_files(tmp_path / "run", 2))
    paths = paths_of(gathering)
    async with viewer_of(gathering) as (app, pilot):
        if some:
            script.finish(paths[0])
            await until_there(app, pilot, 1)
        await pilot.press("ctrl+c")
        assert isinstance(app.screen, StopQuestion) and QUESTION in screen_text(app)
        script.finish(*(path for path in paths if str(path) not in script.written))
        await until_looked_at(app, pilot)
        assert isinstance(app.screen, StopQuestion) and not app.store.is_ready
        await pilot.press(answer)
        if stops:
            assert app.return_code == 130 and not app.store.is_ready
        else:
            await until_all_there(app, pilot)
            await pilot.press("ctrl+c")
            assert "nothing is being indexed" in message(app)


@pytest.mark.parametrize("some", [False, True])
async def test_quitting(tmp_path: Path, some: bool) -> None:
    """q leaves at once."""
    gathering, script = gathered(rank_files(tmp_path / "run", 2))
    async with viewer_of(gathering) as (app, pilot):
        if some:
            script.finish(paths_of(gathering)[1])
            await until_there(app, pilot, 1)
        await pilot.press("q")
        assert app.return_code == 0 and app.trouble is None and not app.store.is_ready


async def test_a_list_on_top_is_left_alone(tmp_path: Path) -> None:
    """While help is open files come, and all is shown once it is closed."""
    gathering, script = gathered(rank_files(tmp_path / "run", 2))
    paths = paths_of(gathering)
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths[0])
        await until_there(app, pilot, 1)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        script.finish(paths[1])
        await until_looked_at(app, pilot)
        assert isinstance(app.screen, HelpScreen) and there(app) == 1
        await pilot.press("escape")
        await until_all_there(app, pilot)


@pytest.mark.slow
async def test_a_file_that_begins_much_later(tmp_path: Path) -> None:
    """An untouched view takes in what comes; one that was moved does not."""
    folder = tmp_path / "run"
    for rank, begin_us in ((0, 100.0), (1, 30_000.0), (2, 60_000.0), (3, 90_000.0)):
        rank_file(folder, rank, 4, begin_us=begin_us)
    gathering, script = gathered(folder)
    paths = paths_of(gathering)
    async with viewer_of(gathering) as (app, pilot):
        script.finish(paths[0])
        await until_there(app, pilot, 1)
        assert app.session.viewport.end == 20_000 * US
        script.finish(paths[1])
        await until_there(app, pilot, 2)
        assert app.session.viewport.end == 49_900 * US
        await pilot.press("w")
        before = app.session.viewport
        script.finish(paths[2])
        await until_there(app, pilot, 3)
        assert app.session.viewport == before


@pytest.mark.slow
async def test_read_again_it_begins_where_it_was(tmp_path: Path) -> None:
    """Files that were shown before keep time window, cursor, lane and folds, while they come and after."""
    folder = rank_files(tmp_path / "run", 2)
    trace = open_trace(folder, index_dir=tmp_path / "other")
    lane = LaneKey(1, "0", "7")
    session = TracelaneApp(trace, config=Config()).session
    before = session._replace(
        viewport=Viewport(5_000_000, 2_000_000, session.viewport.width),
        cursor=5_500_000,
        focus=RowKey(lane, 0),
        folded=frozenset({LaneKey(0, "50", "50")}),
        panel="ops",
    )
    gathering, script = gathered(folder)
    paths = paths_of(gathering)
    async with viewer_of(gathering, carried(trace, before, "")) as (app, pilot):
        script.finish(paths[1])
        await until_there(app, pilot, 1)
        assert app.session.panel == "details"
        script.finish(paths[0])
        await until_all_there(app, pilot)
        now = app.session
        assert (now.viewport.start, now.viewport.span) == (5_000_000, 2_000_000)
        assert (now.cursor, now.focus, now.folded) == (before.cursor, before.focus, before.folded)
