"""What the accelerators of a scope do: the slices of device work as columns, told apart by stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.kineto import work_of_categories
from ..index.flex import flex_work, is_flex
from ..index.store import Index
from .devices import Device, allocations_of, devices, flex_rank, kernel_types, lane_categories
from .groups import category_mask
from .scope import Scope
from .slices import Slices

KindRule: TypeAlias = Callable[[Index, AnyArray, AnyArray], AnyArray]
"""(index, names, categories) -> indexes into KERNEL_TYPES; 255 for slices of no type."""


@dataclass(frozen=True, eq=False)
class Work(Slices):
    """The work of one device in a scope by position, times cut to its range; `streams` are indexes into
    `stream_names`.
    """

    COLUMNS: ClassVar = (*Slices.COLUMNS, "streams")

    device: Device
    rank: int
    streams: AnyArray
    stream_names: tuple[str, ...]

    @property
    def number(self) -> int | str:
        """The device's number by its label, else by its slices, else the pid of its process."""
        if self.device.number is not None:
            return self.device.number
        numbers, has = promoted_values(self.index, "device", self.positions[:1])
        return int(numbers[0]) if has.any() else self.device.pid

    @property
    def title(self) -> str:
        """What tables call the device: "GPU 0", without a label "device 0"."""
        labelled = self.device.label != "device"
        return self.device.label if labelled else f"device {self.number}"

    def kinds(self, rule: KindRule = kernel_types) -> AnyArray:
        """Return the type of each slice as an index into KERNEL_TYPES; the rule runs once for each distinct
        (name, category).
        """
        names, numbers = self.distinct_names
        width = len(self.index.categories)
        keys = names.astype(np.int64) * width + self.categories
        present = np.zeros(max(1, len(numbers) * width), np.bool_)
        present[keys] = True
        pairs = np.flatnonzero(present)
        table = np.zeros(len(present), np.uint8)
        if len(pairs):
            table[pairs] = rule(self.index, numbers[pairs // width], (pairs % width).astype(np.uint32))
        return table[keys]

    def by_stream(self) -> Iterator[tuple[str, I64]]:
        """Yield each stream's name and the indexes of its slices, by start."""
        for number, name in enumerate(self.stream_names):
            rows = np.flatnonzero(self.streams == number)
            if not len(rows):
                continue
            # Each row is sorted by itself: a stable sort only merges them.
            yield name, rows[np.argsort(self.starts[rows], kind="stable")]


def work_of(scope: Scope) -> tuple[Work, ...]:
    """Return the work of each device that did any in a scope, in display order."""
    result = []
    for device in devices(scope.trace):
        if scope.source is not None and scope.source != device.source:
            continue
        lanes = device.lanes if scope.lanes is None else tuple(set(device.lanes) & set(scope.lanes))
        work = _gather(replace(scope, lanes=lanes, source=device.source), device)
        if len(work):
            result.append(work)
    return tuple(result)


def _gather(scope: Scope, device: Device) -> Work:
    index = scope.trace.indexes[device.source]
    present = set().union(*(lane_categories(index, scope.trace.lanes[at].rows) for at in device.lanes))
    is_work = category_mask(index, work_of_categories(present))
    no_work = np.empty(0, np.uint32) if scope.allocations else allocations_of(index)
    only = flex_work(index) if is_flex(index) else None
    parts: list[tuple[AnyArray, ...]] = []
    for chunk in scope.chunks():
        keep = is_work[chunk.categories]
        if len(no_work):
            keep &= ~np.isin(chunk.names, no_work)
        if only is not None:
            keep &= np.isin(chunk.names, only)
        columns = (
            chunk.positions.astype(np.uint32),
            chunk.starts,
            chunk.ends,
            chunk.names,
            chunk.categories,
            _stream_keys(index, chunk.positions, chunk.lanes),
        )
        parts.append(columns if keep.all() else tuple(column[keep] for column in columns))
    if not parts:
        none = np.empty(0, np.int64)
        parts = [(none.astype(np.uint32), none, none, none.astype(np.uint32), none.astype(np.uint8), none)]
    positions, starts, ends, names, categories, keys = (np.concatenate(c) for c in zip(*parts))
    streams, numbers = _streams(keys)
    tids = [f"tid {scope.trace.lanes[key >> 1].tid}" if not key & 1 else str(key >> 1) for key in numbers]
    rank = scope.trace.rank(device.source)
    if rank is None:
        own = flex_rank(device.pid) if only is not None else None
        rank = rank_of(index, device.source) if own is None else own
    shared = (device.source, index, positions, starts, ends, names, categories)
    return Work(*shared, device, rank, streams, tuple(tids))


def _stream_keys(index: Index, positions: I64, lanes: I64) -> I64:
    """Return the key of each slice's stream: its `stream` argument, else its lane."""
    values, has = promoted_values(index, "stream", positions)
    return np.where(has, values << 1 | 1, lanes << 1)


def _streams(keys: I64) -> tuple[AnyArray, list[int]]:
    """Return the index of each key among the distinct ones, and the distinct keys; keys come in long runs."""
    if not len(keys):
        return np.empty(0, np.uint16), []
    runs = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    numbers, which = np.unique(keys[runs], return_inverse=True)
    size = np.min_scalar_type(len(numbers))
    return np.repeat(which.astype(size), np.diff(np.append(runs, len(keys)))), numbers.tolist()


def promoted_values(index: Index, key: str, positions: AnyArray) -> tuple[I64, AnyArray]:
    """Return (a promoted integer of each slice, whether it has one); positions ascend."""
    known, values = index.column(f"promoted.{key}.position"), index.column(f"promoted.{key}.value")
    count = len(positions)
    if not len(known) or not count:
        return np.zeros(count, np.int64), np.zeros(count, np.bool_)
    keys = positions.astype(np.uint32, copy=False)
    low = int(np.searchsorted(known, keys[0]))
    if low + count <= len(known) and np.array_equal(known[low : low + count], keys):
        return values[low : low + count].astype(np.int64), np.ones(count, np.bool_)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return values[at].astype(np.int64), known[at] == keys


def rank_of(index: Index, source: int) -> int:
    """Return the rank that a file names, else the number of the source."""
    envelope: Any = index.manifest.get("envelope") or {}
    distributed = envelope.get("distributedInfo") if isinstance(envelope, dict) else None
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else source
