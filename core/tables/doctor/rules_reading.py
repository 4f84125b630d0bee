"""Rules about what of the file could be read, and about times and pairs as they stand in it."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ...base.arrays import AnyArray
from ...base.kineto import GROUPS, OPS, RUNTIME
from ...base.units import TIME_LIMIT_TEXT, count_of, format_count
from ...index.format import LaneKind, RowKind, SliceFlag
from ...index.store import Index
from ...index.ts_unit import unit_doubt
from ...query.lookup import category_mask, slice_at
from ...query.views import Lane
from ...read.problem import DAMAGED, NOT_READ, OTHER_DATA, OTHER_TEXT, UNVERIFIED
from ...trace.devices import devices, lane_categories
from ..device.untrusted import MANY_OPEN, TROUBLES, capture_ends, damage, holds_events
from ..rule_threshold import OWN, Limits
from .rule import (
    FIRST,
    FORMAT,
    KINETO,
    PYTORCH,
    SPYRE,
    Diagnosis,
    DoctorRule,
    Exhibit,
    Recording,
    Severity,
    event_terms,
)

CALLS = OPS | RUNTIME
"""Categories of ops, and of calls into a device's runtime."""


def _counted(
    id: str, severity: Severity, test: str, origin: str, distorts: str, words: Sequence[str]
) -> DoctorRule:
    """Make the rule that the reader counted events of a kind, in words for one and for several; its id names
    the term of the read report, and the kind of problem where the reader says where it met the first ones.
    """

    def examine(recording: Recording, limits: Limits) -> Diagnosis | None:
        count = int(recording.index.read_report[id.replace("-", "_")])
        return Diagnosis(count, count_of(count, *words), _problems(recording, id))

    return DoctorRule(id, severity, test, origin, distorts=distorts)(examine)


UNREADABLE = _counted(
    "unreadable",
    "error",
    "events could not be read",
    FORMAT,
    "every count and sum: they lack what could not be read",
    ("event could not be read", "events could not be read"),
)


@DoctorRule(
    "truncated",
    "error",
    "the file ends in the middle",
    FORMAT,
    distorts="what was recorded last: steps, ends of long slices, names of lanes are missing",
)
def truncated(recording: Recording, limits: Limits) -> Diagnosis | None:
    kinds = [kind for kind in damage(recording.index) if kind != DAMAGED]
    evidence = tuple(exhibit for kind in kinds for exhibit in _problems(recording, kind))
    return Diagnosis(len(evidence), "the file is cut off or damaged", evidence)


@DoctorRule(
    "damaged",
    "error",
    "the compressed data is damaged: its end is missing, or its checksum is another",
    FORMAT,
    distorts="everything from the damage on: copy the file again",
)
def damaged(recording: Recording, limits: Limits) -> Diagnosis | None:
    evidence = tuple(exhibit for kind in (DAMAGED, UNVERIFIED) for exhibit in _problems(recording, kind))
    return Diagnosis(len(evidence), "the compressed data is damaged: copy the file again", evidence)


@DoctorRule(
    "no-events",
    "error",
    "nothing in the file has a time: there are no events, or metadata alone",
    FORMAT,
    distorts="everything: all tables are empty",
)
def no_events(recording: Recording, limits: Limits) -> Diagnosis | None:
    metadata = int(recording.index.read_report["metadata"])
    text = f"there are no events but {count_of(metadata, 'name or label', 'names and labels')} of lanes"
    return Diagnosis(0 if holds_events(recording.index) else 1, text if metadata else "there are no events")


@DoctorRule(
    "other-text",
    "note",
    "there is text or data that is no event before, between or behind the documents",
    FORMAT,
    distorts="nothing: all events around it are read",
)
def other_text(recording: Recording, limits: Limits) -> Diagnosis | None:
    evidence = tuple(one for kind in (OTHER_TEXT, OTHER_DATA) for one in _problems(recording, kind))
    return Diagnosis(len(evidence), "there is text that is no event", evidence)


