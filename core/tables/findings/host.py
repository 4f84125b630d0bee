"""Rules about the host: what dominates it, what it waits for, what the profiler itself does."""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import AnyArray, sum_of
from ...base.units import count_of, format_ns, format_share
from ...index.format import NONE
from ..op_events import OP, RUNTIME
from ..rule_threshold import OWN, Limits, RuleThreshold
from .device import transfer_bound
from .facts import NO_HOST, SourceFacts, share
from .finding import NotJudged, Observation, Outcome
from .rule import GUIDE, TENSORBOARD, rule

LOADER = re.compile(r"^enumerate\(Data(Loader|Pipe)\)")
"""How TensorBoard's plugin knows the input pipeline."""


@rule(
    "host-hotspot",
    "One operator dominates the host",
    RuleThreshold(
        (
            "one operator or call takes at least {share} of the host's self time, and at least {times} "
            "times as much as the next (waits aside, and blocking copies where they bound the trace: "
            "transfer-bound)"
        ),
        f"{GUIDE} (hotspot); the limits are {OWN}",
        {"share": 0.5, "times": 2},
    ),
    helps="Look at where it is called from, and whether it must run that often or at all.",
)
def host_hotspot(facts: SourceFacts, limits: Limits) -> Outcome:
    """One name takes most of the host's own time."""
    host = facts.host
    working = _working(facts)
    if not working.any():
        return NO_HOST
    whole = sum_of(host.self_ns[working])
    if isinstance(transfer_bound(facts), Observation):
        working[facts.transfers] = False
    own = np.flatnonzero(working)
    total = host.sums(own, host.self_ns)
    top = int(np.argmax(total))
    part = share(int(total[top]), whole)
    second = int(np.delete(total, top).max(initial=0))
    if not second or part < limits["share"] or total[top] < limits["times"] * second:
        return None
    rows = own[host.name[own] == top]
    name = host.label(top)
    text = (
        f"{name} takes {format_share(part)} of the host's own time: {format_ns(int(total[top]))} in "
        f"{count_of(len(rows), 'call')}"
    )
    longest = int(rows[np.argmax(host.self_ns[rows])])
    claim = host.union(rows)
    return Observation(
        text,
        (facts.on_host(f"its longest call: {name}", longest),),
        claim,
        min(int(total[top]), claim.length),
    )


@rule(
    "many-calls",
    "Many calls of a cheap operator",
    RuleThreshold(
        (
            "an operator or call is made at least {count} times, takes less than {mean_ns} on average, "
            "and at least {share} of the host's busy time altogether"
        ),
        f"{GUIDE}; the limits are {OWN}",
        {"count": 500, "mean_ns": 10_000, "share": 0.1},
    ),
    helps=(
        "Batch it (foreach and fused variants, larger tensors), move it out of the loop, or let the compiler "
        "fuse it."
    ),
)
def many_calls(facts: SourceFacts, limits: Limits) -> Outcome:
    """A cheap operator is called very often."""
    host = facts.host
    own = np.flatnonzero(_working(facts))
    if not len(own):
        return NO_HOST
    count = np.bincount(host.name[own], minlength=len(host.texts))
    total = host.sums(own, host.ends - host.starts)
    cheap = (count >= limits["count"]) & (total < limits["mean_ns"] * count)
    if not cheap.any():
        return None
    top = int(np.argmax(np.where(cheap, total, -1)))
    rows = own[host.name[own] == top]
    claim = host.union(rows)
    if claim.length < limits["share"] * facts.host_busy.length:
        return None
    name = host.label(top)
    text = (
        f"{name} is called {int(count[top]):,} times, {format_ns(int(total[top]) // int(count[top]))} each, "
        f"{format_ns(claim.length)} altogether"
    )
    first = int(rows[np.argmin(host.starts[rows])])
    return Observation(text, (facts.on_host(f"the first call of {name}", first),), claim)


@rule(
    "cost-in-children",
    "The cost is in the children",
    RuleThreshold(
        "an operator takes at least {share} of the host's busy time, but at most {self_share} of that itself",
        f"{GUIDE} (self against total); the limits are {OWN}",
        {"share": 0.2, "self_share": 0.05},
    ),
    helps="Go down: the child named is where the time is.",
    note=True,
)
def cost_in_children(facts: SourceFacts, limits: Limits) -> Outcome:
    """An operator costs much, but not by itself."""
    host = facts.host
    own = np.flatnonzero((host.kinds == OP) & ~_repeats(facts))
    if not len(own):
        return NO_HOST
    total, self_ns = host.sums(own, host.ends - host.starts), host.sums(own, host.self_ns)
    whole = facts.host_busy.length
    dear = (total >= limits["share"] * whole) & (self_ns <= limits["self_share"] * total) & (total > 0)
    if not dear.any():
        return None
    top = int(np.argmax(np.where(dear, total, -1)))
    rows = own[host.name[own] == top]
    child = _dearest_child(facts, top)
    if child is None:
        return None
    name = host.label(top)
    itself = format_share(share(int(self_ns[top]), int(total[top])))
    text = (
        f"{name} takes {format_ns(int(total[top]))}, of which {itself} itself: the time is in its children, "
        f"most in {host.label(int(host.name[child]))}"
    )
    evidence = (facts.longest_on_host("its longest call", rows), facts.on_host("the dearest child", child))
    return Observation(text, evidence, host.union(rows))


