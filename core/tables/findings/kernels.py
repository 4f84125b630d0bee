"""Rules about single kernels: one that dominates, varies or is too short, and copies right before one."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from ...base.arrays import I64, U32, AnyArray
from ...base.intervals import merge
from ...base.short_names import comparable_name, short_name, short_names
from ...base.units import count_of, format_ns, format_share
from ...index.format import NONE
from ..kinds import KERNEL_TYPES
from ..op_events import OP, RUNTIME, promoted_of
from ..rule_threshold import OWN, Limits, RuleThreshold
from ..slices import nearest_around
from ..work import Work
from .facts import NO_LAUNCHES, SourceFacts, of_kind, share, union_of
from .finding import Evidence, Observation, Outcome
from .rule import GUIDE, HTA, PYTORCH, rule

COMPUTE, MEMORY = KERNEL_TYPES.index("compute"), KERNEL_TYPES.index("memory")
COMMUNICATION = KERNEL_TYPES.index("communication")
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
    labels: dict[str, int] = {}
    codes = []
    for work in facts.works:
        rows, numbers = work.distinct_names
        names = map(comparable_name, facts.index.strings(numbers))
        own = [labels.setdefault(name, len(labels)) for name in names]
        codes.append(np.array(own, np.int64)[rows])
    total = np.zeros(len(labels), np.int64)
    for work, code in zip(facts.works, codes):
        np.add.at(total, code, np.where(work.kinds() == MEMORY, 0, work.durations))
    top, whole = int(np.argmax(total)), int(total.sum())
    part = share(int(total[top]), whole)
    second = int(np.delete(total, top).max(initial=0))
    if not second or part < limits["share"] or total[top] < limits["times"] * second:
        return None
    runs = [np.flatnonzero(code == top) for code in codes]
    count = sum(len(at) for at in runs)
    claim = union_of([merge(w.starts[at], w.ends[at]) for w, at in zip(facts.works, runs)])
    times = "in one run" if count == 1 else f"in {count:,} runs"
    name = short_names(list(labels))[top]
    text = f"{name} takes {format_share(part)} of the kernel time: {format_ns(int(total[top]))} {times}"
    if any((work.kinds()[at] == COMMUNICATION).any() for work, at in zip(facts.works, runs)):
        text += "; it is communication, and waits for other ranks, too"
    evidence = (_longest(facts, runs, f"its longest run: {name}"),)
    return Observation(text, evidence, claim, work=_positions(facts, runs))


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
    best: Observation | None = None
    alike = 0
    for work in facts.works:
        rows = np.flatnonzero(work.kinds() == COMPUTE)
        if not len(rows):
            continue
        code = _shapes(facts, work, rows)
        duration = work.durations[rows]
        quick = _lower_quartiles(code, duration)
        slow = (duration > limits["times"] * quick[code]) & (quick[code] > 0)
        slow &= np.bincount(code)[code] >= limits["count"]
        if not slow.any():
            continue
        lost = np.zeros(len(quick), np.int64)
        np.add.at(lost, code[slow], (duration - quick[code])[slow])
        alike += int(np.count_nonzero(lost))
        top = int(np.argmax(lost))
        if best is None or int(lost[top]) > best.claimed_ns:
            runs = rows[code == top]
            best = _uneven(facts, work, runs, rows[slow & (code == top)], int(quick[top]), int(lost[top]))
    if best is None:
        return None
    more = f"; {count_of(alike - 1, 'more kernel')} alike" if alike > 1 else ""
    return replace(best, text=best.text + more)


def _lower_quartiles(code: I64, duration: I64) -> I64:
    """Return of each group (numbered from 0) the duration that a quarter of its runs do not exceed."""
    order = np.lexsort((duration, code))
    count = np.bincount(code)
    quartiles: I64 = duration[order[np.cumsum(count) - count + (count - 1) // 4]]
    return quartiles


def _uneven(facts: SourceFacts, work: Work, runs: I64, slow: I64, quick_ns: int, lost: int) -> Observation:
    """Return what is said of a kernel of which some runs are slow; both are places in the work."""
    duration = work.durations
    worst = int(slow[np.argmax(duration[slow])])
    name = short_name(facts.index.string(int(work.names[worst])))
    text = (
        f"{name}: {len(slow):,} of {len(runs):,} runs {'takes' if len(slow) == 1 else 'take up to'} "
        f"{format_ns(int(duration[worst]))}, "
        f"the quick ones {format_ns(quick_ns)} (median {format_ns(float(np.median(duration[runs])))})"
    )
    evidence = (facts.on_device(f"the slowest run of {name}", work, worst),)
    claim = merge(work.starts[slow], work.ends[slow])
    return Observation(text, evidence, claim, lost, work=np.unique(work.positions[slow]))


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
    launches, starts, launched = [], [], []
    for work, side in zip(facts.works, facts.sides):
        at = np.flatnonzero(side.launches != NONE)
        launches.append(side.launches[at].astype(np.int64))
        starts.append(side.starts[at])
        launched.append(work.durations[at])
    calls, first, which = np.unique(np.concatenate(launches), return_index=True, return_inverse=True)
    if not len(calls):
        return NO_LAUNCHES
    work_ns = np.zeros(len(calls), np.int64)
    np.add.at(work_ns, which, np.concatenate(launched))
    call_ns = facts.index.duration(calls)
    free = ~np.isin(calls, facts.host.positions[facts.waits])
    short = np.flatnonzero(free & (work_ns < call_ns))
    if len(short) < limits["count"] or len(short) < limits["share"] * int(free.sum()):
        return None
    begun = np.concatenate(starts)[first]
    claim = merge(begun[short], begun[short] + call_ns[short])
    worst = int(short[np.argmax(call_ns[short])])
    launch, start = int(calls[worst]), int(begun[worst])
    text = (
        f"{len(short):,} of {int(free.sum()):,} launch calls take longer than what they launch: "
        f"{format_ns(claim.length)} for {format_ns(int(work_ns[short].sum()))} of device work"
    )
    label = f"the longest such call: {facts.name(launch)}"
    return Observation(text, (facts.slice(label, launch, start, start + int(call_ns[worst])),), claim)


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
    starts, ends, pairs, copies = [], [], [], []
    copied = False
    for work, side in zip(facts.works, facts.sides):
        is_copy, is_product = _named(facts, work, WITHIN_DEVICE), of_kind(work, "gemm")
        copied |= bool(is_copy.any())
        if not is_copy.any() or not len(addmm):
            continue
        for _, rows in work.by_stream():
            at = np.flatnonzero(is_copy[rows[:-1]] & is_product[rows[1:]])
            copy, product = rows[at], rows[at + 1]
            both = (side.launches[copy] != NONE) & (side.launches[product] != NONE)
            copy, product = copy[both], product[both]
            one = nearest_around(facts.index, side.launches[copy].astype(np.int64), addmm)
            other = nearest_around(facts.index, side.launches[product].astype(np.int64), addmm)
            same = (one == other) & (one != NONE)
            starts.append(work.starts[copy[same]])
            ends.append(work.ends[copy[same]])
            pairs += [(work, int(a), int(b)) for a, b in zip(copy[same][:1], product[same][:1])]
            copies.append(work.positions[copy[same]])
    if not pairs:
        unknown = copied and not any((side.launches != NONE).any() for side in facts.sides)
        return NO_LAUNCHES if unknown else None
    claim = merge(np.concatenate(starts), np.concatenate(ends))
    work, copy_at, product_at = pairs[0]
    count = sum(len(part) for part in starts)
    what = count_of(count, "copy within the device stands", "copies within the device stand")
    text = f"{what} right before the matrix product of the same addmm"
    evidence = (facts.on_device("a copy", work, copy_at), facts.on_device("its product", work, product_at))
    return Observation(text, evidence, claim, work=np.unique(np.concatenate(copies)))


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
    masks = [_named(facts, work, TRITON) for work in facts.works]
    rows = [np.flatnonzero(mask) for mask in masks]
    count = sum(len(at) for at in rows)
    if not count:
        return None
    ns = sum(int(work.durations[at].sum()) for work, at in zip(facts.works, rows))
    whole = sum(int(work.durations.sum()) for work in facts.works)
    claim = union_of([merge(w.starts[at], w.ends[at]) for w, at in zip(facts.works, rows)])
    what = count_of(count, "run of a Triton kernel takes", "runs of Triton kernels take")
    text = f"{what} {format_share(share(ns, whole))} of the device time"
    evidence = [_longest(facts, rows, "the longest run")]
    calls = facts.host.matching(TRITON, OP)
    if len(calls):
        evidence.append(facts.on_host("the first CPU slice that launches one", int(calls[0])))
    return Observation(text, tuple(evidence), claim, work=_positions(facts, rows))


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
    linked = int(ours.sum())
    text = f"{count_of(linked, 'backward operator is', 'backward operators are')} linked with the forward "
    text += f"{'one it belongs' if linked == 1 else 'ones they belong'} to"
    times = facts.host.starts[np.searchsorted(facts.host.positions, target[ours].astype(np.int64))]
    return Observation(text, (facts.on_host("the first backward operator", row),), times=times)


def _named(facts: SourceFacts, work: Work, pattern: re.Pattern[str]) -> AnyArray:
    """Return which pieces of work have a name that fits, raw or short."""
    rows, numbers = work.distinct_names
    texts = facts.index.strings(numbers)
    fits = [bool(pattern.search(raw) or pattern.search(short_name(raw))) for raw in texts]
    return np.array(fits, np.bool_)[rows]


def _shapes(facts: SourceFacts, work: Work, rows: I64) -> I64:
    """Return a number from 0 for each combination of name, grid and block of pieces of work."""
    code: I64 = np.unique(work.names[rows], return_inverse=True)[1]
    order = np.argsort(work.positions[rows], kind="stable")
    for key in ("grid", "block"):
        values = np.empty(len(rows), np.int64)
        values[order] = promoted_of(facts.index, key, work.positions[rows][order].astype(np.int64))
        _, which = np.unique(values, return_inverse=True)
        _, code = np.unique(code * (int(which.max()) + 1) + which, return_inverse=True)
    return code


def _positions(facts: SourceFacts, rows: list[I64]) -> U32:
    """Return the positions of the work in these rows of each device, ascending."""
    positions: U32 = np.unique(np.concatenate([work.positions[at] for work, at in zip(facts.works, rows)]))
    return positions


def _longest(facts: SourceFacts, rows: list[I64], label: str) -> Evidence:
    best = None
    for work, at in zip(facts.works, rows):
        if len(at):
            row = int(at[np.argmax(work.durations[at])])
            ns = int(work.durations[row])
            if best is None or ns > best[0]:
                best = ns, work, row
    assert best is not None
    return facts.on_device(label, best[1], best[2])
