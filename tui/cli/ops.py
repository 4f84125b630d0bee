"""`tracelane ops`: PyTorch's key_averages from a trace file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe

from .opened import Opened, opened_options
from .scoped import FORMAT, terminal_width

if TYPE_CHECKING:
    from tracelane.core.ingest.columns import I64
    from tracelane.core.tables.table import Table

ROWS = 100
"""As many as PyTorch prints."""


@click.command()
@opened_options
@click.option(
    "--group-by", metavar="shape|stack:N|module", help="Tell ops apart by input shapes, N frames, module."
)
@click.option("--by", type=click.Choice(["step"]), help="A table for each step, one below the other.")
@click.option(
    "--sort",
    metavar="KEY",
    help="One of PyTorch's sort keys, as self_cpu_time_total; without it table and md are sorted by self time"
    " (of the device where there is one), json and csv stand in PyTorch's own order.",
)
@click.option("--limit", type=click.IntRange(1), default=None, help="Rows; of a table 100, else all.")
@FORMAT
def ops(
    opened: Opened,
    group_by: str | None,
    by: str | None,
    sort: str | None,
    limit: int | None,
    form: str,
) -> None:
    """Print what PyTorch's key_averages().table() printed, from the trace file alone."""
    from functools import partial

    import numpy as np

    from tracelane.core.export import formats
    from tracelane.core.tables import ops as analysis
    from tracelane.core.tables.by_step import by_step
    from tracelane.core.tables.op_groups import NO_GROUPING, parse_grouping
    from tracelane.tui.text.ops_table import ops_text
    from tracelane.tui.text.table import table_text

    grouping = NO_GROUPING if group_by is None else parse_grouping(group_by)
    if sort is not None:
        analysis.sort_column(sort)  # a wrong key is told before the trace is read
    scope = opened.scope()
    if by == "step":
        table = by_step(scope, partial(analysis.ops, by=grouping), partial(order_of, sort=sort, form=form))
        order = np.arange(len(table))
    else:
        table = analysis.ops(scope, grouping)
        order = order_of(table, sort, form)
    if form == "table" and by == "step":
        print_text(table_text(table, terminal_width(), limit=limit or ROWS))
        return
    if form == "table":
        print_text(safe(f"{table.title}: {table.scope}"))
        print_text(ops_text(table, order, limit or ROWS, analysis.has_memory(scope.trace, table)), end="")
        for note in table.notes:
            print_text(safe(note))
        return
    write = {"json": formats.as_json, "csv": formats.as_csv, "md": formats.as_markdown}[form]
    print_text(write(table, order, limit), end="")


def order_of(table: Table, sort: str | None, form: str) -> I64:
    """Return the rows as --sort says, else by self time for people, in PyTorch's own order for programs."""
    import numpy as np

    from tracelane.core.tables.ops import order

    if sort is None and form not in ("table", "md"):
        return np.arange(len(table))
    on_device = np.any(table.data["self_device_ns"])
    return order(table, sort or ("self_device_time_total" if on_device else "self_cpu_time_total"))
