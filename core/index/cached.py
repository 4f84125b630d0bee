"""What lies in the cache: listed, remembered as used, removed; and its limit.

An index that would not fit is refused, those opened longest ago are removed. The command that needs the room
says what it removes; `tracelane cache list` lists it later. Never removed are indexes that are open, that
were opened within the last hour, or that the command itself reads.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..base.errors import CacheError, UsageError
from ..base.late_pattern import late_pattern
from ..base.private import read_private, settings_table, write_private
from ..base.units import format_bytes
from .cache import LOCK, IndexLocation, cache_root, discard, in_use, seconds_since, sweep, unread
from .version import FORMAT_VERSION, MANIFEST

if TYPE_CHECKING:
    from ..read.source import Source


class CacheEntry(NamedTuple):
    key: str
    folder: Path
    path: str  # of the trace it was made of
    bytes: int
    slices: int
    used: float  # seconds since the epoch, last opened
    current: bool  # False: of another format version, never opened again
    in_use: bool


def list_cache(index_dir: Path | None = None) -> list[CacheEntry]:
    root = index_dir if index_dir is not None else cache_root()
    entries: list[CacheEntry] = []
    for version in () if root is None else _folders(root):
        for folder in _folders(version) if version.name.startswith("v") else ():
            if folder.name.startswith(".") or not os.path.isfile(folder / MANIFEST):
                continue
            entries.append(_entry(folder, version.name == f"v{FORMAT_VERSION}"))
    return sorted(entries, key=lambda entry: -entry.used)


def _folders(folder: Path) -> list[Path]:
    """Return what lies in a folder; nothing where it is none or may not be looked into."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _entry(folder: Path, current: bool) -> CacheEntry:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        manifest = {}
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    used = _used(folder)
    read_report = manifest.get("read_report")
    slices = int(read_report.get("slices", 0)) if isinstance(read_report, dict) else 0
    read = in_use(folder.parent / f"{LOCK}{folder.name}")
    return CacheEntry(folder.name, folder, str(manifest.get("path", "")), size, slices, used, current, read)


