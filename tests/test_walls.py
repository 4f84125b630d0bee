"""Rooms import only from those below them, without exception."""

from __future__ import annotations

import tomllib
from typing import Any

from tests.corpus import ROOT


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
