"""Cells of tables in panels: decimals align, bars tell shares, names have the colour of their slice."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.tui.driver import open_viewer, wait_until_idle
from tracelane.core.tables.table import Column, Table, TableSchema
from tracelane.core.trace import open_trace
from tracelane.tui.draw.palette import Look, key_of
from tracelane.tui.lanes.look import palette_of
from tracelane.tui.panels.table import TablePane, columns_of, written_in

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
