"""`tracelane compile`: what torch.compile did."""

from __future__ import annotations

from typing import Literal, TypeAlias

import click

from .device_tables import Request, request_options

OTHERS = 12
"""Rows of the tables after the first one."""

First: TypeAlias = Literal["signs", "regions", "graphs", "steps", "code", "phases", "compilations"]


@click.command()
@request_options
@click.option(
    "--first",
    type=click.Choice(["signs", "regions", "graphs", "steps", "code", "phases", "compilations"]),
    default="signs",
    show_default=True,
    help="The table that comes first, which alone is in csv.",
)
def compile(request: Request, first: First) -> None:
    """Say whether torch.compile is applied and how that is told, what ran compiled, and what compiling took.

    Regions stand as a tree: one in another is a graph break or a region in which compilation is disabled.
    """
    from tracelane.core.tables import compile as analysis

    found = analysis.compiled(request.scope())
    tables = found.tables
    others = (table.head(OTHERS) for name, table in tables.items() if name != first)
    order = [tables[first], *others]
    request.show(order, lambda: analysis.compile_object(found))
