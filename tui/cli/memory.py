"""`tracelane memory`: what the allocators gave out, and what was copied."""

from __future__ import annotations

from typing import Literal, TypeAlias

import click

from tracelane.core.base.output import print_text

from .device_tables import Request, request_options

First: TypeAlias = Literal["allocators", "peak", "kept", "copies", "curve"]


@click.command()
@request_options
@click.option(
    "--first",
    type=click.Choice(["allocators", "peak", "kept", "copies", "curve"]),
    default="allocators",
    show_default=True,
    help="The table that comes first, which alone is in csv; curve: every record.",
)
def memory(request: Request, first: First) -> None:
    """Say how much memory was allocated, at the peak and in the end, by which ops, and what was copied.

    Allocations are known where the trace was taken with profile_memory=True.
    """
    from tracelane.core.tables import memory as analysis

    found = analysis.memory(request.scope())
    if request.where and request.form == "csv" and first != "copies":
        print_text(analysis.FILTERED, error=True)  # where notes have no place
    limit = request.limit or analysis.LARGEST
    tables = {
        "allocators": analysis.allocator_table(found),
        "peak": analysis.peak_table(found, limit),
        "kept": analysis.kept_table(found, limit),
        "copies": found.copies,
    }
    if first == "curve":
        request.show([analysis.curve_table(found)])
        return
    order = [tables[first], *(table for name, table in tables.items() if name != first)]
    request.show(order, lambda: analysis.memory_object(found, limit), limited=True)
