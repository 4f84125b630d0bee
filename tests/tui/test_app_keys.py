"""The viewer from the keyboard: what a person presses and then sees."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
from textual.widgets import Input

from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until, wait_until_idle
from tests.tui.small_file import LAUNCH, small_file
from tests.tui.walk import RecordedApp
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.commands.table import COMMANDS, Command
from tracelane.tui.config import Config
from tracelane.tui.keys import bound_keys
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.screens.answer import CopiedText, PickScreen
from tracelane.tui.screens.lists import HelpScreen, help_rows, listed
from tracelane.tui.widgets.prompt import Prompt
from tracelane.tui.widgets.table import VirtualTable
from tracelane.tui.widgets.text_pane import TextPane


async def test_the_first_screen(file_trace: Trace) -> None:
    """Header, ruler, lanes with their titles, footer keys: all there at 80x24, focus on the lanes."""
    async with open_viewer(file_trace, (80, 24)) as (app, _):
        text = screen_text(app)
        for part in (
            "small.json",
            "2 steps",
            "python 7",
            "AIU 0",
            "Stream 1",
            "w zoom",
            "q quit",
        ):
            assert part in text, part
        assert isinstance(app.focused, LaneCanvas)
        assert app.session.viewport.width == app.main.query_one(LaneCanvas).time_cells


async def test_walk_and_read_details(file_trace: Trace) -> None:
    """The panel follows the selection with times and arguments; o and b go along the flow, u and U back."""
    async with open_viewer(file_trace, (120, 60)) as (app, pilot):
        app.action_jump(0, LAUNCH)
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "duration" in text and "10 µs" in text
        assert "correlation" in text
        await press_keys(app, pilot, "o")
        assert "kernel" in screen_text(app) and "blank name" in screen_text(app)
        await pilot.press("b")
        assert app.session.selection == SliceId(0, LAUNCH)
        await pilot.press("u", "u", "u")
        assert app.session.selection is None
        app.run_command("forward")
        assert app.session.selection == SliceId(0, LAUNCH)


async def test_held_keys_only_set_state(file_trace: Trace) -> None:
    """Twenty quick zooms and pans end where twenty moves lead, as one place in the history each."""
    async with open_viewer(file_trace) as (app, pilot):
        first = app.session.viewport
        for _ in range(20):
            app.run_command("zoom-in")
        for _ in range(20):
            app.run_command("pan-right")
        assert app.session.viewport.span < first.span / 1000
        await pilot.press("u", "u")
        assert app.session.viewport == first


async def test_escape_and_q_close_from_the_top(file_trace: Trace) -> None:
    """Esc closes the panel's maximising, the legend, then the selection; q closes, then quits."""
    async with open_viewer(file_trace) as (app, pilot):
        app.action_jump(0, LAUNCH)
        app.run_command("legend")
        await pilot.pause()
        await pilot.press("Z")
        assert app.maximised and app.session.panel == "legend"
        await pilot.press("escape")
        assert not app.maximised
        await pilot.press("q")
        assert app.session.panel == "details" and app.is_running
        await pilot.press("escape")
        assert app.session.selection is None
        await pilot.press("q")
        assert app.return_code == 0


@pytest.mark.slow
async def test_help_and_palette(file_trace: Trace) -> None:
    """? shows all keys and closes again; the palette offers every command with its key."""
    async with open_viewer(file_trace, (200, 100)) as (app, pilot):
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "Zoom in" not in message(app)
        await pilot.press(*"lane above")
        assert "shift+↑" in screen_text(app)
        await pilot.press("ctrl+u", *":only")
        assert ":only REGEX" in screen_text(app)
        await pilot.press("escape")
        assert app.screen is app.main
        await press_keys(app, pilot, "question_mark", *"pin the", "enter")
        assert app.screen is app.main and app.session.pinned
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: "Pin the lane" in screen_text(app), "the palette's commands")


@pytest.mark.parametrize("size", [(60, 20), (81, 24), (97, 30), (120, 40), (200, 50)])
async def test_help_is_drawn_once(size: tuple[int, int], file_trace: Trace) -> None:
    """The list of keys is never seen empty: its first frame has the heading and the rows."""
    app = RecordedApp(file_trace, config=Config())
    async with app.run_test(headless=False, size=size) as pilot:
        await wait_until_idle(app, pilot)
        app.take_output()
        await pilot.press("question_mark")
        await wait_until_idle(app, pilot)
        written, _ = app.take_output()
        assert isinstance(app.screen, HelpScreen) and "Next slice" in screen_text(app)
        assert written.count("What it does") == 1 and "no command fits" not in written


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 30), (80, 1)])
async def test_help_opens_where_it_has_no_room(size: tuple[int, int], file_trace: Trace) -> None:
    """In a terminal of a few cells the list of keys opens and closes as anywhere."""
    async with open_viewer(file_trace, size) as (app, pilot):
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await press_keys(app, pilot, "down", "escape")
        assert app.screen is app.main and app.is_running


