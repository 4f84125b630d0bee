"""`tracelane ranks`: the ranks of a run side by side, and who keeps the others waiting."""

from __future__ import annotations

import click

from .device_tables import Request, request_options
from .options import JSON


@click.command()
@JSON
@request_options
def ranks(request: Request, as_json: bool) -> None:
    """Say of each rank its step time, compute, communication, idle, its waiting, and how often it came last.

    Then the slowest rank of each step, and the collectives with how far apart their ranks began; --sort and
    --limit are for the ranks. Clocks are aligned by the collectives. JSON has all of it, with the times of
    every rank in every collective.
    """
    from dataclasses import replace

    from tracelane.core.tables import rank_tables as tables
    from tracelane.core.tables.ranks import ranks as analysis

    if as_json:
        request = replace(request, form="json")
    scope = request.scope()
    found = analysis(scope)
    collectives = tables.collectives_table(found, scope.trace.span_at(scope.clocks)[0])
    shown = [tables.ranks_table(found), tables.rank_steps_table(found), collectives]
    request.show(shown, lambda: tables.ranks_object(found))
