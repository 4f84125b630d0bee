"""Copying, saving and cutting what is shown, and queries: rows that lead to slices, a lane, saved panels."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from types import MappingProxyType

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.events import complete, open_events
from tests.json_tables import flat
from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until_idle
from tests.tui.small_file import small_file
from tests.tui.small_trace import STEPS
from tracelane.core.base.clock import Clocks
from tracelane.core.export.forms import FORMS
from tracelane.core.logs.counters import WithCounters, with_cheap_lanes
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.lanes import computed_lanes
from tracelane.tui.app import TracelaneApp
from tracelane.tui.cli.main import main
from tracelane.tui.config import Config, read_config
from tracelane.tui.panels.table import TablePane
from tracelane.tui.widgets.prompt import Prompt


@pytest.fixture
def file_trace(tmp_path: Path) -> Trace:
    """The small file, its index in a folder of its own."""
    return open_trace(small_file(tmp_path), index_dir=tmp_path / "index")


async def _typed(app: TracelaneApp, pilot: Pilot[None], line: str) -> None:
    app.post_message(Prompt.Answered("command-line", line))
    await pilot.pause()
    await wait_until_idle(app, pilot)


async def test_table(file_trace: Trace, tmp_path: Path) -> None:
    """The table on show is written in every form, as sorted, and copied as Markdown."""
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        app.run_command("copy-table")
        await pilot.pause()
        assert "no table" in message(app)
        await press_keys(app, pilot, "t", "t")
        for form in FORMS:
            path = tmp_path / f"table.{form}"
            await _typed(app, pilot, f"save table {path}")
            assert message(app) == f"saved {path}"
        rows = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8")))
        assert {"aten::linear", "launch"} <= {row["name"] for row in rows}
        selves = [int(row["self_ns"]) for row in rows]
        assert selves == sorted(selves, reverse=True)
        written = flat(json.loads((tmp_path / "table.json").read_text(encoding="utf-8")))["range"]
        assert [row["self_ns"] for row in written] == selves
        app.run_command("copy-table")
        await pilot.pause()
        assert app.clipboard == (tmp_path / "table.md").read_text(encoding="utf-8")
        assert message(app).startswith(f"copied {len(rows)} rows")


async def test_a_table_that_no_terminal_copies(file_trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a larger table it is said how large it is, and what writes it; of details they are shown. Nothing is
    sent to the terminal.
    """
    monkeypatch.setattr("tracelane.tui.stage.MAX_COPIED", 50)
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        await press_keys(app, pilot, "t", "t")
        app.run_command("copy-table")
        await pilot.pause()
        assert ":save table FILE.md" in message(app) and not app.clipboard
        app.run_command("copy-view")
        await pilot.pause()
        assert "More than terminals copy" in screen_text(app) and not app.clipboard


