"""`tracelane sections`: the section calls of a SambaTune report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .device_tables import Request, request_options

if TYPE_CHECKING:
    from tracelane.core.tables.sections import By


@click.command()
@request_options
@click.option(
    "--by",
    type=click.Choice(["both", "hyperfunction", "hypersection"]),
    default="both",
    show_default=True,
    help="Rows.",
)
def sections(request: Request, by: By) -> None:
    """List section calls of a SambaTune report by hyperfunction and hypersection, arguments' means beside.

    A hyperfunction is a row of the report, a hypersection what an argument of that name tells, else the
    colour. Estimated and measured latency come first, and what one is of the other.
    """
    from tracelane.core.tables import sections as analysis

    request.show([analysis.sections(request.scope(), by)])