@rule(
    "sync",
    "Waits with little device work",
    RuleThreshold(
        "over at least {share} of the time in which the host waits for the device, the device does nothing",
        f"{GUIDE} (a long synchronise over little work); the limit is {OWN}",
        {"share": 0.5},
    ),
    helps=(
        "Drop the synchronisation or move it to where the result is needed: .item(), .cpu(), print of a "
        "tensor, blocking copies."
    ),
    needs=("device",),
)
def sync(facts: SourceFacts, limits: Limits) -> Outcome:
    """The host waits for a device that does nothing."""
    host = facts.host
    waits = facts.waits
    if not len(waits):
        return None
    waiting = host.union(waits)
    idle = waiting.without(facts.busy).without(facts.profiling)
    part = share(idle.length, waiting.length)
    if part < limits["share"]:
        return None
    length = host.ends[waits] - host.starts[waits]
    lost = idle.covered(host.starts[waits], host.ends[waits])
    bad = waits[(lost >= limits["share"] * length) & (lost > 0)]
    claim = idle.intersection(host.union(bad))
    worst = int(waits[np.argmax(lost)])
    name = host.label(int(host.name[worst]))
    whole = host.union(bad).length
    text = (
        f"In {count_of(len(bad), 'call')} the host waits {format_ns(whole)} for the device, which does "
        f"nothing in {format_share(share(claim.length, whole))} of that time; longest in {name}"
    )
    return Observation(text, (facts.on_host(f"the longest: {name}", worst),), claim)


@rule(
    "dataloader",
    "Waiting for input",
    RuleThreshold("the data loader takes more than {share} of the step time", TENSORBOARD, {"share": 0.05}),
    helps="More workers (num_workers), prefetching, pinned memory, cheaper transforms.",
)
def dataloader(facts: SourceFacts, limits: Limits) -> Outcome:
    """The steps wait for input."""
    host = facts.host
    rows = host.matching(LOADER)
    if not len(rows):
        return None
    if facts.steps is None:
        return NotJudged("the trace has no steps")
    claim = host.union(rows).intersection(facts.judged)
    part = share(claim.length, facts.judged.length)
    if part <= limits["share"]:
        return None
    text = f"The data loader takes {format_share(part)} of the step time: {format_ns(claim.length)}"
    return Observation(text, (facts.longest_on_host("the longest", rows),), claim)


@rule(
    "profiler",
    "The profiler itself",
    RuleThreshold(
        (
            "the profiler's own work is in the trace (buffer requests, clock calibration); idle time "
            "under it is not blamed on anything else"
        ),
        f"{GUIDE}; CUPTI's overhead records",
    ),
    helps="Nothing to do: leave out these steps, or warm up before recording.",
)
def profiler(facts: SourceFacts, limits: Limits) -> Outcome:
    """The profiler's own work."""
    if not len(facts.profiler):
        return None
    count = count_of(len(facts.profiler), "call")
    text = f"The profiler itself takes {format_ns(facts.profiling.length)} in {count}"
    return Observation(text, (facts.longest_on_host("the longest", facts.profiler),), facts.profiling)


def _working(facts: SourceFacts) -> AnyArray:
    """Return which of the host's slices are operators or calls that neither wait nor profile."""
    host = facts.host
    mask: AnyArray = (host.kinds == OP) | (host.kinds == RUNTIME)
    mask[facts.waits] = False
    mask[facts.profiler] = False
    return mask


def _repeats(facts: SourceFacts) -> AnyArray:
    """Return which of the host's slices lie directly in one of the same name: they would count twice."""
    names = facts.index.column("slices.name")
    above = facts.index.column("slices.parent")[facts.host.positions].astype(np.int64)
    inside = above != NONE
    repeats: AnyArray = inside & (names[np.where(inside, above, 0)] == names[facts.host.positions])
    return repeats


def _dearest_child(facts: SourceFacts, name: int) -> int | None:
    """Return the longest of the direct children of a name, of those that take most time by name."""
    host = facts.host
    above = facts.index.column("slices.parent")[host.positions].astype(np.int64)
    ordered = np.sort(host.positions[host.name == name])
    at = np.minimum(np.searchsorted(ordered, above), len(ordered) - 1)
    children = np.flatnonzero((ordered[at] == above) & (host.name != name))
    if not len(children):
        return None
    total, names = host.sums(children, host.ends - host.starts), host.name[children]
    best = children[names == names[np.argmax(total[names])]]
    return int(best[np.argmax((host.ends - host.starts)[best])])
