"""The origin of the kernels that devices ran: Inductor, the user's Triton code, a library, or aten itself."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..base.arrays import I64
from ..base.kineto import OPS
from ..index.format import NONE
from ..index.store import Index
from ..query.chain import enclosing
from ..query.launches import Launches
from .compile_calls import FUNCTION, FUNCTION_NAME, GRAPH, GRAPH_HASH, REGION, calls
from .kinds import KERNEL_TYPES
from .schema import Column, TableSchema
from .scope import Scope
from .slices import nearest_around
from .table import Table
from .work import Work, work_of

CODE = (
    "Inductor (Triton)",
    "Inductor (Spyre)",
    "user Triton",
    "library",
    "aten",
    "other",
    "communication",
    "memory",
)
INDUCTOR, SPYRE, TRITON, LIBRARY, ATEN, OTHER, COMMUNICATION, MEMORY = range(len(CODE))
KNOWN_BY = {
    INDUCTOR: "named triton_poi_…, triton_red_…, …",
    SPYRE: "named sdsc_… or spyre_kernel_…",
    TRITON: "a plain name, launched by no aten op",
    LIBRARY: "names of cuBLAS, cuDNN, CUTLASS, Tensile, …",
    ATEN: "named at::native::…",
    OTHER: "none of these names",
    COMMUNICATION: "names of collectives",
    MEMORY: "copies and memsets",
}
_NAMES = (
    (INDUCTOR, re.compile(r"triton_[a-z]{3}_|triton_helpers")),
    (SPYRE, re.compile(r"(.*/)?sdsc_|.*/inductor-spyre/|spyre_kernel_v\d")),
    (ATEN, re.compile(r".*(\bat::native::|N2at6native|\bat_cuda_detail::)")),
    (
        LIBRARY,
        re.compile(
            r".*(gemm|gemv|cublas|cutlass|cudnn|xmma|nvjet|Cijk_|miopen|rocblas|hipblas|flash_fwd|flash_bwd|fmha"
            r"|ck_tile|N2ck|\bck::|aiter|\bcub::|rocprim|thrust::|splitK|winograd|dgrad|wgrad|fprop|implicit_con"
            r"|magma|fft)",
            re.IGNORECASE,
        ),
    ),
)
_PLAIN = re.compile(r"[A-Za-z_]\w*")
_MANGLED = "_Z"

COLUMNS = (
    Column("rank", "rank", "text"),
    Column("device", "device", "text"),
    Column("name", "code", "text"),
    Column("kernels", "kernels", "count"),
    Column("names", "names", "count", statistic=True),
    Column("total_ns", "total", "ns"),
    Column("share", "share", "share"),
    Column("compiled_ns", "in compiled code", "ns"),
    Column("eager_ns", "outside", "ns"),
    Column("unknown_ns", "launch not known", "ns"),
    Column("known_by", "known by", "text"),
)


def code_table(scope: Scope) -> Table:
    """Return a row per device and kind of code, most time first.

    `compiled_ns` is the time of kernels launched inside compiled regions or graphs; work whose launch the
    trace does not tell, or whose launch is a replayed graph's, is in `unknown_ns` or where that call lies.
    """
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    compiled: dict[int, I64] = {}
    for work in work_of(scope):
        source = work.device.source
        if source not in compiled:
            compiled[source] = compiled_slices(scope, source)
        launches = scope.trace.launches(source)
        for row, position in _rows(work, launches, compiled[source]):
            rows.append(row)
            jumps.append((source, position))
    total = sum(row["total_ns"] for row in rows)
    for row in rows:
        row["share"] = row["total_ns"] / max(1, total)
    title, totals = "Device time by code", {"total_ns": total}
    schema = TableSchema("compile_code", title, COLUMNS, chief=("name", "total_ns", "share", "compiled_ns"))
    table = Table.from_rows(schema, scope.text, rows, jumps, totals=totals)
    return table.sort("total_ns")


def compiled_slices(scope: Scope, source: int) -> I64:
    """Return the positions, ascending, of all compiled code of a source, in the whole trace."""
    whole = Scope(scope.trace, clocks=scope.clocks)
    slices = [
        calls(whole, source, REGION).positions,
        calls(whole, source, GRAPH, GRAPH_HASH).positions,
        calls(whole, source, FUNCTION, FUNCTION_NAME).positions,
    ]
    return np.unique(np.concatenate(slices))


def _rows(work: Work, pairs: Launches, compiled: I64) -> list[tuple[dict[str, Any], int]]:
    index = work.index
    launches = pairs.launches_at(work.positions).astype(np.int64)
    known = launches != NONE
    inside = np.zeros(len(work), np.bool_)
    inside[known] = nearest_around(index, launches[known], compiled, itself=True) != NONE
    at, numbers = work.distinct_names
    by_name = np.array([_code(index, int(number), at, launches, i) for i, number in enumerate(numbers)])
    kind = by_name[at] if len(numbers) else np.empty(0, np.int64)
    types = work.kinds()
    kind[types == KERNEL_TYPES.index("communication")] = COMMUNICATION
    kind[types == KERNEL_TYPES.index("memory")] = MEMORY
    duration = work.durations
    rows = []
    for code in np.unique(kind).tolist():
        mask = kind == code
        of_code = duration[mask]
        row = {
            "rank": str(work.rank),
            "device": work.title,
            "name": CODE[code],
            "kernels": int(mask.sum()),
            "names": len(np.unique(at[mask])),
            "total_ns": int(of_code.sum()),
            "compiled_ns": int(duration[mask & inside].sum()),
            "eager_ns": int(duration[mask & known & ~inside].sum()),
            "unknown_ns": int(duration[mask & ~known].sum()),
            "known_by": KNOWN_BY[code],
        }
        rows.append((row, int(work.positions[mask][np.argmax(of_code)])))
    return rows


def _code(index: Index, number: int, row: I64, launches: I64, at: int) -> int:
    """Return the origin of a kernel by its name; for a name that says nothing, by the op that launched the
    first one.
    """
    name = index.string(number)
    for code, fits in _NAMES:
        if fits.match(name):
            return code
    if not _PLAIN.fullmatch(name) or name.startswith(_MANGLED):
        return OTHER
    known = launches[(row == at) & (launches != NONE)]
    if not len(known):
        return TRITON
    return LIBRARY if _op_around(index, int(known[0])).startswith("aten::") else TRITON


def _op_around(index: Index, position: int) -> str:
    """Return the name of the innermost operator around a launch, "" where there is none."""
    names, categories = index.column("slices.name"), index.column("slices.category")
    for around in (position, *enclosing(index, position)):
        if index.categories[int(categories[around])] in OPS:
            return index.string(int(names[around]))
    return ""
