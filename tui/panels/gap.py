"""The details of a gap: its length, its neighbours, what the CPU did, the launch that ended it."""

from __future__ import annotations

from tracelane.core.base.ids import SliceId
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.tables.frame_columns import KERNEL_WAIT_NS
from tracelane.core.tables.gap import Gap, gap_of
from tracelane.core.tables.gap_groups import recurrence
from tracelane.core.trace import Trace

from ..draw.things import Thing
from ..steps import step_marks
from ..times import TimeWriter
from .fields import Field, jump_to


def gap_title(thing: Thing) -> str:
    return f"gap of {format_ns(thing.end - thing.start)}"


def gap_fields(trace: Trace, stamps: TimeWriter, thing: Thing) -> list[Field]:
    """Return a gap's fields, those about the host only where there is one."""
    gap = gap_of(trace, thing.row, thing.index, stamps.clocks)
    if gap is None:
        return []
    return [
        Field("length", format_ns(gap.length, 9)),
        *([Field("class", _class_text(gap))] if gap.kind is not None else []),
        Field("ended by", _name(trace, gap.after), jump_to(gap.after)),
        *_launch_fields(gap),
        *_thread_fields(gap),
        Field("comes back", _recurrence_text(trace, stamps, thing)),
        Field("before it", _name(trace, gap.before), jump_to(gap.before)),
    ]


def _launch_fields(gap: Gap) -> list[Field]:
    launch = gap.launch
    if launch is None:
        return []
    after = launch.start - gap.start
    where = f"{format_ns(after)} into the gap" if after >= 0 else f"{format_ns(-after)} before the gap"
    return [Field("launched by", f"{safe(launch.short_name)}, {where}", jump_to(launch.id))]


def _class_text(gap: Gap) -> str:
    """Return the class of a gap in words, with the reason for it."""
    if gap.kind == "host_wait":
        return "host wait: the host was late"
    short = f"below {format_ns(KERNEL_WAIT_NS)}"
    queued = "no launch is known" if gap.launch is None else "it was queued in time"
    if gap.kind == "kernel_wait":
        return f"kernel wait: {queued}, {short}"
    return f"other: {queued}" + (", the device waited for something else" if gap.launch is not None else "")


def _recurrence_text(trace: Trace, stamps: TimeWriter, thing: Thing) -> str:
    """Return how often the gap is met between the same names."""
    steps = [(step.start, step.end) for step in step_marks(trace, stamps.clocks, stamps.steps)]
    again = recurrence(trace, thing.row, thing.index, steps, stamps.clocks)
    if again.count < 2:
        return "no: the only one between these two"
    times = f"{format_count(again.count)} times"
    if again.of:
        once_each = again.count == again.steps
        times = f"in {again.steps} of {again.of} steps" + ("" if once_each else f", {times}")
    return f"{times}, {format_ns(round(again.median_ns))} median"


def _thread_fields(gap: Gap) -> list[Field]:
    fields = []
    for doing in gap.threads:
        if doing.slice is None:
            fields.append(Field(doing.lane.title, "no single slice covers most of it"))
            continue
        share = f" · {doing.covered / gap.length:.0%} of it"
        fields.append(Field(doing.lane.title, safe(doing.label) + share, jump_to(doing.slice)))
    if gap.more_threads:
        fields.append(Field("more threads", f"{format_count(gap.more_threads)} are not listed"))
    return fields


def _name(trace: Trace, identity: SliceId) -> str:
    row = trace.find(identity)
    return "" if row is None else safe(trace.label(*row))
