"""`tracelane compile`: forms, the table that comes first; its panel."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.json_tables import command_json
from tests.tui.driver import open_viewer, wait_until_idle
from tests.tui.small_file import small_file
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.panels.table import TablePane

BREAKS = CORPUS / "cpu" / "torch213_graph_breaks.json"
FIRST_CALL = CORPUS / "cpu" / "torch213_compile_first_call.json.gz"


def test_a_trace_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing was compiled the command says so, as text and as JSON, and succeeds."""
    path = str(small_file(tmp_path))
    assert main(["compile", path]) == 0
    assert "torch.compile is not applied, as far as the trace shows" in capsys.readouterr().out
    answer = command_json(capsys, "compile", path)
    assert (answer["applied"], answer["regions"]) == (False, [])


@needs_corpus
def test_the_tree_as_text_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    """Regions stand below each other, indented; csv holds the table that was asked for first."""
    assert main(["compile", str(BREAKS), "--first", "regions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Compiled regions")
    columns = [line.index(f"{frame}/0") for frame, line in zip("2345", lines[2:6])]
    assert [column - columns[0] for column in columns] == [0, 2, 4, 6]
    assert main(["compile", str(BREAKS), "--first", "graphs", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sum(int(row["count"]) for row in rows) == 24


@needs_corpus
def test_long_tables_are_cut_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the first table the others show their first rows and how many more there are."""
    assert main(["compile", str(FIRST_CALL)]) == 0
    text = capsys.readouterr().out
    assert "more of 55" in text
    assert "backward graph" in text


@pytest.mark.slow
@needs_corpus
async def test_the_panel_turns_through_its_tables(tmp_path: Path) -> None:
    """8 shows the signs, then regions, graphs and steps, then the signs again: without a device there is no
    time by code, and without timers of Dynamo there are no phases.
    """
    trace = open_trace(BREAKS, index_dir=tmp_path)
    async with open_viewer(trace) as (app, pilot):
        seen = []
        for _ in range(5):
            await pilot.press("8")
            await wait_until_idle(app, pilot)
            seen.append(app.session.panel)
            assert app.main.query_one(f"#{app.session.panel}", TablePane).shown_table is not None
        assert seen == ["compile", "compile-regions", "compile-graphs", "compile-steps", "compile"]
