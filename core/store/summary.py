"""What a store keeps of one rank: enough to compare it with all others and to draw it, without its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.intervals import merge
from ..tables.alignment import wall_base
from ..tables.collectives import Collectives, collectives_of
from ..tables.findings.finding import Findings
from ..tables.findings.forms import findings_object
from ..tables.findings.judge import findings
from ..tables.kernels import kernels
from ..tables.kinds import KERNEL_TYPES
from ..tables.rank_groups import host_of_source, process_groups
from ..tables.ranks import RankDevices
from ..tables.scope import Scope
from ..tables.step_choice import find_steps
from ..tables.steps import steps
from ..tables.table import Table
from ..tables.work import Work, work_of
from ..trace import Trace
from .groups import IDLE, KERNEL_NUMBERS, LINE_CELLS, OTHER, STEP_NUMBERS
from .pack import packed

LEAST_ROOM = 32 << 10
ROOM_SHARE = 200
"""A summary takes LEAST_ROOM or a 200th of its trace, whichever is more; so does its copy in a group."""
MOST_VALUES = 1 << 17
"""Values of a column at most, so that those of a group can be read back (`MOST_PART`)."""
LANE_CELLS = 128
MOST_LANES = 256
EVIDENCE = 3


@dataclass(frozen=True)
class SummarySize:
    """How much of a rank a summary holds; less where it would not fit."""

    kernels: int | None = None  # names; None: all
    lanes: int = MOST_LANES
    collectives: int | None = None


SIZES = (
    SummarySize(),
    SummarySize(1000, 64),
    SummarySize(300, 32),
    SummarySize(100, 8),
    SummarySize(30, 0),
    SummarySize(30, 0, 20_000),
    SummarySize(30, 0, 5_000),
    SummarySize(10, 0, 1_000),
)
"""Tried one after another until the summary fits."""


@dataclass(frozen=True, eq=False)
class RankSummary:
    """The facts of a rank, its texts by table, and columns of numbers; times are lane times in ns."""

    facts: Mapping[str, Any]
    texts: Mapping[str, Any]
    columns: Mapping[str, AnyArray]

    def to_bytes(self) -> bytes:
        """Return the file of the summary."""
        return packed({"facts": self.facts, **self.texts, **self.columns})


def refused_rank(facts: Mapping[str, Any], reason: str) -> RankSummary:
    """Return the summary of a rank whose trace cannot be read: the facts known of it and the reason."""
    return RankSummary({**facts, "unreadable": reason}, {}, {})


def summarised(trace: Trace, facts: Mapping[str, Any], trace_bytes: int) -> RankSummary:
    """Return the summary of a trace of one rank; `facts` say which file it is.

    It takes no more bytes than `summary_room` allows: the kernels that take least, lanes and the last
    collectives are left out for that, and the facts say so. Raises Cancelled.
    """
    room = summary_room(trace_bytes)
    whole = _Whole(trace, facts)
    for size in SIZES:
        summary = whole.summary(size)
        longest = max(map(len, summary.columns.values()))
        if longest <= MOST_VALUES and len(summary.to_bytes()) <= room:
            break
    return summary


def summary_room(trace_bytes: int) -> int:
    """Return how many bytes the summary of a trace of a size may take."""
    return max(LEAST_ROOM, trace_bytes // ROOM_SHARE)


class _Whole:
    """All that is known of a rank, from which a summary takes what fits."""

    def __init__(self, trace: Trace, facts: Mapping[str, Any]) -> None:
        self.trace, self.index = trace, trace.indexes[0]
        scope = Scope(trace)
        works = work_of(scope)
        self.level, self.collectives = collectives_of(self.index)
        self.steps = find_steps(trace, 0)
        self.step_table = steps(scope).steps
        self.kernels = kernels(scope)
        judged = findings(scope)
        self.findings = findings_object(_without_much_evidence(judged), 0)
        self.span = trace.opening_span
        self.line, self.line_busy = _device_line(works, self.span)
        self.lanes = _busiest_lanes(trace)
        member = trace.members[0]
        self.facts = {
            **facts,
            "rank": member.rank if member.rank is not None else facts.get("rank"),
            "world": member.world,
            "host": host_of_source(trace, 0),
            "slices": len(self.index.column("slices.start")),
            "base_ns": wall_base(self.index),
            "span": list(self.span),
            "origin_ns": trace.span[0],
            "devices": asdict(RankDevices.of(works)),
            "device_names": [work.title for work in works],
            "level": self.level,
            "problems": sum(int(problem.get("count", 1)) for problem in self.index.problems),
            "groups": [
                [group.name, group.description, [[run.start, run.stop, run.step] for run in group.runs]]
                for group in process_groups(self.index.manifest.get("envelope"), member.rank)
            ],
        }

    def summary(self, size: SummarySize) -> RankSummary:
        """Return what fits a size."""
        kernels = self.kernels if size.kernels is None else self.kernels.take(slice(size.kernels))
        collectives = _first(self.collectives, size.collectives)
        lanes = self.lanes[: size.lanes]
        left_out = {
            "kernels": len(self.kernels) - len(kernels),
            "collectives": len(self.collectives) - len(collectives),
            "lanes": len(self.lanes) - len(lanes),
        }
        known = self.steps
        facts = {
            **self.facts,
            "left_out": {name: count for name, count in left_out.items() if count},
            "families": [list(family) for family in collectives.families],
            "sequenced": [bool(given) for given in collectives.sequenced],
            "choice": "" if known is None else known.choice,
            "reason": "" if known is None else known.reason,
        }
        texts = {
            "step_texts": {
                "labels": [] if known is None else list(known.labels),
                "groups": [] if known is None else list(known.groups),
            },
            "kernel_texts": {"names": kernels.texts("name"), "types": kernels.texts("type")},
            "lane_texts": [[lane.process.title, lane.title] for lane in lanes],
            "findings": self.findings,
        }
        none = np.empty(0, np.int64)
        columns: dict[str, AnyArray] = {
            "steps.position": none if known is None else known.positions,
            "steps.start": none if known is None else known.starts,
            "steps.end": none if known is None else known.ends,
            **{f"steps.{key}": _numbers(self.step_table, key) for key in STEP_NUMBERS},
            "collectives.start": collectives.starts,
            "collectives.end": collectives.ends,
            "collectives.family": collectives.family,
            "collectives.number": collectives.number,
            "collectives.position": collectives.positions,
            "line.kind": self.line,
            "line.busy": self.line_busy,
            **{f"kernels.{key}": kernels.numbers(key) for key in KERNEL_NUMBERS},
            "lanes.busy": _lane_busy(self.trace, [lane.index for lane in lanes], self.span),
        }
        return RankSummary(facts, texts, columns)


def _numbers(table: Table, key: str) -> I64:
    return table.numbers(key) if len(table) else np.empty(0, np.int64)


def _first(collectives: Collectives, count: int | None) -> Collectives:
    """Return the first collectives only."""
    if count is None or len(collectives) <= count:
        return collectives
    return replace(
        collectives,
        positions=collectives.positions[:count],
        starts=collectives.starts[:count],
        ends=collectives.ends[:count],
        family=collectives.family[:count],
        number=collectives.number[:count],
    )


def _without_much_evidence(judged: Findings) -> Findings:
    shorter = tuple(replace(finding, evidence=finding.evidence[:EVIDENCE]) for finding in judged.findings)
    return replace(judged, findings=shorter)


def _device_line(works: Sequence[Work], span: tuple[int, int]) -> tuple[AnyArray, AnyArray]:
    """Return by cell of the span what runs longest on the devices, and for how much of the cell (of 255)."""
    edges = _edges(span, LINE_CELLS)
    low, high = edges[:-1], edges[1:]
    kinds = [work.kinds() for work in works]
    times = np.zeros((OTHER + 1, LINE_CELLS), np.int64)
    for kind in range(1, OTHER + 1):
        code = kind - 1 if kind < OTHER else None
        chosen = [
            (work.starts[mask], work.ends[mask])
            for work, of in zip(works, kinds)
            if (mask := of == code if code is not None else of >= len(KERNEL_TYPES)).any()
        ]
        if chosen:
            starts, ends = (np.concatenate(column) for column in zip(*chosen))
            times[kind] = merge(starts, ends).covered(low, high)
    everything = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    starts = np.concatenate([*everything[0], *(work.starts for work in works)])
    ends = np.concatenate([*everything[1], *(work.ends for work in works)])
    busy = merge(starts, ends).covered(low, high)
    longest: AnyArray = np.where(times.max(axis=0) > 0, times.argmax(axis=0), IDLE).astype(np.uint8)
    return longest, _shares(busy, high - low)


def _busiest_lanes(trace: Trace) -> list[Any]:
    """Return the lanes that hold slices, most slices first."""
    lanes = [lane for lane in trace.lanes if lane.slices]
    return sorted(lanes, key=lambda lane: (-lane.slices, lane.index))


def _lane_busy(trace: Trace, lanes: Sequence[int], span: tuple[int, int]) -> AnyArray:
    """Return how busy each of some lanes is by cell (of 255), one lane after another."""
    edges = _edges(span, LANE_CELLS)
    rows = [_shares(trace.lane_cells(lane, edges).busy, np.diff(edges)) for lane in lanes]
    return np.concatenate(rows) if rows else np.empty(0, np.uint8)


def _edges(span: tuple[int, int], cells: int) -> I64:
    start, end = span
    length = max(1, end - start)
    return np.array([start + length * cell // cells for cell in range(cells + 1)], np.int64)


def _shares(busy: I64, widths: I64) -> AnyArray:
    shares = np.ceil(255.0 * busy / np.maximum(widths, 1))
    return np.clip(shares, 0, 255).astype(np.uint8)
