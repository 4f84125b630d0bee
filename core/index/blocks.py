"""Random access to the text of an index's source, in blocks: read from the file where it lies so, from the
index where that holds the text packed (`packed_text`), or inflated from a checkpoint on (`checkpoints`), else
from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from ..base.errors import Cancelled, TracelaneError, UnreadableError
from ..base.progress import CancelledCallback, never
from ..read.inflate import RawReader
from ..read.inflate_native import Checkpoint
from ..read.source import Source, open_source
from .checkpoints import Checkpoints
from .packed_text import PackedText
from .store import Index

READ = 1 << 20
SLOW = "the source is compressed: it was inflated again up to this event"


def block_bytes(index: Index, block: int) -> tuple[bytes, str | None]:
    """Return (the text of one block of the source, why it took long or None). Raises UnreadableError with a
    clear line when the text is needed of a source that has gone or has changed since it was indexed.
    """
    with closing(BlockTexts(index)) as texts:
        return texts.read(block), SLOW if texts.is_slow else None


def read_blocks(
    index: Index, blocks: Sequence[int], cancelled: CancelledCallback = never
) -> Iterator[tuple[int, bytes]]:
    """Yield (block, its text) of ascending block numbers; a compressed source is inflated once at most.
    Raises UnreadableError as `block_bytes`, Cancelled.
    """
    with closing(BlockTexts(index)) as texts:
        for block in blocks:
            if cancelled():
                raise Cancelled
            yield block, texts.read(block)


def reads_anywhere(index: Index) -> bool:
    """Tell whether blocks are read as fast in any order. Raises UnreadableError."""
    if PackedText(index).is_there:
        return True
    source = source_of(index)
    return source.seekable or Checkpoints(index, source).are_there


class BlockTexts:
    """The texts of an index's blocks, in any order; the source is only looked for when it is needed."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._packed = PackedText(index)
        self._source: Source | None = None
        self._inflated: _InflatedText | None = None

    @property
    def is_slow(self) -> bool:
        """Whether the text had to be inflated from its beginning."""
        return self._inflated is not None and self._inflated.is_slow

    def read(self, block: int) -> bytes:
        """Return the text of a block."""
        offset = int(self._index.column("blocks.offset")[block])
        length = int(self._index.column("blocks.length")[block])
        if self._packed.is_there and len(text := self._packed.read(offset, length)) == length:
            return text
        text = self._text(offset, length)
        assert self._source is not None
        self._source.check_not_rewritten()
        if len(text) != length:
            raise UnreadableError(f"{self._index.path} has changed since it was indexed: open it again")
        return text

    def _text(self, offset: int, length: int) -> bytes:
        if self._source is None:
            self._source = source_of(self._index)
        if self._source.seekable:
            return self._source.read_range(offset, length)
        if self._inflated is None:
            self._inflated = _InflatedText(self._index, self._source)
        return self._inflated.read(offset, length)

    def close(self) -> None:
        if self._inflated is not None:
            self._inflated.close()


class _InflatedText:
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
