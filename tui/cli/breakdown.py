"""`tracelane breakdown`: how the devices spend their time."""

from __future__ import annotations

import click

from .device_tables import Request, request_options


@click.command()
@request_options
def breakdown(request: Request) -> None:
    """Say how each device spends its time: busy and idle, compute, communication, copies, and what overlaps.

    Kernel time runs from the first start to the last end; what runs at once counts once. JSON has the time of
    each combination of types and each stream as well.
    """
    from tracelane.core.tables import breakdown as analysis

    found = analysis.breakdown(request.scope())
    tables = [analysis.breakdown_table(found), analysis.type_table(found), analysis.stream_table(found)]
    request.show(tables, lambda: analysis.breakdown_object(found))
