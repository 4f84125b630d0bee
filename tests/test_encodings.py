"""Every text is read and written as UTF-8, whatever the locale of the machine is."""

from __future__ import annotations

import ast
import re

import pytest

from tests.modules import at, files_of, tree_of

FILES = frozenset(("read_text", "write_text"))
"""Methods of a path that take the encoding of the locale where none is named; ruff sees some of them."""
STREAMS = frozenset(("text", "universal_newlines"))
"""Options of a subprocess that do the same for its streams."""


NAMED = re.compile("|".join((*FILES, *(rf"\b{name} *=" for name in STREAMS), "tarfile")))
"""Stands in each file that may do so: others need no parsing."""


def _takes_the_locale(call: ast.Call) -> bool:
    """Return whether a call reads or writes text in the encoding of the locale."""
    options = {option.arg for option in call.keywords}
    if "encoding" in options or None in options:
        return False
    if ast.unparse(call.func) == "tarfile.open":  # names of members
        return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in FILES:
        return len(call.args) <= (call.func.attr == "write_text")
    return any(
        option.arg in STREAMS and isinstance(option.value, ast.Constant) and option.value.value is True
        for option in call.keywords
    )


@pytest.mark.slow
@pytest.mark.parametrize("room", ["core", "tui", "tests", "benchmarks", "bundle", "screenshots", "packages"])
def test_every_text_names_its_encoding(room: str) -> None:
    """No file and no stream is read or written in the encoding of the locale."""
    lines = [
        at(path, node.lineno, ast.unparse(node.func))
        for path in files_of(room)
        if NAMED.search(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and _takes_the_locale(node)
    ]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("path.read_text()", True),
        ("path.write_text(a)", True),
        ("path.write_text(a, newline='')", True),
        ("run(a, text=True)", True),
        ("tarfile.open(a)", True),
        ("tarfile.open(a, encoding='utf-8')", False),
        ("path.read_text(encoding='utf-8')", False),
        ("path.read_text('utf-8')", False),
        ("path.write_text(a, 'utf-8')", False),
        ("run(a, text=True, encoding='utf-8')", False),
        ("run(a, **options)", False),
    ],
)
def test_the_calls_that_take_it(text: str, takes: bool) -> None:
    """What names no encoding is seen, what names one is left alone."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call) and _takes_the_locale(call) == takes
