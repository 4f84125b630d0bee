"""What two runs answer: tables of the second against the first, and which steps changed most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from ...base.arrays import sum_of
from ...base.errors import Cancelled
from ...base.progress import CancelledCallback, never
from ...base.short_names import comparable_name, short_name
from ...base.units import about_ns, format_moment, format_ns
from ...trace import Trace
from ...trace.step_spans import step_spans
from ..compare.comparable import CANNOT, reasons_of, side_of
from ..compare.compare import (
    BOTH,
    PRESENCE,
    UNKNOWN,
    VERDICT,
    WITHIN,
    Comparison,
    by_kind,
    compare,
    compare_spreads,
    compare_values,
    delta_key,
    judged,
    spread_of,
)
from ..compare.diff import noise_in_a_step, row_noise
from ..compare.run_changes import RowChange, RunChanges, run_changes
from ..compare.run_names import brief_name
from ..compare.run_pair import PairedSteps, RunPair
from ..compare.summary import LEADING
from ..findings.finding import NAME_CELLS, Evidence, Finding, Findings, brief
from ..findings.forms import JudgedAnswers
from ..frame.scope import Scope
from ..frame.table import Table, Tables
from ..steps.attribution import scope_of_step

MAX_EVIDENCE = 8
"""The number of steps, the most changed first, that Enter walks through."""
WAIT_S = 0.05
"""How long a question waits for one that is being answered before it looks whether it is still asked."""
MAX_NAME = 60
"""Characters of a kernel's or op's name in a sentence."""
WORDS = {"kernels": "kernel", "ops": "operator"}
"""What a row of a table is."""


def paired_runs(a: Trace, b: Trace) -> RunPair:
    """Return two runs as one trace that answers about B against A."""
    pair = RunPair(a, b)
    pair.answers = PairAnswers(pair)
    return pair


@dataclass(frozen=True)
class PairAnswers(JudgedAnswers):
    """What a pair is asked: tables of B against those of A, what changed most, and what of it is noise."""

    pair: RunPair
    _counting: Lock = field(default_factory=Lock, repr=False, compare=False)

    def changes(self, cancelled: CancelledCallback = never) -> RunChanges:
        """Return what changed, counted once by whichever thread asks first. Raises Cancelled."""
        while not self._counting.acquire(timeout=WAIT_S):
            if cancelled():
                raise Cancelled
        try:
            pair = self.pair
            if pair.changes is None:
                a, b = (Scope(run, clocks=run.clocks, cancelled=cancelled) for run in (pair.a, pair.b))
                pair.changes = run_changes(a, b, pair.spoken_names)
            return pair.changes
        finally:
            self._counting.release()

    def tables(self, name: str, options: Mapping[str, Any], scope: Scope) -> Tables:
        """Return tables of B held against A's; a range that is a step of A is the same step of B. Of kernels,
        ops and steps it is said what of a row's change is noise, where that is known.
        """
        from ..registry import BY_NAME  # whose rows answers are asked for

        past, now = (BY_NAME[name].run(_side_scope(self.pair, scope, n), **options) for n in (0, 1))
        keys = by_kind(scope.steps)
        later = past.origin_ns - now.origin_ns  # moments of both count from where A begins
        tables = [
            compare(_of_b(now[key].counted_from(later), self.pair.first), past[key], keys, scope=self._title)
            for key in now.names
        ]
        tables = [self._with_noise(table, options, scope) for table in tables]
        return replace(Tables.of(*tables), origin_ns=past.origin_ns)

    def findings(self, cancelled: CancelledCallback = never) -> Findings:
        """Return one finding: how much longer B takes, which kernel or op changed most, with the steps that
        changed most; or why the runs cannot be compared. Raises Cancelled.
        """
        steps = self.pair.common_steps()
        deltas = steps.deltas
        total, of_a = sum_of(deltas), sum_of(steps.lengths[:, 0])
        most = steps.most_changed[:MAX_EVIDENCE].tolist()
        is_whole = not steps.labels[0]
        a, b = map(brief_name, self.pair.spoken_names)
        many = f"{len(deltas):,} steps" if len(deltas) > 1 else steps.title(0)
        count = "without common steps, in all" if is_whole else f"in {many}"
        longer = f"{format_ns(abs(total))} {'more' if total > 0 else 'less'} than" if total else "as long as"
        verdict = compare_values(*steps.lengths.T.tolist()).verdict if not is_whole else UNKNOWN
        measured = " (from the start of a step's work to the next)" if steps.by_cadence else ""
        noise = f", {verdict}" if verdict != UNKNOWN else ""
        parts = [f"{b} takes {longer} {a} {count}{measured}{noise}"]
        more = f"{'+' if total > 0 else '-'}{about_ns(abs(total))}" if total else "no change"
        short = f"{more} {'in all' if is_whole else count}{noise if total and verdict == WITHIN else ''}"
        if reasons := self.reasons:
            parts, total, short = [f"{b} {CANNOT} with {a}: {'; '.join(reasons)}"], 0, ""
        else:
            changes = self.changes(cancelled)
            if (chief := changes.chief) is not None:
                what = _changed(chief, changes.per_step, MAX_NAME, " changed most,")
                parts.append(f"{WORDS[chief.table]} {what} ({_how(chief)})")
                short += f"; {_changed(chief, changes.per_step, NAME_CELLS)}"
            elif changes.are_noise:
                parts.append("no kernel or operator changed beyond the noise")
            if len(deltas) > 1 and deltas.any():
                parts.append(f"{steps.title(most[0])} changed most, {format_moment(int(deltas[most[0]]), 3)}")
            for side, lonely in zip((a, b), steps.without):
                parts += [f"{lonely:,} more steps in {side} alone"] if lonely else []
        if verdict == WITHIN:
            total = 0
        finding = Finding(
            rule="against",
            title="Two runs",
            text="; ".join(parts),
            short=short,
            evidence=tuple(_evidence(steps, at, (a, b)) for at in most),
            claimed_ns=max(0, total),
            share=max(0, total) / max(1, of_a),
            kind="loss" if total > 0 else "headline",
            threshold="two runs are shown together",
            origin="the length of the steps that both have, kernels and ops as `tracelane diff` has them",
            helps="`tracelane diff A B` says which metrics, kernels and ops changed",
            in_steps=int(np.count_nonzero(deltas)),
            of_steps=0 if is_whole else len(deltas),
            sources=(self.pair.first,),
        )
        return Findings(self._title, (finding,), ())

    @property
    def _title(self) -> str:
        """What tables and findings speak of: "compiled against eager"."""
        a, b = self.pair.spoken_names
        return f"{b} against {a}"

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why the runs cannot be compared; empty where they can."""
        a, b = (
            side_of(Scope(run, clocks=run.clocks), name)
            for run, name in zip((self.pair.a, self.pair.b), self.pair.spoken_names)
        )
        return tuple(dict.fromkeys(reasons_of([a], b).values()))

    # -- noise ----------------------------------------------------------------------------------------------

    def _with_noise(self, table: Table, options: Mapping[str, Any], scope: Scope) -> Table:
        """Return a table of kernels, ops or steps with what of each row's change is noise, beside it:
        over all of both runs, and in a step. Other ranges do not repeat, nor do rows of other groupings.
        """
        is_plain = all(not value or value == "name" for value in options.values())
        if table.name == "steps" and "length_ns" in table.data:
            return _with_verdict_at(judged(table, _noise_of_steps(table)), "length_ns")
        key = LEADING.get(table.name, "")
        if table.name not in WORDS or not is_plain or key not in table.data or not len(table):
            return table
        if scope.where is not None or scope.lanes is not None or self.reasons:
            return table
        counted = self.changes(scope.cancelled).difference
        sides = counted.before, counted.now
        names = [comparable_name(name) for name in table.texts("name")]
        if scope.range is None:
            return _with_verdict_at(judged(table, map(row_noise(table.name, *sides), names)), key)
        if not _is_step(self.pair, scope):
            return table
        in_step, deltas = noise_in_a_step(table.name, *sides), table.numbers(delta_key(key)).tolist()
        times = zip(names, table.numbers(key).tolist(), deltas)
        return _with_verdict_at(
            judged(table, [in_step(name, ns - delta, ns) for name, ns, delta in times]), key
        )


