"""The commands of the registry's analyses: options, opening, the order of rows, printing in every form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.export.listing import Listing, Writer
from tracelane.core.tables.analysis import Analysis, Option, loaded
from tracelane.core.tables.frame.schema import Column
from tracelane.tui.text.progress import ProgressBar

from .commands import command_of, parameters
from .options import (
    FORM,
    INDEX,
    PART,
    TIMES,
    WHICH,
    BoundedNumber,
    Duration,
    WholeNumber,
    form_option,
    limit_option,
)
from .printing import Printout, as_text, column_key, order_by, print_output, table_style, terminal_width

if TYPE_CHECKING:
    from tracelane.core.tables.frame.table import Table, Tables

    from .trace_options import TraceOptions


def analysis_command(row: Analysis) -> click.Command:
    def command(options: TraceOptions, **given: Any) -> None:
        _check(row, options, given)
        if row.limits != "rows":
            given["limit"] = options.limit
        tables = options.store_tables(row.name, given)
        if tables is None:
            sides = [option.name for option in row.options if option.is_side and option.name in given]
            if sides:
                from .comparisons import read_sides

                like = options.of_sides()
                given |= zip(sides, read_sides([given[name] for name in sides], like, options))
            scope = options.scope()
            if row.beforehand and (words := loaded(row.beforehand)(scope, **given)):
                print_text(words, error=True)
            with ProgressBar(options.bar_title) as progress:
                tables = row.run(replace(scope, progress=progress), **given)
        _print(row, tables, options)
        if row.exit_code:
            click.get_current_context().exit(loaded(row.exit_code)(tables))

    more = (limit_option(row.rows), form_option(*(name for name, _ in row.formats)))
    names = ("traces", *PART, "sort", "limit", *FORM, "device_offsets", *WHICH, *INDEX)
    return command_of(row.command, parameters(*names, *more, *map(_option, row.options)), command)


def _option(one: Option) -> click.Option:
    """Return the command's option that an option of an analysis is."""
    text, details = one.help, dict[str, Any](metavar=one.metavar or None)
    if one.default is False:
        details = {"is_flag": True}
    elif isinstance(one.default, tuple):
        details["multiple"] = True
    else:
        details |= {"default": one.default or None, "show_default": bool(one.default)}
        if one.choices:
            details["type"] = click.Choice(one.choices)
        elif isinstance(one.default, int) or (one.least is not None and one.default is None):
            details["type"] = WholeNumber(int(one.least or 0))
        elif isinstance(one.default, float) and (unit := TIMES.get(one.metavar)) is not None:
            details |= {"type": Duration(unit, one.least, 1e12), "metavar": "TIME", "show_default": False}
            text = f"{text}  [default: {one.default:g}{one.metavar}]"
        elif isinstance(one.default, float):
            details["type"] = BoundedNumber(one.least, 1e12)
    return click.Option([f"--{one.name.replace('_', '-')}", one.name], help=text, **details)


def _check(row: Analysis, options: TraceOptions, given: dict[str, Any]) -> None:
    """Refuse wrong values before a trace is read; options that were not given are left to the function."""
    if row.sort and options.sort:
        loaded(row.sort)(options.sort)
    for one in row.options:
        value = given[one.name]
        if value is None or value == ():
            del given[one.name]
        elif one.check:
            for each in value if isinstance(value, tuple) else (value,):
                loaded(one.check)(each)


def _print(row: Analysis, tables: Tables, options: TraceOptions) -> None:
    form = options.form
    key = _sort_key(row, tables.main, options.sort, form in ("text", "md", "html"))
    order = order_by(tables.main, key)
    limit = None if row.limits == "lists" and form == "json" else options.limit
    own: dict[str, Writer] = {name: _of_tables(tables, path) for name, path in row.formats}
    own |= {"md": markdown} if (markdown := MARKDOWN.get(row.name)) else {}
    first = next(table for table in tables if table.is_drawn)
    panels = [panel for panel in row.panels if panel.table == first.name] or row.panels
    empty = panels[0].empty if panels else "nothing in it"
    printout = Printout(
        row.command,
        tables,
        order,
        limit,
        rows=row.rows,
        other_rows=row.others,
        sort=key.removeprefix("-"),
        empty=empty,
        lead=LEADS[row.name](tables) if form == "text" and row.name in LEADS else "",
    )
    if form == "text" and row.name in TEXTS and (text := TEXTS[row.name](printout)):
        own["text"] = lambda _: [text]
    print_output(printout, form, **own)


def _of_tables(tables: Tables, path: str) -> Writer:
    return lambda _: loaded(path)(tables)


def _sort_key(row: Analysis, table: Table, sort: str | None, for_people: bool) -> str:
    """Return the column to sort by, with "-" before it for smallest first.

    Without --sort that by which people read the table, for people; else "": the rows stay as they are.
    """
    if sort is None:
        return table.read_by if for_people else ""
    return str(loaded(row.sort)(sort.strip())) if row.sort else column_key(table, sort.strip())


def _ops_text(printed: Printout) -> str:
    from tracelane.tui.text.ops_table import ops_text

    table = printed.tables.main
    if table.within:
        return ""
    heading, notes = safe(f"{table.title}: {table.scope}"), [safe(note) for note in table.notes]
    text = ops_text(table, printed.order, printed.most).rstrip("\n")
    if table_style().cuts and max(map(len, text.splitlines())) > table_style().width:
        return ""  # narrower than PyTorch's table
    return "\n".join([heading, text, *notes])