async def test_slices(file_trace: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What range, :only and :filter leave is written as the command prints it; nothing is written over."""
    start = file_trace.span[0]
    options = ("--lanes", "main", "--where", "-launch", "--from", "+20us", "--to", "+90us")
    async with open_viewer(with_cheap_lanes(file_trace), (120, 50)) as (app, pilot):
        app.store.show(
            app.session._replace(only="main", filter="-launch", range=(start + 20_000, start + 90_000))
        )
        for form in ("csv", "json"):
            path = tmp_path / f"slices.{form}"
            await _typed(app, pilot, f"save slices {path}")
            await wait_until_idle(app, pilot)
            assert message(app) == f"saved {path}: 2 slices"
        await _typed(app, pilot, f"save slices {path}")
        assert "is there already" in message(app)
        await _typed(app, pilot, "save slices all.txt")
        assert "FILE.csv or FILE.json" in message(app)
        await _typed(app, pilot, f"save slices {tmp_path / 'no' / 'such.csv'}")
        await wait_until_idle(app, pilot)
        assert "No such file" in message(app)
    for form in ("csv", "json"):
        printed = main(["slices", file_trace.sources[0].path, "--format", form, *options])
        assert (printed, capsys.readouterr().out) == (
            0,
            (tmp_path / f"slices.{form}").read_text(encoding="utf-8"),
        )


@pytest.mark.slow
async def test_picture(file_trace: Trace, tmp_path: Path) -> None:
    """The picture shows the lanes as they are folded on the screen, without the line that was typed."""
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        await _typed(app, pilot, f"save picture {tmp_path / 'seen.txt'}")
        assert message(app) == f"saved {tmp_path / 'seen.txt'}"
        text = (tmp_path / "seen.txt").read_text(encoding="utf-8")
        assert "[aten::linear" in text and "Stream 1" in text
        seen = screen_text(app).splitlines()
        bar, sentence = text.splitlines()[:2]
        assert bar.startswith("AIU 0 ") and "compute 30 %" in bar and "idle: host late 65 %" in bar
        assert sentence == seen[2].replace("Enter shows it", "").rstrip()
        app.run_command("legend")
        await pilot.pause()  # no lane, no name
        await _typed(app, pilot, "only Stream")
        await press_keys(app, pilot, "colon", *"save picture ", *str(tmp_path / "seen.svg"), "enter")
        assert message(app) == f"saved {tmp_path / 'seen.svg'}"
        drawing = (tmp_path / "seen.svg").read_text(encoding="utf-8")
        assert drawing.startswith("<svg") and "save" not in drawing
        assert "Stream" in drawing and "linear" not in drawing


@pytest.mark.slow
async def test_an_ending_says_what_is_saved(file_trace: Trace, tmp_path: Path) -> None:
    """A file alone is the picture or the table by its ending; the page has the letters of the screen, and
    no name in a trace is markup there.
    """
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        await press_keys(app, pilot, "t")
        for name in ("a.svg", "b.txt", "c.html", "d.csv", "a file.md"):
            await _typed(app, pilot, f"save {tmp_path / name}")
            assert message(app) == f"saved {tmp_path / name}"
        read = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.*")}
    assert read["a.svg"].startswith("<svg") and "Stream 1" in read["b.txt"]
    page = read["c.html"]
    assert page.startswith("<!DOCTYPE html>") and "<script" not in page and "default-src 'none'" in page
    lines = html.unescape(re.sub("<[^>]*>", "", page.partition("<pre")[2]))
    assert "Stream 1" in lines and "aten::linear" in lines
    assert read["d.csv"].startswith("name,") and "| Name |" in read["a file.md"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("save picture {folder}/none/a.svg", "cannot write {folder}/none/a.svg: No such file or directory"),
        ("save picture {folder}/small.json", "a picture can be written to"),
        ("save table {folder}/a.csv", "the panel shows no table"),
        ("save table {folder}/a.xls", "a table can be written to"),
        ("save picture {folder}/there.txt", "{folder}/there.txt is there already"),
        ("save {folder}/a.png", "a picture can be written to"),
        ("save {folder}/there.txt", "{folder}/there.txt is there already"),
        ("save {folder}/a.csv", "the panel shows no table"),
        ("save {folder}/a", "save FILE.svg"),
        ("save", "save FILE.svg"),
    ],
)
async def test_trouble_is_one_line(file_trace: Trace, tmp_path: Path, line: str, said: str) -> None:
    """What cannot be written is said in one line, and no file is overwritten."""
    (tmp_path / "there.txt").write_text("kept", encoding="utf-8")
    async with open_viewer(file_trace, (120, 50)) as (app, pilot):
        await _typed(app, pilot, line.format(folder=tmp_path))
        assert said.format(folder=tmp_path) in message(app)
        assert "\n" not in message(app)
    assert (tmp_path / "there.txt").read_text(encoding="utf-8") == "kept"
    assert not (tmp_path / "a.csv").exists()


async def ordered(app: TracelaneApp, pilot: Pilot[None], line: str) -> str:
    """Type a command line; return what the footer says in the end."""
    await pilot.press("colon")
    app.screen.query_one("Prompt Input", Input).value = line
    await press_keys(app, pilot, "enter")
    return app.message


@pytest.mark.slow
async def test_cut_writes_the_range_and_never_over_a_file(tmp_path: Path) -> None:
    """What lies in the range is written, clocks taken back; without a range or over a file it is refused."""
    events = [complete(100 * n, 50, f"s{n}") for n in range(10)]
    trace = open_events(tmp_path, events)
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        out = tmp_path / "cut.json.gz"
        assert "no range" in await ordered(app, pilot, f"cut {out}")
        assert "FILE.json" in await ordered(app, pilot, "cut")
        app.store.show(app.session._replace(range=(310_000, 520_000)))
        assert await ordered(app, pilot, f"cut {out}") == f"saved {out}: 3 slices"
        assert "give another name" in await ordered(app, pilot, f"cut {out}")
        app.store.show(app.session._replace(clocks=Clocks().shifted((0, ""), 200_000)))
        moved = tmp_path / "moved.json"
        assert await ordered(app, pilot, f"cut {moved}") == f"saved {moved}: 3 slices"
        # A device with a clock of its own: what stands in the range on the screen is what is written.
        app.store.show(app.session._replace(clocks=Clocks().shifted((0, "1"), -100_000)))
        device = tmp_path / "device.json"
        assert await ordered(app, pilot, f"cut {device}") == f"saved {device}: 3 slices"
    names = []
    for path in (out, moved, device):
        index = open_trace(path, index_dir=tmp_path / "index").indexes[0]
        names.append(index.strings(index.column("slices.name")))
    assert names == [["s3", "s4", "s5"], ["s1", "s2", "s3"], ["s4", "s5", "s6"]]


KERNELS = "select id, name, ts, dur from kernels order by ts"


async def ask(app: TracelaneApp, pilot: Pilot[None], text: str) -> None:
    """Type a query and wait for its rows."""
    app.verbs["sql"](text)
    await wait_until_idle(app, pilot)


async def test_rows_lead_to_slices(trace: Trace) -> None:
    """What is typed after :sql is listed; Enter on a row selects its slice."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        await pilot.press(":", *"sql id, name, ts, dur from kernels order by ts")
        await press_keys(app, pilot, "enter")
        pane = app.main.query_one("#query", TablePane)
        assert pane.shown_table is not None and len(pane.shown_table) == STEPS
        await press_keys(app, pilot, "down", "enter")
        assert app.session.selection == SliceId(0, 14)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select nothing from kernels", "nothing"),
        ("select * from nowhere", "nowhere"),
        ("select 1; drop table slices", "one"),
        ("", ":sql select"),
    ],
)
async def test_errors_are_one_line(trace: Trace, query: str, error: str) -> None:
    """A query that cannot be answered is refused in one line, and the viewer goes on."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        await pilot.press(":", *"sql ")
        await pilot.press("escape")
        app.attempt(lambda: app.verbs["sql"](query))
        await wait_until_idle(app, pilot)
        assert error in message(app).lower() and "\n" not in message(app)
        assert not app.queries.is_running


async def test_rows_become_a_lane(trace: Trace) -> None:
    """Rows with ts and dur are drawn as how many run at a time; the same command removes the lane."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        await ask(app, pilot, KERNELS)
        app.run_command("sql-lane")
        await wait_until_idle(app, pilot)
        lanes = computed_lanes(app.trace, "query")
        assert len(lanes) == 1 and app.session.focus is not None and app.session.focus.lane == lanes[0]
        assert isinstance(app.trace, WithCounters)
        (counter,) = [one for one in app.trace.computed.counters if one.kind == "query"]
        kernels = [one for one in trace.lanes if one.slices == STEPS and one.kind.name == "THREAD"]
        assert counter.values.tolist() == [1, 0] * STEPS and kernels
        assert "query" in screen_text(app)
        await pilot.press("p")
        assert app.session.pinned == (lanes[0],)
        app.run_command("sql-lane")
        await wait_until_idle(app, pilot)
        assert computed_lanes(app.trace, "query") == []


