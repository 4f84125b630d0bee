"""List slices in order of time: all of them, or those that match a filter and overlap a range.

--sort duration or --sort self lists the longest first.

A filter's terms must all hold: words, 'quoted text' and /regex/ for names; name=, cat:, lane:; dur>1ms
and self>1ms; arg.KEY>1, =, : (contains); -term for its opposite. Times are ns as in the file.
"""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.base.errors import UsageError
from tracelane.core.base.units import format_count
from tracelane.core.export.slices import SliceRows, csv_pieces, slices_json, slices_table
from tracelane.core.query.filter import parse
from tracelane.core.tables.schema import Column, columns_from
from tracelane.core.tables.table import Tables
from tracelane.tui.text.table import table_text

from .opened import TraceOptions
from .options import LISTED_ROWS
from .printing import Printout, print_output, table_style

DRAWN = (
    *columns_from("name: text (is_name), duration_ns, self_ns"),
    Column("start_ns", "start (ns)", "id"),
    *columns_from("lane: text, category: text"),
)
"""The columns of a printed table; starts are those of the file."""


def run_slices(options: TraceOptions) -> None:
    sort, limit = options.sort, options.limit
    if options.where is not None:
        parse(options.where)  # a wrong one is said before reading
    rows = SliceRows(options.scope())
    if sort:
        try:
            rows.sort(sort.removeprefix("-"), not sort.startswith("-"))
        except KeyError as error:
            raise UsageError(f"--sort: {error.args[0]}") from None
    tables = Tables(rows.scope.text, 0, {"slices": lambda: slices_table(rows, limit or LISTED_ROWS)})
    print_output(
        Printout("slices", tables),
        options.form,
        json=lambda _: slices_json(rows, limit),
        csv=lambda _: csv_pieces(rows, limit),
        text=lambda _: [_text(rows, limit or LISTED_ROWS)],
    )


def _text(rows: SliceRows, limit: int) -> str:
    """Return the first slices as a table, and how many there are."""
    table = slices_table(rows, limit)
    text = table_text(replace(table, columns=DRAWN, notes=()), table_style().plain)
    total, left = len(rows), len(rows) - limit
    count = f"{format_count(total)} {'slice' if total == 1 else 'slices'}"
    return text + f"\n{count}" + (f", {format_count(left)} of them not listed (--limit)" if left > 0 else "")
