"""Readers of deflated files, gzip and zip: from the beginning, or from a checkpoint on. The formats are those
of RFC 1952 and https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, of what they hold RFC 1951.
"""

from __future__ import annotations

import struct
import sys
import zlib
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from ..base.errors import UnreadableError
from ..native.library import native_library
from .inflate import RAW_BLOCK, Openable, Piece, RawReader, deflate_library
from .packed_reader import BROKEN, CUT_OFF, FOLLOWED, WRONG_SUM, PackedReader
from .problem import CORRUPT, CUT_SHORT, DAMAGED, SOUND, UNVERIFIED, Problem

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

    from .checkpoints import CheckpointLog
    from .inflate_native import Checkpoint, NativeDeflate

STORED, DEFLATED = 0, 8
CAREFUL = {RAW_BLOCK: 4096, 4096: 64, 64: 1}
"""In steps of how many bytes data is inflated again that is damaged: a call that fails gives nothing back."""


def _inflating_library() -> ModuleType | NativeDeflate:
    """Return what inflates fastest: the native core, else isal, else zlib."""
    if native_library().functions is None:
        return deflate_library()
    from .inflate_native import NativeDeflate

    return NativeDeflate()


class DeflateReader(PackedReader):
    """Deflated data between headers and checksums. `library` is zlib or isal_zlib; without it the native core
    inflates, where there is one. What others than zlib refuse is inflated again by zlib, which alone says how
    far the data is sound: so the text of a damaged file does not depend on which one is installed.
    """

    def __init__(
        self,
        file: IO[bytes],
        library: ModuleType | NativeDeflate | None = None,
        log: CheckpointLog | None = None,
    ) -> None:
        super().__init__(file)
        self._usual = library or _inflating_library()
        self._log = None if isinstance(self._usual, ModuleType) else log
        self._inflater: Any = None
        self._checksum = self._size = self._start = self._before = 0

    @abstractmethod
    def _begin(self) -> bool:
        """Go behind the header of the next stream of deflated data; False where there is none."""

    @abstractmethod
    def _finish(self) -> None:
        """Check what stands behind a stream."""

    def _some(self, most: int) -> Piece:
        if self._inflater is None:
            if not self._begin():
                self._ended = True
                return b""
            self._before += self._size
            self._start = self._raw.offset
            self._open(self._usual)
            self._checksum = self._size = 0
            self._log_checkpoint()
        part = self._inflated(most)
        self._checksum = self._sum(part, self._checksum)
        self._size += len(part)
        if self._inflater.eof and not self._ended:
            self._inflater = None
            self._finish()
        return part

    def _open(self, library: ModuleType | NativeDeflate) -> None:
        self._library = library
        self._sum: Callable[[Piece, int], int] = library.crc32
        self._inflater = library.decompressobj(-zlib.MAX_WBITS)
        self._step = RAW_BLOCK
        if library is self._usual and not isinstance(library, ModuleType):
            self._inflater.restart(8 * self._start)

    def _log_checkpoint(self) -> None:
        """Take note of where inflating could begin later, unless such a point is near."""
        log = self._log
        if log is not None and self._library is self._usual and not self._inflater.has_ended:
            text = self._before + int(self._inflater.size)
            if log.is_due(text):
                log.add(self._inflater.checkpoint(text))

    def _inflated(self, most: int) -> Piece:
        raw = self._raw
        is_last = not raw.fill()
        data, rest = raw.data, b""
        if len(data) > self._step:
            data, rest = data[: self._step], data[self._step :]
        before = self._inflater.copy() if self._library is zlib else None
        try:
            part: Piece = self._inflater.decompress(data, most)
        except self._library.error as error:
            if before is None:
                self._change_to_zlib()
            elif self._step > 1:
                self._inflater, self._step = before, CAREFUL[self._step]
            else:
                self._end(BROKEN, why=str(error).partition(": ")[2] or error)
            return b""
        inflater = self._inflater
        raw.data = (inflater.unused_data if inflater.eof else inflater.unconsumed_tail) + rest
        if is_last and not part and not inflater.eof:
            if self._library is zlib:
                self._end(CUT_OFF, doubt=CUT_SHORT)
            else:
                self._change_to_zlib()  # which gives some more of what is cut off
                return part
        self._log_checkpoint()
        return part

    def _change_to_zlib(self) -> None:
        """Inflate this stream by zlib, with what came out so far passed over."""
        self._raw.go_to(self._start)
        self._open(zlib)
        left = self._size
        while left > 0:
            is_last = not self._raw.fill()
            part = self._inflater.decompress(self._raw.data, min(left, RAW_BLOCK))
            self._raw.data = self._inflater.unconsumed_tail
            if is_last and not part:
                return
            left -= len(part)


