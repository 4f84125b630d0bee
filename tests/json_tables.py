"""What is in the JSON of an analysis: rows of a table, totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracelane.core.export.formats import as_json
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import BY_NAME
from tracelane.tui.cli.main import main

KEYS = ["schema", "command", "scope", "origin_ns", "tables", "notes"]


def flat(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the rows by table and the totals by name of a JSON object, whose shape is looked at."""
    assert list(whole) == KEYS and whole["schema"] == 2 and isinstance(whole["origin_ns"], int)
    tables = dict(whole["tables"])
    for table in tables.values():
        assert list(table) == ["columns", "rows"]
        assert all(set(column) == {"name", "unit"} for column in table["columns"])
        names = [column["name"] for column in table["columns"]]
        assert all(list(row) == names for row in table["rows"])
    totals = tables.pop("totals", {"rows": [{}]})["rows"][0]
    rows = {name: table["rows"] for name, table in tables.items()}
    return {**totals, **rows, "scope": whole["scope"], "notes": whole["notes"], "command": whole["command"]}


def analysed(name: str, scope: Scope, **options: Any) -> dict[str, Any]:
    """Return the JSON of an analysis, by name and through text."""
    tables = BY_NAME[name].run(scope, **options)
    return flat(json.loads(as_json(tables, name)))


def command_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    """Run a command that succeeds and return what it prints as JSON, flat."""
    assert main([*map(str, arguments), "--json"]) == 0, capsys.readouterr().err
    return flat(json.loads(capsys.readouterr().out))
