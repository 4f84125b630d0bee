"""The origin of the kernels that devices ran: Inductor, the user's Triton code, a library, or aten itself."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ..base.arrays import I64, AnyArray, sum_of
from ..base.kineto import OPS
from ..index.format import NONE
from ..index.store import Index
from ..query.chain import enclosing
from ..query.groups import dense
from .compile_phases import FUNCTION, FUNCTION_NAME, GRAPH, GRAPH_HASH, REGION, calls
from .frame import Frame, Words
from .frame_columns import work_of
from .scope import Scope
from .shape import Ask, Shape, first, flagged, n, share_of_all, text, total
from .slices import nearest_around
from .table import Table

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


def _time(of: Callable[[Frame], AnyArray]) -> Ask:
    return total(lambda work: np.where(of(work), work.dur, 0))


CODES = Shape(
    "compile_code",
    "Device time by code",
    {
        "rank": text("rank"),
        "device": text("device"),
        "name": ("code", first(lambda work: Words(work.code, CODE), "text")),
        "kernels": n(),
        "names": flagged(
            Ask(lambda g: np.array([len(np.unique(part.name_number)) for part in g.parts])), "statistic"
        ),
        "total_ns": total("dur"),
        "share": share_of_all("dur"),
        "compiled_ns": ("in compiled code", _time(lambda work: work.is_compiled)),
        "eager_ns": ("outside", _time(lambda work: (work.launcher != NONE) & ~work.is_compiled)),
        "unknown_ns": ("launch not known", _time(lambda work: work.launcher == NONE)),
        "known_by": ("known by", first(lambda work: Words(work.code, list(KNOWN_BY.values())), "text")),
    },
    {"chief": ("name", "total_ns", "share", "compiled_ns")},
)


def code_table(scope: Scope) -> Table:
    """Return a row per device and kind of code, most time first.

    `compiled_ns` is the time of kernels launched inside compiled regions or graphs; work whose launch the
    trace does not tell, or whose launch is a replayed graph's, is in `unknown_ns` or where that call lies.
    """
    work = work_of(scope)
    launches = scope.trace.launches
    launcher = work.from_parts(
        lambda part: launches(part.source_number).launches_at(part.position).astype(np.int64)
    )
    work = work.plus(launcher=launcher)
    work = work.plus(is_compiled=work.from_parts(_is_compiled), code=work.from_parts(_codes, "device_row"))
    groups = work.group("device_row", "code")
    return CODES.of(groups, jump="dur", sort="total_ns", totals={"total_ns": sum_of(work.dur)})


def compiled_slices(scope: Scope, source: int) -> I64:
    """Return the positions, ascending, of all compiled code of a source, in the whole trace."""
    whole = Scope(scope.trace, clocks=scope.clocks)
    slices = [
        calls(whole, source, REGION).positions,
        calls(whole, source, GRAPH, GRAPH_HASH).positions,
        calls(whole, source, FUNCTION, FUNCTION_NAME).positions,
    ]
    return np.unique(np.concatenate(slices))


def _is_compiled(part: Frame) -> AnyArray:
    inside, known = np.zeros(len(part), np.bool_), part.launcher != NONE
    compiled = compiled_slices(part.scope, part.source_number)
    inside[known] = nearest_around(part.index, part.launcher[known], compiled, itself=True) >= 0
    return inside


def _codes(part: Frame) -> AnyArray:
    """Return the origin of each row of a device, an index into CODE."""
    rows, numbers = dense(part.name_number)
    names = enumerate(part.index.strings(numbers))
    codes = np.array([_code(part, name, rows, at) for at, name in names])[rows]
    codes[part.is_type("communication")] = COMMUNICATION
    codes[part.is_type("memory")] = MEMORY
    return codes


def _code(part: Frame, name: str, rows: I64, at: int) -> int:
    """Return a kernel's origin by its name, by the op that launched the first where that says nothing."""
    for code, fits in _NAMES:
        if fits.match(name):
            return code
    if not _PLAIN.fullmatch(name) or name.startswith(_MANGLED):
        return OTHER
    known = part.launcher[(rows == at) & (part.launcher != NONE)]
    if not len(known):
        return TRITON
    return LIBRARY if _op_around(part.index, int(known[0])).startswith("aten::") else TRITON


def _op_around(index: Index, position: int) -> str:
    """Return the name of the innermost operator around a launch, "" where there is none."""
    names, categories = index.column("slices.name"), index.column("slices.category")
    for around in (position, *enclosing(index, position)):
        if index.categories[int(categories[around])] in OPS:
            return index.string(int(names[around]))
    return ""
