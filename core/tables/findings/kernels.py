"""Rules about single kernels: one that dominates, varies or is too short, and copies right before one."""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, merge, places_in, run_starts, sum_of
from ...base.short_names import comparable_name, short_name, short_names
from ...base.units import about_ns, count_of, format_ratio, format_share
from ...index.format import NONE
from ...query.groups import Groups
from ...query.lookup import category_mask, nearest_around, promoted_of
from ..frame.frame import Frame, FrameGroups
from ..host.op_events import OP, RUNTIME
from ..rule_threshold import OWN, Limits
from .facts import NO_LAUNCHES, SourceFacts, share
from .finding import Observation, Outcome, brief
from .rule import GUIDE, HTA, PYTORCH, Rule, effects_of

OCCUPANCY = re.compile(r"OccupancyMaxActiveBlocks")
ADDMM = re.compile(r"^(aten::|extern_kernels\.)(addmm|baddbmm|_addmm_activation|linear|addbmm)$")
WITHIN_DEVICE = re.compile(
    r"^(Memcpy (DtoD|D2D)|CopyDeviceToDevice|hipMemcpyDtoD|\w*MemoryCopy\(D2D\))", re.IGNORECASE
)
TRITON = re.compile(r"^triton_")
SORT_JUMP, SORT_WIDTH, SORT_RUNS, SORT_SHARE = 1.15, 1.25, 3, 0.15
"""Runs are of another sort from a step up by such a factor on; those of one differ by less than the second,
and are at least so many and such a share of all."""
SLOW_BEFORE = 0.15
"""Where kernels took as long before for so much of their time, none became slower."""
OTHER_WORK = 0.02
"""Where so many of the kernels have shapes that these names never had before, the work is another."""
SLOWER_RUNS = 4
"""A kernel with fewer runs does not tell whether it became slower."""
BLOCKING_SHARE, ABOUT_SHARE = 0.9, 0.1
"""Where so many launch calls end when their work is done, within such a share of it, they wait for it."""
BLOCKING_HELPS = (
    "Launch without waiting, so that the host prepares the next work meanwhile: unset CUDA_LAUNCH_BLOCKING "
    "(or what does so on this device), submit asynchronously; larger pieces of work, graphs."
)


def kernels_alike(work: Frame) -> tuple[FrameGroups, list[str]]:
    """Return device work by the names that its kernels have in every run, and the short forms of these."""
    work = work.plus(alike=work.names_at(lambda part: part.name_number, comparable_name))
    alike = work.group("alike")
    return alike, short_names(work.alike[alike.first()].tolist())


@Rule(
    "device-hotspot",
    "One kernel dominates",
    "one kernel name takes at least {share} of all kernel time (copies and allocations aside), at "
    "least {times} times as much as the next, and {claim_share} of the time looked at; collectives "
    "are never named",
    f"{GUIDE} (hotspot); the limits are {OWN}",
    {"share": 0.5, "times": 2, "claim_share": 0.02},
    helps="This is the kernel to make faster: its shapes, precision and tiling, or what calls it so often.",
    needs=("device",),
)
def device_hotspot(facts: SourceFacts, limits: Limits) -> Outcome:
    work = facts.work
    alike, names = kernels_alike(work)
    total = alike.sums(np.where(work.is_type("memory"), 0, work.dur))
    whole = sum_of(total)
    total = np.where(alike.sums(work.is_type("communication")) > 0, 0, total)
    top = int(np.argmax(total))
    part = share(int(total[top]), whole)
    second = int(np.delete(total, top).max(initial=0))
    if not second or part < limits["share"] or total[top] < limits["times"] * second:
        return None
    runs = work[alike.codes == top]
    times = "in one run" if len(runs) == 1 else f"in {len(runs):,} runs"
    name = names[top]
    text = f"{name} takes {format_share(part)} of the kernel time, {about_ns(int(total[top]))} {times}"
    evidence = (facts.on_device(f"its longest run: {name}", runs.top("dur", 1)),)
    short = f"{brief(name)}: {about_ns(int(total[top]))}, {format_share(part)} of kernels"
    return Observation(text, evidence, runs.union(), work=distinct(runs.position), short=short)


