"""Two tables of one kind held against each other, row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.events import complete, index_of
from tracelane.core.export.formats import as_csv, text_in_unit
from tracelane.core.tables.breakdown import breakdown, device_table
from tracelane.core.tables.compare import by_steps, compare, with_first
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.ops import ops
from tracelane.core.tables.range_table import lane_table, range_table
from tracelane.core.tables.schema import Column, TableSchema
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.table import Table
from tracelane.core.trace import Trace

T = TableSchema(
    "t",
    "T",
    (
        Column("name", "name", "text"),
        Column("kind", "kind", "text"),
        Column("total_ns", "total", "ns"),
        Column("mean_ns", "mean", "ns", statistic=True),
        Column("share", "share", "share"),
    ),
    keys=("name",),
)


def _table(*rows: tuple[str, str, int, float, float], scope: str = "here") -> Table:
    data = {column.key: [row[at] for row in rows] for at, column in enumerate(T.columns)}
    numbers = {key: np.array(data[key]) for key in ("total_ns", "mean_ns", "share")}
    positions = np.arange(len(rows), dtype=np.uint32) + (100 if scope == "there" else 0)
    totals = {"total_ns": sum(row[2] for row in rows), "word": "x"}
    return Table.from_arrays(T, scope, {**data, **numbers}, totals=totals, positions=positions)


NOW = _table(("a", "x", 30, 15.0, 0.75), ("b", "x", 10, 10.0, 0.25), ("b", "y", 1, 1.0, 0.0))
PAST = _table(("b", "z", 8, 4.0, 0.5), ("c", "w", 8, 8.0, 0.5), scope="there")


def test_rows_find_each_other() -> None:
    """Rows meet by their keys, equal ones in turn; what only one side has stays, the baseline's last."""
    rows = list(compare(NOW, PAST).rows())
    assert [(row["name"], row["kind"], row["presence"]) for row in rows] == [
        ("a", "x", "new"), ("b", "x", "both"), ("b", "y", "new"), ("c", "w", "gone"),
    ]  # fmt: skip
    assert [(row["total_ns"], row["total_ns_delta"], row["total_ns_relative"]) for row in rows] == [
        (30, 30, None), (10, 2, 0.25), (1, 1, None), (0, -8, -1.0),
    ]  # fmt: skip
    assert [row["mean_ns_delta"] for row in rows] == [None, 6.0, None, None]
    assert [row["share_delta"] for row in rows] == [0.75, -0.25, 0.0, -0.5]
    assert "share_relative" not in rows[0]


def test_scope_totals_and_jumps() -> None:
    """The scope names both, totals change too, a row jumps to the baseline's slice where only that has it."""
    table = compare(NOW, PAST)
    assert table.scope == "here against there" and compare(NOW, PAST, scope="both").scope == "both"
    assert table.totals == {"total_ns": 41, "total_ns_delta": 25, "word": "x"}
    assert table.positions is not None and table.positions.tolist() == [0, 1, 2, 101]
    assert compare(replace(NOW, positions=None), PAST).positions is None


def test_changes_sort_by_size_and_show_their_sign() -> None:
    """|Δ| orders rows, none comes last either way, and a value that grew has a plus."""
    table = compare(NOW, PAST)
    assert table.order("total_ns_delta").tolist() == [0, 3, 1, 2]
    assert table.order("total_ns_relative").tolist() == [3, 1, 0, 2]
    assert table.order("total_ns_relative", descending=False).tolist() == [1, 3, 0, 2]
    column = table.column("total_ns_delta")
    assert [text_in_unit(column, table.value(row, column.key)) for row in (0, 3)] == ["+30 ns", "-8 ns"]
    assert as_csv(table).splitlines()[0].split(",")[2:5] == [
        "total_ns", "total_ns_delta", "total_ns_relative",
    ]  # fmt: skip


def test_columns_and_rows_that_only_one_side_has() -> None:
    """A column that one table lacks counts as zero there; empty tables are no obstacle."""
    data = {key: value for key, value in PAST.data.items() if key != "total_ns"}
    less = replace(PAST, columns=tuple(c for c in T.columns if c.key != "total_ns"), data=data)
    assert [row["total_ns_delta"] for row in compare(NOW, less).rows()] == [30, 10, 1, 0]
    assert [row["total_ns_delta"] for row in compare(less, NOW).rows()] == [-10, 0, -30, -1]
    assert [row["presence"] for row in compare(_table(), PAST).rows()] == ["gone", "gone"]
    assert len(compare(_table(), _table())) == 0
    with pytest.raises(ValueError, match="of t cannot"):
        compare(NOW, replace(PAST, name="u"))


