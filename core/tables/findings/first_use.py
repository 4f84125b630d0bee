"""The rule about what costs only the first time: loading kernels and libraries, contexts, connections."""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.units import about_ns, count_of
from ...query.groups import Groups
from ..frame import Frame
from ..host_columns import ANY_COPY, LOADER
from ..op_events import OP, RUNTIME
from ..rule_threshold import OWN, Limits
from ..scope import nearest_around
from .facts import SourceFacts
from .finding import Observation, Outcome
from .rule import effects_of, rule

LOADS = re.compile(
    r"Module(Load|Create|GetLoadingMode)|Library(Load|GetKernel|GetModule)|(Ctx|Context)Create|PrimaryCtxRetain"
    r"|ProgramBuild|(cublas|cudnn|hipblas|rocblas|miopen)\w*Create|RegisterFatBinary|EnsureLoaded",
    re.IGNORECASE,
)
"""Calls that load code or make a context or a library's handle, in the words of any vendor."""
OPERATORS = re.compile(r"^aten::")
ALLOCATES = re.compile(r"^aten::empty(_strided|_like)?$|^[a-z]{2,12}(Malloc|MemAlloc|HostAlloc|DeviceAlloc)")
"""What makes a device's context when it is the first, and costs little otherwise."""
LOADING = re.compile(r"^(Lazy Function Loading|Runtime Triggered Module Loading|Driver Compiler)$")
"""What CUPTI records while a call loads code."""
ASKS = re.compile(r"Occupancy|Func(Get|Set)|(Module|Library)Get(Function|Kernel)", re.IGNORECASE)
"""Calls about a kernel, which load it."""
LEAST_NS = 10_000
"""A call is not long below so many times this (ns), however short the others are."""
FEW_RUNS = 3
"""Of fewer runs of a collective the first is not told from the others."""


@rule(
    "first-use",
    "First use of kernels and libraries",
    "at most {few_share} of the calls of a name, each the first of its name or of a kernel, or a "
    "call that loads code, take {times} times as long as the median and {share} of the time of all; "
    "or the first run of a collective does; nothing is computed then for {claim_share} of the time "
    "looked at",
    f"NVIDIA, lazy loading (CUDA_MODULE_LOADING); the limits are {OWN}",
    {"few_share": 0.25, "times": 8, "share": 0.5, "claim_share": 0.02},
    helps=(
        "Nothing in the program: warm up before measuring, with every shape that is used; "
        "CUDA_MODULE_LOADING=EAGER loads kernels when the program starts; keep caches of compiled kernels "
        "between runs."
    ),
    needs=("device", "host"),
    explains=(*effects_of("first-use"), "communication"),
)
def first_use(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    calls = np.flatnonzero((host.kinds == RUNTIME) & facts.active)
    copies = np.union1d(facts.transfers, host.matching(ANY_COPY, RUNTIME))
    calls = np.setdiff1d(calls, np.union1d(facts.waits, copies))
    chosen = _first_calls(facts, calls, limits)
    chosen = np.union1d(chosen, np.intersect1d(calls, host.matching(LOADS, RUNTIME)))
    loading = np.union1d(chosen, host.matching(LOADING, RUNTIME))
    claim = host.union(loading).intersection(facts.held_up)
    runs = _first_collectives(facts, limits, int(host.ends[chosen].max(initial=facts.span[0])))
    claim = claim.union(runs.union().without(facts.types["compute"]))
    if not claim.length or not len(chosen):
        return None
    longest = int(chosen[np.argmax(host.self_ns[chosen])])
    alike = np.isin(host.name[calls], host.name[chosen])
    usual = float(np.median(host.self_ns[calls[alike]])) if alike.any() else 0
    what = "call loads kernels or libraries at its", "calls load kernels or libraries at their"
    text = (
        f"{count_of(len(chosen), *what)} first use, for {about_ns(host.union(chosen).length)}, longest "
        f"{host.label(int(host.name[longest]))} with {about_ns(int(host.self_ns[longest]))}"
    )
    text += f" where the usual call takes {about_ns(usual)}" if usual else ""
    if len(runs):
        what = "collective that waits", "collectives that wait"
        text += f"; {count_of(len(runs), *what)} meanwhile last {about_ns(runs.union().length)}"
    return Observation(text, (facts.longest_on_host("the longest", chosen),), claim)


def _first_calls(facts: SourceFacts, calls: I64, limits: Limits) -> I64:
    """Return the few rows of calls and operators that are the first of their kind and take most time."""
    host = facts.host
    rows = np.union1d(calls, host.matching(OPERATORS, OP))
    loaders = np.sort(host.positions[host.matching(LOADER)])
    rows = rows[nearest_around(facts.index, host.positions[rows], loaders) < 0]
    if not len(rows):
        return rows
    # Only the time that holds devices up: a launch waits for room in the queue, too.
    length = np.where(host.kinds == RUNTIME, host.ends - host.starts, host.self_ns)[rows]
    own = np.minimum(length, facts.held_up.covered(host.starts[rows], host.ends[rows]))
    names = Groups(host.name[rows], len(host.texts))
    median = np.where(names.counts > 1, names.quantiles(own, 0.5)[0], 0)
    chosen = own >= limits["times"] * np.maximum(median[names.codes], LEAST_NS)
    chosen &= _is_first(facts, rows)
    few = names.counts_where(chosen) <= np.maximum(limits["few_share"] * names.counts, 1)
    most = names.sums(np.where(chosen, own, 0)) >= limits["share"] * names.sums(own)
    counts = names.counts + np.isin(np.arange(names.size), host.name[host.matching(ALLOCATES)])
    first: I64 = rows[chosen & (few & most & (counts > 1))[names.codes]]
    return first


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
    is_long = work.dur >= limits["times"] * np.maximum(median, 10 * LEAST_NS)
    return work[(is_first | (work.start < until)) & is_long & (names.counts[names.codes] >= FEW_RUNS)]


def _is_first(facts: SourceFacts, rows: I64) -> AnyArray:
    """Return which slices are the first of their name, launch a kernel for the first time, or ask about one
    right before that.
    """
    host = facts.host
    order = rows[np.argsort(host.starts[rows], kind="stable")]
    _, at = np.unique(host.name[order], return_index=True)
    work = facts.work[facts.work.launch >= 0]
    work = work[np.argsort(work.call_start, kind="stable")]
    _, first = np.unique(work.name_number, return_index=True)
    launching = np.flatnonzero(np.isin(host.positions, work.launch))
    launching = launching[np.argsort(host.starts[launching], kind="stable")]
    is_first = np.isin(host.positions, work.launch[first])
    # Calls about a kernel go right before its launch.
    asks = np.intersect1d(rows, host.matching(ASKS, RUNTIME))
    follows = np.searchsorted(host.starts[launching], host.starts[asks])
    known = follows < len(launching)
    is_first[asks[known]] = is_first[launching[follows[known]]]
    return is_first[rows] | np.isin(rows, order[at])
