"""The header line of a log: which cell is the time, which the device, and what the others measure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .columns import ColumnKind, LogColumn, known_column


@dataclass(frozen=True)
class LogHeader:
    """How the rows that follow a header are to be read; cells are counted from 0."""

    tool: str  # "aiu-smi", "nvidia-smi", "rocm-smi", "amd-smi", or "" where unknown
    separator: bytes | None  # None: white space
    cells: int
    time: tuple[int, ...]  # the cells that make up the time: one, or date and time of day
    device: int | None
    columns: tuple[tuple[int, LogColumn], ...]

    @property
    def format(self) -> str:
        """Return "text" or "csv"."""
        return "text" if self.separator is None else "csv"

    @property
    def card_columns(self) -> tuple[tuple[int, LogColumn], ...]:
        """Return the columns that only a card that is ready fills."""
        return tuple((i, c) for i, c in self.columns if c.kind is not ColumnKind.HOST)


TIME_NAMES = (
    "timestamp", "time_stamp", "datetime", "date_time", "time", "date", "ts", "epoch", "unixtime",
    "unix_time", "timestamp_ns", "timestamp_us", "timestamp_ms", "time_ns", "time_s", "time_ms", "elapsed",
)  # fmt: skip
DEVICE_NAMES = (
    "id", "index", "gpu_index", "gpu_id", "device_id", "gpu", "idx", "device", "card", "dev",
    "pci.bus_id", "gpu_bus_id", "bdf", "uuid", "gpu_uuid",
)  # fmt: skip
_BRACKETED = re.compile(r"^(.*?\S)\s*[\[(]([^\[\]()]*)[\])]\s*$")
UNIT_WORDS = frozenset(
    ("%", "W", "mW", "kW", "C", "F", "K", "V", "mV", "A", "mA", "MHz", "GHz", "Hz", "J", "s", "ms", "us",
     "ns", "B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "B/s", "KB/s", "MB/s", "GB/s",
     "KiB/s", "MiB/s", "GiB/s", "Mreq/s", "req/s", "Mbit/s", "Gbit/s", "rpm", "RPM")
)  # fmt: skip


def name_and_unit(label: str) -> tuple[str, str]:
    """Split a column's label: "pwr W", "power.draw [W]" and "Power (W)" all give name and unit."""
    label = label.strip().strip('"').strip()
    bracketed = _BRACKETED.match(label)
    if bracketed:
        return bracketed[1], bracketed[2].strip()
    name, _, unit = label.rpartition(" ")
    if name and unit in UNIT_WORDS:
        return name.strip(), unit
    return label, ""


def _first_word(label: str) -> tuple[str, str]:
    name, _, unit = label.strip().partition(" ")
    return name, unit.strip()


def csv_header(line: bytes) -> LogHeader | None:
    """Return what a CSV header says, or None if the line is none: it needs a column of times and others."""
    text = line.decode("utf-8", "replace").strip().lstrip("\ufeff").lstrip("#").strip()
    separator = max((b",", b";", b"\t"), key=line.count)
    labels = text.split(separator.decode())
    if len(labels) < 2:
        return None
    pairs = [name_and_unit(label) for label in labels]
    names = [name.lower().replace(" ", "_") for name, _ in pairs]
    time = _time_cells(names)
    if not time:
        return None
    device = next((names.index(name) for name in DEVICE_NAMES if name in names), None)
    tool = _csv_tool(names, pairs)
    if tool == "aiu-smi":  # a label is a name without spaces and a unit, known or not
        pairs = [
            pair if i in time else _first_word(label) for i, (pair, label) in enumerate(zip(pairs, labels))
        ]
    columns = []
    for i, (name, unit) in enumerate(pairs):
        if i in time or i == device:
            continue
        columns.append((i, known_column(name, unit, tool == "aiu-smi")))
    return LogHeader(tool, separator, len(labels), time, device, _distinct(columns))


def text_header(line: bytes) -> LogHeader | None:
    """Return what a `#ID Date Time ...` line says (aiu-smi, and nvidia-smi dmon -o DT), or None."""
    names = line.decode("utf-8", "replace").strip().lstrip("\ufeff#").split()
    lower = [name.lower() for name in names]
    if len(names) < 4 or "date" not in lower or "time" not in lower:
        return None
    time = (lower.index("date"), lower.index("time"))
    device = next((lower.index(name) for name in DEVICE_NAMES if name in lower), None)
    aiu = "id" in lower
    columns = [
        (i, known_column(name, "", aiu)) for i, name in enumerate(names) if i not in time and i != device
    ]
    return LogHeader("aiu-smi" if aiu else "nvidia-smi", None, len(names), time, device, _distinct(columns))


def with_units(header: LogHeader, line: bytes) -> LogHeader:
    """Return the header with the units of the `#   YYYYMMDD HH:MM:SS % W ...` line under it.

    The line names no unit for the device in aiu-smi's layout, so it is aligned by where its date stands.
    """
    units = line.decode("utf-8", "replace").strip().lstrip("#").split()
    dated = next((i for i, unit in enumerate(units) if unit.upper().startswith("YYYY")), None)
    if dated is None:
        return header
    shift = header.time[0] - dated
    if len(units) + shift != header.cells:
        return header
    columns = tuple(
        (i, known_column(column.name, units[i - shift], header.tool == "aiu-smi"))
        for i, column in header.columns
    )
    return LogHeader(header.tool, None, header.cells, header.time, header.device, columns)


def _time_cells(names: list[str]) -> tuple[int, ...]:
    if "date" in names and "time" in names:
        return (names.index("date"), names.index("time"))
    return next(((names.index(name),) for name in TIME_NAMES if name in names), ())


def _csv_tool(names: list[str], pairs: list[tuple[str, str]]) -> str:
    if "id" in names and ("Date", "YYYYMMDD") in pairs and ("Time", "HH:MM:SS") in pairs:
        return "aiu-smi"
    joined = ",".join(names)
    if "power.draw" in joined or "utilization.gpu" in joined or "memory.used" in joined:
        return "nvidia-smi"
    if "graphics_package_power" in joined or "gpu_use" in joined or "temperature_(sensor" in joined:
        return "rocm-smi"
    if "power_usage" in joined and "gfx" in joined:
        return "amd-smi"
    return ""


def _distinct(columns: list[tuple[int, LogColumn]]) -> tuple[tuple[int, LogColumn], ...]:
    """Number columns that bear the same name and unit, so that none hides another."""
    counts: dict[tuple[str, str], int] = {}
    result = []
    for i, column in columns:
        key = (column.name, column.unit)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > 1:
            column = LogColumn(
                f"{column.name}#{counts[key]}", column.unit, column.kind, column.meaning, column.warning
            )
        result.append((i, column))
    return tuple(result)