@DoctorRule(
    "not-read",
    "note",
    "a file of packets holds kinds that are not read (ftrace_events, say)",
    "Perfetto, TracePacket",
    distorts="nothing of what is read: scheduling, logs and samples of the system are not shown",
)
def not_read(recording: Recording, limits: Limits) -> Diagnosis | None:
    evidence = tuple(_problems(recording, NOT_READ))
    count = sum(problem["count"] for problem in recording.index.problems if problem["kind"] == NOT_READ)
    return Diagnosis(count, f"{count_of(count, 'packet')} of kinds that are not read", evidence)


@DoctorRule(
    "open-ended",
    TROUBLES["open-ended"].severity,
    f"all slices of one name in a lane, more than {MANY_OPEN} with different starts, last until the same ns, "
    "in which the lane ends, and are most of those that do",
    PYTORCH,
    distorts="durations and nesting of these slices, and self times around them: their ends are not known",
)
def open_ended(recording: Recording, limits: Limits) -> Diagnosis | None:
    """Calls were begun whose ends the profiler did not see: it ended all of them when it stopped."""
    periods = [one for one in recording.untrusted if one.trouble == "open-ended"]
    count, ends = sum(one.count for one in periods), {one.end for one in periods}
    first = [one.position for one in periods if one.position is not None]
    are_frames = bool(np.isin(np.array(first), recording.of_categories(GROUPS["python"])).all())
    what = count_of(count, *(("Python frame", "Python frames") if are_frames else ("slice", "slices")))
    is_last = ends == {max(recording.scope.trace.span[1], *ends, 0)}
    where = "the end of the recording" if is_last else "the end of their lane"
    text = f"{what} end in the same ns, {where}: their ends are not known"
    return Diagnosis(count, text, recording.slices("never ended", first))


REPAIRED = _counted(
    "repaired",
    "warning",
    "events were read after a repair of their text",
    KINETO,
    "names and arguments of these events: they may not be what was meant",
    ("event had to be repaired", "events had to be repaired"),
)


NOT_OBJECTS = _counted(
    "not-objects",
    "error",
    "elements of the event array are no objects",
    FORMAT,
    "every count and sum: they lack such elements",
    ("element of the event list is no event", "elements of the event list are no events"),
)


WITHOUT_TIME = _counted(
    "without-time",
    "error",
    "events have no usable time",
    FORMAT,
    "every count and sum: they cannot be placed and are not shown",
    ("event without a usable time", "events without a usable time"),
)


EMPTY_COUNTERS = _counted(
    "empty-counters",
    "note",
    "counter events have no value that is a number",
    FORMAT,
    "these counters: such events are not drawn",
    ("counter event without a number", "counter events without a number"),
)


@DoctorRule(
    "event-sum",
    "error",
    "the terms of the event sum do not add up to all events",
    OWN,
    distorts="every count and sum: some events were counted twice or not at all",
)
def event_sum(recording: Recording, limits: Limits) -> Diagnosis | None:
    total, counted = int(recording.index.read_report["events"]), sum(event_terms(recording.index).values())
    text = f"{format_count(counted)} of {format_count(total)} events are accounted for"
    return Diagnosis(abs(total - counted), text)


@DoctorRule(
    "broken-envelope",
    "warning",
    "values beside the events are no valid JSON",
    KINETO,
    distorts="the time base, device properties and settings of the profiler: they may be missing",
)
def broken_envelope(recording: Recording, limits: Limits) -> Diagnosis | None:
    evidence = _problems(recording, "broken envelope")
    return Diagnosis(len(evidence), "values beside the events cannot be read", evidence)


