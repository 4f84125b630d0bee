"""Rules about code that is compiled or loaded: torch.compile's breaks, recompilations, compile time and what
each call costs; what costs only the first time, as loading kernels and libraries, contexts, connections.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from ...base.arrays import EMPTY, I64, AnyArray, Bools, Intervals, merge, sum_of
from ...base.units import about_ns, count_of, format_share
from ...query.groups import Groups
from ...query.lookup import nearest_around, processes_of
from ..compile.compile_phases import FUNCTION as FUNCTION_NAME
from ..compile.compile_phases import GRAPH, LOOKUP, PHASES, REGION, REGION_ID, calls
from ..compile.compile_regions import recompiled_frames
from ..frame.frame import Frame
from ..host.host_columns import ANY_COPY, LOADER, HostSlices
from ..host.op_events import OP, RUNTIME
from ..rule_threshold import OWN, Limits
from ..steps.attribution import steps_at_times
from .facts import SourceFacts, share
from .finding import NotJudged, Observation, Outcome, brief
from .rule import GUIDE, PYTORCH, Rule, effects_of

REGIONS = re.compile("^" + re.escape(REGION))
FUNCTION = re.compile(f"^{FUNCTION_NAME}$")
BACKWARD = re.compile(f"^{FUNCTION_NAME}Backward$")
GRAPHS = re.compile(f"^({FUNCTION_NAME}$|{re.escape(GRAPH)})")
AROUND = re.compile(f"^({LOOKUP}|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue)$")
MATRIX = re.compile(r"^(aten::|extern_kernels\.)(addmm|bmm|baddbmm)$")
WRITTEN = re.compile(r"^aten::(matmul|linear|einsum|tensordot|inner|__matmul__)$")
"""Operators that users write and that PyTorch turns into another product."""


@Rule(
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
    if not regions.any():
        return _several_functions(facts)
    inner = host.inside(regions, regions)
    if not inner.any():
        return None
    broken = host.around_any(inner, regions & ~inner)
    claim = host.union(broken).without(host.union(host.matching(GRAPHS)))
    functions = host.inside(host.matching(FUNCTION, OP), broken)
    inner_count, outer_count, count = (int(np.count_nonzero(mask)) for mask in (inner, broken, functions))
    graphs = f", {count:,} compiled graphs where {outer_count:,} would do" if count > outer_count else ""
    text = (
        f"{count_of(inner_count, 'compiled region is', 'compiled regions are')} within "
        f"{count_of(outer_count, 'other')} (graph breaks or disabled regions){graphs}; "
        f"{about_ns(claim.length)} of the outer {'one is' if outer_count == 1 else 'ones are'} outside "
        "compiled graphs"
    )
    rows = host.first(broken), host.first(inner)
    name, inside = (host.label(int(host.name[row])) for row in rows)
    evidence = (
        facts.on_host(f"an outer region: {name}", rows[0]),
        facts.on_host(f"a region within another: {inside}", rows[1]),
    )
    short = f"{count_of(inner_count, 'graph break')} at {brief(inside)}: {about_ns(claim.length)}"
    return Observation(text, evidence, claim, times=host.starts[inner], short=short)


def _several_functions(facts: SourceFacts) -> Outcome:
    """Several compiled functions run in one step, or in a row without a backward pass between them."""
    host = facts.host
    is_function, backwards = host.matching(FUNCTION, OP), host.matching(BACKWARD, OP)
    functions = np.flatnonzero(is_function & ~host.inside(is_function, is_function))
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
    elif not backwards.any():
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
    short = f"{typical:,} compiled functions a pass, {about_ns(claim.length)} between them"
    return Observation(text, evidence, claim, times=host.starts[broken], short=short)


@Rule(
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
    regions = calls(facts.scope.of_source(facts.source), REGION)
    frames = recompiled_frames(regions)
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
        for own in regions[regions.named(re.compile(rf" {worst.frame}/{number}\Z"))][:1].each().parts:
            evidence.append(facts.slice(f"the first run of {worst.frame}/{number}", int(own.position[0])))
            times.append(own.start[0])
    short = f"Frame {worst.frame} {times_compiled}"
    return Observation(text, tuple(evidence[:3]), claim, times=np.array(times, np.int64), short=short)


def _compiled_again(facts: SourceFacts, regions: Frame) -> Intervals:
    """Return the time of the compiler after the first run of a region, and that of first runs of later
    versions which take twice as long as the median run: they hold a compilation that is not in the trace.
    """
    if not len(regions):
        return EMPTY
    rows = facts.compiler
    late = rows.start > int(regions.start.min())
    _, first = np.unique(regions.name_number, return_index=True)
    usual = float(np.median(regions.dur))
    versions = [REGION_ID.match(text) for text in regions.name[first].tolist()]
    again = np.array([match is not None and match["compile"] != "0" for match in versions], np.bool_)
    first = first[again & (regions.dur[first] >= 2 * usual)]
    return rows.union(late).union(regions.union(first)).clipped(*facts.span)


@Rule(
    "compile-time",
    "Compilation in the trace",
    "dynamo, AOT or inductor compile while the trace is recorded; or devices idle before the first launch of "
    "a Triton kernel while the host does nothing that is recorded, at least 10 ms, and twice as long as "
    "before any other launch",
    PYTORCH,
    helps="Warm up before recording; keep the caches (FX graph cache, TORCHINDUCTOR_CACHE_DIR) between runs.",
    explains=effects_of("compile-time"),
    held_up=True,
    meanwhile=("compile",),
)
def compile_time(facts: SourceFacts, limits: Limits) -> Outcome:
    rows = facts.compiler
    claim, unrecorded = facts.compiling, facts.first_launches
    if not claim.length:
        return None
    before = (
        f"{about_ns(unrecorded.length)} pass before first launches of Triton kernels with nothing recorded "
        "of the host: it compiles them then, or does what is not in the file"
    )
    if not len(rows):
        evidence_of_gaps = facts.longest_windows("before a kernel's first launch", claim)
        short = f"{about_ns(unrecorded.length)} before first launches of Triton kernels"
        return Observation(before, evidence_of_gaps, claim, short=short)
    parts, evidence = [], []
    for number, name in enumerate(PHASES):
        own = rows[rows.phase == number]
        if len(own):
            parts.append((sum_of(own.own_ns), name))
            most = own.top("own_ns")
            label = f"{name}, most by itself: {most.name.tolist()[0]}"
            evidence.append(facts.slice(label, int(most.position[0])))
    named = [f"{name} {about_ns(ns)}" for ns, name in parts]
    phase_text = f": {', '.join(named)}" if parts else ""
    if not evidence:
        evidence.extend(facts.longest_windows("compiling", claim))
    recorded = rows.union().clipped(*facts.span).length
    whole = sum(ns for ns, _ in parts) or recorded
    text = f"Compilation takes {about_ns(whole)}{phase_text}"
    # The sum of the phases has threads at once each, and what lies before the first step.
    looked_at = about_ns(recorded)
    if about_ns(whole) != looked_at:
        text += f"; {looked_at} of the time looked at"
    short = f"Compilation takes {about_ns(whole)}"
    short += f", most of it {max(parts)[1]} {about_ns(max(parts)[0])}" if parts else ""
    text += f"; {before}" if unrecorded.length else ""
    return Observation(text, tuple(evidence), claim, short=short)


@Rule(
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
    if not around.any():
        return None
    claim = host.union(around)
    whole = claim.union(host.union(host.matching(REGIONS, OP))).length
    part = share(claim.length, whole)
    if part < limits["share"]:
        return None
    total = host.totals(around)
    top = host.texts[int(np.argmax(total))]
    text = (
        f"{about_ns(claim.length)}, {format_share(part)} of the time in compiled regions, goes into what "
        f"runs before the graphs, most into {top}"
    )
    short = f"{about_ns(claim.length)} before compiled graphs, most in {brief(top, 20)}"
    return Observation(text, (facts.longest_on_host("the longest", around),), claim, short=short)


@Rule(
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
    products, graphs, written = host.matching(MATRIX, OP), host.matching(GRAPHS), host.matching(WRITTEN, OP)
    if not products.any():
        return None
    compiled = host.inside(products, graphs)
    became = np.flatnonzero(host.inside(products, written) & ~compiled)
    sentences = []
    if compiled.any():
        count = host.counts(compiled)
        calls = [
            f"{host.texts[name]} {count_of(int(count[name]), 'time')}"
            for name in np.flatnonzero(count).tolist()
        ]
        sentences.append(f"Compiled graphs call {' and '.join(calls)}")
    if len(became):
        around = nearest_around(facts.index, host.positions[became], host.positions[written])
        names = facts.index.column("slices.name")[around]
        pairs = Counter(zip(facts.index.strings(names), (host.texts[n] for n in host.name[became])))
        changes = [
            f"{outer} became {inner} {count_of(n, 'time')}" for (outer, inner), n in pairs.most_common()
        ]
        sentences.append(", ".join(changes))
    if not sentences:
        return None
    compiled[became] = True
    text = "; ".join(sentences)
    evidence = (facts.on_host("the first", host.first(compiled)),)
    return Observation(text, evidence, times=host.starts[compiled])


LOADS = re.compile(
    r"Module(Load|Create|GetLoadingMode)|Library(Load|GetKernel|GetModule)|(Ctx|Context)Create|PrimaryCtxRetain"
    r"|ProgramBuild|(cublas|cudnn|hipblas|rocblas|miopen)\w*Create|RegisterFatBinary|EnsureLoaded",
    re.IGNORECASE,
)
"""Calls that load code or make a context or a library's handle, in the words of any vendor."""
ALLOCATES = re.compile(r"^aten::empty(_strided|_like)?$|^[a-z]{2,12}(Malloc|MemAlloc|HostAlloc|DeviceAlloc)")
"""What makes a device's context when it is the first, and costs little otherwise."""
LOADING = re.compile(r"^(Lazy Function Loading|Runtime Triggered Module Loading|Driver Compiler)$")
"""What CUPTI records while a call loads code."""
ASKS = re.compile(r"Occupancy|Func(Get|Set)|(Module|Library)Get(Function|Kernel)", re.IGNORECASE)
"""Calls about a kernel, which load it."""
MIN_NS = 10_000
"""A call is not long below so many times this (ns), however short the others are."""
EQUAL = 0.5
"""A stall that takes at least this share of an earlier one's time is one of the same kind."""
FEW_RUNS = 3
"""Of fewer runs of a collective the first is not told from the others."""


