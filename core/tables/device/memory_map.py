"""How a device's memory lies: segments and their blocks as a snapshot has them, what of them is free, and how
far the free memory is in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import I64, add_at, sum_of
from ...base.kineto import BLOCK_RECORD, SEGMENT_RECORD
from ...base.units import count_of, format_bytes, format_share
from ...index.format import RowKind
from ...index.store import Index
from ...query.lookup import lanes_of, promoted_of
from ...trace.devices import devices, rank_of
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table
from ..host.allocators import allocator_keys, allocator_title, allocators_device, type_and_id

CELLS = 24
"""Characters of the picture of a segment."""
FULL, PARTLY, EMPTY = "█", "▒", "·"
STATES = ("allocated", "awaiting free", "free")
ALLOCATED, AWAITING, FREE = range(3)
"""Places of the states in STATES."""

SEGMENTS = TableSchema(
    "memory_segments",
    "Segments",
    (
        Column("rank", "rank", "text"),
        Column("allocator", "allocator", "text"),
        Column("name", "kind", "text"),
        Column("stream", "stream", "id"),
        Column("bytes", "size", "bytes"),
        Column("in_use_bytes", "in use", "bytes"),
        Column("rounding_bytes", "rounding", "bytes"),
        Column("awaiting_bytes", "awaiting free", "bytes"),
        Column("free_bytes", "free", "bytes"),
        Column("largest_free_bytes", "largest free", "bytes", statistic=True),
        Column("free_blocks", "free blocks", "count"),
        Column("blocks", "blocks", "count"),
        Column("map", "map", "text"),
        Column("address", "address", "text"),
    ),
    keys=("rank", "allocator", "address"),
    chief=("name", "bytes", "free_bytes", "largest_free_bytes", "map"),
)


@dataclass(frozen=True, eq=False)
class MemoryMap:
    """The segments of one device, in order of addresses, and their blocks; columns, bytes."""

    source: int
    rank: int
    title: str
    kinds: tuple[str, ...]
    streams: I64
    addresses: I64
    sizes: I64
    block_segments: I64  # which segment each block is part of
    block_addresses: I64
    block_sizes: I64
    block_in_use: I64
    block_states: I64  # places in STATES

    @property
    def free(self) -> I64:
        """The sizes of the free blocks."""
        sizes: I64 = self.block_sizes[self.block_states == FREE]
        return sizes

    def free_of_segments(self) -> I64:
        sums = np.zeros(len(self.sizes), np.int64)
        own = self.block_states == FREE
        add_at(sums, self.block_segments[own], self.block_sizes[own])
        return sums

    def blocks_of(self, segment: int) -> slice:
        """Return which blocks are part of a segment."""
        return slice(*np.searchsorted(self.block_segments, [segment, segment + 1]).tolist())


def memory_maps(scope: Scope) -> list[MemoryMap]:
    """Return the maps of the devices of a scope; none where no snapshot tells."""
    return [one for source in scope.sources for one in _of_source(scope, source)]


def _of_source(scope: Scope, source: int) -> Iterator[MemoryMap]:
    index = scope.trace.indexes[source]
    segments, kinds = _named(scope, source, SEGMENT_RECORD)
    blocks, states = _named(scope, source, BLOCK_RECORD)
    if not len(segments):
        return
    keys, block_keys = allocator_keys(index, segments), allocator_keys(index, blocks)
    all_states = np.array([STATES.index(state) for state in states], np.int64)
    there = [device for device in devices(scope.trace) if device.source == source]
    for key in sorted(set(keys.tolist())):
        own, own_blocks = keys == key, block_keys == key
        columns = _numbers(index, segments[own], "addr", "bytes", "stream")
        order = np.argsort(columns[0], kind="stable")
        addresses, sizes, streams = (column[order] for column in columns)
        columns = _numbers(index, blocks[own_blocks], "addr", "bytes", "total_allocated")
        in_order = np.argsort(columns[0], kind="stable")
        block_addresses, block_sizes, in_use = (column[in_order] for column in columns)
        within = np.searchsorted(addresses, block_addresses, "right") - 1
        pair = type_and_id(key)
        yield MemoryMap(
            source,
            rank_of(index, source),
            allocator_title(pair, allocators_device(there, pair), both=False),
            tuple(kinds[at] for at in np.flatnonzero(own)[order].tolist()),
            streams,
            addresses,
            sizes,
            np.maximum(within, 0),
            block_addresses,
            block_sizes,
            in_use,
            all_states[own_blocks][in_order],
        )


def _named(scope: Scope, source: int, name: str) -> tuple[I64, list[str]]:
    """Return the instants whose names begin with a word, and the rest of their names."""
    index = scope.trace.indexes[source]
    texts = {n: index.string(n) for n in index.string_numbers(name, inside=True)}
    numbers = np.array([n for n, text in texts.items() if text.startswith(name)], np.uint32)
    names = index.column("instants.name")
    rows = np.flatnonzero(np.isin(names, numbers)) if len(numbers) else np.empty(0, np.int64)
    rows = rows[scope.has_lanes(source, lanes_of(index, rows, RowKind.INSTANTS))] if len(rows) else rows
    return rows, [texts[n].removeprefix(name).strip() for n in names[rows].tolist()]


def _numbers(index: Index, rows: I64, *keys: str) -> list[I64]:
    return [promoted_of(index, key, rows, of="instant") for key in keys]


def segment_table(scope: Scope, limit: int) -> Table:
    """Return a row per segment, the most free memory first; `limit` of each device."""
    rows: list[dict[str, Any]] = []
    notes = []
    for one in memory_maps(scope):
        largest_first = np.argsort(-one.free_of_segments(), kind="stable")
        rows += [_row(one, number) for number in largest_first[:limit].tolist()]
        notes.append(_fragmentation(one))
        if len(largest_first) > limit:
            rest = sum_of(one.sizes[largest_first[limit:]])
            more = len(largest_first) - limit
            notes.append(f"{one.title}: {more:,} more, {format_bytes(rest)}, are not listed")
    return Table.from_rows(SEGMENTS, scope.text, rows, notes=notes)


def _row(one: MemoryMap, number: int) -> dict[str, Any]:
    own = one.blocks_of(number)
    states, sizes, in_use = one.block_states[own], one.block_sizes[own], one.block_in_use[own]
    allocated, awaiting, free = (sizes[states == state] for state in (ALLOCATED, AWAITING, FREE))
    return {
        "rank": str(one.rank),
        "allocator": one.title,
        "name": one.kinds[number],
        "stream": int(one.streams[number]),
        "bytes": int(one.sizes[number]),
        "in_use_bytes": sum_of(in_use),
        "rounding_bytes": sum_of(allocated) - sum_of(in_use),
        "awaiting_bytes": sum_of(awaiting),
        "free_bytes": sum_of(free),
        "largest_free_bytes": int(free.max(initial=0)),
        "free_blocks": len(free),
        "blocks": len(sizes),
        "map": _picture(one, number),
        "address": f"{int(one.addresses[number]):#x}",
    }


def _picture(one: MemoryMap, number: int) -> str:
    """Return how full each part of a segment is, from its first address to its last."""
    own = one.blocks_of(number)
    size = max(1, int(one.sizes[number]))
    edges = np.linspace(0, size, CELLS + 1)
    held = one.block_states[own] != FREE
    begins = (one.block_addresses[own][held] - one.addresses[number]).astype(np.float64)
    lengths = one.block_sizes[own][held].astype(np.float64)
    # How much is held below each edge: whole blocks, and the part of the one that the edge lies in.
    sums = np.concatenate([[0.0], np.cumsum(lengths)])
    at = np.searchsorted(begins, edges, "right") - 1
    last = np.maximum(at, 0)
    part = np.clip(edges - begins[last], 0, lengths[last]) if len(begins) else np.zeros(CELLS + 1)
    below = np.where(at >= 0, sums[last] + part, 0.0) if len(begins) else part
    shares = np.diff(below) / (size / CELLS)
    return "".join(EMPTY if share < 0.01 else FULL if share > 0.99 else PARTLY for share in shares)


def _fragmentation(one: MemoryMap) -> str:
    free, reserved = one.free, sum_of(one.sizes)
    words = f"{one.title}: {format_bytes(reserved)} in {count_of(len(one.sizes), 'segment')}"
    if not len(free):
        return f"{words}, none of it free"
    share = format_share(int(free.max()) / max(1, sum_of(free)))
    return (
        f"{words}; {format_bytes(sum_of(free))} free in {count_of(len(free), 'block')}, the largest "
        f"{format_bytes(int(free.max()))}: {share} of what is free"
    )
