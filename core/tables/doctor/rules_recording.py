"""Rules about how the trace was recorded: steps, the profiler's own time, what it was not asked for."""

from __future__ import annotations

import numpy as np

from ...base.arrays import distinct, merge
from ...base.kineto import RUNTIME
from ...base.units import count_of, format_count, format_ns, format_share
from ...trace.owners import sentence_of
from ...trace.step_choice import find_steps
from ..device.untrusted import damage
from ..host.host_columns import PROFILER
from ..rule_threshold import OWN, Limits
from .rule import AIUPTI, FIRST, KINETO, PYTORCH, Diagnosis, DoctorRule, Exhibit, Recording

OVERHEAD = "overhead"
ROUNDED_NS = 1000
"""Times that are written in whole µs may end so much after the next begins."""
FLUSHES = ("Buffer Flush", "Activity Buffer Request")


@DoctorRule(
    "steps-overlap",
    "warning",
    "steps of one process overlap",
    OWN,
    distorts="tables by step: what is in both counts for the later one",
)
def steps_overlap(recording: Recording, limits: Limits) -> Diagnosis | None:
    steps = find_steps(recording.scope.trace, recording.source, recording.scope.clocks)
    if steps is None:
        return None
    later: list[int] = []
    for process in distinct(steps.processes).tolist():
        own = np.flatnonzero(steps.processes == process)
        own = own[np.argsort(steps.starts[own], kind="stable")]
        reach = np.maximum.accumulate(steps.ends[own])
        later += own[1:][steps.starts[own[1:]] + ROUNDED_NS < reach[:-1]].tolist()
    begin = "begins" if len(later) == 1 else "begin"
    of_steps = count_of(len(steps), "step")
    text = f"{format_count(len(later))} of {of_steps} {begin} before the previous one ends"
    evidence = (
        Exhibit(f"step {steps.labels[at]}", int(steps.starts[at]), int(steps.ends[at]))
        for at in later[:FIRST]
    )
    return Diagnosis(len(later), text, tuple(evidence))


@DoctorRule(
    "profiler-overhead",
    "warning",
    "the profiler itself takes {share} of the trace or more",
    PYTORCH,
    {"share": 0.05},
    distorts="times of the host, and idle time of the device while the profiler works",
)
def profiler_overhead(recording: Recording, limits: Limits) -> Diagnosis | None:
    own = recording.of_categories({OVERHEAD})
    own = own[[PROFILER.search(recording.name(at)) is not None for at in own.tolist()]]
    start, end = recording.scope.recorded_span
    if not len(own) or end <= start:
        return None
    starts, ends = recording.starts(own), recording.ends(own)
    busy = merge(starts, ends).clipped(start, end).length
    if busy < limits["share"] * (end - start):
        return None
    longest = int(own[np.argmax(ends - starts)])
    text = f"the profiler takes {format_ns(busy)}, {format_share(busy / (end - start))} of the trace"
    return Diagnosis(len(own), text, (recording.exhibit(recording.name(longest), longest),))


@DoctorRule(
    "buffer-flushes",
    "note",
    "the profiler asked for buffers, or wrote them out, while it recorded",
    KINETO,
    distorts="calls in which this happens: they take longer than they would",
)
def buffer_flushes(recording: Recording, limits: Limits) -> Diagnosis | None:
    index = recording.index
    numbers = [number for text in FLUSHES for number in index.string_numbers(text)]
    flushes = np.flatnonzero(np.isin(index.column("slices.name"), numbers))
    if not len(flushes):
        return None
    total = merge(recording.starts(flushes), recording.ends(flushes)).length
    what = count_of(len(flushes), "request or flush of a buffer", "requests and flushes of buffers")
    text = f"{what}, {format_ns(total)} in total"
    evidence = tuple(recording.exhibit(recording.name(at), at) for at in flushes[:FIRST].tolist())
    return Diagnosis(len(flushes), text, evidence)


@DoctorRule(
    "buffers-exceeded",
    "error",
    "the profiler says that it ran out of buffers",
    AIUPTI,
    distorts="device events: those after that moment are missing",
)
def buffers_exceeded(recording: Recording, limits: Limits) -> Diagnosis | None:
    lines = [line for line in _messages(recording) if _is_about_buffers(line)]
    return Diagnosis(len(lines), "the profiler ran out of buffers", _quoted(lines))


