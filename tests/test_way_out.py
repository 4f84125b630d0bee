"""Text leaves by one way: no other module prints, or writes text to a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.corpus import ROOT
from tests.modules import at, files_of, tree_of

DOOR = "core/base/output.py"
HARMLESS = "core/base/safe_text.py"
CLICK = frozenset({"echo", "secho", "echo_via_pager", "edit"})
STREAMS = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})
TO_PROCESSES = frozenset({"core/base/children.py"})
"""What a process of ours tells the one that started it."""
DRAWS = frozenset({"tui/terminal/driver.py", "tui/terminal/taken_screen.py"})
"""Frames, whose characters were made harmless when they were drawn."""
GUARDS = frozenset({"tui/session_log.py", "tui/terminal/guard.py"})
"""Written in a process that has loaded next to nothing, or to a log that is opened without following links;
each line is made harmless by the same function.
"""
NO_TEXT = frozenset(
    {"core/demo/trace.py", "core/export/cut.py", "core/export/bundle.py", "core/export/marks.py"}
)
"""Traces; marks kept for ourselves; zip files, for which the texts are cleaned by the same function."""
SPEAKS = ("tui/", "core/export/")
"""Where what is written is for people and other programs; elsewhere it is indexes and caches."""


LET_OFF = {DOOR, HARMLESS, *TO_PROCESSES, *DRAWS, *GUARDS, *NO_TEXT}
MODULES = {str(path.relative_to(ROOT)): path for path in files_of()}


def _ways(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, what it does) of everything that lets text out past the door."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                yield node.lineno, "print"
            case ast.Attribute(value=ast.Name(id="click"), attr=name) if name in CLICK:
                yield node.lineno, f"click.{name}"
            case ast.ImportFrom(module="click", names=names) if any(each.name in CLICK for each in names):
                yield node.lineno, "an import from click"
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr="write" | "buffer"
            ) if stream in STREAMS:
                yield node.lineno, f"sys.{stream}"
            case ast.ImportFrom(module="sys", names=names) if any(each.name in STREAMS for each in names):
                yield node.lineno, "an import from sys"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="write")) if module.startswith(
                "tui"
            ):
                yield node.lineno, "os.write"
            case ast.Attribute(value=ast.Name(id="traceback"), attr="print_exc" | "print_exception"):
                yield node.lineno, "a traceback"
            case ast.Attribute(attr="write_text" | "write_bytes") if module.startswith(SPEAKS):
                yield node.lineno, "write_text"
            case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open"), args=arguments) if (
                module.startswith(SPEAKS) and any(_writes(argument) for argument in arguments)
            ):
                yield node.lineno, "a file that is opened for writing"
            case ast.Attribute(value=ast.Name(id="json"), attr="dump" | "dumps") if module.startswith(
                ("tui/cli", "tui/text", "tui/controllers")
            ):
                yield node.lineno, "JSON"
            case ast.Import(names=names) if any(each.name == "csv" for each in names):
                if module.startswith(SPEAKS):
                    yield node.lineno, "CSV"


def _writes(argument: ast.expr) -> bool:
    """Tell whether an argument of open() is a mode that writes."""
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        return False
    mode = argument.value
    return 0 < len(mode) <= 3 and set(mode) <= set("wxabt+r") and bool(set(mode) & set("wxa+"))


@pytest.mark.slow
def test_text_leaves_by_the_door() -> None:
    """Nothing but core/base/output.py prints or writes text, so all that leaves is harmless."""
    modules = {name: path for name, path in MODULES.items() if name not in LET_OFF}
    ways = [at(path, *way) for name, path in modules.items() for way in _ways(name, tree_of(path))]
    assert not ways, "\n".join((f"use {DOOR} instead:", *ways))


@pytest.mark.parametrize(
    "line",
    [
        "print('x')",
        "click.echo(name)",
        "from click import secho",
        "sys.stdout.write(name)",
        "sys.stderr.buffer",
        "from sys import stdout",
        "os.write(1, name)",
        "traceback.print_exc()",
        "path.write_text(name)",
        "open(path, 'w')",
        "path.open('x', encoding='utf-8')",
        "json.dumps(row)",
        "import csv",
    ],
)
def test_other_ways_are_seen(line: str) -> None:
    """Every other way that there is would be noticed."""
    assert list(_ways("tui/cli/module.py", ast.parse(line)))


def test_what_is_let_off_is_there() -> None:
    """Modules that are let off are still there: a name that is gone would let a new file off."""
    assert MODULES.keys() >= LET_OFF
