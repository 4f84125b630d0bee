"""The details of the selection: what it is, when, what is around it, its chain and its arguments."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tracelane.core.base.clock import Clocks
from tracelane.core.base.kineto import WORK, SliceKind, work_kind
from tracelane.core.base.safe_text import json_text, safe
from tracelane.core.base.short_names import short_name
from tracelane.core.base.units import format_count, format_ns, format_share
from tracelane.core.index.format import RowKind
from tracelane.core.logs.overlay import Overlay, Reading, statistics_of
from tracelane.core.query.args import Arguments
from tracelane.core.query.views import SliceDetail, SliceId
from tracelane.core.trace import LaneRole, Link, Trace

from ..draw.ranks import rank_heads
from ..draw.states import DrawnStates
from ..draw.things import Thing
from ..steps import step_at, step_marks
from ..times import TimeWriter
from .fields import Field, fields_of, jump_to, laid_out, wrap
from .surroundings import (
    NOTHING_AROUND,
    Around,
    around_lines,
    around_object,
    around_of,
    gap_fields,
    gap_title,
    name_of,
)

if TYPE_CHECKING:
    from ..draw.path_line import DrawnPath

FLOWS_SHOWN = 8
MIN_NAME = 6
NONE = "(none)"
PHASES = {
    "i": "instant",
    "I": "instant",
    "R": "mark",
    "n": "async mark",
    "b": "async begin",
    "e": "async end without its begin",
    "E": "end without its begin",
    "N": "object created",
    "O": "object snapshot",
    "D": "object deleted",
    "P": "sample",
    "V": "memory dump",
    "v": "memory dump",
}


class ChainPart(NamedTuple):
    """A link of the line kernel ← launch ← op ← annotation; `jump` is empty for the selection itself."""

    role: str
    name: str
    via: str
    jump: str


class Details(NamedTuple):
    """What the panel shows of one thing, before it is laid out."""

    title: str  # short name
    raw_name: str  # name in full
    fields: tuple[Field, ...]
    chain: tuple[ChainPart, ...] = ()
    remarks: tuple[str, ...] = ()  # overlap, unclosed, clamped; why a metric may be wrong
    has_arguments: bool = True
    around: Around = NOTHING_AROUND
    means: str = ""  # what such a slice does, and who says so
    lead: int = 0  # so many fields are asked for first: they stand above chain and arguments

    def with_keys(self, with_keys: Callable[[str], str]) -> Details:
        """Return them with the user's keys where a value names a command; names of the trace are kept."""
        fields = (one._replace(value=with_keys(one.value)) if one.names_key else one for one in self.fields)
        return self._replace(fields=tuple(fields))


def details_of(
    trace: Trace,
    stamps: TimeWriter,
    thing: Thing,
    span: tuple[int, int] | None = None,
    states: DrawnStates | None = None,
    path: DrawnPath | None = None,
) -> Details:
    """Return everything that the index knows of a thing; its arguments come apart, read from the file.

    Of a lane of values it is told what it says of a range `span` too; of collectives how long they wait,
    where `states` of devices know it; of slices on a critical `path` what released them.
    """
    if thing.slice is not None and (detail := trace.detail(thing.slice)) is not None:
        lead = _waiting_fields(stamps.clocks, thing, detail, states)
        on_path = path and path.of_slice(thing.row.source, trace.position(thing.row, thing.index))
        lead += [Field("critical path", on_path)] if on_path else []
        return _slice(trace, stamps, thing, detail, lead)
    if thing.is_gap:
        all_fields = (*gap_fields(trace, stamps, thing), *_lane_fields(thing), *_start_fields(stamps, thing))
        return Details(gap_title(thing), gap_title(thing), all_fields, has_arguments=False)
    if isinstance(trace, Overlay) and (reading := trace.reading_at(thing.row, thing.index)) is not None:
        column = reading.metric.column
        title, warning = (
            f"{column.name}{': ' if reading.value is None else ' '}{_value(reading)}",
            column.warning,
        )
        fields = reading_fields(trace, stamps, thing, reading)
        all_fields = (fields[0], *range_fields(trace, stamps, thing, span), *fields[1:])
        return Details(title, title, all_fields, (), (warning,) if warning else (), has_arguments=False)
    if thing.row.kind is RowKind.INSTANTS:
        category, phase = trace.instant(thing.row, thing.index)
        fields = [
            Field("what", PHASES.get(phase, f"event of phase {phase}")),
            Field("category", category or NONE),
            *_lane_fields(thing),
            *_start_fields(stamps, thing),
            Field("event", format_count(trace.ordinal(thing.row, thing.index))),
        ]
        name = trace.name(thing.row, thing.index)
        return Details(short_name(name), name, tuple(fields))
    computed = trace.sources[thing.row.source].is_computed
    fields = [
        Field("value", f"{trace.sample(thing.row, thing.index):,.15g}"),
        *range_fields(trace, stamps, thing, span),
        Field("what", "computed from the trace" if computed else "counter sample"),
        *_lane_fields(thing),
        *_start_fields(stamps, thing),
        Field("event", format_count(trace.ordinal(thing.row, thing.index))),
    ]
    title = f"{thing.lane.name} {thing.row.series}".strip()
    return Details(short_name(title), title, tuple(fields))


