"""The ops of a trace as PyTorch prints them: same columns, widths, units and footer."""

from __future__ import annotations

from typing import Any

from tracelane.core.base.arrays import I64
from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_name
from tracelane.core.tables.frame.table import Table

WIDTH = 12
NAME_WIDTH = 55
SHAPES_WIDTH = 80
SOURCE_WIDTH = 75
SPACE = "  "
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def ops_text(table: Table, order: I64 | None, limit: int | None) -> str:
    """Return the rows in this order as `prof.key_averages().table()` does.

    Device columns are there when some device time is, under the device's own name; memory columns when
    memory was recorded.
    """
    if not len(table):
        return "no ops in it"
    word, memory = safe(str(table.totals["device"])), bool(table.totals["profile_memory"])
    has_device = bool(table.numbers("self_device_ns").any())
    device_memory = memory and any(column.key == "device_mem" for column in table.drawn_columns)
    headers = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if has_device:
        headers += [f"Self {word}", f"Self {word} %", f"{word} total", f"{word} time avg"]
    if memory:
        headers += ["CPU Mem", "Self CPU Mem"]
    if device_memory:
        headers += [f"{word} Mem", f"Self {word} Mem"]
    headers.append("# of Calls")
    # Widths follow all rows, not those shown: so does PyTorch's table.
    names = [safe(name) for name in table.data["name"]]
    widths = [min(max(map(len, names)) + 4, NAME_WIDTH)] + [WIDTH] * (len(headers) - 1)
    extra = next((c for c in table.columns if c.key in ("input_shapes", "stack", "module")), None)
    if extra is not None:
        headers.append(safe(extra.title))
        most = SHAPES_WIDTH if extra.key == "input_shapes" else SOURCE_WIDTH
        parts = [part for text in table.data[extra.key] for part in _lines(extra.key, text)]
        widths.append(min(max(map(len, parts)) + 4, most))
    left = extra is not None and extra.key != "input_shapes"
    rule = "".join("-" * width + SPACE for width in widths)
    lines = [rule, _line(headers, widths, left), rule]
    cpu, device = (int(table.totals[key] or 0) for key in ("self_cpu_total_ns", "self_device_total_ns"))
    for row in table.rows(order, limit):
        cells = _cells(row, cpu, device, has_device, memory, device_memory)
        more = [] if extra is None else _lines(extra.key, str(row[extra.key]))
        lines.append(_line([*cells, *(_cut(part, widths[-1], left) for part in more[:1])], widths, left))
        if left and extra is not None and extra.key == "stack":
            blank = [""] * (len(headers) - 1)
            lines += [_line([*blank, _cut(part, widths[-1], left)], widths, left) for part in more[1:]]
            lines.append(_line([*blank, ""], widths, left))
    lines += [rule, f"Self CPU time total: {torch_time_text(cpu)}"]
    if has_device:
        lines.append(f"Self {word} time total: {torch_time_text(device)}")
    return "\n".join(lines) + "\n"


def _cells(
    row: dict[str, Any], cpu: int, device: int, has_device: bool, memory: bool, device_memory: bool
) -> list[str]:
    name, calls = safe(row["name"]), max(row["calls"], 1)
    if len(name) >= NAME_WIDTH - 3 and row["on_device"]:
        name = safe(short_name(row["name"]))  # of a path or a template the beginning tells nothing
    if len(name) >= NAME_WIDTH - 3:
        name = name[: NAME_WIDTH - 3] + "..."
    cells = [name, share_text(row["self_cpu_ns"], cpu), torch_time_text(row["self_cpu_ns"])]
    cells += [share_text(row["cpu_total_ns"], cpu), torch_time_text(row["cpu_total_ns"])]
    cells.append(torch_time_text(row["cpu_total_ns"] / calls))
    if has_device:
        cells += [torch_time_text(row["self_device_ns"]), share_text(row["self_device_ns"], device)]
        cells += [torch_time_text(row["device_total_ns"]), torch_time_text(row["device_total_ns"] / calls)]
    if memory:
        cells += [memory_text(row["cpu_mem"]), memory_text(row["self_cpu_mem"])]
    if device_memory:
        cells += [memory_text(row["device_mem"]), memory_text(row["self_device_mem"])]
    return [*cells, str(row["calls"])]


def torch_time_text(ns: float) -> str:
    """Return ns as PyTorch prints times: us, ms or s with three decimals."""
    us = ns / 1000
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def share_text(part: int, whole: int) -> str:
    """Return a share of the sum of self times in percent."""
    return f"{part * 100 / whole:.2f}%" if whole else "NaN"


def memory_text(count: int) -> str:
    """Return bytes as PyTorch prints them: B, KB, MB or GB of 1024 each."""
    for size, unit in ((GIB, "GB"), (MIB, "MB"), (KIB, "KB")):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def _line(cells: list[str], widths: list[int], left: bool) -> str:
    padded = [cell.rjust(width) for cell, width in zip(cells, widths)]
    if left and len(cells) == len(widths):
        padded[-1] = cells[-1].ljust(widths[-1])
    return "".join(cell + SPACE for cell in padded)


def _lines(key: str, text: str) -> list[str]:
    return [safe(part) for part in text.split(";")] if key == "stack" else [safe(text)]


def _cut(text: str, width: int, tail: bool) -> str:
    """Return a text of at most `width`: shapes lose their end, paths their beginning."""
    if len(text) <= width:
        return text
    return "..." + text[len(text) - width + 3 :] if tail else text[:width]
