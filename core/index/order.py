"""Sorting by several keys of which the first nearly decides: one fast sort, then only the ties."""

from __future__ import annotations

import numpy as np

from ..ingest.columns import I64, AnyArray


def order_by(first: AnyArray, *rest: AnyArray) -> I64:
    """Return the order by `first`, ties by the further keys in turn (all distinct altogether, else
    unstable).
    """
    order = np.argsort(first)
    ordered = first[order]
    same = np.concatenate(([False], ordered[1:] == ordered[:-1], [False]))
    tied = np.flatnonzero(same[1:] | same[:-1])
    if len(tied):
        some = order[tied]
        order[tied] = some[np.lexsort((*(key[some] for key in rest[::-1]), ordered[tied]))]
    return order


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
