"""What torch.compile leaves on the host: regions, calls of graphs, cache lookups; and the time of compiling,
by the slices that it writes for its phases (dynamo_timed).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import I64, distinct, sum_of
from ...base.kineto import HOST_EVENTS
from ...base.units import format_ns
from ...index.store import Index
from ...query.args import argument_values
from ...query.lookup import category_mask, nearest_around
from ...trace.devices import rank_of
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope, Slices
from ..frame.table import Table

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


@dataclass(frozen=True, eq=False)
class Calls(Slices):
    """Slices of the host that start in a scope, by start; whole times."""

    rank: int


def calls(scope: Scope, source: int, text: str, pattern: re.Pattern[str] | None = None) -> Calls:
    """Return the host's slices whose name contains a text and, if one is given, matches a whole pattern; of
    those that Dynamo itself wrote all for its mark, TIMED, which their category stands for.
    """
    index = scope.trace.indexes[source]
    numbers = index.string_numbers(text, inside=True)
    if pattern is not None:
        numbers = [number for number in numbers if pattern.fullmatch(index.string(number))]
    whole = DYNAMO if text == TIMED and pattern is None else ""
    positions = _positions(scope, source, np.array(numbers, np.int64), whole)
    starts = scope.starts(source, positions)
    if scope.range is not None:
        inside = (starts >= scope.range[0]) & (starts < scope.range[1])
        positions, starts = positions[inside], starts[inside]
    durations = index.duration(positions)
    # An outer slice that begins with an inner one comes first.
    order = np.lexsort((-durations, starts))
    positions, starts, ends = positions[order], starts[order], (starts + durations)[order]
    names, categories = (index.column(f"slices.{key}")[positions] for key in ("name", "category"))
    return Calls(source, index, positions, starts, ends, names, categories, rank_of(index, source))


def is_of_dynamo(index: Index) -> bool:
    """Tell whether an index is of a file that Dynamo itself wrote."""
    return DYNAMO in index.categories


def _positions(scope: Scope, source: int, numbers: I64, category: str) -> I64:
    """Return the positions of the host's slices of these names, and of all of a category."""
    index = scope.trace.indexes[source]
    parts = [np.empty(0, np.int64)]
    whole = category_mask(index, {category} if category else ())
    if len(numbers) or whole.any():
        is_name = np.zeros(len(index.column("strings.offset")), np.bool_)
        is_name[numbers] = True
        host = category_mask(index, HOST_EVENTS) | category_mask(index, {DYNAMO})
        names, categories = index.column("slices.name"), index.column("slices.category")
        for part in scope.parts:
            scope.check()
            if part.source == source:
                at = slice(part.begin, part.end)
                of = categories[at]
                parts.append(part.begin + np.flatnonzero((is_name[names[at]] & host[of]) | whole[of]))
    positions: I64 = np.concatenate(parts)
    if scope.where is not None and len(positions):
        positions = positions[scope.where(index, positions)]
    return positions


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

COMPILE_PHASES = TableSchema(
    "compile_phases",
    "Compile time by phase",
    (
        Column("rank", "rank", "text"),
        Column("phase", "phase", "text"),
        Column("name", "what", "text"),
        Column("count", "count", "count"),
        Column("total_ns", "total", "ns"),
        Column("self_ns", "without inner", "ns"),
        Column("share", "share", "share"),
        Column("max_ns", "longest", "ns", statistic=True),
    ),
    chief=("phase", "name", "self_ns", "count", "share"),
)
COMPILATIONS = TableSchema(
    "compilations",
    "Compilations",
    (
        Column("rank", "rank", "text"),
        Column("name", "compile id", "text"),
        Column("of", "of", "text"),
        Column("start_ns", "at", "ns", statistic=True, moment=True),
        Column("total_ns", "total", "ns"),
        *(Column(f"{phase.lower()}_ns", phase, "ns") for phase in PHASES),
    ),
    jumps_to="the compilation",
)


def timed(scope: Scope, source: int) -> Calls:
    """Return the rows of the compiler's phases."""
    return calls(scope, source, TIMED)


