"""What a picture would say, as plain lines in reading order: for logs, programs and screen readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_name
from tracelane.core.base.units import about_ns, count_of, format_share
from tracelane.core.query.views import rank_titles
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.findings.finding import Finding, Findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.ops import ops
from tracelane.core.trace import Trace

from ..device_facts import DeviceFacts
from ..draw.verdict import StateShares, share_texts
from ..steps import step_marks

MAX_ROWS = 5
"""So many findings, kernels or operators are named."""


def overview_text(scope: Scope, facts: DeviceFacts, findings: Findings) -> str:
    """Return the verdict and what takes most time, a fact on each line; nothing depends on a terminal."""
    lines = [_title(scope.trace), *_verdict(facts.spent, findings), *_ranks(scope.trace, facts)]
    top = _device_work(scope) or _host_work(scope)
    return "\n".join(safe(line) for line in [*lines, *top])


def _title(trace: Trace) -> str:
    start, end = trace.opening_span
    steps = len(step_marks(trace, trace.clocks))
    length = f"{about_ns(end - start)} in {count_of(steps, 'step')}" if steps else about_ns(end - start)
    return f"{count_of(len(trace.files), 'file')}, {length}"


def _verdict(spent: StateShares | None, findings: Findings) -> Iterator[str]:
    if spent is not None:
        yield f"{spent.devices}, of {about_ns(spent.of_ns)}: {', '.join(share_texts(spent))}"
    headlines = findings.of_kind("headline")
    for number, finding in enumerate((*findings.losses, *headlines)[:MAX_ROWS], 1):
        yield f"{number}. {finding.title}: {finding.text}{_cost(finding)}"
    if not findings.losses and not headlines:
        yield "Nothing stands out"


def _cost(finding: Finding) -> str:
    if not finding.claimed_ns:
        return ""
    return f" ({about_ns(finding.claimed_ns)}, {format_share(finding.share)} of the time)"


def _ranks(trace: Trace, facts: DeviceFacts) -> Iterator[str]:
    titles = rank_titles(trace.members)
    for source, text in sorted(facts.notes.texts.items()):
        yield f"{titles[source].capitalize()}: {text}"


def _device_work(scope: Scope) -> Sequence[str]:
    table = kernels(scope)
    rows = list(table.rows(table.order("total_ns"), MAX_ROWS))
    names = [
        f"{short_name(row['name'])}: {about_ns(row['total_ns'])}, {format_share(row['share'])}"
        for row in rows
    ]
    return ["Device work, most time first:", *names] if names else []


def _host_work(scope: Scope) -> Sequence[str]:
    table = ops(scope)
    rows = [row for row in table.rows(table.order("self_cpu_ns"), MAX_ROWS) if row["self_cpu_ns"]]
    names = [
        f"{short_name(row['name'])}: {about_ns(row['self_cpu_ns'])} in {count_of(row['calls'], 'call')}"
        for row in rows
    ]
    return ["Operators, most time of their own first:", *names] if names else []
