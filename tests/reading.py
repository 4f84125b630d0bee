"""Reading texts and files in tests: what elements come of them, in chunks of any size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.batches import Part, parts_of_batches
from tracelane.core.base.arrays import U8
from tracelane.core.base.errors import UnreadableError
from tracelane.core.base.progress import CancelledCallback, ProgressCallback, never, no_progress
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.version import MANIFEST
from tracelane.core.read.batch import Batch, ColumnBuffers, PlainNumbering, StringTable
from tracelane.core.read.batch_store import BatchStore
from tracelane.core.read.chunks import CHUNK_SIZE, MAX_EVENT_LENGTH, ChunkReader
from tracelane.core.read.documents import BLOCK_SIZE, Documents
from tracelane.core.read.envelope import Envelope
from tracelane.core.read.problem import Problem, merge_problems
from tracelane.core.read.promoted import PromotedTable
from tracelane.core.read.reader import (
    DEFAULT_READ_OPTIONS,
    NATIVE,
    ReadOptions,
    ReadResult,
    SourceReading,
    new_scanner,
    scanner_name,
)
from tracelane.core.read.scan_reference import ReferenceScanner, ScanWatch
from tracelane.core.read.source import open_source
from tracelane.core.read.text_source import TextSource, text_source


class MemoryText(TextSource):
    """A text in memory."""

    def __init__(self, data: bytes) -> None:
        self.start = 0
        self._data = np.frombuffer(data, np.uint8)

    def read_into(self, buffer: U8, offset: int) -> int:
        part = self._data[offset : offset + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def read(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size].tobytes()


@dataclass
class ReadText:
    """The elements of a text in file order, what was wrong with it, and what stands around them."""

    elements: list[Any] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    envelope: Envelope = field(default_factory=Envelope)
    has_events: bool = False
    form: str = ""


def read_text(data: bytes, chunk_size: int = CHUNK_SIZE, longest: int = MAX_EVENT_LENGTH) -> ReadText:
    """Read a text by the plain scanner, chunk after chunk."""
    text = MemoryText(data)
    result = ReadText()

    def recording(watch: ScanWatch) -> ReferenceScanner:
        scanner = ReferenceScanner(ColumnBuffers(PromotedTable()), PlainNumbering(), watch)
        write = scanner.writer.write

        def noted(element: object, begin: int, end: int, **how: bool) -> None:
            result.elements.append(element)
            write(element, begin, end, **how)

        scanner.writer.write = noted  # type: ignore[method-assign]
        return scanner

    reader = ChunkReader(text, recording, chunk_size=chunk_size, longest=longest)
    documents = Documents(text, min(chunk_size, BLOCK_SIZE))
    array = documents.next()
    while array is not None:
        number, begin = array // chunk_size, array
        while True:
            chunk = reader.read(number, begin)
            result.problems += chunk.batch.problems
            number, begin = number + 1, chunk.end
            if chunk.closed or chunk.ended:
                break
        array = documents.next(chunk.end, closed=chunk.closed)
    result.problems += merge_problems([documents.problems])
    result.envelope, result.has_events, result.form = documents.envelope, bool(documents.form), documents.form
    return result


def read_file(path: Path, chunk_size: int = CHUNK_SIZE) -> ReadText:
    """Read a file of any packing likewise."""
    stream = open_source(path).open()
    data = stream.read(1 << 30)
    stream.close()
    return read_text(data, chunk_size)


def batches_of_file(path: Path, chunk_size: int = CHUNK_SIZE) -> Iterator[tuple[Batch, StringTable]]:
    """Yield the batches of a file's first event array, each good until the next, by the scanner there is."""
    text = text_source(open_source(path))
    reader = ChunkReader(text, new_scanner(scanner_name(NATIVE), PromotedTable()), chunk_size=chunk_size)
    documents = Documents(text)
    array = documents.next()
    if array is not None:
        number, begin = array // chunk_size, array
        while True:
            chunk = reader.read(number, begin)
            if chunk.batch.events:
                yield chunk.batch, reader.scanner.table()
            number, begin = number + 1, chunk.end
            if chunk.closed or chunk.ended:
                break
    text.close()


def read_parts(
    path: Path,
    options: ReadOptions = DEFAULT_READ_OPTIONS,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> tuple[ReadResult, list[Part]]:
    """Read a file with all that belongs to it, and return its batches by themselves as well."""
    with TemporaryDirectory() as folder, BatchStore(Path(folder)) as store:
        with SourceReading(open_source(path), store, options, progress, cancelled) as reading:
            result = reading.read()
        return result, parts_of_batches(result.batches, result.tables)


def index_contents(path: Path, folder: Path, decoder: str) -> dict[str, bytes]:
    """Index a file anew by one scanner; return the bytes of all files of the index, the entries of its
    manifest one by one, and why there is none where there is none.
    """
    with TemporaryDirectory(dir=folder) as name:
        options = IndexOptions(index_dir=Path(name), decoder=decoder, threads=1)
        try:
            index = ingest_index(open_source(path), options)
        except UnreadableError as error:
            return {"refused": str(error).encode()}
        with closing(index):
            contents = {file.name: file.read_bytes() for file in index.folder.iterdir() if file.is_file()}
    manifest = json.loads(contents.pop(MANIFEST))
    del manifest["checksum"]
    return contents | {f"{MANIFEST} {key}": json.dumps(value).encode() for key, value in manifest.items()}


def index_differences(path: Path, folder: Path) -> list[str]:
    """Return in what the indexes differ that the native scanner and the plain one make of a file."""
    native, plain = (index_contents(path, folder, decoder) for decoder in ("native", "python"))
    names = sorted(native.keys() | plain.keys())
    return [
        f"{name}: {native.get(name, b'')[:200]!r} and {plain.get(name, b'')[:200]!r}"
        for name in names
        if native.get(name) != plain.get(name)
    ]
