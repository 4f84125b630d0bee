"""The glossary explains each word once and names only classes that exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.corpus import ROOT
from tests.modules import files_of, tree_of

LIBRARIES = frozenset({"Segment"})
"""Classes that come from Rich or Textual."""
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in GLOSSARY.splitlines()
    if line.startswith("| ") and not line.startswith("| word ")
]


def test_each_word_is_explained_once() -> None:
    """No word stands in two rows, and each row explains its word in one sentence."""
    words = [word for row in ROWS for word in row[0].split(", ")]
    assert len(words) == len(set(words)) >= 30
    assert all(len(row) == 4 and re.fullmatch(r"[A-Z][^.]*(\.\w[^.]*)*\.", row[1]) for row in ROWS)


@pytest.mark.slow
def test_named_classes_exist() -> None:
    """Every class that a row names is one of tracelane's, or a library's."""
    classes = {
        node.name for path in files_of() for node in tree_of(path).body if isinstance(node, ast.ClassDef)
    }
    named = {name for row in ROWS for name in re.findall(r"`(\w+)`", row[3])}
    assert named <= classes | LIBRARIES
