"""The arguments that analyses need of every event, promoted to typed sparse columns while reading.

Everything else in `args` is read from the source on demand. The table's hash is part of the index format.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from ..base.digest import blake2b


class Kind(Enum):
    """How values are kept: others (a string where a number should be) are not promoted but stay readable."""

    INTEGER = "i8"  # JSON integer, or a string of digits (Kineto writes some numbers quoted)
    FLOAT = "f8"  # any JSON number
    TEXT = "u4"  # string number; a JSON value that is no string is kept as its compact JSON text


class Promoted(NamedTuple):
    """One promoted argument: its column's key, the args keys that mean it, who uses it."""

    key: str
    args: tuple[str, ...]  # first one present wins
    kind: Kind
    used_by: str


PROMOTED: tuple[Promoted, ...] = (
    Promoted(
        "external_id",
        ("External id", "external id"),
        Kind.INTEGER,
        "links, ops",
    ),
    Promoted("correlation", ("correlation",), Kind.INTEGER, "links, launches"),
    Promoted("stream", ("stream",), Kind.INTEGER, "kernels, idle"),
    Promoted("device", ("device",), Kind.INTEGER, "kernels, breakdown"),
    Promoted(
        "bytes",
        ("bytes", "Bytes", "allocation_bytes"),
        Kind.INTEGER,
        "memory, copies",
    ),
    Promoted("bandwidth", ("memory bandwidth (GB/s)",), Kind.FLOAT, "copies"),
    Promoted("addr", ("Addr", "addr"), Kind.INTEGER, "memory"),
    Promoted("total_allocated", ("Total Allocated", "bytes_allocated"), Kind.INTEGER, "memory"),
    Promoted("total_reserved", ("Total Reserved",), Kind.INTEGER, "memory"),
    Promoted("device_type", ("Device Type",), Kind.INTEGER, "memory, ops"),
    Promoted("device_id", ("Device Id",), Kind.INTEGER, "memory"),
    Promoted("allocator", ("allocator_name",), Kind.TEXT, "memory"),
    Promoted("input_dims", ("Input Dims", "Input dims"), Kind.TEXT, "ops by shape"),
    Promoted("input_type", ("Input type",), Kind.TEXT, "ops by shape"),
    Promoted("op_name", ("op_name",), Kind.TEXT, "ops"),
    Promoted("provider", ("provider",), Kind.TEXT, "ops by provider"),
    Promoted("sequence", ("Sequence number",), Kind.INTEGER, "ops by stack"),
    Promoted("fwd_thread", ("Fwd thread id",), Kind.INTEGER, "ops by stack"),
    Promoted("call_stack", ("Call stack",), Kind.TEXT, "ops by stack"),
    Promoted("grid", ("grid",), Kind.TEXT, "kernels"),
    Promoted("block", ("block",), Kind.TEXT, "kernels"),
    Promoted("registers", ("registers per thread",), Kind.INTEGER, "kernels"),
    Promoted("shared_memory", ("shared memory",), Kind.INTEGER, "kernels"),
    Promoted("blocks_per_sm", ("blocks per SM",), Kind.FLOAT, "kernels"),
    Promoted("occupancy", ("est. achieved occupancy %",), Kind.FLOAT, "kernels"),
    Promoted("collective", ("Collective name",), Kind.TEXT, "ranks"),
    Promoted("collective_in", ("In msg nelems",), Kind.INTEGER, "ranks"),
    Promoted("collective_out", ("Out msg nelems",), Kind.INTEGER, "ranks"),
    Promoted("collective_type", ("dtype",), Kind.TEXT, "ranks"),
    Promoted("collective_group", ("Process Group Name",), Kind.TEXT, "ranks"),
    Promoted("collective_sequence", ("Seq",), Kind.INTEGER, "ranks"),
    Promoted("collective_size", ("Group size",), Kind.INTEGER, "device states"),
    Promoted(
        "cname",
        ("",),
        Kind.TEXT,
        "colour: the event's own cname",
    ),
)
"""`cname` stands beside args, in the event itself; its `args` is empty."""


def table_hash() -> str:
    """Return the hash of the table of promoted arguments that is part of the index format version."""
    text = repr([(e.key, e.args, e.kind.value) for e in PROMOTED])
    return blake2b(text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class PromotedTable:
    """The promoted arguments that a scanner looks for, in the order in which it numbers their texts. Keys
    have slots: those of one column follow one another, and the first that an event has is the one read.
    """

    columns: tuple[Promoted, ...] = PROMOTED

    @cached_property
    def keys(self) -> tuple[str, ...]:
        keys = tuple(key for column in self.columns for key in column.args if key)
        if len(set(keys)) < len(keys) or len(keys) > MAX_KEYS:
            raise ValueError(f"an argument is promoted twice, or more than {MAX_KEYS} are")
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


MAX_KEYS = 64
"""A scanner marks the keys that it has seen in one word."""
