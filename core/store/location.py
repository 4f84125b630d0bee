"""Where a store lies: a folder or a URL, with names in it that are written whole or not at all.

A store may come from anybody: no link in it is followed, so that no name leads outside. The store's folder
itself may be a link, as the user names it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import posixpath
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from ..base.errors import TracelaneError, UnreadableError
from ..base.private import reason_of
from ..read.remote_files import (
    Item,
    Result,
    each_at_once,
    is_url,
    list_remote,
    open_remote,
    read_remote,
    remove_remote,
    shown_url,
    url_in,
    url_name,
    write_remote,
)

HIDDEN = "."
"""Names of files that are being written begin with it."""
ATTEMPTS = 5
"""So often a file is written: another run may take one for left over in the moment before it is locked."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class StoreLocation:
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

    def open(self, name: str) -> IO[bytes]:
        """Return a file to be read. Raises FileNotFoundError, UnreadableError."""
        if self.is_remote:
            return open_remote(url_in(self.root, name))
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        with self._errors(name), self._folder_of(name) as (folder, base):
            descriptor = os.open(base, flags, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise UnreadableError(f"{self.root}/{name}: it is no regular file")
        return open(descriptor, "rb", buffering=0)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return a part of a file, fewer bytes only at its end. Raises FileNotFoundError, UnreadableError."""
        if self.is_remote:
            return read_remote(url_in(self.root, name), offset, length)
        with self.open(name) as file, self._errors(name):
            length = min(length, max(0, os.fstat(file.fileno()).st_size - offset))
            file.seek(offset)
            data = b""
            while len(data) < length and (more := file.read(length - len(data))):
                data += more
            return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file in place of what was there, whole or not at all. Raises TracelaneError."""
        if self.is_remote:
            write_remote(url_in(self.root, name), data)
            return
        try:
            os.makedirs(posixpath.dirname(f"{self.root}/{name}"), exist_ok=True)
            with self._folder_of(name) as (folder, base):
                for attempt in range(ATTEMPTS):
                    try:
                        _write(folder, base, data)
                        return
                    except FileNotFoundError:
                        if attempt == ATTEMPTS - 1:
                            raise
        except OSError as error:
            raise TracelaneError(f"{self.root}/{name} cannot be written: {reason_of(error)}") from None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder of the store, sorted; [] where it is not there."""
        if self.is_remote:
            entries = list_remote(url_in(self.root, folder))
            names = (url_name(entry.url) for entry in entries if not entry.is_folder)
            return sorted(name for name in names if not name.startswith(HIDDEN))
        return sorted(name for name in self._names(folder) if not name.startswith(HIDDEN))

    def _names(self, folder: str) -> list[str]:
        try:
            inside = f"{folder}/" if folder else ""
            with (
                self._errors(folder),
                self._folder_of(inside) as (descriptor, _),
                os.scandir(descriptor) as entries,
            ):
                return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Remove a file; nothing where it is gone already."""
        if self.is_remote:
            remove_remote(url_in(self.root, name))
            return
        with contextlib.suppress(OSError), self._folder_of(name) as (folder, base):
            os.unlink(base, dir_fd=folder)

    def each(self, read: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return what reading each item gives, in their order; several at once where each is a request."""
        return each_at_once(read, items) if self.is_remote else [read(item) for item in items]

    def sweep(self, folder: str) -> None:
        """Remove what killed processes began to write into a folder and did not finish."""
        if self.is_remote:
            return  # objects appear whole
        with contextlib.suppress(OSError, UnreadableError):
            hidden = [name for name in self._names(folder) if name.startswith(HIDDEN)]
            with self._folder_of(f"{folder}/" if folder else "") as (descriptor, _):
                for name in hidden:
                    with contextlib.suppress(OSError):
                        _remove_unlocked(descriptor, name)

    @contextmanager
    def _folder_of(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield the folder in which a file lies, as a descriptor, and what the file is called there."""
        *folders, base = name.split("/")
        descriptor = os.open(self.root, _FOLDER)
        try:
            for each in folders:
                inner = os.open(each, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor, base
        finally:
            os.close(descriptor)

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Turn what the system refuses into an UnreadableError that names the file; not FileNotFoundError."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            is_file = error.errno == errno.ENOTDIR
            reason = "its folder is a file or a link, which is not followed" if is_file else reason_of(error)
            raise UnreadableError(f"{self.root}/{name}: {reason}") from None


def _write(folder: int, name: str, data: bytes) -> None:
    """Write a file under a hidden name, locked meanwhile, and then give it its own. Raises OSError."""
    hidden = f"{HIDDEN}{name}-{secrets.token_hex(6)}"
    descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            _lock(descriptor)
            file.write(data)
            file.flush()
            os.replace(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(hidden, dir_fd=folder)
        raise


def _lock(descriptor: Any) -> bool:
    """Lock a file for as long as it is open; False where another process has, or the file system cannot."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_unlocked(folder: int, name: str) -> None:
    """Remove a hidden file that nobody writes any more. Raises OSError."""
    descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        if _lock(descriptor):
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(descriptor)
