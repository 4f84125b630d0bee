"""`tracelane memory`: forms, ranges, the table that comes first; its panel."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.json_tables import command_json
from tests.tui.driver import open_viewer, wait_until_idle
from tracelane.core.demo.trace import write_demo
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.panels.table import TablePane


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rank of the demo trace."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return sorted(folder.glob("*.json"))[0]


def test_json_holds_allocators_peaks_and_copies(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The object has a schema; what was live at the peak is no more than the peak; limits hold."""
    answer = command_json(capsys, "memory", str(demo), "--limit", "3")
    assert answer["command"] == "memory"
    (row,) = [row for row in answer["allocators"] if row["device_type"] != 0]
    live = [one for one in answer["at_peak"] if one["allocator"] == row["name"]]
    assert 0 < len(live) <= 3
    assert 0 < sum(one["bytes"] for one in live) <= row["peak_bytes"]
    assert {"HtoD", "DtoH"} & {one["name"] for one in answer["copies"]}


def test_a_step_has_fewer_records(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step counts its own allocations, and begins at the level before it."""
    whole, step = (
        command_json(capsys, "memory", str(demo)),
        command_json(capsys, "memory", str(demo), "--step", "nth:1"),
    )
    assert step["allocators"]
    for one in step["allocators"]:
        same = next(row for row in whole["allocators"] if row["name"] == one["name"])
        assert 0 < one["allocations"] < same["allocations"]
        assert one["peak_bytes"] <= same["peak_bytes"]


def test_the_curve_as_csv(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The curve has a row per record, and each allocator's greatest value is the peak of its row."""
    assert main(["memory", str(demo), "--first", "curve", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    for one in command_json(capsys, "memory", str(demo))["allocators"]:
        curve = [int(row["allocated"]) for row in rows if row["allocator"] == one["name"]]
        assert len(curve) == one["allocations"] + one["releases"]
        assert max(curve) == one["peak_bytes"]


def test_the_table_that_comes_first(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As text all tables stand below each other, the one asked for first."""
    assert main(["memory", str(demo), "--first", "copies"]) == 0
    text = capsys.readouterr().out
    assert text.index("Copies: whole trace") < text.index("Memory: whole trace")


async def test_the_panel_turns_through_its_tables(demo: Path, tmp_path: Path) -> None:
    """7 shows the allocators, then what was live at the peak, whose rows lead to the op; then the copies."""
    trace = open_trace(demo, index_dir=tmp_path)
    async with open_viewer(trace) as (app, pilot):
        seen = []
        for _ in range(3):
            await pilot.press("7")
            await wait_until_idle(app, pilot)
            seen.append(app.session.panel)
            pane = app.main.query_one(f"#{app.session.panel}", TablePane)
            assert pane.shown_table is not None
            assert len(pane.shown_table)
            if app.session.panel == "memory-peak":
                await pilot.press("enter")
                await wait_until_idle(app, pilot)
                assert app.store.selected is not None
        assert seen == ["memory", "memory-peak", "copies"]
