"""A trace of lanes only, for layouts: thousands of lanes and rows without any index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from tracelane.core.base.arrays import I64
from tracelane.core.base.clock import Clocks
from tracelane.core.index.format import LaneKind, LaneRole
from tracelane.core.trace import Lane, Process, Trace


class FakeRows(NamedTuple):
    """Rows of which none repeats another."""

    count: int

    def repeat_those_above(self, share: float) -> list[bool]:
        """Return that none does, whatever the share."""
        return [False] * self.count if share else []

    def busy_besides(self, categories: Collection[int]) -> I64:
        """Return that all rows are busy for a millisecond, in slices of no category."""
        return np.full(self.count, 1_000_000, np.int64)


@dataclass(eq=False)
class FakeTrace:
    """Answers what a layout asks."""

    processes: tuple[Process, ...]
    lanes: Sequence[Lane]
    opening_span: tuple[int, int] = (0, 1_000_000)
    source_count: int = 1
    members: tuple[object, ...] = ()
    missing: frozenset[int] = frozenset()
    clocks: Clocks = field(default_factory=Clocks)
    fields: dict[str, object] = field(default_factory=dict)

    def categories(self, source: int) -> Sequence[str]:
        """Return none: a lane's slices are only counted."""
        return ()

    def besides_work(self, source: int) -> frozenset[int]:
        """Return none: all slices are work."""
        return frozenset()

    def row_columns(self, lane: Lane) -> FakeRows:
        """Return what the rows of a lane hold: nothing that is known."""
        return FakeRows(len(lane.rows))

    device_lanes: frozenset[int] = frozenset()
    launching_lanes: Mapping[int, int] = field(default_factory=dict)


@dataclass
class LaneSpec:
    """A lane to make; by default one that is busy enough to be drawn."""

    title: str = "thread"
    rows: int = 1
    slices: int = 1000
    depth: int = 0
    overlapping: int = 0
    instants: int = 0
    unclosed: int = 0
    kind: LaneKind = LaneKind.THREAD
    start: int = 0
    end: int = 1_000_000


@dataclass(frozen=True)
class FakeMember:
    """A file of a rank."""

    rank: int
    host: str = ""
    side: str = ""

    @property
    def title(self) -> str:
        return f"rank {self.rank}"


def fake_trace(
    *processes: Sequence[LaneSpec],
    empty: int = 0,
    labels: Sequence[str] = (),
    are_ranks: bool = False,
    missing: Sequence[int] = (),
) -> Trace:
    """Return a trace with these lanes per process; the first process has `empty` empty lanes. Each process
    may be the only one of a rank, some of which may be missing.
    """
    made_processes: list[Process] = []
    lanes: list[Lane] = []
    row = 0
    for number, specs in enumerate(processes):
        first = len(lanes)
        label = labels[number] if number < len(labels) else ""
        source = number if are_ranks else 0
        process = Process(
            source,
            number,
            str(number),
            f"process {number}",
            label,
            f"process {number}",
            range(first, first + len(specs)),
            empty if number == 0 else 0,
        )
        if number not in missing:
            made_processes.append(process)
        for position, spec in enumerate(specs):
            lanes.append(
                Lane(
                    source,
                    process,
                    first + position,
                    first + position,
                    spec.kind,
                    LaneRole.DEVICE if "stream" in spec.title or label not in ("", "CPU") else LaneRole.HOST,
                    str(number),
                    str(position),
                    spec.title,
                    spec.title,
                    range(row, row + spec.rows),
                    spec.depth or spec.rows,
                    spec.slices,
                    spec.unclosed,
                    spec.instants,
                    0,
                    spec.overlapping,
                    spec.start,
                    spec.end,
                )
            )
            row += spec.rows
    devices = frozenset(lane.index for lane in lanes if lane.role is LaneRole.DEVICE)
    trace = FakeTrace(tuple(made_processes), lanes, device_lanes=devices)
    if are_ranks:
        trace.members = tuple(FakeMember(number) for number in range(len(processes)))
        trace.source_count = len(processes)
        trace.missing = frozenset(missing)
    return cast(Trace, trace)
