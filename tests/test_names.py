"""Names are there once and say what things are; no function takes many parameters."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.corpus import ROOT
from tests.modules import at, files_of, tree_of
from tracelane.tui.cli.commands import COMMANDS

ENTRY = "main"
"""The function that every process begins with."""
NO_NAMES = frozenset(
    (
        *("found", "told", "kept", "made", "wanted", "shown", "asked", "meant", "taken", "settled"),
        *("woven", "apart", "beside", "over", "laid", "lay_over", "place", "places", "stretch"),
        *("stretches", "pen", "pens", "letter", "letters", "ledger", "lifted"),
    )
)
"""Words that name no variable, parameter, attribute, function, class or file; docs/glossary.md has others."""


def _defined() -> dict[str, list[str]]:
    """Return the files that define each class or public function; a Python twin
    mirrors what it stands in for.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for path in files_of():
        for node in tree_of(path).body:
            named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if named and not node.name.startswith("_"):
                files[node.name].append(str(path.relative_to(ROOT)))
    return files


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("room", ["core", "tui", "tests", "benchmarks", "bundle", "screenshots"])
def test_names_say_what_things_are(room: str) -> None:
    """No name is a word of the list."""
    uses = [
        at(path, line, name)
        for path in files_of(room)
        for name, line in ((path.stem, 0), *_names(tree_of(path)))
        if name.lower().strip("_") in NO_NAMES
    ]
    assert not uses, "\n".join(uses)


@pytest.mark.slow
@pytest.mark.parametrize("room", ["core", "tui", "tests", "benchmarks", "bundle", "screenshots", "packages"])
def test_limits_have_one_word_each(room: str) -> None:
    """What something is at least or at most begins with MIN or MAX."""
    uses = [
        at(path, line, name)
        for path in files_of(room)
        for name, line in _names(tree_of(path))
        if re.match(r"_?(LEAST|MOST)(_|$)", name)
    ]
    assert not uses, "\n".join(uses)


def test_words_are_seen_wherever_a_name_is_given() -> None:
    """Variables, parameters, attributes, functions and classes are names."""
    code = "found = 1\nasync def told(kept, *, made): self.shown = 2\nclass Asked:\n    over: int = 3"
    names = Counter(name.lower() for name, _ in _names(ast.parse(code)))
    assert set(names) == {"found", "told", "kept", "made", "shown", "asked", "over"}


MAX_PARAMETERS = 7


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of a function's parameters, those after * and ** among them, without self and cls."""
    parts = function.args
    all_of_them = [*parts.posonlyargs, *parts.args, parts.vararg, *parts.kwonlyargs, parts.kwarg]
    names = [each.arg for each in all_of_them if each is not None]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


@pytest.mark.slow
def test_no_function_takes_many_parameters() -> None:
    """Arguments that travel together are a value; only a command's options may be many."""
    long = [
        at(path, node.lineno, f"{node.name}({', '.join(names)})")
        for path in files_of()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.removeprefix("run_") not in COMMANDS
        if len(names := _parameters(node)) > MAX_PARAMETERS
    ]
    assert not long, "\n".join(long)


def test_parameters_of_all_kinds_count() -> None:
    """Positional, named and collecting parameters count, the object itself does not."""
    function = ast.parse("def draw(self, a, /, b, *c, d=1, **e): pass").body[0]
    assert isinstance(function, ast.FunctionDef) and _parameters(function) == ["a", "b", "c", "d", "e"]


COMPOUND = re.compile(r"_?(?:[A-Z][a-z0-9]+){2,}")
"""A class name that is no word of the language, such as `PacketTrack`."""


def _sentences(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (text, line) of the literals with several words, docstrings, types and style sheets aside."""
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr | ast.AnnAssign)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in silent else None
        if isinstance(text, str) and " " in text and "{" not in text:
            yield text, node.lineno


@pytest.mark.slow
def test_no_text_names_a_class() -> None:
    """What people read has no name of a class of ours in it, as a mass renaming would leave there."""
    classes = {name for name in _defined() if COMPOUND.fullmatch(name)}
    texts = (
        at(path, line, text)
        for path in files_of()
        for text, line in _sentences(tree_of(path))
        if classes & set(re.findall(r"\w+", text))
    )
    assert not list(texts)
