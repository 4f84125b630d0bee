"""Arguments as columns: filter terms on promoted arguments, and one argument of many slices.

What the columns do not hold is read from the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, floor
from typing import Any

import numpy as np

from ..base.arrays import I64, U32, AnyArray, places_in
from ..base.kineto import GROUPS
from ..base.progress import CancelledCallback, never
from ..index.blockstore import read_blocks
from ..index.store import Index
from ..read.promoted import PROMOTED, Kind, Promoted
from .args import LARGEST, arguments_in, elements_of
from .filter import OPERATORS, Argument, Number
from .scan import holding


def compared(values: AnyArray, number: Number) -> AnyArray:
    """Return which numbers of an array fulfil a comparison, compared exactly."""
    target, compare = number.value, OPERATORS[number.op]
    if values.dtype.kind == "f":
        return np.asarray(compare(values, number.nearest))
    low, high = floor(target), ceil(target)
    limits = np.iinfo(values.dtype)
    if number.op == "=" and (low != high or not limits.min <= low <= limits.max):
        return np.zeros(len(values), bool)
    bound = low if number.op in (">", "<=", "=") else high
    if bound > limits.max or bound < limits.min:
        return np.full(len(values), (bound < limits.min) == (number.op in (">", ">=")))
    return np.asarray(compare(values, values.dtype.type(bound)))


class PromotedTerm:
    """A term of a filter, tested on the columns of one index.

    The columns cannot answer for slices of a category in which the argument is not promoted, nor for texts
    where numbers are expected: for those, `in_source` is the term to search the source for.
    """

    def __init__(self, index: Index, term: Argument, promoted: Promoted) -> None:
        """Test the column's values."""
        self.term = term
        self.in_source = term if term.key in promoted.args else replace(term, key=promoted.args[0])
        self.has: U32 = index.column(f"promoted.{promoted.key}.position")
        self.fitting = self._fitting(index, promoted)
        any_text = term.number is None and promoted.kind is not Kind.TEXT
        known = [not any_text and _group(category) in promoted.groups for category in index.categories]
        self._known = np.array(known, bool)  # per category: no value in the column, no argument

    def decided(self, positions: I64, categories: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return (whether the columns know, whether the term holds if they do) of positions, as booleans."""
        known: AnyArray = self._known.take(categories) | within(self.has, positions)
        return known, within(self.fitting, positions) != self.term.negated

    def _fitting(self, index: Index, promoted: Promoted) -> U32:
        """Return the positions whose value fits, ascending."""
        term = self.term
        if not len(self.has) or (term.number is None and term.text is None):
            return self.has
        values = index.column(f"promoted.{promoted.key}.value")
        texts = promoted.kind is Kind.TEXT
        if term.number is not None and not texts:
            fits_value: U32 = self.has[compared(values, term.number)]
            return fits_value
        distinct, which = np.unique(values, return_inverse=True)
        fits = holding(term, [index.string(value) if texts else value for value in distinct.tolist()])
        fitting: U32 = self.has[np.array(fits, bool)[which]]
        return fitting


def promoted_argument(key: str) -> Promoted | None:
    """Return the promoted argument that a key names, by its own name or the file's; None for others."""
    for promoted in PROMOTED:
        if promoted.args != ("",) and (key == promoted.key or key in promoted.args):
            return promoted
    return None


def within(values: U32, positions: I64) -> AnyArray:
    """Return whether each position (ascending) is one of the values (ascending), as booleans."""
    inside = np.zeros(len(positions), bool)
    if len(positions) and len(values):
        low, high = np.searchsorted(values, np.array([positions[0], positions[-1] + 1], np.uint32))
        part = values[low:high].astype(np.int64)
        if len(positions) == int(positions[-1]) - int(positions[0]) + 1:
            inside[part - positions[0]] = True
        elif len(part):
            inside = places_in(part, positions) >= 0
    return inside


def _group(category: str) -> str:
    return next((group for group, categories in GROUPS.items() if category in categories), "other")


def argument_values(index: Index, key: str, positions: AnyArray) -> list[Any]:
    """Return the value of an argument for each of these slices, None where a slice has none.

    For a slice made of two events it is that of the begin event. Unless the argument is promoted, every block
    with one of the slices is read. Raises UnreadableError when the source has gone or changed.
    """
    result: list[Any] = [None] * len(positions)
    promoted = promoted_argument(key)
    if promoted is not None:
        known = index.column(f"promoted.{promoted.key}.position")
        values = index.column(f"promoted.{promoted.key}.value")
        _, here, there = np.intersect1d(positions, known, return_indices=True)
        for at, value in zip(here.tolist(), values[there].tolist()):
            result[at] = index.string(value) if promoted.kind is Kind.TEXT else value
        return result
    needle = key.encode("utf-8", "replace")
    for at, arguments in arguments_read(index, positions, never, needle):
        result[at] = arguments.get(key)
    return result


def arguments_read(
    index: Index, positions: AnyArray, cancelled: CancelledCallback = never, needle: bytes = b""
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (index in `positions`, arguments of the begin event) of slices as their blocks are read.

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
        in_block = slice(int(begins[block]), int(ends[block]))
        for ordinal, at in zip(ordered[in_block].tolist(), order[in_block].tolist()):
            at_block = ordinal - int(firsts[block])
            event = elements[at_block] if at_block < len(elements) else None
            if isinstance(event, dict):
                yield at, arguments_in(event)