def _slice(
    trace: Trace, stamps: TimeWriter, thing: Thing, detail: SliceDetail, first: Sequence[Field]
) -> Details:
    share = f" · {detail.self_time / detail.duration:.1%}" if detail.duration else ""
    end_event = "" if detail.end_ordinal is None else f", its end {format_count(detail.end_ordinal)}"
    rank, above = rank_heads(trace).get(thing.row.source), trace.parent(detail.id)
    lead = [
        *first,
        Field("duration", format_ns(detail.duration, 9)),
        *_step_fields(trace, stamps, thing),
        *_launch_fields(trace, stamps, detail.id, detail.category),
        *([] if rank is None else [Field("rank", rank.title.removeprefix("rank "))]),
        *_telemetry_fields(trace, stamps, thing),
    ]
    own = (
        [Field("self", format_ns(detail.self_time, 9) + share)] if detail.self_time != detail.duration else []
    )
    fields = [
        *lead,
        *own,
        Field("category", detail.category or NONE),
        *_lane_fields(thing),
        *_start_fields(stamps, thing),
        Field("parent", "none") if above is None else Field("parent", name_of(trace, above), jump_to(above)),
        *([Field("children", format_count(detail.children))] if detail.children else []),
        *_flow_fields(trace, detail.id),
        Field("event", format_count(detail.id.ordinal) + end_event),
    ]
    from tracelane.core.tables.explain.explain import explain  # the first picture is drawn without it

    links = trace.chain(detail.id)
    entry = explain(detail.name, trace, detail.id.source)
    return Details(
        short_name(detail.name),
        detail.name,
        tuple(fields),
        _chain(links, detail.id),
        _remarks(detail),
        around=around_of(trace, detail, links),
        means="" if entry is None else f"{entry.line} ({entry.source})",
        lead=len(lead),
    )


def _waiting_fields(
    clocks: Clocks, thing: Thing, detail: SliceDetail, states: DrawnStates | None
) -> list[Field]:
    """Return the field with how long a collective waits for a peer, where that is known."""
    kind = work_kind(detail.category or "", detail.name)
    if states is None or kind is not SliceKind.COLLECTIVE or thing.lane.role is not LaneRole.DEVICE:
        return []
    waits = states.waits(thing.lane, clocks, np.array([thing.start, thing.end], np.int64))
    if waits is None:
        return []
    share = int(waits[0]) / max(1, detail.duration)
    return [Field("waits for a peer", f"{format_ns(int(waits[0]))} · {share:.0%} of it")]


def _remarks(detail: SliceDetail) -> tuple[str, ...]:
    remarks = (
        (
            detail.overlap,
            "overlaps another slice of its lane without nesting in it: drawn on a row of its own",
        ),
        (detail.unclosed, "begins but never ends in the file: drawn to the end of its lane"),
        (detail.clamped, "its time was cut to the range that can be drawn"),
    )
    return tuple(text for holds, text in remarks if holds)


def _lane_fields(thing: Thing) -> list[Field]:
    return [Field("lane", thing.lane.title), Field("process", thing.lane.process.title)]


def _launch_fields(trace: Trace, stamps: TimeWriter, identity: SliceId, category: str | None) -> list[Field]:
    """Return the fields on how long device work waited after its launch, and how much of that behind other
    work.
    """
    if category not in WORK or (delays := trace.launch_delay(identity, stamps.clocks)) is None:
        return []
    (delay, wait), (low, high) = delays, trace.opening_span
    if abs(delay) > high - low:  # of a kernel at 0, say: longer than all that was recorded
        return [Field("launch delay", "not known: the clocks are far apart")]
    text = format_ns(delay)
    if delay < 0:
        work, *links = trace.chain(identity, stamps.clocks)
        launches = [link.start for link in links if link.role == "launch"]
        is_early = bool(launches) and work.start < launches[0]
        text += " · clocks disagree" if is_early else " · began while the launch ran"
    fields = [Field("launch delay", text)]
    return fields if wait is None else [*fields, Field("behind others", format_ns(wait))]


