"""What was understood of a telemetry log, and what it says per step, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.cells import cell_len

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.export.formats import text_in_unit
from tracelane.core.logs.zones import offset_text
from tracelane.core.tables.table import Table, Value

LINES_SHOWN = 5
"""Unparsed lines that are told; the others are counted."""


def log_text(told: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return a log's description (an entry of `logs` in the JSON) in lines; `labels`: devices by pid."""
    return "\n".join(_log_lines(told, labels))


def _log_lines(told: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[str]:
    interval = f" · every {told['interval_s']:g} s" if told["interval_s"] else ""
    tool = f"{told['tool'] or 'unknown tool'}, {told['format']}"
    yield f"{safe(told['path'])} · {safe(tool)}{interval}"
    counts = [f"{format_count(told['rows'])} rows", f"{format_count(told['missing'])} without values"]
    counts.append(f"{format_count(told['unparsed'])} lines not understood")
    if told["messages"]:
        counts.append(f"{format_count(told['messages'])} messages among them")
    yield "  " + ", ".join(counts)
    for line in told["unparsed_lines"][:LINES_SHOWN]:
        yield f"  ! line {line['line']}: {safe(str(line['why']))}"
    if told["utc_offset_s"] is None:
        yield f"  clock: {safe(told['reason'] or 'not fitted')}"
    else:
        yield (
            f"  clock: {offset_text(told['utc_offset_s'])}, lag {told['lag_s']:+.3f} s"
            f" · confidence {told['confidence']:.0%}"
        )
        yield f"    {safe(told['reason'])}"
    for device in told["devices"]:
        pid = told["device_of"].get(device)
        label = f" ({safe(labels[pid])})" if pid in labels else ""
        yield f"  device {safe(device)}: " + (f"process {safe(pid)}{label}" if pid else "not in the trace")
    width = max((cell_len(_name(column)) for column in told["columns"]), default=0)
    for column in told["columns"]:
        name = _name(column) + " " * (width - cell_len(_name(column)))
        yield f"  {name}  {safe(column['meaning'] or '')}".rstrip()
        if column["warning"]:
            yield f"  {' ' * width}  ⚠ {safe(column['warning'])}"
    for note in told["notes"]:
        yield f"  {safe(note)}"


def _name(column: Mapping[str, Any]) -> str:
    return safe(f"{column['name']} {column['unit']}".rstrip())


def steps_text(table: Table, zero: int) -> str:
    """Return the table of steps in aligned columns, starts counted from `zero`, its notes below."""
    heads = [safe(column.heading) for column in table.columns]
    rows = [[_cell(table, key, value, zero) for key, value in row.items()] for row in table.rows()]
    widths = [max(map(cell_len, cells)) for cells in zip(heads, *rows)]
    left = [column.unit == "text" for column in table.columns]
    lines = []
    for cells in (heads, *rows):
        padded = []
        for cell, width, text in zip(cells, widths, left):
            space = " " * (width - cell_len(cell))
            padded.append(cell + space if text else space + cell)
        lines.append("  ".join(padded).rstrip())
    notes = [safe(note) for note in table.notes]
    return "\n".join([*lines, *notes] if rows else notes)


def _cell(table: Table, key: str, value: Value, zero: int) -> str:
    column = table.column(key)
    if key == "start_ns" and isinstance(value, int):
        return ("+" if value >= zero else "-") + format_ns(abs(value - zero))
    if column.unit == "ns" and isinstance(value, int):
        return format_ns(value)
    if column.unit == "number" and isinstance(value, int | float):
        return f"{value:.4g}"
    return safe(text_in_unit(column, value))
