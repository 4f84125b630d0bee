"""A class or public function name exists once, and a name says what a thing is, not what was done to it."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENTRY = "main"
"""The function that every process begins with."""
NO_NAMES = frozenset(
    (
        "found",
        "told",
        "kept",
        "made",
        "wanted",
        "shown",
        "asked",
        "meant",
        "taken",
        "settled",
        "woven",
        "apart",
        "beside",
        "over",
        "laid",
        "lay_over",
        "place",
        "places",
        "stretch",
        "stretches",
        "pen",
        "pens",
        "letter",
        "letters",
        "ledger",
        "lifted",
    )
)
"""Words that name no variable, parameter, attribute, function, class or file; docs/glossary.md has others."""


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _defined() -> dict[str, list[str]]:
    """Return the files that define each class or public function; a command mirrors what it calls, a Python
    twin what it stands in for.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for room in ("core", "tui"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in _tree(path).body:
                named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                if named and not node.name.startswith("_") and not _is_command(node):
                    files[node.name].append(str(path.relative_to(ROOT)))
    return files


def _is_command(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).startswith("click.command") for each in node.decorator_list)


def test_names_are_there_once() -> None:
    """No two files define a class or public function of one name."""
    double = {name: files for name, files in _defined().items() if len(files) > 1 and name != ENTRY}
    assert not double, f"say which: {double}"


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) of everything that a module names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


def _uses(folder: Path) -> list[str]:
    """Return where the files that lie right in a folder use a word of NO_NAMES as a name."""
    uses = []
    for path in sorted(folder.glob("*.py")):
        names = [(path.stem, 0), *_names(_tree(path))]
        uses += [f"{path.name}:{line}: {name}" for name, line in names if name.lower().strip("_") in NO_NAMES]
    return uses


def _folders() -> list[str]:
    """Return the folders with code, relative to the root."""
    tops = ("core", "tui", "tests", "benchmarks", "bundle", "screenshots")
    return sorted({str(path.parent.relative_to(ROOT)) for top in tops for path in (ROOT / top).rglob("*.py")})


@pytest.mark.parametrize("folder", _folders())
def test_names_say_what_things_are(folder: str) -> None:
    """No name is a word of the list."""
    uses = _uses(ROOT / folder)
    assert not uses, "\n".join(uses)


def test_words_are_seen_wherever_a_name_is_given() -> None:
    """Variables, parameters, attributes, functions and classes are names."""
    code = "found = 1\nasync def told(kept, *, made): self.shown = 2\nclass Asked:\n    over: int = 3"
    names = Counter(name.lower() for name, _ in _names(ast.parse(code)))
    assert set(names) == {"found", "told", "kept", "made", "shown", "asked", "over"}
