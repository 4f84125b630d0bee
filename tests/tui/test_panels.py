"""What the panels say of themselves: which of a key's panels is shown, why there are no rows, what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from tests.corpus import CORPUS, needs
from tests.events import complete, open_events
from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until_idle
from tracelane.core.tables.registry import PANELS
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.controllers.panels import NO_ROOM
from tracelane.tui.draw.room import EMPTY_PANEL, MIN_LANES
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.panels.findings import read_report_columns
from tracelane.tui.panels.panel import GROUPS, Panel, next_panel, tabs
from tracelane.tui.panels.table import TablePane
from tracelane.tui.read_report import ReadReportRow
from tracelane.tui.widgets.bars import Bar, MessageLine, fit_pieces


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Two ops, and nothing on a device."""
    return open_events(tmp_path, [complete(0, 10, "a"), complete(20, 5, "b")])


@pytest.mark.parametrize("width", [40, 80, 300])
def test_the_chosen_tab_shows_its_panels(width: int) -> None:
    """The panels of the chosen tab's key stand beside it as far as there is room, the chosen one always; from
    80 cells on every other tab has a name, and the line fits.
    """
    for group in GROUPS:
        for name, title in group.panels:
            line = fit_pieces(tabs(name, width), width).plain
            assert title[:2] in line and len(line) <= width, (name, line)
            if width >= 80:
                others = [other for other in GROUPS if other.command != group.command]
                assert all(other.short in line or other.panels[0][1] in line for other in others), line
            if width == 300:
                assert "·".join(title for _, title in group.panels) in line


@pytest.mark.parametrize("width", range(40, 200, 5))
def test_tabs_need_no_more_room_than_there_is(width: int) -> None:
    """Whichever is chosen, the line of tabs fits; with more room none has a shorter name than with less."""
    for name in (name for group in GROUPS for name, _ in group.panels):
        (line, *_), (wider, *_) = tabs(name, width), tabs(name, width + 5)
        assert len(line) <= width and len(wider) >= len(line), (name, line.plain, wider.plain)


@pytest.mark.parametrize("command", sorted({group.command for group in GROUPS if group.command}))
def test_a_key_goes_through_its_panels_and_back(command: str) -> None:
    """Each panel is followed by the next one, the last by the first, and the way back is the same way."""
    names = [name for group in GROUPS if group.command == command for name, _ in group.panels]
    for name, following in zip(names, [*names[1:], *names[:1]]):
        assert next_panel(command, name, by=1) == following
        assert next_panel(command, following, by=-1) == name


def test_panels_that_lead_to_nothing_are_dim_beside_the_chosen_one() -> None:
    """Among the panels of the chosen key too: what is known to be empty is dim, not underlined."""
    (line,) = [tab for tab in tabs("table", 200, empty={"categories"}) if "Lane" in tab.plain]
    styles = {(line.plain[span.start : span.end], str(span.style)) for span in line.spans}
    assert {("Category", "dim"), ("Lane", "underline")} <= styles


@pytest.mark.slow
async def test_a_panel_without_rows_says_what_is_not_there(trace: Trace) -> None:
    """Each panel has a sentence of its own, and shows it where the trace has nothing for it."""
    assert set(PANELS) < {name for group in GROUPS for name, _ in group.panels}
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        for name in ("kernels", "memory", "compile", "collectives"):
            app.action_panel(name)
            await wait_until_idle(app, pilot)
            assert PANELS[name][1].empty in screen_text(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commands", "panel"),
    [
        (["panel-gaps"], "gaps"),
        (["panel-gaps", "panel-gaps"], "gaps"),
        (["panel-tree-callers"], "tree-callers"),
        (["panel-ops", "panel-ops", "panel-ops"], "ops-module"),
        (["panel-ops", "panel-ops-module"], "ops-module"),
        (["panel-time", "panel-time"], "critical-segments"),
    ],
)
async def test_every_panel_has_a_command(trace: Trace, commands: list[str], panel: str) -> None:
    """A panel's command shows it; that of an analysis or a tab again the next one of it."""
    async with open_viewer(trace, (120, 36)) as (app, _):
        for command in commands:
            app.run_command(command)
        assert app.session.panel == panel


