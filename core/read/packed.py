"""Opens packed files: gzip, zip, zstd, xz, bzip2, tar. Each reader gives what can be had of damaged data,
says where in the file the damage is, and checks every checksum that the file has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..base.errors import UnreadableError
from ..base.installed import install_hint
from .inflate import Openable, PlainReader, RawReader
from .packed_reader import BROKEN, CUT_OFF, FOLLOWED, WRONG_SUM, PackedReader
from .problem import CUT_SHORT, SOUND
from .tar import TarReader

if TYPE_CHECKING:
    from .checkpoints import CheckpointLog

MAX_BLOCK = 128 << 10
"""Bytes of a block of zstd, packed or not."""
XZ, BZIP2 = b"\xfd7zXZ\0", b"BZh"
STREAM_STEP = 4096
"""Bytes of xz and bzip2 that are inflated at a time."""
MAX_DICTIONARY = 512 << 20
"""Memory that a stream of xz may ask for; `xz -9` asks for 65 MB."""
TAR, IN = "tar", " in "
"""An archive, which may be packed: "tar in gzip"."""


def open_packed(
    file: Openable, packing: str, library: ModuleType | None = None, log: CheckpointLog | None = None
) -> RawReader:
    """Open a packed file or one that is not; deflated data is inflated by `library`, or by the fastest there
    is, which does not tell to the byte how far it has come. Where reading can begin later goes into `log`.
    """
    if packing.startswith(TAR):
        return TarReader(lambda: open_packed(file, packing.removeprefix(TAR).removeprefix(IN), library))
    if packing == "gzip":
        from .deflated import GzipReader

        return GzipReader(file, library, log)
    if packing == "zip":
        from .deflated import zip_reader

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
            self._end(FOLLOWED, begin, doubt=SOUND)
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
        size = min(size, MAX_BLOCK)
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
            self._end(FOLLOWED, begin, doubt=SOUND)
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
