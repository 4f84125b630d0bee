"""Writes analyses.py: a method per row of the registry, which editors, `help()` and type checkers see."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tracelane.core.tables.analysis import Analysis, Option
from tracelane.core.tables.registry import ANALYSES

HEAD = '''"""The analyses as methods.

Written by docs/update.py from core/tables/registry.py, never by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..tables.selection import Selection

if TYPE_CHECKING:
    from ..tables.table import Table


class AnalysisMethods(ABC):
    """A method per analysis. All take the part of the trace that counts, and return a table."""

    @abstractmethod
    def _table(self, analysis: str, selection: Selection, options: dict[str, Any], table: str) -> Table:
        """Run an analysis over a part of the trace; return its table of this name, the first for \"\"."""
'''
LIMIT_HELP = "How many rows a list such as the longest gaps has."
PART_HELP = (
    'where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".',
    'step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.',
    "lanes: count only lanes whose title matches this regular expression.",
    "begin, end: count from and up to here, ns of trace time, as in columns of times.",
    "table: the name of another table of the analysis; the first one is returned without it.",
)
"""What the arguments that all methods have mean."""
PART = (
    "where: str | None = None,",
    "step: int | str | None = None,",
    "lanes: str | None = None,",
    "begin: int | None = None,",
    "end: int | None = None,",
    'table: str = "",',
)


def methods_text() -> str:
    """Return the text of analyses.py for the registry as it is."""
    return HEAD + "".join("\n" + "\n".join(_method(row)) + "\n" for row in ANALYSES)


def _method(row: Analysis) -> Iterator[str]:
    options = list(row.options)
    if row.limits != "rows":
        options.append(Option("limit", LIMIT_HELP, None, metavar="int"))
    yield f"    def {row.name}("
    yield "        self,"
    yield "        *,"
    for option in options:
        yield f"        {option.name}: {_type(option)} = {_default(option)},"
    for argument in PART:
        yield f"        {argument}"
    yield "    ) -> Table:"
    yield from _docstring(row, options)
    yield "        selection = Selection(begin, end, step, lanes, where)"
    entries = [f'"{option.name}": {option.name}' for option in options]
    call = f'        return self._table("{row.name}", selection, {{{", ".join(entries)}}}, table)'
    if len(call) <= WIDTH:
        yield call
        return
    short = f"        options = {{{', '.join(entries)}}}"
    if len(short) <= WIDTH:
        yield short
    else:
        yield "        options = {"
        yield from (f"            {entry}," for entry in entries)
        yield "        }"
    yield f'        return self._table("{row.name}", selection, options, table)'


WIDTH = 110
OF_COMMANDS = ("--", "JSON", "tracelane", "Exit code")
"""Paragraphs of help with these speak of the command line only."""


def _docstring(row: Analysis, options: list[Option]) -> Iterator[str]:
    first, *others = row.help.split("\n\n")
    others = [part for part in others if not any(word in part for word in OF_COMMANDS)]
    lines = textwrap.wrap(first, WIDTH - 8 - 3)
    for part in others:
        lines += ["", *textwrap.wrap(part, WIDTH - 8)]
    lines.append("")
    for option in options:
        lines += textwrap.wrap(
            f"{option.name}: {_in_python(option.help, row)}", WIDTH - 8, subsequent_indent="    "
        )
    lines += PART_HELP
    yield f'        """{lines[0]}'
    for line in lines[1:]:
        yield f"        {line}" if line else ""
    yield '        """'


def _in_python(text: str, row: Analysis) -> str:
    """Return a help text without the dashes of options: here they are arguments."""
    for option in row.options:
        text = text.replace(f"--{option.name.replace('_', '-')}", option.name)
    return text.replace("\\", "\\\\")


def _type(option: Option) -> str:
    if isinstance(option.default, bool):
        return "bool"
    if isinstance(option.default, tuple):
        return "Sequence[str]"
    if option.choices:
        choices = [*([""] if option.default == "" else []), *option.choices]
        return f"Literal[{', '.join(_quoted(choice) for choice in choices)}]"
    if option.is_side:
        return "AnalysisMethods | None"
    if option.default is None:
        return "int | None"
    return type(option.default).__name__


def _default(option: Option) -> str:
    return _quoted(option.default) if isinstance(option.default, str) else repr(option.default)


def _quoted(text: str) -> str:
    return f'"{text}"'
