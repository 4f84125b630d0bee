"""Rules about single kernels: one that dominates, varies or is too short, and copies right before one."""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import I64, sum_of
from ...base.intervals import merge
from ...base.short_names import comparable_name, short_name, short_names
from ...base.units import count_of, format_ns, format_share
from ...index.format import NONE
from ..groups import Groups
from ..op_events import OP, RUNTIME, promoted_of
from ..rule_threshold import OWN, Limits, RuleThreshold
from ..slices import nearest_around
from .facts import NO_LAUNCHES, SourceFacts, share
from .finding import Observation, Outcome
from .rule import GUIDE, HTA, PYTORCH, rule

OCCUPANCY = re.compile(r"OccupancyMaxActiveBlocks")
ADDMM = re.compile(r"^(aten::|extern_kernels\.)(addmm|baddbmm|_addmm_activation|linear|addbmm)$")
WITHIN_DEVICE = re.compile(
    r"^(Memcpy (DtoD|D2D)|CopyDeviceToDevice|hipMemcpyDtoD|\w*MemoryCopy\(D2D\))", re.IGNORECASE
)
TRITON = re.compile(r"^triton_")


@rule(
    "device-hotspot",
    "One kernel dominates",
    RuleThreshold(
        (
            "one kernel name takes at least {share} of all kernel time (copies and allocations aside), "
            "and at least {times} times as much as the next"
        ),
        f"{GUIDE} (hotspot); the limits are {OWN}",
        {"share": 0.5, "times": 2},
    ),
    helps=(
        "This is the kernel to make faster: its shapes, precision and tiling, or what calls it so often. A "
        "collective lasts while one rank waits for another: see `tracelane ranks`."
    ),
    needs=("device",),
)
def device_hotspot(facts: SourceFacts, limits: Limits) -> Outcome:
    """One name takes most of the device time."""
    work = facts.work
    work = work.plus(alike=work.names_at(lambda part: part.name_number, comparable_name))
    alike = work.group("alike")
    total = alike.sums(np.where(work.is_type("memory"), 0, work.dur))
    top, whole = int(np.argmax(total)), sum_of(total)
    part = share(int(total[top]), whole)
    second = int(np.delete(total, top).max(initial=0))
    if not second or part < limits["share"] or total[top] < limits["times"] * second:
        return None
    runs = work[alike.codes == top]
    times = "in one run" if len(runs) == 1 else f"in {len(runs):,} runs"
    name = short_names(work.alike[alike.first()].tolist())[top]
    text = f"{name} takes {format_share(part)} of the kernel time: {format_ns(int(total[top]))} {times}"
    if runs.is_type("communication").any():
        text += "; it is communication, and waits for other ranks, too"
    evidence = (facts.on_device(f"its longest run: {name}", runs.top("dur", 1)),)
    return Observation(text, evidence, runs.union(), work=np.unique(runs.position))


@rule(
    "uneven-kernel",
    "A kernel varies",
    RuleThreshold(
        (
            "of a compute kernel with at least {count} runs (same name, grid and block) some take over "
            "{times} times as long as the quick ones (lower quartile); what they take beyond that is "
            "claimed"
        ),
        f"{GUIDE}; the limits are {OWN}",
        {"count": 3, "times": 2},
    ),
    helps=(
        "Compare the slow runs with the others: other shapes, contention for memory, clocks that change, a "
        "cold cache after a copy."
    ),
    needs=("device",),
)
def uneven_kernel(facts: SourceFacts, limits: Limits) -> Outcome:
    """Runs of one kernel take very different times."""
    work = facts.work[facts.work.is_type("compute")]
    for key in ("grid", "block"):
        work = work.plus(**{key: promoted_of(facts.index, key, work.position.astype(np.int64))})
    shapes = work.group("device_row", "name_number", "grid", "block")
    if not len(work):
        return None
    quick = _lower_quartiles(shapes, work.dur)[shapes.codes]
    slow = (
        (work.dur > limits["times"] * quick) & (quick > 0) & (shapes.counts[shapes.codes] >= limits["count"])
    )
    lost = shapes.sums(np.where(slow, work.dur - quick, 0))
    alike, top = int(np.count_nonzero(lost)), int(np.argmax(lost))
    if not alike:
        return None
    is_run = shapes.codes == top
    slowest = work[slow & is_run]
    worst = slowest.top("dur", 1)
    name = short_name(worst.name.tolist()[0])
    text = (
        f"{name}: {len(slowest):,} of {int(np.count_nonzero(is_run)):,} runs "
        f"{'takes' if len(slowest) == 1 else 'take up to'} {format_ns(int(worst.dur[0]))}, the quick ones "
        f"{format_ns(int(quick[is_run][0]))} (median {format_ns(float(np.median(work.dur[is_run])))})"
    )
    text += f"; {count_of(alike - 1, 'more kernel')} alike" if alike > 1 else ""
    evidence = (facts.on_device(f"the slowest run of {name}", worst),)
    positions = np.unique(slowest.position)
    return Observation(text, evidence, slowest.union(), int(lost[top]), work=positions)


