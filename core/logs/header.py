"""Headers of logs: which cell is the time, which the device, what the others mean, and which of those are not
to be trusted; and which files beside a trace begin with one of aiu-smi. Meanings and warnings are those of
aiu-smi's README and of the issues of torch-spyre that speak of them. A column that nobody knows is shown as
it is.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from ..base.private import open_regular
from ..trace import Trace


class ColumnKind(StrEnum):
    """What a column measures, as far as alignment and energy need to know."""

    HOST = "host"  # of the machine, not of the card: there even where the card is not ready
    POWER = "power"
    TEMPERATURE = "temperature"
    BUSY = "busy"
    BANDWIDTH = "bandwidth"
    REQUESTS = "requests"
    MEMORY = "memory"
    COMPUTE = "compute"
    OTHER = "other"


class LogColumn(NamedTuple):
    """One metric of a log: its name and unit as the header has them, and what is known about it."""

    name: str
    unit: str = ""
    kind: ColumnKind = ColumnKind.OTHER
    meaning: str = ""
    warning: str = ""  # when and why its values may be wrong; empty where they are not known to be
    numeric: bool = True  # False where no cell is a number: it has no series, only the log's own line

    @property
    def label(self) -> str:
        """Return name and unit as in a lane's title."""
        return f"{self.name} {self.unit}".rstrip()

    @property
    def watts(self) -> float | None:
        """Return what to multiply a value by to get watts, or None where this is no power."""
        return WATTS.get(self.unit) if self.kind is ColumnKind.POWER else None


WATTS = {"W": 1.0, "w": 1.0, "Watts": 1.0, "watts": 1.0, "mW": 1e-3, "uW": 1e-6, "µW": 1e-6, "kW": 1e3}
UNITS = {
    ColumnKind.POWER: tuple(WATTS),
    ColumnKind.BUSY: ("%", "percent", "Percent", "pct"),
    ColumnKind.TEMPERATURE: ("C", "c", "°C", "℃", "degC", "deg C", "Celsius", "celsius", "Celsius Degree"),
}
"""The units of what is summed up; in another, °F say, a column is drawn without a meaning."""
MEASURED = tuple(UNITS)
"""The kinds of what is summed up, by range of time; their lanes are shown at first."""

RSVMEM_WARNING = "known to be wrong on the new stack, where it reads 0"
PT_ACT_WARNING = "estimated from power: wrong or unsupported on the new stack and below about 27 W"
PCI_WARNING = "reads 0 or too low in VF mode, and under asynchronous DMA unless senlib is set up for it"
MEMORY_WARNING = (
    "reads 0 in VF mode with old settings, and under asynchronous DMA unless senlib is set up for it"
)
RDMA_WARNING = "reads 0 on the new stack, which moves data by HDMA, not RDMA"
BUSY_WARNING = "wrong in VF mode with old settings, where the data rates that it is made from read 0"
POWER_WARNING = "the first value after a pause averages over time that was not measured, and reads too low"
TRACKED_WARNING = "only with FLEX_ENABLE_MEMORY_TRACKING=1; 0 without it"

_K = ColumnKind
# name -> kind, meaning, warning
AIU: dict[str, tuple[ColumnKind, str, str]] = {
    "hostcpu": (_K.HOST, "processor use of the host, summed over its cores: 100 is one core", ""),
    "hostmem": (_K.HOST, "memory in use on the host", ""),
    "pwr": (_K.POWER, "power drawn by the card, mean over the interval", POWER_WARNING),
    "tempr": (_K.TEMPERATURE, "temperature of the card at the end of the interval", ""),
    "gtemp": (_K.TEMPERATURE, "temperature of the card's hottest sensor at the end of the interval", ""),
    "busy": (_K.BUSY, "share of 10 ms samples in which the card moved any data", BUSY_WARNING),
    "rdmem": (_K.BANDWIDTH, "read from the card's memory", MEMORY_WARNING),
    "wrmem": (_K.BANDWIDTH, "written to the card's memory", MEMORY_WARNING),
    "rxpci": (_K.BANDWIDTH, "received over PCIe", PCI_WARNING),
    "txpci": (_K.BANDWIDTH, "sent over PCIe", PCI_WARNING),
    "rdrdma": (_K.BANDWIDTH, "read by other cards over RDMA", RDMA_WARNING),
    "wrrdma": (_K.BANDWIDTH, "written to other cards over RDMA", RDMA_WARNING),
    "n_rdmem": (_K.REQUESTS, "read requests to the card's memory", MEMORY_WARNING),
    "n_wrmem": (_K.REQUESTS, "write requests to the card's memory", MEMORY_WARNING),
    "n_rxpci": (_K.REQUESTS, "requests received over PCIe", PCI_WARNING),
    "n_txpci": (_K.REQUESTS, "requests sent over PCIe", PCI_WARNING),
    "n_rdrdma": (_K.REQUESTS, "read requests over RDMA", RDMA_WARNING),
    "n_wrrdma": (_K.REQUESTS, "write requests over RDMA", RDMA_WARNING),
    "rsvmem": (_K.MEMORY, "memory of the card that is reserved", RSVMEM_WARNING),
    "peakmem": (_K.MEMORY, "highest use of the card's memory so far", TRACKED_WARNING),
    "actmem": (_K.MEMORY, "memory of the card in use at the end of the interval", TRACKED_WARNING),
    "pt_act": (_K.COMPUTE, "share of time in which the processing tiles compute", PT_ACT_WARNING),
    "pt_active": (_K.COMPUTE, "share of time in which the processing tiles compute", PT_ACT_WARNING),
}