def _longest_call(host: HostSlices, chosen: Bools, calls: Bools) -> int:
    """Return the row of the longest of some slices, or of the runtime's call in it that takes most of it."""
    length = host.ends - host.starts
    longest = host.most(chosen, length)
    only = np.zeros(len(host), np.bool_)
    only[longest] = True
    inner = host.inside(calls & ~only, only)
    if not inner.any():
        return longest
    call = host.most(inner, length)
    return call if 2 * length[call] >= length[longest] else longest


@Rule(
    "first-use",
    "First use of kernels and libraries",
    "at most {few_share} of the runtime's calls of a name (or of the operators that take memory), each the "
    "first of its name or of a kernel, or a call that loads code, take {times} times as long as the median "
    "and {share} of the time of all; or the first run of a collective does; nothing is computed then for "
    "{claim_share} of the time looked at",
    f"NVIDIA, lazy loading (CUDA_MODULE_LOADING); the limits are {OWN}",
    {"few_share": 0.25, "times": 8, "share": 0.5, "claim_share": 0.02},
    helps=(
        "Nothing in the program: warm up before measuring, with every shape that is used; "
        "CUDA_MODULE_LOADING=EAGER loads kernels when the program starts; keep caches of compiled kernels "
        "between runs."
    ),
    needs=("device", "host"),
    explains=(*effects_of("first-use"), "communication"),
    meanwhile=("allocation", "runtime", "operator"),
)
def first_use(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    others = facts.waits | facts.transfers | host.matching(ANY_COPY, RUNTIME)
    calls = (host.kinds == RUNTIME) & facts.active & ~others
    chosen = _first_calls(facts, calls, limits) | (calls & host.matching(LOADS, RUNTIME))
    claim = host.union(chosen | host.matching(LOADING, RUNTIME)).intersection(facts.held_up)
    runs = _first_collectives(facts, limits, int(host.ends[chosen].max(initial=facts.span[0])))
    claim = claim.union(runs.union().without(facts.types["compute"]))
    if not claim.length or not chosen.any():
        return None
    longest = _longest_call(host, chosen, calls)
    length = int(host.ends[longest] - host.starts[longest])
    alike = calls & ~chosen & (host.name == host.name[longest])
    usual = float(np.median(host.self_ns[alike])) if alike.any() else 0.0
    what = "call loads kernels or libraries at its", "calls load kernels or libraries at their"
    count = int(np.count_nonzero(chosen))
    text = (
        f"{count_of(count, *what)} first use, for {about_ns(host.union(chosen).length)}, longest "
        f"{host.label(int(host.name[longest]))} with {about_ns(length)}"
    )
    text += f" where the usual call takes {about_ns(usual)}" if usual else ""
    if len(runs):
        what = "collective that waits", "collectives that wait"
        text += f"; {count_of(len(runs), *what)} meanwhile last {about_ns(runs.union().length)}"
    first = f"First use of {brief(host.label(int(host.name[longest])))}"
    short = f"{first}: {about_ns(length)}"
    return Observation(text, (facts.longest_on_host("the longest", chosen),), claim, short=short)


def _first_calls(facts: SourceFacts, calls: Bools, limits: Limits) -> Bools:
    """Return which few of the calls, and of operators that make a context by taking memory, are the first of
    their kind and take most time.
    """
    host = facts.host
    calls = calls | host.matching(ALLOCATES, OP)
    calls &= ~host.inside(calls, host.matching(LOADER))
    if not calls.any():
        return calls
    rows = np.flatnonzero(calls)
    # Only the time that holds devices up: a launch waits for room in the queue, too.
    length = np.where(host.kinds == RUNTIME, host.ends - host.starts, host.self_ns)[rows]
    own = np.minimum(length, facts.held_up.covered(host.starts[rows], host.ends[rows]))
    names = Groups(host.name[rows], len(host.texts))
    # Before its first kernel a program makes contexts and handles of libraries, which takes several calls.
    is_early = host.ends[rows] <= _first_kernel_start(facts)
    median, later = np.zeros(names.size), Groups(names.codes[~is_early], names.size)
    if len(later.codes):
        median = np.where(later.counts > 1, later.quantiles(own[~is_early], 0.5)[0], 0)
    chosen = own >= limits["times"] * np.maximum(median[names.codes], MIN_NS)
    is_first = _is_first(facts, calls)[rows] | is_early
    chosen &= is_first & ~_comes_again(host.starts[rows], own, is_first)
    few = names.counts_where(chosen & ~is_early) <= np.maximum(limits["few_share"] * names.counts, 1)
    most = names.sums(np.where(chosen, own, 0)) >= limits["share"] * names.sums(own)
    counts = names.counts + (host.counts(host.matching(ALLOCATES)) > 0)
    return host.narrow(calls, chosen & (few & most & (counts > 1))[names.codes])


def _first_kernel_start(facts: SourceFacts) -> int:
    """Return when the first kernel of the whole trace begins."""
    work = facts.work[~facts.work.is_type("memory", "sync")]
    return int(work.start.min(initial=facts.span[1]))


def _comes_again(starts: I64, own: I64, is_first: AnyArray) -> AnyArray:
    """Return which slices are followed by others, no first ones, that take at least EQUAL of their time: what
    comes again is no first use.
    """
    order = np.argsort(starts, kind="stable")
    later = np.where(is_first, 0, own)[order][::-1]
    longest_later = np.zeros(len(starts), np.int64)
    longest_later[order] = np.maximum.accumulate(np.append(0, later)[:-1])[::-1]
    return longest_later >= EQUAL * own


def _first_collectives(facts: SourceFacts, limits: Limits, until: int) -> Frame:
    """Return the runs of collectives that take far longer than the others and are the first of their name, as
    the library connects the ranks, or begin before a moment, as other ranks load code until then, too.
    """
    work = facts.work[facts.work.is_type("communication")]
    work = work[np.argsort(work.start, kind="stable")]
    names = work.group("name_number", "device_row")
    is_first = np.zeros(len(work), np.bool_)
    is_first[names.first()] = True
    median = names.quantiles(work.dur, 0.5)[0][names.codes]
    is_long = work.dur >= limits["times"] * np.maximum(median, 10 * MIN_NS)
    return work[(is_first | (work.start < until)) & is_long & (names.counts[names.codes] >= FEW_RUNS)]


def _is_first(facts: SourceFacts, calls: Bools) -> Bools:
    """Return which of the host's slices are the first of the calls of their name, launch a kernel for the
    first time, or are calls that ask about one right before that.
    """
    host, rows = facts.host, np.flatnonzero(calls)
    order = rows[np.argsort(host.starts[rows], kind="stable")]
    at = Groups(host.name[order], len(host.texts)).first()
    work, is_first_work = facts.launched
    launching = np.flatnonzero(host.at(work.launch))
    launching = launching[np.argsort(host.starts[launching], kind="stable")]
    is_first = host.at(work.launch[is_first_work])
    # Calls about a kernel go right before its launch.
    asks = np.flatnonzero(calls & host.matching(ASKS, RUNTIME))
    follows = np.searchsorted(host.starts[launching], host.starts[asks])
    known = follows < len(launching)
    is_first[asks[known]] = is_first[launching[follows[known]]]
    is_first[order[at[at < len(order)]]] = True
    return is_first