def _lower_quartiles(groups: Groups, durations: I64) -> I64:
    """Return of each group the duration that a quarter of its runs do not exceed."""
    count = groups.counts
    quartiles: I64 = groups.ordered(durations)[np.cumsum(count) - count + (count - 1) // 4]
    return quartiles


@rule(
    "short-kernels",
    "Kernels shorter than their launch",
    RuleThreshold(
        (
            "at least {share} of the launch calls, and {count}, take longer than all that they launch "
            "(blocking copies aside)"
        ),
        f"{HTA}'s launch statistics; the limits are {OWN}",
        {"share": 0.5, "count": 20},
    ),
    helps="Fuse them (torch.compile), launch them as a graph, or batch more work into each.",
    needs=("device",),
)
def short_kernels(facts: SourceFacts, limits: Limits) -> Outcome:
    """Launching takes longer than what is launched."""
    work = facts.work[facts.work.launch >= 0]
    if not len(work):
        return NO_LAUNCHES
    of_call = work.group("launch")
    calls = work[of_call.first()].plus(work_ns=of_call.sums(work.dur))
    free = ~np.isin(calls.launch, facts.host.positions[facts.waits])
    short = calls[free & (calls.work_ns < calls.call_ns)]
    if len(short) < limits["count"] or len(short) < limits["share"] * int(np.count_nonzero(free)):
        return None
    claim = merge(short.call_start, short.call_start + short.call_ns)
    worst = short.top("call_ns", 1)
    launch, start = int(worst.launch[0]), int(worst.call_start[0])
    text = (
        f"{len(short):,} of {int(np.count_nonzero(free)):,} launch calls take longer than what they launch: "
        f"{format_ns(claim.length)} for {format_ns(sum_of(short.work_ns))} of device work"
    )
    label = f"the longest such call: {facts.name(launch)}"
    return Observation(text, (facts.slice(label, launch, start, start + int(worst.call_ns[0])),), claim)


@rule(
    "occupancy-query",
    "Adaptive launches",
    RuleThreshold("the runtime is asked for the occupancy of a kernel before it is launched", f"{GUIDE}"),
    helps=(
        "A library chooses the launch by it: those are GEMMs or convolutions that adapt to the device. "
        "Nothing to do."
    ),
    note=True,
)
def occupancy_query(facts: SourceFacts, limits: Limits) -> Outcome:
    """A library asks for the occupancy before it launches."""
    rows = facts.host.matching(OCCUPANCY, RUNTIME)
    if not len(rows):
        return None
    claim = facts.host.union(rows)
    text = (
        f"{count_of(len(rows), 'launch was', 'launches were')} preceded by a query for the kernel's "
        "occupancy: matrix products or convolutions whose library adapts the launch to the device"
    )
    first = int(rows[np.argmin(facts.host.starts[rows])])
    return Observation(text, (facts.on_host("the first query", first),), claim)


@rule(
    "hidden-copies",
    "Copies before matrix products",
    RuleThreshold(
        (
            "right before a matrix product on the same stream stands a copy within the device that the same "
            "addmm launched: it puts the bias in place"
        ),
        GUIDE,
    ),
    helps=(
        "A fused epilogue avoids the copy: linear with a one-dimensional bias, torch.compile, max-autotune."
    ),
    needs=("device",),
)
def hidden_copies(facts: SourceFacts, limits: Limits) -> Outcome:
    """A copy within the device puts the bias of an addmm in place, right before its product."""
    addmm = facts.host.positions[facts.host.matching(ADDMM, OP)]
    work = facts.work.in_order()
    is_copy = work.named(WITHIN_DEVICE, short_name)
    if is_copy.any() and not (work.launch >= 0).any():
        return NO_LAUNCHES
    is_pair = is_copy[:-1] & work.is_kind("gemm")[1:] & (work.stream[:-1] == work.stream[1:])
    is_pair &= (work.launch[:-1] >= 0) & (work.launch[1:] >= 0)
    at = np.flatnonzero(is_pair)
    one, other = (nearest_around(facts.index, work.launch[rows], addmm) for rows in (at, at + 1))
    at = at[(one == other) & (one != NONE)]
    if not len(at):
        return None
    copies, products = work[at], work[at + 1]
    what = count_of(len(at), "copy within the device stands", "copies within the device stand")
    text = f"{what} right before the matrix product of the same addmm"
    evidence = (facts.on_device("a copy", copies), facts.on_device("its product", products))
    return Observation(text, evidence, copies.union(), work=np.unique(copies.position))


@rule(
    "triton",
    "Triton kernels",
    RuleThreshold("kernels named triton_… run on the device", f"{GUIDE}; {PYTORCH}"),
    helps="The name holds the fused operators; the CPU slice of the same name launched it.",
    note=True,
    needs=("device",),
)
def triton(facts: SourceFacts, limits: Limits) -> Outcome:
    """Kernels that Triton compiled."""
    runs = facts.work[facts.work.named(TRITON, short_name)]
    if not len(runs):
        return None
    ns, whole = sum_of(runs.dur), sum_of(facts.work.dur)
    what = count_of(len(runs), "run of a Triton kernel takes", "runs of Triton kernels take")
    text = f"{what} {format_share(share(ns, whole))} of the device time"
    evidence = [facts.on_device("the longest run", runs.top("dur", 1))]
    calls = facts.host.matching(TRITON, OP)
    if len(calls):
        evidence.append(facts.on_host("the first CPU slice that launches one", int(calls[0])))
    return Observation(text, tuple(evidence), runs.union(), work=np.unique(runs.position))


@rule(
    "forward-backward",
    "Backward is linked to forward",
    RuleThreshold("the trace links backward operators with the forward ones they belong to", GUIDE),
    helps="b and o on a backward operator lead to the forward one and back.",
    note=True,
)
def forward_backward(facts: SourceFacts, limits: Limits) -> Outcome:
    """The trace links backward operators with forward ones."""
    index = facts.index
    links = np.array([name == "fwdbwd" for name in index.categories], np.bool_)
    if not links.any():
        return None
    flows = np.flatnonzero(links[index.column("flows.category")])
    source, target = index.column("flows.source")[flows], index.column("flows.target")[flows]
    bound = (source != NONE) & (target != NONE)
    ours = np.isin(target, facts.host.positions.astype(target.dtype)) & bound
    if not ours.any():
        return None
    row = int(np.searchsorted(facts.host.positions, int(target[ours][0])))
    linked = int(np.count_nonzero(ours))
    text = f"{count_of(linked, 'backward operator is', 'backward operators are')} linked with the forward "
    text += f"{'one it belongs' if linked == 1 else 'ones they belong'} to"
    times = facts.host.starts[np.searchsorted(facts.host.positions, target[ours].astype(np.int64))]
    return Observation(text, (facts.on_host("the first backward operator", row),), times=times)
