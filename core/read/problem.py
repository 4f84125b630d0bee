"""What went wrong while reading; apart from the columns, so that no numpy is loaded to open a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One kind of trouble met while reading: how often, where first (byte offset), in plain words."""

    kind: str  # "repaired", "oversized", "unreadable", "truncated", "no usable time", "clamped time", …
    count: int
    offset: int | None
    message: str
