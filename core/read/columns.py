"""The columns of a batch: what reading makes of the events of one chunk, in file order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TypeAlias

from ..base.arrays import AnyArray

TIME_LIMIT = (1 << 62) - 1
"""Times beyond ± this many ns (146 years) are clamped where text is read, so that no sum or difference of two
times overflows int64. Stamps that count from 1970 fit until 2116.
"""
TIME_LIMIT_TEXT = "±146 years (2^62 - 1 ns)"
"""The limit as messages say it."""


class EventFlag(IntFlag):
    """Bits of a `flags` column."""

    BIND_ENCLOSING = 1  # flow end with "bp": "e"
    SCOPE_PROCESS = 2  # instant with "s": "p"
    SCOPE_GLOBAL = 4  # instant with "s": "g"
    CLAMPED = 8  # a time beyond TIME_LIMIT


class IdKind(IntEnum):
    """What an `id_value` means; ids of different kinds are never the same id."""

    NONE = 0  # the event has no id; value 0
    INTEGER = 1  # a JSON integer within int64; value is the integer
    TEXT = 2  # any other JSON value; value is the string number of its JSON text
    LOCAL = 3  # id2.local: holds within the process only; string number of its JSON text
    GLOBAL = 4  # id2.global; string number of its JSON text
    SCOPED = 5  # has a "scope"; string number of JSON text [scope, id]


# name -> dtype of every column; the tables of one group have one length each.
TIMED: Mapping[str, str] = {
    # X with usable ts; B and E; i, I and R; every other phase that is not listed below but has a time
    # (those are drawn as instants).
    "phase": "u1",  # ASCII of a one-letter ph, else ord("?")
    "flags": "u1",  # EventFlag
    "ordinal": "u4",
    "track": "u4",  # number in the batch's track table
    "category": "u4",  # number in the batch's string table; 0 is the empty string (absent)
    "name": "u4",  # likewise
    "start": "i8",  # ns
    "duration": "i8",  # ns, >= 0; 0 unless X
}
FLOWS: Mapping[str, str] = {
    "phase": "u1",  # s, t, f
    "flags": "u1",
    "ordinal": "u4",
    "track": "u4",
    "category": "u4",
    "name": "u4",
    "id_kind": "u1",
    "id_value": "i8",
    "start": "i8",
}
ASYNCS = FLOWS  # of the phases b, n, e and legacy S, T, p, F
COUNTERS: Mapping[str, str] = {  # one entry per numeric args key of a C event
    "ordinal": "u4",
    "track": "u4",
    "name": "u4",
    "series": "u4",  # string number of the args key
    "id_kind": "u1",
    "id_value": "i8",
    "start": "i8",
    "value": "f8",
}
BLOCKS: Mapping[str, str] = {
    "offset": "i8",  # of the first event's first byte in the (inflated, UTF-8) source
    "length": "i8",  # to the last byte of its last event
    "ordinal": "u4",  # of its first element
    "count": "u4",  # elements in it
    "repaired": "u1",  # 1: `[` + bytes + `]` is no JSON; its elements must be read one by one, with repair
}
TABLES: Mapping[str, Mapping[str, str]] = {
    "timed": TIMED,
    "flows": FLOWS,
    "asyncs": ASYNCS,
    "counters": COUNTERS,
    "blocks": BLOCKS,
}

Table: TypeAlias = dict[str, AnyArray]


@dataclass(frozen=True)
class Metadata:
    """One M event, reduced to what counts; of several with one (pid, tid, name) only the last is kept."""

    ordinal: int
    name: str  # process_name, process_labels, process_sort_index, thread_name, thread_sort_index, …
    pid: str  # JSON text of pid, "null" when absent
    tid: str
    args: str  # JSON text of its args object
