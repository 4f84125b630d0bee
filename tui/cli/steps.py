"""`tracelane steps`: the iterations of a trace, found rather than assumed, and where their time went."""

from __future__ import annotations

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text

from .opened import Opened, opened_options
from .scoped import FORMAT, terminal_width

ROWS = 100


@click.command()
@opened_options
@click.option("--groups", is_flag=True, help="Only the summary by group: prefill, decode, batch size.")
@click.option("--limit", type=click.IntRange(1), default=None, help="Rows; of a table 100, else all.")
@FORMAT
def steps(opened: Opened, groups: bool, limit: int | None, form: str) -> None:
    """Say which slices are the steps and why, and of each its wall, busy and idle time and their kinds.

    JSON has the groups beside the rows, with p50, p95, p99 and max.
    """
    from tracelane.core.base.units import format_ns
    from tracelane.core.export import formats
    from tracelane.core.tables.steps import steps as found_steps
    from tracelane.tui.text.table import table_text

    result = found_steps(opened.scope())
    table = result.groups if groups else result.steps
    if form == "json":
        whole = formats.as_object(table, limit=limit)
        if not groups:
            whole["groups"] = list(result.groups.rows())
        print_text(json_text(whole, indent=1))
        return
    if form != "table":
        write = formats.as_csv if form == "csv" else formats.as_markdown
        print_text(write(table, limit=limit), end="")
        return
    width = terminal_width()
    if not groups:
        print_text(table_text(table, width, limit=limit or ROWS))
        totals = result.steps.totals
        if "steady_ns" in totals:
            first, steady = (format_ns(float(totals[key] or 0)) for key in ("first_ns", "steady_ns"))
            print_text(f"first step {first}, those after it {steady} (median)")
        print_text("")
    print_text(table_text(result.groups, width))
