"""Indexes in a store: a folder of columns as one tar, put back where it can be opened."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

from ..base.errors import UnreadableError
from ..base.private import make_private_folder, write_private
from ..index.store import Index
from ..index.version import MANIFEST
from .layout import RecordName
from .place import StorePlace

MOST_FILES = 4096
_FILE = re.compile(r"[A-Za-z0-9_.]+\.(?:table|json|[iuf][1248])|" + re.escape(MANIFEST))


def write_index(place: StorePlace, record: RecordName, index: Index) -> None:
    """Write the index of a rank into a store. Raises TracelaneError."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(index.folder.iterdir()):
            if path.is_file() and _FILE.fullmatch(path.name):
                entry = tarfile.TarInfo(path.name)
                entry.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(entry, file)
    place.write(record.index_name, body.getvalue())


def stored_index(place: StorePlace, record: RecordName, folder: Path) -> Index | None:
    """Return the index of a rank, unpacked into a folder; None where the store has none.

    Raises UnreadableError for an archive that holds anything but an index, DamagedIndexError.
    """
    try:
        data = place.read(record.index_name)
    except FileNotFoundError:
        return None
    make_private_folder(folder)
    title = f"{place.title}/{record.index_name}"
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for count, entry in enumerate(archive):
                file = archive.extractfile(entry) if entry.isreg() else None
                if file is None or count >= MOST_FILES or not _FILE.fullmatch(entry.name):
                    raise UnreadableError(f"{title}: holds {entry.name!r}, which is no part of an index")
                write_private(folder / entry.name, file.read())
    except (tarfile.TarError, EOFError) as error:
        raise UnreadableError(f"{title}: {error}") from None
    return Index.open(folder)
