"""The slices around the selection, or around what launched it, as the details list them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tracelane.core.base.short_names import short_name
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.query.detail import SliceDetail
from tracelane.core.trace import Link, Trace

from ..draw.labels import fit
from .fields import jump_to

MOST = 100
"""Slices that are listed, the innermost ones; deeper stacks say how many more there are."""
TIME_CELLS = 12
LEAST_NAME = 6


@dataclass(frozen=True)
class Entry:
    """One slice around; ns."""

    name: str
    total: int
    self_time: int
    jump: str


@dataclass(frozen=True)
class Around:
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
    nearest = trace.slices(source, positions[:MOST])
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
    room = max(LEAST_NAME, min(longest, width - 2 * TIME_CELLS))
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
