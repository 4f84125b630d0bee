"""A trace that lies elsewhere, by URL: plain text is read in ranges, what is packed as a stream."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from ..base.arrays import U8
from ..base.errors import UnreadableError
from ..remote.files import RemoteFile, RemoteStatus, answers_ranges, read_remote, remote_status, shown_url
from .problem import Problem
from .source import HEAD, Fingerprint, Source, forms_of


@dataclass(frozen=True)
class RemoteSource(Source):
    """A source by URL; nothing of it is copied to this machine but what is read."""

    has_ranges: bool = field(default=True, compare=False)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> RemoteSource:
        """Return the source of a JSON object made by `to_message`."""
        has_ranges = bool(message["has_ranges"])
        return cls(**{**message, "file": RemoteFile(message["path"], int(message["size"]), has_ranges)})

    def to_message(self) -> dict[str, Any]:
        """Return what another process must know of the source to read it, as a JSON object."""
        return {**super().to_message(), "has_ranges": self.has_ranges}

    @property
    def seekable(self) -> bool:
        """Whether byte ranges of the text can be read directly."""
        return super().seekable and self.has_ranges

    @property
    def is_unchanged(self) -> bool:
        """Whether the server says of the file what it said when it was looked at."""
        try:
            return _state(remote_status(self.path)) == _state_of(self.fingerprint)
        except UnreadableError:
            return False

    def read_range(self, offset: int, length: int) -> bytes:
        """Return `length` bytes at `offset` of a seekable source; fewer at the end of the file."""
        if not self.seekable:
            raise ValueError("only a plain UTF-8 source can be read in ranges")
        length = min(length, self.size - offset)
        try:
            return read_remote(self.path, offset, length) if length > 0 else b""
        except FileNotFoundError:
            raise UnreadableError(f"{shown_url(self.path)}: no such file") from None


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
    file = RemoteFile(url, status.size, answers_ranges(url, status.size))
    with file.open("rb") as stream:
        head = b""
        while len(head) < HEAD and (more := stream.read(HEAD - len(head))):
            head += more
    packing, encoding, mark = forms_of(name, file, head)
    fingerprint: Fingerprint = {**_state(status), "head": hashlib.blake2b(head, digest_size=16).hexdigest()}
    return RemoteSource(
        url, file, packing, packing, encoding, status.size, fingerprint, mark, has_ranges=file.has_ranges
    )


def _state(status: RemoteStatus) -> Fingerprint:
    """Return what tells one state of a file from another."""
    return {"size": status.size, "etag": status.etag, "time": status.changed}


def _state_of(fingerprint: Fingerprint) -> Fingerprint:
    return {key: fingerprint[key] for key in ("size", "etag", "time")}
