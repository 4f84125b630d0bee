"""The columns of the host's calls of some names, each defined here alone, and how calls are gathered."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.kineto import HOST_EVENTS
from ...query.groups import Groups, concatenated
from ...query.lookup import category_mask, nearest_around, rows_at
from ...trace.devices import rank_of
from ..frame.frame import ColumnMakers, Frame
from ..frame.scope import Scope
from ..frame.text_column import TextColumn


def members_around(calls: Frame, members: Frame, *, itself: bool = False) -> I64:
    """Return the `row` of the nearest of some calls around each, -1 for none; with `itself` a member is its
    own.
    """
    of_source = {part.source_number: part for part in members.by("source")}

    def rows(part: Frame) -> AnyArray:
        if (own := of_source.get(part.source_number)) is None:
            return np.full(len(part), -1, np.int64)
        around = nearest_around(part.index, part.position, own.position, itself=itself)
        return np.append(own.row, -1)[rows_at(part.index, own.position, around)]

    return np.asarray(calls.from_parts(rows), np.int64)


def _own_ns(calls: Frame) -> I64:
    inner = calls.around >= 0
    inside = Groups(calls.around[inner], len(calls)).sums(calls.dur[inner])
    return np.asarray(calls.dur - inside, np.int64)


def _rank(calls: Frame) -> TextColumn:
    ranks = [str(rank_of(index, source)) for source, index in enumerate(calls.scope.trace.indexes)]
    return TextColumn(calls.source, ranks)


GIVEN = ("source", "position", "start", "end", "name_number")
"""What is gathered: numbers of sources, of names in the index of each; ns."""
COLUMNS: dict[str, Callable[[Frame], Any]] = {
    "dur": lambda calls: calls.end - calls.start,
    "name": lambda calls: calls.names_at(lambda part: part.name_number),
    # the rank, without ranks the number of the source
    "rank": _rank,
    # of all calls that were gathered: the number of each, that of the nearest around it, -1 for none; ns
    # without those inside it
    "row": lambda calls: np.arange(len(calls)),
    "around": lambda calls: members_around(calls, calls),
    "own_ns": _own_ns,
}
MAKERS = ColumnMakers(COLUMNS, {"row", "around", "own_ns"})


def calls_named(
    scope: Scope, text: str, pattern: re.Pattern[str] | None = None, category: str = "", whole: bool = False
) -> Frame:
    """Return the host's calls that start in a scope, with their whole times, by source and start, outer ones
    first: those whose name contains a text and, if one is given, matches a whole pattern. Slices of a further
    `category` are the host's as well; `whole`: all of these, whatever they are called.
    """
    parts: list[tuple[AnyArray, ...]] = []
    for source in scope.sources:
        index = scope.trace.indexes[source]
        numbers = index.string_numbers(text, inside=True)
        if pattern is not None:
            numbers = [number for number in numbers if pattern.fullmatch(index.string(number))]
        positions = _positions(scope, source, np.array(numbers, np.int64), category, whole)
        starts, durations = scope.starts(source, positions), index.duration(positions)
        low, high = scope.range or (int(starts.min(initial=0)), int(starts.max(initial=0)) + 1)
        rows = np.flatnonzero((starts >= low) & (starts < high))
        rows = rows[np.lexsort((-durations[rows], starts[rows]))]
        positions, starts, ends = positions[rows], starts[rows], (starts + durations)[rows]
        names = index.column("slices.name")[positions]
        parts.append((np.full(len(rows), source), positions, starts, ends, names))
    return Frame(scope, MAKERS, dict(zip(GIVEN, map(concatenated, zip(*parts)))))


def _positions(scope: Scope, source: int, numbers: I64, category: str, whole: bool) -> I64:
    index = scope.trace.indexes[source]
    own = category_mask(index, {category} if category else ())
    if not len(numbers) and not (whole and own.any()):
        return np.empty(0, np.int64)
    is_name = np.zeros(index.length("strings.offset"), np.bool_)
    is_name[numbers] = True
    is_host, is_whole = category_mask(index, HOST_EVENTS) | own, own & whole
    names, categories = index.column("slices.name"), index.column("slices.category")
    parts = []
    for part in scope.parts_of(source):
        scope.check()
        at = slice(part.begin, part.end)
        of = categories[at]
        parts.append(part.begin + np.flatnonzero((is_name[names[at]] & is_host[of]) | is_whole[of]))
    positions: I64 = concatenated(parts)
    return positions if scope.where is None else positions[scope.where(index, positions)]
