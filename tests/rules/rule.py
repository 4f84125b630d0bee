"""A rule that sources keep to, and a source as rules see it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

PROGRAM = ("core", "tui")
EVERYWHERE = (*PROGRAM, "tests", "benchmarks", "bundle", "screenshots", "packages")
Node = TypeVar("Node", bound=ast.AST)


class SourceFile(NamedTuple):
    """A file with the nodes of its syntax tree, in the order of `ast.walk`."""

    name: str  # from the root: core/base/numbers.py
    tree: ast.Module
    nodes: Sequence[ast.AST]

    @classmethod
    def of(cls, name: str, text: str) -> SourceFile:
        """Parse a file."""
        tree = ast.parse(text)
        return cls(name, tree, tuple(ast.walk(tree)))

    def is_in(self, folders: Iterable[str]) -> bool:
        return any(self.name == one or self.name.startswith(f"{one}/") for one in folders)

    def of_kind(self, kind: type[Node]) -> Iterator[Node]:
        """Yield the nodes of a kind."""
        return (node for node in self.nodes if isinstance(node, kind))

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield (line, text) of the strings that are no docstrings."""
        notes = {id(node.value) for node in self.of_kind(ast.Expr)}
        for node in self.of_kind(ast.Constant):
            if isinstance(node.value, str) and id(node) not in notes:
                yield node.lineno, node.value


class Exempt(NamedTuple):
    """Where what a rule forbids is right, and why."""

    file: str  # a pattern of paths
    what: str  # a regular expression, which is searched for in what the rule says is wrong; empty: all of it
    why: str


@dataclass(frozen=True)
class Rule:
    """What no source may do."""

    name: str
    rooms: tuple[str, ...]  # folders in which it holds, or files
    breaches: Callable[[SourceFile], Iterator[tuple[int, str]]]  # (line, what is wrong there)
    examples: tuple[tuple[str, int], ...]  # lines of code, and how often they break it
    but: tuple[Exempt, ...] = ()

    def exempt(self, file: str, what: str) -> list[Exempt]:
        """Return the exceptions under which something falls."""
        return [one for one in self.but if Path(file).match(one.file) and re.search(one.what, what)]

    def broken_by(self, code: str) -> int:
        """Return how often code of a file in its first room breaks it."""
        return len([*self.breaches(SourceFile.of(f"{self.rooms[0]}/module.py", code))])