class GzipReader(DeflateReader):
    """As many members as there are, one behind the other, and zeros behind them."""

    def __init__(
        self,
        path: Openable,
        library: ModuleType | NativeDeflate | None = None,
        log: CheckpointLog | None = None,
    ) -> None:
        super().__init__(path.open("rb", 0), library, log)

    def _begin(self) -> bool:
        raw = self._raw
        begin = raw.offset
        if begin:
            while raw.fill() and not (rest := raw.data.lstrip(b"\0")):
                raw.data = b""
            if not raw.data:
                return False
            raw.data = rest
            begin = raw.offset
        head = raw.take(10)
        if begin and not head.startswith(b"\x1f\x8b"):
            self._end(FOLLOWED, begin, doubt=SOUND)
            return False
        if not head.startswith(b"\x1f\x8b") and head:  # named .gz: what follows may be sound
            self._doubt(BROKEN, 0, "no gzip file begins so", doubt=SOUND)
        if len(head) == 10 and (head[2] != DEFLATED or head[3] & 0xE0):
            self._end(BROKEN, begin, "the header of no gzip member")
            return False
        flags = head[3] if len(head) == 10 else 0
        if flags & 4:
            size = raw.take(2)
            head += size + raw.take(int.from_bytes(size, "little"))
        for flag in (8, 16):
            head += raw.take_text() if flags & flag else b""
        checksum = raw.take(2) if flags & 2 else b""
        if len(head) < 10 or not raw.fill():
            self._end(CUT_OFF, doubt=CUT_SHORT)
            return False
        if flags & 2 and int.from_bytes(checksum, "little") != zlib.crc32(head) & 0xFFFF:
            self._doubt(WRONG_SUM, raw.offset)
        return True

    def _finish(self) -> None:
        tail = self._raw.take(8)
        if len(tail) < 8:
            self._end(CUT_OFF, doubt=CUT_SHORT)
        elif tail != struct.pack("<LL", self._checksum, self._size & 0xFFFFFFFF):
            self._doubt(WRONG_SUM, self._raw.offset)


class ResumedReader(GzipReader):
    """Text of gzip or of an entry of zip from a checkpoint on. What is damaged ends it, unsaid: whoever read
    the text before has said so.
    """

    def __init__(self, path: Openable, checkpoint: Checkpoint) -> None:
        """Raises InflateError where inflating cannot begin there."""
        from .inflate_native import MAX_HEADER, SMALL_STEP, NativeDeflate

        super().__init__(path, NativeDeflate(SMALL_STEP))
        raw, begin, end = self._raw, checkpoint.block >> 3, checkpoint.bit >> 3
        self.offset = checkpoint.text
        raw.go_to(begin)
        raw.fill()
        header = raw.data[:MAX_HEADER]
        if end - begin < len(raw.data):
            raw.skip(end - begin)
        else:
            raw.go_to(end)
        self._open(self._usual)
        self._inflater.resume(checkpoint, header)
        self._sum = lambda _part, _sum: 0  # of a part of the text there is none

    def _change_to_zlib(self) -> None:
        self._ended = True


