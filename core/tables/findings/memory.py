"""Rules about memory: close to the device's limit, growing from step to step, copied from pageable memory."""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import sum_of
from ...base.short_names import short_name
from ...base.units import about_ns, count_of, format_bytes, format_share
from ...index.producers import is_of_memory
from ..device.memory import AllocatorUse, allocator_uses
from ..device.memory_stacks import holders_of
from ..host.allocations import BY_SIZE, Allocator
from ..host.allocators import allocators
from ..host.host_columns import ALLOCATES
from ..host.op_events import RUNTIME
from ..rule_threshold import OWN, Limits
from .facts import SourceFacts, share
from .finding import Evidence, NotJudged, Observation, Outcome, brief
from .rule import TENSORBOARD, Rule, effects_of
from .steps import NO_STEPS

PAGEABLE = re.compile(r"\bPageable\b")


def _no_records(facts: SourceFacts) -> NotJudged:
    """Return why nothing is known of the allocators that a rule asks for."""
    recorded = [one for one in allocators(facts.scope) if len(one)]
    if not recorded:
        return NotJudged("the trace holds no records of allocators (profile_memory=True)")
    if all(one.host for one in recorded):
        return NotJudged("the host's allocator is recorded, none of a device")
    return NotJudged("how much memory allocators hold is not recorded, only what they release")


@Rule(
    "memory-peak",
    "Where the memory goes",
    "the file is a snapshot of memory, whose slices are stacks; the highest peak is told, and the line of "
    "code that holds most of it, where that is {share} or more",
    OWN,
    {"share": 0.05},
    helps="`tracelane memory` lists what is live at the peak, and what is never released.",
    kind="headline",
    always=True,
)
def memory_peak(facts: SourceFacts, limits: Limits) -> Outcome:
    if not is_of_memory(facts.index):
        return None
    uses = [use for use in allocator_uses(facts.scope) if use.peak_bytes]
    if not uses:
        return None
    most = max(uses, key=lambda use: use.peak_bytes or 0)
    peak, title = most.peak_bytes or 0, most.allocator.title
    text = short = f"{title} holds {format_bytes(peak)} at its peak"
    holders = holders_of(most.allocator, most.at_peak)
    if holders and share(holders[0][1], peak) >= limits["share"]:
        name, size, count = short_name(holders[0][0]), *holders[0][1:]
        part, allocations = format_share(share(size, peak)), count_of(count, "allocation")
        text += f", {part} of it in {allocations} of {name}, {format_bytes(size)}"
        short = f"{brief(name)}: {part} of {format_bytes(peak)} at the peak"
    if len(most.unreleased):
        left = sum_of(most.allocator.allocations.bytes[most.unreleased])
        are = count_of(len(most.unreleased), "allocation of the trace is", "allocations of the trace are")
        text += f"; {are} not released in it, {format_bytes(left)}"
    return Observation(text, (_at_peak(facts, most),), times=np.array([most.peak_at], np.int64), short=short)


@Rule(
    "memory-limit",
    "Close to the memory's limit",
    "an allocator's peak is at least {share} of the memory that the device has, and what the trace "
    "begins with is less: engines take memory for their caches ahead",
    TENSORBOARD,
    {"share": 0.9},
    helps="Smaller batches, checkpointing, lower precision; `tracelane memory` says what fills it.",
    always=True,
)
def memory_limit(facts: SourceFacts, limits: Limits) -> Outcome:
    uses = [use for use in allocator_uses(facts.scope) if not use.allocator.host and use.peak is not None]
    if not uses:
        return _no_records(facts)
    sizes = _sizes(facts)
    known = [use for use in uses if use.allocator.device_id in sizes]
    if not known:
        return NotJudged("the trace does not say how much memory the device has")
    worst = max(known, key=lambda use: share(use.peak_bytes or 0, sizes[use.allocator.device_id]))
    size = sizes[worst.allocator.device_id]
    part = share(worst.peak_bytes or 0, size)
    if part < limits["share"] or share(worst.first_bytes, size) >= limits["share"]:
        return None
    text = (
        f"{worst.allocator.title} reaches {format_bytes(worst.peak_bytes or 0)}, {format_share(part)} of the "
        f"device's {format_bytes(size)}"
    )
    times = np.array([worst.peak_at], np.int64)
    short = f"{worst.allocator.title} reaches {format_share(part)} of its memory"
    return Observation(text, (_at_peak(facts, worst),), times=times, short=short)


