"""The lines that head the processes of each rank where a trace has several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from tracelane.core.query.views import rank_titles
from tracelane.core.trace import Process, Trace

from ..steps import pair_of

FOLD_RANKS = 2
"""More ranks than this open folded where there are no devices."""
NO_PROCESS = -1
RANK_PARTS = ("compute", "communication", "copies")
"""What the lines of a folded rank show where there is room for one each."""

Group: TypeAlias = tuple[Process | None, list[Process]]


class RankNotes(NamedTuple):
    """What is said of ranks beside their lines, by source: that one comes last, how long others wait."""

    slowest: int | None = None  # the rank that the others wait for most
    texts: Mapping[int, str] = MappingProxyType({})


@lru_cache(maxsize=4)
def rank_heads(trace: Trace) -> MappingProxyType[int, Process]:
    """Return by source what stands for all processes of a rank; nothing where there are not two ranks."""
    titles = rank_titles(trace.members)
    heads = {
        source: Process(source, NO_PROCESS, "", "", "", title, range(0), 0)
        for source, title in titles.items()
    }
    return MappingProxyType(heads)


def is_rank(process: Process) -> bool:
    """Tell whether a process with a line of its own stands for all of a rank: it has no lanes itself."""
    return not process.lanes


def by_rank(trace: Trace) -> Iterator[Group]:
    """Yield each rank's head and its processes in display order, None for what belongs to no rank.

    What is laid over a trace stands below the process that it speaks of, and goes with its rank. A rank that
    is not there yet has its place, without processes.
    """
    heads = rank_heads(trace)
    groups: list[Group] = [(heads[source], []) for source in trace.missing if source in heads]
    groups += _by_head(trace, heads)
    if trace.missing:  # ranks in order, then what belongs to none
        groups.sort(key=lambda group: trace.source_count if group[0] is None else group[0].source)
    yield from groups


def _by_head(trace: Trace, heads: Mapping[int, Process]) -> Iterator[Group]:
    head: Process | None = None
    group: list[Process] = []
    for process in trace.processes:
        own = heads.get(process.source)
        changes = process.source < len(trace.members) and own is not head
        if changes and group:
            yield head, group
            group = []
        if changes:
            head = own
        group.append(process)
    if group:
        yield head, group


def opens_folded(trace: Trace) -> bool:
    """Tell whether a rank, or one of two runs, opens as lines of its devices' work, the others below it."""
    heads = rank_heads(trace)
    return len(heads) > (1 if trace.device_lanes else FOLD_RANKS) or pair_of(trace) is not None
