"""Sorting by several keys of which the first nearly decides: one fast sort, then only the ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ingest.columns import I64, AnyArray

_WORD = 64


def order_by(first: AnyArray, *rest: AnyArray) -> I64:
    """Return the order by `first`, ties by the further keys in turn, then by place."""
    order, ordered = _sorted(first)
    same = ordered[1:] == ordered[:-1]
    if rest and bool(same.any()):
        _settle(order, same, rest)
    return order


def grouped_by(some: I64, first: AnyArray, *rest: AnyArray) -> tuple[I64, I64]:
    """Return these entries by `first`, ties by the further keys in turn, then by place; and where in that
    order each group of equal `first` begins. Keys are those of all entries.
    """
    order, ordered = _sorted(first.take(some))
    order = some.take(order)
    same = ordered[1:] == ordered[:-1]
    if bool(same.any()):
        _settle(order, same, rest)
    return order, np.flatnonzero(np.concatenate((np.ones(min(1, len(some)), np.bool_), ~same)))


def settle_ties(ordered: AnyArray, *rest: AnyArray) -> I64 | None:
    """Return the order by an ascending key, ties by the further keys in turn; None if it is that already."""
    order = np.arange(len(ordered))
    return order if _settle(order, ordered[1:] == ordered[:-1], rest) else None


def _sorted(key: AnyArray) -> tuple[I64, AnyArray]:
    """Return the stable order by a key of integers, and something in that order that is equal where the key
    is.
    """
    n = len(key)
    if n < 2:
        return np.arange(n), key
    low, places = int(key.min()), (n - 1).bit_length()
    if (int(key.max()) - low).bit_length() + places > _WORD:
        order = np.argsort(key, kind="stable")
        return order, key[order]
    # Key and place in one word: numpy sorts numbers several times as fast as it finds their order.
    packed = (key.astype(np.int64) - low).view(np.uint64)
    packed <<= np.uint64(places)
    packed |= np.arange(n, dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64((1 << places) - 1)).view(np.int64)
    packed >>= np.uint64(places)
    return order, packed


def _settle(order: I64, same: AnyArray, rest: tuple[AnyArray, ...]) -> bool:
    """Put what is the same as its neighbour in order of the further keys; tell whether anything moved."""
    alone = np.concatenate(([True], ~same, [True]))
    pairs = np.flatnonzero(alone[:-2] & same & alone[2:])
    moved = False
    if len(pairs):
        one, other = order[pairs], order[pairs + 1]
        swapped = np.zeros(len(pairs), np.bool_)
        for key in rest[::-1]:
            a, b = key[one], key[other]
            swapped = (a > b) | ((a == b) & swapped)
        which = np.flatnonzero(swapped)
        order[pairs[which]], order[pairs[which] + 1] = other[which], one[which]
        moved = len(which) > 0
    more = ~(alone[:-1] & alone[1:])
    more[pairs] = more[pairs + 1] = False
    many = np.flatnonzero(more)
    if len(many):
        some = order[many]
        run = np.cumsum(alone[:-1])[many]
        settled = some[np.lexsort((*(key[some] for key in rest[::-1]), run))]
        moved = moved or bool((settled != some).any())
        order[many] = settled
    return moved


def by_small_key(key: AnyArray, greatest: int) -> I64:
    """Return the stable order by a key of 0..greatest; a radix sort where the key fits 16 bits."""
    dtype: Any = np.uint16 if greatest < 1 << 16 else np.uint32
    if greatest < 1 << 8:
        dtype = np.uint8
    return np.argsort(key.astype(dtype), kind="stable")


def concatenated_ranges(first: I64, count: I64) -> I64:
    """Return first[0], first[0]+1, … for count[0] values, then those of the next range, and so on."""
    total = int(count.sum())
    if total == 0:
        return np.zeros(0, np.int64)
    shift = np.repeat(first - np.concatenate(([0], np.cumsum(count)[:-1])), count)
    return np.asarray(shift + np.arange(total), np.int64)


def group_numbers(*ordered: AnyArray) -> I64:
    """Return for entries in order the number of their distinct key, ascending from 0."""
    changed = np.zeros(len(ordered[0]), np.bool_)
    for key in ordered:
        changed[1:] |= key[1:] != key[:-1]
    return np.cumsum(changed)


def run_starts(*ordered: AnyArray) -> I64:
    """Return where each run of equal keys begins."""
    n = len(ordered[0])
    begins = np.zeros(n, np.bool_)
    begins[:1] = True
    for key in ordered:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)
