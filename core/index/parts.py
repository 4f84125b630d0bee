"""Part files as batches, until the reader hands batches over: all parts share one table, sorted by text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..ingest.columns import Part
from ..ingest.part_file import DIGEST_BYTES, PartFile, open_part, write_part
from ..read.batch import PromotedColumn, StringTable, string_table
from ..read.columns import IdKind
from ..read.promoted import PROMOTED, Kind

_TEXTS = {one.key for one in PROMOTED if one.kind is Kind.TEXT}


class _Columns(Mapping[str, AnyArray]):
    """The columns of one table in file order, with numbers of the shared table."""

    def __init__(self, batch: PartBatch, table: str) -> None:
        self._batch, self._raw = batch, batch.part.tables[table]
        ordinal = self._raw["ordinal"]
        self._order: I64 | None = None
        if bool((ordinal[1:] < ordinal[:-1]).any()):
            self._order = np.argsort(ordinal, kind="stable")

    def __getitem__(self, name: str) -> AnyArray:
        values = self._raw[name] if self._order is None else self._raw[name].take(self._order)
        if name in ("category", "name", "series"):
            return self._batch.strings.take(values)
        if name == "track":
            return self._batch.tracks.take(values)
        if name == "id_value":
            texts = np.flatnonzero(self["id_kind"] > IdKind.INTEGER)
            values = values.copy()
            values[texts] = self._batch.strings[values[texts]]
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


class PartBatch:
    """One part as a batch."""

    def __init__(self, part: Part | PartFile, strings: U32, tracks: U32, uses: tuple[U32, U32]) -> None:
        """`strings` and `tracks`: their numbers in the shared table; `uses`: which it uses first."""
        self.part, self.strings, self.tracks, self.table = part, strings, tracks, 0
        self.first_uses, self.first_tracks = uses
        self.events, self.counts, self.metadata = part.events, part.counts, part.metadata
        self.problems = part.problems
        self.exact_start, self.exact_end = part.exact_start, part.exact_end
        self.tables = {name: _Columns(self, name) for name in part.tables}

    @property
    def promoted(self) -> Mapping[str, PromotedColumn]:
        """Promoted arguments by key."""
        return {key: self._column(key) for key, one in self.part.lifted.items() if len(one.ordinals)}

    def _column(self, key: str) -> PromotedColumn:
        ordinals, values = self.part.lifted[key].ordinals, self.part.lifted[key].values
        values = self.strings.take(values) if key in _TEXTS else values
        if bool((ordinals[1:] < ordinals[:-1]).any()):
            order = np.argsort(ordinals, kind="stable")
            ordinals, values = ordinals[order], values[order]
        return PromotedColumn(ordinals, values)

    def let_go(self) -> None:
        """Give back the memory of its columns."""
        if isinstance(self.part, PartFile):
            self.part.let_go()


def batches_of(parts: Sequence[Part | PartFile]) -> tuple[list[PartBatch], list[StringTable]]:
    """Return parts as batches, and their string table."""
    tracks = dict.fromkeys(sorted({track for part in parts for track in part.tracks}), 0)
    texts = {text for part in parts for text in part.strings} | {text for track in tracks for text in track}
    numbers = {text: number for number, text in enumerate(["", *sorted(texts - {""})])}
    tracks = {track: number for number, track in enumerate(tracks)}
    table = string_table(
        [text.encode("utf-8", "replace") for text in numbers],
        [(numbers[pid], numbers[tid]) for pid, tid in tracks],
    )
    uses = np.arange(1, len(numbers), dtype=np.uint32), np.arange(len(tracks), dtype=np.uint32)
    batches = []
    for part in parts:
        strings = np.array([numbers[text] for text in part.strings], np.uint32)
        batches.append(PartBatch(part, strings, np.array([tracks[t] for t in part.tracks], np.uint32), uses))
        uses = np.zeros(0, np.uint32), np.zeros(0, np.uint32)
    return batches, [table]


__all__ = ["DIGEST_BYTES", "PartBatch", "PartFile", "batches_of", "open_part", "write_part"]
