"""Rules about torch.compile: breaks, recompilations, compile time, what each call costs."""

from __future__ import annotations

import re

import numpy as np

from ...base.intervals import merge
from ...base.units import format_ns, format_share
from ...index.format import NONE
from ..compile_calls import FUNCTION as FUNCTION_NAME
from ..compile_calls import GRAPH, LOOKUP, REGION, calls
from ..compile_phases import PHASES, phases, timed
from ..compile_regions import recompiled_frames
from ..op_events import OP
from ..slices import nearest_around
from .facts import SourceFacts, counted, share
from .finding import Observation, Outcome
from .rule import GUIDE, OWN, PYTORCH, Limits, rule

REGIONS = re.compile("^" + re.escape(REGION))
FUNCTION = re.compile(f"^{FUNCTION_NAME}$")
GRAPHS = re.compile(f"^({FUNCTION_NAME}$|{re.escape(GRAPH)})")
AROUND = re.compile(f"^({LOOKUP}|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue)$")
MATRIX = re.compile(r"^(aten::|extern_kernels\.)(addmm|bmm|baddbmm)$")


@rule(
    "graph-breaks",
    "Nested compiled regions",
    (
        "a compiled region lies in another: a graph break or a disabled region; the time of the outer one "
        "outside compiled graphs is claimed"
    ),
    origin=PYTORCH,
    helps="TORCH_LOGS=graph_breaks names the lines; torch.compile(fullgraph=True) refuses them.",
    always=True,
)
def graph_breaks(facts: SourceFacts, limits: Limits) -> Outcome:
    """A compiled region lies in another."""
    host = facts.host
    regions = host.places(REGIONS, OP)
    if not len(regions):
        return None
    above = nearest_around(facts.index, host.positions[regions], host.positions[regions])
    inner, outer = regions[above != NONE], regions[above == NONE]
    if not len(inner):
        return None
    top = nearest_around(facts.index, host.positions[inner], host.positions[outer])
    broken = outer[np.isin(host.positions[outer], top)]
    claim = host.union(broken).without(host.union(host.places(GRAPHS)))
    functions = host.places(FUNCTION, OP)
    around = nearest_around(facts.index, host.positions[functions], host.positions[outer])
    count = int(np.isin(around, host.positions[broken]).sum())
    graphs = f", {count:,} compiled graphs where {len(broken):,} would do" if count > len(broken) else ""
    text = (
        f"{len(inner):,} compiled regions lie within {len(broken):,} others (graph breaks or disabled "
        f"regions){graphs}; {format_ns(claim.length)} of the outer ones are outside compiled graphs"
    )
    name, inside = (host.label(int(host.name[which[0]])) for which in (broken, inner))
    evidence = (
        facts.on_host(f"an outer region: {name}", int(broken[0])),
        facts.on_host(f"a region within another: {inside}", int(inner[0])),
    )
    return Observation(text, evidence, claim, times=host.starts[inner])


@rule(
    "recompiled",
    "Recompiled",
    "one frame runs with several compile ids (the number after the slash grows)",
    origin=f"{PYTORCH}; TORCH_LOGS=recompiles",
    helps="TORCH_LOGS=recompiles names the guard that failed: mark sizes dynamic, keep constants constant.",
    always=True,
)
def recompilation(facts: SourceFacts, limits: Limits) -> Outcome:
    """One frame has several compiled versions."""
    regions = calls(facts.scope, facts.source, REGION)
    frames = recompiled_frames([regions])
    if not frames:
        return None
    worst = max(frames, key=lambda one: max(one.runs))
    others = f"; {counted(len(frames) - 1, 'more frame')} alike" if len(frames) > 1 else ""
    seen = ", ".join(f"{worst.frame}/{number}" for number in worst.runs)
    times_compiled = f"was compiled at least {max(worst.runs) + 1} times"
    text = f"Frame {worst.frame} {times_compiled}: {seen} run in the trace{others}"
    evidence, times = [], []
    for number in [number for number in worst.runs if number]:
        names = [at for at, text in enumerate(regions.texts) if text.endswith(f" {worst.frame}/{number}")]
        for at in np.flatnonzero(np.isin(regions.name, names))[:1].tolist():
            start = int(regions.starts[at])
            end = start + int(regions.durations[at])
            label = f"the first run of {worst.frame}/{number}"
            evidence.append(facts.slice(label, int(regions.positions[at]), start, end))
            times.append(start)
    return Observation(text, tuple(evidence[:3]), times=np.array(times, np.int64))