class ZipEntry:
    """The one trace of an archive: how it is packed, where its data begins, and what is known of it."""

    def __init__(
        self, method: int, start: int, packed: int | None, size: int | None, checksum: int | None
    ) -> None:
        self.method = method
        self.start = start
        self.packed = packed
        self.size = size
        self.checksum = checksum


class ZipReader(DeflateReader):
    """An entry of a zip archive, deflated or stored."""

    def __init__(
        self,
        file: IO[bytes],
        entry: ZipEntry,
        library: ModuleType | None = None,
        log: CheckpointLog | None = None,
    ) -> None:
        super().__init__(file, library, log)
        self._entry = entry
        self._raw.go_to(entry.start)
        self._is_done = False

    def _begin(self) -> bool:
        return not self._is_done

    def _some(self, most: int) -> Piece:
        if self._entry.method == DEFLATED:
            return super()._some(most)
        entry = self._entry
        left = most if entry.packed is None else min(most, entry.packed - self._size)
        part = self._raw.take(min(left, RAW_BLOCK))
        self._checksum = zlib.crc32(part, self._checksum)
        self._size += len(part)
        if self._size == entry.packed:
            self._ended = True
            self._finish()
        elif not part:
            self._end(CUT_OFF, doubt=CUT_SHORT)
        return part

    def _finish(self) -> None:
        self._is_done = True
        entry, offset = self._entry, self._raw.offset
        if entry.checksum is None:  # it stands behind the data
            tail = self._raw.take(8)
            values = struct.unpack("<LL", tail) if len(tail) == 8 else (0, 0)
            if self._checksum not in (values[1] if tail.startswith(b"PK\x07\x08") else values[0],):
                self._doubt(WRONG_SUM, offset)
        elif entry.checksum != self._checksum or entry.size not in (None, self._size):
            self._doubt(WRONG_SUM, offset)
        elif entry.packed not in (None, offset - entry.start):
            self._doubt(BROKEN, offset, "the archive says another size", doubt=SOUND)


def zip_reader(
    path: Openable, library: ModuleType | None = None, log: CheckpointLog | None = None
) -> RawReader:
    """Return a reader of the one trace in a zip archive; UnreadableError names the members otherwise."""
    import zipfile  # only for archives

    damage = _zip_errors()
    raw = path.open("rb")
    try:
        try:
            archive = zipfile.ZipFile(raw)
        except damage as error:
            return _reader_without_directory(raw, error, library, log)
        return _member_reader(raw, archive, _only_trace(archive), damage, library, log)
    except BaseException:
        raw.close()
        raise


def _zip_errors() -> tuple[type[Exception], ...]:
    """Return what zipfile raises for a damaged archive, or one that it cannot unpack."""
    from zipfile import BadZipFile

    lzma_error = getattr(sys.modules.get("lzma"), "LZMAError", OSError)  # where zipfile could load it
    general = (zlib.error, struct.error, ValueError, OSError, EOFError, OverflowError, NotImplementedError)
    return BadZipFile, lzma_error, *general


def other_members(path: Openable) -> list[str]:
    """Return the names of what a zip archive holds besides its trace, and what nobody reads or checks."""
    import zipfile

    with path.open("rb") as raw, suppress(*_zip_errors(), UnreadableError):
        archive = zipfile.ZipFile(raw)
        trace = _only_trace(archive)
        return [member.filename for member in _members(archive) if member is not trace and member.file_size]
    return []


def _members(archive: ZipFile) -> list[ZipInfo]:
    """Return the files of an archive. `is_dir` ends with an IndexError where damage has left no name."""
    names = ((member, member.filename) for member in archive.infolist())
    return [member for member, name in names if not name.endswith("/") and not name.startswith("__MACOSX/")]