async def test_the_command_line(file_trace: Trace) -> None:
    """A colon takes a command: only, then everything again; a wrong one says what there is."""
    async with open_viewer(file_trace) as (app, pilot):
        await pilot.press("colon", *"only", "space", *"Stream", "enter")
        assert app.session.only == "Stream"
        assert "main" not in [line.title for line in app.store.layout_now.lines(0, 50)]
        await pilot.press("colon", *"only", "enter")
        assert app.session.only == ""
        await pilot.press("colon", *"fly", "enter")
        assert "fly" in message(app)
        await pilot.press("colon", "w", "escape")
        assert isinstance(app.focused, LaneCanvas)


async def test_go_to_a_time(file_trace: Trace) -> None:
    """g takes a time; a bare number is a step; Esc leaves all as it was."""
    async with open_viewer(file_trace) as (app, pilot):
        await pilot.press("w", "w", "w", "g", *"+150us", "enter")
        assert app.session.cursor == 1_150_000
        await pilot.press("g", *"150", "enter")
        assert message(app) == "no step 150; there are 0 to 1"
        await pilot.press("g", "1", "enter")
        assert app.session.cursor == 1_100_000
        await pilot.press("g", "escape")
        assert not app.main.query_one(Prompt).is_open
        assert app.session.cursor == 1_100_000


async def test_letters_act_on_the_timeline_from_the_panel(file_trace: Trace) -> None:
    """Tab moves the arrows to the panel and back; letters zoom wherever the arrows are."""
    async with open_viewer(file_trace, (100, 40)) as (app, pilot):
        app.action_jump(0, LAUNCH)
        await pilot.press("tab")
        assert isinstance(app.focused, TextPane)
        before = app.session
        await pilot.press("down", "w")
        assert app.session.selection == before.selection
        assert app.session.viewport.span < before.viewport.span
        await pilot.press("tab")
        assert isinstance(app.focused, LaneCanvas)


async def test_unbound_keys(file_trace: Trace) -> None:
    """A key without a command says so, a Cyrillic letter points to the palette; a command clears it."""
    async with open_viewer(file_trace) as (app, pilot):
        await pilot.press("ampersand")
        assert "does nothing" in message(app)
        await pilot.press("ц")
        assert "ctrl+p" in message(app)
        await pilot.press("w")
        assert message(app) == ""


async def test_users_keys(file_trace: Trace) -> None:
    """A remapped key works, its old one does not, and the footer shows the new one."""
    config = Config(keys=MappingProxyType({"zoom-in": "z"}))
    async with open_viewer(file_trace, config=config) as (app, pilot):
        first = app.session.viewport
        await pilot.press("w")
        assert app.session.viewport == first
        await pilot.press("z")
        assert app.session.viewport.span < first.span
        assert "z zoom" in screen_text(app)
        assert message(app) == "key z is set for zoom-in and hits"


async def test_hide_list_and_show_again(file_trace: Trace) -> None:
    """A lane that was hidden is listed, Enter shows it again."""
    async with open_viewer(file_trace) as (app, pilot):
        await pilot.press("down")
        app.run_command("hide")
        assert len(app.session.hidden_lanes) == 1
        app.run_command("hidden")
        await pilot.pause()
        assert isinstance(app.screen, PickScreen)
        await pilot.press("enter")
        assert not app.session.hidden_lanes
        app.run_command("hidden")
        await pilot.pause()
        assert message(app) == "nothing is hidden"


async def test_copy_shows_the_text(file_trace: Trace) -> None:
    """y copies the selection as JSON, arguments included, and shows the text as well."""
    async with open_viewer(file_trace) as (app, pilot):
        app.action_jump(0, LAUNCH)
        await press_keys(app, pilot, "y")
        assert isinstance(app.screen, CopiedText)
        assert '"correlation": 5' in app.clipboard
        assert '"correlation": 5' in screen_text(app)


async def test_read_report_and_legend(file_trace: Trace) -> None:
    """2 shows, the second time, what was read, the legend what colours mean, of collectives too."""
    async with open_viewer(file_trace, (120, 80)) as (app, pilot):
        await pilot.press("2", "2")
        assert "slices" in screen_text(app) and "flow ac2g" in screen_text(app)
        app.run_command("legend")
        await pilot.pause()
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "cuda_runtime" in text and "kernel" in text and "pinned" in text
        assert "collectives" in text and "calls that wait" in text and "rows that repeat" in text


async def test_rulers(file_trace: Trace) -> None:
    """Z goes round relative, file and wall time."""
    async with open_viewer(file_trace) as (app, pilot):
        kinds = []
        for _ in range(3):
            app.run_command("ruler")
            await pilot.pause()
            kinds.append(app.session.ruler)
        assert kinds == ["file", "wall", "relative"]


