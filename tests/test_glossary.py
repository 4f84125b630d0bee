"""The glossary explains each word once."""

from __future__ import annotations

import re

from tests.corpus import ROOT

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
