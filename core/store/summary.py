"""What a store keeps of one rank: enough to compare it with all others and to draw it, without its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from ..tables.findings.forms import findings_object
from ..tables.findings.judge import findings
from ..tables.frame import Frame
from ..tables.frame_columns import work_of
from ..tables.kernels import kernels
from ..tables.messages import messages_of
from ..tables.rank_groups import host_of_source, process_groups
from ..tables.ranks import RankDevices
from ..tables.scope import Scope
from ..tables.step_choice import find_steps
from ..tables.steps import steps
from ..trace import Trace
from ..trace.alignment import wall_base
from ..trace.collectives import collectives_of
from .groups import (
    IDLE,
    KERNEL_NUMBERS,
    LINE_CELLS,
    NOTHING,
    OTHER,
    STEP_NUMBERS,
    Columns,
    RankSummary,
)

LEAST_ROOM = 32 << 10
ROOM_SHARE = 200
"""A summary takes LEAST_ROOM or a 200th of its trace, whichever is more; so does its copy in a group."""
MOST_VALUES = 1 << 17
"""Values of a column at most, so that those of a group can be read back (`MOST_PART`)."""
EVIDENCE = 3
SIZES: Sequence[Mapping[str, int]] = (
    {},
    {"kernels": 1000},
    {"kernels": 300},
    {"kernels": 100},
    {"kernels": 30},
    {"kernels": 30, "collectives": 20_000},
    {"kernels": 30, "collectives": 5_000},
    {"kernels": 10, "collectives": 1_000},
)
"""The most rows that a summary holds of a table: tried one after another until it fits."""


def summarised(trace: Trace, facts: Mapping[str, Any], trace_bytes: int) -> RankSummary:
    """Return the summary of a trace of one rank; `facts` say which file it is.

    It takes no more bytes than there is room for: the kernels that take least and the last collectives
    are left out for that, and the facts say so. Raises Cancelled.
    """
    room, whole = max(LEAST_ROOM, trace_bytes // ROOM_SHARE), _whole(trace, facts)
    for size in SIZES:
        summary = whole.shortened(size)
        longest = max(len(values) for rows in summary.tables.values() for values in rows.values())
        if longest <= MOST_VALUES and len(summary.to_bytes()) <= room:
            break
    return summary


def _whole(trace: Trace, facts: Mapping[str, Any]) -> RankSummary:
    """Return all that is known of a rank, from which a summary keeps what fits."""
    scope, index, member = Scope(trace), trace.indexes[0], trace.members[0]
    work, span = work_of(scope), trace.opening_span
    level, collectives = collectives_of(index)
    moved = messages_of(trace, 0, collectives.positions)
    messages = list(dict.fromkeys(moved))
    known, device_work = find_steps(trace, 0), kernels(scope)
    facts = {
        **facts,
        "rank": member.rank if member.rank is not None else facts.get("rank"),
        "world": member.world,
        "host": host_of_source(trace, 0),
        "base_ns": wall_base(index),
        "span": list(span),
        "origin_ns": trace.span[0],
        "devices": asdict(RankDevices.of(work)),
        "level": level,
        "groups": [
            [group.name, group.description, [[run.start, run.stop, run.step] for run in group.runs]]
            for group in process_groups(index.distributed, member.rank)
        ],
        "choice": "" if known is None else known.choice,
        "reason": "" if known is None else known.reason,
    }
    tables: dict[str, Columns] = {
        "steps": NOTHING["steps"],
        "collectives": {
            "start": collectives.starts,
            "end": collectives.ends,
            "family": collectives.family,
            "number": collectives.number,
            "position": collectives.positions,
            "message": np.array([messages.index(one) for one in moved], np.int64),
        },
        "messages": {
            "kind": [one.kind for one in messages],
            "dtype": [one.dtype for one in messages],
            "size": np.array([-1 if one.size is None else one.size for one in messages], np.int64),
            "group_size": np.array([one.group_size or -1 for one in messages], np.int64),
        },
        "families": {
            "group": [group for group, _ in collectives.families],
            "name": [name for _, name in collectives.families],
            "sequenced": np.array(collectives.sequenced, np.int64),
        },
        "line": _device_line(work, span),
        "kernels": {
            **{key: device_work.texts(key) for key in ("name", "type")},
            **{key: device_work.numbers(key) for key in KERNEL_NUMBERS},
        },
    }
    if known is not None:
        table = steps(scope)
        times = {"position": known.positions, "start": known.starts, "end": known.ends}
        numbers = {key: table.numbers(key) for key in STEP_NUMBERS}
        tables["steps"] = {"label": list(known.labels), "group": list(known.groups), **times, **numbers}
    judged = findings(scope)
    few = tuple(replace(finding, evidence=finding.evidence[:EVIDENCE]) for finding in judged.findings)
    return RankSummary(facts, findings_object(replace(judged, findings=few), 0), tables)


def _device_line(work: Frame, span: tuple[int, int]) -> Columns:
    """Return by cell of the span what runs longest on the devices, and for how much of the cell (of 255)."""
    length = max(1, span[1] - span[0])
    edges = np.array([span[0] + length * cell // LINE_CELLS for cell in range(LINE_CELLS + 1)], np.int64)
    low, high = edges[:-1], edges[1:]
    kinds = np.minimum(work.type.astype(np.int64) + 1, OTHER)
    times = np.zeros((OTHER + 1, LINE_CELLS), np.int64)
    for kind in np.unique(kinds).tolist():
        times[kind] = work.union(kinds == kind).covered(low, high)
    longest: AnyArray = np.where(times.max(axis=0) > 0, times.argmax(axis=0), IDLE).astype(np.uint8)
    shares = np.ceil(255.0 * work.union().covered(low, high) / np.maximum(high - low, 1))
    return {"kind": longest, "busy": np.clip(shares, 0, 255).astype(np.uint8)}
