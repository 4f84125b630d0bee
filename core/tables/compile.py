"""torch.compile in a trace: whether it was used and how one can tell, what ran compiled, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from ..base.arrays import sum_of
from .artefacts import Artefacts, read_artefacts
from .compile_code import CODE, INDUCTOR, SPYRE, code_table
from .compile_phases import (
    COMPILERS,
    ENTIRE,
    FUNCTION,
    FUNCTION_NAME,
    GRAPH,
    GRAPH_HASH,
    LOOKUP,
    REGION,
    Calls,
    calls,
    compilation_table,
    is_of_dynamo,
    phase_table,
    timed,
)
from .compile_regions import Recompiled, graph_table, recompiled_frames, region_table, step_table
from .metrics import Metric
from .schema import schema_from
from .scope import Scope
from .table import Table, Tables

COMPILE = schema_from("""
    compile: torch.compile; jumps_to the first; chief name count total_ns start_ns;
    rank: text, name: text = sign, count, total_ns = time, start_ns = first at (statistic moment), meaning:
    text = what it shows
""")
RECOMPILED = schema_from("""
    recompiled: Compiled again; not drawn;
    rank: id, frame: id, runs: object = compilations
""")
TABLES = ("signs", "regions", "graphs", "steps", "code", "phases", "compilations", "recompiled")
WROTE = "Dynamo wrote what it compiled"
SIGNS = (
    (REGION, REGION, None, "code that Dynamo compiled ran"),
    ("CompiledFxGraph", GRAPH, GRAPH_HASH, "Inductor's code for a graph ran"),
    (FUNCTION, FUNCTION, FUNCTION_NAME, "AOTAutograd's graphs ran, forward or backward"),
    (LOOKUP, LOOKUP, None, "Dynamo looked for compiled code of a frame"),
    ("compilation", "(dynamo_timed)", COMPILERS, "compilation happened in the trace"),
    ("compilation", "entire_", ENTIRE, WROTE),
)
RAN = (REGION, "CompiledFxGraph", FUNCTION)
"""The signs that compiled code ran; each of the others may be there without it."""
CPU_KERNELS = (
    "Inductor's kernels for the CPU leave no events: their time is that of the CompiledFxGraph around them"
)
APPLIED = "torch.compile is applied"
DYNAMOS_OWN = "this is Dynamo's own file: it says what was compiled, not whether and how long it ran"
NOT_APPLIED = "torch.compile is not applied, as far as the trace shows"
NO_KERNELS = "no kernel with a name of Inductor's ran on a device"
NO_SIGN = "no compiled region, graph call, cache lookup or kernel of Inductor: nothing shows torch.compile"
ONLY_KERNELS = "known from the names of Inductor's kernels alone: the trace has no calls on the host"


@dataclass(frozen=True)
class Compiled:
    """What a scope shows of torch.compile, a table for each question."""

    scope: str
    applied: bool
    signs: Table
    regions: Table
    graphs: Table
    steps: Table
    code: Table
    phases: Table
    compilations: Table
    recompiled: tuple[Recompiled, ...]


def analyse_compile(scope: Scope, first: str = "signs", artefacts: str = "") -> Tables:
    """Return the signs of torch.compile, the regions, graphs, steps, code, phases and compilations."""
    paths = [source.path for source in scope.trace.sources]
    result = cache(partial(compiled, scope, partial(read_artefacts, artefacts, paths)))

    def table(name: str) -> Table:
        one: Table = recompiled_table(result()) if name == "recompiled" else getattr(result(), name)
        return one

    tables = {name: partial(table, name) for name in TABLES}
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
    sources = scope.sources
    regions = [calls(scope, source, REGION) for source in sources]
    graphs = [calls(scope, source, GRAPH, GRAPH_HASH) for source in sources]
    rows = [timed(scope, source) for source in sources]
    code = code_table(scope)
    signs = sign_table(scope, sources, code)
    phases = phase_table(scope, rows)
    return Compiled(
        scope.text,
        bool(signs.totals["applied"]),
        replace(signs, totals={**signs.totals, "compile_ns": phases.totals["compile_ns"]}),
        region_table(scope, regions, artefacts() if any(map(len, regions)) else Artefacts()),
        graph_table(scope, graphs),
        step_table(scope, sources),
        code,
        phases,
        compilation_table(scope, rows),
        recompiled_frames(regions),
    )


def recompiled_table(result: Compiled) -> Table:
    """Return a row per frame of which several compilations ran: how often each did."""
    rows = [
        {"rank": one.rank, "frame": one.frame, "runs": {str(key): count for key, count in one.runs.items()}}
        for one in result.recompiled
    ]
    return Table.from_rows(RECOMPILED, result.scope, rows)


def sign_table(scope: Scope, sources: Sequence[int], code: Table) -> Table:
    """Return the signs of torch.compile that a scope shows; `code` is its device time by code."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int | None]] = []
    again: list[Recompiled] = []
    for source in sources:
        for name, text, pattern, meaning in SIGNS:
            if pattern is ENTIRE and not is_of_dynamo(scope.trace.indexes[source]):
                continue
            signs = calls(scope, source, text, pattern)
            if name is REGION:
                again += recompiled_frames([signs])
            if len(signs):
                rows.append(_sign(signs, name, meaning))
                jumps.append((source, int(signs.positions[0])))
    ran = any(row["name"] in RAN for row in rows)
    kernels = [row for row in code.rows() if row["name"] in (CODE[INDUCTOR], CODE[SPYRE])]
    for at, row in enumerate(code.rows()):
        if row in kernels:
            rows.append(
                {
                    "rank": row["rank"],
                    "name": f"kernels of {row['name']}",
                    "count": row["kernels"],
                    "total_ns": row["total_ns"],
                    "start_ns": None,
                    "meaning": "kernels that Inductor wrote ran on a device",
                }
            )
            jumps.append(code.jump(at) or (0, None))
    notes = [_again(one) for one in again]
    if not rows:
        notes.append(NO_SIGN)
    if kernels and not ran:
        notes.append(ONLY_KERNELS)
    if ran and not kernels:
        notes.append(NO_KERNELS if len(code) else CPU_KERNELS)
    of_dynamo = any(row["meaning"] == WROTE for row in rows)
    applied = ran or bool(kernels) or of_dynamo
    notes.insert(0, APPLIED if applied else NOT_APPLIED)
    if of_dynamo and not ran:
        notes.append(DYNAMOS_OWN)
    return Table.from_rows(COMPILE, scope.text, rows, jumps, totals={"applied": applied}, notes=notes)


def _sign(signs: Calls, name: str, meaning: str) -> dict[str, Any]:
    return {
        "rank": str(signs.rank),
        "name": name,
        "count": len(signs),
        "total_ns": signs.total_ns,
        "start_ns": int(signs.starts[0]),
        "meaning": meaning,
    }


def _again(one: Recompiled) -> str:
    ran = ", ".join(f"{one.frame}/{number} {count:,} times" for number, count in one.runs.items())
    return f"frame {one.frame} was compiled at least {max(one.runs) + 1} times: {ran}"
