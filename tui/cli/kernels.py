"""`tracelane kernels`: what ran on the devices, by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError

from .device_tables import Request, request_options

if TYPE_CHECKING:
    from tracelane.core.tables.instances import Order
    from tracelane.core.tables.kernels import GroupBy

RUNS = 1000
"""Runs listed where --limit does not say."""


@click.command()
@request_options
@click.option(
    "--by",
    type=click.Choice(["name", "short", "stream", "type", "step"]),
    default="name",
    show_default=True,
    help="Rows; short: names without paths, templates and generated suffixes; step: where they start.",
)
@click.option("--group-by", metavar="arg:KEY", help="Rows: the values of an argument.")
@click.option(
    "--column",
    "columns",
    metavar="arg:KEY",
    multiple=True,
    help="Add the sum and mean of an argument; of --runs its value.",
)
@click.option(
    "--runs", metavar="REGEX", help="List the runs of the kernels whose name matches, and their histogram."
)
@click.option(
    "--order",
    type=click.Choice(["slowest", "time"]),
    default="slowest",
    show_default=True,
    help="Which runs first.",
)
def kernels(
    request: Request,
    by: GroupBy,
    group_by: str | None,
    columns: tuple[str, ...],
    runs: str | None,
    order: Order,
) -> None:
    """List the device work: how often, how long in all, on average, at the median, at worst."""
    from tracelane.core.tables import kernels as analysis
    from tracelane.core.tables.instances import instances
    from tracelane.core.tables.kernel_arguments import argument_key

    keys = [argument_key(column) for column in columns]
    if group_by is not None:
        argument_key(group_by)  # a wrong one is told before the trace is read
    if runs is None:
        request.show([analysis.kernels(request.scope(), group_by or by, arguments=keys)])
        return
    try:
        re.compile(runs)
    except re.error as error:
        raise UsageError(f"--runs is no regular expression: {error}") from None
    request.show(instances(request.scope(), runs, order, request.limit or RUNS, keys))
