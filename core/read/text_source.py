"""The text of a source by offset: read from the file where it lies so, else inflated ahead by a thread."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import U8
from ..base.errors import Cancelled
from ..base.threads import LOOK_S, BackgroundThread
from .inflate import Piece
from .problem import SOUND, Problem
from .source import Source

if TYPE_CHECKING:
    from .checkpoints import CheckpointLog
    from .packed_text import PackedTextLog

PIECE = 1 << 20
"""Bytes inflated at a time."""
AHEAD = 32 << 20
"""So much text is held at most, while nobody waits for more."""


class TextSource:
    """The inflated UTF-8 text of a source, read as it lies in the file; any thread may read. A file is never
    mapped: one that shrinks while it is read must not kill us.
    """

    def __init__(self, source: Source) -> None:
        self.start = source.text_start
        """Where the text begins: behind a byte order mark."""
        self._source = source

    @property
    def problems(self) -> list[Problem]:
        """What was wrong with the packed data, and what was passed over, as far as it has been met."""
        return []

    def doubt(self, *, is_sure: bool = True) -> int:
        """Tell in how far the text of packed data is in doubt; where `is_sure`, all of it is inflated once to
        know.
        """
        return SOUND

    def read_into(self, buffer: U8, offset: int) -> int:
        """Fill `buffer` with the text at `offset`; return how much there was, less only at its end. Raises
        ValueError before `start`: a mark is no text.
        """
        if offset < self.start:
            raise ValueError(f"at {offset} there is no text yet")
        return self._source.read_into(memoryview(buffer.data), offset)

    def read(self, offset: int, size: int) -> bytes:
        """Return the text at `offset`, less only at its end."""
        buffer = np.empty(size, np.uint8)
        return buffer[: self.read_into(buffer, offset)].tobytes()

    def release(self, offset: int) -> None:
        """Take note that nothing before `offset` will be read again."""

    def position_on_disk(self) -> int | None:
        """Return how many bytes of the file have been inflated; None where text is read as it lies there."""
        return None

    def stop(self) -> None:
        """Let nobody wait for text any more."""

    def close(self) -> None:
        """Let go of the file."""


class InflatedText(TextSource):
    """Text that is inflated from front to back, and held until it is released. Whoever reads waits until
    the text is there. The thread inflates ahead until AHEAD bytes are held, and on where somebody waits for
    what lies beyond.
    """

    def __init__(
        self, source: Source, log: CheckpointLog | None = None, packed: PackedTextLog | None = None
    ) -> None:
        super().__init__(source)
        self._log, self._packed = log, packed
        self._stream = source.open(log=log)
        self.start = self._stream.offset
        self._pieces: deque[Piece] = deque()
        self._first = self._end = self._needed = self.start
        self._ended = self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._verifying = threading.Lock()
        self._verdict: tuple[list[Problem], int] | None = None
        self._thread = BackgroundThread(self._inflate)

    @property
    def problems(self) -> list[Problem]:
        own = self._stream.problems
        return own if self._verdict is None else [*own, *(one for one in self._verdict[0] if one not in own)]

    def doubt(self, *, is_sure: bool = True) -> int:
        if self._verdict is not None:
            return self._verdict[1]
        if self._ended or not is_sure:
            return self._stream.doubt
        with self._verifying:
            if self._verdict is None:
                self._verdict = self._source.packed_problems(lambda: self._closed)
            return self._verdict[1]

    def _inflate(self) -> None:
        try:
            while not self._closed:
                piece = self._stream.read_some(PIECE)
                if self._packed is not None and (self._log is None or self._log.is_empty):
                    self._packed.add(piece)
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
        view = memoryview(buffer.data)
        if offset < self.start:
            raise ValueError(f"at {offset} there is no text yet")
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

    def release(self, offset: int) -> None:
        with self._changed:
            while self._pieces and self._first + len(self._pieces[0]) <= offset and self._pieces[0]:
                self._first += len(self._pieces.popleft())
            self._changed.notify_all()

    def position_on_disk(self) -> int | None:
        return self._stream.position_on_disk()

    def stop(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        self.stop()
        self._thread.join()
        self._stream.close()


def text_source(
    source: Source, log: CheckpointLog | None = None, packed: PackedTextLog | None = None
) -> TextSource:
    """Return the text of a source. Where inflating it can begin later goes into `log`; where it never can,
    the text itself goes into `packed`.
    """
    return TextSource(source) if source.seekable else InflatedText(source, log, packed)