def _only_trace(archive: ZipFile) -> ZipInfo:
    members = _members(archive)
    traces = [m for m in members if m.file_size]
    if len(traces) > 1:
        likely = [m for m in traces if ".json" in m.filename.lower()]
        traces = likely or traces
    if len(traces) != 1:
        names = ", ".join(m.filename for m in members[:8]) + (", …" if len(members) > 8 else "")
        raise UnreadableError(f"a zip archive must hold one trace; this one holds {names or 'nothing'}")
    return traces[0]


def _member_reader(
    raw: IO[bytes],
    archive: ZipFile,
    member: ZipInfo,
    damage: tuple[type[Exception], ...],
    library: ModuleType | None,
    log: CheckpointLog | None,
) -> RawReader:
    """Return a reader of a member. Raises UnreadableError where its header is damaged, it is encrypted, or
    packed in an unknown way.
    """
    checksum = member.CRC
    refusals: tuple[type[Exception], ...] = (RuntimeError, *damage)  # NotImplementedError is one
    del member.CRC  # zipfile then checks none: it would keep back the last of what it read
    try:
        opened = archive.open(member)
        if member.compress_type not in (STORED, DEFLATED):
            return MemberReader(opened, raw, damage, checksum)
        raw.seek(member.header_offset)
        name, extra = struct.unpack("<26xHH", raw.read(30))
    except refusals as error:
        advice = "" if isinstance(error, (RuntimeError, NotImplementedError)) else ": copy the file again"
        raise UnreadableError(f"cannot unpack the zip archive: {error}{advice}") from error
    start = member.header_offset + 30 + name + extra
    entry = ZipEntry(member.compress_type, start, member.compress_size, member.file_size, checksum)
    return ZipReader(raw, entry, library, log)


def _reader_without_directory(
    raw: IO[bytes], error: Exception, library: ModuleType | None, log: CheckpointLog | None
) -> RawReader:
    """Return a reader of the first member of an archive whose directory at the end is missing or damaged."""
    raw.seek(0)
    head = raw.read(30)
    if len(head) < 30 or not head.startswith(b"PK\x03\x04"):
        raise UnreadableError("the zip archive is damaged: copy the file again")
    flags, method, checksum, packed, size, name, extra = struct.unpack("<6xHH4xLLLHH", head)
    if method not in (STORED, DEFLATED) or flags & 1:
        raise UnreadableError("the zip archive is damaged: copy the file again")
    is_known = not flags & 8 and packed != 0xFFFFFFFF
    sizes = (packed, size, checksum) if is_known else (None, None, None)
    reader = ZipReader(raw, ZipEntry(method, 30 + name + extra, *sizes), library, log)
    reader._doubt(BROKEN, raw.seek(0, 2), f"its directory cannot be read: {error}", doubt=SOUND)
    raw.seek(30 + name + extra)
    return reader


class MemberReader(RawReader):
    """A member that zipfile inflates; its errors end the text."""

    def __init__(
        self, inflated: IO[bytes], raw: IO[bytes], errors: tuple[type[Exception], ...], checksum: int
    ) -> None:
        super().__init__(raw)
        self._inflated = inflated
        self._errors = errors
        self._expected = checksum
        self._checksum = 0
        self._ended = False

    def _read(self, n: int) -> bytes:
        parts: list[bytes] = []
        left = n
        while left > 0 and not self._ended:
            try:
                part = self._inflated.read(min(left, RAW_BLOCK))
            except self._errors as error:
                part = b""
                at = self._file.tell()
                self.problems.append(Problem(DAMAGED, 1, at, BROKEN.format(at, error)))
                self.doubt = CORRUPT
            self._checksum = zlib.crc32(part, self._checksum)
            self._ended = not part
            parts.append(part)
            left -= len(part)
            if self._ended and self._checksum != self._expected and not self.problems:
                at = self._file.tell()
                self.problems.append(Problem(UNVERIFIED, 1, at, WRONG_SUM.format(at)))
                self.doubt = CORRUPT
        return b"".join(parts)

    def close(self) -> None:
        self._inflated.close()
        super().close()
