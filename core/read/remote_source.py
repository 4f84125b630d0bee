"""A trace that lies elsewhere, by URL: plain text is read in ranges, what is packed as a stream."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from ..base.arrays import U8
from ..base.errors import UnreadableError
from .problem import Problem
from .remote_files import RemoteFile, answers_ranges, remote_status, shown_url
from .source import HEAD, Fingerprint, Source, forms_of
from .web import FileVersion


@dataclass(frozen=True)
class RemoteSource(Source):
    """A source by URL; nothing of it is copied to this machine but what is read."""

    has_ranges: bool = field(default=True, compare=False)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> RemoteSource:
        """Return the source of a JSON object made by `to_message`."""
        version = _version_of(message["fingerprint"])
        file = RemoteFile(message["path"], version, bool(message["has_ranges"]))
        return cls(**{**message, "file": file, "notes": tuple(message["notes"])})

    def to_message(self) -> dict[str, Any]:
        """Return what another process must know of the source to read it, as a JSON object."""
        return {**super().to_message(), "has_ranges": self.has_ranges, "notes": self.notes}

    @property
    def seekable(self) -> bool:
        """Whether byte ranges of the text can be read directly."""
        return super().seekable and self.has_ranges

    @property
    def is_unchanged(self) -> bool:
        """Whether the server says of the file what it said when it was looked at."""
        try:
            return remote_status(self.path).version == _version_of(self.fingerprint)
        except UnreadableError:
            return False

    def read_range(self, offset: int, length: int) -> bytes:
        """Return `length` bytes at `offset` of a seekable source; fewer at the end of the file."""
        if not self.seekable:
            raise ValueError("only a plain UTF-8 source can be read in ranges")
        assert isinstance(self.file, RemoteFile)
        return self.file.read_range(offset, length)


class RemoteText:
    """The text of a seekable remote source, read in ranges; any thread may read."""

    def __init__(self, source: RemoteSource) -> None:
        """Read nothing yet."""
        self.start = source.text_start
        self.damage: Problem | None = None
        self._source = source

    def read_into(self, buffer: U8, offset: int) -> int:
        """Fill a buffer."""
        data = self._source.read_range(offset, len(buffer))
        memoryview(buffer.data)[: len(data)] = data
        return len(data)

    def read(self, offset: int, size: int) -> bytes:
        """Return some text."""
        return self._source.read_range(offset, size)

    def release(self, offset: int) -> None:
        """Do nothing: nothing is held."""

    def position_on_disk(self) -> int | None:
        """Return nothing: offsets are places in the file."""
        return None

    def stop(self) -> None:
        """Do nothing: nobody waits longer than for one range."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


def open_remote_source(url: str) -> RemoteSource:
    """Look at what is at a URL without reading it through. Raises UnreadableError."""
    status = remote_status(url)
    name = shown_url(url)
    if status.is_folder:
        raise UnreadableError(f"{name}: is a directory, not a trace")
    if not status.size:
        raise UnreadableError(f"{name}: is empty, or the server does not say how long it is")
    file = RemoteFile(url, status.version, answers_ranges(url, status.size))
    with file.open("rb") as stream:
        head = b""
        while len(head) < HEAD and (more := stream.read(HEAD - len(head))):
            head += more
    packing, encoding, mark = forms_of(name, file, head)
    state: Fingerprint = {"size": status.size, "etag": status.etag, "time": status.changed}
    fingerprint = {**state, "head": hashlib.blake2b(head, digest_size=16).hexdigest()}
    notes = (f"{name} is redirected to {status.host}",) if status.host else ()
    known = (url, file, packing, packing, encoding, status.size, fingerprint, mark, notes)
    return RemoteSource(*known, has_ranges=file.has_ranges)


def _version_of(fingerprint: Fingerprint) -> FileVersion:
    """Return the state of the file that a fingerprint is of."""
    return FileVersion(int(fingerprint["size"]), str(fingerprint["etag"]), str(fingerprint["time"]))
