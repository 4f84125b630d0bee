"""The verbs of a table: each gives the same rows as the plain definition, exactly, and changes nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.tables.frame.frames import by_priority, text_in_cell, text_in_unit
from tracelane.core.tables.frame.schema import Column, TableSchema, Unit
from tracelane.core.tables.frame.table import ABSENT, Table, Tables, concat

NAME, NS, MEAN = (
    Column("name", "name", "text"),
    Column("ns", "time", "ns"),
    Column("mean", "mean", "ns", True),
)
BIG = 2**62 + 1
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-(2**40), 2**40)), max_size=20)


def _table(rows: list[tuple[str, int]], name: str = "t") -> Table:
    jumps = [(at % 2, at) for at in range(len(rows))]
    return Table.from_rows(
        TableSchema(name, "T", (NAME, NS)), "all", [{"name": n, "ns": ns} for n, ns in rows], jumps
    )


def _pairs(table: Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.rows()]


def test_rows_become_columns_and_come_back() -> None:
    """Whole numbers stay exact beyond what a float holds; what is missing is none again."""
    rows = [{"name": "a", "ns": BIG, "mean": None}, {"name": "b", "ns": 1, "mean": 0.5}]
    table = Table.from_rows(TableSchema("t", "T", (NAME, NS, MEAN)), "all", rows, [(1, 7), (0, None)])
    assert list(table.rows()) == rows
    assert table.numbers("ns").dtype == np.int64
    assert (table.jump(0), table.jump(1), len(table)) == ((1, 7), None, 2)


def test_whole_numbers_are_written_as_such() -> None:
    """Times and sizes are whole numbers also where some of their column are missing; shares are not."""
    columns = (NS, Column("bytes", "bytes", "bytes"), Column("share", "share", "share"))
    rows = [{"ns": 5, "bytes": None, "share": 1.0}, {"ns": None, "bytes": 7, "share": None}]
    table = Table.from_rows(TableSchema("t", "T", columns), "all", rows)
    assert [repr(value) for row in table.rows() for value in row.values()] == [
        "5", "None", "1.0", "None", "7", "None",
    ]  # fmt: skip
    assert repr(table.value(0, "ns")) == "5"


def test_whole_values_of_any_number_are_whole() -> None:
    """A number that happens to be whole is one in JSON, unless a float rounded it; infinities are none."""
    table = Table.from_rows(
        TableSchema("t", "T", (Column("n", "n"),)),
        "",
        [{"n": n} for n in (1.0, 2.5, 1e300, float("inf"), None)],
    )
    assert [repr(row["n"]) for row in table.rows()] == ["1", "2.5", "1e+300", "None", "None"]


@given(ROWS)
def test_take_keeps_rows_together(rows: list[tuple[str, int]]) -> None:
    """Rows are taken by number, by mask and by slice, each with its slice to jump to."""
    table = _table(rows)
    order = np.arange(len(rows))[::-1]
    assert _pairs(table.take(order)) == rows[::-1]
    assert [table.take(order).jump(at) for at in range(len(rows))] == [
        table.jump(at) for at in order.tolist()
    ]
    assert _pairs(table.take(table.numbers("ns") > 0)) == [row for row in rows if row[1] > 0]
    assert _pairs(table.take(slice(3))) == rows[:3] and _pairs(table) == rows


@given(ROWS)
def test_group_adds_up_exactly(rows: list[tuple[str, int]]) -> None:
    """A group has the sum of its rows, in order of appearance."""
    sums: dict[str, int] = defaultdict(int)
    for name, ns in rows:
        sums[name] += ns
    assert _pairs(_table(rows).group("name", ["ns"])) == list(sums.items())


@given(ROWS, ROWS)
def test_join_finds_each_row_once(here: list[tuple[str, int]], there: list[tuple[str, int]]) -> None:
    """All rows of both sides are there once; of equal names the first is matched with the first."""
    mine, other = _table(here).join(_table(there))
    assert [at for at in mine.tolist() if at != ABSENT] == list(range(len(here)))
    assert sorted(at for at in other.tolist() if at != ABSENT) == list(range(len(there)))
    for a, b in zip(mine.tolist(), other.tolist()):
        if ABSENT not in (a, b):
            name = here[a][0]
            assert there[b][0] == name
            assert sum(n == name for n, _ in here[:a]) == sum(n == name for n, _ in there[:b])


@pytest.mark.parametrize(
    ("column", "values", "order"),
    [
        (Column("o", "o", "object"), [[1], [1, 2, 3], None, []], [1, 0, 2, 3]),
        (Column("o", "o", "object"), [{"a": 1}, {}, {"a": 1, "b": 2}], [2, 0, 1]),
        (Column("n", "n", "number"), [2, 30, None], [1, 0, 2]),
        (Column("i", "i", "id"), ["9/1", "10/0", "9/0", "8/2"], [1, 0, 2, 3]),
        (Column("t", "t", "text"), ["b", "c", "a", "b"], [1, 0, 3, 2]),
        (Column("d", "d", "ns", change=True), [-5, 3, 4], [0, 2, 1]),
    ],
)
def test_rows_are_sorted_by_what_they_show(column: Column, values: list[Any], order: list[int]) -> None:
    """Objects by how many they hold, texts by the alphabet, changes by their size; equal ones in place."""
    rows = [{column.key: value} for value in values]
    table = Table.from_rows(TableSchema("t", "T", (column,)), "all", rows)
    assert table.order(column.key).tolist() == order


def test_tables_stand_below_each_other() -> None:
    """What a table lacks is empty text, zero, or none for a statistic; every row says its table."""
    more = Table.from_rows(TableSchema("t", "T", (NAME, MEAN)), "all", [{"name": "z", "mean": 2.0}], [(0, 5)])
    table = concat([_table([("a", BIG)]), more], Column("step", "step", "text"), ["0", "1"])
    assert list(table.rows()) == [
        {"step": "0", "name": "a", "ns": BIG, "mean": None},
        {"step": "1", "name": "z", "ns": 0, "mean": 2.0},
    ]
    assert [table.jump(0), table.jump(1), table.keys] == [(0, 0), (0, 5), ("step", "name")]


def test_identities_of_several_tables_are_sorted_as_those_of_one() -> None:
    """Below each other identities of text stay texts, 9 before 10; a table without them has empty ones."""
    schema = TableSchema("t", "T", (Column("i", "i", "id"),))
    tables = [
        Table.from_rows(schema, "all", [{"i": one} for one in ids]) for ids in (["10/0", "9/1"], ["8/2"])
    ]
    both = concat(
        [*tables, Table.from_rows(TableSchema("t", "T", (NAME,)), "all", [{"name": "z"}])],
        Column("step", "step", "text"),
        ["0", "1", "2"],
    )
    assert both.texts("i") == ["10/0", "9/1", "8/2", ""]
    assert replace(both, within="").order("i", descending=False).tolist() == [3, 2, 1, 0]


def test_tables_are_found_by_name() -> None:
    """A missing name is answered with those that exist; another table may lead."""
    tables = Tables("all", 0, {"first": lambda: _table([("a", 1)]), "second": lambda: _table([("b", 2)])})
    assert tables["second"].texts("name") == ["b"]
    assert (tables.main.name, tables.led_by("second").names) == ("first", ("second", "first"))
    with pytest.raises(KeyError, match="first, second"):
        tables["third"]


def test_a_sum_beyond_64_bits_stands_at_the_edge() -> None:
    """Whole numbers that no column can hold become its greatest and least instead of an error."""
    table = Table.from_rows(
        TableSchema("t", "T", (NAME, NS)),
        "all",
        [{"name": "a", "ns": 1 << 70}, {"name": "b", "ns": -(1 << 70)}],
    )
    assert table.data["ns"].tolist() == [(1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (Column("a", "a", "count"), 1234567, "1,234,567"),
        (Column("a", "a", "number"), 1234.5, "1,234.5"),
        (Column("a", "a", "number"), 0.0, "0"),
        (Column("a", "a", "number"), 0.01, "0.01"),
        (Column("a", "a", "number"), -0.0001234, "-0.000123"),
        (Column("a", "a", "share"), 0.5, "50.00%"),
        (Column("a", "a", "ns", change=True), 30, "+30 ns"),
        (Column("a", "a", "ns", change=True), 1, "+1 ns"),
        (Column("a", "a", "ns", change=True), 0, "0 ns"),
        (Column("a", "a", "id"), 1234567, "1234567"),
        (Column("a", "a", "id"), None, "-"),
    ],
)
def test_values_are_written_in_their_unit(column: Column, value: float | None, text: str) -> None:
    """Numbers have thousands and the decimals that tell something, changes a sign, what is missing a dash."""
    assert text_in_unit(column, value) == text


def test_a_name_in_a_cell_tells_it_from_the_others() -> None:
    """Of names whose short forms would be the same the cell has more; of another it has the short form."""
    paths = ["/a/b.py(1): f", "/c/b.py(1): f"]
    column = Column("name", "name", "text", is_name=True)
    table = Table.from_rows(TableSchema("t", "T", (column,)), "all", [{"name": path} for path in paths])
    assert len({text_in_cell(table, column, path) for path in paths}) == 2
    assert text_in_cell(table, column, "/d/e.py(2): g") == "e.py(2): g"


@pytest.mark.parametrize(
    ("key", "title", "heading"),
    [
        ("wait_ns", "wait", "Wait"),
        ("p95_ns", "p95", "p95"),
        ("p9_ns", "p9 of it", "p9 of it"),
        ("arg:Dims", "dims", "dims"),
        ("a", "b c", "B c"),
    ],
)
def test_headings_begin_with_a_capital(key: str, title: str, heading: str) -> None:
    """Percentiles and keys of arguments stay as they are."""
    assert Column(key, title).heading == heading


def test_chief_columns_come_first() -> None:
    """The name, the sorted column, three numbers, then other texts, then other numbers."""
    units: dict[str, Unit] = {"name": "text", "kind": "text"}

    def table_of(keys: str) -> Table:
        columns = tuple(Column(key, key, units.get(key, "count")) for key in keys.split())
        return Table.from_rows(TableSchema("t", "T", columns), "all", [])

    table = table_of("a name b kind c d e")
    orders = {"": "name a b c kind d e", "e": "name e a b c kind d", "name": "name a b c kind d e"}
    for sort, order in orders.items():
        assert [table.columns[at].key for at in by_priority(table, sort)] == order.split()
    assert by_priority(table_of("a b c"), "c") == [2, 0, 1]
