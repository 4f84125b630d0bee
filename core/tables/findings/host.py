"""Rules about the host: what dominates it, what it waits for, what the profiler itself does."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from ...base.arrays import EMPTY, I64, AnyArray, Bools, Intervals, distinct, merge, sum_of
from ...base.kineto import BLOCKING_COPIES, GROUPS, STEP, WAITS
from ...base.safe_text import safe
from ...base.short_names import short_name
from ...base.units import about_ns, count_of, format_share
from ...index.format import NONE, LaneKind, LaneRole, RowKind, SliceFlag
from ...index.producers import Producer, is_of_memory, producer_of
from ...index.store import Index
from ...query.groups import Groups, dense
from ...query.lookup import lanes_of, op_names
from ...read.problem import NOT_READ
from ..device.untrusted import holds_events
from ..frame.frame_columns import work_of
from ..host.allocators import memory_records
from ..host.host_columns import LOADER, LONG_NAME, READ_OPS, HostSlices
from ..host.op_events import OP, RUNTIME
from ..rule_threshold import OWN, Limits
from .device import COLLECTIVE
from .facts import SourceFacts, share
from .finding import Evidence, NotJudged, Observation, Outcome, brief
from .meanwhile import ENQUEUEING
from .one_call import only_call
from .rule import GUIDE, TENSORBOARD, Rule, effects_of

NUMBER = re.compile(r"#?(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])|(?<=-op)\d+$")
"""Numbers in names that count what is alike: "Reduce_1_0", "Worker #6", MindSpore's "MatMul-op19"."""
ALIKE = 0.9
"""Names told apart by numbers alone that take this share of all time are what the program consists of: which
of them takes most is the answer ("Line 58" of "Line 21" to "Line 60").
"""
MAX_NUMBERED = 20_000
"""Of more names numbers are left as they are: looking at each takes a µs."""
WAITING = re.compile(r"(?<![a-z])(wait(ing)?|sleep(ing)?|idle)(?![a-z])|Wait(ing)?(?![a-z])|Idle(?![a-z])")
"""Names that say that somebody waits."""
VALUE_NS = 20_000
"""An operator during which copies take no longer (ns) reads a value, and moves no data."""
IDLE_HOST = NotJudged("no operators or calls but waits run on the host in the time that is looked at")
OBJECT_PHASES = np.frombuffer(b"NOD", np.uint8)
"""Phases of events that say that an object is made, what is in it, and that it is gone."""
RECORDED = 0.05
"""Where slices take a smaller share of the time it is told how much they do: most of it is not recorded."""
PROFILED_SHARE = 0.05
"""From this share of a name's own time on it is told what the profiler takes within it."""


