"""`tracelane summary`: a trace in a few kilobytes, as a baseline for comparisons."""

from __future__ import annotations

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe

from .opened import Opened, opened_options


@click.command()
@opened_options
@click.option("--rows", type=click.IntRange(1), default=30, show_default=True, help="Rows kept of a table.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON that diff takes as a side.")
def summary(opened: Opened, rows: int, as_json: bool) -> None:
    """Sum a trace up: its metrics, and its kernels, ops, categories and steps by names that last.

    `tracelane summary TRACE --json > baseline.json` keeps what `tracelane diff baseline.json TRACE` compares.
    """
    from tracelane.core.export.formats import shown
    from tracelane.core.export.summary_file import as_json as json_text
    from tracelane.core.tables.summary import summary as summed
    from tracelane.core.tables.table import Column
    from tracelane.tui.text.table import table_text

    from .scoped import terminal_width

    found = summed(opened.scope(), opened.title)
    if as_json:
        print_text(json_text(found, rows), end="")
        return
    print_text(safe(f"{found.title}: {found.scope}"))
    width = max(len(name) for name in found.metrics)
    for name, metric in found.metrics.items():
        print_text(f"{name:{width}}  {shown(Column(name, name, metric.unit), metric.value)}")
    for table in found.tables.values():
        print_text("")
        print_text(table_text(table, terminal_width(), limit=rows))