@pytest.mark.slow
async def test_a_table_that_is_there_again_is_told_of(trace: Trace) -> None:
    """Going back to a range before its neighbour is counted, the line speaks of the table again."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        app.run_command("panel-ops")
        await wait_until_idle(app, pilot)
        pane = app.main.query_one("#ops", TablePane)
        pane.say("counting…")
        app.tables.fill()
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        assert "counting…" not in text and "2 rows" in text


async def test_keys_may_come_faster_than_a_panel_is_made(trace: Trace) -> None:
    """Keys in one go show panels for the first time, give one the screen and the arrows, and move in it."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        for key in ("2", "t", *"ttt", "Z"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await wait_until_idle(app, pilot)
        await pilot.press("down")
        pane = app.main.query_one("#ops", TablePane)
        assert app.focused is pane.table and pane.table.cursor == 1
        assert "2 rows" in screen_text(app)
        assert [name for group in GROUPS for name, _ in group.panels if app.main.query(f"#{name}")] == [
            "details",
            "findings",
            "table",
            "lanes-busy",
            "categories",
            "ops",
        ]


@pytest.mark.parametrize(
    ("keys", "panel"),
    [
        ("2", "findings"),
        ("3", "tree"),
        ("5", "steps"),
        ("t", "table"),
        ("tt", "lanes-busy"),
        ("6", "critical-path"),
    ],
)
async def test_a_line_keeps_what_is_typed_into_it(trace: Trace, keys: str, panel: str) -> None:
    """Keys in one go show a panel for the first time and open a line behind it: none of them is lost, and the
    panel, which comes late, does not take what is typed next.
    """
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        for key, character in (*zip(keys, keys), ("colon", ":"), ("h", "h"), ("i", "i"), ("d", "d")):
            app.post_message(events.Key(key, character))
        await wait_until_idle(app, pilot)
        await pilot.press(*"e nothing", "enter")
        await wait_until_idle(app, pilot)
        assert app.session.panel == panel
        assert message(app) == "no lane matches nothing"


@pytest.mark.parametrize("key", ["question_mark", "ctrl+p"])
async def test_a_list_gets_what_is_typed_behind_its_key(trace: Trace, key: str) -> None:
    """Letters in one go with the key that opens the help or the palette stand in its line."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        for one, character in ((key, "?"), *zip("fold", "fold")):
            app.post_message(events.Key(one, character))
        await wait_until_idle(app, pilot)
        assert app.screen.query_one(Input).value == "fold"


async def test_where_there_is_no_room_for_a_panel(trace: Trace) -> None:
    """Its key says so instead of nothing, and how to see it nonetheless."""
    async with open_viewer(trace, (40, 7)) as (app, pilot):
        await press_keys(app, pilot, *"tttt")
        assert message(app) == app.with_keys(NO_ROOM)
        await press_keys(app, pilot, "Z")
        assert "t Op 4/" in screen_text(app)


def test_what_was_read_has_room_for_its_words() -> None:
    """Counts take the cells that they need, the words what is left; no count is cut."""
    rows = [
        ReadReportRow("", "events", 12_345, None, "all"),
        ReadReportRow("", "a" * 40, 1_234_567_890_123, None, ""),
    ]
    widths = {column.title: column.width for column in read_report_columns(rows)}
    assert widths == {"What": 16, "Count": len("1,234,567,890,123"), "": 0}
    assert [column.width for column in read_report_columns(rows[:1])] == [len("events"), len("12,345"), 0]
    assert [column.width for column in read_report_columns([])] == [len("What"), len("Count"), 0]


async def test_paging_through_a_palette_without_matches(trace: Trace) -> None:
    """Nothing happens, and nothing breaks."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        await press_keys(app, pilot, "ctrl+p", *"zqxj")
        await press_keys(app, pilot, "pagedown", "pageup", "escape")
        assert app.is_running and len(app.screen_stack) == 1


async def test_tabs_that_are_gone_are_not_dimmed(trace: Trace) -> None:
    """While the viewer closes, work in the background may still tell which panels would be empty."""
    async with open_viewer(trace, (120, 36)) as (app, _pilot):
        panel = app.main.query_one(Panel)
        await panel.query_one("#tabs").remove()
        panel.dim_absent(("steps",))
        assert panel.absent == {"steps"}
        await panel.remove()


async def test_keys_that_come_while_the_viewer_closes_change_nothing(trace: Trace) -> None:
    """A panel that is taken away makes no more panes."""
    async with open_viewer(trace, (120, 36)) as (app, _pilot):
        panel = app.main.query_one(Panel)
        await panel.remove()
        before = list(panel.children)
        panel.choose("steps")
        assert list(panel.children) == before


@pytest.mark.parametrize(
    ("panel", "absent", "expected"),
    [
        ("details", (), "compile"),
        ("details", ("compile", "compile-regions"), "compile-graphs"),
        ("compile-graphs", ("compile", "compile-regions"), "compile-steps"),
        ("compile-phases", ("compile",), "compile-regions"),
    ],
)
def test_a_key_shows_first_what_the_trace_has(panel: str, absent: tuple[str, ...], expected: str) -> None:
    """A tab's key leads to its first panel that can have rows, and from there to each other in turn."""
    assert next_panel("panel-compile", panel, GROUPS, absent) == expected
    assert (
        next_panel(
            "panel-compile", "details", GROUPS, [name for name in PANELS if name.startswith("compile")]
        )
        == "compile"
    )


