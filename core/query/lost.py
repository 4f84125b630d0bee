"""Which calls started device work that is not in the file, and which device work has lost its times.

A call starts work by its name (`started_work`), or because most calls of its name have work in this file. Its
work is known by flow or correlation (`Launches`); without any, the call is lost, unless

- nothing could join it to its work: it has no correlation id; of an AIU's calls, whose arrows alone tell
  compute from other control blocks, no arrow leads nowhere, and most of its name have no work either
- a graph is being captured: what is launched meanwhile is recorded into the graph, and does not run
- it lies in, or around, another such call that has work: a driver's call in that of the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, U32, AnyArray, distinct
from ..base.kineto import CAPTURE_BEGINS, CAPTURE_ENDS, LAUNCH_FLOWS, RUNTIME, started_work
from ..base.vendors import VENDORS
from ..index.format import NONE, SliceFlag
from ..index.store import Index
from .groups import dense
from .launches import Launches

MAX = 0.5
"""Calls of a name that no table knows start work where at least this share of them has some."""
BY_ARROWS = tuple(vendor.call_prefix for vendor in VENDORS if vendor.call_prefix)
"""How names of calls begin whose work arrows alone tell."""


@dataclass(frozen=True, eq=False)
class StartingCalls:
    """The n calls of a source that start device work, by start."""

    positions: I64
    is_lost: AnyArray  # none of its work is in the file

    def __len__(self) -> int:
        return len(self.positions)


def starting_calls(index: Index, launches: Launches) -> StartingCalls:
    """Return the calls that start device work and whether it is there, by the rules of this file."""
    calls = _calls(index)
    name, numbers = dense(index.column("slices.name")[calls])
    texts = index.strings(numbers)
    captured = _captured(
        index, calls, *(_matching(texts, name, one) for one in (CAPTURE_BEGINS, CAPTURE_ENDS))
    )
    has_work = np.isin(calls, launches.launch[launches.is_called])
    share = np.bincount(name, has_work) / np.maximum(1, np.bincount(name))
    starts_work = np.array([started_work(text) is not None for text in texts], np.bool_) | (share >= MAX)
    expected = np.ones(len(calls), np.bool_)
    if len(launches.kernels):
        holders = index.column("promoted.correlation.position")
        expected = np.isin(calls, holders[index.column("promoted.correlation.value") != 0])
    flows = index.read_report.get("flows", {})  # logs and counters have none
    if not any(int(flows[kind]["orphan_starts"]) for kind in flows if kind in LAUNCH_FLOWS):
        expected &= ((share >= MAX) | ~np.array([text.startswith(BY_ARROWS) for text in texts], np.bool_))[
            name
        ]
    rows = np.flatnonzero(starts_work[name] & (has_work | (expected & ~captured)))
    rows = rows[~_is_nested(index, calls[rows], has_work[rows])]
    rows = rows[np.argsort(index.column("slices.start")[calls[rows]], kind="stable")]
    return StartingCalls(calls[rows], ~has_work[rows])


def capture_windows(begun: I64, ended: I64) -> tuple[I64, I64]:
    """Return from when to when graphs are captured, ascending: from each begin to the next end, on any
    thread; nothing of a begin that no end follows.
    """
    low, stops = np.sort(begun), np.sort(ended)
    at = np.searchsorted(stops, low)
    is_ended = at < len(stops)
    return low[is_ended], stops[at[is_ended]]


def untimed_work(index: Index, launches: Launches) -> U32:
    """Return the positions, ascending, of device work whose times are lost: it stands at 0 in the file though
    its launch or all of the host does not, or its time was too large to keep.
    """
    kernels = launches.kernels
    at_zero = np.flatnonzero(index.column("slices.start")[kernels] == 0)
    if len(at_zero):
        called = launches.launch[at_zero]
        known = launches.is_called[at_zero]
        starts_of_calls = index.column("slices.start")[_calls(index)]
        first = int(starts_of_calls.min()) if len(starts_of_calls) else 0
        begun = np.full(len(at_zero), first, np.int64)
        begun[known] = index.column("slices.start")[called[known]]
        at_zero = at_zero[begun > 0]
    flags = index.column("flags.value") & SliceFlag.CLAMPED > 0
    is_lost = np.isin(kernels, index.column("flags.position")[flags])
    is_lost[at_zero] = True
    return distinct(kernels[is_lost]).astype(np.uint32)


def _calls(index: Index) -> I64:
    is_call = np.array([category in RUNTIME for category in index.categories], np.bool_)
    positions: I64 = np.flatnonzero(is_call[index.column("slices.category")])
    return positions


def _matching(texts: Sequence[str], name: I64, pattern: re.Pattern[str]) -> AnyArray:
    """Return which rows have a name that fits whole."""
    return np.array([pattern.fullmatch(text) is not None for text in texts], np.bool_)[name]


def _ends(index: Index, positions: AnyArray) -> I64:
    ends: I64 = index.column("slices.start")[positions] + index.duration(positions)
    return ends


def _is_nested(index: Index, calls: I64, has_work: AnyArray) -> AnyArray:
    """Return which of the calls have no work and lie in another one, or hold one that has work."""
    above = index.column("slices.parent")[calls]
    inside = (above != NONE) & np.isin(above, calls)
    inside[inside] = _ends(index, calls[inside]) <= _ends(index, above[inside])
    nested: AnyArray = ~has_work & (inside | np.isin(calls, above[has_work]))
    return nested


def _captured(index: Index, calls: I64, begins: AnyArray, ends: AnyArray) -> AnyArray:
    """Return which calls begin while a graph is being captured, on any thread; of all calls some begin and
    some end that.
    """
    start = index.column("slices.start")[calls]
    low, high = capture_windows(start[begins], start[ends])
    at = np.searchsorted(low, start, "right") - 1
    return np.asarray((at >= 0) & (start < np.append(high, 0)[at]))
