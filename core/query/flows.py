"""The arrows into and out of a slice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, AnyArray
from ..index.format import NONE
from ..index.store import SCAN_CHUNK, Index

MAX_COUNTED = 1 << 17
"""Flows into one row that are looked at: a frame must not depend on their number."""


class Flow(NamedTuple):
    """One arrow; positions are None where its end lies in no slice."""

    category: str
    source_position: int | None
    target_position: int | None


def flows_out(index: Index, position: int, limit: int | None = None) -> list[Flow]:
    """Return the flows that start in a slice, at most `limit`."""
    sources = index.column("flows.source")
    if not len(sources):
        return []
    low = int(np.searchsorted(sources, np.uint32(position), "left"))
    high = int(np.searchsorted(sources, np.uint32(position), "right"))
    if limit is not None:
        high = min(high, low + limit)
    return [flow(index, number) for number in range(low, high)]


def flows_in(index: Index, position: int, limit: int | None = None) -> list[Flow]:
    """Return the flows that end in a slice, at most `limit`."""
    order, targets = index.column("flows.by_target"), index.column("flows.target")
    low = first_into(targets, order, position)
    flows: list[Flow] = []
    while low < len(order) and (limit is None or len(flows) < limit):
        number = int(order[low])
        if int(targets[number]) != position:
            break
        flows.append(flow(index, number))
        low += 1
    return flows


def first_into(targets: AnyArray, order: AnyArray, position: int) -> int:
    """Return the index in `order` (flows by target) of the first flow into this position or a later one."""
    low, high = 0, len(order)
    while low < high:  # by hand: searchsorted with a sorter would copy the whole column
        middle = (low + high) // 2
        if int(targets[int(order[middle])]) < position:
            low = middle + 1
        else:
            high = middle
    return low


def flow(index: Index, number: int) -> Flow:
    source = int(index.column("flows.source")[number])
    target = int(index.column("flows.target")[number])
    return Flow(
        index.categories[int(index.column("flows.category")[number])],
        None if source == NONE else source,
        None if target == NONE else target,
    )


def flows_of_ranges(index: Index, ranges: list[tuple[int, int]]) -> I64:
    """Return the numbers of the flows with an end in one of these disjoint ranges of positions, each once;
    only those that have both ends, in different slices.
    """
    sources, targets = index.column("flows.source"), index.column("flows.target")
    order = index.column("flows.by_target")
    lows = np.array([low for low, _ in ranges], np.int64)
    highs = np.array([high for _, high in ranges], np.int64)
    flows: list[I64] = []
    for low, high in ranges:
        out = np.arange(*np.searchsorted(sources, np.array([low, high], sources.dtype)), dtype=np.int64)
        out = out[:MAX_COUNTED]
        flows.append(out[(targets[out] != NONE) & (targets[out] != sources[out])])
        first = first_into(targets, order, low)
        into = order[first : min(first_into(targets, order, high), first + MAX_COUNTED)].astype(np.int64)
        origin = sources[into].astype(np.int64)
        number = np.searchsorted(lows, origin, "right") - 1
        known = (number >= 0) & (origin < highs[number])
        flows.append(into[~known & (sources[into] != NONE)])
    return np.concatenate(flows) if flows else np.zeros(0, np.int64)


def flows_between(index: Index, slices: Iterable[I64 | slice]) -> I64:
    """Return the numbers of the flows whose both ends are among slices, given by position or as ranges."""
    count = index.length("slices.start")
    inside = np.zeros(count + 1, np.bool_)  # the last: an end in no slice
    for some in slices:
        inside[some] = True
    source, target = index.column("flows.source"), index.column("flows.target")
    flows = [np.zeros(0, np.int64)]
    for low in range(0, len(source), SCAN_CHUNK):
        both = np.ones(min(SCAN_CHUNK, len(source) - low), np.bool_)
        for ends in (source, target):
            both &= inside[np.minimum(ends[low : low + SCAN_CHUNK], count)]
        flows.append(low + np.flatnonzero(both))
    return np.concatenate(flows)