# Columns of other tools: (pattern for the lower-case name, kind, unit where the header gives none, meaning)
OTHERS: tuple[tuple[re.Pattern[str], ColumnKind, str, str], ...] = tuple(
    (re.compile(pattern), kind, unit, meaning)
    for pattern, kind, unit, meaning in (
        (r"power[._ ](limit|cap|max|min|default)|enforced|max.*power", _K.OTHER, "W", "a limit of the power"),
        (r"^power\.draw|^pwr$|^gpu power$|graphics package power|socket power", _K.POWER, "W",
         "power drawn by the card"),
        (r"^power_usage$|^power$|^watts?$|current_power|power_w$", _K.POWER, "W", "power drawn by the card"),
        (r"^utilization\.gpu$|^gpu use$|^sm$|^gfx(_util|_activity)?$|^gpu[ _]util(ization)?$|^busy$", _K.BUSY,
         "%", "share of time in which the device ran any kernel"),
        (r"^utilization\.memory$|^mem$|memory activity|^mem_util", _K.COMPUTE, "%",
         "use of the memory's bandwidth"),
        (r"temp.*(limit|max|threshold|slowdown|shutdown)", _K.OTHER, "C",
         "a limit of the temperature, or how far it is"),
        (r"temp", _K.TEMPERATURE, "C", "temperature"),
        (r"memory\.(used|free|total|reserved)|vram|^fb$|mem.*use", _K.MEMORY, "", "memory of the device"),
        (r"^rxpci$|^txpci$", _K.BANDWIDTH, "", "data over PCIe"),
    )
)  # fmt: skip


def known_column(name: str, unit: str, aiu: bool) -> LogColumn:
    """Return what is known of a column; one that nobody knows comes back as it is."""
    if aiu:
        entry = AIU.get(name.lower())
        if entry is not None and (not unit or unit in UNITS.get(entry[0], (unit,))):
            return LogColumn(name, unit, *entry)
    for pattern, kind, default_unit, meaning in OTHERS:
        if pattern.search(name.lower()):
            if unit and unit not in UNITS.get(kind, (unit,)):
                continue
            return LogColumn(name, unit or default_unit, kind, meaning)
    return LogColumn(name, unit, _K.POWER if unit in WATTS and "limit" not in name.lower() else _K.OTHER)


class LogHeader(NamedTuple):
    """How the rows that follow a header are to be read; cells are counted from 0."""

    tool: str  # "aiu-smi", "nvidia-smi", "rocm-smi", "amd-smi", "xpu-smi", or "" where unknown
    separator: bytes | None  # None: white space
    cells: int
    time: tuple[int, ...]  # the cells that make up the time: one, or date and time of day
    device: int | None
    columns: tuple[tuple[int, LogColumn], ...]

    @property
    def format(self) -> str:
        """Return "text" or "csv"."""
        return "text" if self.separator is None else "csv"