def _noise_of_steps(table: Table) -> list[Comparison | None]:
    """Return each row of a table of steps compared by how all steps of a side scatter; of a step that one
    side lacks nothing.
    """
    is_both = np.array([where == BOTH for where in table.texts(PRESENCE)], np.bool_)
    now, delta = table.numbers("length_ns"), table.numbers(delta_key("length_ns"))
    if not is_both.any():
        return [None] * len(table)
    past, present = (spread_of(values[is_both].tolist()) for values in (now - delta, now))

    def compared(before_ns: int, now_ns: int) -> Comparison:
        return compare_spreads(past.of_single(before_ns), present.of_single(now_ns))

    rows = zip(is_both.tolist(), (now - delta).tolist(), now.tolist())
    return [compared(before_ns, now_ns) if both else None for both, before_ns, now_ns in rows]


def _with_verdict_at(table: Table, key: str) -> Table:
    """Return a table whose verdict stands beside the change that it is about."""
    columns = [column for column in table.columns if column != VERDICT]
    at = [column.key for column in columns].index(delta_key(key)) + 1
    return replace(table, columns=(*columns[:at], VERDICT, *columns[at:]))


def _is_step(pair: RunPair, scope: Scope) -> bool:
    return scope.range is not None and bool((pair.common_steps(scope.steps).a == scope.range).all(1).any())


def _changed(row: RowChange, per_step: bool, cells: int, verb: str = "") -> str:
    """Return a kernel or an op, and by how much it changed: "gemm +10 ms a step"."""
    delta = f"{'+' if row.delta_ns > 0 else '-'}{about_ns(abs(row.delta_ns))}"
    return f"{brief(short_name(row.name), cells)}{verb} {delta}{' a step' if per_step else ''}"


def _how(row: RowChange) -> str:
    return "new" if not row.before_ns else "gone" if not row.now_ns else row.verdict


def _evidence(steps: PairedSteps, at: int, names: tuple[str, str]) -> Evidence:
    start, lengths = int(steps.a[at, 0]), steps.lengths[at].tolist()
    each = ", ".join(f"{name} {format_ns(ns)}" for name, ns in zip(names, lengths))
    noise = " (within the noise)" if steps.are_noise[at] and steps.deltas[at] else ""
    label = f"{steps.title(at)}: {each}{noise}"
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
