"""What every command prints as JSON is what docs/output.schema.json says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.tui.small_file import small_file
from tests.tui.test_cli_options import FORMS, NO_TABLE, commands
from tracelane.core.demo.trace import write_demo
from tracelane.tui.cli.main import main

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "output.schema.json").read_text(encoding="utf-8"))
KINDS = {"object": dict, "array": list, "string": str, "integer": int}
VALUES: dict[str, Any] = {"text": str, "ns": int, "count": int, "bytes": int, "object": (list, dict)}
"""Of each unit the type of values; others may be any number, and ids texts, too."""
AVERAGES = ("mean", "median", "stdev", "p95")
"""Times called so may have fractions of a ns."""


def faults(value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
    """Return where a value is not what a schema says, of the keywords that ours uses."""
    if "$ref" in schema:
        return faults(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], at)
    if "const" in schema and value != schema["const"]:
        return [f"{at} is {value!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at} is {value!r}"]
    kind = KINDS.get(schema.get("type", ""))
    if kind and (not isinstance(value, kind) or isinstance(value, bool)):
        return [f"{at} is a {type(value).__name__}"]
    lines = [f"{at} lacks {key}" for key in schema.get("required", ()) if key not in value]
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key, one in value.items() if isinstance(value, dict) else ():
        if key in properties:
            lines += faults(one, properties[key], f"{at}.{key}")
        elif others is False:
            lines.append(f"{at} has {key}")
        elif isinstance(others, dict):
            lines += faults(one, others, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        lines += [fault for one in value for fault in faults(one, schema["items"], f"{at}[]")]
    return lines


def row_faults(table: dict[str, Any]) -> list[str]:
    """Return where rows have other keys than their columns, or values of another kind than the unit's."""
    units = {column["name"]: column["unit"] for column in table["columns"]}
    lines = []
    for row in table["rows"]:
        if list(row) != list(units):
            lines.append(f"{list(row)} are not {list(units)}")
        for key, value in row.items():
            unit = units.get(key, "number")
            kind = (int, float) if unit == "ns" and key.startswith(AVERAGES) else VALUES.get(unit)
            if kind and value is not None and not isinstance(value, kind):
                lines.append(f"{key} in {unit} is {value!r}")
    return lines


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps with an op, a launch and a kernel each."""
    return small_file(tmp_path_factory.mktemp("schema"))


OWN_OBJECTS = ("chain", "history", "index", "info")
"""Commands whose JSON has other objects, or tables that are called as metrics are."""


@pytest.fixture(scope="module")
def demo_ranks(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """The demo's two ranks, their log beside them."""
    return [str(path) for path in write_demo(tmp_path_factory.mktemp("demo"))[:2]]


@pytest.mark.parametrize("command", [name for name in commands() if name not in NO_TABLE])
def test_json_is_what_the_schema_says(
    command: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command's JSON has the keys, units and kinds of values that the document promises."""
    words = [command, str(path), *FORMS.get(command, ()), "--index-dir", str(path.parent / "index")]
    if command == "diff":
        words.insert(1, str(path))
    if command == "history":
        summary = tmp_path / "summary.json"
        assert main(["summary", str(path), "--json", "-o", str(summary), *words[-2:]]) == 0
        words = ["history", str(summary)]
    if command == "cache list":
        words = command.split()
    assert main([*words, "--json"]) in (0, 1)  # a verdict of `check` or `doctor`
    text = capsys.readouterr().out
    if command == "chain":
        assert not faults(json.loads(text), SCHEMA["$defs"]["chain"])
    elif command in ("info", "index"):
        assert text.splitlines()
        for line in text.splitlines():
            assert not faults(json.loads(line), SCHEMA["$defs"]["line"])
    else:
        answer = json.loads(text)
        assert not faults(answer, SCHEMA)
        assert answer["command"] == command.split()[0] and answer["tables"]
        assert not [line for table in answer["tables"].values() for line in row_faults(table)]


DOCUMENT = (Path(__file__).parents[2] / "docs" / "analyses.md").read_text(encoding="utf-8")
LISTED = {
    command: {*re.findall(r"`([a-z_]+)`", tables)}
    for commands_, tables in re.findall(
        r"^\| (.*) \| (.*) \|$", DOCUMENT.partition("| tables beside")[2], re.M
    )
    for command in re.findall(r"`(.*?)`", commands_)
}
"""Command -> the tables that docs/analyses.md lists."""
MORE = {
    "kernels": [("--runs", "mm")],
    "idle": [("--recurring",)],
    "critical-path": [("--by", "kind"), ("--scale", "sdsc_fused_mm_t_10=0.5")],
    "ranks": [("--group-by", "host")],
    "explain": [("--question", "kernels")],
    "memory": [("--first", "curve")],
    "telemetry": [("--by", "step"), ("--by", "kernel"), ("--from", "+1ms", "--to", "+900ms")],
    "diff": [("--tree",)],
}
"""Command -> options with which it has further tables."""


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in commands() if name not in (*NO_TABLE, *OWN_OBJECTS)])
def test_all_tables_are_documented(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], demo_ranks: Sequence[str]
) -> None:
    """docs/analyses.md lists the tables of each command, all of them and no other."""
    words, index = command.split(), ["--index-dir", str(Path(demo_ranks[0]).parent / "index")]
    traces = {"cache list": [], "ranks": demo_ranks, "diff": demo_ranks}.get(command, demo_ranks[:1])
    names = set()
    for more in ((), *MORE.get(command, ())):
        given = () if command == "telemetry" and more else FORMS.get(command, ())
        main([*words, *traces, *given, *more, "--json", *(index if traces else ())])
        names |= {*json.loads(capsys.readouterr().out)["tables"]} - {"totals"}
    assert names == LISTED.get(command, {command.replace("-", "_")})


def test_faults_are_said() -> None:
    """What is missing, of another kind, or too much is a fault each."""
    answer = {"schema": 1, "command": 5, "tables": {"t": {"columns": [{"name": "a", "unit": "s"}], "x": 1}}}
    assert len(faults(answer, SCHEMA)) == 8
    assert row_faults({"columns": [{"name": "a", "unit": "ns"}], "rows": [{"a": 0.5}, {"b": 1}]})
