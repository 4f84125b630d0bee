"""How large the cache may grow: what would not fit is refused, what was opened longest ago goes.

What goes is said by the command that made it go, and remembered for `tracelane cache list`. An index that is
open, was opened within the last hour, or is one of those that a command was given never goes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from ..base.errors import CacheError, UsageError
from ..base.private import read_private, write_private
from ..base.settings import settings_table
from ..base.units import format_bytes
from .cache import cache_root, seconds_since
from .cached import CacheEntry, list_cache, remove_entry

LIMIT = "TRACELANE_CACHE_LIMIT"
DEFAULT = 20 << 30
"""Bytes that the cache may take where nobody says otherwise."""
NONE = "none"
UNLIMITED = sys.maxsize
FRESH_S = 3600.0
"""Indexes opened within so many seconds stay."""
INDEX_SHARE = 0.15
"""Bytes of an index per byte of text: 0.09 to 0.18 for all real traces of the corpus above 1 MB."""
INDEX_LEAST = 4 << 10
INFLATED = 13
"""Packed traces hold about so many times their size."""
EVICTED = "evicted.json"
MOST = 20
"""Removed indexes that are remembered."""
MOST_REMEMBERED = 1 << 20
"""Bytes of the file that remembers them."""
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


def limit_of(root: Path, given: int | None = None) -> int:
    """Return the limit of the indexes below a root: what was given, else what environment or settings say,
    else the default for the cache and none for another folder. Raises as `cache_limit`.
    """
    limit = cache_limit() if given is None else given
    if limit is None:
        return DEFAULT if root == cache_root() else UNLIMITED
    return limit


def index_size(size: int, packed: bool) -> int:
    """Return about how many bytes the index of a trace takes that has so many bytes on disk."""
    return int(size * (INFLATED if packed else 1) * INDEX_SHARE) + INDEX_LEAST


@dataclass(frozen=True)
class PlannedIndex:
    """An index that is to be built."""

    key: str
    path: str  # of the trace
    bytes: int  # about


def check_room(planned: Sequence[PlannedIndex], root: Path, limit: int) -> None:
    """Raise CacheError where indexes would not fit below a root, within its limit or on its disk."""
    need = sum(one.bytes for one in planned)
    what = f"the index of {planned[0].path}" if len(planned) == 1 else f"the indexes of {len(planned)} traces"
    would = f"{what} would take about {format_bytes(need)}"
    with suppress(OSError):
        free = shutil.disk_usage(root).free
        if need > free:
            freeing = "free some (tracelane cache clear removes indexes)"
            raise CacheError(
                f"{would}, and {root} has {format_bytes(free)} left: {freeing}, or name another folder with "
                "--index-dir"
            )
    if limit == UNLIMITED:
        return
    may = f"{would}, and {root} may hold {format_bytes(limit)}"
    way_out = "allow more with --cache-limit, or name another folder with --index-dir"
    if need > limit:
        raise CacheError(f"{may}: {way_out}")
    keys = {one.key for one in planned}
    staying = sum(entry.bytes for entry in list_cache(root) if entry.key not in keys and _stays(entry))
    if need + staying > limit:
        why = "indexes that are open or were opened within the last hour"
        raise CacheError(f"{may}, of which {why} take {format_bytes(staying)}: {way_out}")


def keep_within(limit: int, root: Path, sparing: str) -> tuple[str, ...]:
    """Remove indexes below a root until they take no more than `limit` bytes, those used longest ago first;
    return a line that says so where any were removed.

    Never one that is open, fresh, or has the key `sparing`.
    """
    if limit == UNLIMITED:
        return ()
    entries = list_cache(root)
    total = sum(entry.bytes for entry in entries)
    removed: list[CacheEntry] = []
    for entry in reversed(entries):
        if total <= limit:
            break
        if entry.key == sparing or _stays(entry):
            continue
        if remove_entry(entry):
            removed.append(entry)
            total -= entry.bytes
    if not removed:
        return ()
    now = time.time()
    _remember(root, [Evicted(now, entry.path, entry.bytes) for entry in removed])
    size = format_bytes(sum(entry.bytes for entry in removed))
    more = f" and {len(removed) - 1} more" if len(removed) > 1 else ""
    noun = "indexes" if more else "index"
    return (f"the cache may hold {format_bytes(limit)}: the {noun} of {removed[0].path}{more} ({size}) went",)


def _stays(entry: CacheEntry) -> bool:
    """Tell whether an index must not be removed."""
    return seconds_since(entry.used) < FRESH_S or entry.in_use


def evicted(root: Path | None = None) -> tuple[Evicted, ...]:
    """Return what was removed last below a root (else the cache's), in that order."""
    root = cache_root() if root is None else root
    try:
        lines = json.loads(read_private(root / EVICTED, MOST_REMEMBERED)) if root is not None else []
        return tuple(Evicted(float(when), str(path), int(size)) for when, path, size in lines)
    except (OSError, ValueError, TypeError, RecursionError):
        return ()


def _remember(root: Path, more: list[Evicted]) -> None:
    """Write down what was removed; where that cannot be done nothing but the memory of it is lost."""
    lines = [astuple(one) for one in (*evicted(root), *more)][-MOST:]
    with suppress(OSError):
        write_private(root / EVICTED, json.dumps(lines).encode())