@DoctorRule(
    "merged",
    "warning",
    "several documents or captures are in one file",
    KINETO,
    distorts="counts, steps and busy times are those of all captures together",
)
def merged_captures(recording: Recording, limits: Limits) -> Diagnosis | None:
    """Captures were joined into one file: each ends with a mark of its own, and has one process."""
    if (ends := len(capture_ends(recording.index))) > 1:
        return Diagnosis(ends, f"{ends} captures are in one file")
    index, lanes = recording.index, recording.scope.trace.lanes
    accelerators = {one.process for one in devices(recording.scope.trace) if one.source == recording.source}
    processes = {
        lane.pid
        for lane in lanes
        if lane.source == recording.source
        and lane.process.number not in accelerators  # some profilers put queues of calls there
        and any(category in CALLS for category in lane_categories(index, lane.rows))
    }
    if len(processes) > 1:
        return Diagnosis(len(processes), f"ops and calls of {len(processes)} processes are in one file")
    if index.manifest.get("form") == "concatenated":
        return Diagnosis(1, "several JSON documents are in one file")
    return None


OVERSIZED = _counted(
    "oversized",
    "note",
    "events were too large to keep their arguments",
    OWN,
    "arguments of these events: they cannot be shown or searched for",
    ("event read without arguments", "events read without arguments"),
)


NEGATIVE_DURATIONS = _counted(
    "negative-durations",
    "warning",
    "durations are negative",
    SPYRE,
    "durations of these slices: they count as 0",
    ("event with a negative duration", "events with a negative duration"),
)


MISSING_DURATIONS = _counted(
    "missing-durations",
    "warning",
    "complete events have no duration",
    FORMAT,
    "durations of these events: they count as 0; where one is no number, the event is an instant",
    ("event without a duration", "events without a duration"),
)


@DoctorRule(
    "clamped-times",
    "error",
    f"times are beyond {TIME_LIMIT_TEXT}",
    OWN,
    distorts="times of these events: they are drawn at the limit",
)
def clamped_times(recording: Recording, limits: Limits) -> Diagnosis | None:
    evidence = _problems(recording, "clamped time")
    count = sum(problem["count"] for problem in recording.index.problems if problem["kind"] == "clamped time")
    return Diagnosis(count, f"{count_of(count, 'event')} with a time too large to keep", evidence)


@DoctorRule(
    "ts-unit",
    "note",
    "as µs, `ts` is more than 10 years in the future (by the file's base time, or since 1970), as ns or "
    "ticks of 100 ns (since 1970, 1601 or year 1) not; or a key of the file says that its times count "
    "something else",
    FORMAT,
    distorts="every time and duration: they are as many times too long or too short",
)
def ts_unit(recording: Recording, limits: Limits) -> Diagnosis | None:
    doubt = unit_doubt(recording.index, time.time_ns())
    return Diagnosis(1, doubt) if doubt else None


@DoctorRule(
    "other-clock",
    "warning",
    "work ends before its launch and before anything on the host, only some times count from 1970, "
    "an event has the time 0 and all else comes ten minutes later, or counters, instants and asynchronous "
    "spans are more than a day away from all that threads and devices do",
    SPYRE,
    distorts="the whole span: shares of it, idle times and gaps",
)
def other_clock(recording: Recording, limits: Limits) -> Diagnosis | None:
    others = recording.scope.trace.on_other_clock(recording.source)
    others = others[~np.isin(others, recording.lost.untimed)]
    marks = recording.scope.trace.marks_on_other_clock(recording.source)
    count = len(others) + marks
    if not count:
        return None
    text = f"{count_of(count, 'event is', 'events are')} on another clock than all others"
    text += f", {count_of(marks, 'sample or instant', 'samples and instants')} among them" if marks else ""
    return Diagnosis(count, text, recording.slices("on another clock", others[:FIRST]))