def _step_fields(trace: Trace, stamps: TimeWriter, thing: Thing) -> list[Field]:
    step = step_at(step_marks(trace, stamps.clocks, stamps.steps, thing.row.source), thing.start)
    if step is None or thing.end <= thing.start or thing.end - thing.start >= step.end - step.start:
        return []
    share = (thing.end - thing.start) / (step.end - step.start)
    return [Field(f"share of {safe(step.title)}", f"{share:.2%}".replace("%", " %"))]


def _telemetry_fields(trace: Trace, stamps: TimeWriter, thing: Thing) -> list[Field]:
    """Return the fields with what logs say, at the middle of a slice, about the device it ran on: power and
    the like.
    """
    if not isinstance(trace, Overlay):
        return []
    middle = (thing.start + thing.end) // 2
    return [
        Field(
            reading.metric.column.label,
            f"{reading.value:g} in a sample of {format_ns(reading.end - reading.start)}",
        )
        for reading in trace.device_readings(thing.lane.process, middle, stamps.clocks)
    ]


def _start_fields(stamps: TimeWriter, thing: Thing) -> list[Field]:
    fields = [
        Field("start", stamps.relative(thing.start)),
        Field("in the file", stamps.file(thing.start, thing.row.source, thing.row.pid)),
    ]
    if (wall := stamps.wall(thing.start)) is not None:
        fields.append(Field("wall clock", wall))
    return fields


def _flow_fields(trace: Trace, identity: SliceId) -> list[Field]:
    fields = []
    for label, arrows, lists in (
        ("flow from", trace.flows_in(identity, FLOWS_SHOWN + 1), "{launch} lists them"),
        ("flow to", trace.flows_out(identity, FLOWS_SHOWN + 1), "{kernel} lists them"),
    ):
        for arrow in arrows[:FLOWS_SHOWN]:
            other = arrow.source if label == "flow from" else arrow.target
            if other is None:
                fields.append(Field(label, f"{arrow.category}: its other end is in no slice"))
            else:
                fields.append(Field(label, f"{name_of(trace, other)} ({arrow.category})", jump_to(other)))
        if len(arrows) > FLOWS_SHOWN:
            fields.append(Field(label, f"more than {FLOWS_SHOWN}: {lists}", names_key=True))
    return fields


def _chain(links: list[Link], identity: SliceId) -> tuple[ChainPart, ...]:
    if len(links) < 2 or links[0].role != "kernel":
        return ()
    return tuple(
        ChainPart(link.role, safe(link.short_name), link.via, "" if link.id == identity else jump_to(link.id))
        for link in links
    )


# -- laying out ---------------------------------------------------------------------------------------------


class DetailsStyles(NamedTuple):
    title: Style
    label: Style
    jump: Style
    warning: Style


def details_text(details: Details, arguments: Arguments | None, width: int, look: DetailsStyles) -> Text:
    """Return the whole panel for a width in cells; arguments None: still being read."""
    width = max(10, width)
    lines = [Text(line, look.title) for line in wrap(safe(details.title), width)]
    lines.extend(Text(f"⚠ {remark}", look.warning) for remark in details.remarks)
    lead, rest = details.fields[: details.lead], details.fields[details.lead :]
    lines.extend(laid_out(lead, width, look.label, look.jump))
    if details.chain:
        lines.append(_chain_text(details.chain, width, look))
    if not details.lead:
        lines.extend(laid_out(rest, width, look.label, look.jump))
    if not details.has_arguments:
        pass
    elif arguments is None:
        lines.append(Text("arguments: reading…", look.label))
    else:
        lines.extend(_argument_lines(arguments, width, look))
    lines.extend(Text(line, look.label) for line in textwrap.wrap(details.means, width))
    if details.lead:
        lines.extend(laid_out(rest, width, look.label, look.jump))
    lines.extend(around_lines(details.around, width, look.label, look.jump))
    if details.raw_name.strip() and details.raw_name != details.title:
        name = [Field("name in full", details.raw_name)]
        lines.extend(laid_out(name, width, look.label, look.jump))
    elif not details.raw_name.strip():
        what = json.dumps(details.raw_name, ensure_ascii=False)
        lines.append(Text(f"the file gives it a blank name: {what}", look.label))
    return Text("\n").join(lines)


def _chain_text(chain: tuple[ChainPart, ...], width: int, look: DetailsStyles) -> Text:
    heads = [f"{' ← ' if number else ''}{part.role} " for number, part in enumerate(chain)]
    tails = [f" (by {part.via})" if part.via not in ("", "flow", "enclosing") else "" for part in chain]
    room = width - sum(map(cell_len, heads)) - sum(map(cell_len, tails))
    sizes = shares([cell_len(part.name) for part in chain], max(room, MIN_NAME * len(chain)))
    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for part, head, tail, size in zip(chain, heads, tails, sizes):
        text.append(head, look.label)
        name = Text(part.name)
        name.truncate(size, overflow="ellipsis")
        style = look.jump + Style(meta={"@click": f"app.{part.jump}"}) if part.jump else Style()
        text.append(name.plain, style)
        text.append(tail, look.label)
    return text


