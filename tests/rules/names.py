"""Names say what things are, and no function takes many parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from .rule import EVERYWHERE, PROGRAM, Rule, SourceFile

NO_NAMES = frozenset(
    (
        *("found", "told", "kept", "made", "wanted", "shown", "asked", "meant", "taken", "settled"),
        *("woven", "apart", "beside", "over", "laid", "lay_over", "place", "places", "stretch"),
        *("stretches", "pen", "pens", "letter", "letters", "ledger", "lifted"),
    )
)
"""Words that name no variable, parameter, attribute, function, class or file; docs/glossary.md has others."""
MAX_PARAMETERS = 7
Function = ast.FunctionDef | ast.AsyncFunctionDef


def defined_in(file: SourceFile) -> Iterator[str]:
    """Yield the classes and public functions that a file defines."""
    for node in file.tree.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node.name


def _names(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of everything that a module names, itself first."""
    yield 0, file.name.rpartition("/")[2].removesuffix(".py")
    for node in file.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.ClassDef | Function):
            yield node.lineno, node.name


def _words(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Names are no words of the list."""
    return ((line, name) for line, name in _names(file) if name.lower().strip("_") in NO_NAMES)


def _limits(file: SourceFile) -> Iterator[tuple[int, str]]:
    """What something is at least or at most begins with MIN or MAX."""
    return ((line, name) for line, name in _names(file) if re.match(r"_?(LEAST|MOST)(_|$)", name))


@cache
def _commands() -> frozenset[str]:
    from tracelane.tui.cli.commands import COMMANDS

    return frozenset(COMMANDS)


def _parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters, those after * and ** among them, without self and cls."""
    parts = function.args
    all_of_them = [*parts.posonlyargs, *parts.args, parts.vararg, *parts.kwonlyargs, parts.kwarg]
    names = [each.arg for each in all_of_them if each is not None]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _many_parameters(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Arguments that travel together are a value; only a command's options may be many."""
    for node in file.nodes:
        if isinstance(node, Function) and node.name.removeprefix("run_") not in _commands():
            names = _parameters(node)
            if len(names) > MAX_PARAMETERS:
                yield node.lineno, f"{node.name}({', '.join(names)})"


RULES = (
    Rule(
        "names say what things are",
        tuple(room for room in EVERYWHERE if room != "packages"),
        _words,
        (
            ("found = 1\nasync def told(kept, *, made): self.shown = 2\nclass Asked:\n    over: int = 3", 7),
            ("for place, pen in 1: pass", 2),
            ("rows = found(self.kept)", 0),
        ),
    ),
    Rule(
        "limits have one word each",
        EVERYWHERE,
        _limits,
        (("MOST_ROWS = _LEAST = 1", 2), ("MAX_ROWS = 1\nMOSTLY = 2", 0)),
    ),
    Rule(
        "no function takes many parameters",
        PROGRAM,
        _many_parameters,
        (
            ("def draw(self, a, /, b, c, d, *e, f=1, **g): pass", 0),
            ("def draw(self, a, /, b, c, d, *e, f=1, h, **g): pass", 1),
            ("def run_view(a, b, c, d, e, f, g, h): pass", 0),
        ),
    ),
)
