"""Flows on their way to disk: pairs of flow events become arrows between the slices that these belong to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, U32
from .batches import NumberedBatches
from .column_files import ColumnFiles, Scratch
from .events import FlowEvents
from .format import FLOW_COUNTS
from .loops import Correlations
from .workers import BuildJob, Loops, Worker


@dataclass(frozen=True, eq=False)
class FlowPairs:
    """Pairs of flow events, and per category how many there are of what (FLOW_COUNTS)."""

    source: U32  # entries of FlowEvents
    target: U32
    counts: I64

    def by_category(self) -> dict[int, dict[str, int]]:
        """Return the counts of categories that have flows."""
        occurring = np.flatnonzero(self.counts.any(axis=1)).tolist()
        return {number: dict(zip(FLOW_COUNTS, self.counts[number].tolist())) for number in occurring}


def paired(flows: FlowEvents, batches: NumberedBatches, loops: Loops) -> FlowPairs:
    """Pair starts, steps and ends of one category and id."""
    pid = np.repeat(batches.track_pid[flows.tracks], np.diff(flows.bounds))
    return FlowPairs(*loops.pair(flows.columns, pid, len(batches.categories)))


def write_flows(
    arrows: FlowPairs,
    flows: FlowEvents,
    columns: ColumnFiles,
    worker: Worker,
) -> None:
    """Write arrows by source, and their order by target."""
    loops, ordinal = worker.loops, flows.columns["ordinal"]
    source, target = flows.bound.take(arrows.source), flows.bound.take(arrows.target)
    every = np.array([0, len(source)], np.uint64)
    target_ordinal, source_ordinal = ordinal.take(arrows.target), ordinal.take(arrows.source)
    order, _ = loops.order(every, source.astype(np.int64), -target_ordinal.astype(np.int64), source_ordinal)
    order = np.arange(len(source), dtype=np.uint32) if order is None else order.copy()
    for name, values in (
        ("source", source), ("target", target), ("source_ordinal", source_ordinal),
        ("target_ordinal", target_ordinal),
        ("category", flows.columns["category"].take(arrows.source)),
    ):  # fmt: skip
        worker.check()
        columns.writer(f"flows.{name}").append(values.take(order))
    target = target.take(order)
    number = np.arange(len(target), dtype=np.uint32)
    order, _ = loops.order(every, target.astype(np.int64), None, number)
    columns.writer("flows.by_target").append(number if order is None else order)


def correlations(batches: NumberedBatches, scratch: Scratch) -> tuple[Correlations, BuildJob]:
    """Return room for the correlations of all events, and the job that fills it."""
    some = [number for number, batch in enumerate(batches.batches) if "correlation" in batch.promoted]
    ends = np.cumsum([len(batches.batches[number].promoted["correlation"].ordinals) for number in some])
    size = int(ends[-1]) if some else 0
    ordinal, value = scratch.array(size, "u4"), scratch.array(size, "i8")

    def fill(worker: Worker) -> None:
        for number, end in zip(some, ends.tolist()):
            worker.check()
            column = batches.batches[number].promoted["correlation"]
            own = slice(end - len(column.ordinals), end)
            ordinal[own] = column.ordinals
            ordinal[own] += np.uint32(batches.first_ordinal[number])
            value[own] = column.values

    return Correlations(ordinal, value), fill
