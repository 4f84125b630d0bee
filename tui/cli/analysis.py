"""The commands of the registry's analyses: options, opening, the order of rows, printing in five forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_paged, print_pieces, print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.tables.analysis import Analysis, Option, loaded
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.tables.selection import Selection

from .forms import column_key
from .opened import TraceOptions, with_options
from .options import JSON, OUT, SORT, format_option
from .scoped import table_style, terminal_width
from .values import BoundedNumber, Duration, WholeNumber

if TYPE_CHECKING:
    from tracelane.core.base.arrays import I64
    from tracelane.core.tables.table import Table, Tables
    from tracelane.tui.text.table import TableStyle

TIME_UNITS: Mapping[str, int] = {"µs": 1000, "ms": 1_000_000, "s": 10**9}
"""Units in which options count times, in ns."""


@dataclass(frozen=True)
class Request(TraceOptions):
    """What the options that all analyses share said."""

    sort: str | None
    limit: int | None
    form: str
    as_json: bool


@dataclass(frozen=True, eq=False)
class Printout:
    """Tables in the order and to the length that was asked for, and how text and tables are drawn."""

    tables: Tables
    order: I64 | None
    limit: int | None
    width: int
    style: TableStyle
    sort: str = ""


def named_command(name: str) -> click.Command:
    return analysis_command(BY_NAME[name])


def analysis_command(row: Analysis) -> click.Command:
    def command(request: Request, **options: Any) -> None:
        _check(row, request, options)
        if row.limits != "rows":
            options["limit"] = request.limit
        tables = request.store_tables(row.name, options)
        if tables is None:
            sides = [option.name for option in row.options if option.is_side and option.name in options]
            if sides:
                from .sides import read_sides

                chosen = Selection(step_name=request.step_name)
                named = [options[name] for name in sides]
                summaries = read_sides(named, request.index_options, request.choice, chosen, request)
                options |= zip(sides, summaries)
            scope = request.scope()
            tables = row.run(scope, **options)
        _print(row, tables, request)
        if row.exit_code:
            click.get_current_context().exit(loaded(row.exit_code)(tables))

    command.__doc__ = row.help
    command.__name__ = row.name
    limit = click.option(
        "--limit", type=WholeNumber(1), help=f"The number of rows; a printed table has {row.rows}."
    )
    form = format_option(*(name for name, _ in row.formats))
    wrapped = with_options(command, Request, "request", (OUT, JSON, form, limit, SORT))
    for option in reversed(row.options):
        wrapped = _option(option)(wrapped)
    return click.command(row.name, help=row.help)(wrapped)


def _option(option: Option) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator of an analysis's own option."""
    name = f"--{option.name.replace('_', '-')}"
    details: dict[str, Any] = {"help": option.help}
    if option.default is False:
        return click.option(name, option.name, is_flag=True, **details)
    if option.metavar:
        details["metavar"] = option.metavar
    if isinstance(option.default, tuple):
        return click.option(name, option.name, multiple=True, **details)
    if option.choices:
        details["type"] = click.Choice(option.choices)
    elif isinstance(option.default, int):
        details["type"] = WholeNumber(int(option.least or 0))
    elif isinstance(option.default, float):
        unit = TIME_UNITS.get(option.metavar)
        details["type"] = (
            BoundedNumber(option.least, 1e12) if unit is None else Duration(unit, option.least, 1e12)
        )
        if unit is not None:
            details["metavar"] = "TIME"
            details["help"] = f"{option.help}  [default: {option.default:g}{option.metavar}]"
            return click.option(name, option.name, default=option.default, **details)
    has_default = bool(option.default)
    return click.option(
        name, option.name, default=option.default or None, show_default=has_default, **details
    )


def _check(row: Analysis, request: Request, options: dict[str, Any]) -> None:
    """Refuse wrong values before a trace is read; options that were not given are left to the function."""
    if row.sort and request.sort:
        loaded(row.sort)(request.sort)
    for option in row.options:
        value = options[option.name]
        if value is None or value == ():
            del options[option.name]
        elif option.check:
            for each in value if isinstance(value, tuple) else (value,):
                loaded(option.check)(each)


def _print(row: Analysis, tables: Tables, request: Request) -> None:
    from tracelane.core.export import formats

    form = "json" if request.as_json else request.form
    key = _sort_key(row, tables.main, request.sort, form in ("text", "md", "html"))
    order = _order(tables.main, key)
    further = dict(row.formats)
    if form in further:
        print_pieces(loaded(further[form])(tables))
    elif form == "json":
        limit = None if row.limits == "lists" else request.limit
        print_text(formats.as_json(tables, row.name, order, limit), end="")
    elif form == "csv":
        print_text(formats.as_csv(tables.main, order, request.limit), end="")
        for note in tables.notes:
            print_text(safe(note), error=True)  # CSV has no place for it
    elif form == "html":
        print_pieces(formats.html_pieces(f"{row.name}: {tables.scope}", tables, order, request.limit))
    elif form == "md":
        write = MARKDOWN.get(row.name, _markdown)
        print_text(write(Printout(tables, order, request.limit, 0, table_style())), end="")
    else:
        style = table_style()
        printed = Printout(
            tables, order, request.limit or row.rows, terminal_width(), style, key.removeprefix("-")
        )
        own_text = TEXTS[row.name](replace(printed, style=style.plain)) if row.name in TEXTS else ""
        print_paged(own_text or _text(row, printed), style.is_coloured and not own_text)


