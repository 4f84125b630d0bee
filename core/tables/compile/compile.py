"""torch.compile in a trace: whether it was used and how one can tell, what ran compiled, and what it cost.

The origin of each kernel that devices ran is one of CODE: Inductor, the user's Triton code, a library, aten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, sum_of
from ...base.kineto import GROUPS, OPS
from ...index.store import Index
from ...query.chain import enclosing
from ...query.groups import dense
from ...query.lookup import category_mask, nearest_around
from ..device.kernels import kernels
from ..frame.frame import Frame
from ..frame.frame_columns import capture_notes, work_of
from ..frame.metrics import Metric, ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.shape import ON_DEVICE, Aggregate, Shape, first, flagged, n, share_of_all, total
from ..frame.table import Table, Tables
from ..frame.text_column import TextColumn
from ..host.range_table import range_table
from .artefacts import Artefacts, KernelOrigin, read_artefacts
from .compile_phases import (
    COMPILERS,
    ENTIRE,
    FUNCTION,
    FUNCTION_NAME,
    GRAPH,
    GRAPH_HASH,
    LOOKUP,
    REGION,
    calls,
    compilation_table,
    is_of_dynamo,
    phase_table,
    timed,
)
from .compile_regions import Recompiled, graph_table, recompiled_frames, region_table, step_table

KNOWN_BY = {
    "Inductor (Triton)": "named triton_poi_…, triton_red_…, …",
    "Inductor (Spyre)": "named sdsc_… or spyre_kernel_…",
    "user Triton": "a plain name, launched by no aten op",
    "library": "names of cuBLAS, cuDNN, CUTLASS, Tensile, …",
    "aten": "named at::native::…",
    "other": "none of these names",
    "communication": "names of collectives",
    "memory": "copies and memsets",
}
CODE = tuple(KNOWN_BY)
INDUCTOR, SPYRE, TRITON, LIBRARY, ATEN, OTHER, COMMUNICATION, MEMORY = range(len(CODE))
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


def _time(of: Callable[[Frame], AnyArray]) -> Aggregate:
    return total(lambda work: np.where(of(work), work.dur, 0))


CODES = Shape(
    "compile_code",
    "Device time by code",
    {
        **ON_DEVICE,
        "name": ("code", first(lambda work: TextColumn(work.code, CODE), "text")),
        "kernels": n(),
        "names": flagged(
            Aggregate(lambda g: np.array([len(distinct(part.name_number)) for part in g.parts])), "statistic"
        ),
        "total_ns": total("dur"),
        "share": share_of_all("dur"),
        "compiled_ns": ("in compiled code", _time(lambda work: work.is_compiled)),
        "eager_ns": ("outside", _time(lambda work: (work.launched >= 0) & ~work.is_compiled)),
        "unknown_ns": ("launch not known", _time(lambda work: work.launched < 0)),
        "known_by": ("known by", first(lambda work: TextColumn(work.code, list(KNOWN_BY.values())), "text")),
    },
    {"chief": ("name", "total_ns", "share", "compiled_ns")},
)


def code_table(scope: Scope) -> Table:
    """Return a row per device and kind of code, most time first.

    `compiled_ns` is the time of kernels launched inside compiled regions or graphs; work whose launch the
    trace does not tell, or whose launch is a replayed graph's, is in `unknown_ns` or where that call lies.
    """
    work = work_of(scope)
    work = work.plus(is_compiled=work.from_parts(_is_compiled), code=work.from_parts(_codes, "device_row"))
    groups = work.group("device_row", "code")
    return CODES.of(groups, jump="dur", sort="total_ns", totals={"total_ns": sum_of(work.dur)})


def compiled_slices(scope: Scope, source: int) -> I64:
    """Return the positions, ascending, of all compiled code of a source, in the whole trace."""
    whole = Scope(scope.trace, clocks=scope.clocks, source=source)
    kinds = ((REGION, None), (GRAPH, GRAPH_HASH), (FUNCTION, FUNCTION_NAME))
    return distinct(np.concatenate([calls(whole, *kind).position for kind in kinds]))


def _is_compiled(part: Frame) -> AnyArray:
    inside, known = np.zeros(len(part), np.bool_), part.launched >= 0
    compiled = compiled_slices(part.scope, part.source_number)
    inside[known] = nearest_around(part.index, part.launched[known], compiled, itself=True) >= 0
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
    known = part.launched[(rows == at) & (part.launched >= 0)]
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


COMPILE = TableSchema(
    "compile",
    "torch.compile",
    (
        Column("rank", "rank", "text"),
        Column("name", "sign", "text"),
        Column("count", "count", "count"),
        Column("total_ns", "time", "ns"),
        Column("start_ns", "first at", "ns", statistic=True, moment=True),
        Column("meaning", "what it shows", "text"),
    ),
    jumps_to="the first",
    chief=("name", "count", "total_ns", "start_ns"),
)
RECOMPILED = TableSchema(
    "recompiled",
    "Compiled again",
    (
        Column("rank", "rank", "id"),
        Column("frame", "frame", "id"),
        Column("runs", "compilations", "object"),
    ),
    is_drawn=False,
)
COMPILATION = "compilation"
WROTE = "Dynamo wrote what it compiled"
SIGNS = (
    (REGION, REGION, None, "code that Dynamo compiled ran"),
    ("CompiledFxGraph", GRAPH, GRAPH_HASH, "Inductor's code for a graph ran"),
    (FUNCTION, FUNCTION, FUNCTION_NAME, "AOTAutograd's graphs ran, forward or backward"),
    (LOOKUP, LOOKUP, None, "Dynamo looked for compiled code of a frame"),
    (COMPILATION, "(dynamo_timed)", COMPILERS, "compilation happened in the trace"),
    (COMPILATION, "entire_", ENTIRE, WROTE),
)
RAN = (REGION, "CompiledFxGraph", FUNCTION)
"""The signs that compiled code ran; each of the others may be there without it."""
CPU_KERNELS = (
    "Inductor's kernels for the CPU leave no events: their time is that of the CompiledFxGraph around them"
)
APPLIED = "torch.compile is applied"
ONLY_COMPILED = "torch.compile is applied: it compiled, and no code that it made ran in what is looked at"
DYNAMOS_OWN = "this is Dynamo's own file: it says what was compiled, not whether and how long it ran"
NOT_APPLIED = "torch.compile is not applied, as far as the trace shows"
NO_KERNELS = "no kernel with a name of Inductor's ran on a device"
NO_SIGN = "no compiled region, graph call, cache lookup or kernel of Inductor: nothing shows torch.compile"
ONLY_KERNELS = "known from the names of Inductor's kernels alone: the trace has no calls on the host"


class Compiled(NamedTuple):
    """What a scope shows of torch.compile, a table for each question."""

    signs: Table
    regions: Table
    graphs: Table
    steps: Table
    code: Table
    phases: Table
    compilations: Table
    recompiled: Table


def analyse_compile(scope: Scope, first: str = "signs", artefacts: str = "") -> Tables:
    """Return the signs of torch.compile, the regions, graphs, steps, code, phases and compilations."""
    paths = [source.path for source in scope.trace.sources]
    result = cache(partial(compiled, scope, partial(read_artefacts, artefacts, paths)))
    tables = {name: lambda key=name: getattr(result(), key) for name in Compiled._fields}
    return Tables(scope.text, scope.origin, tables).led_by(first)


def compile_metrics(scope: Scope) -> list[Metric]:
    """Return how many regions, graphs and compilations there are."""
    result = compiled(scope)
    runs, depth = result.regions.numbers("count"), result.regions.numbers("depth")
    return [
        Metric("compile.regions", "count", sum_of(runs[depth == 0])),
        Metric("compile.regions_nested", "count", sum_of(runs[depth > 0])),
        Metric("compile.recompiled_frames", "count", len(result.recompiled)),
        Metric("compile.graphs", "count", len(result.graphs)),
        Metric("compile.compilations", "count", len(result.compilations)),
    ]


def compiled(scope: Scope, artefacts: Callable[[], Artefacts] = Artefacts) -> Compiled:
    """Return what a scope shows of torch.compile; calls count where they begin, with their whole time.

    `artefacts` reads what the compiler wrote, where there are regions to explain.
    """
    regions, rows, code = calls(scope, REGION), timed(scope), code_table(scope)
    phases = phase_table(rows)
    return Compiled(
        sign_table(scope, code, phases.totals["compile_ns"]),
        region_table(regions, artefacts() if len(regions) else Artefacts()),
        graph_table(calls(scope, GRAPH, GRAPH_HASH)),
        step_table(scope),
        code,
        phases,
        compilation_table(rows),
        recompiled_table(scope, recompiled_frames(regions)),
    )


def recompiled_table(scope: Scope, frames: Sequence[Recompiled]) -> Table:
    """Return a row per frame of which several compilations ran: how often each did."""
    rows = [{**one._asdict(), "runs": {str(key): count for key, count in one.runs.items()}} for one in frames]
    return Table.from_rows(RECOMPILED, scope.text, rows)


def sign_table(scope: Scope, code: Table, compile_ns: int) -> Table:
    """Return the signs of torch.compile that a scope shows: `code` is its device time by code, `compile_ns`
    how long it compiled.
    """
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int | None]] = []
    again: list[Recompiled] = []
    for own in map(scope.of_source, scope.sources):
        (source,) = own.sources
        for name, part, pattern, meaning in SIGNS:
            if pattern is ENTIRE and not is_of_dynamo(scope.trace.indexes[source]):
                continue
            signs = calls(own, part, pattern)
            if name is REGION:
                again += recompiled_frames(signs)
            if len(signs):
                times = {"total_ns": sum_of(signs.dur), "start_ns": int(signs.start[0])}
                what = {"rank": signs.rank.tolist()[0], "name": name, "count": len(signs), "meaning": meaning}
                rows.append({**what, **times})
                jumps.append((source, int(signs.position[0])))
    ran = any(row["name"] in RAN for row in rows)
    kernels = [row for row in code.rows() if row["name"] in (CODE[INDUCTOR], CODE[SPYRE])]
    for at, row in enumerate(code.rows()):
        if row in kernels:
            what = {"name": f"kernels of {row['name']}", "count": row["kernels"], "start_ns": None}
            rows.append({**row, **what, "meaning": "kernels that Inductor wrote ran on a device"})
            jumps.append(code.jump(at) or (0, None))
    has_compiled = any(row["name"] == COMPILATION for row in rows) or compile_ns > 0
    notes = [_again(one) for one in again]
    if not rows and not has_compiled:
        notes.append(NO_SIGN)
    if kernels and not ran:
        notes.append(ONLY_KERNELS)
    if ran and not kernels:
        notes.append(NO_KERNELS if len(code) else CPU_KERNELS)
    of_dynamo = any(row["meaning"] == WROTE for row in rows)
    applied = ran or bool(kernels) or of_dynamo
    notes.insert(0, APPLIED if applied else ONLY_COMPILED if has_compiled else NOT_APPLIED)
    if of_dynamo and not ran:
        notes.append(DYNAMOS_OWN)
    totals = {"applied": applied or has_compiled, "compile_ns": compile_ns}
    return Table.from_rows(COMPILE, scope.text, rows, jumps, totals=totals, notes=notes)


def _again(one: Recompiled) -> str:
    ran = ", ".join(f"{one.frame}/{number} {count:,} times" for number, count in one.runs.items())
    return f"frame {one.frame} was compiled at least {max(one.runs) + 1} times: {ran}"


SOURCE = TableSchema(
    "source",
    "Kernels and their source",
    (
        Column("name", "kernel", "text", is_name=True),
        Column("count", "count", "count"),
        Column("total_ns", "total", "ns"),
        Column("line", "line", "text"),
        Column("code", "code", "text"),
        Column("ops", "ops", "text"),
        Column("nodes", "FX nodes", "text"),
        Column("graphs", "graph", "text"),
        Column("function", "function", "text", detail=True),
        Column("files", "files", "text", detail=True),
        Column("artefact", "said by", "text", detail=True),
    ),
    keys=("name",),
    chief=("name", "total_ns", "line", "code"),
)
REASONS = TableSchema(
    "reasons",
    "Why graphs broke or were compiled again",
    (
        Column("kind", "what", "text"),
        Column("graph", "graph", "text"),
        Column("line", "line", "text"),
        Column("reason", "reason", "text"),
        Column("explanation", "explanation", "text", detail=True),
        Column("file", "file", "text", detail=True),
    ),
    chief=("kind", "graph", "line", "reason"),
)
NOTHING = (
    "no artefact of a compiler beside the trace: --artefacts DIR names the folder of TORCH_TRACE, tlparse, "
    "TORCH_COMPILE_DEBUG, or spyre_provenance.json"
)


FRAME = re.compile(r"(.+)\((\d+)\): (.+)")
"""A frame of Python as its profiler writes it: file(line): function."""
LIBRARIES = ("torch/", "triton/", "<")
"""How files begin of libraries through which all ops are called, and of code that has no file."""
BY_CAPTURE = "capture"
"""What says the source of a kernel that a graph replays."""
MAX_SAID = 3
"""The most ops and lines of one kernel that a row says."""


def analyse_source(scope: Scope, artefacts: str = "") -> Tables:
    """Return the source of the kernels of a scope, and why graphs broke or were compiled again."""
    read = cache(partial(read_artefacts, artefacts, [source.path for source in scope.trace.sources]))
    return Tables(
        scope.text,
        scope.origin,
        {"source": lambda: source_table(scope, read()), "reasons": lambda: reason_table(scope, read())},
    )


def source_table(scope: Scope, artefacts: Artefacts) -> Table:
    """Return a row per kernel that the artefacts know: those of the scope by device time, where a name has
    none by the slices of that name on the host, then those that did not run; and of the others that graphs
    replay a row by capture.
    """
    on_device = kernels(scope)
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int | None]] = []
    met = set[KernelOrigin]()
    known_ns = 0
    for table in (on_device, range_table(scope)):
        names = {str(row["name"]) for row in rows}
        for at, row in enumerate(table.rows()):
            origin = artefacts.origin_of(str(row["name"]))
            if origin is None or row["name"] in names:
                continue
            rows.append(_row(str(row["name"]), int(row["count"]), int(row["total_ns"]), origin))
            jumps.append(table.jump(at) or (0, None))
            met.add(origin)
            known_ns += int(row["total_ns"]) if table is on_device else 0
    for name, origin in artefacts.origins.items():
        if origin not in met:
            rows.append(_row(name, 0, 0, origin))
            jumps.append((0, None))
    captured, notes = captured_rows(scope, {str(row["name"]) for row in rows})
    for row, jump in captured:
        rows.append(row)
        jumps.append(jump)
        known_ns += int(row["total_ns"])
    device_ns = sum_of(on_device.numbers("total_ns"))
    is_empty = not artefacts.origins and not artefacts.reasons and not captured
    return Table.from_rows(
        SOURCE,
        scope.text,
        rows,
        jumps,
        totals={"device_ns": device_ns, "known_ns": known_ns, "known_share": ratio(known_ns, device_ns)},
        notes=(*artefacts.notes, *notes, *((NOTHING,) if is_empty else ())),
    )


def captured_rows(
    scope: Scope, known: Container[str]
) -> tuple[list[tuple[dict[str, Any], tuple[int, int]]], tuple[str, ...]]:
    """Return (a row per kernel that graphs replay, by its captured launches, and where it leads, most time
    first; what captures say and why not of all). Kernels that are `known` otherwise are left out.
    """
    everything = work_of(scope)
    work = everything[everything.is_by_capture]
    work = work.plus(frame_at=work.from_parts(_frames, "owner_row"))
    frames = work.names_at(
        lambda part: part.owner_index.column("slices.name")[np.maximum(part.frame_at, 0)],
        index_of=attrgetter("owner_index"),
        by="owner_row",
    )
    work = work.plus(frame=TextColumn(np.where(work.frame_at < 0, -1, frames.codes), [*frames.texts, ""]))
    groups = work.group("name")
    rows = []
    for part in sorted(groups.parts, key=lambda part: -sum_of(part.dur)):
        if (name := part.name.tolist()[0]) in known:
            continue
        longest = part.top("dur")
        owners = ((one, scope.trace.owners(one.source_number)) for one in part.by("source"))
        labels = {label for one, of in owners for label in of.labels_of(one.position)}
        lines = [FRAME.fullmatch(text) for text in _largest(part, "frame")]
        row = {
            **dict.fromkeys(("code", "nodes"), ""),
            "name": name,
            "count": len(part),
            "total_ns": sum_of(part.dur),
            "ops": ", ".join(_largest(part, "op")),
            "graphs": ", ".join(sorted(labels)),
            "line": ", ".join(f"{line[1]}:{line[2]}" for line in lines if line),
            "function": ", ".join(dict.fromkeys(line[3] for line in lines if line)),
            "files": ", ".join(dict.fromkeys(line[1] for line in lines if line)),
            "artefact": BY_CAPTURE,
        }
        rows.append((row, (int(longest.source[0]), int(longest.position[0]))))
    return rows, capture_notes(everything)


def _frames(part: Frame) -> AnyArray:
    """Return the innermost frame of Python with a line around each row's op, else around its owner: one of
    the libraries that call ops for everybody only where there is no other.
    """
    index = part.owner_index
    frames: I64 = np.flatnonzero(category_mask(index, GROUPS["python"])[index.column("slices.category")])
    numbers, which = np.unique(index.column("slices.name")[frames], return_inverse=True)
    names = index.strings(numbers)
    has_line = np.array([FRAME.fullmatch(text) is not None for text in names], np.bool_)[which]
    is_own = has_line & ~np.array([text.startswith(LIBRARIES) for text in names], np.bool_)[which]
    inner = np.where(part.op_at < 0, part.owner, part.op_at)
    own, every = (nearest_around(index, inner, frames[fits]) for fits in (is_own, has_line))
    return np.where(own < 0, every, own)


def _largest(part: Frame, key: str) -> list[str]:
    """Return the texts of a column with most time, the first MAX_SAID."""
    words: TextColumn = getattr(part, key)
    time = dict[str, int]()
    for text, ns in zip(words.tolist(), part.dur.tolist()):
        if text:
            time[text] = time.get(text, 0) + ns
    return sorted(time, key=lambda text: -time[text])[:MAX_SAID]


def _row(name: str, count: int, total_ns: int, origin: KernelOrigin) -> dict[str, Any]:
    texts = {key: ", ".join(getattr(origin, key)) for key in ("ops", "nodes", "graphs")}
    for key in ("function", "file", "code"):
        lines = dict.fromkeys(text for line in origin.lines if (text := getattr(line, key)))
        texts[key] = (" · " if key == "code" else ", ").join(lines)
    texts |= {"line": ", ".join(dict.fromkeys(map(str, origin.lines))), "artefact": origin.artefact}
    return {"name": name, "count": count, "total_ns": total_ns, **texts, "files": texts["file"]}


def reason_table(scope: Scope, artefacts: Artefacts) -> Table:
    """Return a row for each reason why a graph broke or was compiled again, in the order of the files."""
    rows = []
    for one in artefacts.reasons:
        line, file = ("", "") if one.line is None else (str(one.line), one.line.file)
        rows.append({**one._asdict(), "line": line, "file": file})
    return Table.from_rows(REASONS, scope.text, rows)
