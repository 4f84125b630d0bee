"""The tables of a store: ranks, steps, kernels and findings of all its ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.errors import UsageError
from ..base.short_names import short_names
from ..tables.attendance import medians
from ..tables.groups import Groups, Labels, concatenated
from ..tables.rank_tables import tables_of_ranks
from ..tables.schema import Column, TableSchema
from ..tables.table import Table, Tables, Values
from .groups import KERNEL_NUMBERS, KERNEL_TEXTS, STEP_NUMBERS
from .opened import CaptureStore

STORE_TABLES = ("ranks", "steps", "kernels", "findings")
STEP_TITLES = (
    "CPU busy",
    "device time",
    "device busy",
    "device span",
    "device idle",
    "kernels",
    "comm",
    "copies",
)
STEPS = TableSchema(
    "steps",
    "Steps",
    (
        Column("rank", "rank", "count"),
        Column("step", "step", "text"),
        Column("group", "group", "text"),
        Column("start_ns", "start", "ns", moment=True),
        Column("wall_ns", "wall", "ns"),
        *(Column(key, title, "ns") for key, title in zip(STEP_NUMBERS, STEP_TITLES)),
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
    makers: dict[str, Callable[..., Tables]] = {
        "ranks": _ranks,
        "steps": _steps,
        "kernels": _kernels,
        "findings": _findings,
    }
    if name not in makers:
        raise UsageError(
            f"{name} needs traces; {store.title} is a store of summaries, for {', '.join(STORE_TABLES)}"
        )
    return _with_notes(makers[name](store, **options), store.notes)


def _with_notes(tables: Tables, notes: Sequence[str]) -> Tables:
    """Return tables whose first one says what is not in the store."""
    first, *others = tables.names
    main = tables[first]
    return Tables(
        tables.scope,
        tables.origin_ns,
        {
            first: lambda: replace(main, notes=(*main.notes, *notes)),
            **{name: tables.makers[name] for name in others},
        },
    )


def _ranks(store: CaptureStore, **options: Any) -> Tables:
    compared = store.compared
    origins = {rank.source: store.ranks[rank.source].origin for rank in compared.ranks}
    return tables_of_ranks(compared, store.origin, origins, **options)


def _steps(store: CaptureStore, groups: bool = False) -> Tables:
    if groups:
        raise UsageError("--groups needs traces: a store has the steps one by one")
    return Tables(store.scope, store.origin, {"steps": lambda: steps_of_store(store)})


def steps_of_store(store: CaptureStore) -> Table:
    """Return a row per rank and step."""
    data: dict[str, list[Any]] = {column.key: [] for column in STEPS.columns}
    numbers: dict[str, list[I64]] = {
        key: [np.empty(0, np.int64)] for key in ("start_ns", "wall_ns", *STEP_NUMBERS)
    }
    sources, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    choices: dict[str, None] = {}
    for number, rank in enumerate(store.ranks):
        steps = rank.steps(number, int(store.offsets[number]))
        if steps is None:
            continue
        choices.setdefault(f"steps are {steps.choice}: {steps.reason}")
        data["rank"] += [number if rank.rank is None else rank.rank] * len(steps)
        data["step"] += steps.labels
        data["group"] += steps.groups
        numbers["start_ns"].append(steps.starts - store.origin)
        numbers["wall_ns"].append(steps.ends - steps.starts)
        for key in STEP_NUMBERS:
            values = rank.times(f"steps.{key}")
            numbers[key].append(values if len(values) == len(steps) else np.zeros(len(steps), np.int64))
        sources.append(np.full(len(steps), number, np.int64))
        positions.append(steps.positions)
    columns: dict[str, Values] = {key: np.concatenate(parts) for key, parts in numbers.items()}
    columns |= {"rank": np.array(data["rank"], np.int64), "step": data["step"], "group": data["group"]}
    return Table.from_arrays(
        STEPS,
        store.scope,
        columns,
        notes=tuple(choices) or ("no rank of the store has steps",),
        positions=np.concatenate(positions),
        sources=np.concatenate(sources),
    )


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
    from ..tables.kernels import MIXED  # with all that counts the kernels of a trace

    labels, kinds = Labels(), Labels()
    joined = _kernels_by_rank(store, labels, kinds, by)
    code, size = joined["code"], len(labels)
    totals, counts = _sums(code, joined["total_ns"], size), _sums(code, joined["count"], size)
    # Of each name and rank one entry: of a type many names are one.
    keys = code * max(1, len(store.ranks)) + joined["rank"]
    pairs, pair = np.unique(keys, return_inverse=True)
    per_rank = _sums(pair.astype(np.int64), joined["total_ns"], len(pairs))
    name_of, rank_of = pairs // max(1, len(store.ranks)), pairs % max(1, len(store.ranks))
    middle, on_ranks = medians(name_of, per_rank, size)
    order = np.lexsort((rank_of, -per_rank, name_of))
    first = order[np.searchsorted(name_of[order], np.arange(size))] if size else order
    titles = list(kinds)
    low, high = _extremes(code, joined["kind"], size)
    data: dict[str, Values] = {
        "name": short_names(list(labels)) if by == "short" else list(labels),
        "type": [titles[a] if a == b else MIXED for a, b in zip(low.tolist(), high.tolist())],
        "ranks": on_ranks,
        "count": counts,
        "total_ns": totals,
        "share": totals / max(int(totals.sum()), 1),
        "mean_ns": totals / np.maximum(counts, 1),
        "min_ns": _extremes(code, joined["min_ns"], size)[0],
        "max_ns": _extremes(code, joined["max_ns"], size)[1],
        "median_rank_ns": middle,
        "most_ns": per_rank[first],
        "most_rank": np.array([_number(store, number) for number in rank_of[first].tolist()], np.int64),
    }
    table = Table.from_arrays(
        KERNELS, store.scope, data, totals={"count": int(counts.sum()), "total_ns": int(totals.sum())}
    )
    return table.sort("total_ns")


def _kernels_by_rank(store: CaptureStore, labels: Labels, kinds: Labels, by: str) -> dict[str, I64]:
    """Return KERNEL_NUMBERS of each kernel of each rank as columns, one rank after the other.

    Three more columns are `code` (the number in `labels` of the kernel's name or type), `kind` (the number in
    `kinds` of its type) and `rank` (the rank's index in the store).
    """
    parts: dict[str, list[I64]] = {key: [] for key in (*KERNEL_NUMBERS, "code", "kind", "rank")}
    for number, rank in enumerate(store.ranks):
        texts = rank.text(KERNEL_TEXTS)
        names, types = _strings(texts, "names"), _strings(texts, "types")
        columns = {key: rank.times(f"kernels.{key}") for key in KERNEL_NUMBERS}
        if len(names) != len(types) or any(len(values) != len(names) for values in columns.values()):
            raise rank.shelf.damaged(f"the kernels of {rank.title} do not agree with each other")
        columns["code"] = labels.codes(types if by == "type" else names)
        columns["kind"] = kinds.codes(types)
        columns["rank"] = np.full(len(names), number, np.int64)
        for key, values in columns.items():
            parts[key].append(values)
    return {key: concatenated(values) for key, values in parts.items()}


def _number(store: CaptureStore, number: int) -> int:
    rank = store.ranks[number].rank
    return number if rank is None else rank


def _strings(value: Any, key: str) -> list[str]:
    texts = value.get(key) if isinstance(value, dict) else None
    return [str(text) for text in texts] if isinstance(texts, list) else []


def _sums(codes: I64, values: AnyArray, size: int) -> I64:
    return Groups(codes, size).sums(values.astype(np.int64))


def _extremes(codes: I64, values: I64, size: int) -> tuple[I64, I64]:
    """Return (the least, the greatest) value of each group; no group is empty."""
    order = np.lexsort((values, codes))
    firsts = np.searchsorted(codes[order], np.arange(size))
    lasts = np.searchsorted(codes[order], np.arange(size), "right") - 1
    return values[order[firsts]], values[order[lasts]]


def _findings(store: CaptureStore) -> Tables:
    from .findings import findings_tables  # with the rules of all findings, which no other table needs

    return findings_tables(store)
