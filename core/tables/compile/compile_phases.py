"""What torch.compile leaves on the host: regions, calls of graphs, cache lookups; and the time of compiling,
by the slices that it writes for its phases (dynamo_timed).
"""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import I64, sum_of
from ...base.units import format_ns
from ...index.store import Index
from ...query.args import argument_values
from ..frame.frame import Frame
from ..frame.scope import Scope
from ..frame.shape import Aggregate, Shape, first, flagged, n, share_of_all, statistic, text, total
from ..frame.table import Table
from ..frame.text_column import TextColumn
from ..host.call_columns import calls_named, members_around

REGION = "Torch-Compiled Region"
GRAPH = "## Call CompiledFxGraph "
FUNCTION = "CompiledFunction"
LOOKUP = "TorchDynamo Cache Lookup"
TIMED = " (dynamo_timed)"
DYNAMO = "dynamo_timed"
"""The category of what Dynamo writes of itself: chromium_events.json, as tlparse makes of TORCH_TRACE."""
REGION_ID = re.compile(r"Torch-Compiled Region: (?:!\d+/)?(?P<frame>\d+)/(?P<compile>\d+)")
GRAPH_HASH = re.compile(r"## Call CompiledFxGraph (?P<hash>\S+) ##")
FUNCTION_NAME = re.compile(r"CompiledFunction(Backward)?")


def calls(scope: Scope, text: str, pattern: re.Pattern[str] | None = None) -> Frame:
    """Return the host's calls in a scope whose name contains a text and, if one is given, matches a whole
    pattern; of those that Dynamo itself wrote all for its mark, TIMED, which their category stands for.
    """
    return calls_named(scope, text, pattern, DYNAMO, whole=text == TIMED and pattern is None)


def is_of_dynamo(index: Index) -> bool:
    """Tell whether an index is of a file that Dynamo itself wrote."""
    return DYNAMO in index.categories


PHASES = ("dynamo", "AOT", "inductor")
"""The phases in the order in which a compilation goes through them."""
_PHASE_OF = (
    (
        "inductor",
        re.compile(
            r"compile_fx|inductor|fx_codegen_and_compile|GraphLowering|Scheduler|\w*WrapperCodegen|PyCodeCache"
            r"|compile_file|async_compile|AsyncCompile|Triton|CacheBase|FxGraphCache|CachingAutotuner"
            r"|_recursive_(pre|post|joint)_gra(d|ph)_passes|pass\.|additional_fake_tensor_prop|code_gen"
        ),
    ),
    ("AOT", re.compile(r"create_aot|aot_|AOT|min_cut_rematerialization|backward\._backward_impl")),
    (
        "dynamo",
        re.compile(
            r"_compile\.|compile_attempt|bytecode_tracing|build_guards|OutputGraph|gc$|insert_deferred"
            r"|entire_frame|dynamo"
        ),
    ),
)
"""Prefix of a slice's name -> its phase; a slice with none of the prefixes belongs to the phase of the slice
around it.
"""
COMPILERS = re.compile(r"(_compile\.compile_inner|backward\._backward_impl)( \(dynamo_timed\))")
"""Slices with these names are one compilation each: of a frame, or of a backward graph compiled later."""
ENTIRE = re.compile(r"entire_(?:frame|backward)_compile")
"""The same as Dynamo calls them in its own file, each with its id as an argument."""
COMPILE_ID = re.compile(r"(?>.*?_data:)(?>.*\bcompile_id=)(\S+)")
UNKNOWN = ""


def _time_of(phase: int) -> Aggregate:
    return total(lambda rows: np.where(rows.phase == phase, rows.own_ns, 0))


