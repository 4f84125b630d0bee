"""Where a store lies: a folder or a URL, with names in it that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import TracelaneError, UnreadableError
from ..remote.files import (
    is_url,
    list_remote,
    read_remote,
    remove_remote,
    shown_url,
    url_in,
    url_name,
    write_remote,
)


@dataclass(frozen=True)
class StorePlace:
    """A folder or bucket; names are relative and use `/`."""

    root: str

    @property
    def title(self) -> str:
        """What messages call it."""
        return shown_url(self.root) if is_url(self.root) else self.root

    @property
    def is_remote(self) -> bool:
        """Whether it lies behind a URL."""
        return is_url(self.root)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a part of a file, fewer bytes only at its end. Raises FileNotFoundError, UnreadableError."""
        if self.is_remote:
            return read_remote(url_in(self.root, name), offset, length)
        path = Path(self.root) / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise UnreadableError(f"{path}: {error.strerror}") from None
        with open(descriptor, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableError(f"{path}: is no regular file")
            file.seek(offset)
            if length is None:
                return file.read()
            data = b""
            while len(data) < length and (more := file.read(length - len(data))):
                data += more
            return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file in place of what was there, whole or not at all. Raises TracelaneError."""
        if self.is_remote:
            write_remote(url_in(self.root, name), data)
            return
        path = Path(self.root) / name
        temporary = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = str(path.with_name(f".{path.name}-{secrets.token_hex(6)}"))
            with open(temporary, "xb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError as error:
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise TracelaneError(f"{path} cannot be written: {error.strerror or error}") from None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder of the store, sorted; [] where it is not there."""
        if self.is_remote:
            entries = list_remote(url_in(self.root, folder))
            return sorted(url_name(entry.url) for entry in entries if not entry.is_folder)
        try:
            with os.scandir(Path(self.root) / folder) as entries_here:
                return sorted(
                    entry.name for entry in entries_here if entry.name[:1] != "." and entry.is_file()
                )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UnreadableError(f"{self.root}/{folder}: {error.strerror}") from None

    def remove(self, name: str) -> None:
        """Remove a file; nothing where it is gone already."""
        if self.is_remote:
            remove_remote(url_in(self.root, name))
        else:
            with contextlib.suppress(OSError):
                (Path(self.root) / name).unlink()
