"""What changed from one run to another, as blocks of rows: kernels, operators, steps; what is noise last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracelane.core.base.short_names import short_names
from tracelane.core.base.units import about_ns
from tracelane.core.tables.compare.compare import WITHIN
from tracelane.core.tables.compare.run_names import brief_name
from tracelane.core.tables.compare.run_pair import RunPair
from tracelane.core.tables.findings.finding import Findings
from tracelane.core.tables.overview.rows import Groups, OverviewRow

from .overview import FactBlock, FactRow, contents_block

TITLES = {"kernels": "Kernels", "ops": "Operators of the host"}


def change_blocks(
    pair: RunPair, groups: Groups, per_step: bool, findings: Findings | None
) -> Iterator[FactBlock]:
    """Yield the blocks of a panel, or of a print, the most telling first; what is spare comes last."""
    a, b = map(brief_name, pair.spoken_names)
    for name, title in TITLES.items():
        if name in groups:
            heading = f"{title}{', a step' if per_step else ''}: {b} against {a}"
            yield FactBlock(heading, tuple(_rows(name, groups[name])), at_left=name == "kernels")
    evidence = [one for finding in findings.findings for one in finding.evidence] if findings else []
    if evidence:
        rows = tuple(FactRow(one.label, target=one) for one in evidence)
        yield FactBlock("Steps, the most changed first", rows)
    yield contents_block(pair)


def _rows(group: str, rows: Sequence[OverviewRow]) -> Iterator[FactRow]:
    most = max(1, *(abs(row.amount) for row in rows))
    key = "kernel" if group == "kernels" else "cpu_op"
    for row, label in zip(rows, short_names([row.name for row in rows])):
        amount = f"{'+' if row.amount > 0 else '-'}{about_ns(abs(row.amount))}"
        share = f"{row.share:+.0%}" if row.share else ""
        is_noise = row.text == WITHIN
        bar = abs(row.amount) / most
        note = "noise" if is_noise else row.text
        yield FactRow(label, amount, share, note, bar, float(is_noise), key, row.evidence, row.name)
