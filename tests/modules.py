"""The files of the code as syntax trees, each parsed once for all rules of the house."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.corpus import ROOT


@cache
def files_of(*rooms: str) -> tuple[Path, ...]:
    """Return the Python files below some folders of the root, of core and tui where none is named."""
    return tuple(sorted(path for room in rooms or ("core", "tui") for path in (ROOT / room).rglob("*.py")))


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def at(path: Path, line: int, what: str) -> str:
    """Return what is wrong in a line of a file, as an assertion says it."""
    return f"{path.relative_to(ROOT)}:{line}: {what}"