TIME_NAMES = (
    "timestamp", "time_stamp", "datetime", "date_time", "time", "date", "ts", "epoch", "unixtime",
    "unix_time", "timestamp_ns", "timestamp_us", "timestamp_ms", "time_ns", "time_s", "time_ms", "elapsed",
)  # fmt: skip
DEVICE_NAMES = (
    "id", "index", "gpu_index", "gpu_id", "device_id", "gpu", "idx", "device", "card", "dev",
    "deviceid", "gpuid", "pci.bus_id", "gpu_bus_id", "bdf", "uuid", "gpu_uuid",
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


def header_in(line: bytes) -> LogHeader | None:
    text = line.strip().removeprefix(b"\xef\xbb\xbf")
    return text_header(line) if text.startswith(b"#") and b"," not in text else csv_header(line)


def csv_header(line: bytes) -> LogHeader | None:
    """Return what a CSV header says, or None if the line is none: it needs a column of times and others."""
    text = line.decode("utf-8", "replace").strip().lstrip("\ufeff").lstrip("#").strip()
    separator = max((b",", b";", b"\t"), key=line.count)
    labels = text.split(separator.decode())
    if len(labels) < 2:
        return None
    pairs = [name_and_unit(label) for label in labels]
    names = [name.lower().replace(" ", "_") for name, _ in pairs]
    time: tuple[int, ...] = next(((names.index(name),) for name in TIME_NAMES if name in names), ())
    if {"date", "time"} <= set(names):
        time = names.index("date"), names.index("time")
    if not time:
        return None
    device = next((names.index(name) for name in DEVICE_NAMES if name in names), None)
    tool = _csv_tool(names, pairs)
    if tool == "aiu-smi":  # a label is a name without spaces and a unit, known or not
        words = [label.strip().partition(" ") for label in labels]
        pairs = [(name, unit.strip()) for name, _, unit in words]
    columns = [
        (i, known_column(name, unit, tool == "aiu-smi"))
        for i, (name, unit) in enumerate(pairs)
        if i not in time and i != device
    ]
    return LogHeader(tool, separator, len(labels), time, device, _distinct(columns))


def text_header(line: bytes) -> LogHeader | None:
    """Return what a `#ID Date Time ...` line says (aiu-smi, and nvidia-smi dmon -o DT or T), or None."""
    names = line.decode("utf-8", "replace").strip().lstrip("\ufeff#").split()
    lower = [name.lower() for name in names]
    if len(names) < 4 or "time" not in lower:
        return None
    time = tuple(lower.index(name) for name in ("date", "time") if name in lower)
    device = next((lower.index(name) for name in DEVICE_NAMES if name in lower), None)
    aiu = "id" in lower
    columns = [
        (i, known_column(name, "", aiu)) for i, name in enumerate(names) if i not in time and i != device
    ]
    return LogHeader("aiu-smi" if aiu else "nvidia-smi", None, len(names), time, device, _distinct(columns))


UNITS_OF_TIME = re.compile(rb"YYYYMMDD|HH:MM:SS", re.IGNORECASE)


def with_units(header: LogHeader, line: bytes) -> LogHeader:
    """Return the header with the units of the `# YYYYMMDD HH:MM:SS % W ...` line under it. The line names no
    unit for the device in aiu-smi's layout, so it is aligned by where its date stands.
    """
    units = line.decode("utf-8", "replace").strip().lstrip("#").split()
    dated = next((i for i, unit in enumerate(units) if UNITS_OF_TIME.match(unit.encode())), None)
    if dated is None:
        return header
    shift = header.time[0] - dated
    if len(units) + shift != header.cells:
        return header
    columns = tuple(
        (i, known_column(column.name, units[i - shift], header.tool == "aiu-smi"))
        for i, column in header.columns
    )
    return header._replace(columns=columns)


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
    if "deviceid" in names and "gpu_" in joined:
        return "xpu-smi"
    return ""


def _distinct(columns: list[tuple[int, LogColumn]]) -> tuple[tuple[int, LogColumn], ...]:
    """Number columns that bear the same name and unit, so that none hides another."""
    counts: dict[tuple[str, str], int] = {}
    result = []
    for i, column in columns:
        key = (column.name, column.unit)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > 1:
            column = column._replace(name=f"{column.name}#{counts[key]}")
        result.append((i, column))
    return tuple(result)


LOG_SUFFIXES = (".txt", ".csv", ".log")
HEAD = 4096
MAX_FILES = 1000
"""The most files of a folder that are looked at for a log."""


def nearby_logs(trace: Trace) -> list[Path]:
    """Return the aiu-smi logs that lie in the folders of a trace's files, by their first line."""
    paths = [Path(source.path) for source in trace.sources]
    folders = dict.fromkeys(path.parent for path in paths if path.is_file())
    logs = []
    for folder in folders:
        try:
            files = sorted(p for p in folder.iterdir() if p.suffix.lower() in LOG_SUFFIXES)[:MAX_FILES]
        except OSError:
            continue
        logs += [path for path in files if is_aiu_smi(path)]
    return logs


def is_aiu_smi(path: Path) -> bool:
    try:
        with open(open_regular(path), "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    for line in head.splitlines()[:20]:
        if (header := header_in(line)) is not None:
            return header.tool == "aiu-smi"
    return False
