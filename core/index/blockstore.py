"""Random access to the text of a source: read from the file where it lies so, inflated from a checkpoint on
(`checkpoints`), or from a block store, where every block is packed by itself. That is written after the
commit, of sources that have no checkpoints:

    derived/blocks-v2/data     the packed blocks one after another (deflate, level 1)
    derived/blocks-v2/entries  where each ends, and its checksum

Disposable like everything under `derived`: committed by one rename, rebuilt when missing or damaged.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from ..base.errors import CacheError, Cancelled, TracelaneError, UnreadableError
from ..base.private import make_private_folder, open_private, write_private
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..base.threads import BackgroundThread
from ..read.inflate import RawReader, deflate_library
from ..read.inflate_native import Checkpoint
from ..read.source import Source, open_source
from .cache import finish_folder, unfinished_folder
from .checkpoints import Checkpoints
from .store import Index
from .version import DERIVED

NAME = "blocks-v2"
DATA = "data"
ENTRIES = "entries"
_ENTRY = np.dtype([("end", "i8"), ("crc", "u4"), ("block", "u4")])
LEVEL = 1
READ = 1 << 20
SLOW = "the source is compressed: it was inflated again up to this event"


def block_bytes(index: Index, block: int) -> tuple[bytes, str | None]:
    """Return (the text of one block of the source, why it took long or None). Raises UnreadableError with a
    clear line when the source has gone or has changed since it was indexed.
    """
    offset = int(index.column("blocks.offset")[block])
    length = int(index.column("blocks.length")[block])
    stored = _stored(index, block, length)
    if stored is not None:
        return stored, None
    source = source_of(index)
    if source.seekable:
        return _whole(index, source, source.read_range(offset, length), length), None
    with closing(_InflatedBlocks(index, source)) as text:
        data = text.read(offset, length)
        return _whole(index, source, data, length), SLOW if text.is_slow else None


def _whole(index: Index, source: Source, data: bytes, length: int) -> bytes:
    """Return the text of a block. Raises UnreadableError where the file is not what was indexed any more."""
    source.check_not_rewritten()
    if len(data) != length:
        raise UnreadableError(f"{index.path} has changed since it was indexed: open it again")
    return data


def read_blocks(
    index: Index, blocks: Sequence[int], cancelled: CancelledCallback = never
) -> Iterator[tuple[int, bytes]]:
    """Yield (block, its text) of ascending block numbers; a compressed source is inflated once at most.
    Raises UnreadableError when the source has gone or has changed since it was indexed, Cancelled.
    """
    source = source_of(index)
    offsets, lengths = index.column("blocks.offset"), index.column("blocks.length")
    stored = not source.seekable and has_block_store(index)
    with closing(_InflatedBlocks(index, source)) as text:
        for block in blocks:
            if cancelled():
                raise Cancelled
            offset, length = int(offsets[block]), int(lengths[block])
            if stored:
                yield block, block_bytes(index, block)[0]
            elif source.seekable:
                yield block, _whole(index, source, source.read_range(offset, length), length)
            else:
                yield block, _whole(index, source, text.read(offset, length), length)


class _InflatedBlocks:
    """The text of a compressed source: read on from where it was read last, or from a checkpoint that is
    nearer, or from its beginning.
    """

    def __init__(self, index: Index, source: Source) -> None:
        self._source = source
        self._checkpoints = Checkpoints(index, source)
        self._stream: RawReader | None = None
        self.is_slow = False
        """Whether the text had to be inflated from its beginning."""

    def read(self, offset: int, length: int) -> bytes:
        """Return the text at an offset; fewer bytes where it ends."""
        checkpoint = self._checkpoints.before(offset)
        if checkpoint is not None and not self.is_slow:
            if not self._is_between(checkpoint.text, offset):
                self._open(checkpoint)
            if self._stream is not None and len(data := _onwards(self._stream, offset, length)) == length:
                return data
        if not self.is_slow or not self._is_between(0, offset):
            self._open(None)
        assert self._stream is not None
        return _onwards(self._stream, offset, length)

    def _is_between(self, begin: int, end: int) -> bool:
        return self._stream is not None and begin <= self._stream.offset <= end

    def _open(self, checkpoint: Checkpoint | None) -> None:
        self.close()
        self.is_slow = checkpoint is None
        if checkpoint is None:
            self._stream = self._source.open()
        else:
            self._stream = self._checkpoints.open_at(checkpoint)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None


def source_of(index: Index) -> Source:
    """Return the index's source, checked to be what was indexed. Raises UnreadableError."""
    held = index.source
    if isinstance(held, Source) and held.is_unchanged:
        return held
    if index.path == "-":
        raise UnreadableError("the trace came from standard input: its text is gone, only the index is left")
    try:
        source = open_source(index.path, ts_unit=index.ts_unit)
    except TracelaneError as error:
        raise UnreadableError(f"the arguments are in the trace file: {error}") from None
    if source.fingerprint != index.manifest.get("source"):
        raise UnreadableError(f"{index.path} has changed since it was indexed: open it again")
    return source


