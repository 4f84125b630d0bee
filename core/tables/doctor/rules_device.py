"""Rules about the work of devices: overlaps, order, launches, clocks, what is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from ...base.arrays import I64
from ...base.kineto import ANNOTATIONS, GROUPS, OPS, RUNTIME
from ...base.units import count_of, format_count, format_ns, format_share
from ...index.flex import is_flex
from ...index.format import NONE
from ...trace.cycle_stamps import flex_stamps
from ..device.untrusted import COLLAPSED_SHARE, COLLAPSED_TIMES, FEW_CALLS, FEW_SHARE, Trouble
from ..frame.frame import Frame
from ..rule_threshold import OWN, Limits
from .rule import (
    AIUPTI,
    ANALYZER,
    FIRST,
    KINETO,
    SPYRE,
    SPYRE_COPIES,
    SPYRE_OVERLAP,
    TRACELENS,
    Diagnosis,
    DoctorRule,
    Exhibit,
    Recording,
)

BY_CLOCKS = "delays, idle times, and which step device work belongs to: the device's clock is not the host's"
BEGIN = ("kernel begins", "kernels begin")
WAIT = re.compile(r"(?i)(^|[_\W])(wait|notify|event)([_\W]|$)|stream_?wait")
"""Names of work that waits for a peer or an event, or tells of one."""
DMA = re.compile(r"\bDma[IO]\b")
"""In names of FLEX: what is moved to a device or from it, piece by piece."""
BLANK = re.compile(r"\A\s*+(?:unknown)?\s*+\Z")
PERIODS: Mapping[Trouble, str] = {
    "lost": "work missing",
    "zero": "work without timestamps",
    "truncated": "nothing recorded",
}
"""What lacks in a period."""


@DoctorRule(
    "before-launch",
    "error",
    "device work begins before the call that launched it",
    OWN,
    distorts=BY_CLOCKS,
)
def before_launch(recording: Recording, limits: Limits) -> Diagnosis | None:
    early = [clock for clock in recording.clocks if clock.early > clock.stampless]
    evidence = [
        recording.exhibit(f"{label}: {recording.name(at)}", at)
        for clock in early
        if clock.earliest is not None
        for label, at in zip(("before its launch", "its launch"), clock.earliest)
    ]
    count = sum(clock.early - clock.stampless for clock in early)
    text = "; ".join(f"{clock.trouble} ({clock.proposal})" for clock in early)
    return Diagnosis(count, text, tuple(evidence))


@DoctorRule(
    "zero-times",
    "error",
    "device work has the timestamp 0 and its launches have not",
    SPYRE,
    distorts="all times of this work",
)
def zero_times(recording: Recording, limits: Limits) -> Diagnosis | None:
    """Times of device work were clamped to 0 when the trace was written."""
    untimed = recording.lost.untimed
    count = int(np.count_nonzero(recording.index.column("slices.start")[untimed] == 0))
    what = count_of(count, "kernel or copy has", "kernels and copies have")
    text = f"{what} the timestamp 0: when they ran is not known"
    return Diagnosis(count, text, _periods(recording, "zero"))


@DoctorRule(
    "collapsed",
    "error",
    f"work lasts {COLLAPSED_TIMES} times as long as others of its name, and "
    f"{format_share(COLLAPSED_SHARE)} of what is launched meanwhile is lost",
    TRACELENS,
    distorts="busy time and every sum over this work: when it ended is not known",
)
def collapsed(recording: Recording, limits: Limits) -> Diagnosis | None:
    """The last piece of work that was recorded lasts until the profiler ends."""
    positions, starts, ends = recording.lost.work
    rows = recording.lost.collapsed.tolist()
    longest = format_ns(max((int(ends[at] - starts[at]) for at in rows), default=0))
    what = count_of(len(rows), "kernel or copy lasts", "kernels and copies last")
    text = f"{what} up to {longest}, while nearly all launches have no device work"
    return Diagnosis(len(rows), text, recording.slices("lasts too long", positions[rows].tolist()))


@DoctorRule(
    "clock-offset",
    "error",
    "all work of a device is before the host's events, or {least_ns} after them, and both last shorter",
    OWN,
    {"least_ns": 10**8},
    distorts=BY_CLOCKS,
)
def clock_offset(recording: Recording, limits: Limits) -> Diagnosis | None:
    distant = [
        clock
        for clock in recording.clocks
        if not clock.early and (clock.apart_ns < 0 or clock.apart_ns >= limits["least_ns"])
    ]
    text = "; ".join(f"{clock.trouble} ({clock.proposal})" for clock in distant)
    return Diagnosis(
        len(distant), text, tuple(Exhibit("the device's work", *clock.extent) for clock in distant)
    )


@DoctorRule(
    "ends-late",
    "error",
    "device work ends more than {least_ns} after everything on the host",
    SPYRE,
    {"least_ns": 10**9},
    distorts="busy time, the length of the trace and every share of it",
)
def ends_late(recording: Recording, limits: Limits) -> Diagnosis | None:
    calls = recording.of_categories(OPS | ANNOTATIONS | RUNTIME | GROUPS["python"])
    if not len(calls) or any(clock.trouble for clock in recording.clocks):
        return None
    last = int(recording.ends(calls).max())
    work = recording.timed_work
    late = work.position[work.end > last + limits["least_ns"]].tolist()
    if not late:
        return None
    furthest = int(recording.ends(np.array(late)).max()) - last
    what = count_of(len(late), "kernel or copy ends", "kernels and copies end up to")
    text = f"{what} {format_ns(furthest)} after the host's last event"
    return Diagnosis(len(late), text, recording.slices("ends late", late))


@DoctorRule(
    "kernel-overlap",
    "warning",
    "kernels of one stream overlap by more than {least_ns} (an error on an AIU); not from CUDA 12 or "
    "capability 9.0 on, where the next one may begin early (programmatic dependent launch)",
    SPYRE_OVERLAP,
    {"least_ns": 1_000},
    distorts="kernel times and sums over them: a stream runs one kernel at a time",
)
def kernel_overlap(recording: Recording, limits: Limits) -> Diagnosis | None:
    pairs: list[tuple[int, int]] = []
    for kernels in recording.kernels.by("stream") if not recording.may_overlap else ():
        if is_flex(recording.index):  # pieces of one transfer are sent beside each other
            kernels = kernels[~kernels.named(DMA)]
        pairs += _overlaps(kernels, kernels, limits["least_ns"])
    text = f"{count_of(len(pairs), *BEGIN)} before the previous one on the stream has ended"
    return Diagnosis(len(pairs), text, _pairs(recording, pairs), "error" if recording.is_aiu else None)


@DoctorRule(
    "host-stamped-copies",
    "warning",
    "copies of an AIU overlap kernels of its stream by more than {least_ns}",
    SPYRE_COPIES,
    {"least_ns": 1_000},
    distorts="overlap of copies and compute, and busy time: such copies carry the host's stamps",
)
def host_stamped_copies(recording: Recording, limits: Limits) -> Diagnosis | None:
    """Copies lie in kernels, which an AIU does not do."""
    pairs: list[tuple[int, int]] = []
    for stream in recording.timed_work.by("stream") if recording.is_aiu else ():
        is_copy = stream.is_type("memory")
        pairs += _overlaps(stream[~is_copy], stream[is_copy], limits["least_ns"])
    return Diagnosis(
        len(pairs),
        count_of(len(pairs), "copy overlaps a kernel", "copies overlap kernels"),
        _pairs(recording, pairs),
    )


@DoctorRule(
    "duplicate-starts",
    "warning",
    "kernels of one stream begin in the same ns (an error on an AIU)",
    SPYRE,
    distorts="kernel times, their order, and gaps",
)
def duplicate_starts(recording: Recording, limits: Limits) -> Diagnosis | None:
    kernels = recording.kernels[recording.kernels.dur > 0]
    at = np.flatnonzero((np.diff(kernels.start) == 0) & (np.diff(kernels.stream) == 0))
    pairs = _neighbours(kernels, at)
    text = f"{count_of(len(pairs), *BEGIN)} in the same ns as the previous one on the stream"
    return Diagnosis(len(pairs), text, _pairs(recording, pairs), "error" if recording.is_aiu else None)


@DoctorRule(
    "cycle-stamps",
    "warning",
    "slices of a FLEX job last another time than their own cycle stamps say, by more than {share} and "
    "{least_ns}",
    ANALYZER,
    {"share": 0.05, "least_ns": 1_000},
    distorts="kernel times, idle times and their order: the host's stamps are not the device's",
)
def cycle_stamps(recording: Recording, limits: Limits) -> Diagnosis | None:
    """The host stamped a slice otherwise than the device counted its cycles."""
    stamps = flex_stamps(recording.index)
    mhz = None if stamps is None else stamps.mhz
    if stamps is None or mhz is None:
        return None
    stated = stamps.stated_ns(mhz)
    off = np.abs(stamps.durations - stated)
    rows = np.flatnonzero((off > limits["least_ns"]) & (off > limits["share"] * stated))
    furthest = format_ns(int(off[rows].max(initial=0)))
    verb = "disagrees with its cycle stamps" if len(rows) == 1 else "disagree with their cycle stamps"
    text = f"{format_count(len(rows))} of {count_of(len(stamps.positions), 'slice')} {verb} at {mhz:,.0f} MHz"
    slices = recording.slices("not as its stamps say", stamps.positions[rows].tolist())
    return Diagnosis(len(rows), f"{text}, by up to {furthest}", slices)


@DoctorRule(
    "zero-durations",
    "warning",
    "more than {share} of the kernels, waits aside, take no time; a note where the file has whole µs, and at "
    "least as many kernels take one",
    SPYRE,
    {"share": 0.01},
    distorts="kernel times, averages and shares",
)
def zero_durations(recording: Recording, limits: Limits) -> Diagnosis | None:
    kernels = recording.kernels[~recording.kernels.named(WAIT)]  # what it waits for may be there already
    total = len(kernels)
    positions = kernels.position[kernels.dur == 0].tolist()
    if len(positions) <= limits["share"] * total:
        return None
    takes = "takes" if len(positions) == 1 else "take"
    text = f"{format_count(len(positions))} of {count_of(total, 'kernel')} {takes} no time"
    is_rounded = not (kernels.dur % 1000).any() and np.count_nonzero(kernels.dur == 1000) >= len(positions)
    return Diagnosis(
        len(positions), text, recording.slices("takes no time", positions), "note" if is_rounded else None
    )


@DoctorRule(
    "out-of-order",
    "warning",
    "kernels of one stream begin in another order than they were launched in, by more than {least_ns}",
    SPYRE,
    {"least_ns": 1_000},
    distorts="delays, queues and the step that work belongs to",
)
def out_of_order(recording: Recording, limits: Limits) -> Diagnosis | None:
    """A stream works in the order of its launches, but its times say otherwise."""
    pairs: list[tuple[int, int]] = []
    for kernels in recording.kernels[recording.kernels.launch >= 0].by("stream"):
        latest = np.maximum.accumulate(kernels.call_start)
        late = np.flatnonzero(latest[:-1] - kernels.call_start[1:] > limits["least_ns"])
        pairs += _neighbours(kernels, late)
    text = f"{count_of(len(pairs), *BEGIN)} after others of the stream that were launched later"
    return Diagnosis(len(pairs), text, _pairs(recording, pairs))


@DoctorRule(
    "ambiguous-launches",
    "warning",
    "work has several launches that are as likely, or a launch that begins after it",
    KINETO,
    distorts="launch delays, chains, and which step or op device work belongs to",
)
def ambiguous_launches(recording: Recording, limits: Limits) -> Diagnosis | None:
    """Correlation ids repeat so that they do not tell which call launched what."""
    launches = recording.scope.trace.launches(recording.source)
    positions = launches.kernels[launches.ambiguous]
    calls = launches.launch[launches.ambiguous]
    known = calls != NONE
    behind = np.zeros(len(positions), np.bool_)
    behind[known] = recording.starts(calls[known]) > recording.starts(positions[known])
    positions = positions[~behind]  # those are for before-launch
    text = f"the launch of {count_of(len(positions), 'kernel or copy', 'kernels and copies')} is ambiguous"
    return Diagnosis(len(positions), text, recording.slices("launched by one of several", positions.tolist()))


@DoctorRule(
    "lost-kernels",
    "warning",
    "more than {calls} calls in a row that start work, or more than {calls} and {share} of all or of those "
    "of a name, have no device work; an error where no call has any, a note where fewer have none, or where "
    "the same fills of memory, and nothing else, lack theirs in every step",
    AIUPTI,
    {"calls": FEW_CALLS, "share": FEW_SHARE},
    distorts="kernel counts and device times: what these calls started is not in the trace",
)
def lost_kernels(recording: Recording, limits: Limits) -> Diagnosis | None:
    lost = recording.lost
    few = lost.are_few(int(limits["calls"]), limits["share"])
    count, of_launches = len(lost.lost), count_of(len(lost.calls), "launch", "launches")
    names = [
        f"{format_count(some)} of {format_count(every)} {name}"
        for name, (some, every) in lost.by_name.items()
    ]
    more = f", and {count_of(len(names) - FIRST, 'other')}" if len(names) > FIRST else ""
    has = "has" if count == 1 else "have"
    text = f"{format_count(count)} of {of_launches} {has} no device work: {', '.join(names[:FIRST])}{more}"
    if lost.steps_alike:
        text += f", the same in each of {lost.steps_alike} steps: the profiler does not record them"
    periods = () if few else _periods(recording, "lost", "truncated")
    evidence = periods or recording.slices("launch without work", lost.lost[:1].tolist())
    return Diagnosis(count, text, evidence, "note" if few else "error" if lost.are_all else None)


@DoctorRule(
    "device-stops-early",
    "error",
    "{calls} launches or more, in the last {share} of the span or more, have no device work",
    AIUPTI,
    {"calls": 10, "share": 0.1},
    distorts="everything after the device's last event: it looks idle and is not",
)
def device_stops_early(recording: Recording, limits: Limits) -> Diagnosis | None:
    """The profiler ran out of buffers: work goes on and is not recorded."""
    calls = recording.lost.calls
    known = np.flatnonzero(~calls.is_lost)
    if not len(known) or any(clock.trouble for clock in recording.clocks):
        return None
    start, end = recording.lost.span
    begun = recording.starts(calls.positions[known[-1] :])
    after = calls.positions[known[-1] + 1 :].tolist()
    if len(after) < limits["calls"] or begun[-1] - begun[0] < limits["share"] * (end - start):
        return None
    text = (
        f"the device's events stop {format_ns(end - int(begun[0]))} before the end, "
        f"while {count_of(len(after), 'more launch follows', 'more launches follow')}"
    )
    return Diagnosis(len(after), text, recording.slices("launch without work", after[:1]))


@DoctorRule(
    "blank-names",
    "warning",
    "device work has a blank name, or one that the profiler put in place of it",
    KINETO,
    distorts="tables by name: work of different kinds is in one row",
)
def blank_names(recording: Recording, limits: Limits) -> Diagnosis | None:
    blank = recording.work.position[recording.work.named(BLANK)].tolist()
    text = f"{count_of(len(blank), 'kernel or copy has', 'kernels and copies have')} no name"
    return Diagnosis(len(blank), text, recording.slices("without a name", blank))


def _overlaps(first: Frame, second: Frame, least: float) -> list[tuple[int, int]]:
    """Return (earlier, later) positions of work of two kinds that overlaps by more than `least` ns.

    Both are by start; each of `second` is held against the one of `first` that ends
    last of those that begin before it.
    """
    if not len(first) or not len(second):
        return []
    reach = np.maximum.accumulate(first.end)
    holder = np.maximum.accumulate(np.where(first.end == reach, np.arange(len(first)), 0))
    if first is second:
        before = np.arange(len(second)) - 1
    else:
        before = np.searchsorted(first.start, second.start, "right") - 1
    some = np.flatnonzero(before >= 0)
    until = np.minimum(reach[before[some]], second.end[some])
    # What begins in the same ns is for duplicate-starts.
    is_later = second.start[some] > first.start[holder[before[some]]] if first is second else True
    overlapping = some[(until - second.start[some] > least) & is_later]
    earlier = first.position[holder[before[overlapping]]]
    return list(zip(earlier.tolist(), second.position[overlapping].tolist()))


def _neighbours(work: Frame, at: I64) -> list[tuple[int, int]]:
    """Return (earlier, later) positions of some rows and those behind them."""
    return list(zip(work.position[at].tolist(), work.position[at + 1].tolist()))


def _pairs(recording: Recording, pairs: list[tuple[int, int]]) -> tuple[Exhibit, ...]:
    return tuple(
        recording.exhibit(f"{label}: {recording.name(at)}", at)
        for pair in pairs[:FIRST]
        for label, at in zip(("the earlier", "the later"), pair)
    )


def _periods(recording: Recording, *troubles: Trouble) -> tuple[Exhibit, ...]:
    """Return the time in which device work is missing, or has no times, for some of these reasons."""
    periods = [one for one in recording.untrusted if one.trouble in troubles]
    return tuple(Exhibit(PERIODS[one.trouble], one.start, one.end) for one in periods[:FIRST])
