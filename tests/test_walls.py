"""Rooms import only from those below them, and only the store replaces what is shown."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.corpus import ROOT
from tests.modules import at, files_of, tree_of

STORE_FILE = ROOT / "tui" / "session_store.py"


def _linter() -> dict[str, Any]:
    """Return the settings of the import linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    linter: dict[str, Any] = settings["tool"]["importlinter"]
    return linter


def test_no_import_is_excepted() -> None:
    """The linter sees imports for types too, and ignores none."""
    linter = _linter()
    assert not linter.get("exclude_type_checking_imports")
    assert not [contract["name"] for contract in linter["contracts"] if contract.get("ignore_imports")]


def test_every_room_stands_in_the_layers_of_its_package() -> None:
    """A room that is new has to be given its place."""
    layers = [contract for contract in _linter()["contracts"] if contract["type"] == "layers"]
    assert {name for contract in layers for name in contract["containers"]} == {
        "tracelane.core",
        "tracelane.core.tables",
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
