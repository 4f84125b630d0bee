"""Cells of tables in panels: decimals align, bars tell shares, names have the colour of their slice."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.tui.driver import open_viewer, wait_until_idle
from tracelane.core.base.colours import key_of
from tracelane.core.tables.schema import Column, TableSchema
from tracelane.core.tables.table import Table
from tracelane.core.trace import open_trace
from tracelane.tui.draw.palette import Look
from tracelane.tui.lanes.look import palette_of
from tracelane.tui.panels.table import TablePane, columns_of, written_in
from tracelane.tui.widgets.table import ColumnView, VirtualTable

LENGTHS = [0, 512, 1_000, 37_097, 28_160_000, 310_566_123, 4_200_000_000, 59_999_999_999]
A100 = "gpu/hta_a100_resnet_ddp_nccl.json.gz"


def table_of(unit, values: list) -> Table:
    columns = (Column("name", "name", "text"), Column("value", "value", unit))
    names = [f"n{number}" for number in range(len(values))]
    return Table.from_arrays(
        TableSchema("t", "T", columns, read_by="value"),
        "whole trace",
        {"name": names, "value": np.array(values)},
    )


def test_decimals_of_durations_align() -> None:
    """Right-aligned, the decimal points of all durations below a minute stand at one place, and so do the
    units; nothing is rounded.
    """
    table = table_of("ns", LENGTHS)
    texts = [written_in(table, table.columns[1], value) for value in LENGTHS]
    point_offsets = {len(text) - text.index(".") for text in texts if "." in text}
    units = {len(text) - re.search(r"[nµm]?s *$", text).start() for text in texts}
    assert len(point_offsets) == 1 and units == {2}
    assert [text.split() for text in texts[3:5]] == [["37.097", "µs"], ["28.160", "ms"]]


@pytest.mark.parametrize(
    ("unit", "values", "parts"),
    [
        ("share", [0.5, 1.0, 0.0, 1.7], [0.5, 1.0, 0.0, 1.0]),
        ("ns", [10, 5, 0], [1.0, 0.5, 0.0]),
        ("count", [0, 0], [0.0, 0.0]),
    ],
)
async def test_bars_are_as_long_as_what_they_tell(
    unit, values: list, parts: list[float], tmp_path: Path
) -> None:
    """A share's bar takes that part of its cell, another value's its part of the greatest; the cursor's row
    has none, so that its text can be read.
    """
    table = table_of(unit, values)
    async with open_viewer(open_trace(_small(tmp_path))) as (app, pilot):
        await pilot.press("t")
        await wait_until_idle(app, pilot)
        pane = next(pane for pane in app.query(TablePane) if pane.shown_table is not None)
        rows = pane.table
        rows.show(columns_of(table), len(values))
        rows.cursor = len(values) - 1
        (_, _), (number, size) = rows._placed(rows._width)
        colour = rows.get_component_rich_style("table--bar").bgcolor
        for row, part in enumerate(parts):
            strip = rows.render_line(row + 1)
            cells = sum(s.cell_length for s in strip if s.style is not None and s.style.bgcolor == colour)
            assert cells == (0 if row == rows.cursor else round(part * size)), (row, number)


def _small(folder: Path) -> Path:
    path = folder / "t.json"
    path.write_text('[{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":0,"dur":5}]')
    return path


@needs_corpus
async def test_names_have_the_colour_of_their_slices(corpus_cache: Path) -> None:
    """Before each name stands the colour in which the lanes draw the slice that the row leads to."""
    trace = open_trace(CORPUS / A100, index_dir=corpus_cache)
    async with open_viewer(trace) as (app, pilot):
        await pilot.press("t")
        await wait_until_idle(app, pilot)
        pane = next(pane for pane in app.query(TablePane) if pane.shown_table is not None)
        table, palette, index = pane.shown_table, palette_of(app.main), trace.indexes[0]
        swatch = columns_swatch(pane)
        seen = set()
        for row in range(len(table)):
            position = int(table.positions[row])
            category = index.categories[int(index.column("slices.category")[position])]
            name = index.string(int(index.column("slices.name")[position]))
            assert swatch(row) == palette.style(key_of(category, name), Look.BAR)
            seen.add(swatch(row))
        assert len(seen) > 3


def columns_swatch(pane: TablePane):
    return next(column.swatch for column in pane.table._columns if column.swatch is not None)


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize(
    ("panel", "expected"),
    [
        ("time", ["Device", "Busy %", "Compute", "Idle"]),
        ("kernels", ["Name", "Total", "Share", "Count"]),
        ("idle", ["Stream", "Idle", "Host wait %", "Kernel wait %"]),
        ("gaps", ["Before it", "Ended by", "Idle", "Mostly"]),
        ("launches", ["Launch call", "Delay median", "Calls", "Launches"]),
        ("steps", ["Step", "Wall", "CUDA busy", "CUDA idle"]),
        ("ops", ["Name", "Self CPU", "CUDA total", "CPU total"]),
        ("tree", ["Name", "Total", "Self", "Calls"]),
        ("table", ["Name", "Self", "Total", "Count"]),
        ("lanes-busy", ["Lane", "Busy", "Busy share", "Count"]),
        ("copies", ["Memory", "Bytes", "Time", "Bandwidth"]),
    ],
)
async def test_what_people_look_for_is_seen_at_80_columns(
    panel: str, expected: list[str], corpus_cache: Path
) -> None:
    """At 80 columns a name has 45 % of the width, and beside it stand the three columns that matter most,
    whichever column the rows are sorted by first; ‹ and › tell that there are others.
    """
    trace = open_trace(CORPUS / A100, index_dir=corpus_cache)
    async with open_viewer(trace, (80, 24)) as (app, pilot):
        app.action_panel(panel)
        await wait_until_idle(app, pilot)
        if panel == "tree":
            await pilot.press("tab", "tab")  # from the flame to the list
        rows = app.main.query_one(f"#{panel}", TablePane).table
        heading = rows.render_line(0).text
        titles = [column.title for column in rows._columns]
        drawn = {titles[number]: size for number, size in rows._placed(rows._width)}
        assert set(expected) <= set(drawn), heading
        assert all(title in heading for title in drawn)
        if expected[0] in ("Name", "Launch call", "Lane"):
            assert drawn[expected[0]] >= rows._width * 45 // 100
        hidden = [number for number, title in enumerate(titles) if title not in drawn]
        last = max(number for number, title in enumerate(titles) if title in drawn)
        assert ("›" in heading) == (max(hidden, default=0) > last)
        assert ("‹" in heading) == any(number < last for number in hidden)


@pytest.mark.parametrize("sorted_by", range(8))
def test_the_column_sorted_by_is_always_drawn(sorted_by: int) -> None:
    """Where there is no room for all, that one takes the room of a chief one, and no cell is lost."""
    ranks = (0, 1, 0, 3, 0, 2, 0, 0)
    views = [ColumnView(f"c{n}", 9 * (n != 1), str, chief=rank) for n, rank in enumerate(ranks)]
    table = VirtualTable()
    table._columns, table._sorted_by = views, (sorted_by, True)
    for width in range(30, 90):
        placed = table._placed(width)
        numbers = [number for number, _ in placed]
        assert {1, sorted_by} <= set(numbers) and numbers == sorted(numbers)
        assert sum(size for _, size in placed) + 2 * (len(placed) - 1) <= width
