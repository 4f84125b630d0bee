"""What is around a thing in the details: the slices around one, the neighbours and causes of a gap."""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_name
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.query.views import SliceDetail, SliceId
from tracelane.core.tables.device.gap import Gap, gap_of
from tracelane.core.tables.device.idle import recurrence
from tracelane.core.tables.frame.frame_columns import KERNEL_WAIT_NS
from tracelane.core.trace import Link, Trace

from ..draw.glyphs import fit
from ..draw.things import Thing
from ..steps import step_marks
from ..times import TimeWriter
from .fields import Field, jump_to

MAX = 100
"""Slices that are listed, the innermost ones; deeper stacks say how many more there are."""
TIME_CELLS = 12
MIN_NAME = 6


class Entry(NamedTuple):
    """One slice around; ns."""

    name: str
    total: int
    self_time: int
    jump: str


class Around(NamedTuple):
    """What is around a slice, innermost first."""

    what: str = "around it"
    entries: tuple[Entry, ...] = ()
    more: int = 0  # farther out, not listed


NOTHING_AROUND = Around()


def around_of(trace: Trace, detail: SliceDetail, links: list[Link]) -> Around:
    """Return the slices around one; around the launch of device work, where `links`, its chain, know it."""
    source, position, what = detail.id.source, detail.position, "around it"
    if len(links) > 1 and links[0].role == "kernel" and (launch := trace.find(links[1].id)) is not None:
        position, what = trace.position(*launch), f"around its {links[1].role}"
    positions = trace.enclosing(source, position)
    nearest = trace.slices(source, positions[:MAX])
    times = nearest.durations.tolist(), nearest.self_times.tolist()
    entries = tuple(
        Entry(short_name(name), total, own, jump_to(identity))
        for name, identity, total, own in zip(nearest.names, nearest.ids, *times)
    )
    return Around(what, entries, len(positions) - len(entries))


def around_lines(around: Around, width: int, label: Style, jump: Style) -> list[Text]:
    """Return the slices around as a small table: name, total, self."""
    if not around.entries:
        return []
    title = f"{around.what}, innermost first"
    longest = max(cell_len(title), *(cell_len(entry.name) for entry in around.entries))
    room = max(MIN_NAME, min(longest, width - 2 * TIME_CELLS))
    lines = [Text(fit(title, room), label + Style(underline=True), no_wrap=True, end="")]
    lines[0].append("total".rjust(TIME_CELLS) + "self".rjust(TIME_CELLS))
    for entry in around.entries:
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        name = fit(entry.name, room).rstrip()
        line.append(name, jump + Style(meta={"@click": f"app.{entry.jump}"}))
        line.append(" " * (room - cell_len(name)))
        line.append(format_ns(entry.total).rjust(TIME_CELLS) + format_ns(entry.self_time).rjust(TIME_CELLS))
        lines.append(line)
    for line in lines:
        line.truncate(width)
    if around.more:
        lines.append(Text(f"{format_count(around.more)} more around these", label))
    return lines


def around_object(around: Around) -> list[dict[str, Any]]:
    """Return the slices around as JSON objects, times in ns."""
    return [
        {"name": entry.name, "duration_ns": entry.total, "self_ns": entry.self_time}
        for entry in around.entries
    ]


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
        Field("ended by", name_of(trace, gap.after), jump_to(gap.after)),
        *_launch_fields(gap),
        *_thread_fields(gap),
        Field("comes back", _recurrence_text(trace, stamps, thing)),
        Field("before it", name_of(trace, gap.before), jump_to(gap.before)),
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


def name_of(trace: Trace, identity: SliceId) -> str:
    row = trace.find(identity)
    return "" if row is None else trace.label(*row)
