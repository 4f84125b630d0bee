"""What decoding yields: the columns of one part (a slice of the file), in file order.

A part is the hand-over from ingest to index. Everything in it is local to the part: ordinals count from the
part's first element, string, track and id numbers index the part's own tables. The index builder adds up
ordinals over the parts in file order and maps the local tables to global ones, so that neither the order in
which parts were decoded nor where the file was cut changes the index.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base.arrays import F64, I64, U8, U16, U32, AnyArray
from ..read.columns import (
    ASYNCS,
    BLOCKS,
    COUNTERS,
    FLOWS,
    TABLES,
    TIME_LIMIT,
    TIMED,
    EventFlag,
    IdKind,
    Metadata,
    Table,
)
from .problem import Problem

__all__ = [
    "ASYNCS",
    "BLOCKS",
    "COUNTERS",
    "F64",
    "FLOWS",
    "I64",
    "TABLES",
    "TIMED",
    "TIME_LIMIT",
    "U8",
    "U16",
    "U32",
    "AnyArray",
    "EventFlag",
    "IdKind",
    "LiftedColumn",
    "Metadata",
    "Part",
    "Table",
]  # fmt: skip


@dataclass(frozen=True)
class LiftedColumn:
    """One lifted argument over the part's events that have it (sparse)."""

    ordinals: U32
    values: AnyArray  # int64, float64, or uint32 string numbers; which one is the lifted table's `kind`


@dataclass(frozen=True)
class Part:
    """The columns of one slice of the file, in file order."""

    number: int
    events: int  # elements of the array that stood in this part, objects or not
    tables: dict[str, Table]
    lifted: dict[str, LiftedColumn]  # by lifted key; see lifted.LIFTED
    strings: list[str]  # [0] is ""
    tracks: list[tuple[str, str]]  # JSON texts of (pid, tid); "null" when absent
    metadata: list[Metadata]
    counts: dict[str, int]  # ledger: "phase.X": n, "not_object": n, "no_usable_time": n, …
    problems: list[Problem] = field(default_factory=list)
    exact_start: int | None = None  # bounds over slices whose time was clamped, exact ns
    exact_end: int | None = None