async def test_theme(file_trace: Trace) -> None:
    """The theme changes between dark and light, and an unknown one lists those there are."""
    async with open_viewer(file_trace) as (app, pilot):
        app.run_command("theme")
        await pilot.pause()
        assert not app.current_theme.dark
        await pilot.press("colon", *"theme", "space", "x", "enter")
        assert "tracelane-dark" in message(app)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (1, 1), (20, 5), (5, 2), (300, 100)])
async def test_any_size(file_trace: Trace, size: tuple[int, int]) -> None:
    """Every size is drawn, resized to another in the middle, and keeps the place."""
    async with open_viewer(file_trace, size) as (app, pilot):
        app.action_jump(0, LAUNCH)
        app.run_command("focus")
        before = app.session
        for other in ((100, 40), (30, 8), size):
            await pilot.resize_terminal(*other)
            await pilot.pause()
            view = app.session.viewport
            assert view.start == before.viewport.start
            assert view.start <= app.session.cursor < view.end
            assert app.session.selection == before.selection
            for key in ("w", "s", "down", "up", "T", "T"):
                app.run_command({"T": "maximise", "w": "zoom-in", "s": "zoom-out"}.get(key, key))
            app.store.show(before if other == size else app.session)
            app.run_command("reset")
            app.store.show(before)


@pytest.mark.slow
async def test_ascii_where_the_locale_has_nothing_else(
    file_trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without UTF-8 all of the screen is ASCII: lanes, frames, ticks and arrows, cell for cell."""
    from tracelane.tui.draw.glyphs import ASCII
    from tracelane.tui.lanes import look

    monkeypatch.setattr(look, "glyphs", lambda: ASCII)
    monkeypatch.setattr("tracelane.tui.app.glyphs", lambda: ASCII)
    async with open_viewer(file_trace) as (app, pilot):
        await press_keys(app, pilot, "down", "enter")
        for key in ("question_mark", "escape", ":", *"legend", "enter", "ctrl+p"):
            await press_keys(app, pilot, key)
            lines = screen_text(app).splitlines()
            assert all(line.isascii() for line in lines), [line for line in lines if not line.isascii()]
            assert {len(line) for line in lines} == {100}


@pytest.mark.slow
def test_nothing_heavy_at_start() -> None:
    """Importing the viewer brings in neither the command line nor what reads whole files."""
    import subprocess
    import sys

    code = (
        "import sys; import tracelane.tui.app; "
        "print([m for m in ('click', 'multiprocessing', 'tracelane.core.read.reader') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


async def test_a_changed_file_is_told(tmp_path: Path) -> None:
    """When the trace is gone, arguments say so and everything else still works."""
    path = small_file(tmp_path)
    file_trace = open_trace(path, index_dir=tmp_path / "index")
    path.unlink()
    async with open_viewer(file_trace, (120, 40)) as (app, pilot):
        app.action_jump(0, LAUNCH)
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "arguments:" in text and "10 µs" in text


@pytest.mark.parametrize("keys", [{}, {"zoom-in": "x,ctrl+x", "next-step": "w"}])
async def test_the_table_knows_which_keys_are_bound(
    file_trace: Trace, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key with a command asks for that one alone, whatever the user changed; all others are asked for."""
    calls: list[object] = []
    check_action = TracelaneApp.check_action

    def check(app: TracelaneApp, action: str, parameters: tuple[object, ...]) -> bool | None:
        calls.append(parameters)
        return check_action(app, action, parameters)

    async with open_viewer(file_trace, config=Config(keys=MappingProxyType(keys))) as (app, pilot):
        bindings = app.main.active_bindings
        of_commands = {key for key, one in bindings.items() if one.binding.action.startswith("app.command(")}
        assert bound_keys(keys) == {key for key in of_commands if not key.startswith("none-")}
        monkeypatch.setattr(TracelaneApp, "check_action", check)
        await pilot.press(keys.get("zoom-in", "w").split(",")[0])
        assert calls == [("zoom-in",)]
        await pilot.press("ampersand")
        assert "does nothing" in message(app)


@pytest.mark.parametrize("row", [0, 1, 2, 5])
async def test_a_click_leaves_the_keys_to_the_line(row: int, file_trace: Trace) -> None:
    """After a click on the heading of the list of keys, on one of a task, or on a row: typing still filters,
    and Esc closes the list where the click has not run a command.
    """
    async with open_viewer(file_trace, (120, 40)) as (app, pilot):
        await pilot.press("question_mark")
        await pilot.click(app.screen.query_one(VirtualTable), offset=(3, row))
        await wait_until_idle(app, pilot)
        if isinstance(app.screen, HelpScreen):
            await press_keys(app, pilot, *"pin the")
            assert app.screen.query_one(Input).value == "pin the"
            await press_keys(app, pilot, "escape")
        assert app.screen is app.main


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda one: one.id)
def test_the_name_of_a_command_finds_it(entry: Command) -> None:
    """Who types a name as the documents have it gets that command first, or another one of the name."""
    first = listed(help_rows({}), entry.title)[0]
    assert first.name == entry.title
