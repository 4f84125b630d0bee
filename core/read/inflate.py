"""Readers of the bytes of a file, one per way of packing; each gives what can be had of damaged data. Other
packages add readers that turn files of their own form into a trace in JSON.
"""

from __future__ import annotations

import codecs
import importlib
import struct
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import IO, Any, Protocol

from ..base.errors import TracelaneError, UnreadableError
from ..base.installed import READERS, added, install_hint
from .problem import Problem

RAW_BLOCK = 128 * 1024
"""Bytes of the file that are inflated at a time."""
STORED, DEFLATED = 0, 8


@cache
def deflate_library() -> ModuleType:
    """Return `isal.isal_zlib`, three times as fast as zlib, or zlib itself where there is no wheel of it."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


class Openable(Protocol):
    """A file that can be opened: a path, or one that lies elsewhere."""

    def open(self, mode: str, buffering: int = -1, /) -> IO[Any]:
        """Open it; OSError."""


class RawReader(ABC):
    """Inflated bytes from front to back."""

    damage: Problem | None = None
    """What was wrong with the packed data, once it has been met."""
    offset = 0
    """How many bytes have been read or passed over."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @abstractmethod
    def _read(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""

    def read(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""
        data = self._read(n)
        self.offset += len(data)
        return data

    def position_on_disk(self) -> int:
        """Return how many bytes of the file have been used."""
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def skip(self, n: int) -> None:
        while n > 0 and (data := self.read(min(n, RAW_BLOCK))):
            n -= len(data)


class PlainReader(RawReader):
    """The file as it stands."""

    def _read(self, n: int) -> bytes:
        data = self._file.read(n) or b""
        while len(data) < n and (part := self._file.read(n - len(data))):
            data += part
        return data

    def skip(self, n: int) -> None:
        self._file.seek(n, 1)
        self.offset += n


class ZlibReader(RawReader):
    """Deflated data, with as many members as there are; ends where the data is damaged and says so. `library`
    is zlib or isal_zlib. What isal refuses is inflated again by zlib, which alone says how far the data is
    sound: so the text of a damaged file does not depend on which one is installed.
    """

    def __init__(
        self, path: Openable, *, wbits: int, start: int = 0, members: bool, library: ModuleType | None = None
    ) -> None:
        super().__init__(path.open("rb", 0))
        self._start = start
        self._wbits = wbits
        self._members = members
        self._rewind(library or deflate_library())

    def _rewind(self, library: ModuleType) -> None:
        self._file.seek(self._start)
        self._library = library
        self._inflater: Any = library.decompressobj(self._wbits)
        self._raw = b""
        self._ended = False
        self._produced = 0
        self.damage = None

    def _read(self, n: int) -> bytes:
        parts: list[bytes] = []
        left = n
        while left > 0 and not self._ended:
            if not self._raw:
                self._raw = self._file.read(RAW_BLOCK) or b""
                if not self._raw and self._library is not zlib:
                    self._change_to_zlib()  # which gives some more of what is cut off
                    continue
                if not self._raw and (part := self._inflater.decompress(b"", left)):
                    parts.append(part)  # what did not fit into the call before
                    left -= len(part)
                    self._produced += len(part)
                    continue
                if not self._raw:
                    self._end("truncated", "the compressed data is cut off: what came before was read")
                    break
            before = self._inflater.copy() if self._library is zlib else None
            try:
                part = self._inflater.decompress(self._raw, left)
            except self._library.error as error:
                if before is None:
                    self._change_to_zlib()
                    continue
                part = _salvage(before, self._raw, left)
                parts.append(part)
                self._produced += len(part)
                self._end("truncated", f"the compressed data is damaged ({error}); read up to there")
                break
            parts.append(part)
            left -= len(part)
            self._produced += len(part)
            self._raw = self._inflater.unconsumed_tail
            if self._inflater.eof:
                self._next_member()
        return b"".join(parts)

    def _change_to_zlib(self) -> None:
        """Inflate by zlib from here on, with what came out so far passed over."""
        offset, produced = self.offset, self._produced
        self._rewind(zlib)
        self.skip(produced)
        self.offset = offset

    def _next_member(self) -> None:
        rest = self._inflater.unused_data
        while self._members and not (rest := rest.lstrip(b"\0")):
            block = self._file.read(RAW_BLOCK)
            if not block:
                break
            rest = block
        if self._members and len(rest) == 1:
            rest += self._file.read(1) or b""
        if not self._members or not rest:
            self._ended = True
        elif not rest.startswith(b"\x1f\x8b"):
            self._end("unreadable", "other data follows the compressed data and is left out")
        else:
            self._raw = rest
            self._inflater = self._library.decompressobj(self._wbits)

    def _end(self, kind: str, message: str) -> None:
        self._ended = True
        self.damage = Problem(kind, 1, self._produced, message)

    def position_on_disk(self) -> int:
        return self._file.tell() - len(self._raw)


def _salvage(inflater: zlib._Decompress, raw: bytes, left: int) -> bytes:
    """Return what comes out before the damage: fed byte by byte, as a failing call gives nothing back."""
    parts: list[bytes] = []
    for i in range(len(raw)):
        try:
            part = inflater.decompress(raw[i : i + 1], left)
        except zlib.error:
            break
        parts.append(part)
        left -= len(part)
        if left <= 0:
            break
    return b"".join(parts)


class FileReader(RawReader):
    """An opened file-like object that inflates by itself; its errors end the text."""

    def __init__(self, inflated: Any, raw: IO[bytes], errors: tuple[type[Exception], ...]) -> None:
        super().__init__(raw)
        self._inflated = inflated
        self._errors: tuple[type[Exception], ...] = (*errors, EOFError, OSError)

    def _read(self, n: int) -> bytes:
        data = b""
        while len(data) < n and self.damage is None:
            try:
                part = self._inflated.read(min(n - len(data), RAW_BLOCK))
            except self._errors as error:
                message = f"the compressed data is damaged ({error}); read up to there"
                self.damage = Problem("truncated", 1, self.offset + len(data), message)
                break
            if not part:
                break
            data += part
        return data

    def close(self) -> None:
        self._inflated.close()
        super().close()


def open_packed(file: Openable, packing: str) -> RawReader:
    if packing == "gzip":
        return ZlibReader(file, wbits=31, members=True)
    if packing == "zip":
        return zip_reader(file)
    if packing == "zstd":
        return zstd_reader(file)
    return PlainReader(file.open("rb", 0))


def zip_reader(path: Openable) -> RawReader:
    """Return a reader of the one trace in a zip archive; UnreadableError names the members otherwise."""
    import zipfile  # only for archives

    damage = (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        ValueError,
        OSError,
        EOFError,
        NotImplementedError,
    )
    raw = path.open("rb")
    try:
        archive = zipfile.ZipFile(raw)
    except damage:
        raw.close()
        return _cut_off_zip(path)
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    traces = [m for m in members if m.file_size]
    if len(traces) > 1:
        likely = [m for m in traces if ".json" in m.filename.lower()]
        traces = likely or traces
    try:
        if len(traces) != 1:
            names = ", ".join(m.filename for m in members[:8]) + (", …" if len(members) > 8 else "")
            raise UnreadableError(f"a zip archive must hold one trace; this one holds {names or 'nothing'}")
        return FileReader(archive.open(traces[0]), raw, damage)
    except (RuntimeError, *damage) as error:  # encrypted, packed in an unknown way, or damaged
        raw.close()
        raise UnreadableError(f"cannot unpack the zip archive: {error}") from error
    except UnreadableError:
        raw.close()
        raise


def _cut_off_zip(path: Openable) -> RawReader:
    """Read the first member of an archive whose directory at the end is missing."""
    with path.open("rb") as file:
        head = file.read(30)
    if len(head) < 30 or not head.startswith(b"PK\x03\x04"):
        raise UnreadableError("the zip archive is damaged")
    method, name, extra = struct.unpack("<8xH16xHH", head)
    if method != DEFLATED:
        raise UnreadableError("the zip archive is cut off")
    return ZlibReader(path, wbits=-15, start=30 + name + extra, members=False)


def zstd_reader(path: Openable) -> RawReader:
    """Return a reader of a zstd file; UnreadableError says what to install where nothing can read it."""
    raw = path.open("rb")
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return FileReader(zstd.ZstdFile(raw), raw, (zstd.ZstdError,))
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raw.close()
        raise UnreadableError(
            f"is packed with zstd: `{install_hint('zstandard')}`, or unpack it with `zstd -d`"
        ) from None
    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return FileReader(reader, raw, (zstandard.ZstdError,))


class ConvertedReader(RawReader):
    """The UTF-8 text that something makes of a reader's bytes, part by part."""

    def __init__(
        self, reader: RawReader, parts: Iterable[bytes], problem: Callable[[], Problem | None] = lambda: None
    ) -> None:
        self._reader = reader
        self._parts = iter(parts)
        self._problem = problem
        self._ready = bytearray()

    def _read(self, n: int) -> bytes:
        while len(self._ready) < n and (part := next(self._parts, None)) is not None:
            self._ready += part
        data = bytes(self._ready[:n])
        del self._ready[:n]
        self.damage = self._reader.damage or self._problem()
        return data

    def position_on_disk(self) -> int:
        return self._reader.position_on_disk()

    def close(self) -> None:
        self._reader.close()


def utf16_reader(reader: RawReader, encoding: str) -> RawReader:
    """Return a reader of UTF-16 as UTF-8; what is no UTF-16 becomes U+FFFD."""

    def parts() -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        while raw := reader.read(RAW_BLOCK):
            yield decoder.decode(raw).encode("utf-8", "replace")
        yield decoder.decode(b"", True).encode("utf-8", "replace")

    return ConvertedReader(reader, parts())


PREFIX = "reader:"
"""How the encoding of a source begins that such a reader turns to JSON; its name follows."""


class AddedReader(Protocol):
    """What an entry point of `tracelane.readers` names."""

    def fits(self, name: str, head: bytes) -> bool:
        """Tell by a file's name and its first bytes, unpacked, whether it is of this form; never JSON."""

    def convert(self, file: RawReader) -> Iterable[bytes]:
        """Yield the text of a trace in JSON; `file.read(n)` gives the unpacked bytes from front to back. Each
        time a file is opened the text is the same, to the byte.
        """


def added_encoding(name: str, head: bytes) -> str:
    """Return the encoding of a file that an added reader knows, "" where none does."""
    return next((PREFIX + key for key, reader in added(READERS).items() if _fits(reader, name, head)), "")


def _fits(reader: AddedReader, name: str, head: bytes) -> bool:
    try:
        return bool(reader.fits(name, head))
    except Exception as error:  # whatever somebody else's code raises
        warnings.warn(f"{READERS}: asked about {name}, {reader!r} raised {error!r}", stacklevel=2)
        return False


def added_reader(reader: RawReader, encoding: str) -> RawReader:
    """Return a reader of the JSON text that an added reader makes of a file; an error of its own ends the
    text and is a problem of the file. Raises UnreadableError where it is no longer installed.
    """
    name = encoding.removeprefix(PREFIX)
    if name not in added(READERS):
        raise UnreadableError(f"the reader {name!r} is no longer installed")
    problems: list[Problem] = []

    def parts() -> Iterator[bytes]:
        try:
            yield from added(READERS)[name].convert(reader)
        except TracelaneError:
            raise
        except Exception as error:  # whatever somebody else's code raises
            problems.append(Problem("reader failed", 1, None, f"the reader {name!r} failed: {error!r}"))

    return ConvertedReader(reader, parts(), lambda: problems[0] if problems else None)