@Rule(
    "uneven-kernel",
    "A kernel varies",
    "of a compute kernel with at least {count} runs of the same work (name, grid, block, shapes of "
    "the operator, kernels around it, place in the step; without shapes and steps only where it is "
    "the only one) some take over {times} times as long as the quick ones (lower quartile), and they "
    "do not fall into two or three sorts of equal length; what they take beyond that is claimed, "
    "where it is {claim_share} of the time looked at",
    f"{GUIDE}; the limits are {OWN}",
    {"count": 3, "times": 2, "claim_share": 0.02},
    helps=(
        "Compare the slow runs with the others: contention for memory, another process, a cold cache after a "
        "copy."
    ),
    needs=("device",),
    explains=("rank-imbalance", "communication"),
)
def uneven_kernel(facts: SourceFacts, limits: Limits) -> Outcome:
    work = same_work(facts)
    work = _in_place(facts, work[(work.grid >= 0) & (work.launched >= 0)])
    if not len(work):
        return None
    groups = work.group("same")
    count = groups.counts
    quartiles = groups.ordered(work.dur)[np.cumsum(count) - count + (count - 1) // 4]  # the lower ones
    quick = quartiles[groups.codes]
    slow = (
        (work.dur > limits["times"] * quick) & (quick > 0) & (groups.counts[groups.codes] >= limits["count"])
    )
    for at in distinct(groups.codes[slow]).tolist():
        if _is_of_sorts(np.sort(work.dur[groups.codes == at])):
            slow &= groups.codes != at
    unsure = slow & (work.input_dims < 0) & ~work.is_placed
    if len(distinct(work.name_number[unsure])) > 1:  # a layer of another size, rather than chance
        slow &= ~unsure
    if not slow.any():
        return None
    kernels = work.group("name_number")
    lost = kernels.sums(np.where(slow, work.dur - quick, 0))
    alike, top = int(np.count_nonzero(lost)), int(np.argmax(lost))
    is_run = kernels.codes == top
    slowest = work[slow & is_run]
    worst = slowest.top("dur", 1)
    name = short_name(worst.name.tolist()[0])
    text = (
        f"{len(slowest):,} of {int(np.count_nonzero(is_run)):,} runs of {name} on the same work "
        f"{'takes' if len(slowest) == 1 else 'take up to'} {about_ns(int(worst.dur[0]))}, the quick ones "
        f"{about_ns(float(np.median(quick[slow & is_run])))}"
    )
    text += f"; {count_of(alike - 1, 'more kernel')} alike" if alike > 1 else ""
    evidence = (facts.on_device(f"the slowest run of {name}", worst),)
    claim = work.union(slow)
    ns, positions = min(sum_of(lost), claim.length), distinct(work.position[slow])
    short = f"{brief(name, 26)}: up to {about_ns(int(worst.dur[0]))} for the same work"
    return Observation(text, evidence, claim, ns, work=positions, short=short)


def same_work(facts: SourceFacts) -> Frame:
    """Return the compute kernels in order, with a column `same`: runs of the same number have the same name,
    grid, block, shapes and types of the launching operator on one device.
    """
    work = facts.work[facts.work.is_type("compute") & (facts.work.dur == facts.work.full_ns)].in_order()
    index, positions = facts.index, work.position.astype(np.int64)
    for key in ("grid", "block"):
        work = work.plus(**{key: promoted_of(index, key, positions, -1)})
    for key in ("input_dims", "input_type"):
        work = work.plus(**{key: work.from_parts(partial(_of_op, key), "owner_row")})
    op = np.where(work.op_at >= 0, work.op.codes, -1).astype(np.int64)
    keys = ("device_row", "book", "name_number", "grid", "block", "input_dims", "input_type", "op_name")
    return work.plus(same=work.plus(op_name=op).group(*keys).codes)


def _of_op(key: str, part: Frame) -> AnyArray:
    """Return a promoted argument of the op that owns each row, as its book numbers texts; -1 for none."""
    values = promoted_of(part.owner_index, key, np.maximum(part.op_at, 0), -1)
    return np.where(part.op_at >= 0, values, -1)


def _in_place(facts: SourceFacts, work: Frame) -> Frame:
    """Return such kernels with a narrower `same`: that have the same other kernels before and after them on
    their stream, and the same place among their like in each step, where all steps have as many of them:
    those `is_placed`.
    """
    before, after = _other_neighbours(work)
    alike = work.plus(before=before, after=after).group("same", "before", "after")
    work = work.plus(same=alike.codes, is_placed=np.zeros(len(work), np.bool_))
    if facts.steps is None or len(facts.steps) < 3:
        return work
    step, order = np.empty(len(work), np.int64), np.argsort(work.position, kind="stable")
    step[order] = facts.steps_of(work.position[order])
    in_step = work.plus(step=step).group("same", "step")
    turn, order = np.empty(len(work), np.int64), np.lexsort((work.start, in_step.codes))
    first = np.cumsum(in_step.counts) - in_step.counts
    turn[order] = np.arange(len(order)) - np.repeat(first, in_step.counts)
    counts, one = in_step.counts[in_step.codes], in_step.first()
    of_steps = Groups(alike.codes[one], alike.size).counts_where(step[one] >= 0) == len(facts.steps)
    is_placed = ((alike.most(counts) == alike.least(counts)) & of_steps)[alike.codes]
    placed = work.plus(turn=np.where(is_placed, turn, 0)).group("same", "turn")
    return work.plus(same=placed.codes, is_placed=is_placed)


def _other_neighbours(work: Frame) -> tuple[I64, I64]:
    """Return of each kernel, in order, the numbers of the names of the nearest other kernels before and after
    it on its stream, -1 for none.
    """
    name = work.name_number.astype(np.int64)
    first = run_starts(name, work.stream)
    lengths = np.diff(first, append=len(work))
    of_run, stream = name[first], work.stream[first]
    follows = np.append(stream[1:] == stream[:-1], False)
    after = np.where(follows, np.roll(of_run, -1), -1)
    before = np.where(np.roll(follows, 1), np.roll(of_run, 1), -1)
    # The first and the last of a stream count as if what surrounds most of their like surrounded them.
    for neighbours in (before, after):
        for at in np.flatnonzero(neighbours < 0).tolist():
            alike = neighbours[(of_run == of_run[at]) & (neighbours >= 0)]
            neighbours[at] = np.bincount(alike).argmax() if len(alike) else -1
    return np.repeat(before, lengths), np.repeat(after, lengths)


def _is_of_sorts(lengths: I64) -> bool:
    """Tell whether ascending lengths fall into two or three sorts, each of several runs of nearly equal
    length: these are different pieces of work.
    """
    jumps = np.flatnonzero(lengths[1:] > SORT_JUMP * lengths[:-1]) + 1
    sorts = np.split(lengths, jumps)
    few = max(SORT_RUNS, SORT_SHARE * len(lengths))
    return 2 <= len(sorts) <= 3 and all(len(one) >= few and one[-1] <= SORT_WIDTH * one[0] for one in sorts)


@Rule(
    "clock-drop",
    "All kernels became slower",
    "from some moment on kernels take at least {times} times as long for the same work as before, at "
    "least {agree_share} of their time agrees, and what they take beyond it is {share} of the time "
    "looked at",
    OWN,
    {"times": 1.12, "agree_share": 0.8, "share": 0.02},
    helps=(
        "Look at the device's clock, power and temperature over this time (a telemetry log, nvidia-smi -q -d "
        "PERFORMANCE): a power or heat limit, or another job on the device. The program did not change."
    ),
    needs=("device",),
    explains=("uneven-kernel",),
)
def clock_drop(facts: SourceFacts, limits: Limits) -> Outcome:
    best: tuple[int, Observation] | None = None
    for work in same_work(facts).by("device_row"):
        slower = _slower_from(work, limits)
        if slower is None:
            continue
        moment, times = slower
        after = work[work.start >= moment]
        claim = after.union().without(facts.untrusted)
        lost = round(claim.length * (1 - 1 / times))
        if lost < limits["share"] * facts.span_ns or (best is not None and best[0] >= lost):
            continue
        title = after.first_device.title
        text = (
            f"From {about_ns(moment - facts.span[0])} after the start all kernels of {title} take "
            f"{format_ratio(times)} times as long for the same work, as they do when its clock drops"
        )
        last = work[work.start < moment]
        evidence = (
            facts.on_device("the first slow kernel", after[np.argsort(after.start)[:1]]),
            facts.on_device("the last quick one", last[np.argsort(last.start)[-1:]]),
        )
        short = f"{title} is {format_ratio(times)} times slower from {about_ns(moment - facts.span[0])} on"
        best = lost, Observation(text, evidence, claim, lost, work=distinct(after.position), short=short)
    return None if best is None else best[1]


def _slower_from(work: Frame, limits: Limits) -> tuple[int, float] | None:
    """Return from which moment on the runs of one device take how many times as long as before for the same
    work; None where they do not.
    """
    whole_ns, all_work = sum_of(work.dur), work
    work = work[np.argsort(work.start, kind="stable")]
    many = work.group("same")
    work = work[(many.counts[many.codes] >= SLOWER_RUNS) & (work.dur > 0)]
    if len(work) < 4 * SLOWER_RUNS:
        return None
    groups = work.group("same")
    ratio = np.log(work.dur / groups.quantiles(work.dur, 0.5)[0][groups.codes])
    total, count = np.cumsum(ratio), np.arange(1, len(ratio) + 1)
    edge = max(SLOWER_RUNS, len(ratio) // 20)
    inner = slice(edge - 1, len(ratio) - edge)
    # Where the means before and after differ most, weighed by how many stand on both sides.
    gain = (total[-1] * count / len(ratio) - total)[inner] ** 2 / (count * (len(ratio) - count))[inner]
    at = int(np.argmax(gain)) + edge
    both = (groups.counts_where(count <= at) >= 2) & (groups.counts_where(count > at) >= 2)
    compared, late = work[both[groups.codes]], (count > at)[both[groups.codes]]
    if 2 * (compared_ns := sum_of(compared.dur)) < max(whole_ns, 1):
        return None
    groups = compared.group("same")
    early, later = (
        Groups(groups.codes[side], groups.size).quantiles(compared.dur[side], 0.5)[0]
        for side in (~late, late)
    )
    times, weight = later / early, groups.sums(compared.dur)
    is_told = ((compared.grid >= 0) | (compared.input_dims >= 0)).any()
    if not is_told and 2 * int(weight.max()) > compared_ns:
        return None  # one name alone, as TensorFlow's "Conv2D", may stand for work of any size
    order = np.argsort(times)
    typical = float(times[order][np.searchsorted(np.cumsum(weight[order]), compared_ns / 2)])
    agree_ns = sum_of(weight[np.abs(np.log(times / typical)) <= 0.3 * np.log(max(typical, 1.0001))])
    if typical < limits["times"] or agree_ns < limits["agree_share"] * compared_ns:
        return None
    moment = int(work.start[at])
    is_slow = compared.dur >= (1 + typical) / 2 * np.maximum(early, 1)[groups.codes]
    if sum_of(compared.dur[is_slow & ~late]) > SLOW_BEFORE * sum_of(compared.dur[~late]):
        return None  # some steps were as slow before: the work differs
    return None if _is_other_work(all_work, moment) else (moment, typical)


def _is_other_work(work: Frame, moment: int) -> bool:
    """Tell whether many kernels of one device after a moment are of names that it ran before, but of other
    shapes: then the work of the others may be another, too, though nothing tells.
    """
    early, late = work[work.start < moment], work[work.start >= moment]
    is_known = np.isin(late.name_number, early.name_number) & ~np.isin(late.same, early.same)
    return int(np.count_nonzero(is_known)) > OTHER_WORK * len(late)


@Rule(
    "short-kernels",
    "Kernels shorter than their launch",
    "at least {share} of the launch calls, and {count}, take longer than all that they launch "
    "(blocking copies aside), and in these calls no device works for {time_share} of the time looked "
    "at; where that is {cause_share} of the time in which devices wait for the host, it is the cause",
    f"{HTA}'s launch statistics; the limits are {OWN}",
    {"share": 0.5, "count": 20, "time_share": 0.02, "cause_share": 0.25},
    helps="Fuse them (torch.compile), launch them as a graph, or batch more work into each.",
    needs=("device",),
    explains=effects_of("short-kernels"),
)
def short_kernels(facts: SourceFacts, limits: Limits) -> Outcome:
    work = facts.work[facts.work.launch >= 0]
    if not len(work):
        return NO_LAUNCHES
    of_call = work.group("launch")
    calls = work[of_call.first()].plus(
        work_ns=of_call.sums(work.dur), copies=of_call.sums(work.is_type("memory"))
    )
    free = ~np.isin(calls.launch, facts.host.positions[facts.waits | facts.transfers])
    free &= (calls.copies == 0) | (calls.call_end < calls.end)
    slow_calls = calls[free & (calls.work_ns < calls.call_ns)]
    claim = merge(slow_calls.call_start, slow_calls.call_end).intersection(facts.held_up)
    of_all = int(np.count_nonzero(free))
    few = len(slow_calls) < limits["count"] or len(slow_calls) < limits["share"] * of_all
    if few or claim.length < limits["time_share"] * facts.span_ns:
        return None
    launch = int(slow_calls.top("call_ns", 1).launch[0])
    is_blocking = _are_blocking(calls[free], of_call.most(work.end)[free], limits["count"])
    what = "last until what they launch is done" if is_blocking else "take longer than what they launch"
    those = calls[free] if is_blocking else slow_calls
    number = len(those)
    text = (
        f"{number:,} of {of_all:,} launch calls {what}, {about_ns(sum_of(those.call_ns))} for "
        f"{about_ns(sum_of(those.work_ns))} of work; {facts.device_title} sits idle for "
        f"{about_ns(claim.length)} of that"
    )
    evidence = (facts.slice(f"the longest such call: {facts.name(launch)}", launch),)
    reach = facts.reach_of(claim, limits["cause_share"])
    short = f"{number:,} launches outlast their work: {about_ns(claim.length)} idle"
    helps = BLOCKING_HELPS if is_blocking else ""
    return Observation(text, evidence, claim, reach=reach, helps=helps, short=short)


def _are_blocking(calls: Frame, done: I64, least: float) -> bool:
    """Tell whether the host waits in launch calls until their work is done: those of long work, so many at
    least, return about when it ends. Calls that only enqueue return long before.
    """
    long = 2 * calls.work_ns >= calls.call_ns
    late = (done - calls.call_end)[long]
    return len(late) >= least and bool(
        np.count_nonzero(late <= ABOUT_SHARE * calls.work_ns[long]) >= BLOCKING_SHARE * len(late)
    )


@Rule(
    "occupancy-query",
    "Adaptive launches",
    "the occupancy of a kernel is queried before it is launched",
    f"{GUIDE}",
    helps=(
        "A library chooses the launch by it: those are GEMMs or convolutions that adapt to the device. "
        "Nothing to do."
    ),
    kind="note",
)
def occupancy_query(facts: SourceFacts, limits: Limits) -> Outcome:
    queries = facts.host.matching(OCCUPANCY, RUNTIME)
    if not queries.any():
        return None
    claim, count = facts.host.union(queries), int(np.count_nonzero(queries))
    text = (
        f"{count_of(count, 'launch was', 'launches were')} preceded by a query for the kernel's "
        "occupancy: matrix products or convolutions whose library adapts the launch to the device"
    )
    return Observation(text, (facts.on_host("the first query", facts.host.earliest(queries)),), claim)


@Rule(
    "hidden-copies",
    "Copies before matrix products",
    "right before a matrix product on the same stream runs a copy within the device that the same "
    "addmm launched: it broadcasts the bias",
    GUIDE,
    helps=(
        "A fused epilogue avoids the copy: linear with a one-dimensional bias, torch.compile, max-autotune."
    ),
    needs=("device",),
)
def hidden_copies(facts: SourceFacts, limits: Limits) -> Outcome:
    """A copy within the device puts the bias of an addmm in turn, right before its product."""
    addmm = facts.host.positions[facts.host.matching(ADDMM, OP)]
    work = facts.work.in_order()
    is_copy = work.named(WITHIN_DEVICE, short_name)
    if is_copy.any() and not (work.launch >= 0).any():
        return NO_LAUNCHES
    is_pair = is_copy[:-1] & work.is_kind("gemm")[1:] & (work.stream[:-1] == work.stream[1:])
    is_pair &= (work.launch[:-1] >= 0) & (work.launch[1:] >= 0)
    at = np.flatnonzero(is_pair)
    one, other = (nearest_around(facts.index, work.launch[rows], addmm) for rows in (at, at + 1))
    at = at[(one == other) & (one >= 0)]
    if not len(at):
        return None
    copies, products = work[at], work[at + 1]
    what = count_of(len(at), "copy within the device runs", "copies within the device run")
    text = f"{what} right before the matrix product of the same addmm"
    evidence = (facts.on_device("a copy", copies), facts.on_device("its product", products))
    return Observation(text, evidence, copies.union(), work=distinct(copies.position))


@Rule(
    "triton",
    "Triton kernels",
    "kernels named triton_… run on the device",
    f"{GUIDE}; {PYTORCH}",
    helps="The name holds the fused operators.",
    kind="note",
    needs=("device",),
)
def triton(facts: SourceFacts, limits: Limits) -> Outcome:
    runs = facts.work[facts.work.named(TRITON, short_name)]
    if not len(runs):
        return None
    ns, whole = sum_of(runs.dur), sum_of(facts.work.dur)
    what = count_of(len(runs), "run of a Triton kernel takes", "runs of Triton kernels take")
    text = f"{what} {format_share(share(ns, whole))} of the device time"
    evidence = [facts.on_device("the longest run", runs.top("dur", 1))]
    host, names = facts.host, {short_name(name) for name in runs.name.texts}
    of_kernels = np.zeros(len(host.texts), np.bool_)
    for at in np.flatnonzero(host.counts(host.matching(TRITON, OP))).tolist():
        of_kernels[at] = short_name(host.label(at)) in names
    if of_kernels.any():
        first = host.first(host.matching(TRITON, OP) & of_kernels[host.name])
        text += "; slices of the same names on the host launch them"
        evidence.append(facts.on_host("the first CPU slice that launches one", first))
    return Observation(text, tuple(evidence), runs.union(), work=distinct(runs.position))


@Rule(
    "forward-backward",
    "Backward is linked to forward",
    "the trace links backward operators with the forward ones they belong to",
    GUIDE,
    helps="In the viewer :launch and :kernel on a backward operator lead to the forward one and back.",
    kind="note",
)
def forward_backward(facts: SourceFacts, limits: Limits) -> Outcome:
    index = facts.index
    flows = np.flatnonzero(category_mask(index, {"fwdbwd"})[index.column("flows.category")])
    source, target = index.column("flows.source")[flows], index.column("flows.target")[flows]
    rows = places_in(facts.host.positions, target[(source != NONE) & (target != NONE)])
    rows = rows[rows >= 0]
    if not len(rows):
        return None
    text = f"{count_of(len(rows), 'backward operator is', 'backward operators are')} linked with the forward "
    text += f"{'one it belongs' if len(rows) == 1 else 'ones they belong'} to"
    evidence = (facts.on_host("the first backward operator", int(rows[0])),)
    return Observation(text, evidence, times=facts.host.starts[rows])