@rule(
    "compile-time",
    "Compilation in the trace",
    "dynamo, AOT or inductor compile while the trace is recorded",
    origin=PYTORCH,
    helps="Warm up before recording; keep the caches (FX graph cache, TORCHINDUCTOR_CACHE_DIR) between runs.",
)
def compile_time(facts: SourceFacts, limits: Limits) -> Outcome:
    """The trace holds the compilation itself."""
    rows = timed(facts.scope, facts.source)
    if not len(rows):
        return None
    claim = merge(rows.starts, rows.starts + rows.durations).clipped(*facts.span)
    parts, evidence = [], []
    phase = phases(rows)
    for number, name in enumerate(PHASES):
        own = np.flatnonzero(phase == number)
        if len(own):
            parts.append(f"{name} {format_ns(int(rows.own_ns[own].sum()))}")
            at = int(own[np.argmax(rows.own_ns[own])])
            start, end = int(rows.starts[at]), int(rows.starts[at] + rows.durations[at])
            label = f"{name}, most by itself: {rows.texts[int(rows.name[at])]}"
            evidence.append(facts.slice(label, int(rows.positions[at]), start, end))
    phases_told = f": {', '.join(parts)}" if parts else ""
    if not evidence:
        evidence.extend(facts.longest_windows("compiling", claim))
    return Observation(
        f"Compilation takes {format_ns(claim.length)} of the trace{phases_told}", tuple(evidence), claim
    )


@rule(
    "compiled-overhead",
    "Overhead around compiled graphs",
    (
        "cache lookups, bytecode and wrappers before compiled graphs take at least {share} of the time in "
        "compiled regions"
    ),
    origin=f"{GUIDE}; the limit is {OWN}",
    helps=(
        "Compile larger regions (the outermost module), avoid graph breaks; it is a price per call, so "
        "larger batches pay it less often."
    ),
    limits={"share": 0.1},
)
def compiled_overhead(facts: SourceFacts, limits: Limits) -> Outcome:
    """What is done before compiled graphs takes a good part of the compiled regions."""
    host = facts.host
    around = host.places(AROUND, OP)
    if not len(around):
        return None
    claim = host.union(around)
    whole = claim.union(host.union(host.places(REGIONS, OP))).length
    part = share(claim.length, whole)
    if part < limits["share"]:
        return None
    total = host.sums(around, host.ends - host.starts)
    top = host.texts[int(np.argmax(total))]
    text = (
        f"{format_ns(claim.length)}, {format_share(part)} of the time in compiled regions, goes into what "
        f"stands before the graphs, most into {top}"
    )
    longest = int(around[np.argmax((host.ends - host.starts)[around])])
    return Observation(text, (facts.on_host("the longest", longest),), claim)


@rule(
    "fused-ops",
    "Matrix products in compiled graphs",
    "compiled graphs call addmm (a product and a sum in one) or bmm",
    origin=GUIDE,
    helps="Expected: inductor turns add and mm into addmm, and batched products into bmm.",
    note=True,
)
def fused_ops(facts: SourceFacts, limits: Limits) -> Outcome:
    """Compiled graphs call addmm or bmm."""
    host = facts.host
    places, graphs = host.places(MATRIX, OP), host.places(GRAPHS)
    if not len(places) or not len(graphs):
        return None
    inside = places[nearest_around(facts.index, host.positions[places], host.positions[graphs]) != NONE]
    if not len(inside):
        return None
    count = np.bincount(host.name[inside], minlength=len(host.texts))
    parts = [f"{host.texts[name]} {int(count[name]):,} times" for name in np.flatnonzero(count).tolist()]
    text = f"Compiled graphs call {' and '.join(parts)}"
    return Observation(text, (facts.on_host("the first", int(inside[0])),), times=host.starts[inside])
