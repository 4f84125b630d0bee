"""A class or public function name is there once, so that a name says which thing is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENTRY = "main"
"""What every process begins with."""


def _names() -> dict[str, list[str]]:
    """Return the files that define each class or public function; a command mirrors what it calls, a Python
    twin what it stands in for.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for room in ("core", "tui"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                if named and not node.name.startswith("_") and not _is_command(node):
                    files[node.name].append(str(path.relative_to(ROOT)))
    return files


def _is_command(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).startswith("click.command") for each in node.decorator_list)


def test_names_are_there_once() -> None:
    """No two files define a class or public function of one name."""
    double = {name: files for name, files in _names().items() if len(files) > 1 and name != ENTRY}
    assert not double, f"say which: {double}"
