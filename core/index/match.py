"""Matching begins with ends: B with E on a thread, b with e (S with F) within an async id.

An end closes the innermost begin that is still open; names are not compared. Done for all stacks at once by
counting: the level of a begin is the number of begins open after it, and in each level begins and ends
alternate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ingest.columns import I64, AnyArray
from .order import by_small_key, group_numbers, run_starts


@dataclass(frozen=True)
class Matches:
    """Indices into the input: begin[i] is closed by end[i]; the rest have no partner. All ascending by
    begin.
    """

    begin: I64
    end: I64
    unclosed: I64
    unmatched: I64


def match(opens: npt.NDArray[np.bool_], stack: I64 | None = None) -> Matches:
    """Match begins (True) with ends (False), given in the order in which they happen.

    `stack` tells stacks apart: a number per event, never falling; None means that there is one stack only.
    """
    n = len(opens)
    level = np.cumsum(np.where(opens, 1, -1)).astype(np.int64)
    if stack is not None and n:
        first = run_starts(stack)
        before = np.concatenate(([0], level))[first]
        sizes = np.diff(np.append(first, n))
        # Each stack counts from zero, and far below the one before it, so that one running minimum serves
        # all.
        drop = np.arange(len(first)) * (2 * n + 2)
        level -= np.repeat(before, sizes)
        floor = np.minimum.accumulate(level - np.repeat(drop, sizes)) + np.repeat(drop, sizes)
    else:
        floor = np.minimum.accumulate(level) if n else level
    floor = np.minimum(floor, 0)
    deepest = np.concatenate(([0], floor[:-1]))
    if stack is not None and n:
        deepest[first] = 0
    unmatched = ~opens & (floor < deepest)
    level -= floor
    level += ~opens  # an end has the level of the begin it closes
    kept = np.flatnonzero(~unmatched)
    order = kept[by_small_key(level[kept], int(level.max(initial=0)))]
    if stack is not None:
        order = order[np.argsort(stack[order], kind="stable")]
    is_begin = opens[order]
    paired = is_begin[:-1] & ~is_begin[1:]
    begin, end = order[:-1][paired], order[1:][paired]
    by_begin = np.argsort(begin)
    closed = np.zeros(n, np.bool_)
    closed[begin] = True
    return Matches(begin[by_begin], end[by_begin], np.flatnonzero(opens & ~closed), np.flatnonzero(unmatched))


def sorted_groups(keys: Sequence[AnyArray], within: Sequence[AnyArray]) -> tuple[I64, I64]:
    """Return (order, group): the order by `keys`, then by `within`, the first key the most significant; and
    for each entry of that order the number, ascending from 0, of its distinct `keys`.
    """
    n = len(keys[0])
    order = np.lexsort((*within[::-1], *keys[::-1])) if n else np.zeros(0, np.int64)
    return order, group_numbers(*(key[order] for key in keys))
