"""What is to be known of the times of a file: what they count from, and whether they can only be ns."""

from __future__ import annotations

import numpy as np

from ..base.units import format_count
from ..read.source import Source
from .store import Index

SLACK_NS = 10 * 365 * 86400 * 10**9
"""A clock that is set wrong is so far ahead at most."""


def looks_like_ns(index: Index, now_ns: int) -> bool:
    """Tell whether a file was read in µs and can only hold ns: read so it lies in the future, by whatever
    clock, as none counts from before 1970, and read as ns it does not. `now_ns`: since 1970.
    """
    if index.ts_unit == "ns" or (isinstance(index.source, Source) and index.source.becomes_json):
        return False
    filled = index.lanes[(index.lanes["slices"] > 0) | (index.lanes["end"] > index.lanes["start"])]
    if not len(filled):
        return False
    middle = int(np.sort(filled["start"])[len(filled) // 2]) + index.origin_ns
    base = index.manifest.get("base_time_ns") or 0
    latest = now_ns + SLACK_NS
    return base + middle > latest >= base + middle // 1000


def time_notes(index: Index, now_ns: int) -> tuple[str, ...]:
    """Return what is to be known of the times of a file: what they count from, and that they look like ns."""
    notes = []
    if origin := index.origin_ns:
        unit = 1 if index.ts_unit == "ns" else 1000
        notes.append(
            f"times count from ts {format_count(origin // unit)}, which is too large for ns in 64 bits"
        )
    if looks_like_ns(index, now_ns):
        notes.append("ts looks like ns: open the trace with --ts-unit ns")
    return tuple(notes)