async def test_rows_without_times_are_no_lane(trace: Trace) -> None:
    """What is missing is said."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        app.run_command("sql-lane")
        assert "no query" in message(app)
        await ask(app, pilot, "select name from kernels")
        app.run_command("sql-lane")
        await wait_until_idle(app, pilot)
        assert message(app) == "a lane needs rows with ts and dur: the query has no ts and no dur"


async def test_saved_queries_are_panels(trace: Trace) -> None:
    """The key again shows the saved queries one after the other, each with its rows, by its name."""
    queries = {"kernels by time": KERNELS, "steps": "select number from steps"}
    config = Config(queries=MappingProxyType(queries))
    async with open_viewer(trace, (140, 36), config) as (app, pilot):
        await press_keys(app, pilot, "4", "4")
        assert app.session.panel == "query-1" and "kernels by time" in screen_text(app)
        assert f"{STEPS} rows" in screen_text(app)
        await press_keys(app, pilot, "4")
        assert app.session.panel == "query-2" and "number" in screen_text(app).lower()
        await pilot.press("4")
        assert app.session.panel == "query"


def test_queries_of_the_configuration(tmp_path: Path) -> None:
    """They stand below [queries], by name; one that is no text is complained about."""
    path = tmp_path / "config.toml"
    path.write_text('[queries]\n"slow kernels" = "select name from kernels"\nodd = 3\n', encoding="utf-8")
    config = read_config(path)
    assert dict(config.queries) == {"slow kernels": "select name from kernels"}
    assert config.complaints == (f"{path}: the query odd must be a text such as 'select …'",)
