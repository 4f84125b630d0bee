"""What the panel shows of a gap: its length, its neighbours, what the CPU did, the launch that ended it."""

from __future__ import annotations

from tracelane.core.analysis.gap import Gap, gap_of
from tracelane.core.base.ids import SliceId
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.trace import Trace

from ..clock import Stamps
from ..things import Thing
from .fields import Field


def gap_title(thing: Thing) -> str:
    """Return what a gap is called."""
    return f"gap of {format_ns(thing.end - thing.start)}"


def gap_fields(trace: Trace, stamps: Stamps, thing: Thing) -> list[Field]:
    """Return a gap's fields, those about the host only where there is one."""
    gap = gap_of(trace, thing.row, thing.index, stamps.clocks)
    if gap is None:
        return []
    return [
        Field("length", format_ns(gap.length, 9)),
        Field("before it", _name(trace, gap.before), _jump(gap.before)),
        Field("ended by", _name(trace, gap.after), _jump(gap.after)),
        *_launch_fields(gap),
        *_thread_fields(gap),
    ]


def _launch_fields(gap: Gap) -> list[Field]:
    launch = gap.launch
    if launch is None:
        return []
    after = launch.start - gap.start
    where = f"{format_ns(after)} into the gap" if after >= 0 else f"{format_ns(-after)} before the gap"
    reason = (
        "the host was late" if gap.host_was_late else "it was queued: the device waited for something else"
    )
    return [
        Field("launched by", f"{safe(launch.short_name)}, {where}", _jump(launch.id)),
        Field("so", reason),
    ]


def _thread_fields(gap: Gap) -> list[Field]:
    fields = []
    for doing in gap.threads:
        if doing.slice is None:
            fields.append(Field(doing.lane.title, "nothing that covers most of it"))
            continue
        share = f" · {doing.covered / gap.length:.0%} of it"
        fields.append(Field(doing.lane.title, safe(doing.label) + share, _jump(doing.slice)))
    if gap.more_threads:
        fields.append(Field("more threads", f"{format_count(gap.more_threads)} are not listed"))
    return fields


def _jump(identity: SliceId) -> str:
    return f"jump({identity.source}, {identity.ordinal})"


def _name(trace: Trace, identity: SliceId) -> str:
    found = trace.find(identity)
    return "" if found is None else safe(trace.label(*found))
