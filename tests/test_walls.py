"""Rooms grow and reach into each other less and less: each exception is counted, and the counts only fall."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.budgets import BUDGETS, ROOT, room_of, too_long
from tests.modules import at, files_of, tree_of

EXCEPTIONS = BUDGETS["exceptions"]
STORE_FILE = ROOT / "tui" / "session_store.py"


def _linter() -> dict[str, Any]:
    """Return the settings of the import linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    linter: dict[str, Any] = settings["tool"]["importlinter"]
    return linter


def test_ignored_imports_only_become_fewer() -> None:
    """The linter sees imports for types too; it ignores as many as budgets.toml says, each by name."""
    linter = _linter()
    ignored = [line for contract in linter["contracts"] for line in contract.get("ignore_imports", [])]
    assert not linter.get("exclude_type_checking_imports")
    assert not [line for line in ignored if "*" in line]
    assert len(ignored) == EXCEPTIONS["imports"], "budgets.toml has another number: has it become smaller?"


def test_no_contract_ignores_what_is_not_there() -> None:
    """An import that is gone must leave the list, and every room stands in the layers of its package."""
    contracts = _linter()["contracts"]
    assert all("unmatched_ignore_imports_alerting" not in contract for contract in contracts)
    layers = [contract for contract in contracts if contract["type"] == "layers"]
    assert {name for contract in layers for name in contract["containers"]} == {
        "tracelane.core",
        "tracelane.tui",
    }
    assert all(contract["exhaustive"] and "exhaustive_ignores" not in contract for contract in layers)


def _store_assignments(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where an attribute of something named store is assigned to or deleted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.strip("_").endswith("store"):
                yield node.lineno


def test_only_the_store_replaces_its_state() -> None:
    """Nobody else assigns to the SessionStore: what is shown changes by dispatch alone."""
    lines = [
        at(path, line, "store")
        for path in files_of("tui")
        if path != STORE_FILE
        for line in _store_assignments(tree_of(path))
    ]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("self.store.trace = trace", 1),
        ("self.hits, self.store.left = hits, left", 1),
        ("store.left = store.whole_left = None", 2),
        ("self._store.lane_lines += 1", 1),
        ("session_store.state: int = 1", 1),
        ("self.store.go(session)", 0),
        ("self.store = store", 0),
        ("session = self.store.session", 0),
    ],
)
def test_each_assignment_is_seen(code: str, count: int) -> None:
    """Plain, unpacked, chained and augmented assignments count, calls and reading do not."""
    assert len(list(_store_assignments(ast.parse(code)))) == count


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("core/read/source.py", "core/read"),
        ("core/tables/findings/rule.py", "core/tables"),
        ("core/native/scan.c", "core/native in C"),
        ("tui/app.py", "tui"),
    ],
)
def test_lines_count_for_the_room_that_has_them(file: str, room: str) -> None:
    """A room is a folder of core or tui with all below it."""
    assert room_of(Path(file)) == room


@pytest.mark.parametrize(("lines", "is_over"), [(99, False), (100, False), (101, True)])
def test_a_room_is_held_to_its_budget(lines: int, is_over: bool) -> None:
    """More lines than the budget are told."""
    assert too_long(Counter({"core/read": lines}), {"core/read": 100}) == ["core/read"] * is_over


def test_a_new_room_needs_a_budget() -> None:
    """A room that has none is over it with its first line."""
    assert too_long(Counter({"core/new": 1}), {}) == ["core/new"]