@DoctorRule(
    "unmatched",
    "warning",
    "begins have no end, or ends no begin",
    FORMAT,
    distorts="durations of begins without an end: they are drawn to the end of their lane",
)
def unmatched(recording: Recording, limits: Limits) -> Diagnosis | None:
    read_report = recording.index.read_report
    begins = int(read_report["unmatched_begin"]) + int(read_report.get("async_unmatched_begin", 0))
    ends = int(read_report["unmatched_end"]) + int(read_report.get("async_unmatched_end", 0))
    flagged = recording.index.column("flags.value") & SliceFlag.UNCLOSED > 0
    positions = recording.index.column("flags.position")[flagged][:FIRST]
    text = f"{count_of(begins, 'begin')} without an end, {count_of(ends, 'end')} without a begin"
    return Diagnosis(begins + ends, text, recording.slices("begin without an end", positions))


MISMATCHED_ENDS = _counted(
    "mismatched-ends",
    "warning",
    "an end has another name than the begin that it closes",
    FORMAT,
    "durations of these slices: pairs are made by nesting and may be swapped",
    (
        "end has another name than the begin that it closes",
        "ends have another name than the begin that it closes",
    ),
)


@DoctorRule(
    "outside-parent",
    "warning",
    "an op or call ends more than {least_ns} after the one of its thread in which it begins",
    SPYRE,
    {"least_ns": 1_000},
    distorts="nesting, self times and the op that a call belongs to",
)
def outside_parent(recording: Recording, limits: Limits) -> Diagnosis | None:
    """Ops and calls of a thread overlap without nesting: one of them is stamped wrongly.

    Annotations and Python functions need not nest: one may begin inside the other and end after it.
    """
    index = recording.index
    flagged = index.column("flags.value") & SliceFlag.OVERLAP > 0
    positions = index.column("flags.position")[flagged]
    positions = positions[_is_call(index, positions)]
    device = {lane for one in recording.work.devices for lane in one.device.lanes}
    host = [
        lane
        for lane in recording.scope.trace.lanes
        if lane.source == recording.source and lane.kind is LaneKind.THREAD and lane.index not in device
    ]
    out = [
        position
        for lane in host
        for position in _within(index, lane, positions)
        if _reach_ns(index, lane, position) > limits["least_ns"]
    ]
    if not out:
        return None
    what = count_of(len(out), "op or call ends", "ops and calls end")
    text = f"{what} after the op or call in which {'it begins' if len(out) == 1 else 'they begin'}"
    return Diagnosis(len(out), text, recording.slices("ends too late", np.array(out[:FIRST])))


MEASURED = 2_000
"""The most overlapping slices that are measured; where there are more, the first ones show the trouble."""


def _within(index: Index, lane: Lane, positions: AnyArray) -> list[int]:
    """Return those of the positions, ascending, that are slices of a lane."""
    inside: list[int] = []
    for number in lane.rows:
        row = index.rows[number]
        if row["kind"] == RowKind.SLICES:
            first = int(row["first"])
            low, high = np.searchsorted(positions, [first, first + int(row["count"])])
            inside += positions[low:high].tolist()
    return inside[:MEASURED]


def _reach_ns(index: Index, lane: Lane, position: int) -> int:
    """Return how far from nesting a slice and one that is open when it begins are, in ns: the shorter of the
    time that they share and the time that the slice runs on alone.
    """
    start, end = index.start(position), index.end(position)
    reach = 0
    for number in lane.rows:
        at = slice_at(index, number, start) if index.rows[number]["kind"] == RowKind.SLICES else None
        if at is None or (other := int(index.rows[number]["first"]) + at) == position:
            continue
        if _is_call(index, np.array([other]))[0]:
            until = index.end(other)
            if index.start(other) < start and until < end:
                reach = max(reach, min(until - start, end - until))
    return reach


def _is_call(index: Index, positions: AnyArray) -> AnyArray:
    """Tell which slices are ops, or calls into a device's runtime."""
    mask: AnyArray = category_mask(index, CALLS)[index.column("slices.category")[positions]]
    return mask


def _problems(recording: Recording, kind: str) -> tuple[Exhibit, ...]:
    """Return where the reader first met a kind of problem, and what it was."""
    return tuple(
        Exhibit(str(problem["message"]), offset=problem["offset"])
        for problem in recording.index.problems
        if problem["kind"] == kind
    )
