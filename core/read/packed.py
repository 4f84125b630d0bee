"""Readers of packed files: gzip, zip, zstd, xz, bzip2, tar. Each gives what can be had of damaged data, says
where in the file the damage is, and checks every checksum that the file has.
"""

from __future__ import annotations

import struct
import sys
import zlib
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from ..base.errors import UnreadableError
from ..base.installed import install_hint
from ..native.library import native_library
from .inflate import RAW_BLOCK, Openable, Piece, PlainReader, RawReader, deflate_library
from .problem import CORRUPT, CUT_SHORT, DAMAGED, OTHER_TEXT, SOUND, UNVERIFIED, Problem
from .tar import TarReader

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

    from .checkpoints import CheckpointLog
    from .inflate_native import Checkpoint, NativeDeflate

STORED, DEFLATED = 0, 8
LARGEST_BLOCK = 128 << 10
"""Bytes of a block of zstd, packed or not."""
XZ, BZIP2 = b"\xfd7zXZ\0", b"BZh"
STREAM_STEP = 4096
"""Bytes of xz and bzip2 that are inflated at a time."""
MAX_DICTIONARY = 512 << 20
"""Memory that a stream of xz may ask for; `xz -9` asks for 65 MB."""
TAR, IN = "tar", " in "
"""An archive, which may be packed: "tar in gzip"."""
CAREFUL = {RAW_BLOCK: 4096, 4096: 64, 64: 1}
"""In steps of how many bytes data is inflated again that is damaged: a call that fails gives nothing back."""
CUT_OFF = (
    "the compressed data is cut off at byte {:,} of the file: copy the file again; what came before was read"
)
BROKEN = "the compressed data is damaged at byte {:,} of the file ({}): copy the file again"
WRONG_SUM = (
    "the compressed data is damaged at or before byte {:,} of the file (its checksum is another): "
    "copy the file again"
)
OTHER_DATA = "other data follows the compressed data from byte {:,} of the file on and is left out"


def open_packed(
    file: Openable, packing: str, library: ModuleType | None = None, log: CheckpointLog | None = None
) -> RawReader:
    """Open a packed file or one that is not; deflated data is inflated by `library`, or by the fastest there
    is, which does not tell to the byte how far it has come. Where reading can begin later goes into `log`.
    """
    if packing.startswith(TAR):
        return TarReader(lambda: open_packed(file, packing.removeprefix(TAR).removeprefix(IN), library))
    if packing == "gzip":
        return GzipReader(file, library, log)
    if packing == "zip":
        return zip_reader(file, library, log)
    if packing == "zstd":
        return zstd_reader(file)
    if packing == "xz":
        import lzma

        return StreamReader(file, XZ, partial(lzma.LZMADecompressor, memlimit=MAX_DICTIONARY), lzma.LZMAError)
    if packing == "bzip2":
        import bz2

        return StreamReader(file, BZIP2, bz2.BZ2Decompressor, OSError)
    return PlainReader(file.open("rb", 0))


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
        kind = OTHER_TEXT if doubt == SOUND else DAMAGED
        self.problems.append(Problem(kind, 1, at, words.format(at, why)))
        self.doubt = max(self.doubt, doubt)
        self._ended = True

    def _doubt(self, words: str, offset: int, why: object = "", *, doubt: int = CORRUPT) -> None:
        """Read on, though what was read may be wrong."""
        self.problems.append(Problem(UNVERIFIED, 1, offset, words.format(offset, why)))
        self.doubt = max(self.doubt, doubt)


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
            self._end(OTHER_DATA, begin, doubt=SOUND)
            return False
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
        from .inflate_native import LONGEST_HEADER, SMALL_STEP, NativeDeflate

        super().__init__(path, NativeDeflate(SMALL_STEP))
        raw, begin, end = self._raw, checkpoint.block >> 3, checkpoint.bit >> 3
        self.offset = checkpoint.text
        raw.go_to(begin)
        raw.fill()
        header = raw.data[:LONGEST_HEADER]
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
    return [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]


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
        raise UnreadableError(f"cannot unpack the zip archive: {error}") from error
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


