"""`tracelane slices`: the raw slices that a filter matches, one per line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tracelane.core.base.output import print_pieces

from .opened import TraceOptions, opened_options
from .options import FORMAT, JSON, OUT
from .scoped import table_width

if TYPE_CHECKING:
    from tracelane.core.export.slices import SliceRows

ROWS = 100
"""Rows of a printed table where --limit does not say."""
LANE_CELLS = 20
CATEGORY_CELLS = 16


@click.command()
@opened_options
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=None,
    help=f"Rows; for people {ROWS}, else all.",
)
@FORMAT
@JSON
@OUT
def slices(opened: TraceOptions, limit: int | None, form: str, as_json: bool) -> None:
    """List slices in order of time: all, or those that a filter matches and a stretch of time touches.

    A filter's terms must all hold: words, 'quoted text' and /regex/ for names; name=, cat:, lane:; dur>1ms
    and self>1ms; arg.KEY>1, =, : (contains); -term for its opposite. Times are ns as in the file.
    """
    from tracelane.core.export.slices import SliceRows, csv_pieces, slices_json, slices_table
    from tracelane.core.query.filter import Filter, parse
    from tracelane.core.query.hits import matches

    # A wrong one is told before reading.
    wanted = Filter("", ()) if opened.where is None else parse(opened.where)
    scope = replace(opened, where=None).scope()
    found = SliceRows(scope.trace, matches(scope.trace, wanted, scope.clocks), scope.range, scope.lanes)
    if as_json or form == "json":
        words = scope.text if opened.where is None else f"{scope.text}, filtered"
        print_pieces(slices_json(found, words, limit))
    elif form == "csv":
        print_pieces(csv_pieces(found, limit))
    elif form in ("md", "html"):
        from tracelane.core.export.formats import as_markdown, html_pieces

        table = slices_table(found, scope.text, limit or ROWS)
        print_pieces([as_markdown(table)] if form == "md" else html_pieces("slices", [table]))
    else:
        print_pieces(line + "\n" for line in _table(found, limit or ROWS, table_width()))


def _table(found: SliceRows, limit: int, width: int) -> Iterator[str]:
    from rich.cells import cell_len, set_cell_size

    from tracelane.core.base.safe_text import safe
    from tracelane.core.base.units import format_count, format_ns

    def line(start: Any, ns: str, own: str, category: str, lane: str, name: str) -> str:
        head = f"{start:>22}  {ns:>11}  {own:>11}  "
        cells = set_cell_size(category, CATEGORY_CELLS), set_cell_size(lane, LANE_CELLS)
        text = head + "  ".join((*cells, name))
        return set_cell_size(text, width).rstrip() if cell_len(text) > width else text

    yield line("start (ns)", "duration", "self", "category", "lane", "name")
    for row in found.rows(limit):
        name, category, _, _, start, ns, own, _, lane = row[:9]
        yield line(start, format_ns(ns), format_ns(own), safe(category), safe(lane), safe(name))
    total = format_count(len(found))
    left = len(found) - limit
    noun = "slice" if len(found) == 1 else "slices"
    yield f"{total} {noun}" + (f", {format_count(left)} of them not shown (--limit)" if left > 0 else "")
