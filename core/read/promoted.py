"""The arguments that analyses need of every event, promoted to typed sparse columns while reading.

Everything else in `args` is read from the source on demand. The table's hash is part of the index format.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from ..base.kineto import GROUPS


class Kind(Enum):
    """How values are kept: others (a string where a number should be) are not promoted but stay readable."""

    INTEGER = "i8"  # JSON integer, or a string of digits (Kineto writes some numbers quoted)
    FLOAT = "f8"  # any JSON number
    TEXT = "u4"  # string number; a JSON value that is no string is kept as its compact JSON text


class Promoted(NamedTuple):
    """One promoted argument: its column's key, the args keys that mean it, where it occurs, who uses it."""

    key: str
    args: tuple[str, ...]  # first one present wins
    kind: Kind
    groups: frozenset[str]  # category groups, see GROUPS
    used_by: str


def _p(key: str, args: str, kind: Kind, groups: str, used_by: str) -> Promoted:
    return Promoted(key, tuple(args.split("|")), kind, frozenset(groups.split()), used_by)


_I, _F, _T = Kind.INTEGER, Kind.FLOAT, Kind.TEXT
PROMOTED: tuple[Promoted, ...] = (
    _p("external_id", "External id|external id", _I, "op runtime device other", "links, ops"),
    _p("correlation", "correlation", _I, "runtime device other", "links, launches"),
    _p("stream", "stream", _I, "device runtime other", "kernels, idle"),
    _p("device", "device", _I, "device runtime other", "kernels, breakdown"),
    _p("bytes", "bytes|Bytes", _I, "device runtime memory other", "memory, copies"),
    _p("bandwidth", "memory bandwidth (GB/s)", _F, "device", "copies"),
    _p("addr", "Addr", _I, "memory other", "memory"),
    _p("total_allocated", "Total Allocated", _I, "memory other", "memory"),
    _p("total_reserved", "Total Reserved", _I, "memory other", "memory"),
    _p("device_type", "Device Type", _I, "memory other", "memory, ops"),
    _p("device_id", "Device Id", _I, "memory other", "memory"),
    _p("input_dims", "Input Dims|Input dims", _T, "op", "ops by shape"),
    _p("input_type", "Input type", _T, "op", "ops by shape"),
    _p("sequence", "Sequence number", _I, "op", "ops by stack"),
    _p("fwd_thread", "Fwd thread id", _I, "op", "ops by stack"),
    _p("call_stack", "Call stack", _T, "op", "ops by stack"),
    _p("grid", "grid", _T, "device", "kernels"),
    _p("block", "block", _T, "device", "kernels"),
    _p("registers", "registers per thread", _I, "device", "kernels"),
    _p("shared_memory", "shared memory", _I, "device", "kernels"),
    _p("blocks_per_sm", "blocks per SM", _F, "device", "kernels"),
    _p("occupancy", "est. achieved occupancy %", _F, "device", "kernels"),
    _p("collective", "Collective name", _T, "op device runtime other", "ranks"),
    _p("collective_in", "In msg nelems", _I, "op device", "ranks"),
    _p("collective_out", "Out msg nelems", _I, "op device", "ranks"),
    _p("collective_type", "dtype", _T, "op device", "ranks"),
    _p("collective_group", "Process Group Name", _T, "op device", "ranks"),
    _p("collective_sequence", "Seq", _I, "op device", "ranks"),
    _p("collective_size", "Group size", _I, "op device", "device states"),
    _p("cname", "", _T, "op python runtime device memory other", "colour: the event's own cname"),
)
"""`cname` stands beside args, in the event itself; its `args` is empty."""


def table_hash() -> str:
    """Return the hash of the table of promoted arguments that is part of the index format version."""
    text = repr([(e.key, e.args, e.kind.value, sorted(e.groups)) for e in PROMOTED]) + repr(
        sorted((g, sorted(c)) for g, c in GROUPS.items())
    )
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class PromotedTable:
    """The promoted arguments that a scanner looks for, in the order in which it numbers their texts. Keys
    have slots: those of one column follow one another, and the first that an event has is the one read.
    """

    columns: tuple[Promoted, ...] = PROMOTED

    @cached_property
    def keys(self) -> tuple[str, ...]:
        keys = tuple(key for column in self.columns for key in column.args if key)
        if len(set(keys)) < len(keys) or len(keys) > MOST_KEYS:
            raise ValueError(f"an argument is promoted twice, or more than {MOST_KEYS} are")
        return keys

    @cached_property
    def slots(self) -> dict[str, int]:
        return {key: slot for slot, key in enumerate(self.keys)}

    @cached_property
    def owners(self) -> tuple[int, ...]:
        return tuple(number for number, column in enumerate(self.columns) for key in column.args if key)

    @cached_property
    def cname(self) -> int | None:
        return next((number for number, column in enumerate(self.columns) if column.key == "cname"), None)


MOST_KEYS = 64
"""A scanner marks the keys that it has seen in one word."""
