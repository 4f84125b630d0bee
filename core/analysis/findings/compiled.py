"""Rules about torch.compile: breaks, recompilations, compile time, what each call costs."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from ...base.units import format_ns, format_share
from ...index.format import NONE
from ..op_events import OP
from .facts import Facts, nearest, share
from .finding import Found, Verdict
from .rules import RULES

REGION = re.compile(r"^Torch-Compiled Region: (\d+)/(\d+)")
FUNCTION = re.compile(r"^CompiledFunction$")
GRAPH = re.compile(r"^(CompiledFunction$|## Call CompiledFxGraph )")
AROUND = re.compile(r"^(TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue)$")
COMPILING = re.compile(r"\(dynamo_timed\)$|^(dynamo|entire_frame_compile|backend_compile|inductor_compile)$")
PHASES = (
    ("dynamo", re.compile(r"^(dynamo$|entire_frame_compile|_compile\.|compile_attempt|bytecode_tracing)")),
    ("AOT", re.compile(r"^(create_aot|aot_|AOT)")),
    ("inductor", re.compile(r"^(inductor_compile|compile_fx|fx_codegen|GraphLowering|Scheduler)")),
    ("building and loading the code", re.compile(r"^(compile_file|PyCodeCache|async_compile)")),
)
MATRIX = re.compile(r"^(aten::|extern_kernels\.)(addmm|bmm|baddbmm)$")


def graph_breaks(facts: Facts) -> Verdict:
    """A compiled region lies in another."""
    host = facts.host
    regions = host.named(REGION, OP)
    if not len(regions):
        return None
    above = nearest(facts.index, host.positions[regions], host.positions[regions])
    inner, outer = regions[above != NONE], regions[above == NONE]
    if not len(inner):
        return None
    top = nearest(facts.index, host.positions[inner], host.positions[outer])
    broken = outer[np.isin(host.positions[outer], top)]
    claim = host.union(broken).without(host.union(host.named(GRAPH)))
    functions = host.named(FUNCTION, OP)
    around = nearest(facts.index, host.positions[functions], host.positions[outer])
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
    return Found(text, evidence, claim, times=host.starts[inner])


def recompiled(facts: Facts) -> Verdict:
    """One frame has several compiled versions."""
    host = facts.host
    versions: dict[str, dict[int, int]] = defaultdict(dict)  # frame -> compile id -> first place
    for number, text in enumerate(host.texts):
        match = REGION.match(text)
        if match:
            places = np.flatnonzero(host.name == number)
            versions[match[1]][int(match[2])] = int(places[np.argmin(host.starts[places])])
    again = {frame: found for frame, found in versions.items() if max(found) > 0}
    if not again:
        return None
    frame = max(again, key=lambda name: (max(again[name]), name))
    last = max(again[frame])
    others = f"; {len(again) - 1} more frames were compiled again" if len(again) > 1 else ""
    seen = ", ".join(f"{frame}/{number}" for number in sorted(again[frame]))
    text = f"Frame {frame} was compiled at least {last + 1} times (regions {seen} run in the trace){others}"
    later = [place for number, place in sorted(again[frame].items()) if number]
    evidence = tuple(facts.on_host(host.label(int(host.name[place])), place) for place in later[:3])
    return Found(text, evidence, times=host.starts[np.array(later, np.int64)])


def compile_time(facts: Facts) -> Verdict:
    """The trace holds the compilation itself."""
    host = facts.host
    places = host.named(COMPILING)
    if not len(places):
        return None
    claim = host.union(places)
    parts, evidence = [], []
    for name, pattern in PHASES:
        own = host.named(pattern)
        if len(own):
            parts.append(f"{name} {format_ns(host.union(own).length)}")
            longest = int(own[np.argmax((host.ends - host.starts)[own])])
            evidence.append(facts.on_host(f"{name}, longest: {host.label(int(host.name[longest]))}", longest))
    phases = f" ({', '.join(parts)}; the later ones lie within the earlier)" if len(parts) > 1 else ""
    text = f"Compilation takes {format_ns(claim.length)} of the trace{phases}"
    if not evidence:
        longest = int(places[np.argmax((host.ends - host.starts)[places])])
        evidence.append(facts.on_host(host.label(int(host.name[longest])), longest))
    return Found(text, tuple(evidence), claim)


def compiled_overhead(facts: Facts) -> Verdict:
    """What is done before compiled graphs takes a good part of the compiled regions."""
    host = facts.host
    around = host.named(AROUND, OP)
    if not len(around):
        return None
    claim = host.union(around)
    whole = claim.union(host.union(host.named(REGION, OP))).length
    part = share(claim.length, whole)
    if part < RULES["compiled-overhead"].limits["share"]:
        return None
    total = host.sums(around, host.ends - host.starts)
    top = host.texts[int(np.argmax(total))]
    text = (
        f"{format_ns(claim.length)}, {format_share(part)} of the time in compiled regions, goes into what "
        f"stands before the graphs, most into {top}"
    )
    longest = int(around[np.argmax((host.ends - host.starts)[around])])
    return Found(text, (facts.on_host("the longest", longest),), claim)


def fused_ops(facts: Facts) -> Verdict:
    """Compiled graphs call addmm or bmm."""
    host = facts.host
    places, graphs = host.named(MATRIX, OP), host.named(GRAPH)
    if not len(places) or not len(graphs):
        return None
    inside = places[nearest(facts.index, host.positions[places], host.positions[graphs]) != NONE]
    if not len(inside):
        return None
    count = np.bincount(host.name[inside], minlength=len(host.texts))
    parts = [f"{host.texts[name]} {int(count[name]):,} times" for name in np.flatnonzero(count).tolist()]
    text = f"Compiled graphs call {' and '.join(parts)}"
    return Found(text, (facts.on_host("the first", int(inside[0])),), times=host.starts[inside])