COMPILE_PHASES = Shape(
    "compile_phases",
    "Compile time by phase",
    {
        "rank": text("rank"),
        "phase": first(lambda rows: TextColumn(rows.phase, (*PHASES, UNKNOWN)), "text"),
        "name": ("what", text("label")),
        "count": n(),
        "total_ns": total("dur"),
        "self_ns": ("without inner", total("own_ns")),
        "share": share_of_all("own_ns"),
        "max_ns": ("longest", flagged(statistic("max_ns", "dur"), "statistic")),
    },
    {"chief": ("phase", "name", "self_ns", "count", "share")},
)
COMPILATIONS = Shape(
    "compilations",
    "Compilations",
    {
        "rank": text("rank"),
        "name": ("compile id", text("compile_id")),
        "of": text("what"),
        "start_ns": ("at", flagged(first("start"), "statistic", "moment")),
        "total_ns": first("dur"),
        **{f"{phase.lower()}_ns": (phase, _time_of(number)) for number, phase in enumerate(PHASES)},
    },
    {"jumps_to": "the compilation"},
)


def timed(scope: Scope) -> Frame:
    """Return the calls of the compiler's phases, each with its `phase`: a place in PHASES, len(PHASES) where
    nothing tells.
    """
    rows = calls(scope, TIMED)
    return rows.plus(phase=_phases(rows))


def phase_table(rows: Frame) -> Table:
    """Return a row per phase and what it did; `self_ns` adds up to all of the compile time."""
    rows = rows.plus(
        label=rows.names_at(lambda part: part.name_number, lambda text: text.removesuffix(TIMED))
    )
    spent = sum_of(rows.own_ns)
    times = [sum_of(rows.own_ns[rows.phase == number]) for number in range(len(PHASES))]
    parts = ", ".join(f"{phase} {format_ns(ns)}" for phase, ns in zip(PHASES, times) if ns)
    return COMPILE_PHASES.of(
        rows.group("source", "phase", "name_number"),
        jump="dur",
        sort="self_ns",
        totals={"compile_ns": spent, **{f"{phase.lower()}_ns": ns for phase, ns in zip(PHASES, times)}},
        notes=(f"{format_ns(spent)} in all: {parts}",) if len(rows) else (),
    )


def _phases(rows: Frame) -> I64:
    names = [text.removesuffix(TIMED) for text in rows.name.texts]
    known = [next((phase for phase, fits in _PHASE_OF if fits.match(name)), "") for name in names]
    of_name = np.array([(*PHASES, "").index(phase) for phase in known], np.int64)
    numbers: I64 = of_name[rows.name.codes]
    # Rows are in order of start, outer before inner, so that one pass per level settles all.
    while True:
        open_ = np.flatnonzero((numbers == len(PHASES)) & (rows.around >= 0))
        recognised = open_[numbers[rows.around[open_]] < len(PHASES)]
        if not len(recognised):
            return numbers
        numbers[recognised] = numbers[rows.around[recognised]]


def compilation_table(rows: Frame) -> Table:
    """Return the compilations that the trace holds in order of time, with the time of their phases."""
    texts = rows.name.texts
    is_root = np.array([bool(COMPILERS.fullmatch(t) or ENTIRE.fullmatch(t)) for t in texts], np.bool_)
    is_backward = np.array([t.startswith(("backward", "entire_backward")) for t in texts], np.int64)
    roots = rows[is_root[rows.name.codes]]
    inside = rows.plus(
        root=members_around(rows, roots, itself=True),
        what=TextColumn(is_backward[rows.name.codes], ("frame", "backward graph")),
    )
    inside = inside[inside.root >= 0]
    return COMPILATIONS.of(
        inside.plus(compile_id=TextColumn(inside.root, _compile_ids(roots, len(rows)))).group("root"),
        jump="dur",
        totals={"count": len(roots), "total_ns": sum_of(roots.dur)},
    )


def _compile_ids(roots: Frame, count: int) -> list[str]:
    """Return the compile id of each compilation by its row, of so many rows: its argument, or what the calls
    inside it tell.
    """
    ids = [UNKNOWN] * count
    for part in roots.by("source"):
        own = argument_values(part.index, "compile_id", part.position)
        for row, value in zip(part.row.tolist(), own):
            ids[row] = UNKNOWN if value is None else str(value)
    signs = calls(roots.scope, "compile_id=", COMPILE_ID) if len(roots) else roots
    around = members_around(signs, roots).tolist()
    for row, name in reversed(list(zip(around, signs.name.tolist()))):  # of several the first
        if row >= 0 and (match := COMPILE_ID.fullmatch(name)):
            ids[row] = match[1]
    return ids
