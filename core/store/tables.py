"""What a store answers: tables of all ranks, its findings, and its side of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from ..base.arrays import I64, means_of, sum_of
from ..base.errors import UsageError
from ..base.short_names import comparable_name, short_names
from ..query.groups import Groups, Labels
from ..query.views import SliceId
from ..tables.compare.comparable import UNOPENED, Loss, Need, Recorded, recorded_in
from ..tables.compare.summary import CADENCE, SCHEMAS, Summary, numbered, summed
from ..tables.findings.device import awaited_rank
from ..tables.findings.facts import share
from ..tables.findings.finding import Evidence, Finding, Findings
from ..tables.findings.forms import findings_of, tables_of
from ..tables.findings.judge import RULES, listed_by_cause, together
from ..tables.frame.metrics import Metric, spread_metrics
from ..tables.frame.schema import Column, TableSchema
from ..tables.frame.table import Table, Tables
from ..tables.frame.table_rows import Values
from ..tables.ranks.rank_tables import tables_of_ranks
from ..tables.steps.steps import UNKNOWN, is_known, known_numbers
from ..trace.collectives import medians
from .groups import NOT_KNOWN
from .opened import CaptureStore

STORE_TABLES = ("ranks", "steps", "kernels", "findings")
STEPS = TableSchema(
    "steps",
    "Steps",
    (
        Column("rank", "rank", "count"),
        Column("step", "step", "text"),
        Column("group", "group", "text"),
        Column("start_ns", "start", "ns", moment=True),
        Column("wall_ns", "wall", "ns"),
        Column("cpu_busy_ns", "CPU busy", "ns"),
        Column("device_ns", "device time", "ns"),
        Column("device_busy_ns", "device busy", "ns"),
        Column("device_span_ns", "device span", "ns"),
        Column("idle_ns", "device idle", "ns"),
        Column("kernel_ns", "kernels", "ns"),
        Column("comm_ns", "comm", "ns"),
        Column("copy_ns", "copies", "ns"),
        Column("device_slices", "device slices", "count"),
    ),
    keys=("rank", "step"),
)
KERNELS = TableSchema(
    "kernels",
    "Kernels of all ranks",
    (
        Column("name", "name", "text", is_name=True),
        Column("type", "type", "text"),
        Column("ranks", "ranks", "count"),
        Column("count", "count", "count"),
        Column("total_ns", "total", "ns"),
        Column("share", "share", "share"),
        Column("mean_ns", "mean", "ns", statistic=True),
        Column("min_ns", "min", "ns", statistic=True),
        Column("max_ns", "max", "ns", statistic=True),
        Column("median_rank_ns", "median rank", "ns", statistic=True),
        Column("most_ns", "most on a rank", "ns", statistic=True),
        Column("most_rank", "which rank", "id"),
    ),
    keys=("name",),
)


def store_tables(store: CaptureStore, name: str, options: Mapping[str, Any]) -> Tables:
    """Return an analysis over all ranks of a store. Raises UsageError for what summaries cannot answer."""
    makers: Sequence[Callable[..., Tables]] = (_ranks, _steps, _kernels, _findings)
    if name not in STORE_TABLES:
        raise UsageError(
            f"{name.replace('_', '-')} needs traces; a store of summaries has {', '.join(STORE_TABLES)}: "
            f"{store.title}"
        )
    return _with_notes(dict(zip(STORE_TABLES, makers))[name](store, **options), store.notes)


def _with_notes(tables: Tables, notes: Sequence[str]) -> Tables:
    """Return tables whose first one says what is not in the store."""
    first = tables.names[0]

    def noted() -> Table:
        main = tables.makers[first]()
        return replace(main, notes=(*main.notes, *notes))

    return replace(tables, makers={**tables.makers, first: noted})


def _ranks(store: CaptureStore, **options: Any) -> Tables:
    compared = store.compared
    origins = {rank.source: store.ranks[rank.source].origin for rank in compared.ranks}

    def late() -> int | None:
        finding = _imbalance(store)
        return None if finding is None else finding.sources[0]

    return tables_of_ranks(compared, store.origin, origins, **options, late=late)


def _steps(store: CaptureStore, groups: bool = False) -> Tables:
    if groups:
        raise UsageError("--groups needs traces: a store has the steps one by one")
    return Tables(store.scope, store.origin, {"steps": lambda: steps_of_store(store)})


def steps_of_store(store: CaptureStore) -> Table:
    """Return a row per rank and step."""
    rank, rows = store.table("steps")
    facts = [store.ranks[number].facts for number in dict.fromkeys(rank.tolist())]
    choices = dict.fromkeys(f"steps are {each.get('choice', '')}: {each.get('reason', '')}" for each in facts)
    data: dict[str, Values] = {
        **rows,
        "rank": _numbers(store)[rank],
        "step": rows["label"],
        "start_ns": rows["start"] + store.offsets[rank],
        "wall_ns": rows["end"] - rows["start"],
    }
    unknown = {key for key in UNKNOWN if (rows[key] == NOT_KNOWN).any()}
    data |= {key: np.where(rows[key] == NOT_KNOWN, np.nan, rows[key]) for key in unknown}
    columns = (replace(one, statistic=one.key in unknown) for one in STEPS.columns)
    schema = replace(STEPS, columns=tuple(columns))
    notes = tuple(choices) or ("no rank of the store has steps",)
    return Table.from_arrays(schema, store.scope, data, notes=notes, positions=rows["position"], sources=rank)


def _kernels(
    store: CaptureStore,
    by: str = "name",
    group_by: str = "",
    column: Sequence[str] = (),
    runs: str = "",
    order: str = "slowest",
    limit: int | None = None,
) -> Tables:
    if group_by or column or runs or by not in ("name", "short", "type"):
        raise UsageError(
            "a store has kernels by name, short or type: other groups and single runs need traces"
        )
    return Tables(store.scope, store.origin, {"kernels": lambda: kernels_of_store(store, by)})


def kernels_of_store(store: CaptureStore, by: str = "name") -> Table:
    """Return the device work of all ranks by name, short name or type, most time first; of each the rank that
    spends most on it.
    """
    from ..tables.frame.shape import MIXED  # with all that counts the kernels of a trace

    rank, rows = store.table("kernels")
    labels, kinds = Labels(), Labels()
    code, kind = labels.codes(rows["type" if by == "type" else "name"]), kinds.codes(rows["type"])
    size, ranks = len(labels), max(1, len(store.ranks))
    groups, titles = Groups(code, size), list(kinds)
    totals, counts = groups.sums(rows["total_ns"]), groups.sums(rows["count"])
    # Of each name and rank one entry: of a type many names are one.
    pairs, pair = np.unique(code * ranks + rank, return_inverse=True)
    name_of, rank_of = np.divmod(pairs, ranks)
    per_rank = Groups(pair, len(pairs)).sums(rows["total_ns"])
    middle, on_ranks = medians(name_of, per_rank, size)
    first = Groups(name_of, size).longest(per_rank)
    low, high = groups.least(kind).tolist(), groups.most(kind).tolist()
    data: dict[str, Values] = {
        "name": short_names(list(labels)) if by == "short" else list(labels),
        "type": [titles[a] if a == b else MIXED for a, b in zip(low, high)],
        "ranks": on_ranks,
        "count": counts,
        "total_ns": totals,
        "share": totals / max(sum_of(totals), 1),
        "mean_ns": means_of(totals, counts),
        "min_ns": groups.least(rows["min_ns"]),
        "max_ns": groups.most(rows["max_ns"]),
        "median_rank_ns": middle,
        "most_ns": per_rank[first],
        "most_rank": _numbers(store)[rank_of[first]],
    }
    table = Table.from_arrays(
        KERNELS, store.scope, data, totals={"count": sum_of(counts), "total_ns": sum_of(totals)}
    )
    return table.sort("total_ns")


def _numbers(store: CaptureStore) -> I64:
    """Return the rank of each, its place in the store where it is not known."""
    ranks = (number if rank.rank is None else rank.rank for number, rank in enumerate(store.ranks))
    return np.fromiter(ranks, np.int64)


def _findings(store: CaptureStore) -> Tables:
    return tables_of(findings_of_store(store), store.origin)


def summary_of_store(store: CaptureStore) -> Summary:
    """Return a store as one side of a comparison: kernels of all ranks, steps as medians over the ranks."""
    steps, kernels, skew = steps_of_store(store), kernels_of_store(store), store.skew
    metrics = [
        Metric("ranks.count", "count", len(store.ranks)),
        Metric("ranks.waited", "ns", sum_of(skew.waits) if len(skew) else None),
        Metric("step.count", "count", len(steps)),
    ]
    # Summaries of ranks have the marks of steps alone.
    metrics += spread_metrics("step.length", steps.numbers("wall_ns"))[1:]
    for key in ("wall", "cpu_busy", "device_busy", "idle", "comm", "copy"):
        values = steps.numbers(f"{key}_ns") if is_known(steps, f"{key}_ns") else np.empty(0, np.int64)
        metrics += spread_metrics(f"step.{key}", values)[1:]
    metrics += [
        Metric("kernels.calls", "count", sum_of(kernels.numbers("count"))),
        Metric("kernels.names", "count", len(kernels)),
        Metric("kernels.time", "ns", sum_of(kernels.numbers("total_ns"))),
        Metric("ops.self_cpu", "ns", None),  # ops are not in summaries
    ]
    names = [comparable_name(name) for name in kernels.texts("name")]
    tables = {
        "kernels": summed("kernels", store.scope, {**kernels.data, "name": names}),
        **{name: Table.from_rows(SCHEMAS[name], store.scope, []) for name in ("ops", "categories")},
        "steps": _median_steps(store, steps),
    }
    by_name = {metric.name: metric for metric in metrics}
    return Summary(store.title, store.scope, by_name, tables, recorded=recorded_of_store(store))


def recorded_of_store(store: CaptureStore) -> Recorded:
    """Return what the recordings of all ranks hold and lack, as of their traces; ranks that could not be read
    when they were collected are missing as a whole.
    """
    files, devices = len(store.ranks) + len(store.unreadable), 0
    losses = [Loss(UNOPENED, "all", 1, 1) for _ in store.unreadable]
    for rank in store.ranks:
        try:
            losses += map(_loss, rank.facts["lacks"])
            devices += int(rank.facts["working_devices"])
        except (KeyError, TypeError, ValueError):
            raise rank.shelf.damaged(f"what the recording of {rank.title} lacks is not said") from None
    return recorded_in(losses, files, devices)


def _loss(row: Any) -> Loss:
    """Return what a store says that a rank lacks. Raises TypeError, ValueError where it says nothing."""
    trouble, need, missing, total = row
    if need not in get_args(Need):
        raise ValueError(f"{need!r} is nothing that a metric needs")
    return Loss(str(trouble), need, int(missing), int(total))


def _median_steps(store: CaptureStore, table: Table) -> Table:
    """Return the steps by their position in a rank, each number the median over the ranks that have it."""
    ranks = table.numbers("rank")
    changes = np.flatnonzero(np.diff(ranks, prepend=-1))
    lengths = np.diff(np.append(changes, len(ranks)))
    nth = np.arange(len(ranks), dtype=np.int64) - np.repeat(changes, lengths)
    count = int(nth.max()) + 1 if len(nth) else 0
    label, *numbers = SCHEMAS["steps"].columns
    data: dict[str, Values] = {label.key: numbered(count)}
    for column in numbers:
        if column == CADENCE:
            data[column.key] = np.zeros(count, np.int64)
            continue
        key = "wall_ns" if column.key == "length_ns" else column.key
        data[column.key] = medians(nth, known_numbers(table, key), count)[0]
    return Table.from_arrays(SCHEMAS["steps"], store.scope, data)


IMBALANCE, COMMUNICATION = "rank-imbalance", "communication"


def findings_of_store(store: CaptureStore) -> Findings:
    """Return the findings of all ranks: each rule once, with the rank in which it claims most time, and the
    rank that the others wait for.
    """
    by_rule: dict[str, list[Finding]] = {}
    missing: dict[str, str] = {}
    imbalance = _imbalance(store)
    for number, rank in enumerate(store.ranks):
        try:
            judged = findings_of(rank.findings, 0)
        except (KeyError, TypeError, ValueError):
            raise rank.shelf.damaged(f"the findings of {rank.title} are none") from None
        for finding in judged.findings:
            if finding.rule != IMBALANCE:
                moved = _moved_evidence(finding.evidence, number, int(store.offsets[number]))
                own = replace(finding, sources=(number,), of_part=rank.title, evidence=moved)
                own = own if imbalance is None else _without_waiting(store, number, own)
                by_rule.setdefault(finding.rule, []).append(own)
        for rule, reason in judged.not_judged:
            missing.setdefault(rule, reason)
    merged = [together(alike) for alike in by_rule.values()]
    merged += [] if imbalance is None else [imbalance]
    judged_rules = {finding.rule for finding in merged}
    left = tuple(
        (rule, why) for rule, why in missing.items() if rule not in judged_rules and rule != IMBALANCE
    )
    return Findings(store.scope, listed_by_cause([one for one in merged if one.rule in RULES]), left)


def _moved_evidence(evidence: Sequence[Evidence], number: int, offset: int) -> tuple[Evidence, ...]:
    return tuple(
        replace(
            each,
            start=each.start + offset,
            end=each.end + offset,
            slice=None if each.slice is None else SliceId(number, each.slice.ordinal),
        )
        for each in evidence
    )


def _without_waiting(store: CaptureStore, number: int, finding: Finding) -> Finding:
    """Return a finding of one rank without the time that is told as waiting for another: its summary knew of
    no other rank, so that all of that was communication.
    """
    column = store.skew.columns.get(number)
    if finding.rule != COMMUNICATION or column is None:
        return finding
    waited = min(finding.claimed_ns, store.skew.waiting(column).length)
    if not waited:
        return finding
    left = finding.claimed_ns - waited
    part = finding.share * share(left, finding.claimed_ns)
    return replace(finding, claimed_ns=left, share=part, caused_by=IMBALANCE, caused_ns=waited)


def _imbalance(store: CaptureStore) -> Finding | None:
    """Return the finding about the rank that the others wait for most, None where no rank waits."""
    skew, rule = store.skew, RULES[IMBALANCE]
    if not len(skew):
        return None
    titles = [store.ranks[source].title for source in skew.sources]
    column = int(skew.caused.argmax())
    span = max((end - start for start, end in (rank.span for rank in store.ranks)), default=0)
    limits = rule.limits
    awaited = awaited_rank(skew, span, limits, titles[column].capitalize(), titles.__getitem__)
    if awaited is None:
        return None
    observation, _ = awaited
    rank, steps = store.table("steps")
    own = np.flatnonzero(rank == skew.sources[column])
    begun, ended = (steps[key][own] + store.offsets[skew.sources[column]] for key in ("start", "end"))
    covered = observation.claim.covered(begun, ended) > 0
    return rule.finding(
        observation.text,
        observation.evidence,
        claimed_ns=observation.claimed_ns,
        share=share(observation.claimed_ns, span),
        in_steps=int(np.count_nonzero(covered)),
        of_steps=len(own),
        sources=(skew.sources[column],),
        of_part=titles[column],
    )