@DoctorRule(
    "profiler-errors",
    "note",
    "the profiler wrote errors into the trace",
    KINETO,
    distorts="what the message says",
)
def profiler_errors(recording: Recording, limits: Limits) -> Diagnosis | None:
    lines = [line for line in _messages(recording, ("ERROR",)) if not _is_about_buffers(line)]
    return Diagnosis(
        len(lines), count_of(len(lines), "error of the profiler", "errors of the profiler"), _quoted(lines)
    )


@DoctorRule(
    "device-unused",
    "note",
    "the file lists devices of the machine, and has neither device work nor a call into their runtime",
    PYTORCH,
    distorts="tables about devices: they are empty",
)
def device_unused(recording: Recording, limits: Limits) -> Diagnosis | None:
    properties = recording.index.device_properties
    if not properties or len(recording.work) or len(recording.of_categories(RUNTIME)):
        return None
    if damage(recording.index):  # it stood in what is missing of the file, perhaps
        return None
    names = ", ".join(dict.fromkeys(str(one.get("name") or "a device") for one in properties))
    text = (
        f"of {names[:80]} nothing is recorded: all ran on the CPU, or the profiler was not asked for the "
        "device (ProfilerActivity.CUDA)"
    )
    return Diagnosis(len(properties), text)


@DoctorRule(
    "graphs-without-owners",
    "warning",
    "replays of graphs fit none of the captures beside the trace",
    "the names and the order of kernels",
    distorts="tables by op and module: the kernels of these replays have neither",
)
def graphs_without_owners(recording: Recording, limits: Limits) -> Diagnosis | None:
    owners = recording.scope.trace.owners(recording.source)
    unjoined = owners.unjoined
    if not unjoined:
        return Diagnosis(len(owners.problems), "; ".join(owners.problems), severity="note")
    text = "; ".join(map(sentence_of, unjoined))
    kernels = recording.slices("first kernel", owners.kernels[owners.is_unjoined])
    return Diagnosis(sum(one.replays for one in unjoined), "; ".join((text, *owners.problems)), kernels)


@DoctorRule(
    "no-shapes",
    "note",
    "no op has input shapes",
    PYTORCH,
    distorts="tables by shape: they are empty (record_shapes=True records shapes)",
)
def no_shapes(recording: Recording, limits: Limits) -> Diagnosis | None:
    if not recording.is_pytorch or len(recording.index.column("promoted.input_dims.position")):
        return None
    return Diagnosis(1, "input shapes were not recorded")


@DoctorRule(
    "no-stacks",
    "note",
    "there are no Python frames",
    PYTORCH,
    distorts="source lines of ops: they are not known (with_stack=True records them)",
)
def no_stacks(recording: Recording, limits: Limits) -> Diagnosis | None:
    if not recording.is_pytorch or len(recording.of_categories({"python_function"})):
        return None
    if recording.index.envelope.get("with_stack") == 1:
        return None
    return Diagnosis(1, "Python stacks were not recorded")


@DoctorRule(
    "no-memory",
    "note",
    "there are no allocations",
    PYTORCH,
    distorts="tables of memory: they are empty (profile_memory=True records allocations)",
)
def no_memory(recording: Recording, limits: Limits) -> Diagnosis | None:
    index = recording.index
    marks = index.string_numbers("[memory]")
    if not recording.is_pytorch or (marks and np.isin(index.column("instants.name"), marks).any()):
        return None
    return Diagnosis(1, "allocations were not recorded")


def _messages(recording: Recording, kinds: tuple[str, ...] = ("ERROR", "WARNING", "INFO")) -> list[str]:
    lines = [recording.index.envelope.get(kind) for kind in kinds]
    return [str(line) for group in lines if isinstance(group, list) for line in group]


def _is_about_buffers(line: str) -> bool:
    text = line.lower()
    return "buffer" in text and ("exceeded" in text or "terminating tracing" in text or "dropped" in text)


def _quoted(lines: list[str]) -> tuple[Exhibit, ...]:
    return tuple(Exhibit(line) for line in lines[:FIRST])
