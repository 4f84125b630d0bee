"""Parts made one: local numbers to global ones, and events brought together by lane.

Nothing here depends on where the file was cut: strings are numbered by digest, categories by text, ordinals
by adding up the parts in file order, and events stand in each lane in file order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..ingest.columns import TABLES, U32, AnyArray, IdKind, LiftedColumn, Metadata, Problem, Table
from ..ingest.part_file import PartFile
from .order import by_small_key, concatenated_ranges
from .scratch import Scratch
from .strings import Strings, merge_strings, strings_of

Track = tuple[str, str]


class AnyPart(Protocol):
    """What the builder needs of a part, in memory or on disk."""

    @property
    def events(self) -> int: ...
    @property
    def tables(self) -> dict[str, Table]: ...
    @property
    def lifted(self) -> dict[str, LiftedColumn]: ...
    @property
    def tracks(self) -> list[Track]: ...
    @property
    def metadata(self) -> list[Metadata]: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def problems(self) -> list[Problem]: ...
    @property
    def exact_start(self) -> int | None: ...
    @property
    def exact_end(self) -> int | None: ...


@dataclass(frozen=True)
class Merged:
    """Global numbers of everything that the parts number for themselves."""

    parts: Sequence[AnyPart]
    first_ordinal: list[int]
    events: int
    strings: Strings
    tracks: list[Track]
    pids: list[str]  # JSON texts, in order of track number
    track_pid: U32  # pid number of each track
    categories: list[int]  # string number of each category; [0] is the empty string's
    _track_maps: list[U32]
    _category_maps: list[U32]  # per part: its string number -> category

    def columns(self, part: int, table: str, names: Sequence[str]) -> dict[str, AnyArray]:
        """Return columns of one part's table in global numbers, by ordinal."""
        raw = self.parts[part].tables.get(table)
        if raw is None:
            return {name: np.empty(0, TABLES[table][name]) for name in names}
        strings = self.strings.maps[part]
        columns: dict[str, AnyArray] = {}
        for name in names:
            values = raw[name]
            if name == "ordinal":
                values = values + np.uint32(self.first_ordinal[part])
            elif name == "track":
                values = self._track_maps[part][values]
            elif name == "category":
                values = self._category_maps[part][values]
            elif name in ("name", "series"):
                values = strings[values]
            elif name == "id_value":
                kinds = raw["id_kind"]
                if bool((kinds > IdKind.INTEGER).any()):
                    values = values.copy()
                    texts = np.flatnonzero(kinds > IdKind.INTEGER)
                    values[texts] = strings[values[texts]]
            columns[name] = values
        ordinals = raw.get("ordinal")
        if ordinals is not None and len(ordinals) and bool((ordinals[1:] < ordinals[:-1]).any()):
            order = np.argsort(ordinals, kind="stable")
            columns = {name: values[order] for name, values in columns.items()}
        return columns

    def let_go(self, part: int) -> None:
        """Give back the memory that one part's columns take, where they lie on disk."""
        one = self.parts[part]
        if isinstance(one, PartFile):
            one.let_go()

    def all(self, table: str, names: Sequence[str]) -> dict[str, AnyArray]:
        """Return columns of all parts' tables in global numbers, in file order."""
        pieces = [self.columns(i, table, names) for i in range(len(self.parts))]
        return {
            name: np.concatenate([np.empty(0, TABLES[table][name]), *(piece[name] for piece in pieces)])
            for name in names
        }

    def lengths(self, table: str) -> list[int]:
        """Return how many entries each part has in a table."""
        return [len(part.tables[table]["start"]) if table in part.tables else 0 for part in self.parts]


def merge_parts(parts: Sequence[AnyPart]) -> Merged:
    """Unify strings, tracks and categories over all parts."""
    firsts = np.cumsum([0, *(part.events for part in parts)]).tolist()
    strings = merge_strings([strings_of(part) for part in parts])
    numbers: dict[Track, int] = {}
    track_maps = [
        np.array([numbers.setdefault(track, len(numbers)) for track in part.tracks], np.uint32)
        for part in parts
    ]
    pid_numbers: dict[str, int] = {}
    track_pid = np.array([pid_numbers.setdefault(pid, len(pid_numbers)) for pid, _ in numbers], np.uint32)
    used: set[int] = set()
    for part, to_global in zip(parts, strings.maps):
        seen = np.zeros(len(to_global), np.bool_)
        for table in ("timed", "flows", "asyncs"):
            if table in part.tables:
                seen[part.tables[table]["category"]] = True
        used.update(to_global[seen].tolist())
    used.discard(0)
    categories = [0, *(number for _, number in sorted((strings.text(number), number) for number in used))]
    by_number = np.argsort(np.array(categories), kind="stable")
    ordered = np.array(categories)[by_number]
    category_maps = []
    for to_global in strings.maps:
        place = np.minimum(np.searchsorted(ordered, to_global), len(ordered) - 1)
        category_maps.append(np.where(ordered[place] == to_global, by_number[place], 0).astype(np.uint32))
    return Merged(
        parts, firsts[:-1], firsts[-1], strings, list(numbers), list(pid_numbers), track_pid, categories,
        track_maps, category_maps,
    )  # fmt: skip


@dataclass(frozen=True)
class ByTrack:
    """A table's events brought together by track, in file order within each."""

    columns: Mapping[str, AnyArray]
    bounds: list[int]  # of each track's events; one more than there are tracks

    def of(self, track: int) -> dict[str, AnyArray]:
        """Return the columns of one track's events (views)."""
        a, b = self.bounds[track], self.bounds[track + 1]
        return {name: values[a:b] for name, values in self.columns.items()}

    def count(self, track: int) -> int:
        """Return how many events the track has."""
        return self.bounds[track + 1] - self.bounds[track]


def bring_together(merged: Merged, table: str, names: Sequence[str], scratch: Scratch) -> ByTrack:
    """Partition a table's events by track, part by part, into scratch columns."""
    tracks = len(merged.tracks)
    counts = np.zeros(tracks, np.int64)
    for part in range(len(merged.parts)):
        track = merged.columns(part, table, ["track"])["track"]
        counts += np.bincount(track, minlength=tracks)
        merged.let_go(part)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    columns = {name: scratch.array(int(bounds[-1]), TABLES[table][name]) for name in names}
    cursor = bounds[:-1].copy()
    for part in range(len(merged.parts)):
        values = merged.columns(part, table, ["track", *names])
        track = values.pop("track")
        order = by_small_key(track, tracks)
        sizes = np.bincount(track, minlength=tracks)
        place = concatenated_ranges(cursor, sizes)
        cursor += sizes
        for name, column in columns.items():
            column[place] = values[name][order]
        merged.let_go(part)
        scratch.let_go()
    return ByTrack(columns, bounds.tolist())
