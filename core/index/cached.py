"""What lies in the cache: listed, remembered as used, removed."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .cache import LOCK, cache_root, discard, in_use, seconds_since, sweep, unread
from .version import FORMAT_VERSION, MANIFEST


@dataclass(frozen=True)
class CacheEntry:
    """One index in the cache."""

    key: str
    folder: Path
    path: str  # of the trace it was made of
    bytes: int
    slices: int
    used: float  # seconds since the epoch, last opened
    current: bool  # False: of another format version, never opened again
    in_use: bool


def list_cache(index_dir: Path | None = None) -> list[CacheEntry]:
    """Return the indexes in the cache, those used last first."""
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
    """Remember that an index was opened now."""
    try:
        os.utime(folder)
    except OSError:
        return


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
    """Remove indexes not opened for `older_than` seconds (None: all) and all leftovers.

    Returns (how many removed, their bytes, how many stay because they are in use).
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
