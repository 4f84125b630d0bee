"""`tracelane launches`: from the launch call to the kernel."""

from __future__ import annotations

import click

from .device_tables import Request, request_options

OUTLIERS = 20
"""Longest delays listed where --limit does not say."""


@click.command()
@request_options
def launches(request: Request) -> None:
    """Say per launch call how long it took and how long the work then waited, and how long the queues were.

    Work is joined to its launch by flow, else by correlation; it counts where it starts, with its whole time.
    """
    from tracelane.core.tables import launches as analysis

    found = analysis.launches(request.scope())
    limit = request.limit or OUTLIERS
    tables = [
        analysis.launch_table(found),
        analysis.queue_table(found),
        analysis.outlier_table(found, limit),
    ]
    request.show(tables, lambda: analysis.launches_object(found, limit), limited=True)