def _steps_text(printed: Printout) -> str:
    from tracelane.core.base.units import format_ns

    table = printed.tables.main
    text = as_text(table, printed.order, printed.most, printed.sort)
    if "steady_ns" in table.totals:
        first, steady = (format_ns(table.totals[key]) for key in ("first_ns", "steady_ns"))
        text += f"\nfirst step {first}, those after it {steady} (median)"
    others = [as_text(other) for other in printed.tables if other is not table]
    return "\n\n".join([text, *others])


def _findings_text(printed: Printout) -> str:
    from tracelane.core.tables.findings.forms import findings_from
    from tracelane.tui.text.findings import findings_text

    findings = findings_from(printed.tables, printed.order, printed.most)
    return findings_text(findings, terminal_width(), printed.tables.origin_ns)


def _findings_markdown(listing: Listing) -> list[str]:
    from tracelane.core.tables.findings.forms import findings_from, findings_markdown

    return [findings_markdown(findings_from(listing.tables, listing.order, listing.limit))]


def _doctor_text(printed: Printout) -> str:
    from tracelane.tui.text.findings import doctor_text, recount_text

    if "recount" in printed.tables.names:
        return recount_text(printed.tables, terminal_width())
    return doctor_text(printed.tables, terminal_width(), printed.order, printed.most)


def _summary_text(printed: Printout) -> str:
    from tracelane.core.export.formats import text_in_unit

    metrics, *others = (table for table in printed.tables if table.is_drawn)
    width = max(map(len, metrics.texts("name")), default=0)
    lines = [safe(f"{metrics.title}: {metrics.scope}")]
    for row in metrics.rows(printed.order, printed.most):
        value = text_in_unit(Column("value", "value", row["unit"]), row["value"])
        lines.append(f"{row['name']:{width}}  {value}")
    return "\n\n".join(["\n".join(lines), *(as_text(table) for table in others)])


def _tree_text(printed: Printout) -> str:
    """Return the largest nodes of a tree, names moved right by their depth; nothing where it is sorted."""
    from tracelane.core.tables.host.tree import indented, largest_rows

    if printed.order is not None:
        return ""
    table = largest_rows(printed.tables.main, printed.most or len(printed.tables.main))
    return as_text(indented(table))


def _idle_lead(tables: Tables) -> str:
    """Say for how long no stream of the devices did anything, of those for which it was longest."""
    from tracelane.core.base.units import format_ns

    if "devices" not in tables.names:
        return ""
    devices = sorted(tables["devices"].rows(), key=lambda row: -row["idle_ns"])
    lines = []
    for row in devices[:MAX_LEADS]:
        causes = ((cause, row[f"{cause}_ns"]) for cause in ("host_wait", "kernel_wait", "other"))
        why = ", ".join(f"{cause.replace('_', ' ')} {format_ns(ns)}" for cause, ns in causes if ns)
        rank = f" of rank {row['rank']}" if row["rank"] != "" and row["rank"] is not None else ""
        lines.append(
            f"No stream of {safe(row['device'])}{rank} does anything for {format_ns(row['idle_ns'])}, "
            f"{row['idle_share'] or 0:.1%} of {format_ns(row['of_ns'])}{f': {why}' if why else ''}"
        )
    left = len(devices) - MAX_LEADS
    return "\n".join([*lines, *([f"and {left:,} more devices, idle for less"] if left > 0 else [])])


def _ranks_lead(tables: Tables) -> str:
    """Say which rank the others wait for longest, and whether that costs them time, as findings judge it."""
    from tracelane.core.base.units import format_ns

    if "ranks" not in tables.names:
        return ""
    ranks, straggler = list(tables["ranks"].rows()), tables["ranks"].totals.get("straggler")
    named = [row for row in ranks if row["rank"] == straggler]
    worst = max(named or ranks, key=lambda row: row["kept_waiting_ns"] or 0, default=None)
    if worst is None or not worst["kept_waiting_ns"]:
        return ""
    others, waited = len(ranks) - 1, format_ns(worst["kept_waiting_ns"], 1)
    who = f"the other {others:,} ranks wait {waited} for it in total"
    if others == 1:
        who = f"the other rank waits {waited} for it"
    cost = "" if named else ", which costs them little of their time"
    last = f"last in {worst['last']:,} of {worst['collectives']:,} collectives"
    return f"Rank {worst['rank']} is {last}: {who}{cost}"


MAX_LEADS = 4
"""The most devices of which idle says in words what they did."""
LEADS: Mapping[str, Callable[[Tables], str]] = {"idle": _idle_lead, "ranks": _ranks_lead}
"""What is said in words before the tables of an analysis; "" where there is nothing to say."""
TEXTS: Mapping[str, Callable[[Printout], str]] = {
    "ops": _ops_text,
    "steps": _steps_text,
    "findings": _findings_text,
    "doctor": _doctor_text,
    "summary": _summary_text,
    "tree": _tree_text,
}
"""Analyses whose text is no plain table; "" where it is one after all."""
MARKDOWN: Mapping[str, Writer] = {"findings": _findings_markdown}