class ZstdReader(PackedReader):
    """Frames one behind the other, inflated block by block: so each call gives 128 KiB at most, and what is
    sound before a damage is there. The format is that of RFC 8878.
    """

    def __init__(self, path: Openable, new_frame: Callable[[], Any], error: type[Exception]) -> None:
        super().__init__(path.open("rb", 0))
        self._new_frame = new_frame
        self._error = error
        self._frame: Any = None
        self._has_checksum = False
        self._ready = b""

    def _some(self, most: int) -> bytes:
        if not self._ready:
            begin = self._raw.offset
            try:
                self._ready = self._block() if self._frame is not None else self._begin_frame()
            except self._error as error:
                self._end(BROKEN, begin, str(error).rpartition(": ")[2])
        part, self._ready = self._ready[:most], self._ready[most:]
        return part

    @property
    def _is_empty(self) -> bool:
        return self._ended and not self._ready

    def _begin_frame(self) -> bytes:
        """Begin the next frame, or pass over one that holds no text."""
        raw, begin = self._raw, self._raw.offset
        magic = raw.take(4)
        if not magic:
            self._ended = True
            return b""
        if is_skippable(magic):
            size = raw.take(4)
            if len(size) < 4 or not raw.skip(int.from_bytes(size, "little")):
                self._end(CUT_OFF, doubt=CUT_SHORT)
            return b""
        if magic != b"\x28\xb5\x2f\xfd":
            self._end(OTHER_DATA, begin, doubt=SOUND)
            return b""
        kind = raw.take(1)
        flags = kind[0] if kind else 0
        is_single = flags >> 5 & 1
        more = (0 if is_single else 1) + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
        rest = raw.take(more)
        if not kind or len(rest) < more:
            self._end(CUT_OFF, doubt=CUT_SHORT)
            return b""
        self._has_checksum = bool(flags & 4)
        self._frame = self._new_frame()
        text: bytes = self._frame.decompress(magic + kind + rest)
        return text

    def _block(self) -> bytes:
        raw = self._raw
        head = raw.take(3)
        value = int.from_bytes(head, "little")
        size = 1 if value >> 1 & 3 == 1 else value >> 3
        size = min(size, LARGEST_BLOCK)
        body = raw.take(size) if len(head) == 3 else b""
        text: bytes = self._frame.decompress(head + body)
        if len(head) < 3 or len(body) < size:
            self._end(CUT_OFF, doubt=CUT_SHORT)
        elif value & 1:
            checksum = raw.take(4) if self._has_checksum else b""
            if self._has_checksum and len(checksum) < 4:
                self._end(CUT_OFF, doubt=CUT_SHORT)
            elif self._has_checksum:
                try:
                    text += self._frame.decompress(checksum)
                except self._error:
                    self._doubt(WRONG_SUM, raw.offset)
            self._frame = None
        return text


class StreamReader(PackedReader):
    """Streams of xz or bzip2 one behind the other, which Python's own modules inflate. They get a little at a
    time, as a call that meets damage gives nothing of what was sound before it.
    """

    def __init__(
        self, path: Openable, magic: bytes, new_stream: Callable[[], Any], error: type[Exception]
    ) -> None:
        super().__init__(path.open("rb", 0))
        self._magic = magic
        self._new_stream = new_stream
        self._error = error
        self._stream: Any = None

    def _some(self, most: int) -> bytes:
        raw, begin = self._raw, self._raw.offset
        if self._stream is None:
            self._begin_stream()
            return b""
        data = raw.take(STREAM_STEP) if self._stream.needs_input else b""
        is_last = self._stream.needs_input and not data
        try:
            part: bytes = b"" if is_last else self._stream.decompress(data, most)
        except self._error as error:
            self._end(BROKEN, begin, str(error))
            return b""
        if self._stream.eof:
            raw.data = self._stream.unused_data + raw.data
            self._stream = None
        elif is_last:
            self._end(CUT_OFF, doubt=CUT_SHORT)
        return part

    def _begin_stream(self) -> None:
        raw = self._raw
        while raw.fill() and not raw.data[0] and self._magic == XZ:  # blocks of zeros may part its streams
            raw.data = raw.data.lstrip(b"\0")
        begin = raw.offset
        magic = raw.take(len(self._magic))
        if not magic:
            self._ended = True
        elif magic != self._magic:
            self._end(OTHER_DATA, begin, doubt=SOUND)
        else:
            raw.data = magic + raw.data
            self._stream = self._new_stream()


def is_skippable(magic: bytes) -> bool:
    """Tell whether a frame of zstd begins so that holds no text."""
    return len(magic) >= 4 and magic[0] & 0xF0 == 0x50 and magic[1:4] == b"\x2a\x4d\x18"


def zstd_reader(path: Openable) -> RawReader:
    """Return a reader of a zstd file; UnreadableError says what to install where nothing can read it."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return ZstdReader(path, zstd.ZstdDecompressor, zstd.ZstdError)
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UnreadableError(
            f"is packed with zstd: `{install_hint('zstandard')}`, or unpack it with `zstd -d`"
        ) from None
    return ZstdReader(path, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError)
