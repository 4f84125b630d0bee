"""Batches by themselves, in tests: numbered as they use strings and tracks first, with all their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracelane.core.read.batch import Batch, IdKind, Metadata, StringTable, Table, string_table
from tracelane.core.read.problem import Problem
from tracelane.core.read.promoted import PROMOTED, Kind

_TEXTS = {one.key for one in PROMOTED if one.kind is Kind.TEXT}


@dataclass(frozen=True)
class Part:
    """A batch with numbers of its own, and the strings and tracks that these number."""

    number: int
    events: int
    tables: dict[str, Table]
    promoted: dict[str, Table]
    strings: list[str]  # [0] is ""
    tracks: list[tuple[str, str]]  # JSON texts of (pid, tid)
    metadata: Sequence[Metadata]
    counts: dict[str, int]
    problems: Sequence[Problem]

    @classmethod
    def of(cls, batch: Batch, table: StringTable) -> Part:
        """Return a batch by itself; `table` is that of the thread which read it."""
        strings = np.zeros(len(table.offset), np.uint32)
        strings[batch.first_uses] = np.arange(1, len(batch.first_uses) + 1, dtype=np.uint32)
        tracks = np.zeros(len(table.track_pid), np.uint32)
        tracks[batch.first_tracks] = np.arange(len(batch.first_tracks), dtype=np.uint32)
        tables: dict[str, Table] = {}
        for name, columns in batch.tables.items():
            own = tables[name] = {column: values.copy() for column, values in columns.items()}
            for column in own.keys() & {"category", "name", "series"}:
                own[column] = strings[own[column]]
            if "track" in own:
                own["track"] = tracks[own["track"]]
            if "id_kind" in own:
                texts = own["id_kind"] > IdKind.INTEGER
                own["id_value"][texts] = strings[own["id_value"][texts]]
        promoted = {
            key: {
                "ordinal": column["ordinal"].copy(),
                "value": strings[column["value"]] if key in _TEXTS else column["value"].copy(),
            }
            for key, column in batch.promoted.items()
        }

        def text(number: int) -> str:
            return table.bytes_of(number).decode()

        tracks = batch.first_tracks.tolist()
        return cls(
            number=batch.number,
            events=batch.events,
            tables=tables,
            promoted=promoted,
            strings=["", *map(text, batch.first_uses.tolist())],
            tracks=[(text(int(table.track_pid[one])), text(int(table.track_tid[one]))) for one in tracks],
            metadata=batch.metadata,
            counts=dict(batch.counts),
            problems=batch.problems,
        )

    def batch(self, table: int) -> tuple[Batch, StringTable]:
        """Return the batch again, as if a thread had read nothing else."""
        texts = [text.encode() for text in self.strings]
        numbers = {text: number for number, text in enumerate(self.strings)}
        tracks = [(numbers[pid], numbers[tid]) for pid, tid in self.tracks]
        batch = Batch(
            number=self.number,
            events=self.events,
            tables=self.tables,
            promoted=self.promoted,
            metadata=list(self.metadata),
            counts=self.counts,
            problems=list(self.problems),
            table=table,
            first_uses=np.arange(1, len(texts), dtype=np.uint32),
            first_tracks=np.arange(len(tracks), dtype=np.uint32),
        )
        return batch, string_table(texts, tracks)


def parts_of_batches(batches: Sequence[Batch], tables: Sequence[StringTable]) -> list[Part]:
    """Return batches by themselves, in their order."""
    return [replace(Part.of(batch, tables[batch.table]), number=n) for n, batch in enumerate(batches)]
