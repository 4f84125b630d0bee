"""What torch.compile leaves on the host: regions, calls of graphs, cache lookups, rows of the compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..index.format import NONE
from ..index.store import Index
from ..ingest.columns import I64
from .groups import dense
from .host import trace_starts
from .op_events import KINDS
from .scope import Scope
from .work import rank_of

REGION = "Torch-Compiled Region"
GRAPH = "## Call CompiledFxGraph "
FUNCTION = "CompiledFunction"
LOOKUP = "TorchDynamo Cache Lookup"
TIMED = " (dynamo_timed)"
REGION_ID = re.compile(r"Torch-Compiled Region: (?:!\d+/)?(?P<frame>\d+)/(?P<compile>\d+)")
GRAPH_HASH = re.compile(r"## Call CompiledFxGraph (?P<hash>\S+) ##")
FUNCTION_NAME = re.compile(r"CompiledFunction(Backward)?")


@dataclass(frozen=True)
class Calls:
    """Slices of the host of one source that start in a scope, by start; whole times, trace time in ns.

    `name` is a place in `texts`.
    """

    source: int
    rank: int
    index: Index
    positions: I64
    starts: I64
    durations: I64
    name: I64
    texts: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self.positions)

    @property
    def total_ns(self) -> int:
        """The sum of their times."""
        return int(self.durations.sum())

    @cached_property
    def outer(self) -> I64:
        """Of each slice the place of the nearest of these slices around it, -1 where there is none."""
        order = np.argsort(self.positions)
        above = nearest_around(self.index, self.positions, self.positions[order])
        found = np.full(len(self), -1, np.int64)
        inner = above != NONE
        found[inner] = order[np.searchsorted(self.positions[order], above[inner])]
        return found

    @cached_property
    def self_ns(self) -> I64:
        """The time of each that none of the others inside it takes."""
        inside = np.zeros(len(self), np.int64)
        inner = self.outer >= 0
        np.add.at(inside, self.outer[inner], self.durations[inner])
        found: I64 = self.durations - inside
        return found


def calls(scope: Scope, source: int, text: str, pattern: re.Pattern[str] | None = None) -> Calls:
    """Return the host's slices whose name holds a text and, if given, fits a pattern whole."""
    index = scope.trace.indexes[source]
    numbers = index.string_numbers(text, inside=True)
    if pattern is not None:
        numbers = [number for number in numbers if pattern.fullmatch(index.string(number))]
    positions = _positions(scope, source, np.array(numbers, np.int64))
    starts = trace_starts(scope, source, positions)
    if scope.range is not None:
        inside = (starts >= scope.range[0]) & (starts < scope.range[1])
        positions, starts = positions[inside], starts[inside]
    durations = index.duration(positions)
    # An outer slice that begins with an inner one comes first.
    order = np.lexsort((-durations, starts))
    positions, starts, durations = positions[order], starts[order], durations[order]
    name, distinct = dense(index.column("slices.name")[positions])
    texts = tuple(index.strings(distinct))
    return Calls(source, rank_of(index, source), index, positions, starts, durations, name, texts)


def _positions(scope: Scope, source: int, numbers: I64) -> I64:
    index = scope.trace.indexes[source]
    found = [np.empty(0, np.int64)]
    if len(numbers):
        wanted = np.zeros(len(index.column("strings.offset")), np.bool_)
        wanted[numbers] = True
        host = np.array([category in KINDS for category in index.categories], np.bool_)
        names, categories = index.column("slices.name"), index.column("slices.category")
        for part in scope.parts:
            scope.check()
            if part.source == source:
                at = slice(part.begin, part.end)
                found.append(part.begin + np.flatnonzero(wanted[names[at]] & host[categories[at]]))
    positions: I64 = np.concatenate(found)
    if scope.where is not None and len(positions):
        positions = positions[scope.where(index, positions)]
    return positions


def nearest_around(index: Index, positions: I64, members: I64, *, itself: bool = False) -> I64:
    """Return of each position its nearest ancestor among the members (ascending), NONE where none is.

    With `itself` a position that is a member is its own.
    """
    above = index.column("slices.parent")
    found = np.full(len(positions), NONE, np.int64)
    if not len(members) or not len(positions):
        return found
    todo = np.arange(len(positions))
    current = (positions if itself else above[positions]).astype(np.int64)
    while len(todo):
        open_ = current != NONE
        todo, current = todo[open_], current[open_]
        place = np.minimum(np.searchsorted(members, current), len(members) - 1)
        hit = members[place] == current
        found[todo[hit]] = current[hit]
        todo, current = todo[~hit], above[current[~hit]].astype(np.int64)
    return found
