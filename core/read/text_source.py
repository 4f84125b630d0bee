"""The text of a source by offset: read from the file where it lies so, else inflated ahead by a thread."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Protocol

import numpy as np

from ..base.arrays import U8
from ..base.errors import Cancelled, UnreadableError
from ..base.threads import LOOK_S, BackgroundThread
from .local_file import LocalFile
from .problem import Problem
from .remote_source import RemoteSource, RemoteText
from .source import Source

PIECE = 1 << 20
"""Bytes inflated at a time."""
AHEAD = 32 << 20
"""So much text is held at most, while nobody waits for more."""


class TextSource(Protocol):
    """The inflated UTF-8 text of a source; any thread may read."""

    start: int
    """Where the text begins: behind a byte order mark."""

    @property
    def damage(self) -> Problem | None:
        """What was wrong with the compressed data, once it has been met."""

    def read_into(self, buffer: U8, offset: int) -> int:
        """Fill `buffer` with the text at `offset`; return how much there was, less only at its end."""

    def read(self, offset: int, size: int) -> bytes:
        """Return the text at `offset`, less only at its end."""

    def release(self, offset: int) -> None:
        """Nothing before `offset` will be read again."""

    def position_on_disk(self) -> int | None:
        """Return how many bytes of the file have been inflated; None where text is read as it lies there."""

    def stop(self) -> None:
        """Let nobody wait for text any more."""

    def close(self) -> None:
        """Let go of the file."""


class PlainText:
    """A file read as it stands, up to the size that it had when it was looked at: it may still be written to.

    It is never mapped: one that shrinks while it is read must not kill us.
    """

    def __init__(self, source: Source) -> None:
        """Open the file."""
        self.start = source.text_start
        self._size = source.size
        self.damage: Problem | None = None
        assert isinstance(source.file, LocalFile)
        self._path, self._file = source.path, source.file
        try:
            self._descriptor = self._file.descriptor
        except OSError as error:
            raise UnreadableError(f"{source.path}: {error.strerror}") from error

    def read_into(self, buffer: U8, offset: int) -> int:
        """Fill a buffer."""
        view = memoryview(buffer.data)[: max(0, self._size - offset)]
        size = 0
        try:
            while size < len(view) and (count := os.preadv(self._descriptor, [view[size:]], offset + size)):
                size += count
        except OSError as error:
            raise UnreadableError(f"{self._path}: {error.strerror}") from error
        return size

    def read(self, offset: int, size: int) -> bytes:
        """Return some text."""
        return self._file.read_range(offset, min(size, self._size - offset))

    def release(self, offset: int) -> None:
        """Do nothing: nothing is held."""

    def position_on_disk(self) -> int | None:
        """Return nothing: offsets are places in the file."""
        return None

    def stop(self) -> None:
        """Do nothing: nobody waits."""

    def close(self) -> None:
        """Do nothing: the file is the source's."""


class InflatedText:
    """ScanText that is inflated from front to back, and held until it is released.

    Whoever reads waits until the text is there. The thread inflates ahead until AHEAD bytes are held, and on
    where somebody waits for what lies beyond.
    """

    def __init__(self, source: Source) -> None:
        """Begin to inflate."""
        self._stream = source.open()
        self.start = self._stream.offset
        self._pieces: deque[bytes] = deque()
        self._first = self._end = self._needed = self.start
        self._ended = self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = BackgroundThread(self._inflate)

    @property
    def damage(self) -> Problem | None:
        """What was wrong with the compressed data."""
        return self._stream.damage

    def _inflate(self) -> None:
        try:
            while not self._closed:
                piece = self._stream.read(PIECE)
                with self._changed:
                    self._pieces.append(piece)
                    self._end += len(piece)
                    self._ended = not piece
                    self._changed.notify_all()
                    while self._end - self._first >= AHEAD and self._end >= self._needed and not self._closed:
                        self._changed.wait()
                if not piece:
                    return
        except BaseException as error:
            with self._changed:
                self._error = error
                self._ended = True
                self._changed.notify_all()

    def read_into(self, buffer: U8, offset: int) -> int:
        """Fill a buffer."""
        view = memoryview(buffer.data)
        with self._changed:
            self._needed = max(self._needed, offset + len(view))
            self._changed.notify_all()
            while self._end < offset + len(view) and not self._ended and not self._closed:
                if not self._changed.wait(LOOK_S) and not self._ended:
                    self._thread.check()
            if self._closed:
                raise Cancelled
            if self._error is not None:
                raise self._error
            if offset < self._first:
                raise ValueError(f"text at {offset} was released before it was read")
            size, begin = 0, self._first
            for piece in self._pieces:
                end = begin + len(piece)
                if end > offset + size and size < len(view):
                    part = memoryview(piece)[offset + size - begin :][: len(view) - size]
                    view[size : size + len(part)] = part
                    size += len(part)
                begin = end
        return size

    def read(self, offset: int, size: int) -> bytes:
        """Return some text."""
        buffer = np.empty(size, np.uint8)
        return buffer[: self.read_into(buffer, offset)].tobytes()

    def release(self, offset: int) -> None:
        """Let go of whole pieces before an offset."""
        with self._changed:
            while self._pieces and self._first + len(self._pieces[0]) <= offset and self._pieces[0]:
                self._first += len(self._pieces.popleft())
            self._changed.notify_all()

    def position_on_disk(self) -> int | None:
        """Return how many bytes of the file have been inflated."""
        return self._stream.position_on_disk()

    def stop(self) -> None:
        """Raise Cancelled where somebody waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread and close the file."""
        self.stop()
        self._thread.join()
        self._stream.close()


def text_source(source: Source) -> TextSource:
    """Open the text of a source."""
    if not source.seekable:
        return InflatedText(source)
    return RemoteText(source) if isinstance(source, RemoteSource) else PlainText(source)


class TextCursor:
    """A place in a text that moves as it is read: what a Window reads from."""

    def __init__(self, text: TextSource, offset: int) -> None:
        """Stand at an offset."""
        self._text = text
        self.offset = offset

    def read(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""
        data = self._text.read(self.offset, n)
        self.offset += len(data)
        return data
