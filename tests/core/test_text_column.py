"""A column of text that holds numbers and the texts that they mean acts as the list of its texts does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.export.formats import as_json, as_markdown, pieces_of_csv, pieces_of_json
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.table import Table, Tables, concat
from tracelane.core.tables.frame.text_column import TextColumn, groups_of_texts, joined_texts
from tracelane.tui.panels.table import shown_columns

SCHEMA = TableSchema(
    "calls",
    "Calls",
    (
        Column("name", "name", "text", is_name=True),
        Column("lane", "lane", "text"),
        Column("duration_ns", "duration", "ns"),
    ),
)


@st.composite
def text_columns(draw: st.DrawFn) -> TextColumn:
    texts = draw(st.lists(st.sampled_from(["", "mm", "add", "a::add", "ä\x1b"]), min_size=1, max_size=7))
    codes = draw(st.lists(st.integers(0, len(texts) - 1), max_size=30))
    return TextColumn(np.array(codes, draw(st.sampled_from([np.uint8, np.int64]))), texts)


@given(text_columns(), st.data())
def test_rows_and_order_are_those_of_the_list(column: TextColumn, data: st.DataObject) -> None:
    """Rows by number, slice, mask and places, the distinct texts and the order are those of the list."""
    listed = column.tolist()
    assert list(column) == listed == column.objects.tolist() and len(column) == len(listed)
    assert [column[row] for row in range(len(listed))] == listed
    assert [column[np.int64(row)] for row in range(len(listed))] == listed
    low, high = sorted(data.draw(st.lists(st.integers(0, 30), min_size=2, max_size=2)))
    assert column[low:high].tolist() == listed[low:high]
    mask = np.array([text == "add" for text in listed], np.bool_)
    assert column[mask].tolist() == ["add"] * listed.count("add")
    assert column.distinct == sorted(set(listed))
    assert [listed[row] for row in np.argsort(column.sort_keys, kind="stable").tolist()] == sorted(listed)


@given(st.lists(text_columns(), max_size=4))
def test_columns_are_joined_as_lists(columns: list[TextColumn]) -> None:
    """The rows of several columns below each other are those of their lists."""
    assert joined_texts(columns).tolist() == [text for column in columns for text in column]


@given(text_columns())
def test_groups_are_numbered_as_texts_are_met(column: TextColumn) -> None:
    """Rows of equal text are one group, numbered in the order in which a loop meets the texts."""
    groups, texts = groups_of_texts(column)
    assert texts == list(dict.fromkeys(column)) and groups.size == len(texts)
    assert [texts[code] for code in groups.codes.tolist()] == column.tolist()


def calls(names: Sequence[str] | TextColumn, lanes: Sequence[str] | TextColumn) -> Table:
    data: dict[str, Any] = {"name": names, "lane": lanes, "duration_ns": np.arange(len(names)) * 7}
    return Table.from_arrays(SCHEMA, "whole trace", data)


@pytest.fixture(scope="module")
def tables() -> tuple[Table, Table]:
    """The same rows as numbers with texts, and as lists."""
    rows = np.arange(9001)
    names = TextColumn(rows % 3, ["void at::native::add<float>(int)", "mm", "void at::native::add<int>(int)"])
    lanes = TextColumn(np.zeros(len(rows), np.uint8), ["", "thread 7"])
    return calls(names, lanes), calls(names.tolist(), lanes.tolist())


def test_tables_are_written_alike(tables: tuple[Table, Table]) -> None:
    """All forms of a table are the same, whichever way it holds its texts; so are its rows in part."""
    for make in (pieces_of_csv, as_markdown, str, lambda table: as_json(Tables.of(table), "calls")):
        of_numbers, of_lists = (list(make(table)) for table in tables)
        assert of_numbers == of_lists
    order = np.array([9000, 5, 4096, 0])
    for limit in (None, 0, 2):
        of_numbers, of_lists = (list(table.rows(order, limit)) for table in tables)
        assert of_numbers == of_lists and len(of_lists) == (4 if limit is None else limit)


def test_tables_are_written_row_by_row(tables: tuple[Table, Table]) -> None:
    """No piece of JSON or CSV holds more than a row, however many there are."""
    pieces = [*pieces_of_json(Tables.of(tables[0]), "calls"), *pieces_of_csv(tables[0])]
    assert len(pieces) > 2 * len(tables[0]) and max(map(len, pieces)) < 500


def test_verbs_answer_alike(tables: tuple[Table, Table]) -> None:
    """What selects, orders, groups and joins rows does the same to both."""
    verbs = (
        lambda table: table.sort("name"),
        lambda table: table.where(table["name"] == "mm"),
        lambda table: table.group("name", ["duration_ns"]),
        lambda table: concat([table, table], Column("run", "run", "text"), ["a", "b"]),
        lambda table: table[5:7],
    )
    for verb in verbs:
        of_numbers, of_lists = (list(verb(table)) for table in tables)
        assert of_numbers == of_lists and of_lists
    assert tables[0].short_forms == tables[1].short_forms
    assert [column.key for column in shown_columns(tables[0])] == ["name", "duration_ns"]