def _onwards(stream: RawReader, offset: int, length: int) -> bytes:
    """Read on to an offset and return the bytes there; fewer where the text ends."""
    while stream.offset < offset:
        if not stream.read_some(min(READ, offset - stream.offset)):
            return b""
    parts = []
    while length > 0 and (part := stream.read_some(min(READ, length))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _stored(index: Index, block: int, length: int) -> bytes | None:
    """Return the text of a block, None where there is no store (yet); a damaged one is removed."""
    folder = index.folder / DERIVED / NAME
    try:
        return _read_stored(folder, block, length)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, deflate_library().error):
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _read_stored(folder: Path, block: int, length: int) -> bytes:
    first = max(0, block - 1)
    with open(open_private(folder / ENTRIES), "rb", buffering=0) as file:
        count = block - first + 1
        raw = os.pread(file.fileno(), count * _ENTRY.itemsize, first * _ENTRY.itemsize)
    if len(raw) != count * _ENTRY.itemsize:
        raise ValueError("it lacks the block")
    entries = np.frombuffer(raw, _ENTRY)
    begin, end = (0 if block == 0 else int(entries["end"][0])), int(entries["end"][-1])
    with open(open_private(folder / DATA), "rb", buffering=0) as file:
        if not 0 <= begin <= end <= os.fstat(file.fileno()).st_size:
            raise ValueError("a block is outside of the file")
        packed = os.pread(file.fileno(), end - begin, begin)
    if int(entries["block"][-1]) != block or zlib.crc32(packed) != int(entries["crc"][-1]):
        raise ValueError("a block does not match its checksum")
    text: bytes = deflate_library().decompressobj().decompress(packed, length + 1)
    if len(text) != length:
        raise ValueError("a block is of another length")
    return text


def has_block_store(index: Index) -> bool:
    """Tell whether arguments need no inflating of the source any more."""
    return (index.folder / DERIVED / NAME / ENTRIES).exists()


def needs_block_store(index: Index) -> bool:
    """Tell whether the text cannot be read anywhere, as no store has been written."""
    try:
        return not reads_anywhere(index)
    except UnreadableError:
        return False


def reads_anywhere(index: Index) -> bool:
    """Tell whether blocks are read as fast in any order. Raises UnreadableError."""
    if has_block_store(index):
        return True
    source = source_of(index)
    return source.seekable or Checkpoints(index, source).are_there


def write_block_store(
    index: Index, *, progress: ProgressCallback = no_progress, cancelled: CancelledCallback = never
) -> None:
    """Inflate the source again and keep each block packed. Raises CacheError on a full disk, Cancelled."""
    source = source_of(index)
    derived = index.folder / DERIVED
    try:
        make_private_folder(derived)
        with unfinished_folder(derived, NAME) as building:
            _write(index, source, building, progress, cancelled)
            finish_folder(building, derived / NAME)
    except OSError as error:
        if not has_block_store(index):  # else another process was faster, with the same content
            raise CacheError(
                f"cannot write the block store in {derived}: {error.strerror or error}"
            ) from None


def _write(
    index: Index, source: Source, folder: Path, progress: ProgressCallback, cancelled: CancelledCallback
) -> None:
    offsets, lengths = index.column("blocks.offset"), index.column("blocks.length")
    entries = np.zeros(len(offsets), _ENTRY)
    order = np.argsort(offsets, kind="stable")
    if not np.array_equal(order, np.arange(len(offsets))):
        raise CacheError("the block table is not in file order")
    written = 0
    descriptor = open_private(folder / DATA, os.O_WRONLY | os.O_CREAT)
    with open(descriptor, "wb") as file, closing(source.open()) as stream:
        for block, (offset, length) in enumerate(zip(offsets.tolist(), lengths.tolist())):
            if cancelled():
                raise Cancelled
            text = _whole(index, source, _onwards(stream, offset, length), length)
            packed = deflate_library().compress(text, LEVEL)
            written += file.write(packed)
            entries[block] = written, zlib.crc32(packed), block
            if block % 64 == 0:
                progress(Progress("block store", stream.position_on_disk(), source.size))
    write_private(folder / ENTRIES, entries.tobytes())


PATIENCE_S = 2.0
"""So long the thread may take to stop and to clear up."""
WORTH = 8 << 20
"""Texts shorter than this are inflated again faster than anybody asks."""


def worth_packing(index: Index) -> bool:
    """Tell whether the arguments of this index are slow to read, and a block store would change that."""
    lengths = index.column("blocks.length")
    return int(lengths.sum()) >= WORTH and index.path != "-" and needs_block_store(index)


@contextlib.contextmanager
def packing(indexes: Sequence[Index]) -> Iterator[None]:
    """Have the missing block stores written by a thread while the body runs; what is unfinished at its end is
    dropped. Where no thread can be started, arguments go on being inflated again.
    """
    worthy = [index for index in indexes if worth_packing(index)]
    unwanted = threading.Event()

    def write() -> None:
        for index in worthy:
            with contextlib.suppress(CacheError, UnreadableError):  # arguments stay slow, and say so
                write_block_store(index, cancelled=unwanted.is_set)

    thread = None
    if worthy:
        with contextlib.suppress(MemoryError):
            thread = BackgroundThread(write)
    try:
        yield
    finally:
        unwanted.set()
        if thread is not None:
            thread.join(PATIENCE_S)
