"""The arguments that analyses need of every event, lifted into typed sparse columns while decoding.

Everything else in `args` is read from the source on demand. The table's hash is part of the index format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from ..base.kineto import GROUPS


class Kind(Enum):
    """How values are kept: others (a string where a number should be) are not lifted but stay readable."""

    INTEGER = "i8"  # JSON integer, or a string of digits (Kineto writes some numbers quoted)
    FLOAT = "f8"  # any JSON number
    TEXT = "u4"  # string number; a JSON value that is no string is kept as its compact JSON text


@dataclass(frozen=True)
class Lifted:
    """One lifted argument: its column's key, the args keys that mean it, where it occurs, who uses it."""

    key: str
    args: tuple[str, ...]  # first one present wins
    kind: Kind
    groups: frozenset[str]  # category groups, see GROUPS
    used_by: str


def _l(key: str, args: str, kind: Kind, groups: str, used_by: str) -> Lifted:
    return Lifted(key, tuple(args.split("|")), kind, frozenset(groups.split()), used_by)


_I, _F, _T = Kind.INTEGER, Kind.FLOAT, Kind.TEXT
LIFTED: tuple[Lifted, ...] = (
    _l("external_id", "External id|external id", _I, "op runtime device", "links, ops"),
    _l("correlation", "correlation", _I, "runtime device other", "links, launches"),
    _l("stream", "stream", _I, "device runtime other", "kernels, idle"),
    _l("device", "device", _I, "device runtime other", "kernels, breakdown"),
    _l("bytes", "bytes|Bytes", _I, "device runtime memory other", "memory, copies"),
    _l("bandwidth", "memory bandwidth (GB/s)", _F, "device", "copies"),
    _l("addr", "Addr", _I, "memory other", "memory"),
    _l("total_allocated", "Total Allocated", _I, "memory other", "memory"),
    _l("total_reserved", "Total Reserved", _I, "memory other", "memory"),
    _l("device_type", "Device Type", _I, "memory other", "memory, ops"),
    _l("device_id", "Device Id", _I, "memory other", "memory"),
    _l("input_dims", "Input Dims|Input dims", _T, "op", "ops by shape"),
    _l("input_type", "Input type", _T, "op", "ops by shape"),
    _l("sequence", "Sequence number", _I, "op", "ops by stack"),
    _l("fwd_thread", "Fwd thread id", _I, "op", "ops by stack"),
    _l("python_id", "Python id", _I, "python", "stacks"),
    _l("python_parent", "Python parent id", _I, "python", "stacks"),
    _l("python_module", "Python module id", _I, "python", "ops by module"),
    _l("call_stack", "Call stack", _T, "op", "ops by stack"),
    _l("grid", "grid", _T, "device", "kernels"),
    _l("block", "block", _T, "device", "kernels"),
    _l("registers", "registers per thread", _I, "device", "kernels"),
    _l("shared_memory", "shared memory", _I, "device", "kernels"),
    _l("blocks_per_sm", "blocks per SM", _F, "device", "kernels"),
    _l("occupancy", "est. achieved occupancy %", _F, "device", "kernels"),
    _l("collective", "Collective name", _T, "op device runtime", "ranks"),
    _l("collective_in", "In msg nelems", _I, "op device", "ranks"),
    _l("collective_out", "Out msg nelems", _I, "op device", "ranks"),
    _l("collective_group", "Process Group Name", _T, "op device", "ranks"),
    _l("collective_sequence", "Seq", _I, "op device", "ranks"),
    _l("cname", "", _T, "op python runtime device memory other", "colour: the event's own cname"),
)
"""`cname` stands beside args, in the event itself; its `args` is empty."""


def lifted_in(group: str, present: Collection[str]) -> list[tuple[Lifted, str]]:
    """Return what is lifted from arguments with these keys in a category group, each with its key there."""
    found = []
    for lifted in LIFTED:
        key = next((key for key in lifted.args if key and key in present), None)
        if key is not None and group in lifted.groups:
            found.append((lifted, key))
    return found


def table_hash() -> str:
    """Return the hash of the lifted table that is part of the index format version."""
    text = repr([(e.key, e.args, e.kind.value, sorted(e.groups)) for e in LIFTED]) + repr(
        sorted((g, sorted(c)) for g, c in GROUPS.items())
    )
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
