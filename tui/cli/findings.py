"""`tracelane findings`: what an expert would see in a trace, with evidence, most time first."""

from __future__ import annotations

from dataclasses import replace

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text

from .device_tables import Request, request_options
from .options import JSON
from .scoped import terminal_width


@click.command()
@request_options
@JSON
def findings(request: Request, as_json: bool) -> None:
    """Say what stands out: what it costs, where to see it, when its rule speaks, what usually helps.

    Ranked by the time that each finding claims; claims overlap, so they are never added up. What the trace
    does not show is not judged, and said so.
    """
    from tracelane.core.export import formats
    from tracelane.core.tables.findings import forms
    from tracelane.core.tables.findings.saved import saved_findings
    from tracelane.core.tables.findings.table import findings_table
    from tracelane.tui.text.findings import findings_text

    if request.lanes or request.where:
        raise UsageError(
            "findings look at all slices of a range: --lanes and --where leave out what they need"
        )
    scope = request.scope()
    found = saved_findings(scope)
    order = request.order(findings_table(found))
    if order is not None:
        found = replace(found, findings=tuple(found.findings[at] for at in order.tolist()))
    found = found.first(request.limit)
    origin = scope.trace.span_at(scope.clocks)[0]
    if as_json or request.form == "json":
        print_text(json_text(forms.findings_object(found, origin), indent=1))
    elif request.form == "csv":
        print_text(formats.as_csv(findings_table(found)), end="")
    elif request.form == "md":
        print_text(forms.findings_markdown(found), end="")
    else:
        print_text(findings_text(found, terminal_width(), origin))
