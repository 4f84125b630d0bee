"""What a trace has nothing for, told without counting: the panels that would be empty."""

from __future__ import annotations

from collections.abc import Collection

from ..base.kineto import SEGMENT_RECORD
from ..index.producers import has_memory_records
from ..index.store import Index
from ..trace import Trace
from ..trace.devices import devices, ranks_of_processes
from .analysis import Need
from .compile.compile_phases import DYNAMO, FUNCTION, GRAPH, LOOKUP, REGION
from .host.sections import is_report

MAX_BYTES = 16 << 20
"""Names of more bytes are not looked through: what they might name counts as present."""
INDUCTOR = ("triton_", "sdsc_", "inductor-spyre/", "spyre_kernel_v")
"""In the names of all kernels of Inductor; others may have them too."""


def absent(trace: Trace) -> frozenset[Need]:
    """Return what a trace lacks for certain; steps, which may be chosen, are left to the caller."""
    lacks: set[Need] = set()
    if not devices(trace):
        lacks.add("devices")
    if trace.answers is None and len(trace.indexes) < 2 and len(ranks_of_processes(trace)) < 2:
        lacks.add("ranks")
    if not is_report(trace):
        lacks.add("report")
    if sum(index.length("strings.blob") for index in trace.indexes) > MAX_BYTES:
        return frozenset(lacks)
    if not any(map(has_memory_records, trace.indexes)):
        lacks.add("memory")
    if "memory" in lacks or not _has(trace.indexes, (SEGMENT_RECORD,)):
        lacks.add("segments")
    names: tuple[tuple[Need, str], ...] = (("regions", REGION), ("graphs", GRAPH), ("phases", DYNAMO))
    lacks.update(need for need, text in names if not _has(trace.indexes, (text,)))
    signs = (REGION, GRAPH, FUNCTION, LOOKUP, DYNAMO, *INDUCTOR)
    if not _has(trace.indexes, signs):
        lacks.add("compile")
    return frozenset(lacks)


def _has(indexes: Collection[Index], texts: Collection[str]) -> bool:
    return any(index.string_numbers(text, inside=True, limit=1) for index in indexes for text in texts)
