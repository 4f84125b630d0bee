"""The registry: every row runs in every form, with the options of its function, and is loaded only then."""

from __future__ import annotations

import csv
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.json_tables import flat
from tests.tui.small_file import small_file
from tracelane.core.export.formats import as_json, as_markdown, pieces_of_csv
from tracelane.core.tables.analysis import Analysis, loaded
from tracelane.core.tables.explain.questions import QUESTIONS
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.metric_groups import metrics
from tracelane.core.tables.registry import ANALYSES, BY_NAME, PANELS, TABS
from tracelane.core.trace import open_trace

LIGHT = """
import sys
import tracelane.core.tables.registry, tracelane.tui.cli.main, tracelane.tui.cli.analysis
from tracelane.tui.cli.main import command_names, tracelane
import click
for name in command_names():
    tracelane.get_command(click.Context(tracelane), name)
print([name for name in ("numpy", "textual", "rich") if name in sys.modules])
"""
rows = pytest.mark.parametrize("row", ANALYSES, ids=lambda row: row.name)


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory) -> Scope:
    """Two steps with an op, a launch and a kernel each."""
    folder = tmp_path_factory.mktemp("registry")
    return Scope(open_trace(small_file(folder), index_dir=folder / "index"))


def test_a_name_that_python_cannot_have_is_refused() -> None:
    """A name becomes a command and a method: a hyphen would give code that does not load."""
    with pytest.raises(ValueError, match="'kernel-rate' is no Python name: join the words"):
        Analysis("kernel-rate", "kernels:analyse_kernels", "Kernels per second", "Count the kernels.")


@rows
def test_options_are_those_of_the_function(row: Analysis) -> None:
    """Each option is an argument of the function with the same default; so is the limit, if it takes one."""
    parameters = dict(list(inspect.signature(loaded(row.function)).parameters.items())[1:])
    for option in row.options:
        assert parameters[option.name].default == option.default, option.name
        if option.choices:
            assert option.default in (*option.choices, "", None)
    assert ("limit" in parameters) == (row.limits != "rows")


@rows
def test_every_form_says_the_same(row: Analysis, scope: Scope) -> None:
    """JSON, CSV and Markdown have the same rows, and JSON reads back in its one shape."""
    tables = row.run(scope)
    whole = flat(json.loads(as_json(tables, row.name)))
    assert whole["command"] == row.name and whole["scope"] == tables.scope
    for table in tables:
        assert len(whole[table.name]) == len(table) == as_markdown(table).count("\n|") - 2
        assert len(list(csv.reader(pieces_of_csv(table)))) == len(table) + 1
        keys = [column.key for column in table.columns]
        assert len(set(keys)) == len(keys)


RUNS = [(row, {}) for row in ANALYSES]
RUNS += [(BY_NAME["explain"], {"question": question.name}) for question in QUESTIONS]


@pytest.mark.parametrize(("row", "options"), RUNS, ids=str)
def test_what_is_drawn_can_be_read(row: Analysis, options: dict[str, str], scope: Scope) -> None:
    """A drawn cell is a text, a number, or a list, of which its length says something: never a mapping."""
    for table in row.run(scope, **options):
        for column in table.drawn_columns:
            values = [line[column.key] for line in table.rows()]
            assert all(isinstance(value, str | int | float | list | tuple | None) for value in values), column


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_has_its_table(name: str, scope: Scope) -> None:
    """The analysis gives the table of the panel for the options of the panel, which sorts by a column."""
    row, panel = PANELS[name]
    table = row.run(scope, **dict(panel.options))[panel.table]
    assert panel.empty and (not panel.sort or table.column(panel.sort))
    assert row.tab in [tab.name for tab in TABS]


def test_names_are_told_apart() -> None:
    """No two analyses, panels, tabs, keys or groups of metrics share a name."""
    for names in (
        [row.name for row in ANALYSES],
        [panel.name for row in ANALYSES for panel in row.panels],
        [tab.name for tab in TABS],
        [tab.key for tab in TABS],
        [row.metric_group for row in ANALYSES if row.metrics],
    ):
        assert len(set(names)) == len(names)


@rows
def test_no_two_columns_have_the_same_heading(row: Analysis, scope: Scope) -> None:
    """Whoever reads a table can say which column is meant."""
    tables = list(row.run(scope))
    assert tables
    for table in tables:
        headings = [column.heading for column in table.drawn_columns]
        assert len(headings) == len(set(headings)), table.name


def test_metrics_begin_with_their_group(scope: Scope) -> None:
    """A metric of an analysis is found by what its name begins with."""
    measured = [row for row in ANALYSES if row.metrics]
    assert len(measured) > 5
    for row in measured:
        group_metrics = metrics(scope, [row.metric_group])
        assert group_metrics and all(name.startswith(f"{row.metric_group}.") for name in group_metrics)


def test_rows_load_nothing(tmp_path: Path) -> None:
    """All commands with their options are there before numpy is: help and completion are quick."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


NO_UNIT = {"copies.without_bytes", "left_out.most"}
"""Columns whose key ends as a unit does and is none, or whose unit is another from row to row."""
ENDINGS = {"_ns": "ns", "_bytes": "bytes", "_share": "share"}


def test_units_are_those_that_keys_end_with(tmp_path: Path) -> None:
    """Of every table of every analysis: a key that ends with a unit is in it, times end with ns, and starts
    and ends are moments, which are counted from the scope's origin.
    """
    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    wrong = []
    for row in ANALYSES:
        for table in row.run(Scope(trace, clocks=trace.clocks)):
            for column in table.columns:
                if f"{table.name}.{column.key}" in NO_UNIT or column.key == "ns":
                    continue
                where = f"{row.name} {table.name}.{column.key}: {column.unit}"
                unit = next((unit for ending, unit in ENDINGS.items() if column.key.endswith(ending)), None)
                if column.unit != "object" and unit is not None and column.unit != unit:
                    wrong.append(where)
                if column.unit == "ns" and unit is None:
                    wrong.append(f"{where} without _ns")
                if column.key in ("start_ns", "end_ns") and column.unit == "ns" and not column.moment:
                    wrong.append(f"{where} is no moment")
    trace.close()
    assert not wrong, "\n".join(wrong)
