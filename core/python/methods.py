"""A method per row of the registry, made when this is imported; analyses.pyi, which docs/update.py writes,
tells type checkers and editors the same.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, Literal

from ..tables.analysis import Analysis, Option
from ..tables.frame.table import Table
from ..tables.registry import ANALYSES
from ..tables.selection import Selection

LIMIT = Option("limit", "How many rows a list such as the longest gaps has.", None, metavar="int")
PART_HELP = (
    'where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".',
    'step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.',
    "lanes: count only lanes whose title matches this regular expression.",
    "begin, end: count from and up to here, ns of trace time, as in columns of times.",
    "table: the name of another table of the analysis; the first one is returned without it.",
)
"""What the arguments that all methods have mean."""
PART: dict[str, Any] = {
    "where": str | None,
    "step": int | str | None,
    "lanes": str | None,
    "begin": int | None,
    "end": int | None,
    "table": str,
}
WIDTH = 102
OF_COMMANDS = ("--", "JSON", "tracelane", "Exit code")
"""Paragraphs of help with these speak of the command line only."""


def analysis_method(row: Analysis) -> Callable[..., Table]:
    """Return the method of an analysis, with signature and help."""
    signature = Signature(
        [
            Parameter("self", Parameter.POSITIONAL_ONLY),
            *map(parameter_of, options_of(row)),
            *(_keyword(name, "" if name == "table" else None, form) for name, form in PART.items()),
        ],
        return_annotation="Table",
    )

    def method(self: Any, /, **arguments: Any) -> Table:
        signature.bind(self, **arguments)
        table = arguments.pop("table", "")
        part = {name: arguments.pop(name) for name in PART if name in arguments}
        result: Table = self._table(row.name, Selection(**part), arguments, table)
        return result

    method.__name__, method.__qualname__, method.__doc__ = row.name, f"OpenedTrace.{row.name}", _help(row)
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def options_of(row: Analysis) -> tuple[Option, ...]:
    """Return the options of an analysis, `limit` among them where it has lists."""
    return row.options if row.limits == "rows" else (*row.options, LIMIT)


def parameter_of(option: Option) -> Parameter:
    """Return an option as a keyword argument with its type and default."""
    form: Any = type(option.default)
    if isinstance(option.default, tuple):
        form = Sequence[str]
    elif option.choices:
        form = Literal[(*([""] if option.default == "" else []), *option.choices)]
    elif option.is_side:
        form = AnalysisMethods | None
    elif option.default is None:
        form = int | None
    return _keyword(option.name, option.default, form)


def _keyword(name: str, default: object, form: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=form)


def _help(row: Analysis) -> str:
    """Return the help of a command as that of a method: options are arguments, without dashes."""
    first, *others = row.help.split("\n\n")
    others = [part for part in others if not any(word in part for word in OF_COMMANDS)]
    lines = ["\n\n".join(textwrap.fill(part, WIDTH) for part in (first, *others)), ""]
    for option in options_of(row):
        text = option.help
        for each in row.options:
            text = text.replace(f"--{each.name.replace('_', '-')}", each.name)
        lines.append(textwrap.fill(f"{option.name}: {text}", WIDTH, subsequent_indent="    "))
    return "\n".join([*lines, *PART_HELP])


class AnalysisMethods:
    """A method per analysis. All take the part of the trace that counts, and return a table."""


for _row in ANALYSES:
    setattr(AnalysisMethods, _row.name, analysis_method(_row))
