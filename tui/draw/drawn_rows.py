"""Rows as they are drawn: plain values, kept by window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .runs import InstantCell, Run


@dataclass(frozen=True)
class SliceRow:
    runs: tuple[Run, ...]
    has_bars: bool = False  # what has no label tells how busy it is by its height


@dataclass(frozen=True)
class InstantRow:
    marks: tuple[InstantCell, ...]


@dataclass(frozen=True)
class SampleRow:
    """A counter series: (low, high) levels 0..8 per cell, and the value at each cell's end."""

    levels: tuple[tuple[int, int], ...]
    values: tuple[float, ...]
    series: str
    extent: tuple[float, float] | None = None  # least and greatest value of the series; None: it never varies


@dataclass(frozen=True)
class BusyRow:
    """Busy time of what a folded line stands for: levels 0..8, -1 where nothing lies, and colour keys."""

    levels: tuple[int, ...]
    keys: tuple[str, ...]
    hits: tuple[bool, ...] = ()  # per cell whether what is searched for lies in it; empty: nowhere
    hatched: tuple[bool, ...] = ()  # per cell whether its devices wait for a peer; empty: nowhere


DrawnRow: TypeAlias = SliceRow | InstantRow | SampleRow | BusyRow
