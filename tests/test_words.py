"""Texts that people read say things plainly: none has a word of the list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.budgets import ROOT

BANNED = re.compile(
    r"\b(claims?|lies?|lay|laid|lying|stands?|stood|standing|any more|anew|altogether|tells? of|told of"
    r"|of which|is asked|are asked|so many|thereof|wherein|hereby)\b",
    re.IGNORECASE,
)
ALLOWED = re.compile(r"stand-alone|stands out|stands for|layout", re.IGNORECASE)
"""Where such a word is the right one."""
ROOMS = ("tui", "core/tables", "core/logs", "core/store", "core/export", "core/trace")
"""Where texts have been gone through; what reads them first goes first."""


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of strings of several words that are no docstrings."""
    tree = ast.parse(source)
    notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes
        if is_text and " " in node.value.strip():
            yield node.lineno, node.value


def banned_in(text: str) -> list[str]:
    """Return the words of the list in a text."""
    return BANNED.findall(ALLOWED.sub("", text))


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_texts_are_plain(room: str) -> None:
    """No message, title, hint or help has a banned word."""
    paths = sorted((ROOT / room).rglob("*.py")) if not room.endswith(".py") else [ROOT / room]
    assert paths
    uses = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(words)} in {text!r}"
        for path in paths
        for line, text in texts(path.read_text(encoding="utf-8"))
        if (words := banned_in(text))
    ]
    assert not uses, "\n".join(uses)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a log lies here", ["lies"]),
        ("a stand-alone page and its layout", []),
        ("no Range any more", ["any more"]),
        ("outstanding relies", []),
    ],
)
def test_whole_words(text: str, words: list[str]) -> None:
    """Words count as a whole, save in the phrases that are allowed."""
    assert banned_in(text) == words
