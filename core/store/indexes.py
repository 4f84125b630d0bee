"""Indexes in a store: a folder of columns as one tar, put back where it can be opened."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from ..base.errors import UnreadableError
from ..base.private import make_private_folder, open_private
from ..base.units import format_bytes
from ..index.store import Index
from ..index.version import MANIFEST
from .location import RecordName, StoreLocation

MAX_FILES = 4096
BLOCK = tarfile.BLOCKSIZE
AT_A_TIME = 1 << 20
"""Bytes that are copied at a time."""
_FILE = re.compile(r"[A-Za-z0-9_.]+\.(?:table|json|[iuf][1248])|" + re.escape(MANIFEST))


def write_index(location: StoreLocation, record: RecordName, index: Index) -> None:
    """Write the index of a rank into a store. Raises TracelaneError."""
    with tempfile.TemporaryFile() as body:
        with tarfile.open(fileobj=body, mode="w", format=tarfile.USTAR_FORMAT, encoding="utf-8") as archive:
            for path in sorted(index.folder.iterdir()):
                if path.is_file() and _FILE.fullmatch(path.name):
                    entry = tarfile.TarInfo(path.name)
                    entry.size = path.stat().st_size
                    with path.open("rb") as file:
                        archive.addfile(entry, file)
        body.seek(0)
        location.write(record.index_name, body.read())


def stored_index(location: StoreLocation, record: RecordName, folder: Path) -> Index | None:
    """Return the index of a rank, unpacked into a folder; None where the store has none.

    Raises UnreadableError for an archive that holds anything but an index, DamagedIndexError.
    """
    try:
        archive = location.open(record.index_name)
    except FileNotFoundError:
        return None
    title = f"{location.title}/{record.index_name}"
    make_private_folder(folder)
    with archive:
        size = archive.seek(0, os.SEEK_END)
        archive.seek(0)
        free = shutil.disk_usage(folder).free
        if size > free:
            raise UnreadableError(
                f"{title}: takes {format_bytes(size)}, and {folder} has {format_bytes(free)} left"
            )
        try:
            _unpack(archive, size, folder)
        except (ValueError, tarfile.TarError) as error:
            raise UnreadableError(f"{title}: {error}") from None
    return Index.open(folder)


def _unpack(archive: IO[bytes], size: int, folder: Path) -> None:
    """Write the files of an archive into a folder: plain ones alone, each looked at before it is written.

    Only headers of files are read: extensions of the format may claim any size and name. Raises ValueError,
    TarError.
    """
    names: set[str] = set()
    at = 0
    while (header := _exactly(archive, BLOCK)).strip(b"\0"):
        entry = tarfile.TarInfo.frombuf(header, "ascii", "surrogateescape")
        at += BLOCK
        if entry.type != tarfile.REGTYPE or not _FILE.fullmatch(entry.name):
            raise ValueError(f"holds {entry.name!r}, which is no part of an index")
        if entry.name in names or len(names) >= MAX_FILES:
            raise ValueError(f"holds {entry.name} twice, or too many files")
        if not 0 <= entry.size <= size - at:
            raise ValueError(f"{entry.name} is cut off")
        names.add(entry.name)
        with open(open_private(folder / entry.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            left = entry.size
            while left:
                data = _exactly(archive, min(left, AT_A_TIME))
                file.write(data)
                left -= len(data)
        padding = -entry.size % BLOCK
        _exactly(archive, padding)
        at += entry.size + padding


def _exactly(archive: IO[bytes], length: int) -> bytes:
    """Return so many bytes. Raises ValueError where the archive ends before."""
    data = b""
    while len(data) < length:
        more = archive.read(length - len(data))
        if not more:
            raise ValueError("ends too early")
        data += more
    return data
