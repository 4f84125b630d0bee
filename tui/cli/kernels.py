"""`tracelane kernels`: what ran on the devices, by name."""

from __future__ import annotations

import click

from tracelane.core.analysis.kernels import GroupBy

from .device_tables import Request, request_options


@click.command()
@request_options
@click.option(
    "--by",
    type=click.Choice(["name", "short", "stream", "type"]),
    default="name",
    show_default=True,
    help="Rows; short: names without paths, templates and generated suffixes.",
)
def kernels(request: Request, by: GroupBy) -> None:
    """List the device work: how often, how long in all, on average, at the median, at worst."""
    from tracelane.core.analysis import kernels as analysis

    request.show([analysis.kernels(request.scope(), by)])