@Rule(
    "memory-growth",
    "Memory grows from step to step",
    "an allocator holds more at the end of each of at least {steps} steps than at the end of the one "
    "before, in total {share} of its peak or more",
    OWN,
    {"steps": 3, "share": 0.01},
    helps=(
        "Look for what outlives its step: lists of losses with their graphs, caches, hooks; `tracelane "
        "memory` says what was never released."
    ),
    always=True,
)
def memory_growth(facts: SourceFacts, limits: Limits) -> Outcome:
    # Where an allocation has only its size, a release that was not recorded looks like growth.
    recorded = [one for one in allocators(facts.scope) if not one.releases_only and one.known_by != BY_SIZE]
    known = [one for one in recorded if len(one)]
    if not known:
        return _no_records(facts)
    steps = facts.steps
    if steps is None:
        return NO_STEPS
    if len(steps) < limits["steps"]:
        return NotJudged(f"the trace has less than {limits['steps']:g} steps")
    worst: tuple[int, Allocator] | None = None
    for one in known:
        at = np.searchsorted(one.times, steps.ends, "right") - 1
        level = np.where(at >= 0, one.total[np.maximum(at, 0)], one.total[0] - one.changes[0])
        grown = int(level[-1]) - int(level[0])
        always = bool((level[1:] > level[:-1]).all())
        if always and grown >= limits["share"] * int(one.total.max()) and (worst is None or grown > worst[0]):
            worst = grown, one
    if worst is None:
        return None
    grown, one = worst
    text = (
        f"{one.title} holds more at the end of each of {len(steps):,} steps than at the end of the one "
        f"before, {format_bytes(grown)} more in all"
    )
    last = Evidence("the last step", int(steps.starts[-1]), int(steps.ends[-1]))
    short = f"{one.title} grows by {format_bytes(grown)} in {len(steps):,} steps"
    return Observation(text, (last,), times=steps.starts, short=short)


@Rule(
    "pageable-copies",
    "Copies of pageable memory",
    "the device copies from or to pageable memory of the host, as the copies' names say",
    "PyTorch, performance tuning guide (pinned memory)",
    helps="Pinned memory (pin_memory=True in the data loader, tensor.pin_memory()) with non_blocking=True.",
    needs=("device",),
)
def pageable_copies(facts: SourceFacts, limits: Limits) -> Outcome:
    copies = facts.work[facts.work.named(PAGEABLE)]
    if not len(copies):
        return None
    count, claim = len(copies), copies.union()
    text = f"{count_of(count, 'copy of pageable memory', 'copies of pageable memory')} take"
    text += f"{'s' if count == 1 else ''} {about_ns(claim.length)}"
    return Observation(text, (facts.on_device("the longest", copies.top("dur", 1)),), claim, short=text)


@Rule(
    "device-allocations",
    "Memory is taken from the driver again and again",
    "calls that take memory of a device from the driver or give it back (at least {count}, in "
    "{steps_share} of the steps) hold devices up for {time_share} of the time looked at; where that "
    "is {cause_share} of the time in which devices wait for the host, it is the cause",
    f"PyTorch, CUDA semantics (caching allocator); the limits are {OWN}",
    {"count": 5, "steps_share": 0.6, "time_share": 0.02, "cause_share": 0.15},
    helps=(
        "Let the allocator keep what it has: no empty_cache() in the loop, fewer different sizes, "
        "expandable_segments:True, less memory in use, so that it need not give any back."
    ),
    needs=("device", "host"),
    explains=effects_of("device-allocations"),
    meanwhile=("allocation",),
)
def device_allocations(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    own = host.matching(ALLOCATES, RUNTIME)
    claim, count = host.union(own).intersection(facts.held_up), int(np.count_nonzero(own))
    if count < limits["count"] or claim.length < limits["time_share"] * facts.span_ns:
        return None
    starts = np.sort(host.starts[own])
    if facts.steps is not None:
        begun = np.searchsorted(starts, facts.steps.ends) > np.searchsorted(starts, facts.steps.starts)
        is_often = bool(begun.mean() >= limits["steps_share"])
    else:
        is_often = bool(np.ptp(starts) >= limits["steps_share"] * facts.span_ns)
    if not is_often:
        return None
    most = host.label(int(np.argmax(host.sums(own, host.self_ns))))
    text = (
        f"{count:,} calls take memory of {facts.device_title} from the driver or give it back, most time "
        f"goes into {most}; {facts.device_title} waits {about_ns(claim.length)} for them"
    )
    reach = facts.reach_of(claim, limits["cause_share"])
    short = f"{brief(most)}: {facts.device_title} waits {about_ns(claim.length)}"
    return Observation(text, (facts.longest_on_host("the longest", own),), claim, reach=reach, short=short)


def _sizes(facts: SourceFacts) -> dict[int, int]:
    """Return the bytes of memory of each device by its number, as far as the file tells."""
    said = [(one.get("id"), one.get("totalGlobalMem")) for one in facts.index.device_properties]
    return {
        number: size
        for number, size in said
        if isinstance(number, int) and isinstance(size, int) and size > 0
    }


def _at_peak(facts: SourceFacts, use: AllocatorUse) -> Evidence:
    """Return the operator that was running at the peak, else the moment."""
    position = None if use.peak is None or use.peak < use.begin else use.allocator.op_at(use.peak)
    if position is not None:
        return facts.slice(f"at the peak: {facts.name(position)}", position)
    return Evidence("the peak", use.peak_at, use.peak_at + 1)
