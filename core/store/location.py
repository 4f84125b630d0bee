"""Where a store lies and how it is laid out: names say whose a file is, so that a list of names tells what is
missing.

    tracelane-store.json        makes the folder a store; hints at where the traces lie, relative to it
    ranks/RANK-NAME-STATE-CONTENT.rank
                                the summary of one rank: hashes of its trace's name and state, and of itself
    groups/NUMBER.group         the summaries of 64 ranks once more, column by column: what is read first
    indexes/RANK-NAME-STATE.tar the index of one rank, where it was asked for

A file of `ranks` is never changed: other content has another name. Whoever writes a group lists `ranks` again
afterwards and writes it anew if something came meanwhile, so the last of several writers leaves all of it.

Files are written whole or not at all. A store may come from anybody: no link in it is followed, so that no
name leads outside. The store's folder itself may be a link, as the user names it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import posixpath
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from ..base.digest import blake2b
from ..base.errors import TracelaneError, UnreadableError
from ..base.numbers import whole_number
from ..base.private import reason_of
from ..base.threads import Item, Result, each_at_once
from ..read.remote_files import list_remote, open_remote, read_remote, remove_remote, write_remote
from ..read.source import Fingerprint
from ..read.urls import is_url, shown_url, url_in, url_name

HIDDEN = "."
"""Names of files that are being written begin with it."""
ATTEMPTS = 5
"""So often a file is written: another run may take one for left over in the moment before it is locked."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class StoreLocation(NamedTuple):
    """A folder or bucket; names are relative and use `/`."""

    root: str

    @property
    def title(self) -> str:
        """What messages call it."""
        return shown_url(self.root) if is_url(self.root) else self.root

    @property
    def is_remote(self) -> bool:
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
            names = [url_name(entry.url) for entry in entries if not entry.is_folder]
        else:
            names = self._names(folder)
        return sorted(name for name in names if not name.startswith(HIDDEN))

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


MANIFEST_NAME = "tracelane-store.json"
FORMAT, VERSION = "tracelane capture store", 5
RANKS, GROUPS, INDEXES = "ranks", "groups", "indexes"
GROUP_SIZE = 64
MAX_STORE_MANIFEST = 64 << 10
NO_RANK = "none"
UNREADABLE_STATE = "0" * 12
_GROUP = re.compile(r"(?:\d{6,9}|none)\.group")
_RECORD = re.compile(
    r"(?P<rank>\d{6,9}|none)-(?P<name>[0-9a-f]{12})-(?P<state>[0-9a-f]{12})-(?P<content>[0-9a-f]{12})\.rank"
)


@dataclass(frozen=True)
class RecordName:
    rank: int | None
    name: str  # hash of the trace's name
    state: str  # hash of what tells one state of the trace from another
    content: str

    def __str__(self) -> str:
        return f"{self.owner}-{self.state}-{self.content}.rank"

    @property
    def owner(self) -> str:
        """What is the same for all summaries of one trace."""
        return f"{NO_RANK if self.rank is None else f'{self.rank:06d}'}-{self.name}"

    @property
    def group(self) -> str:
        return f"{NO_RANK if self.rank is None else f'{self.rank // GROUP_SIZE:06d}'}.group"

    @property
    def index_name(self) -> str:
        return f"{INDEXES}/{self.owner}-{self.state}.tar"


def record_name(text: str) -> RecordName | None:
    """Return what a file's name says, None where it is none of a summary."""
    match = _RECORD.fullmatch(text)
    if match is None:
        return None
    rank = None if match["rank"] == NO_RANK else whole_number(match["rank"])
    return RecordName(rank, match["name"], match["state"], match["content"])


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as bytes that depend on nothing but the value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def is_store(path: object) -> bool:
    """Tell whether a path or URL is a store: whether its manifest lies there."""
    text = str(path)
    if is_url(text) and text.rsplit("/", 1)[-1].lower().endswith((".json", ".gz", ".zip", ".zst")):
        return False
    try:
        StoreLocation(text).read(MANIFEST_NAME, 0, MAX_STORE_MANIFEST)
    except (OSError, UnreadableError, ValueError):
        return False
    return True


def short_hash(data: bytes) -> str:
    """Return twelve hexadecimal digits of a hash."""
    return blake2b(data, digest_size=6).hexdigest()


def state_hash(fingerprint: Fingerprint) -> str:
    """Return the hash of a trace's state: its size, its contents at the ends, its ETag; of no time."""
    state = {
        key: fingerprint[key]
        for key in ("size", "head", "tail", "etag", "hash", "ts_unit")
        if fingerprint.get(key)
    }
    return short_hash(json_bytes(state))


def records_in(location: StoreLocation) -> list[RecordName]:
    names = (record_name(name) for name in location.names(RANKS))
    return sorted((name for name in names if name is not None), key=str)


def groups_in(location: StoreLocation) -> list[str]:
    return [name for name in location.names(GROUPS) if _GROUP.fullmatch(name)]


def write_store_manifest(location: StoreLocation, traces: str) -> None:
    """Make a folder a store; one that is a store already stays as it is. Raises TracelaneError."""
    try:
        read_store_manifest(location)
    except FileNotFoundError:
        manifest = {"format": FORMAT, "version": VERSION, "traces": traces}
        location.write(MANIFEST_NAME, json_bytes(manifest) + b"\n")


def read_store_manifest(location: StoreLocation) -> Mapping[str, Any]:
    """Return the manifest of a store. Raises FileNotFoundError where it is none, UnreadableError."""
    raw = location.read(MANIFEST_NAME, 0, MAX_STORE_MANIFEST)
    try:
        manifest = json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableError(f"{location.title}: {MANIFEST_NAME} is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UnreadableError(f"{location.title}: {MANIFEST_NAME} is not that of a capture store")
    if manifest.get("version") != VERSION:
        raise UnreadableError(f"{location.title}: the store is of another version: collect it again")
    return manifest
