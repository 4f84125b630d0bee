"""Texts that people read say things plainly: none has a word of the list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.modules import at, files_of, tree_of

BANNED = re.compile(
    r"\b(claims?|lies?|lay|laid|lying|stands?|stood|standing|any more|anew|altogether|tells? of|told of"
    r"|of which|is asked|are asked|so many|thereof|wherein|hereby)\b",
    re.IGNORECASE,
)
ALLOWED = re.compile(r"stand-alone|stands out|stands for|layout", re.IGNORECASE)
"""Where such a word is the right one."""
ROOMS = ("tui", "core/tables", "core/logs", "core/store", "core/export", "core/trace", "core/capture")
"""Where texts have been gone through; what reads them first goes first."""


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and text of strings of several words that are no docstrings."""
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
    assert files_of(room)
    uses = [
        at(path, line, f"{', '.join(words)} in {text!r}")
        for path in files_of(room)
        for line, text in texts(tree_of(path))
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
