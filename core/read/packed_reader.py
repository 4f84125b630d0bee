"""What readers of packed files have in common: the bytes of the file, and how damage is noted and said."""

from __future__ import annotations

from abc import abstractmethod
from typing import IO

from .inflate import RAW_BLOCK, Piece, RawReader
from .problem import CORRUPT, DAMAGED, OTHER_DATA, SOUND, UNVERIFIED, Problem

CUT_OFF = (
    "the compressed data is cut off at byte {:,} of the file: copy the file again; what came before was read"
)
BROKEN = "the compressed data is damaged at byte {:,} of the file ({}): copy the file again"
WRONG_SUM = (
    "the compressed data is damaged at or before byte {:,} of the file (its checksum is another): "
    "copy the file again"
)
FOLLOWED = "other data follows the compressed data from byte {:,} of the file on and is left out"


class RawBytes:
    """The bytes of a file from an offset on, of which `data` have been read and not used yet."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = 0
        self.data = b""

    @property
    def offset(self) -> int:
        return self._end - len(self.data)

    def go_to(self, offset: int) -> None:
        self._file.seek(offset)
        self._end, self.data = offset, b""

    def fill(self) -> bool:
        """Have a byte at least; False at the end of the file."""
        if not self.data:
            self.data = self._file.read(RAW_BLOCK) or b""
            self._end += len(self.data)
        return bool(self.data)

    def take(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""
        parts = []
        while n > 0 and self.fill():
            parts.append(self.data[:n])
            self.data = self.data[n:]
            n -= len(parts[-1])
        return b"".join(parts)

    def take_text(self) -> bytes:
        """Return what stands before the next zero, with it."""
        parts = []
        while self.fill():
            end = self.data.find(b"\0") + 1 or len(self.data)
            parts.append(self.data[:end])
            self.data = self.data[end:]
            if parts[-1].endswith(b"\0"):
                break
        return b"".join(parts)

    def skip(self, n: int) -> bool:
        """Pass over n bytes; tell whether there are so many."""
        while n > 0 and self.fill():
            step = min(n, len(self.data))
            self.data = self.data[step:]
            n -= step
        return n <= 0


class PackedReader(RawReader):
    """Text that is inflated step by step."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._raw = RawBytes(file)
        self._ended = False

    @abstractmethod
    def _some(self, most: int) -> Piece:
        """Return some more bytes, at most so many, perhaps none; end where there are no more."""

    def _read(self, n: int) -> bytes:
        parts: list[Piece] = []
        left = n
        while left > 0 and not self._is_empty:
            part = self._some(left)
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    @property
    def _is_empty(self) -> bool:
        """Whether no more text comes."""
        return self._ended

    def read_some(self, n: int) -> Piece:
        part: Piece = b""
        while not part and not self._is_empty:
            part = self._some(n)
        self.offset += len(part)
        return part

    def position_on_disk(self) -> int:
        return self._raw.offset

    def _end(self, words: str, offset: int | None = None, why: object = "", *, doubt: int = CORRUPT) -> None:
        """End here: what follows in the file cannot be had."""
        at = self._raw.offset if offset is None else offset
        kind = OTHER_DATA if doubt == SOUND else DAMAGED
        self.problems.append(Problem(kind, 1, at, words.format(at, why)))
        self.doubt = max(self.doubt, doubt)
        self._ended = True

    def _doubt(self, words: str, offset: int, why: object = "", *, doubt: int = CORRUPT) -> None:
        """Read on, though what was read may be wrong."""
        self.problems.append(Problem(UNVERIFIED, 1, offset, words.format(offset, why)))
        self.doubt = max(self.doubt, doubt)