def _sort_key(row: Analysis, table: Table, sort: str | None, for_people: bool) -> str:
    """Return the column to sort by, with "-" before it for smallest first.

    Without --sort that by which people read the table, for people; else "": the rows stay as they are.
    """
    if sort is None:
        return table.read_by if for_people else ""
    return str(loaded(row.sort)(sort.strip())) if row.sort else column_key(table, sort.strip())


def _order(table: Table, key: str) -> I64 | None:
    """Return the row numbers sorted by a column. Raises UsageError where it has no such column."""
    if not key:
        return None
    try:
        return table.order(key.removeprefix("-"), not key.startswith("-"))
    except KeyError as error:
        raise UsageError(f"--sort: {error.args[0]}") from None


def _text(row: Analysis, printed: Printout) -> str:
    from tracelane.tui.text.table import table_text

    first, *others = (table for table in printed.tables if table.is_drawn)
    own = [panel for panel in row.panels if panel.table == first.name] or row.panels
    empty = own[0].empty if own else "nothing in it"
    texts = [table_text(first, printed.style, printed.order, printed.limit, sort=printed.sort, empty=empty)]
    for table in others:
        if len(table):
            texts.append(table_text(table, printed.style, limit=row.others))
    return "\n\n".join(texts)


def _markdown(printed: Printout) -> str:
    from tracelane.core.export.formats import as_markdown

    first, *others = (table for table in printed.tables if table.is_drawn)
    texts = [as_markdown(first, printed.order, printed.limit)]
    texts += [as_markdown(table) for table in others if len(table)]
    return "\n".join(texts)


def _ops_text(printed: Printout) -> str:
    from tracelane.tui.text.ops_table import ops_text

    table = printed.tables.main
    if table.within:
        return ""
    heading, notes = safe(f"{table.title}: {table.scope}"), [safe(note) for note in table.notes]
    text = ops_text(table, printed.order, printed.limit).rstrip("\n")
    if max(map(len, text.splitlines())) > printed.style.width:
        return ""  # narrower than PyTorch's table
    return "\n".join([heading, text, *notes])


def _steps_text(printed: Printout) -> str:
    from tracelane.core.base.units import format_ns
    from tracelane.tui.text.table import table_text

    table = printed.tables.main
    text = table_text(table, printed.style, printed.order, printed.limit, sort=printed.sort)
    if "steady_ns" in table.totals:
        first, steady = (format_ns(table.totals[key]) for key in ("first_ns", "steady_ns"))
        text += f"\nfirst step {first}, those after it {steady} (median)"
    others = [table_text(other, printed.style) for other in printed.tables if other is not table]
    return "\n\n".join([text, *others])


def _findings_text(printed: Printout) -> str:
    from tracelane.core.tables.findings.forms import findings_from
    from tracelane.tui.text.findings import findings_text

    findings = findings_from(printed.tables, printed.order, printed.limit)
    return findings_text(findings, printed.width, printed.tables.origin_ns)


def _findings_markdown(printed: Printout) -> str:
    from tracelane.core.tables.findings.forms import findings_from, findings_markdown

    return findings_markdown(findings_from(printed.tables, printed.order, printed.limit))


def _doctor_text(printed: Printout) -> str:
    from tracelane.tui.text.doctor import doctor_text

    return doctor_text(printed.tables, printed.width, printed.order, printed.limit)


def _summary_text(printed: Printout) -> str:
    from tracelane.core.export.formats import text_in_unit
    from tracelane.core.tables.schema import Column
    from tracelane.tui.text.table import table_text

    metrics, *others = (table for table in printed.tables if table.is_drawn)
    width = max(map(len, metrics.texts("name")), default=0)
    lines = [safe(f"{metrics.title}: {metrics.scope}")]
    for row in metrics.rows(printed.order, printed.limit):
        value = text_in_unit(Column("value", "value", row["unit"]), row["value"])
        lines.append(f"{row['name']:{width}}  {value}")
    return "\n\n".join(["\n".join(lines), *(table_text(table, printed.style) for table in others)])


def _tree_text(printed: Printout) -> str:
    """Return the largest nodes of a tree, names moved right by their depth; nothing where it is sorted."""
    from tracelane.core.tables.tree import indented, largest_rows
    from tracelane.tui.text.table import table_text

    if printed.order is not None:
        return ""
    table = largest_rows(printed.tables.main, printed.limit or len(printed.tables.main))
    return table_text(indented(table), printed.style)


TEXTS: Mapping[str, Callable[[Printout], str]] = {
    "ops": _ops_text,
    "steps": _steps_text,
    "findings": _findings_text,
    "doctor": _doctor_text,
    "summary": _summary_text,
    "tree": _tree_text,
}
"""Analyses whose text is no plain table; "" where it is one after all."""
MARKDOWN: Mapping[str, Callable[[Printout], str]] = {"findings": _findings_markdown}
