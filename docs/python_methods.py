"""Writes analyses.pyi: the methods of core/python/methods.py as type checkers and editors see them."""

from __future__ import annotations

import re
import textwrap

from tracelane.core.python.methods import options_of, parameter_of
from tracelane.core.tables.analysis import Analysis
from tracelane.core.tables.registry import ANALYSES

HEAD = '''"""The analyses as methods, for type checkers: written by docs/update.py from the registry."""

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack

from ..tables.frame.table import Table

class Part(TypedDict, total=False):
    """The part of the trace that counts, and the name of another table than the first."""

    where: str | None
    step: int | str | None
    lanes: str | None
    begin: int | None
    end: int | None
    table: str

class AnalysisMethods:
'''
WIDTH = 110
INDENT = " " * 8


def methods_text() -> str:
    """Return the text of analyses.pyi for the registry as it is."""
    return HEAD + "\n".join(map(_method, ANALYSES))


def _method(row: Analysis) -> str:
    options = [str(parameter_of(option)).replace("'", '"') for option in options_of(row)]
    options = [re.sub(r"[a-z_]+\.", "", option) for option in options]  # names without their modules
    arguments = ["self", *(["*", *options] if options else []), "**part: Unpack[Part]"]
    line = f"    def {row.name}({', '.join(arguments)}) -> Table:\n"
    if len(line) > WIDTH:
        lines = "".join(map(_argument, arguments))
        line = f"    def {row.name}(\n{lines}    ) -> Table:\n"
    first = row.help.split("\n\n")[0].partition(". ")[0].rstrip(".")
    *texts, last = textwrap.wrap(f'"""{first}."""', WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    if texts:
        last = last.replace('"""', f'\n{INDENT}"""')
    return line + "\n".join([*texts, last]) + "\n"


def _argument(argument: str) -> str:
    """Return the line of an argument, or three where a choice is too long for one."""
    line = f"{INDENT}{argument},\n"
    if len(line) <= WIDTH + 1 or "[" not in argument:
        return line
    kind, _, rest = argument.partition("[")
    choices, _, default = rest.rpartition("]")
    return f"{INDENT}{kind}[\n{INDENT}    {choices}\n{INDENT}]{default},\n"
