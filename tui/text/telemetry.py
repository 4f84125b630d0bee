"""What was understood of a telemetry log, and what it says per step, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.cells import cell_len

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count, format_moment, format_ns, moment_digits, origin_text
from tracelane.core.export.formats import text_in_unit
from tracelane.core.logs.stamps import offset_text
from tracelane.core.tables.frame.table import Table, Value

from .table import aligned_line

RUNS = {
    "matches": "of this run",
    "near": "perhaps of this run, not used",
    "foreign": "of another run, not used",
}
"""The verdict on a log in words."""
LINES_SHOWN = 5
"""The most unparsed lines that are listed; the others are counted."""


def log_text(log: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return a log's description (an entry of `logs` in the JSON) in lines; `labels`: devices by pid."""
    return "\n".join(_log_lines(log, labels))


def _log_lines(log: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[str]:
    interval = f" · every {log['interval_s']:g} s" if log["interval_s"] else ""
    tool = f"{log['tool'] or 'unknown tool'}, {log['format']}"
    yield f"{safe(log['path'])} · {safe(tool)}{interval}"
    counts = [f"{format_count(log['rows'])} rows", f"{format_count(log['missing'])} without values"]
    counts.append(f"{format_count(log['unparsed'])} lines not understood")
    if log["messages"]:
        counts.append(f"{format_count(log['messages'])} messages among them")
    yield "  " + ", ".join(counts)
    for line in log["unparsed_lines"][:LINES_SHOWN]:
        yield f"  ! line {line['line']}: {safe(str(line['why']))}"
    if log["utc_offset_s"] is None:
        yield f"  clock: {safe(log['reason'] or 'not fitted')}"
    else:
        yield (
            f"  clock: {offset_text(log['utc_offset_s'])}, lag {log['lag_s']:+.3f} s"
            f" · {RUNS[log['verdict']]} · confidence {log['confidence']:.0%}"
        )
        yield f"    {safe(log['reason'])}"
    for device in log["devices"]:
        pid = log["device_of"].get(device)
        label = f" ({safe(labels[pid])})" if pid in labels else ""
        yield f"  device {safe(device)}: " + (f"process {safe(pid)}{label}" if pid else "not in the trace")
    width = max((cell_len(_name(column)) for column in log["columns"]), default=0)
    for column in log["columns"]:
        name = _name(column) + " " * (width - cell_len(_name(column)))
        yield f"  {name}  {safe(column['meaning'] or '')}".rstrip()
        if column["warning"]:
            yield f"  {' ' * width}  ⚠ {safe(column['warning'])}"
    for note in log["notes"]:
        yield f"  {safe(note)}"


def _name(column: Mapping[str, Any]) -> str:
    return safe(f"{column['name']} {column['unit']}".rstrip())


def steps_text(table: Table, zero: int) -> str:
    """Return the table of steps in aligned columns, starts counted from `zero`, its notes below."""
    heads = [safe(column.heading) for column in table.columns]
    digits = moment_digits(table.numbers("start_ns") - zero) if "start_ns" in table.data else 0
    rows = [[_cell(table, key, value, zero, digits) for key, value in row.items()] for row in table.rows()]
    widths = [max(map(cell_len, cells)) for cells in zip(heads, *rows)]
    lines = [aligned_line(cells, table.columns, widths) for cells in (heads, *rows)]
    notes = [safe(note) for note in table.notes]
    if digits:
        notes.append(origin_text(zero))
    return "\n".join([*lines, *notes] if rows else notes)


def _cell(table: Table, key: str, value: Value, zero: int, digits: int) -> str:
    column = table.column(key)
    if column.moment and isinstance(value, int):
        return format_moment(value - zero, digits)
    if column.unit == "ns" and isinstance(value, int):
        return format_ns(value)
    if column.unit == "number" and isinstance(value, int | float):
        return f"{value:.4g}"
    return safe(text_in_unit(column, value))
