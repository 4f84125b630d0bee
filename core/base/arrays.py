"""Types of numpy arrays that columns have; groups of equal keys and ranges in them, without a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

U8: TypeAlias = npt.NDArray[np.uint8]
U16: TypeAlias = npt.NDArray[np.uint16]
U32: TypeAlias = npt.NDArray[np.uint32]
U64: TypeAlias = npt.NDArray[np.uint64]
I64: TypeAlias = npt.NDArray[np.int64]
F64: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]


def concatenated_ranges(first: I64, count: I64) -> I64:
    """Return first[0], first[0]+1, … for count[0] values, then those of the next range, and so on."""
    total = int(count.sum())
    if total == 0:
        return np.zeros(0, np.int64)
    shift = np.repeat(first - np.concatenate(([0], np.cumsum(count)[:-1])), count)
    return np.asarray(shift + np.arange(total), np.int64)


def added_up(values: I64, begins: I64) -> I64:
    """Return the sums of values from each beginning to the next, exact; beyond int64 they stay at its limits.

    Where numpy's own sums could wrap around, the upper and lower halves of the values are added up apart:
    [2^62, 2^62] is [2^30, 2^30] and [0, 0], of which the sum of the first does not fit 31 bits any more.
    """
    peak = max(int(values.max()), -int(values.min()))
    if peak * len(values) < 1 << 63:
        return np.asarray(np.add.reduceat(values, begins), np.int64)
    low = np.add.reduceat(values & 0xFFFFFFFF, begins)
    high = np.add.reduceat(values >> 32, begins) + (low >> 32)
    limits = np.iinfo(np.int64)
    sums = (high << 32) + (low & 0xFFFFFFFF)
    return np.where(high >= 1 << 31, limits.max, np.where(high < -(1 << 31), limits.min, sums))


def group_numbers(*ordered: AnyArray) -> I64:
    """Return for entries in order the number of their distinct key, ascending from 0."""
    changed = np.zeros(len(ordered[0]), np.bool_)
    for key in ordered:
        changed[1:] |= key[1:] != key[:-1]
    return np.cumsum(changed)


def sorted_groups(keys: Sequence[AnyArray], within: Sequence[AnyArray]) -> tuple[I64, I64]:
    """Return (order, group): the order by `keys`, then by `within`, the first key the most significant; and
    for each entry of that order the number, ascending from 0, of its distinct `keys`.
    """
    n = len(keys[0])
    order = np.lexsort((*within[::-1], *keys[::-1])) if n else np.zeros(0, np.int64)
    return order, group_numbers(*(key[order] for key in keys))


def run_starts(*ordered: AnyArray) -> I64:
    """Return where each run of equal keys begins."""
    n = len(ordered[0])
    begins = np.zeros(n, np.bool_)
    begins[:1] = True
    for key in ordered:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)