def shares(widths: Sequence[int], room: int) -> list[int]:
    """Return how many cells each of several texts gets of `room`: the short ones all, the long ones alike."""
    sizes = [0] * len(widths)
    left = len(widths)
    for size, number in sorted((size, number) for number, size in enumerate(widths)):
        sizes[number] = min(size, room // left)
        room -= sizes[number]
        left -= 1
    return sizes


def _argument_lines(arguments: Arguments, width: int, look: DetailsStyles) -> list[Text]:
    lines = []
    groups: list[tuple[str, dict[str, Any]]] = [("arguments", arguments.begin)]
    if arguments.end is not None and arguments.end != arguments.begin:
        groups.append(("arguments of its end", arguments.end))
    if arguments.captured:
        groups.insert(0, ("by capture", dict(arguments.captured)))
    for title, values in groups:
        if values:
            lines.append(Text(title, look.label + Style(underline=True)))
            lines.extend(laid_out(fields_of(values), width, look.label, look.jump))
    if not arguments.begin and not arguments.end and not arguments.problem:
        lines.append(Text("no arguments", look.label))
    for remark in (arguments.slow_reason, arguments.problem):
        if remark:
            lines.append(Text(f"arguments: {safe(remark)}", look.label))
    return lines


def details_json(details: Details, thing: Thing, arguments: Arguments | None) -> str:
    """Return the selection as a JSON object: what the panel shows, times in ns."""
    value: dict[str, Any] = {
        "schema": 1,
        "source": thing.id.source,
        "ordinal": thing.id.ordinal,
        "name": details.raw_name,
        "start_ns": thing.start,
        "duration_ns": thing.end - thing.start,
    }
    own_keys = {"start", "in the file", "duration", "event"}
    if details.means:
        value["means"] = details.means
    value |= {
        field.label.replace(" ", "_"): field.value for field in details.fields if field.label not in own_keys
    }
    if arguments is not None:
        value["args"] = arguments.begin
        if arguments.end is not None:
            value["args_of_end"] = arguments.end
        value["event"] = arguments.event
        if arguments.captured:
            value["by_capture"] = dict(arguments.captured)
    if details.around.entries:
        value[details.around.what.replace(" ", "_")] = around_object(details.around)
    return json_text(value, indent=2, default=str)


NO_VALUE = "none: a gap, or the card was not ready"


def reading_fields(trace: Overlay, stamps: TimeWriter, thing: Thing, reading: Reading) -> list[Field]:
    column = reading.metric.column
    least, most = reading.metric.series.bounds or (0.0, 0.0)
    fields = [
        Field("value", _value(reading)),
        Field("mean over", f"{stamps.relative(thing.start)} .. {stamps.relative(thing.end)}"),
        Field("device", thing.lane.process.title),
        Field("in the log", f"{least:.15g} .. {most:.15g} {column.unit}".rstrip()),
    ]
    if column.meaning:
        fields.append(Field("meaning", column.meaning))
    if (wall := stamps.wall(thing.start)) is not None:
        fields.append(Field("wall clock", wall))
    one = trace.log_of(thing.row.source)
    if one is not None:
        fields.append(Field("clock", one.clock_text(stamps.clocks, thing.row.source)))
    if reading.line:
        fields.append(Field(f"line {reading.line:,}", reading.text.strip() or "(cannot be read again)"))
    return fields


def range_fields(trace: Trace, stamps: TimeWriter, thing: Thing, span: tuple[int, int] | None) -> list[Field]:
    """Return a summary of a lane's values in the range, nothing without a range."""
    of_range = None if span is None else statistics_of(trace, thing.row, span, stamps.clocks)
    if of_range is None:
        return []
    column, statistics = of_range
    if statistics.mean is None or statistics.least is None or statistics.greatest is None:
        return [Field("in the range", "no value")]
    unit = f" {column.unit}".rstrip()
    words = f"mean {statistics.mean:.6g}{unit}, {statistics.least:.6g} .. {statistics.greatest:.6g}{unit}"
    if statistics.joules is not None:
        words += f", {statistics.joules:.6g} J"
    if statistics.coverage < 1:
        words += f"; {format_share(statistics.coverage)} of it have values"
    return [Field("in the range", words)]


def _value(reading: Reading) -> str:
    if reading.value is None:
        return NO_VALUE
    return f"{reading.value:.15g} {reading.metric.column.unit}".rstrip()
