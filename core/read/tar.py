"""The one trace of a tar archive, read from front to back, so that an archive in gzip need not be unpacked.

The format is POSIX's (`ustar` and the extended headers of
https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html), with the long names and binary sizes of
GNU tar, and the older form without a magic number. An archive is blocks of 512 bytes: one describes a file,
whose data follows, filled up with zeros to whole blocks; two blocks of zeros end it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..base.errors import UnreadableError
from ..base.numbers import whole_number
from .inflate import RAW_BLOCK, RawReader
from .problem import CUT_SHORT, DAMAGED, OTHER_DATA, Problem

BLOCK = 512
MAX_HEADER = 1 << 20
"""Bytes of an extended header that are looked at: it holds a name or a few numbers."""
MAX_SIZE = 1 << 60
"""A file is damaged that says it is larger."""
MAX_NAMED = 8
"""So many other files of an archive are named."""
TRACE_NAMES = (".json", ".pftrace", ".perfetto-trace")
_NAME, _SIZE, _CHECKSUM, _MAGIC, _PREFIX = (
    slice(0, 100), slice(124, 136), slice(148, 156), slice(257, 262), slice(345, 500)
)  # fmt: skip
_TYPE = 156
_FILES, _WITHOUT_DATA = b"0\0" + b"7", b"123456"
_LONG_NAME, _SPARSE, _EXTENDED = b"LSx"
_HAS_MAP, _MAP_GOES_ON = 482, 504
CUT_OFF = (
    "the tar archive is cut off at byte {:,} of the file: copy the file again; what came before was read"
)
BROKEN = "the tar archive is damaged at byte {:,} of the file: copy the file again"
OTHERS = "the tar archive holds other files, which are neither read nor checked: {}"


def is_tar(head: bytes | bytearray) -> bool:
    """Tell by the checksum of its first block whether a file is a tar archive."""
    return any(head[:BLOCK]) and _has_checksum(bytes(head[:BLOCK]))


class TarReader(RawReader):
    """The text of the only trace in an archive: the only file that is named like one, or the only file at
    all. Other files are passed over, and named in the problems once the archive is read through.
    """

    def __init__(self, open_archive: Callable[[], RawReader]) -> None:
        """Go to the trace. Raises UnreadableError where there is none. A second trace is met behind the
        first: `check_others` and the last `read` raise it.
        """
        self._archive = open_archive()
        self.problems = []
        try:
            self._trace = self._found_trace() or self._only_file(open_archive)
        except BaseException:
            self._archive.close()
            raise
        self._left = self._trace.size
        self._is_at_end = False

    def _found_trace(self) -> _File | None:
        """Go to the first file that is named like a trace."""
        self._files = _Files(self._archive)
        while (file := self._files.next()) is not None:
            if file.is_named_like_a_trace:
                return file
        return None

    def _only_file(self, open_archive: Callable[[], RawReader]) -> _File:
        """Go to the only file there is, none of which is named like a trace."""
        names = self._files.names
        if self._files.is_damaged:
            raise UnreadableError("the tar archive is damaged: copy the file again")
        if len(names) != 1:
            raise UnreadableError(
                f"a tar archive must hold one trace; this one holds {_list_of(names) or 'nothing'}"
            )
        self._archive.close()
        self._archive = open_archive()
        self._files = _Files(self._archive)
        file = self._files.next()
        if file is None:
            raise UnreadableError("was written to while it was read: open it again")
        return file

    def _read(self, n: int) -> bytes:
        parts = []
        while n > 0 and self._left > 0:
            part = self._archive.read(min(n, self._left, RAW_BLOCK))
            if not part:
                break
            parts.append(part)
            n -= len(part)
            self._left -= len(part)
        if n > 0 and not self._is_at_end:
            self._is_at_end = True
            self._finish()
        return b"".join(parts)

    def _finish(self) -> None:
        """Look at what follows the trace, to the end of the archive, so that packed data is checked, too."""
        own = []
        if self._left:
            own += [] if self._archive.problems else [self._problem(DAMAGED, CUT_OFF)]
            self.doubt = CUT_SHORT
        else:
            while (file := self._files.next()) is not None:
                if file.is_named_like_a_trace and self._trace.is_named_like_a_trace:
                    raise UnreadableError(
                        f"a tar archive must hold one trace; this one holds {self._trace.name}, {file.name}: "
                        "unpack it, and open the folder"
                    )
            if self._files.is_damaged:
                own.append(self._problem(DAMAGED, BROKEN))
            others = [name for name in self._files.names if name != self._trace.name]
            if others:
                own.append(Problem(OTHER_DATA, self._files.count - 1, None, OTHERS.format(_list_of(others))))
        self.problems = [*self._archive.problems, *own]
        self.doubt = max(self.doubt, self._archive.doubt)

    def _problem(self, kind: str, words: str) -> Problem:
        at = self._archive.position_on_disk()
        return Problem(kind, 1, at, words.format(at))

    def check_others(self) -> None:
        """Go to the end of an archive that is not packed itself, where that takes no time. Raises
        UnreadableError for a second trace.
        """
        self._archive.skip(self._left)
        self._left = 0
        self._finish()

    def position_on_disk(self) -> int:
        return self._archive.position_on_disk()

    def close(self) -> None:
        self._archive.close()


class _File(NamedTuple):
    """A file of an archive that holds data."""

    name: str
    size: int

    @property
    def is_named_like_a_trace(self) -> bool:
        folders, _, name = self.name.lower().rpartition("/")
        of_macos = name.startswith("._") or "__macosx" in folders
        return any(part in name for part in TRACE_NAMES) and not of_macos


class _Files:
    """The files of an archive one after the other, from where a reader stands; their data is passed over
    unless it is read before the next is asked for.
    """

    def __init__(self, archive: RawReader) -> None:
        self._archive = archive
        self._next_header = 0
        self._is_over = False
        self.count = 0
        """How many it went to."""
        self.names: list[str] = []
        """Their names, of many the first ones."""
        self.is_damaged = False

    def next(self) -> _File | None:
        """Go to the data of the next file that has any; None at the end, or where the archive is damaged."""
        name, size = "", None
        while (header := self._header()) is not None:
            kind = header[_TYPE]
            length = _number(header[_SIZE])
            if length is None:
                self.is_damaged = True
                break
            if kind in (_LONG_NAME, _EXTENDED) and length <= MAX_HEADER:
                text = self._archive.read(length)
                self._next_header += BLOCK + length + -length % BLOCK
                if kind == _LONG_NAME:
                    name = _text(text)
                else:
                    fields = _extended(text)
                    name = fields.get("path", name)
                    size = _decimal(fields.get("size", ""))
                continue
            length = 0 if kind in _WITHOUT_DATA else length if size is None else size
            self._next_header += BLOCK + length + -length % BLOCK
            if kind == _SPARSE:
                self._pass_map(header)
            if kind in _FILES and length:
                file = _File(name or _name(header), length)
                self.count += 1
                if len(self.names) < MAX_NAMED + 2:  # the trace, and one more than are named
                    self.names.append(file.name)
                return file
            name, size = "", None
        self._is_over = True
        return None

    def _pass_map(self, header: bytes) -> None:
        """Pass over the blocks that say where the data of a file with holes lies, before the data."""
        goes_on = header[_HAS_MAP]
        while goes_on and len(block := self._archive.read(BLOCK)) == BLOCK:
            self._next_header += BLOCK
            goes_on = block[_MAP_GOES_ON]

    def _header(self) -> bytes | None:
        """Return the next header; None where the archive ends, soundly or not."""
        if self._is_over:
            return None
        if (left := self._next_header - self._archive.offset) > 0:
            self._archive.skip(left - 1)  # to pass over what a file does not have is no error
            if not self._archive.read(1):
                self.is_damaged = True
                return None
        block = self._archive.read(BLOCK)
        if not any(block):  # the end is zeros, or nothing
            while block:
                block = self._archive.read(RAW_BLOCK)
                self.is_damaged |= any(block)
            return None
        if not _has_checksum(block):
            self.is_damaged = True
            return None
        return block


def _has_checksum(block: bytes) -> bool:
    """Tell whether a header's checksum is the sum of its bytes, those of the checksum taken for blanks. Some
    old programs add them up as signed ones.
    """
    if len(block) < BLOCK:
        return False
    rest = block[: _CHECKSUM.start] + b" " * 8 + block[_CHECKSUM.stop :]
    number, total = _number(block[_CHECKSUM]), sum(rest)
    return number == total or number == total - 256 * sum(byte > 127 for byte in rest)


def _number(field: bytes) -> int | None:
    """Return the number of a header's field: octal digits, or binary with the first bit set."""
    if field[0] & 0x80:
        value = int.from_bytes(field[1:], "big")
        return value if field[0] == 0x80 and value < MAX_SIZE else None
    digits = field.partition(b"\0")[0].strip()
    if digits.strip(b"01234567"):
        return None
    return whole_number(digits or b"0", 8)


def _decimal(text: str) -> int | None:
    return whole_number(text) if text.isascii() and text.isdecimal() else None


def _name(header: bytes) -> str:
    prefix = _text(header[_PREFIX]) if header[_MAGIC] == b"ustar" else ""
    return f"{prefix}/{_text(header[_NAME])}" if prefix else _text(header[_NAME])


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _extended(data: bytes) -> dict[str, str]:
    """Return the values of an extended header, by name: lines such as `30 mtime=1700000000.123456`, which
    begin with their length.
    """
    values = {}
    while data:
        length = _decimal(data.partition(b" ")[0].decode("ascii", "replace"))
        if length is None or not 0 < length <= len(data):
            break
        key, _, value = data[:length].partition(b" ")[2].rstrip(b"\n").partition(b"=")
        values[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        data = data[length:]
    return values


def _list_of(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
