"""How large the cache may grow; what was opened longest ago goes, and what went is remembered."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from ..base.errors import UsageError
from ..base.settings import settings_table
from .cache import cache_root
from .cached import CacheEntry, list_cache, remove_entry

LIMIT = "TRACELANE_CACHE_LIMIT"
DEFAULT = 20 << 30
"""Bytes that the cache may take where nobody says otherwise."""
NONE = "none"
UNLIMITED = sys.maxsize
FRESH_S = 60.0
"""Indexes used so lately stay: whoever built one is about to open it."""
EVICTED = "evicted.json"
MOST = 20
"""Removed indexes that are remembered."""
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TEXT = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Evicted:
    """An index that was removed to keep the limit."""

    when: float  # seconds since the epoch
    path: str  # of the trace
    bytes: int


def size_of(text: str) -> int | None:
    """Return a size such as 500M or 20GiB in bytes, UNLIMITED for "none"; None where it is no size."""
    if text.strip().lower() == NONE:
        return UNLIMITED
    match = _TEXT.fullmatch(text)
    return None if match is None else int(float(match[1]) * 1024 ** _UNITS[match[2].lower()])


def cache_limit() -> int | None:
    """Return how many bytes of indexes may be kept as the environment says, else the settings; None where
    neither does. UsageError where the environment tells no size.
    """
    text = os.environ.get(LIMIT, "")
    if text.strip():
        size = size_of(text)
        if size is None:
            raise UsageError(f"{LIMIT}={text!r} is no size: write 500M, 20G or none")
        return size
    return size_of(str(settings_table("cache").get("limit", "")))


def limit_of(root: Path) -> int:
    """Return the limit of the indexes below a root: what was said, else the default for the cache and none
    for another folder. Raises as `cache_limit`.
    """
    limit = cache_limit()
    if limit is None:
        return DEFAULT if root == cache_root() else UNLIMITED
    return limit


def keep_within(limit: int, root: Path, sparing: str) -> None:
    """Remove indexes below a root until they take no more than `limit` bytes, those used longest ago first.

    Never one that is open, fresh, or has the key `sparing`.
    """
    if limit == UNLIMITED:
        return
    entries = list_cache(root)
    total = sum(entry.bytes for entry in entries)
    now = time.time()
    removed: list[CacheEntry] = []
    for entry in reversed(entries):
        if total <= limit:
            break
        if entry.in_use or entry.key == sparing or now - entry.used < FRESH_S:
            continue
        if remove_entry(entry):
            removed.append(entry)
            total -= entry.bytes
    if removed:
        _remember(root, [Evicted(now, entry.path, entry.bytes) for entry in removed])


def evicted(root: Path | None = None) -> tuple[Evicted, ...]:
    """Return what was removed last below a root (else the cache's), in that order."""
    root = cache_root() if root is None else root
    try:
        lines = json.loads((root / EVICTED).read_bytes()) if root is not None else []
        return tuple(Evicted(float(when), str(path), int(size)) for when, path, size in lines)
    except (OSError, ValueError, TypeError):
        return ()


def _remember(root: Path, more: list[Evicted]) -> None:
    """Write down what was removed; where that cannot be done nothing but the memory of it is lost."""
    lines = [astuple(one) for one in (*evicted(root), *more)][-MOST:]
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(prefix=".", dir=root)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(lines, file)
        os.replace(temporary, root / EVICTED)