def phase_table(scope: Scope, sources: Sequence[Calls]) -> Table:
    """Return a row per phase and what it did; `self_ns` adds up to all of the compile time."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    for one in sources:
        phase = phases(one)
        keys = phase * max(1, len(one.texts)) + one.name
        for key in distinct(keys).tolist():
            at = np.flatnonzero(keys == key)
            durations = one.durations[at]
            number = key // max(1, len(one.texts))
            name = one.texts[key % len(one.texts)].removesuffix(TIMED)
            own = {"phase": (*PHASES, UNKNOWN)[number], "name": name}
            times = {"total_ns": sum_of(durations), "self_ns": sum_of(one.own_ns[at])}
            times |= {"count": len(at), "max_ns": int(durations.max())}
            rows.append({"rank": str(one.rank), **own, **times})
            jumps.append((one.source, int(one.positions[at[int(np.argmax(durations))]])))
    spent = sum_of(row["self_ns"] for row in rows)
    for row in rows:
        row["share"] = row["self_ns"] / max(1, spent)
    by_phase = {
        f"{phase.lower()}_ns": sum_of(row["self_ns"] for row in rows if row["phase"] == phase)
        for phase in PHASES
    }
    parts = ", ".join(f"{phase} {format_ns(ns)}" for phase, ns in zip(PHASES, by_phase.values()) if ns)
    return Table.from_rows(
        COMPILE_PHASES,
        scope.text,
        rows,
        jumps,
        totals={"compile_ns": spent, **by_phase},
        notes=(f"{format_ns(spent)} in all: {parts}",) if rows else (),
    ).sort("self_ns")


def phases(one: Calls) -> I64:
    """Return the phase of each row as a place in PHASES, len(PHASES) where nothing tells."""
    names = [text.removesuffix(TIMED) for text in one.texts]
    known = [next((phase for phase, fits in _PHASE_OF if fits.match(name)), "") for name in names]
    of_name = np.array([(*PHASES, "").index(phase) for phase in known] or [len(PHASES)], np.int64)
    numbers: I64 = of_name[one.name] if len(one) else np.empty(0, np.int64)
    # Rows are in order of start, outer before inner, so that one pass per level settles all.
    while True:
        open_ = np.flatnonzero((numbers == len(PHASES)) & (one.around >= 0))
        recognised = open_[numbers[one.around[open_]] < len(PHASES)]
        if not len(recognised):
            return numbers
        numbers[recognised] = numbers[one.around[recognised]]


def compilation_table(scope: Scope, sources: Sequence[Calls]) -> Table:
    """Return the compilations that the trace holds in order of time, with the time of their phases."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    for one in sources:
        is_root = np.array(
            [bool(COMPILERS.fullmatch(t) or ENTIRE.fullmatch(t)) for t in one.texts] or [False]
        )
        roots = np.flatnonzero(is_root[one.name]) if len(one) else np.empty(0, np.int64)
        if not len(roots):
            continue
        phase, ids = phases(one), _compile_ids(scope, one, roots)
        members = np.sort(one.positions[roots])
        inside = nearest_around(one.index, one.positions, members, itself=True)
        for root in roots.tolist():
            position = int(one.positions[root])
            own = inside == position
            times = [sum_of(one.own_ns[own & (phase == number)]) for number in range(len(PHASES))]
            backward = one.texts[int(one.name[root])].startswith(("backward", "entire_backward"))
            what = {"rank": str(one.rank), "name": ids.get(position, UNKNOWN)}
            what["of"] = "backward graph" if backward else "frame"
            row = {"start_ns": int(one.starts[root]), "total_ns": int(one.durations[root])}
            row |= {f"{phase.lower()}_ns": ns for phase, ns in zip(PHASES, times)}
            rows.append({**what, **row})
            jumps.append((one.source, position))
    return Table.from_rows(
        COMPILATIONS,
        scope.text,
        rows,
        jumps,
        totals={"count": len(rows), "total_ns": sum_of(row["total_ns"] for row in rows)},
    )


def _compile_ids(scope: Scope, one: Calls, roots: I64) -> dict[int, str]:
    """Return the compile id that the rows inside each compilation tell, by its position."""
    signs = calls(scope, one.source, "compile_id=", COMPILE_ID)
    around = nearest_around(one.index, signs.positions, np.sort(one.positions[roots]))
    own = argument_values(one.index, "compile_id", one.positions[roots])
    ids = {int(at): str(value) for at, value in zip(one.positions[roots].tolist(), own) if value is not None}
    for position in distinct(around[around >= 0]).tolist():
        match = COMPILE_ID.fullmatch(signs.texts[int(signs.name[int(np.argmax(around == position))])])
        if match:
            ids[position] = match[1]
    return ids