def _used(folder: Path) -> float:
    """Return when an index was opened last, seconds since the epoch; 0 where it is gone."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def touch(folder: Path) -> None:
    with suppress(OSError):
        os.utime(folder)


def remove_entry(entry: CacheEntry) -> bool:
    """Remove an index and its locks; False where that cannot be done, or where a process reads it or has
    opened it since it was listed.
    """
    lock = entry.folder.parent / f"{LOCK}{entry.key}"
    with unread(lock) as is_unread, suppress(OSError):
        if is_unread and _used(entry.folder) == entry.used and discard(entry.folder):
            lock.unlink(missing_ok=True)
            lock.with_name(f"{lock.name}.build").unlink(missing_ok=True)
            return True
    return False


def clear_cache(index_dir: Path | None = None, older_than: float | None = None) -> tuple[int, int, int]:
    """Remove indexes not opened for `older_than` seconds (None: all) and all leftovers. Returns (how many
    removed, their bytes, how many stay because they are in use).
    """
    root = index_dir if index_dir is not None else cache_root()
    removed = size = in_use_count = 0
    for entry in list_cache(index_dir):
        if older_than is not None and seconds_since(entry.used) < older_than:
            continue
        if entry.in_use or not remove_entry(entry):
            in_use_count += 1
            continue
        removed, size = removed + 1, size + entry.bytes
    for version in () if root is None else _folders(root):
        if version.name.startswith("v"):
            sweep(version)
    return removed, size, in_use_count


LIMIT = "TRACELANE_CACHE_LIMIT"
DEFAULT = 20 << 30
"""Bytes that the cache may take by default."""
NONE = "none"
UNLIMITED = sys.maxsize
FRESH_S = 3600.0
"""Indexes that were opened within this many seconds stay."""
INDEX_SHARE = 0.15
"""Bytes of an index per byte of text: 0.09 to 0.18 for all real traces of the corpus above 1 MB."""
MIN_INDEX = 4 << 10
INFLATED = 13
"""A compressed trace unpacks to about this many times its size."""
MIN_WORK = 256 << 10
"""A file counts as so many bytes of text at least."""
EVICTED = "evicted.json"
MAX = 20
"""How many removed indexes `tracelane cache list` remembers."""
MAX_REMEMBERED = 1 << 20
"""Bytes of the file that remembers them."""
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TEXT = late_pattern(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


class Evicted(NamedTuple):
    """An index that was removed to keep the limit."""

    when: float  # seconds since the epoch
    path: str  # of the trace
    bytes: int


def size_of(text: str) -> int | None:
    """Return a size such as 500M or 20GiB in bytes, UNLIMITED for "none"; None where the text is no size."""
    if text.strip().lower() == NONE:
        return UNLIMITED
    match = _TEXT.fullmatch(text)
    return None if match is None else int(float(match[1]) * 1024 ** _UNITS[match[2].lower()])


def cache_limit() -> int | None:
    """Return how many bytes of indexes may be kept: what the environment says, else the settings, else None.
    UsageError where the environment's value is no size.
    """
    text = os.environ.get(LIMIT, "")
    if text.strip():
        size = size_of(text)
        if size is None:
            raise UsageError(f"{LIMIT}={text!r} is no size: write 500M, 20G or none")
        return size
    return size_of(str(settings_table("cache").get("limit", "")))


def limit_of(root: Path, given: int | None = None) -> int:
    """Return the limit for the indexes below a root: the one given, else that of environment or settings,
    else the default for the cache and no limit for another folder. Raises as `cache_limit`.
    """
    limit = cache_limit() if given is None else given
    if limit is None:
        return DEFAULT if root == cache_root() else UNLIMITED
    return limit


class IndexJob(NamedTuple):
    source: Source
    location: IndexLocation  # where its index belongs
    work: int  # estimated bytes of text
    bytes: int  # that its index takes, about

    @classmethod
    def of(cls, source: Source, location: IndexLocation) -> IndexJob:
        text = source.size * (1 if source.packing == "plain" else INFLATED)
        return cls(source, location, max(text, MIN_WORK), int(text * INDEX_SHARE) + MIN_INDEX)

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def size(self) -> int:
        return self.source.size


def check_room(planned: Sequence[IndexJob], root: Path, limit: int) -> None:
    """Raise CacheError where planned indexes exceed the limit of a root or the room on its disk."""
    need = sum(one.bytes for one in planned)
    what = f"the index of {planned[0].path}" if len(planned) == 1 else f"the indexes of {len(planned)} traces"
    would = f"{what} would take about {format_bytes(need)}"
    with suppress(OSError):
        from shutil import disk_usage

        free = disk_usage(root).free
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
    keys = {one.location.key for one in planned}
    staying = sum(entry.bytes for entry in list_cache(root) if entry.key not in keys and _stays(entry))
    if need + staying > limit:
        why = "indexes that are open or were opened within the last hour"
        raise CacheError(f"{may}, of which {why} take {format_bytes(staying)}: {way_out}")


def keep_within(limit: int, root: Path, sparing: str) -> tuple[str, ...]:
    """Remove indexes below a root, those used longest ago first, until the rest takes at most `limit` bytes;
    return a line that says what was removed. Indexes that are open, fresh, or have the key `sparing` stay.
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
    what = f"{'indexes' if more else 'index'} of {removed[0].path}{more} ({size})"
    return (f"the cache may hold {format_bytes(limit)}: removed the {what}",)


def _stays(entry: CacheEntry) -> bool:
    return seconds_since(entry.used) < FRESH_S or entry.in_use


def evicted(root: Path | None = None) -> tuple[Evicted, ...]:
    """Return the indexes that were removed last below a root (by default the cache), the oldest first."""
    root = cache_root() if root is None else root
    try:
        lines = json.loads(read_private(root / EVICTED, MAX_REMEMBERED)) if root is not None else []
        return tuple(Evicted(float(when), str(path), int(size)) for when, path, size in lines)
    except (OSError, ValueError, TypeError, RecursionError):
        return ()


def _remember(root: Path, more: list[Evicted]) -> None:
    """Write down what was removed. A failure is ignored: only the list would be incomplete."""
    lines = [*evicted(root), *more][-MAX:]
    with suppress(OSError):
        write_private(root / EVICTED, json.dumps(lines).encode())
