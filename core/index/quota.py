"""How large the cache may grow, where TRACELANE_CACHE_SIZE says so: what was opened longest ago goes."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from ..base.errors import UsageError
from .cache import list_cache, remove_entry

SIZE = "TRACELANE_CACHE_SIZE"
FRESH_S = 60.0
"""Indexes used so lately stay: whoever built one is about to open it."""
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TEXT = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def cache_limit() -> int | None:
    """Return how many bytes of indexes may be kept, None without a limit; UsageError for what is no size."""
    text = os.environ.get(SIZE, "")
    if not text.strip():
        return None
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UsageError(f"{SIZE}={text!r} is no size: write 500M or 20G")
    return int(float(match[1]) * 1024 ** _UNITS[match[2].lower()])


def keep_within(limit: int, root: Path, sparing: str) -> tuple[int, int]:
    """Remove indexes below a root until they take no more than `limit` bytes, those used longest ago first.

    Never one that is open, fresh, or has the key `sparing`. Returns (how many were removed, their bytes).
    """
    entries = list_cache(root)
    total = sum(entry.bytes for entry in entries)
    removed = size = 0
    now = time.time()
    for entry in reversed(entries):
        if total - size <= limit:
            break
        if entry.in_use or entry.key == sparing or now - entry.used < FRESH_S:
            continue
        if remove_entry(entry):
            removed, size = removed + 1, size + entry.bytes
    return removed, size
