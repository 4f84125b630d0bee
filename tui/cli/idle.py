"""`tracelane idle`: why the streams stood still."""

from __future__ import annotations

import click

from .device_tables import Request, request_options

GAPS = 20
"""Longest gaps listed where --limit does not say."""


@click.command()
@request_options
@click.option(
    "--kernel-wait",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="µs",
    help="A gap shorter than this that the host did not cause is a kernel wait.",
)
@click.option("--recurring", is_flag=True, help="Group the gaps by the names before and after them.")
def idle(request: Request, kernel_wait: float, recurring: bool) -> None:
    """Say per stream how long it stood still and why; list the longest gaps and the launch that ended each.

    A gap is a host wait if the launch that ended it began after the work before it was done.
    """
    from tracelane.core.tables import idle as analysis
    from tracelane.core.tables.gap_groups import recurring_gaps
    from tracelane.core.tables.step_spans import step_spans

    scope = request.scope()
    found = analysis.idle(scope, round(kernel_wait * 1000))
    limit = request.limit or GAPS
    if recurring:
        request.show([recurring_gaps(found, step_spans(scope.trace, scope.clocks, scope.steps or None))])
        return
    tables = [analysis.idle_table(found), analysis.gap_table(found, limit)]
    request.show(tables, lambda: analysis.idle_object(found, limit), limited=True)
