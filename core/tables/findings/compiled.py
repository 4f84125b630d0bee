"""Rules about torch.compile: breaks, recompilations, compile time, what each call costs."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from ...base.arrays import EMPTY, Intervals, merge, sum_of
from ...base.units import about_ns, count_of, format_share
from ...query.lookup import processes_of
from ..attribution import steps_at_times
from ..compile_phases import FUNCTION as FUNCTION_NAME
from ..compile_phases import GRAPH, LOOKUP, PHASES, REGION, REGION_ID, Calls, calls, phases, timed
from ..compile_regions import recompiled_frames
from ..op_events import OP
from ..rule_threshold import OWN, Limits
from ..scope import nearest_around
from .facts import SourceFacts, share
from .finding import NotJudged, Observation, Outcome
from .rule import GUIDE, PYTORCH, effects_of, rule

REGIONS = re.compile("^" + re.escape(REGION))
FUNCTION = re.compile(f"^{FUNCTION_NAME}$")
BACKWARD = re.compile(f"^{FUNCTION_NAME}Backward$")
GRAPHS = re.compile(f"^({FUNCTION_NAME}$|{re.escape(GRAPH)})")
AROUND = re.compile(f"^({LOOKUP}|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue)$")
MATRIX = re.compile(r"^(aten::|extern_kernels\.)(addmm|bmm|baddbmm)$")
WRITTEN = re.compile(r"^aten::(matmul|linear|einsum|tensordot|inner|__matmul__)$")
"""Operators that users write and that PyTorch turns into another product."""


@rule(
    "graph-breaks",
    "Graph breaks",
    "a compiled region is inside another (a graph break or a disabled region), or, in traces "
    "without regions, several compiled functions run one after another in a step or before a "
    "backward pass; the time outside compiled graphs is claimed",
    PYTORCH,
    helps="TORCH_LOGS=graph_breaks names the lines; torch.compile(fullgraph=True) refuses them.",
    always=True,
    explains=effects_of("graph-breaks"),
    held_up=True,
)
def graph_breaks(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    regions = host.matching(REGIONS, OP)
    if not len(regions):
        return _several_functions(facts)
    above = nearest_around(facts.index, host.positions[regions], host.positions[regions])
    inner, outer = regions[above >= 0], regions[above < 0]
    if not len(inner):
        return None
    top = nearest_around(facts.index, host.positions[inner], host.positions[outer])
    broken = outer[np.isin(host.positions[outer], top)]
    claim = host.union(broken).without(host.union(host.matching(GRAPHS)))
    functions = host.matching(FUNCTION, OP)
    around = nearest_around(facts.index, host.positions[functions], host.positions[outer])
    count = int(np.count_nonzero(np.isin(around, host.positions[broken])))
    graphs = f", {count:,} compiled graphs where {len(broken):,} would do" if count > len(broken) else ""
    text = (
        f"{count_of(len(inner), 'compiled region is', 'compiled regions are')} within "
        f"{count_of(len(broken), 'other')} (graph breaks or disabled regions){graphs}; "
        f"{about_ns(claim.length)} of the outer {'one is' if len(broken) == 1 else 'ones are'} outside "
        "compiled graphs"
    )
    name, inside = (host.label(int(host.name[which[0]])) for which in (broken, inner))
    evidence = (
        facts.on_host(f"an outer region: {name}", int(broken[0])),
        facts.on_host(f"a region within another: {inside}", int(inner[0])),
    )
    return Observation(text, evidence, claim, times=host.starts[inner])


def _several_functions(facts: SourceFacts) -> Outcome:
    """Several compiled functions run in one step, or in a row without a backward pass between them."""
    host = facts.host
    functions, backwards = host.matching(FUNCTION, OP), host.matching(BACKWARD, OP)
    nested = nearest_around(facts.index, host.positions[functions], np.sort(host.positions[functions]))
    functions = functions[nested < 0]
    functions = functions[np.argsort(host.starts[functions], kind="stable")]
    if len(functions) < 2:
        return None
    starts = host.starts[functions]
    # A pass ends with a step or with a backward pass.
    turn = np.searchsorted(np.sort(host.starts[backwards]), starts)
    if facts.steps is not None:
        at = steps_at_times(facts.steps, starts, processes_of(facts.index, host.positions[functions]))
        functions, turn, at = functions[at >= 0], turn[at >= 0], at[at >= 0]
        turn = turn * (len(facts.steps) + 1) + at
    elif not len(backwards):
        return NotJudged("without steps or backward passes it is not known how many graphs one pass has")
    passes, which, count = np.unique(turn, return_inverse=True, return_counts=True)
    several = np.flatnonzero(count > 1)
    if not len(several):
        return None
    broken = functions[np.isin(which, several)]
    first = np.array([host.starts[functions[which == one]].min() for one in several.tolist()], np.int64)
    last = np.array([host.ends[functions[which == one]].max() for one in several.tolist()], np.int64)
    claim = merge(first, last).without(host.union(host.matching(GRAPHS)))
    typical = int(np.median(count[several]))
    of_passes = count_of(len(passes), "pass", "passes")
    text = (
        f"In {len(several):,} of {of_passes} several compiled functions run one "
        f"after another, {typical:,} where one is expected (graph breaks, or parts compiled one by one); "
        f"{about_ns(claim.length)} pass between them"
    )
    evidence = (
        facts.on_host("the first function of a pass", int(broken[0])),
        facts.on_host("the next one", int(broken[1])),
    )
    return Observation(text, evidence, claim, times=host.starts[broken])


@rule(
    "recompiled",
    "Recompiled",
    "one frame runs with several compile ids (the number after the slash grows)",
    f"{PYTORCH}; TORCH_LOGS=recompiles",
    helps="TORCH_LOGS=recompiles names the guard that failed: mark sizes dynamic, keep constants constant.",
    always=True,
    explains=(*effects_of("recompiled"), "rank-imbalance"),
    held_up=True,
)
def recompilation(facts: SourceFacts, limits: Limits) -> Outcome:
    regions = calls(facts.scope, facts.source, REGION)
    frames = recompiled_frames([regions])
    if not frames:
        return None
    worst = max(frames, key=lambda one: max(one.runs))
    others = f"; {count_of(len(frames) - 1, 'more frame')} alike" if len(frames) > 1 else ""
    versions = ", ".join(f"{worst.frame}/{number}" for number in worst.runs)
    times_compiled = f"was compiled at least {count_of(max(worst.runs) + 1, 'time')}"
    text = f"Frame {worst.frame} {times_compiled}: {versions} run in the trace{others}"
    claim = _compiled_again(facts, regions)
    text += f"; compiling it again takes {about_ns(claim.length)}" if claim.length else ""
    evidence, times = [], []
    for number in [number for number in worst.runs if number]:
        names = [at for at, text in enumerate(regions.texts) if text.endswith(f" {worst.frame}/{number}")]
        for at in np.flatnonzero(np.isin(regions.name, names))[:1].tolist():
            label = f"the first run of {worst.frame}/{number}"
            evidence.append(facts.slice(label, int(regions.positions[at])))
            times.append(regions.starts[at])
    return Observation(text, tuple(evidence[:3]), claim, times=np.array(times, np.int64))


def _compiled_again(facts: SourceFacts, regions: Calls) -> Intervals:
    """Return the time of the compiler after the first run of a region, and that of first runs of later
    versions which take twice as long as the median run: they hold a compilation that is not in the trace.
    """
    if not len(regions):
        return EMPTY
    rows = timed(facts.scope, facts.source)
    late = rows.starts > int(regions.starts.min())
    _, first = np.unique(regions.name, return_index=True)
    usual = float(np.median(regions.durations))
    versions = [REGION_ID.match(regions.texts[int(regions.name[at])]) for at in first.tolist()]
    again = np.array([match is not None and match["compile"] != "0" for match in versions], np.bool_)
    first = first[again & (regions.durations[first] >= 2 * usual)]
    starts = np.concatenate([rows.starts[late], regions.starts[first]])
    lengths = np.concatenate([rows.durations[late], regions.durations[first]])
    return merge(starts, starts + lengths).clipped(*facts.span)


@rule(
    "compile-time",
    "Compilation in the trace",
    "dynamo, AOT or inductor compile while the trace is recorded",
    PYTORCH,
    helps="Warm up before recording; keep the caches (FX graph cache, TORCHINDUCTOR_CACHE_DIR) between runs.",
    explains=effects_of("compile-time"),
    held_up=True,
)
def compile_time(facts: SourceFacts, limits: Limits) -> Outcome:
    rows = timed(facts.scope, facts.source)
    if not len(rows):
        return None
    claim = merge(rows.starts, rows.starts + rows.durations).clipped(*facts.span)
    parts, evidence = [], []
    phase = phases(rows)
    for number, name in enumerate(PHASES):
        own = np.flatnonzero(phase == number)
        if len(own):
            parts.append(f"{name} {about_ns(sum_of(rows.own_ns[own]))}")
            at = int(own[np.argmax(rows.own_ns[own])])
            label = f"{name}, most by itself: {rows.texts[int(rows.name[at])]}"
            evidence.append(facts.slice(label, int(rows.positions[at])))
    phase_text = f": {', '.join(parts)}" if parts else ""
    if not evidence:
        evidence.extend(facts.longest_windows("compiling", claim))
    return Observation(
        f"Compilation takes {about_ns(claim.length)} of the trace{phase_text}", tuple(evidence), claim
    )


@rule(
    "compiled-overhead",
    "Overhead around compiled graphs",
    "cache lookups, bytecode and wrappers before compiled graphs take at least {share} of the "
    "time in compiled regions",
    f"{GUIDE}; the limit is {OWN}",
    {"share": 0.1},
    helps=(
        "Compile larger regions (the outermost module), avoid graph breaks; it is a price per call, so "
        "larger batches pay it less often."
    ),
    held_up=True,
)
def compiled_overhead(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    around = host.matching(AROUND, OP)
    if not len(around):
        return None
    claim = host.union(around)
    whole = claim.union(host.union(host.matching(REGIONS, OP))).length
    part = share(claim.length, whole)
    if part < limits["share"]:
        return None
    total = host.sums(around, host.ends - host.starts)
    top = host.texts[int(np.argmax(total))]
    text = (
        f"{about_ns(claim.length)}, {format_share(part)} of the time in compiled regions, goes into what "
        f"runs before the graphs, most into {top}"
    )
    return Observation(text, (facts.longest_on_host("the longest", around),), claim)


@rule(
    "fused-ops",
    "Products that became others",
    "compiled graphs call addmm (a product and a sum in one) or bmm, or an eager matmul, linear or "
    "einsum became one of them",
    GUIDE,
    helps=(
        "Expected: add and mm become addmm, products of more than two dimensions bmm. A batch of one as bmm "
        "is slower than mm: look at the shapes."
    ),
    kind="note",
)
def fused_ops(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    rows, graphs, written = host.matching(MATRIX, OP), host.matching(GRAPHS), host.matching(WRITTEN, OP)
    if not len(rows):
        return None
    compiled = nearest_around(facts.index, host.positions[rows], np.sort(host.positions[graphs])) >= 0
    around = nearest_around(facts.index, host.positions[rows], np.sort(host.positions[written]))
    became = np.flatnonzero((around >= 0) & ~compiled)
    sentences = []
    if compiled.any():
        count = np.bincount(host.name[rows[compiled]], minlength=len(host.texts))
        calls = [
            f"{host.texts[name]} {count_of(int(count[name]), 'time')}"
            for name in np.flatnonzero(count).tolist()
        ]
        sentences.append(f"Compiled graphs call {' and '.join(calls)}")
    if len(became):
        names = facts.index.column("slices.name")[around[became]]
        pairs = Counter(zip(facts.index.strings(names), (host.texts[n] for n in host.name[rows[became]])))
        changes = [
            f"{outer} became {inner} {count_of(n, 'time')}" for (outer, inner), n in pairs.most_common()
        ]
        sentences.append(", ".join(changes))
    if not sentences:
        return None
    hits = rows[compiled | (around >= 0)]
    text = "; ".join(sentences)
    return Observation(text, (facts.on_host("the first", int(hits[0])),), times=host.starts[hits])
