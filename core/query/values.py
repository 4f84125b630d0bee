"""One argument of many slices: out of the lifted columns where it is lifted, else read from the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from ..base.progress import CancelledCallback, never
from ..index.blockstore import read_blocks
from ..index.store import Index
from ..read.promoted import Kind
from .args import LARGEST, arguments_in, elements_of
from .lifted_terms import promoted_argument


def argument_values(
    index: Index, key: str, positions: AnyArray, cancelled: CancelledCallback = never
) -> list[Any]:
    """Return the value of an argument for each of these slices, None where a slice has none.

    Of a slice made of two events the begin event's counts. Every block that holds one of the slices is read
    unless the argument is lifted. Raises UnreadableError when the source has gone or changed, Cancelled.
    """
    result: list[Any] = [None] * len(positions)
    promoted = promoted_argument(key)
    if promoted is not None:
        known = index.column(f"lifted.{promoted.key}.position")
        values = index.column(f"lifted.{promoted.key}.value")
        _, here, there = np.intersect1d(positions, known, return_indices=True)
        for place, value in zip(here.tolist(), values[there].tolist()):
            result[place] = index.string(value) if promoted.kind is Kind.TEXT else value
        return result
    needle = key.encode("utf-8", "replace")
    for place, arguments in arguments_read(index, positions, cancelled, needle):
        result[place] = arguments.get(key)
    return result


def arguments_read(
    index: Index, positions: AnyArray, cancelled: CancelledCallback = never, needle: bytes = b""
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (place among the positions, arguments of the begin event) of slices as their blocks are read.

    Blocks in which `needle` cannot stand are passed over. Raises as argument_values does.
    """
    ordinals = index.column("slices.ordinal")[positions].astype(np.int64)
    order = np.argsort(ordinals, kind="stable")
    ordered = ordinals[order]
    firsts = index.column("blocks.ordinal").astype(np.int64)
    begins = np.searchsorted(ordered, firsts)
    ends = np.searchsorted(ordered, firsts + index.column("blocks.count").astype(np.int64))
    blocks = np.flatnonzero((ends > begins) & (index.column("blocks.length") <= LARGEST))
    blocks = blocks[np.argsort(index.column("blocks.offset")[blocks], kind="stable")]
    for block, data in read_blocks(index, blocks.tolist(), cancelled):
        repaired = bool(index.column("blocks.repaired")[block])
        if not repaired and needle not in data and b"\\" not in data:
            continue
        elements = elements_of(data, repaired)
        places = slice(int(begins[block]), int(ends[block]))
        for ordinal, place in zip(ordered[places].tolist(), order[places].tolist()):
            at_block = ordinal - int(firsts[block])
            event = elements[at_block] if at_block < len(elements) else None
            if isinstance(event, dict):
                yield place, arguments_in(event)
