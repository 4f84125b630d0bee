"""Ids that are used again: which of the host slices with an id launched a piece of device work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.arrays import I64, AnyArray, distinct
from .groups import dense

SAMPLE = 20_000
"""The most pieces of a device's work that are examined to find the process that launches them."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Host slices with an id, columns of equal length: what may have launched device work with that id."""

    ids: I64
    starts: I64  # lane time in ns
    processes: I64  # numbers in the process table

    @cached_property
    def shared_between_processes(self) -> bool:
        """Whether some id occurs in more than one process."""
        order = np.lexsort((self.processes, self.ids))
        ids, processes = self.ids[order], self.processes[order]
        return bool(((ids[1:] == ids[:-1]) & (processes[1:] != processes[:-1])).any())

    def of_process(self, process: int) -> I64:
        """Return the indices of one process's candidates."""
        indices: I64 = np.flatnonzero(self.processes == process)
        return indices


def latest_before(
    candidates: Candidates, ids: I64, times: I64, processes: I64 | None = None
) -> tuple[I64, AnyArray]:
    """Return per piece of work (index of its candidate or -1, whether that is doubtful).

    It is the candidate with the same id that starts last at or before `times`; where all start later, the
    first of them (doubtful). Where `processes` names a process that has the id, only its candidates count;
    where it has -1 and several processes have the id, the answer is doubtful. Two that start together are
    doubtful too; the first in order is taken.
    """
    if processes is None:
        return _latest(candidates.ids, candidates.starts, ids, times)
    width = int(candidates.processes.max(initial=0)) + 2
    codes, _ = dense(np.concatenate([candidates.ids, ids]))
    of_host, of_work = np.split(codes, [len(candidates.ids)])
    entry, doubtful = _latest(of_host, candidates.starts, of_work, times)
    inside, inside_doubtful = _latest(
        of_host * width + candidates.processes, candidates.starts, of_work * width + processes, times
    )
    several = np.bincount(distinct(of_host * width + candidates.processes) // width, minlength=len(codes))
    doubtful |= (several[of_work] > 1) & (processes < 0)
    own = (inside >= 0) & (processes >= 0)
    return np.where(own, inside, entry), np.where(own, inside_doubtful, doubtful)


def _latest(keys: I64, starts: I64, groups: I64, times: I64) -> tuple[I64, AnyArray]:
    """Return for each key in `groups` (index of its entry that starts last at or before a time, doubtful).

    Keys and starts become one sorted number (rank of the key, rank of the start), so that one binary search
    answers: with starts 10 and 90 of key 7, work at 50 finds 10, work at 5 finds none before it and takes 10.
    """
    if not len(keys):
        return np.full(len(groups), -1, np.int64), np.zeros(len(groups), np.bool_)
    moments = distinct(starts)
    width = len(moments) + 1
    code, names = dense(keys)
    combined = code * width + np.searchsorted(moments, starts)
    order = np.argsort(combined, kind="stable")
    combined = combined[order]
    of = np.minimum(np.searchsorted(names, groups), len(names) - 1)
    known = names[of] == groups
    # Rank of the last start at or before the time; 0 where all are later, as ranks begin at 0.
    rank = np.searchsorted(moments, times, "right") - 1
    at = np.searchsorted(combined, of * width + rank, "right") - 1
    before = (at >= 0) & (combined[np.maximum(at, 0)] // width == of) & (rank >= 0)
    first = np.searchsorted(combined, of * width)
    at = np.where(before, at, first)
    at = np.minimum(np.where(known, at, 0), len(combined) - 1)
    # Of entries that start together the first in order stands for all.
    entry = np.searchsorted(combined, combined[at])
    tied = (entry + 1 < len(combined)) & (combined[np.minimum(entry + 1, len(combined) - 1)] == combined[at])
    return np.where(known, order[entry], -1), known & (~before | tied)


def launching_process(
    candidates: Candidates,
    host_ordinals: AnyArray,
    ids: I64,
    times: I64,
    ordinals: AnyArray,
    by_flow: AnyArray | None,
) -> int:
    """Return the process that launches the work of one device, -1 where nothing tells.

    Where arrows (`by_flow`: the processes from which they come) say so, that one; else the process that has
    a call before most pieces of the work; of several alike, the one whose calls stand nearest in the file,
    as merged files hold one rank after the other.
    """
    if by_flow is not None and len(by_flow):
        return int(np.bincount(by_flow).argmax())
    step = max(1, len(ids) // SAMPLE)
    ids, times, ordinals = ids[::step], times[::step], ordinals[::step].astype(np.int64)
    scores: list[tuple[int, float, int]] = []
    for process in distinct(candidates.processes).tolist():
        own = candidates.of_process(process)
        entry, _ = _latest(candidates.ids[own], candidates.starts[own], ids, times)
        hit = np.flatnonzero(entry >= 0)
        launch = own[entry[hit]]
        hit, launch = (side[candidates.starts[launch] <= times[hit]] for side in (hit, launch))
        away = np.abs(ordinals[hit] - host_ordinals[launch].astype(np.int64))
        scores.append((-len(hit), float(np.median(away)) if len(hit) else np.inf, process))
    best = sorted(scores)[:2]
    if not best or best[0][0] == 0 or (len(best) > 1 and best[0][:2] == best[1][:2]):
        return -1
    return best[0][2]


def serves_several(candidates: Candidates, process: int, ids: I64) -> bool:
    """Tell whether device work with these ids cannot be that of one process alone, as where merged ranks had
    the same number for their device: most ids that the process shares with others occur in the work more
    often than the process calls them, and no more often than all processes do.
    """
    repeated, count = np.unique(ids, return_counts=True)
    everyone = _occurrences(candidates.ids, repeated)
    own = _occurrences(candidates.ids[candidates.of_process(process)], repeated)
    both = (own > 0) & (everyone > own)
    more = both & (count > own) & (count <= everyone)
    return 2 * int(np.count_nonzero(more)) > int(np.count_nonzero(both))


def in_turn(candidates: Candidates, ids: I64, times: I64) -> I64:
    """Return per piece of work the index of its candidate, where as many pieces as candidates have its id and
    in the order of time each begins after its own; -1 elsewhere.

    Of calls at 10 and 12 and work at 15 and 40 with one id, the second call, the latest before both, would
    have launched both.
    """
    calls = np.lexsort((candidates.starts, candidates.ids))
    work = np.lexsort((times, ids))
    names, first, size = np.unique(candidates.ids[calls], return_index=True, return_counts=True)
    of_work, begin, count = np.unique(ids[work], return_index=True, return_counts=True)
    at = np.minimum(np.searchsorted(names, of_work), len(names) - 1)
    paired = np.repeat((names[at] == of_work) & (size[at] == count), count)
    turn = np.repeat(first[at] - begin, count) + np.arange(len(work))
    launch = calls[np.where(paired, turn, 0)]
    late = paired & (candidates.starts[launch] > times[work])
    paired &= np.repeat(np.add.reduceat(late, begin) == 0, count) if len(begin) else paired
    result = np.full(len(work), -1, np.int64)
    result[work[paired]] = launch[paired]
    return result


def _occurrences(values: I64, of: I64) -> I64:
    """Return how often each of some distinct numbers (ascending) occurs among values."""
    ordered = np.sort(values)
    counts: I64 = np.searchsorted(ordered, of, "right") - np.searchsorted(ordered, of, "left")
    return counts
