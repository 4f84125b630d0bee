"""What two runs answer: tables of the second against the first, and which steps changed most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...base.arrays import sum_of
from ...base.units import format_moment, format_ns
from ...trace import Trace
from ...trace.step_spans import step_spans
from ..compare.comparable import CANNOT, reasons_of, side_of
from ..compare.compare import UNKNOWN, by_steps, compare, compare_values
from ..compare.run_pair import AGAINST, SIDES, PairedSteps, RunPair
from ..findings.finding import Evidence, Finding, Findings
from ..findings.forms import JudgedAnswers
from ..frame.scope import Scope
from ..frame.table import Table, Tables
from ..steps.attribution import scope_of_step

MAX_EVIDENCE = 8
"""The number of steps, the most changed first, that Enter walks through."""


def paired_runs(a: Trace, b: Trace) -> RunPair:
    """Return two runs as one trace that answers about B against A."""
    pair = RunPair(a, b)
    pair.answers = PairAnswers(pair)
    return pair


@dataclass(frozen=True)
class PairAnswers(JudgedAnswers):
    """What a pair is asked: tables of B against those of A, and which steps changed most."""

    pair: RunPair

    def tables(self, name: str, options: Mapping[str, Any], scope: Scope) -> Tables:
        """Return tables of B held against A's; a range that is a step of A is the same step of B."""
        from ..registry import BY_NAME  # whose rows answers are asked for

        past, now = (BY_NAME[name].run(_side_scope(self.pair, scope, n), **options) for n in (0, 1))
        keys = by_steps(scope.steps)
        later = past.origin_ns - now.origin_ns  # moments of both count from where A begins
        tables = [
            compare(_of_b(now[key].counted_from(later), self.pair.first), past[key], keys, scope=AGAINST)
            for key in now.names
        ]
        return replace(Tables.of(*tables), origin_ns=past.origin_ns)

    def findings(self) -> Findings:
        """Return one finding: how much longer B takes, with the steps that changed most; or why the runs
        cannot be compared.
        """
        steps = self.pair.common_steps()
        deltas = steps.deltas
        total, of_a = sum_of(deltas), sum_of(steps.lengths[:, 0])
        most = steps.most_changed[:MAX_EVIDENCE].tolist()
        is_whole = not steps.labels[0]
        many = f"{len(deltas):,} steps" if len(deltas) > 1 else steps.title(0)
        count = "without common steps, in all" if is_whole else f"in {many}"
        longer = f"{format_ns(abs(total))} {'more' if total > 0 else 'less'} than" if total else "as long as"
        verdict = compare_values(*steps.lengths.T.tolist()).verdict if not is_whole else UNKNOWN
        measured = " (from the start of a step's work to the next)" if steps.by_cadence else ""
        noise = f", {verdict}" if verdict != UNKNOWN else ""
        parts = [f"B takes {longer} A {count}{measured}{noise}"]
        if len(deltas) > 1 and deltas.any():
            parts.append(f"{steps.title(most[0])} changed most, {format_moment(int(deltas[most[0]]), 3)}")
        for side, lonely in zip(SIDES, steps.without):
            parts += [f"{lonely:,} more steps in {side} alone"] if lonely else []
        if reasons := self.reasons:
            parts, total = [f"B {CANNOT} with A: {'; '.join(reasons)}"], 0
        if verdict == "within the noise":
            total = 0
        finding = Finding(
            rule="against",
            title=AGAINST,
            text="; ".join(parts),
            evidence=tuple(_evidence(steps, at) for at in most),
            claimed_ns=max(0, total),
            share=max(0, total) / max(1, of_a),
            kind="loss" if total > 0 else "headline",
            threshold="two runs are shown together",
            origin="the length of the steps that both runs have",
            helps="`tracelane diff A B` says which metrics, kernels and ops changed",
            in_steps=int(np.count_nonzero(deltas)),
            of_steps=0 if is_whole else len(deltas),
            sources=(self.pair.first,),
        )
        return Findings(AGAINST, (finding,), ())

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why the runs cannot be compared; empty where they can."""
        a, b = (
            side_of(Scope(run, clocks=run.clocks), name)
            for run, name in zip((self.pair.a, self.pair.b), SIDES)
        )
        return tuple(dict.fromkeys(reasons_of([a], b).values()))


def _evidence(steps: PairedSteps, at: int) -> Evidence:
    start, lengths = int(steps.a[at, 0]), steps.lengths[at].tolist()
    label = f"{steps.title(at)}: A {format_ns(lengths[0])}, B {format_ns(lengths[1])}"
    return Evidence(label, start, start + max(*lengths, 1))


def _of_b(table: Table, first: int) -> Table:
    """Return a table of B whose rows jump to its slices in the pair."""
    if table.positions is None:
        return table
    sources = np.zeros(len(table), np.int64) if table.sources is None else np.asarray(table.sources, np.int64)
    return replace(table, sources=sources + first)


def _side_scope(pair: RunPair, scope: Scope, side: int) -> Scope:
    """Return the part of a pair's scope that is of A (0) or B (1)."""
    run, clocks = pair.side(pair.first if side else 0, scope.clocks)
    base = len(pair.a.lanes) if side else 0
    lanes = None
    if scope.lanes is not None:
        lanes = tuple(lane - base for lane in scope.lanes if 0 <= lane - base < len(run.lanes))
    own = replace(scope, trace=run, clocks=clocks, lanes=lanes)
    steps = pair.common_steps(scope.steps)
    at = [] if scope.range is None else np.flatnonzero((steps.a == scope.range).all(1)).tolist()
    spans = step_spans(run, clocks, scope.steps or None) if at else None
    return own if spans is None else scope_of_step(own, spans, int(steps.rows[at[0], side]))
