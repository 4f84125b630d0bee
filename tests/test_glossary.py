"""The glossary explains each word once and names only classes that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = frozenset({"Segment"})
"""Classes that come from Rich or Textual."""
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in GLOSSARY.splitlines()
    if line.startswith("| ") and not line.startswith("| word ")
]


@cache
def _classes() -> frozenset[str]:
    """Return the names of all classes of tracelane."""
    return frozenset(
        node.name
        for room in ("core", "tui")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )


def test_each_word_is_explained_once() -> None:
    """No word stands in two rows, and each row explains its word in one sentence."""
    words = [word for row in ROWS for word in row[0].split(", ")]
    assert len(words) == len(set(words)) >= 30
    assert all(len(row) == 4 and re.fullmatch(r"[A-Z][^.]*(\.\w[^.]*)*\.", row[1]) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_named_classes_exist(row: tuple[str, ...]) -> None:
    """Every class that a row names is one of tracelane's, or a library's."""
    named = set(re.findall(r"`(\w+)`", row[3]))
    assert named <= _classes() | LIBRARIES
