"""The elements of the event arrays of a file, as ijson reads them: one after the other, in bounded memory.

Nothing here comes from `core/read`, which this is to be held against: Python's own modules unpack the file,
ijson cuts it into tokens, and a few rules of the format say which of the values in it are events. They are
those of docs/reading.md: the elements of `traceEvents` of an object, of an array, and objects with a `ph` one
behind the other.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ...base.errors import Cancelled, UsageError
from ...base.installed import install_hint
from ...base.progress import CancelledCallback, Progress, ProgressCallback

if TYPE_CHECKING:
    from ...read.source import Source

PIECE = 64 << 10
"""Bytes that ijson gets at once; their tokens are all that is held of the text."""
EVENTS = "traceEvents"
BUILT = frozenset({"name", "cat"})
"""Keys of an event whose lists and objects are built: they count as their JSON text."""
ARGUMENTS = frozenset({"args", "attr"})
EVENT_KEYS = frozenset({"ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "args"})
NESTED = object()
"""Stands for a list or an object that nobody needs."""
OPENING, CLOSING = frozenset({"start_map", "start_array"}), frozenset({"end_map", "end_array"})

Element: TypeAlias = dict[str, Any] | None
"""The keys of an event, their numbers exact (int, Decimal), or None for an element that is no object."""


class ReadingEnd(NamedTuple):
    """Where reading ended before the text did, and why: a byte of the uncompressed UTF-8 text."""

    offset: int
    why: str


class _StoppedError(Exception):
    """The text cannot be read on."""


class _PackedError(_StoppedError):
    """What is packed cannot be unpacked on."""


class _ListOfEvents:
    """Looks at an element that is a list: one that begins with an event is a bracket too many, and what the
    format means by it nobody knows.
    """

    def __init__(self) -> None:
        self._is_first = True

    def event(self, kind: str, value: Any) -> None:
        if self._is_first and kind == "map_key" and value in EVENT_KEYS:
            raise _StoppedError("an element of the events is a list of events")
        self._is_first = self._is_first and kind in OPENING


class ElementParser:
    """Turns tokens into elements, whichever of the three forms the text has, and however they follow each
    other.

    `depth` counts the brackets that are open, `base` those around the elements of the array at hand: 2 under
    `traceEvents`, 1 in an array, 0 for objects one behind the other. Of `{"a": 1, "traceEvents": [{"ph": "i",
    "args": {"x": 1}}]}` the tokens `"a"` and `1` stand at depth 1 with base 0: the object may turn out to be
    an event itself. From the bracket on base is 2: `"ph"` stands at depth 3, among an event's own keys, `"x"`
    at 4, in a value of one.
    """

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self._depth = self._base = 0
        self._own = 1  # the depth of the keys of an element; `base` within an element that is a list
        self._key = ""
        self._event: dict[str, Any] = {}
        self._built: Any = None  # what builds the value at hand, where somebody needs it
        self._in_lines = self._has_array = False

    def take(self, tokens: list[tuple[str, Any]]) -> None:
        """Take the tokens that follow; raises _StoppedError."""
        depth, base, own, key, event = self._depth, self._base, self._own, self._key, self._event
        built = self._built
        for kind, value in tokens:
            if depth > own:
                if built is not None:
                    built.event(kind, value)
                if kind in OPENING:
                    depth += 1
                elif kind in CLOSING:
                    depth -= 1
                    if own == base and depth == base:
                        self.elements.append(None)
                        own, built = base + 1, None
                    elif depth == own and built is not None:
                        event[key], built = built.value, None
            elif depth == own:
                if kind == "map_key":
                    key = value
                elif kind == "end_map":
                    depth -= 1
                    if base or self._is_line(event):
                        self.elements.append(event)
                elif kind not in OPENING:
                    event[key] = value
                elif kind == "start_array" and key == EVENTS and not base and self._may_hold_events(event):
                    depth, base, own, self._has_array = 2, 2, 3, True
                else:
                    depth += 1
                    event[key] = NESTED
                    if key in BUILT or (key in ARGUMENTS and event.get("ph", "C") == "C"):
                        built = _builder()
                        built.event(kind, value)
            elif kind == "start_map":
                event = {}
                depth += 1
            elif kind == "start_array" and not base:
                depth, base, own = 1, 1, 2
            elif kind == "start_array":
                depth, own, built = depth + 1, base, _ListOfEvents()
            elif kind == "end_array":
                depth, base, own, event = depth - 1, 0, 1, {}
            elif base or self._in_lines:
                self.elements.append(None)
        self._depth, self._base, self._own, self._key, self._event = depth, base, own, key, event
        self._built = built

    def _may_hold_events(self, event: dict[str, Any]) -> bool:
        return not self._in_lines and not isinstance(event.get("ph"), str)

    def _is_line(self, event: dict[str, Any]) -> bool:
        """Tell whether an object around which nothing stands is an event: behind the first all are."""
        has_array, self._has_array = self._has_array, False
        self._in_lines = self._in_lines or (not has_array and isinstance(event.get("ph"), str))
        return self._in_lines


def _builder() -> Any:
    from ijson.common import ObjectBuilder

    return ObjectBuilder()


class _Feeding:
    """ijson, its tokens on their way to elements, and the text that it gets piece by piece."""

    def __init__(self, backend: str) -> None:
        import ijson

        self.parser = ElementParser()
        self._tokens = ijson.sendable_list()
        parse = ijson.get_backend(backend).basic_parse_coro
        self._ijson: Any = parse(self._tokens, multiple_values=True)
        # yajl2_c passes on Python's own errors: a number of too many digits, half a surrogate pair.
        self._refusals = (ijson.JSONError, ValueError, ArithmeticError, SystemError, _StoppedError)

    def feed(self, piece: bytes) -> str:
        """Take a piece of the text, b"" for its end; return why it cannot be read on, "" where it can."""
        why = ""
        try:
            if piece:
                self._ijson.send(piece)
            else:
                self._ijson.close()
        except self._refusals as error:
            why = _first_line(error)
        try:
            self.parser.take(self._tokens)
        except _StoppedError as error:
            why = str(error)
        self._tokens.clear()
        return why

    def close(self) -> None:
        """Let go of ijson, which would complain of a text without an end later."""
        with suppress(*self._refusals):
            self._ijson.close()


def _first_line(error: BaseException) -> str:
    text = error.args[0] if error.args else ""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(error)
    return text.strip().partition("\n")[0].strip() or type(error).__name__


class ElementReader:
    """Reads a file once; afterwards `stop` says where that ended too early, None where all was read."""

    def __init__(
        self, source: Source, progress: ProgressCallback, cancelled: CancelledCallback, backend: str = ""
    ) -> None:
        """`backend`: the parser of ijson that reads; else the fastest there is."""
        self.stop: ReadingEnd | None = None
        self._source, self._progress, self._cancelled = source, progress, cancelled
        self._backend = backend or backend_name()
        self._events = 0

    def read(self) -> Iterator[list[Element]]:
        """Yield the elements, some at a time, in the order of the file. Raises Cancelled."""
        feeding, end, stage = _Feeding(self._backend), 0, f"reading with {self._backend}"
        try:
            for begin, piece in self._pieces(stage):
                why = feeding.feed(piece)
                elements, feeding.parser.elements = feeding.parser.elements, []
                self._events += len(elements)
                yield elements
                if why:
                    self.stop = ReadingEnd(self._refused_byte(begin), f"ijson stops there: {why}")
                    return
                end = begin + len(piece)
            if why := feeding.feed(b""):
                self.stop = ReadingEnd(end, f"ijson stops there: {why}")
        except _PackedError as error:
            self.stop = ReadingEnd(end, f"no more can be unpacked: {error}")
        finally:
            feeding.close()

    def _refused_byte(self, begin: int) -> int:
        """Return which byte cannot be read, of the piece that begins there: ijson does not say. All is read
        once more up to that piece, and then byte by byte.
        """
        with closing(_Feeding(self._backend)) as feeding:
            for offset, piece in self._pieces("looking for the byte"):
                if offset < begin:
                    feeding.feed(piece)
                    feeding.parser.elements.clear()
                    continue
                bytes_of_piece = (piece[at : at + 1] for at in range(len(piece)))
                return offset + next((at for at, one in enumerate(bytes_of_piece) if feeding.feed(one)), 0)
        return begin

    def _pieces(self, stage: str) -> Iterator[tuple[int, bytes]]:
        """Yield the text in UTF-8, with the offset of each piece."""
        raw = self._source.file.open("rb")
        try:
            file = _unpacked(raw, raw.read(4))
            head = b""
            while len(head) < 4 and (more := _read(file, 4 - len(head))):
                head += more
            encoding = json.detect_encoding(head)
            decoder = None if encoding.startswith("utf-8") else codecs.getincrementaldecoder(encoding)()
            offset = 0
            if encoding == "utf-8-sig":
                offset, head = len(codecs.BOM_UTF8), head[len(codecs.BOM_UTF8) :]
            piece = head
            while piece:
                try:
                    text = piece if decoder is None else decoder.decode(piece).encode()
                except UnicodeError as error:
                    raise _PackedError(str(error)) from None
                if text:
                    yield offset, text
                offset += len(text)
                if self._cancelled():
                    raise Cancelled
                self._progress(Progress(stage, raw.tell(), self._source.size, self._events))
                piece = _read(file, PIECE)
        finally:
            raw.close()


def _read(file: Any, size: int) -> bytes:
    """Return what follows of an unpacked text; _PackedError where it cannot be unpacked."""
    try:
        return bytes(file.read1(size))  # all that can be unpacked, before the error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise _PackedError(str(error)) from None
    except Exception as error:
        if type(error).__name__ not in _ERRORS_OF_PACKING:
            raise
        raise _PackedError(str(error)) from None


_ERRORS_OF_PACKING = frozenset({"LZMAError", "ZstdError", "BadZipFile"})
"""What only modules raise that need not be there."""


def _unpacked(raw: IO[bytes], head: bytes) -> Any:
    """Return a reader of a file that begins with `head`, unpacked as those bytes say."""
    raw.seek(0)
    for magic, opened in _OPENED.items():
        if head.startswith(magic):
            return opened(raw)
    return raw


def _unzipped(raw: IO[bytes]) -> Any:
    import zipfile

    try:
        archive = zipfile.ZipFile(raw)
        members = [one for one in archive.infolist() if one.file_size]
        members = [one for one in members if not one.filename.startswith("__MACOSX/")]
        if len(members) > 1:
            members = [one for one in members if ".json" in one.filename.lower()]
        if len(members) != 1:
            raise _PackedError("the zip archive does not hold one file of JSON")
        return archive.open(members[0])
    except (zipfile.BadZipFile, RuntimeError) as error:
        raise _PackedError(str(error)) from None


def _of_zstd(raw: IO[bytes]) -> Any:
    try:
        from compression import zstd  # from Python 3.14 on
    except ImportError:
        from zstandard import ZstdDecompressor

        return ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return zstd.ZstdFile(raw)


def _of_xz(raw: IO[bytes]) -> Any:
    import lzma

    return lzma.LZMAFile(raw)


def _of_bzip2(raw: IO[bytes]) -> Any:
    import bz2

    return bz2.BZ2File(raw)


_OPENED: Mapping[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"PK": _unzipped,
    b"\x28\xb5\x2f\xfd": _of_zstd,
    b"\xfd7zX": _of_xz,
    b"BZh": _of_bzip2,
}
"""By its first bytes, what unpacks a file."""


def backend_name() -> str:
    """Return which of its parsers ijson uses here. Raises UsageError where it is not installed."""
    try:
        import ijson
    except ImportError:
        raise UsageError(f"another parser of JSON is needed, ijson: {install_hint('ijson')}") from None
    return str(ijson.backend)
