"""The lines that head the processes of each rank where a trace has several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tracelane.core.base.cached_per_object import cached_per_object
from tracelane.core.index.captures import ranks_text
from tracelane.core.query.views import rank_titles
from tracelane.core.trace import Process, Trace

from ..steps import pair_of

if TYPE_CHECKING:
    from tracelane.core.tables.device.rank_activity import RankActivity

FOLD_RANKS = 2
"""More ranks than this open folded where there are no devices."""
MAX_LINES = 12
"""More ranks than this share lines where they are folded: together they are a map."""
MIN_MAP = 4
"""Lines that a map takes at least, where open ranks leave it no more."""
NO_PROCESS = -1
SLOWEST = (" slowest", " slow")
"""What stands behind the title of the rank that the others wait for most, as there is room."""
RANK_PARTS = ("compute", "communication", "copies")
"""What the lines of a folded rank show where there is room for one each."""

Group: TypeAlias = tuple[Process | None, list[Process]]


class RankNotes(NamedTuple):
    """What is said of ranks beside their lines, by source: that one comes last, how long others wait, how far
    the file of one that is missing is.
    """

    slowest: int | None = None  # the rank that the others wait for most
    texts: Mapping[int, str] = MappingProxyType({})
    latest: tuple[int, ...] = ()  # all ranks, first those that the others wait for most; empty: nobody waits
    activity: RankActivity | None = None  # None: not known, or nobody draws it


@cached_per_object()
def rank_heads(trace: Trace) -> MappingProxyType[int, Process]:
    """Return by source what stands for all processes of a rank; nothing where there are not two ranks."""
    titles = rank_titles(trace.members)
    return MappingProxyType({source: _head(source, title) for source, title in titles.items()})


def _head(source: int, title: str) -> Process:
    return Process(source, NO_PROCESS, "", "", "", title, range(0), 0)


def is_rank(process: Process) -> bool:
    """Tell whether a process with a line of its own stands for all of a rank: it has no lanes itself."""
    return not process.lanes


def by_rank(trace: Trace) -> Iterator[Group]:
    """Yield each rank's head and its processes in display order, None for what belongs to no rank.

    What is laid over a trace stands below the process that it speaks of, and goes with its rank. A rank whose
    file is missing has its place, without processes; missing files that are no ranks stand last.
    """
    heads = rank_heads(trace)
    groups = list(_by_head(trace, heads))
    if trace.missing:  # ranks in order, then what belongs to none
        groups += [(heads[source], []) for source in trace.missing if source in heads]
        groups.sort(key=lambda group: trace.source_count if group[0] is None else group[0].source)
        others = sorted(trace.missing.difference(heads))
        groups += [(_head(source, trace.members[source].title), []) for source in others]
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


Halves: TypeAlias = tuple[tuple[Process, ...], ...]
"""The ranks of a line of the map: those of its upper half, then those of its lower half."""


def has_map(trace: Trace) -> bool:
    """Tell whether folded ranks share lines: there are many, and they are not those of two runs."""
    return len(rank_heads(trace)) > MAX_LINES and opens_folded(trace) and pair_of(trace) is None


def map_halves(ranks: Sequence[Process], lines: int, singles: int = 0) -> Iterator[Halves]:
    """Yield the lines of a map of some ranks in their order, at most so many: each half stands for as many
    ranks, but the first `singles` halves for one each.
    """
    halves: list[tuple[Process, ...]] = [(rank,) for rank in ranks[:singles]]
    rest, room = ranks[singles:], max(1, 2 * lines - singles)
    each = max(1, -(-len(rest) // room))
    halves += [tuple(rest[at : at + each]) for at in range(0, len(rest), each)]
    for at in range(0, len(halves), 2):
        yield tuple(halves[at : at + 2])


def map_title(trace: Trace, halves: Halves) -> str:
    """Return which ranks a line of the map stands for."""
    members = [trace.members[rank.source] for half in halves for rank in half]
    numbers = sorted({member.rank for member in members if member.rank is not None})
    return f"rank{'s' if len(numbers) > 1 else ''} {ranks_text(numbers)}"


def opens_folded(trace: Trace) -> bool:
    """Tell whether a rank, or one of two runs, opens as lines of its devices' work, the others below it."""
    heads = rank_heads(trace)
    return len(heads) > (1 if trace.device_lanes else FOLD_RANKS) or pair_of(trace) is not None
