"""What the columns of telemetry logs mean, in which unit they come, and which of them are not to be trusted.

Meanings and warnings are those of aiu-smi's README and of the issues of torch-spyre that speak of them. A
column that is not in the table is shown as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True)
class LogColumn:
    """One metric of a log: its name and unit as the header has them, and what is known about it."""

    name: str
    unit: str = ""
    kind: ColumnKind = ColumnKind.OTHER
    meaning: str = ""
    warning: str = ""
    """When and why its values may be wrong; empty where they are not known to be."""
    numeric: bool = True
    """False where no cell is a number: such a column has no series, and is shown only as the log's own line.
    """

    @property
    def label(self) -> str:
        """Return name and unit as in a lane's title."""
        return f"{self.name} {self.unit}".rstrip()

    @property
    def watts(self) -> float | None:
        """Return what to multiply a value by to get watts, or None where this is no power."""
        return WATTS.get(self.unit) if self.kind is ColumnKind.POWER else None


WATTS = {"W": 1.0, "w": 1.0, "Watts": 1.0, "watts": 1.0, "mW": 1e-3, "uW": 1e-6, "µW": 1e-6, "kW": 1e3}

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
        (r"^power\.draw|^pwr$|graphics package power|socket power", _K.POWER, "W", "power drawn by the card"),
        (r"^power_usage$|^power$|^watts?$|current_power|power_w$", _K.POWER, "W", "power drawn by the card"),
        (r"^utilization\.gpu$|^gpu use$|^sm$|^gfx(_util|_activity)?$|^gpu_util(ization)?$|^busy$", _K.BUSY,
         "%", "share of time in which the device ran any kernel"),
        (r"^utilization\.memory$|^mem$|memory activity|^mem_util", _K.COMPUTE, "%",
         "use of the memory's bandwidth"),
        (r"temp", _K.TEMPERATURE, "C", "temperature"),
        (r"memory\.(used|free|total|reserved)|vram|^fb$|mem.*use", _K.MEMORY, "", "memory of the device"),
        (r"^rxpci$|^txpci$", _K.BANDWIDTH, "", "data over PCIe"),
    )
)  # fmt: skip


def known_column(name: str, unit: str, aiu: bool) -> LogColumn:
    """Return what is known of a column; one that nobody knows comes back as it is."""
    if aiu:
        entry = AIU.get(name.lower())
        if entry is not None:
            return LogColumn(name, unit, *entry)
    for pattern, kind, default_unit, meaning in OTHERS:
        if pattern.search(name.lower()):
            if kind is _K.POWER and unit and unit not in WATTS:
                continue
            return LogColumn(name, unit or default_unit, kind, meaning)
    return LogColumn(name, unit, _K.POWER if unit in WATTS and "limit" not in name.lower() else _K.OTHER)