async def test_tabs_that_lead_to_nothing_are_dim(trace: Trace) -> None:
    """Without steps, devices, hits or a query their tabs are dim; that of a panel whose rows were counted and
    are none becomes so, one with rows stays as it is.
    """
    async with open_viewer(trace, (160, 36)) as (app, pilot):
        for key in ("7", "7", "7", "t", "1"):
            await press_keys(app, pilot, key)
        line = fit_pieces(app.main.query_one("#tabs", Bar).pieces, 160)
        dim = {line.plain[span.start] for span in line.spans if span.style == "dim"}
        assert set("4578z") <= dim and not dim & set("1236t")


@needs(CORPUS)
async def test_panels_that_a_trace_cannot_fill_are_dim_from_the_start(corpus_cache: Path) -> None:
    """Before any is visited: of the A100 compilation save by code, what several ranks do, allocators."""
    path = CORPUS / "gpu/hta_a100_resnet_ddp_nccl.json.gz"
    async with open_viewer(open_trace(path, index_dir=corpus_cache), (160, 36)) as (app, pilot):
        empty = app.main.query_one(Panel).absent
        assert {name for name in empty if name.startswith("compile")} == {
            f"compile{rest}" for rest in ("", "-regions", "-graphs", "-steps", "-phases")
        }
        assert empty > {"rank-steps", "memory", "memory-peak", "sections"}
        assert not empty & {"time", "steps", "copies", "ranks", "rank-heat", "compile-code", "kernels"}
        app.run_command("panel-compile")
        assert app.session.panel == "compile-code"
        app.run_command("panel-ranks")
        await wait_until_idle(app, pilot)
        (line,) = [piece for piece in app.main.query_one("#tabs", Bar).pieces if "Slowest by" in piece.plain]
        assert ("Slowest by step", "dim") in {
            (line.plain[span.start : span.end], str(span.style)) for span in line.spans
        }


async def test_counting_is_never_beside_that_there_is_nothing(trace: Trace) -> None:
    """While rows are counted nothing is said of there being none."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        app.run_command("panel-kernels")
        await wait_until_idle(app, pilot)
        pane, empty = app.main.query_one("#kernels", TablePane), PANELS["kernels"][1].empty
        assert empty in screen_text(app)
        pane.say("counting…")
        await pilot.pause()
        assert "counting…" in screen_text(app) and empty not in screen_text(app)
        app.tables.fill()
        await wait_until_idle(app, pilot)
        assert empty in screen_text(app) and "counting…" not in screen_text(app)


@pytest.mark.parametrize("size", [(40, 16), (60, 20), (80, 24)])
async def test_a_long_message_hides_no_lane(tmp_path: Path, size: tuple[int, int]) -> None:
    """What takes more lines than the panel has makes it grow while it is said, its first line on show,
    until lanes have no more than they need; lanes have their lines back afterwards.
    """
    slices = [complete(0, 10 * (number + 1), "a", tid=number) for number in range(30)]
    trace = open_events(tmp_path, slices)
    async with open_viewer(trace, size) as (app, pilot):
        while app.has_notice:
            app.dismiss_message()
        await wait_until_idle(app, pilot)
        lanes, line = app.main.query_one(LaneCanvas), app.main.query_one(MessageLine)
        before, session = lanes.region, app.session
        for text in ("word " * 30, "word " * 10):
            app.say(text, stays=True)
            await wait_until_idle(app, pilot)
            assert line.region.height == line.lines
            assert not line.region.overlaps(lanes.region) and lanes.region.height >= MIN_LANES
            panel = app.main.query_one(Panel)
            is_covered = panel.display and panel.region.y >= line.region.y
            assert not is_covered or lanes.region.height == MIN_LANES, "lanes have lines to spare"
        app.dismiss_message()
        app.dismiss_message()
        await wait_until_idle(app, pilot)
        assert lanes.region == before and app.session == session


@pytest.mark.slow
@pytest.mark.parametrize("lines", [20, 24, 30])
async def test_an_empty_panel_takes_the_lines_that_lanes_leave(trace: Trace, lines: int) -> None:
    """It takes the lines that no lane needs, and gives them back to lanes that open."""
    async with open_viewer(trace, (100, lines)) as (app, _):
        height = app.main.query_one(Panel).region.height
        strips = ("header", "minimap", "verdict", "ruler", "message", "footer")
        spare = lines - len(strips) - app.store.layout_now.height
        assert height == max(EMPTY_PANEL, spare)
        assert app.store.layout_now.height <= app.store.now.lane_lines
