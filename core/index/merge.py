"""Parts made one: local numbers to global ones.

Nothing here depends on where the file was cut: strings are numbered by digest, categories by text, ordinals
by adding up the parts in file order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..ingest.columns import I64, TABLES, U32, AnyArray, IdKind, LiftedColumn, Metadata, Table
from ..ingest.part_file import PartFile
from ..ingest.problem import Problem
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
    track_maps: list[U32]  # per part: its track number -> track
    _category_maps: list[U32]  # per part: its string number -> category

    def values(self, part: int, table: str, name: str, rows: AnyArray | slice = slice(None)) -> AnyArray:
        """Return some rows of a column of one part's table in global numbers."""
        raw = self.parts[part].tables[table]
        values = raw[name][rows] if isinstance(rows, slice) else raw[name].take(rows)
        if name == "ordinal":
            return values + np.uint32(self.first_ordinal[part])
        if name == "track":
            return self.track_maps[part].take(values)
        if name == "category":
            return self._category_maps[part].take(values)
        if name in ("name", "series"):
            return self.strings.maps[part].take(values)
        if name == "id_value":
            texts = np.flatnonzero(raw["id_kind"][rows] > IdKind.INTEGER)
            if len(texts):
                values = values.copy()
                values[texts] = self.strings.maps[part][values[texts]]
        return values

    def let_go(self, part: int) -> None:
        """Give back the memory that one part's columns take, where they lie on disk."""
        one = self.parts[part]
        if isinstance(one, PartFile):
            one.let_go()

    def let_go_all(self) -> None:
        """Give back the memory that all parts' columns take, where they lie on disk."""
        for part in range(len(self.parts)):
            self.let_go(part)

    def all(self, table: str, names: Sequence[str]) -> dict[str, AnyArray]:
        """Return columns of all parts' tables in global numbers, in file order."""
        orders = [self.file_order(part, table) for part in range(len(self.parts))]
        return {
            name: np.concatenate(
                [
                    np.empty(0, TABLES[table][name]),
                    *(
                        self.values(part, table, name, rows)
                        for part, rows in enumerate(orders)
                        if rows is not None
                    ),
                ]
            )
            for name in names
        }

    def file_order(self, part: int, table: str) -> AnyArray | slice | None:
        """Return the rows of a part's table by ordinal; None where it has none."""
        columns = self.parts[part].tables.get(table)
        if columns is None or not len(columns["ordinal"]):
            return None
        ordinals = columns["ordinal"]
        if bool((ordinals[1:] >= ordinals[:-1]).all()):
            return slice(None)
        return np.argsort(ordinals, kind="stable")

    def track_counts(self, table: str, parts: Sequence[int] | None = None) -> I64:
        """Return how many entries each track has in a table, in all or some parts."""
        counts = np.zeros(len(self.tracks), np.int64)
        lengths = self.lengths(table)
        for part in range(len(lengths)) if parts is None else parts:
            if lengths[part]:
                own = np.bincount(self.parts[part].tables[table]["track"])
                np.add.at(counts, self.track_maps[part][: len(own)], own)
        return counts

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
                own = np.bincount(part.tables[table]["category"])
                seen[: len(own)] |= own > 0
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
