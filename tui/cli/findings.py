"""`tracelane findings`: what an expert would see in a trace, with evidence, most time first."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .options import DECODER, FORCE, INDEX_DIR, JSON, TRACES
from .scoped import FORMAT, FROM, STEP, TO, scope_of, terminal_width


@click.command()
@TRACES
@FROM
@TO
@STEP
@click.option("--limit", type=click.IntRange(1), help="Findings; else all.")
@FORMAT
@JSON
@DECODER
@INDEX_DIR
@FORCE
def findings(
    traces: tuple[str, ...],
    begin: str | None,
    end: str | None,
    step: str | None,
    limit: int | None,
    form: str,
    as_json: bool,
    decoder: str,
    index_dir: Path | None,
    force: bool,
) -> None:
    """Say what stands out: what it costs, where to see it, when its rule speaks, what usually helps.

    Ranked by the time that each finding claims; claims overlap, so they are never added up. What the trace
    does not show is not judged, and said so.
    """
    from tracelane.core.analysis.findings import forms
    from tracelane.core.analysis.findings.saved import saved_findings
    from tracelane.core.analysis.findings.table import findings_table
    from tracelane.core.export import formats
    from tracelane.core.trace import open_trace
    from tracelane.tui.text.findings import findings_text
    from tracelane.tui.text.progress import ProgressBar

    with ProgressBar(Path(traces[0]).name) as progress:
        trace = open_trace(traces, index_dir=index_dir, decoder=decoder, force=force, progress=progress)
    found = saved_findings(scope_of(trace, begin, end, step)).first(limit)
    origin = trace.span[0]
    if as_json or form == "json":
        click.echo(json.dumps(forms.findings_object(found, origin), indent=1, ensure_ascii=False))
    elif form == "csv":
        click.echo(formats.as_csv(findings_table(found)), nl=False)
    elif form == "md":
        click.echo(forms.findings_markdown(found), nl=False)
    else:
        click.echo(findings_text(found, terminal_width(), origin))
