"""`tracelane range`: what happens between two times, per name or per lane."""

from __future__ import annotations

import click

from .device_tables import Request, request_options


@click.command("range")
@request_options
@click.option("--by", type=click.Choice(["name", "lane"]), default="name", show_default=True, help="Rows.")
def ranges(request: Request, by: str) -> None:
    """Say what happens in a stretch of time, or in the whole trace: per name and category, or per lane.

    Slices that the edges cut count by their part inside; times are in ns in JSON and CSV.
    """
    from tracelane.core.tables.range_table import lane_table, range_table

    scope = request.scope()
    if by == "lane":
        request.show([lane_table(scope)], usual="busy_ns")
    else:
        request.show([range_table(scope)], usual="self_ns")
