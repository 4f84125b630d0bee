"""Gaps that come back: those between the same two names, together."""

from __future__ import annotations

import numpy as np

from ..base.short_names import short_name
from ..ingest.columns import I64, U32, AnyArray
from .idle import CLASSES, Idle, StreamGaps
from .kernels import statistics
from .table import Column, Table
from .work import dense

COLUMNS = (
    Column("before", "before it", "text"),
    Column("after", "ended by", "text"),
    Column("class", "mostly", "text"),
    Column("gaps", "gaps", "count"),
    Column("idle_ns", "idle", "ns"),
    Column("share", "of idle", "share"),
    Column("mean_ns", "mean", "ns", statistic=True),
    Column("median_ns", "median", "ns", statistic=True),
    Column("max_ns", "max", "ns", statistic=True),
)

FEW = 4096
"""Names of which a table of all pairs is cheaper than sorting millions of gaps."""


def recurring_gaps(found: Idle) -> Table:
    """Return the gaps of all streams by the short names before and after them, most idle time first.

    `class` is the one with the most time; the jump leads to what ended the longest gap of a group.
    """
    labels: dict[str, int] = {}
    before = _joined([_named(stream, stream.before, labels) for stream in found.streams])
    after = _joined([_named(stream, stream.after, labels) for stream in found.streams])
    length = _joined([stream.ends - stream.starts for stream in found.streams])
    kinds = _joined([stream.kinds.astype(np.int64) for stream in found.streams])
    both = before * max(1, len(labels)) + after
    if len(labels) <= FEW:
        group, pairs = dense(both)
    else:
        pairs, group = np.unique(both, return_inverse=True)
    stats = statistics(group, length, len(pairs))
    by_class = np.zeros((len(pairs), len(CLASSES)), np.int64)
    np.add.at(by_class, (group, kinds), length)
    order = np.argsort(-stats["total_ns"], kind="stable")
    names = list(labels)
    first, second = (part.tolist() for part in np.divmod(pairs[order], max(1, len(labels))))
    total = int(length.sum())
    data: dict[str, AnyArray | list[str]] = {
        "before": [names[number] for number in first],
        "after": [names[number] for number in second],
        "class": [CLASSES[number] for number in by_class[order].argmax(axis=1).tolist()],
        "gaps": stats["count"][order],
        "idle_ns": stats["total_ns"][order],
        "share": stats["total_ns"][order] / max(1, total),
        "mean_ns": stats["mean_ns"][order],
        "median_ns": stats["median_ns"][order],
        "max_ns": stats["max_ns"][order],
    }
    longest = stats["longest"][order]
    ended = _joined([stream.after.astype(np.int64) for stream in found.streams])
    sources = np.repeat(
        np.array([stream.work.device.source for stream in found.streams], np.int64),
        [len(stream.after) for stream in found.streams],
    )
    return Table(
        "recurring",
        "Gaps by what lies around them",
        found.scope,
        COLUMNS,
        data,
        {"gaps": len(length), "idle_ns": total},
        positions=ended[longest].astype(np.uint32),
        sources=sources[longest],
        keys=("before", "after"),
    )


def _named(stream: StreamGaps, positions: U32, labels: dict[str, int]) -> I64:
    """Return the number of each slice's short name among the labels so far, new ones appended."""
    index = stream.work.index
    places, numbers = dense(index.column("slices.name")[positions])
    codes = [labels.setdefault(short_name(raw), len(labels)) for raw in index.strings(numbers)]
    return np.array(codes, np.int64)[places]


def _joined(parts: list[I64]) -> I64:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