def test_all_against_the_first() -> None:
    """Steps against one step: every row's change is that to the baseline's first row, whatever its name."""
    assert [row["total_ns_delta"] for row in compare(NOW, PAST, with_first).rows()] == [22, 2, -7]
    assert [row["presence"] for row in compare(NOW, _table(), with_first).rows()] == ["new"] * 3


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Two halves of ops and kernels that differ in how often and how long."""
    ops_ = [complete(i * 10, 4 + i % 3, f"op{i % 4}", "cpu_op") for i in range(60)]
    work = [
        complete(i * 10 + 2, 3 + (i > 30) * 2, f"k{i % 3 + (i > 40)}", "kernel", pid=2, tid=7)
        for i in range(60)
    ]
    return Trace([index_of(ops_ + work, tmp_path / "index")])


def _tables(trace: Trace, span: tuple[int, int]) -> list[Table]:
    scope = Scope(trace, span)
    return [
        range_table(scope),
        lane_table(scope),
        ops(scope),
        kernels(scope),
        device_table(breakdown(scope)),
    ]


def test_every_table_against_itself_and_another_range(trace: Trace) -> None:
    """Of each table: nothing changed against itself; against another range each change is the difference
    that the two tables' own rows give, and there and back again are opposite.
    """
    early, late = _tables(trace, (0, 290_000)), _tables(trace, (290_000, 600_000))
    compared = 0
    for old, new in zip(early, late):
        same = compare(old, old)
        assert set(same.data["presence"]) == {"both"}
        changes = [column for column in same.columns if column.change]
        assert changes and not any(np.nan_to_num(same.data[column.key]).any() for column in changes)
        here, there = new.join(old)
        table, back = compare(new, old), compare(old, new)
        assert len(table) == len(back) == len({*_keys(old), *_keys(new)})
        for column in new.columns:
            if column.unit in ("text", "id", "object") or column.moment or column.key in new.key_columns:
                continue
            for row, (at, was) in enumerate(zip(here.tolist(), there.tolist())):
                change = table.value(row, f"{column.key}_delta")
                if at >= 0 and was >= 0:
                    now, past = new.value(at, column.key), old.value(was, column.key)
                    if isinstance(now, int | float) and isinstance(past, int | float):
                        compared += 1
                        assert change == pytest.approx(now - past)
            if not column.statistic:
                total = np.nansum(np.asarray(table.data[f"{column.key}_delta"], np.float64))
                other = np.nansum(np.asarray(back.data[f"{column.key}_delta"], np.float64))
                assert total == pytest.approx(-other)
    assert compared


def _keys(table: Table) -> list[tuple[object, ...]]:
    return [tuple(table.value(row, key) for key in table.key_columns) for row in range(len(table))]


def test_a_moment_has_no_change() -> None:
    """Where in time something lies is told as it is now, beside the changes of the other columns."""
    columns = (
        Column("name", "name", "text"),
        Column("at_ns", "at", "ns", moment=True),
        Column("n", "n", "count"),
    )
    now, past = (
        Table.from_arrays(
            TableSchema("t", "T", columns), "", {"name": ["a"], "at_ns": np.array([at]), "n": np.array([n])}
        )
        for at, n in ((70, 3), (20, 1))
    )
    (row,) = compare(now, past).rows()
    assert row == {"name": "a", "at_ns": 70, "n": 3, "n_delta": 2, "n_relative": 2.0, "presence": "both"}


def test_steps_meet_though_their_numbers_differ() -> None:
    """Rows of steps that only one side has meet by their names without numbers, in the order of these, where
    that is asked for; kernels with other numbers, other kinds of steps and a step too many do not.
    """
    schema = replace(T, keys=("name", "kind"))

    def table(*names: str) -> Table:
        rows = _table(*((name, "x", 10 * at + 10, 1.0, 0.0) for at, name in enumerate(names)))
        return replace(rows, keys=schema.keys)

    past = table("ProfilerStep#9", "ProfilerStep#10", "gemm_64", "iteration_3", "same", "batch 1")
    now = table("ProfilerStep#12", "same", "ProfilerStep#11", "gemm_128", "batch 2", "ProfilerStep#13")
    sides = {
        (row["name"], row["presence"]): row["total_ns"] - row["total_ns_delta"]
        for row in compare(now, past, by_steps("batch 7")).rows()
    }
    assert sides == {
        ("ProfilerStep#12", "both"): 20, ("same", "both"): 50, ("ProfilerStep#11", "both"): 10,
        ("gemm_128", "new"): 0, ("batch 2", "both"): 60, ("ProfilerStep#13", "new"): 0,
        ("gemm_64", "gone"): 30, ("iteration_3", "gone"): 40,
    }  # fmt: skip
    assert {row["presence"] for row in compare(now, past).rows() if row["name"] != "same"} == {"new", "gone"}
    of_batches = {row["name"]: row["presence"] for row in compare(now, past, by_steps()).rows()}
    assert of_batches["batch 2"] == "new" and of_batches["ProfilerStep#12"] == "both"