@Rule(
    "host-hotspot",
    "One operator dominates the host",
    "one operator or call takes at least {share} of the host's self time, and at least {times} "
    "times as much as the next (waits, blocking copies and collectives aside); "
    "where there are devices, they wait for it in {device_share} of the time looked at",
    f"{GUIDE} (hotspot); the limits are {OWN}",
    {"share": 0.5, "times": 2, "device_share": 0.1},
    helps="Look at where it is called from, and whether it must run that often or at all.",
    held_up=True,
)
def host_hotspot(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    working = _working(facts)
    if not working.any():
        return facts.no_host if not len(host) else IDLE_HOST
    whole = sum_of(facts.own_ns[working])
    working &= ~(facts.transfers | host.matching(COLLECTIVE, OP))
    total = host.sums(working, facts.own_ns)
    top = int(np.argmax(total))
    part = share(int(total[top]), whole)
    second = int(np.delete(total, top).max(initial=0))
    own = working & (host.name == top)
    if not second or part < limits["share"] or total[top] < limits["times"] * second:
        return None
    claim = host.own_time(own).without(_profiled_in(facts, own))
    if _is_hidden(facts, claim, limits) or only_call(facts) is not None:
        return None
    name, count = host.label(top), int(np.count_nonzero(own))
    text = (
        f"{name} takes {format_share(part)} of the host's own time, {about_ns(int(total[top]))} in "
        f"{count_of(count, 'call')}"
    )
    text += ", with what only a first call costs" if count == 1 else ""
    profiled = _profiled_in(facts, own).length
    if profiled >= PROFILED_SHARE * total[top]:
        text += f"; the profiler takes {about_ns(profiled)} more within it"
    longest = host.most(own, facts.own_ns)
    evidence = (facts.on_host(f"its longest call: {name}", longest),)
    short = f"{brief(name)}: {about_ns(int(total[top]))}, {format_share(part)} of the host"
    return Observation(text, evidence, claim, min(int(total[top]), claim.length), short=short)


def _profiled_in(facts: SourceFacts, own: Bools) -> Intervals:
    """Return the profiler's time within some slices of the host."""
    time = EMPTY
    for spans, rows in facts.profiled.values():
        inside = own[rows]
        time = time.union(Intervals(spans.starts[inside], spans.ends[inside]))
    return time


def _is_hidden(facts: SourceFacts, claim: Intervals, limits: Limits) -> bool:
    """Tell whether there are devices that the host holds up too little to matter, or that tell nothing."""
    if not facts.has_devices:
        return len(facts.untrusted_periods) > 0
    return claim.intersection(facts.held_up).length < limits["device_share"] * facts.span_ns


@Rule(
    "many-calls",
    "Many calls of a cheap operator",
    "an operator or call is made at least {count} times, takes less than {mean_ns} on average, "
    "and at least {share} of the host's busy time in total; where there are devices, they wait for "
    "it in {device_share} of the time looked at",
    f"{GUIDE}; the limits are {OWN}",
    {"count": 500, "mean_ns": 10_000, "share": 0.1, "device_share": 0.1},
    helps=(
        "Batch it (foreach and fused variants, larger tensors), move it out of the loop, or let the compiler "
        "fuse it."
    ),
    held_up=True,
)
def many_calls(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    working = _working(facts)
    if not working.any():
        return facts.no_host if not len(host) else IDLE_HOST
    count, total = host.counts(working), host.totals(working)
    cheap = (count >= limits["count"]) & (total < limits["mean_ns"] * count)
    if not cheap.any():
        return None
    top = int(np.argmax(np.where(cheap, total, -1)))
    own = working & (host.name == top)
    claim = host.union(own)
    too_few = claim.length < limits["share"] * facts.host_busy.length
    if too_few or _is_hidden(facts, claim, limits):
        return None
    name = host.label(top)
    text = (
        f"{name} is called {int(count[top]):,} times, {about_ns(int(total[top]) // int(count[top]))} each, "
        f"{about_ns(claim.length)} in total"
    )
    evidence = (facts.on_host(f"the first call of {name}", host.earliest(own)),)
    short = f"{brief(name)}: {int(count[top]):,} calls, {about_ns(claim.length)}"
    return Observation(text, evidence, claim, short=short)


@Rule(
    "cost-in-children",
    "The cost is in the children",
    "an operator takes at least {share} of the host's busy time, but at most {self_share} of that itself",
    f"{GUIDE} (self against total); the limits are {OWN}",
    {"share": 0.2, "self_share": 0.05},
    helps="Go down: the child named is where the time is.",
    kind="note",
)
def cost_in_children(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    ops = (host.kinds == OP) & facts.active & ~_repeats(facts)
    if not ops.any():
        return facts.no_host
    total, self_ns = host.totals(ops), host.sums(ops, host.self_ns)
    whole = facts.host_busy.length
    dear = (total >= limits["share"] * whole) & (self_ns <= limits["self_share"] * total) & (total > 0)
    if not dear.any():
        return None
    top = int(np.argmax(np.where(dear, total, -1)))
    own, children = ops & (host.name == top), _children(facts, top)
    if not children.any():
        return None
    child = _dearest_child(host, children, int(total[top]))
    name = host.label(top)
    itself = format_share(share(int(self_ns[top]), int(total[top])))
    text = f"{name} takes {about_ns(int(total[top]))}, {itself} of it itself: the time is in its children"
    evidence = [facts.longest_on_host("its longest call", own)]
    if child is not None:
        text += f", most in {host.label(int(host.name[child]))}"
        evidence.append(facts.on_host("the dearest child", child))
    return Observation(text, tuple(evidence), host.union(own))


@Rule(
    "sync",
    "Waits with little device work",
    "over at least {share} of the time in which the host waits for the device, the device does nothing, "
    "and that is {claim_share} of the time looked at",
    f"{GUIDE} (a long synchronise over little work); the limits are {OWN}",
    {"share": 0.5, "claim_share": 0.05},
    helps=(
        "Drop the synchronisation or move it to where the result is needed: .item(), .cpu(), print of a "
        "tensor, blocking copies."
    ),
    needs=("device",),
    explains=effects_of("sync"),
    anywhere=True,
)
def sync(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.whole_host
    waits = np.flatnonzero(host.matching(WAITS, RUNTIME))
    if not len(waits):
        return None
    waiting = host.union(waits)
    idle = waiting.without(facts.busy.union(facts.waiting, facts.untrusted)).without(facts.profiling)
    idle = idle.clipped(*facts.span).union(idle.without(work_of(facts.scope).union()))
    if share(idle.length, waiting.length) < limits["share"]:
        return None
    length = host.ends[waits] - host.starts[waits]
    lost = idle.covered(host.starts[waits], host.ends[waits])
    bad = waits[(lost >= limits["share"] * length) & (lost > 0)]
    claim = idle.intersection(host.union(bad))
    worst = int(waits[np.argmax(lost)])
    name = host.label(int(host.name[worst]))
    text = (
        f"In {count_of(len(bad), 'call')} the host waits {about_ns(host.union(bad).length)} for "
        f"{facts.device_title}, which does nothing for {about_ns(claim.length)} of it; longest in {name}"
    )
    span = int(host.starts[worst]), int(host.ends[worst])
    evidence = facts.slice(f"the longest: {name}", int(host.positions[worst]), span)
    short = f"The host waits {about_ns(host.union(bad).length)} in {brief(name)}"
    return Observation(text, (evidence,), claim, short=short)


@Rule(
    "sync-in-loop",
    "The host waits for the device again and again",
    "at least {count} times, and as often as there are steps, the device runs dry because the host "
    "waits for it (a synchronisation, .item()) before it launches more, in {share} of the time "
    "looked at, once a step in {once_share}; gaps of over {times} times the median aside, and of each what "
    "the host needs to wait and to enqueue: not what it sleeps, loads or compiles then",
    f"PyTorch, performance tuning guide (avoid synchronisation); the limits are {OWN}",
    {"count": 5, "share": 0.02, "once_share": 0.1, "times": 4},
    helps=(
        "Take values from the device once at the end: no .item(), .cpu(), print, nonzero or if over a tensor "
        "in the loop; torch.cuda.set_sync_debug_mode names the lines."
    ),
    needs=("device", "host"),
    explains=effects_of("sync-in-loop"),
    meanwhile=ENQUEUEING,
)
def sync_in_loop(facts: SourceFacts, limits: Limits) -> Outcome:
    host, rows = facts.host, np.flatnonzero(_drains(facts))
    gaps = facts.held_up
    if not len(rows) or not len(gaps):
        return None
    order = np.argsort(host.ends[rows], kind="stable")
    rows = rows[order]
    # The wait that ends first after the device has run dry: it began before, and ends before the next launch.
    at = np.searchsorted(host.ends[rows], gaps.starts)
    known = np.flatnonzero(at < len(rows))
    wait = rows[at[known]]
    is_after = (host.starts[wait] <= gaps.starts[known]) & (host.ends[wait] <= gaps.ends[known])
    known, wait = known[is_after], wait[is_after]
    length = gaps.ends[known] - gaps.starts[known]
    is_usual = length <= limits["times"] * np.median(length) if len(known) else is_after[:0]
    known, wait = known[is_usual], wait[is_usual]
    claim = Intervals(gaps.starts[known], gaps.ends[known]).intersection(facts.meanwhile.of(*ENQUEUEING))
    steps = len(facts.steps or ())
    least = limits["share" if len(known) > 1.5 * steps else "once_share"]
    if len(known) < max(limits["count"], 0.8 * steps) or claim.length < least * facts.span_ns:
        return None
    count = np.bincount(host.name[wait], minlength=len(host.texts))
    name = host.label(int(np.argmax(count)))
    text = (
        f"{len(known):,} times the host waits for {facts.device_title}, mostly in {name}, before it launches "
        f"more: {facts.device_title} then has nothing to do, for {about_ns(claim.length)} in all"
    )
    longest = int(wait[np.argmax(claim.covered(gaps.starts[known], gaps.ends[known]))])
    evidence = (facts.on_host(f"the wait before the longest: {name}", longest),)
    windows = facts.longest_windows("longest gap after one", claim)
    short = f"{brief(name, 24)}, {len(known):,} times: {facts.device_title} idle {about_ns(claim.length)}"
    return Observation(text, (*evidence, *windows), claim, short=short)


def _drains(facts: SourceFacts) -> Bools:
    """Return in which of the host's slices it waits until the device has done what was launched, to copy
    little or nothing: synchronisations, and operators that read a value or copy as little. Waits within
    larger copies are none.
    """
    host, transfers = facts.host, facts.transfers
    copied = facts.work.union(facts.work.is_type("memory"))
    copied_ns = np.zeros(len(host), np.int64)
    copied_ns[transfers] = copied.covered(host.starts[transfers], host.ends[transfers])
    is_small = (copied_ns > 0) & (copied_ns <= VALUE_NS)
    readers = host.matching(READ_OPS, OP) | (is_small & ~host.inside(transfers, transfers))
    copying = (copied_ns > VALUE_NS) & ~readers
    waits = facts.waits & ~host.matching(BLOCKING_COPIES, RUNTIME)
    return readers | (waits & ~host.inside(waits, copying | readers))


@Rule(
    "dataloader",
    "Waiting for input",
    "the data loader (PyTorch's, or what programs call next_batch, get_batch, data_loading: operators, "
    "annotations, Python functions) takes more than {share} of the time looked at, in which devices, if "
    "there are any, wait",
    TENSORBOARD,
    {"share": 0.05},
    helps="More workers (num_workers), prefetching, pinned memory, cheaper transforms.",
    explains=(*effects_of("dataloader"), "rank-imbalance"),
    held_up=True,
    meanwhile=("loader",),
)
def dataloader(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    loads = host.matching(LOADER)
    if not loads.any():
        return None
    claim = host.union(loads)
    if facts.has_devices:
        claim = claim.intersection(facts.held_up)
    part = share(claim.length, facts.span_ns)
    if part <= limits["share"]:
        return None
    who = facts.device_title if facts.has_devices else "The program"
    doing = facts.doing_at_longest(claim)
    lasting = f"{about_ns(claim.length)}, {format_share(part)} of the time"
    text = f"{who[0].upper()}{who[1:]} waits for the data loader for {lasting}"
    text += f"; longest in {doing}" if doing and not LOADER.search(doing) else ""
    short = f"{brief(doing) if doing else 'The data loader'} is waited for, {about_ns(claim.length)}"
    return Observation(text, (facts.longest_on_host("the longest", loads),), claim, short=short)


@Rule(
    "profiler",
    "The profiler itself",
    "the profiler's own work is in the trace (buffer requests, clock calibration); idle time "
    "under it is not blamed on anything else",
    f"{GUIDE}; CUPTI's overhead records",
    helps="Nothing to do: leave out these steps, or warm up before recording.",
    explains=effects_of("profiler"),
)
def profiler(facts: SourceFacts, limits: Limits) -> Outcome:
    if not facts.profiler.any():
        return None
    count = count_of(int(np.count_nonzero(facts.profiler)), "call")
    text = f"The profiler itself takes {about_ns(facts.profiling.length)} in {count}"
    evidence = (facts.longest_on_host("the longest", facts.profiler),)
    return Observation(text, evidence, facts.profiling, short=text)


@Rule(
    "widest",
    "Where the time goes",
    "the trace holds no device work, and no operator dominates its host; what takes {share} of all own time "
    "is named. The profiler's own spans and marks of steps are left out, and spans of asynchronous work "
    "(requests, loads, gestures) and Python's functions where there is anything else",
    OWN,
    {"share": 0.05},
    helps="The call tree shows what calls it, and a flame graph what is around it.",
    kind="headline",
)
def widest(facts: SourceFacts, limits: Limits) -> Outcome:
    if facts.work.dur.any() or facts.untrusted_periods:  # those of devices that are not here are lost
        return None
    if is_of_memory(facts.index):  # stacks last until the next one: that is nobody's time
        return None
    if isinstance(host_hotspot.outcome(facts), Observation) or only_call(facts) is not None:
        return None
    chunks = [
        (one.positions, one.names, one.lanes, one.categories, one.self_times) for one in facts.scope.chunks()
    ]
    if not chunks:
        return None
    positions, names, lanes, categories, own_ns = (np.concatenate(column) for column in zip(*chunks))
    names = op_names(facts.index, positions, names)
    counts = _of_program(facts, own_ns, positions, lanes, categories)
    own_ns = np.where(counts, own_ns, 0)
    whole = sum_of(own_ns)
    if not whole:
        return None
    counts &= ~np.isin(names, _marks(facts, names))
    index = facts.index
    counted = np.where(counts, own_ns, 0)
    codes, texts = _unnumbered(index, names)
    total = Groups(codes, len(texts)).sums(counted)
    if share(int(total.max()), whole) >= ALIKE:
        codes, numbers = dense(names)
        texts = index.strings(numbers)
        total = Groups(codes, len(texts)).sums(counted)
    widest_name = int(np.argmax(total))
    top = np.flatnonzero((codes == widest_name) & counts)
    ns = sum_of(own_ns[top])
    if share(ns, whole) < limits["share"]:
        return None
    longest, of_lanes = top[np.argmax(own_ns[top])], distinct(lanes[top])
    lane = facts.scope.trace.lanes[int(lanes[longest])]
    where = lane.title if len(of_lanes) == 1 else count_of(len(of_lanes), "lane")
    name = safe(texts[widest_name])
    name = name if name.strip() and len(name) <= LONG_NAME else short_name(name)
    part = format_share(share(ns, whole))
    slices = count_of(len(top), "slice")
    text = f"{name} takes most time of its own, {about_ns(ns)} in {slices} of {where}, {part} of all own time"
    short = f"{brief(name)}: {about_ns(ns)}, {part} of own time"
    producer = producer_of(index)
    if kind := _no_work(producer, texts[widest_name]):
        order = np.argsort(-total, kind="stable").tolist()
        second = next((at for at in order if total[at] and not _no_work(producer, texts[at])), None)
        if second is not None:
            working, ns = short_name(safe(texts[second])), int(total[second])
            part = format_share(share(ns, whole))
            text += f"; {kind} aside {working} with {about_ns(ns)}, {part}"
            short = f"{kind.capitalize()} aside {brief(working)}: {about_ns(ns)}, {part}"
    evidence = (facts.slice(f"the longest: {name}", int(positions[longest])),)
    starts = facts.scope.starts(facts.source, positions)
    ends = starts + index.duration(positions)
    recorded = merge(starts, ends).length
    if recorded < RECORDED * facts.span_ns:
        text += f"; all slices take {about_ns(recorded)} of {about_ns(facts.span_ns)}"
    claim = merge(starts[top], ends[top])
    return Observation(text, evidence, claim, short=short)


def _unnumbered(index: Index, names: AnyArray) -> tuple[I64, list[str]]:
    """Return the code of each slice's name, and what these are called: names that numbers alone tell apart
    ("Reduce_1_0", "MatMul-op19") are one, with # in place of the numbers.
    """
    codes, numbers = dense(names)
    raw = index.strings(numbers)
    if len(raw) > MAX_NUMBERED:
        return codes, raw
    forms = [NUMBER.sub("#", text) for text in raw]
    counts = Counter(forms)
    numbered: dict[str, int] = {}
    called = [form if counts[form] > 1 else text for form, text in zip(forms, raw)]
    of = np.array([numbered.setdefault(text, len(numbered)) for text in called], np.int64)
    return of[codes], list(numbered)


def _no_work(producer: Producer | None, name: str) -> str:
    """Return "waits" for slices that wait, as the file's producer or their name says, "tasks" for those that
    only hold what a thread does, "" for all others.
    """
    if producer is not None and re.search(producer.tasks, name):
        return "tasks"
    is_wait = WAITING.search(name) or (producer is not None and re.search(producer.waits, name))
    return "waits" if is_wait else ""


def _marks(facts: SourceFacts, names: AnyArray) -> AnyArray:
    """Return the numbers of the names of steps: their own time is what nothing recorded says more of."""
    index = facts.index
    marks = [number for number in distinct(names).tolist() if index.string(number).startswith(STEP)]
    steps = np.empty(0, np.int64) if facts.steps is None else facts.steps.positions
    return distinct(np.concatenate([np.array(marks, np.int64), index.column("slices.name")[steps]]))


def _of_program(
    facts: SourceFacts, own_ns: I64, positions: AnyArray, lanes: AnyArray, categories: AnyArray
) -> Bools:
    """Return which slices are work of the program: not the profiler's, not what was never ended, and not what
    only repeats others or may stand for waiting while there is anything else.
    """
    trace, index = facts.scope.trace, facts.index
    profilers = [lane.index for lane in trace.lanes if lane.role is LaneRole.PROFILER]
    counts: Bools = ~np.isin(lanes, profilers)
    counts &= ~np.isin(positions, trace.on_other_clock(facts.source))
    unclosed = index.column("flags.value") & SliceFlag.UNCLOSED > 0  # they last as long as their lane
    counts &= ~np.isin(positions, index.column("flags.position")[unclosed])
    python = np.array([name in GROUPS["python"] for name in index.categories], np.bool_)[categories]
    asynchronous = np.isin(lanes, [lane.index for lane in trace.lanes if lane.kind is LaneKind.ASYNC])
    derived = np.isin(lanes, [lane.index for lane in trace.lanes if lane.role is LaneRole.DERIVED])
    for aside in (derived, asynchronous, python):
        if own_ns[counts & ~aside].any():
            counts &= ~aside
    return counts


@Rule(
    "no-events",
    "No events",
    "nothing in the file has a time: it has no slices, instants or counters",
    OWN,
    helps="Profile again with the work inside what is profiled; let the profiler write its file to the end.",
    kind="headline",
)
def without_events(facts: SourceFacts, _limits: Limits) -> Outcome:
    if holds_events(facts.index):
        return None
    text = "nothing in the file has a time"
    others = [problem["message"] for problem in facts.index.problems if problem["kind"] == NOT_READ]
    if others:
        text = f"all that the file holds is of kinds that are not read: {'; '.join(others)}"
    return Observation(text, (), short="The file holds no events that are read" if others else text)


@Rule(
    "no-durations",
    "Instants alone",
    "the file holds instants, those of allocators aside, and no slices: it says when, nowhere for how long",
    OWN,
    helps="Record slices (begins and ends, complete events), too: only they say what takes time.",
    kind="headline",
)
def without_durations(facts: SourceFacts, _limits: Limits) -> Outcome:
    index = facts.index
    if index.length("slices.start"):
        return None
    rows, times = _instants(facts)
    if not len(rows):
        return None
    numbers, counts = np.unique(index.column("instants.name")[rows], return_counts=True)
    most = safe(index.string(int(numbers[np.argmax(counts)])))
    are_of_objects = np.isin(index.column("instants.phase")[rows], OBJECT_PHASES).all()
    what = ("record of an object", "records of objects") if are_of_objects else ("instant", "instants")
    count = count_of(len(rows), *what)
    text = f"the file holds {count} and no slices: it does not say how long anything takes"
    if len(numbers) > 1 and np.count_nonzero(counts == counts.max()) == 1:
        text += f"; most often {brief(most)}, {int(counts.max()):,} times"
    at = int(np.argmax(np.diff(times))) if len(times) > 1 else 0
    evidence = Evidence("the first", int(times[0]), int(times[0]))
    if len(times) > 1:
        before = brief(safe(index.string(int(index.column("instants.name")[rows[at]]))))
        pause = int(times[at + 1] - times[at])
        text += f"; the longest time between two is {about_ns(pause)}, after {before}"
        evidence = Evidence("the longest time between two", int(times[at]), int(times[at + 1]))
    return Observation(text, (evidence,), short=f"{count}, no slices: no durations are recorded")


def _instants(facts: SourceFacts) -> tuple[I64, I64]:
    """Return (rows, trace time) of the instants in the time that is looked at, in order of time; of these
    records of allocators aside.
    """
    index, scope = facts.index, facts.scope
    rows = np.arange(index.length("instants.start"))
    rows = rows[~np.isin(rows, memory_records(index))]
    lanes = lanes_of(index, rows, RowKind.INSTANTS)
    inside = scope.has_lanes(facts.source, lanes)
    rows, lanes = rows[inside], lanes[inside]
    times = index.column("instants.start")[rows].astype(np.int64) + scope.lane_offsets(facts.source)[lanes]
    order = np.argsort(times, kind="stable")
    rows, times = rows[order], times[order]
    low, high = facts.span
    within = (times >= low) & (times <= high)
    return rows[within], times[within]


def _working(facts: SourceFacts) -> Bools:
    """Return which of the host's slices are operators or calls that neither wait nor profile."""
    return facts.active & ~facts.waits


def _repeats(facts: SourceFacts) -> Bools:
    """Return which of the host's slices lie directly in one of the same name: they would count twice."""
    names = facts.index.column("slices.name")
    above = facts.index.column("slices.parent")[facts.host.positions]
    around = names[np.minimum(above, max(0, len(names) - 1))]
    repeats: Bools = (above != NONE) & (around == names[facts.host.positions])
    return repeats


def _children(facts: SourceFacts, name: int) -> Bools:
    """Return which of the host's slices are direct children of a name."""
    is_one: Bools = facts.host.name == name
    return facts.host.within(is_one) & ~is_one


def _dearest_child(host: HostSlices, children: Bools, whole: int) -> int | None:
    """Return the longest of the direct children of a name, of those that take most time by name; None where
    most of the `whole` ns is in what is no operator or call, as Python's functions.
    """
    total = host.totals(children)
    if 2 * sum_of(total) < whole:
        return None
    first_of_most = host.most(children, total[host.name])
    return host.longest(children & (host.name == host.name[first_of_most]))
