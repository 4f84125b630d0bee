"""Copying and saving what is on show: table and picture, with the path or the trouble in one line."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.json_tables import flat
from tests.tui.driver import message, open_viewer, wait_until_idle
from tests.tui.small_file import small_file
from tracelane.core.logs.counters import with_cheap_lanes
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.cli.main import main
from tracelane.tui.widgets.prompt import Prompt


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """The small file, its index in a folder of its own."""
    return open_trace(small_file(tmp_path), index_dir=tmp_path / "index")


async def _typed(app: TracelaneApp, pilot: Pilot[None], line: str) -> None:
    app.post_message(Prompt.Answered("command-line", line))
    await pilot.pause()
    await wait_until_idle(app, pilot)


async def test_table(trace: Trace, tmp_path: Path) -> None:
    """The table on show is written in three formats, as sorted, and copied as Markdown."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        app.run_command("copy-table")
        await pilot.pause()
        assert "no table" in message(app)
        await pilot.press("t", "t")
        await wait_until_idle(app, pilot)
        for form in ("csv", "json", "md"):
            path = tmp_path / f"table.{form}"
            await _typed(app, pilot, f"save table {path}")
            assert message(app) == f"saved {path}"
        rows = list(csv.DictReader((tmp_path / "table.csv").open()))
        assert {"aten::linear", "launch"} <= {row["name"] for row in rows}
        selves = [int(row["self_ns"]) for row in rows]
        assert selves == sorted(selves, reverse=True)
        written = flat(json.loads((tmp_path / "table.json").read_text()))["range"]
        assert [row["self_ns"] for row in written] == selves
        app.run_command("copy-table")
        await pilot.pause()
        assert app.clipboard == (tmp_path / "table.md").read_text()
        assert message(app).startswith(f"copied {len(rows)} rows")


async def test_slices(trace: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What range, :only and :filter leave is written as the command prints it; nothing is written over."""
    start = trace.span[0]
    options = ("--lanes", "main", "--where", "-launch", "--from", "+20us", "--to", "+90us")
    async with open_viewer(with_cheap_lanes(trace), (120, 50)) as (app, pilot):
        app.store.show(
            replace(app.session, only="main", filter="-launch", range=(start + 20_000, start + 90_000))
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
        printed = main(["slices", trace.sources[0].path, "--format", form, *options])
        assert (printed, capsys.readouterr().out) == (0, (tmp_path / f"slices.{form}").read_text())


@pytest.mark.slow
async def test_picture(trace: Trace, tmp_path: Path) -> None:
    """The picture shows the lanes as they are folded on the screen, without the line that was typed."""
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        await _typed(app, pilot, f"save picture {tmp_path / 'seen.txt'}")
        assert message(app) == f"saved {tmp_path / 'seen.txt'}"
        text = (tmp_path / "seen.txt").read_text()
        assert "[aten::linear" in text and "Stream 1" in text
        app.run_command("legend")
        await pilot.pause()  # no lane, no name
        await _typed(app, pilot, "only Stream")
        await pilot.press("colon", *"save picture ", *str(tmp_path / "seen.svg"), "enter")
        await wait_until_idle(app, pilot)
        assert message(app) == f"saved {tmp_path / 'seen.svg'}"
        drawing = (tmp_path / "seen.svg").read_text()
        assert drawing.startswith("<svg") and "save" not in drawing
        assert "Stream" in drawing and "linear" not in drawing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("save picture {folder}/none/a.svg", "cannot write {folder}/none/a.svg: No such file or directory"),
        ("save picture {folder}/small.json", "a picture can be written to"),
        ("save table {folder}/a.csv", "the panel shows no table"),
        ("save table {folder}/a.xls", "a table can be written to"),
        ("save picture {folder}/there.txt", "{folder}/there.txt is there already"),
        ("save", "save picture FILE.svg"),
    ],
)
async def test_trouble_is_one_line(trace: Trace, tmp_path: Path, line: str, said: str) -> None:
    """What cannot be written is said in one line, and no file is overwritten."""
    (tmp_path / "there.txt").write_text("kept")
    async with open_viewer(trace, (120, 50)) as (app, pilot):
        await _typed(app, pilot, line.format(folder=tmp_path))
        assert said.format(folder=tmp_path) in message(app)
        assert "\n" not in message(app)
    assert (tmp_path / "there.txt").read_text() == "kept"
    assert not (tmp_path / "a.csv").exists()
