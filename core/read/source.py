"""Where a trace's bytes come from: plain, gzip, zip, zstd, xz, bzip2, tar or standard input, read as UTF-8.

What a file is, is told by its first bytes, never by its name. Nothing is ever read whole into memory.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from ..base.digest import blake2b
from ..base.errors import Cancelled, UnreadableError
from ..base.late_pattern import late_pattern
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..native.library import native_library
from .inflate import (
    PREFIX,
    Openable,
    RawReader,
    added_encoding,
    added_reader,
    utf16_reader,
)
from .local_file import LocalFile
from .packed import IN, TAR, is_skippable, open_packed
from .problem import SOUND, Problem
from .tar import TarReader, is_tar
from .urls import is_url, shown_url

if TYPE_CHECKING:
    from .checkpoints import CheckpointLog
    from .inflate_native import Checkpoint
    from .remote_files import RemoteFile

HEAD = 64 * 1024
"""Bytes at either end that go into the fingerprint."""
ENDS = ("head", "tail")
MAX_OTHERS = 8
"""So many other files of an archive are named."""
SNIFF = 4096
INFLATED_AT_ONCE = 1 << 20

Fingerprint: TypeAlias = dict[str, int | str]
TsUnit: TypeAlias = Literal["us", "ns", "100ns"]
"""What `ts` and `dur` count: µs, as the format has it, or ns, as some writers have it."""
TIME_DIGITS: Mapping[TsUnit, int] = {"us": 3, "ns": 0, "100ns": 2}
"""They count so many powers of ten ns."""

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"PK", "zip"),  # no text begins so: the rest of the signature may be damaged
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
)
_NAMED = {".gz": "gzip", ".zip": "zip", ".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}
_NO_TEXT = late_pattern(rb"[\x00-\x08\x0e-\x1f]")
_TEXT_BEGINS = late_pattern(rb"[\s\x00\xef\xbb\xbf\xfe\xff]{0,64}[\[{]")
ROCPD = (
    "is a database of ROCm's profiler (rocpd): `rocpd convert -i FILE --output-format pftrace` converts it"
)
NSIGHT = "Nsight Systems: `nsys export --type sqlite` and then nsys2json convert it to JSON"
XPLANE = (
    "is a profile of XLA (XSpace, as JAX and TensorFlow write): record it with "
    "jax.profiler.trace(…, create_perfetto_trace=True), which writes perfetto_trace.json.gz too"
)
RECORD = "open the profiler's trace instead (export_chrome_trace, tensorboard_trace_handler)"
_DAMAGED_TAR = (late_pattern(rb"(?s).{257}ustar"), "is a tar archive that is damaged: copy the file again")
_FOREIGN_JSON = (
    _DAMAGED_TAR,
    (
        late_pattern(
            rb'\s{0,64}+\{\s{0,64}+"schema"\s{0,64}+:\s{0,64}+"[\d.]{3,16}(?:-chakra|"(?s:.){0,512}?"nodes")'
        ),
        f"is an execution trace (Chakra): {RECORD}",
    ),
    (
        late_pattern(rb'\s{0,64}+\{\s{0,64}+"rocprofiler-sdk-tool"'),
        "is rocprofv3's own JSON: record with `--output-format pftrace`, or convert its database with rocpd",
    ),
    (
        late_pattern(
            rb'\s{0,64}+\{(?s:.){0,1024}?"\$schema"\s{0,64}+:\s{0,64}+"https?://www\.speedscope\.app/'
        ),
        "is a profile of speedscope: open it there (speedscope.app), or record a trace",
    ),
)
_FOREIGN = (
    _DAMAGED_TAR,
    (
        late_pattern(rb"version https://git-lfs"),
        "is a Git LFS pointer: fetch the file itself with `git lfs pull`",
    ),
    (
        late_pattern(rb'(?i)\s{0,256}+<(?:!doctype\s+html|html)(?s:.){0,512}?i18n-values="dir:textdirection'),
        "is a page that trace2html made: `html2trace`, beside it in catapult, turns it into JSON again",
    ),
    (late_pattern(rb"(?i)\s{0,256}+<(?:!doctype\s+html|html)"), "is an HTML page, not a trace"),
    (late_pattern(rb"\s{0,256}+<\?xml"), "is an XML file, not a trace"),
    (late_pattern(rb"\x7fELF|\x89PNG|%PDF|Rar!"), "is no trace in JSON"),
)
_FOREIGN_BINARY = (
    (
        late_pattern(rb"\x80[\x02-\x05]"),
        "is a Python pickle, but no snapshot of PyTorch's memory (torch.cuda.memory._dump_snapshot): of "
        "pickles only these are read",
    ),
    (late_pattern(rb"SQLite format 3\0(?s:.)*?rocpd_"), ROCPD),
    (late_pattern(rb"SQLite format 3\0(?s:.)*?(?:CUPTI_ACTIVITY|StringIds)"), f"is an export of {NSIGHT}"),
    (
        late_pattern(rb"SQLite format 3\0"),
        "is a database (SQLite), as Nsight Systems and ROCm's rocpd write: nsys2json converts the one, "
        "`rocpd convert` the other",
    ),
    (
        late_pattern(
            rb"\n[\x80-\xff]{0,9}[\0-\x7f](?:\x08[\x80-\xff]{0,9}[\0-\x7f])?\x12[\x05-\x7f]/(?:host|device)[:/]"
        ),
        XPLANE,
    ),
)
PERFETTO, SNAPSHOT = "perfetto", "snapshot"
OWN_FORMS = (PERFETTO, SNAPSHOT)
"""Encodings of what becomes JSON here: packets of Perfetto, a snapshot of PyTorch's memory."""
_SNAPSHOT = late_pattern(rb"\x80[\x02-\x05](?s:.)*?(?:segments|device_traces)")
_PERFETTO = late_pattern(
    rb"\n[\x80-\xff]{0,4}[\0-\x7f](?:[\n\x18\x2a\x32\x40\x50\x5a\x68]|[\xe2\xfa\x9a][\x03\x04])"
)
"""A packet of Perfetto: its length, then a field that packets begin with (clocks, time, track …)."""
_PERFETTO_SUFFIXES = (".pftrace", ".perfetto-trace")
_FOREIGN_SUFFIXES = {
    ".nsys-rep": f"is a report of {NSIGHT}",
    ".qdrep": f"is a report of {NSIGHT}",
    ".qdstrm": f"is a recording of {NSIGHT}",
    ".xplane.pb": XPLANE,
}
"""What binary files of these names are, whose first bytes say nothing sure."""
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_BARE_UTF16 = (
    (late_pattern(rb"(?:[ \t\r\n]\x00)*[\[{]\x00"), "utf-16-le"),
    (late_pattern(rb"(?:\x00[ \t\r\n])*\x00[\[{]"), "utf-16-be"),
)


@dataclass(frozen=True)
class Source:
    """A trace as it lies somewhere: what it is, how to recognise it again, how to read it."""

    path: str  # as given; "-" for standard input
    file: LocalFile | RemoteFile = field(compare=False)  # at the path or URL, or the spool of a pipe
    kind: str  # "plain", "gzip", "zip", "zstd", "xz", "bzip2", "tar", "tar in gzip" and its like, "stdin"
    packing: str  # the same, but for "stdin" how the spooled bytes are packed
    encoding: str  # "utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"; one of OWN_FORMS, PREFIX + NAME
    size: int  # bytes on disk
    fingerprint: Fingerprint
    mark: int = 0  # bytes of the byte order mark
    notes: tuple[str, ...] = ()  # where it comes from, if that is not its path
    ts_unit: TsUnit = "us"  # of JSON; what becomes JSON here has µs
    _keep: object = field(default=None, repr=False, compare=False)

    def to_message(self) -> dict[str, Any]:
        """Return what another process must know of the source to read it, as a JSON object; it inherits the
        open file where one is held.
        """
        values = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("file", "_keep")
        }
        return {**values, "file": self.file.to_message()}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Source:
        values = message["file"]
        file: LocalFile | RemoteFile
        if "url" in values:
            from .remote_files import RemoteFile

            file = RemoteFile.from_message(values)
        else:
            file = LocalFile(Path(values["path"]), values["descriptor"])
        return cls(**{**message, "file": file, "notes": tuple(message["notes"])})

    @property
    def seekable(self) -> bool:
        """Whether byte ranges of the text can be read directly from the file."""
        return self.packing == "plain" and self.encoding.startswith("utf-8") and self.file.has_ranges

    @property
    def becomes_json(self) -> bool:
        """Whether the file is no JSON: what is read is made of it."""
        return self.encoding in OWN_FORMS or self.encoding.startswith(PREFIX)

    @property
    def has_checkpoints(self) -> bool:
        """Whether the text can be inflated from other places than its beginning, once it has been read."""
        return (
            self.packing in ("gzip", "zip")
            and self.encoding.startswith("utf-8")
            and self.file.has_ranges
            and native_library().functions is not None
        )

    @property
    def time_digits(self) -> int:
        """In what its `ts` and `dur` count, as a power of ten ns."""
        return TIME_DIGITS[self.ts_unit]

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is what it was when it was looked at."""
        return self.kind == "stdin" or self.file.is_still(self.fingerprint)

    def check_not_rewritten(self) -> None:
        """Raise UnreadableError where what has been read may be of two states of the file: it was cut, or
        written to elsewhere than behind its end, since it was looked at. Servers are asked by each request.
        """
        if self.kind == "stdin" or not isinstance(self.file, LocalFile):
            return
        try:
            status = self.file.status()
            if (status.st_size, status.st_mtime_ns) == (self.size, self.fingerprint["mtime_ns"]):
                return
            ends = map(_hash, _ends_of(self.file, self.size))
            if status.st_size >= self.size and [*ends] == [self.fingerprint[end] for end in ENDS]:
                return
        except OSError as error:
            raise UnreadableError(f"{self.path}: {_reason(error)}") from error
        raise _rewritten(self.path)

    @property
    def text_start(self) -> int:
        """Offset of the first byte of text: 3 after a byte order mark that is counted, else 0."""
        return self.mark if self.encoding == "utf-8-sig" else 0

    def open(self, library: ModuleType | None = None, log: CheckpointLog | None = None) -> RawReader:
        """Open the inflated UTF-8 text, without a byte order mark, which counts in the offset of UTF-8.
        `library` and `log`: see `open_packed`.
        """
        try:
            reader = open_packed(self.file, self.packing, library, log)
            reader.skip(self.mark)
        except OSError as error:
            raise UnreadableError(f"{self.path}: {_reason(error)}") from error
        except UnreadableError:
            self.check_not_rewritten()
            raise
        if self.encoding.startswith("utf-16"):
            return utf16_reader(reader, self.encoding)
        if self.encoding == PERFETTO:
            from .perfetto import perfetto_reader

            return perfetto_reader(reader)
        if self.encoding == SNAPSHOT:
            from .snapshot import snapshot_reader

            return snapshot_reader(reader, self.path)
        if self.encoding.startswith(PREFIX):
            return added_reader(reader, self.encoding)
        return reader

    def open_at(self, checkpoint: Checkpoint) -> RawReader:
        """Open the inflated text at a checkpoint. Raises InflateError where it cannot be inflated there."""
        from .deflated import ResumedReader

        try:
            return ResumedReader(self.file, checkpoint)
        except OSError as error:
            raise UnreadableError(f"{self.path}: {_reason(error)}") from error

    def packed_problems(self, cancelled: CancelledCallback = never) -> tuple[list[Problem], int]:
        """Inflate all of a packed file; return what is wrong with its data, and in how far its text is
        in doubt. Raises Cancelled.
        """
        if self.packing == "plain":
            return [], SOUND
        reader = open_packed(self.file, self.packing)
        try:
            while reader.read(INFLATED_AT_ONCE):
                if cancelled():
                    raise Cancelled
            return reader.problems, reader.doubt
        finally:
            reader.close()

    def position_on_disk(self, offset: int) -> int:
        """Return how many bytes of the file hold the text before an offset."""
        reader = self.open(zlib)
        try:
            while reader.offset < offset and reader.read(min(INFLATED_AT_ONCE, offset - reader.offset)):
                pass
            return reader.position_on_disk()
        finally:
            reader.close()

    def close(self) -> None:
        """Hold the file no longer; reading it opens it again."""
        self.file.close()

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill a buffer with the text at `offset` of a seekable source; return how much there was, less only
        at its end: that of the file when it was looked at, as it may still be written to.
        """
        if not self.seekable:
            raise ValueError("only a plain UTF-8 source can be read in ranges")
        try:
            return self.file.read_into(buffer[: max(0, self.size - offset)], offset)
        except OSError as error:
            raise UnreadableError(f"{self.path}: {_reason(error)}") from error

    def read_range(self, offset: int, length: int) -> bytes:
        """Return `length` bytes at `offset` of a seekable source; fewer only at its end."""
        data = bytearray(max(0, min(length, self.size - offset)))
        return bytes(data[: self.read_into(memoryview(data), offset)])


def open_source(
    path: str | Path,
    *,
    ts_unit: TsUnit = "us",
    spool_folder: Path | None = None,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Source:
    """Look at what `path` is without reading it through; "-" and pipes go to a temporary file first.
    `ts_unit` is what its times count where it is JSON, and part of what its index is known by. Raises
    UnreadableError, with one clear line, for what is missing, empty, or plainly no trace.
    """
    source = _opened(str(path), spool_folder, progress, cancelled)
    if ts_unit == "us" or source.becomes_json:
        return source
    return replace(source, ts_unit=ts_unit, fingerprint={**source.fingerprint, "ts_unit": ts_unit})


def _opened(
    name: str, spool_folder: Path | None, progress: ProgressCallback, cancelled: CancelledCallback
) -> Source:
    if name == "-":
        return spooled_source(name, sys.stdin.buffer, spool_folder, progress, cancelled)
    if is_url(name):
        return _looked_at_url(name)
    try:
        status = os.stat(name)
        if stat.S_ISDIR(status.st_mode):
            raise UnreadableError(f"{name}: is a directory, not a trace")
        if not stat.S_ISREG(status.st_mode):
            if not stat.S_ISFIFO(status.st_mode):
                raise UnreadableError(f"{name}: is a device or socket, not a trace")
            with open(name, "rb", buffering=0) as pipe:
                return spooled_source(name, pipe, spool_folder, progress, cancelled)
        return _looked_at(name, LocalFile(Path(name)), "")
    except OSError as error:
        raise UnreadableError(f"{name}: {_reason(error)}") from error
    except ValueError as error:  # a NUL in the path
        raise UnreadableError(f"{name!r}: {error}") from error


def current_source(source: Source) -> Source:
    """Return a source that was looked at a while ago; looked at again where its file has changed since."""
    return source if source.is_unchanged else open_source(source.path, ts_unit=source.ts_unit)


def _looked_at(name: str, file: LocalFile, digest: str, keep: object = None) -> Source:
    status = os.fstat(file.descriptor)
    if not status.st_size:
        raise UnreadableError(f"{name}: is empty")
    ends = _ends_of(file, status.st_size)
    try:
        packing, encoding, mark = _forms_of(name, file, bytes(ends[0]))
    except UnreadableError as error:
        now = os.fstat(file.descriptor)
        if (now.st_size, now.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
            raise _rewritten(name) from error
        raise
    fingerprint: Fingerprint = {"size": status.st_size}
    if digest:
        fingerprint["hash"] = digest
    else:
        fingerprint["mtime_ns"] = status.st_mtime_ns
        fingerprint |= zip(ENDS, map(_hash, ends))
    kind = "stdin" if digest else packing
    notes = _zip_notes(name, file) if packing == "zip" else ()
    return Source(name, file, kind, packing, encoding, status.st_size, fingerprint, mark, notes, _keep=keep)


def _rewritten(name: str) -> UnreadableError:
    return UnreadableError(f"{name}: was written to while it was read: open it again")


def _zip_notes(name: str, file: LocalFile) -> tuple[str, ...]:
    """Return what is said of an archive that holds other files than its trace."""
    from .deflated import other_members

    others = other_members(file)
    names = ", ".join(others[:MAX_OTHERS]) + (", …" if len(others) > MAX_OTHERS else "")
    return (f"{name} holds other files, which are neither read nor checked: {names}",) if others else ()


def _ends_of(file: LocalFile, size: int) -> tuple[bytearray, bytearray]:
    """Return what stands at either end of a file of a size."""
    ends = bytearray(min(size, HEAD)), bytearray(min(size, HEAD))
    for end, offset in zip(ends, (0, size - len(ends[0]))):
        del end[file.read_into(memoryview(end), offset) :]
    return ends


def _looked_at_url(url: str) -> Source:
    from .remote_files import RemoteFile, answers_ranges, remote_status

    status = remote_status(url)
    name = shown_url(url)
    if status.is_folder:
        raise UnreadableError(f"{name}: is a directory, not a trace")
    if not status.version.size:
        raise UnreadableError(f"{name}: is empty, or the server does not say how long it is")
    file = RemoteFile(url, status.version, answers_ranges(url, status.version.size))
    with file.open("rb") as stream:
        head = b""
        while len(head) < HEAD and (more := stream.read(HEAD - len(head))):
            head += more
    packing, encoding, mark = _forms_of(name, file, head)
    fingerprint: Fingerprint = {
        "size": file.size, "etag": file.version.etag, "time": file.version.changed, "head": _hash(head)
    }  # fmt: skip
    notes = (f"{name} is redirected to {status.host}",) if status.host else ()
    return Source(url, file, packing, packing, encoding, file.size, fingerprint, mark, notes)


def _hash(data: bytes | bytearray) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _forms_of(name: str, file: Openable, head: bytes) -> tuple[str, str, int]:
    """Return how a file that begins with `head` is packed, its encoding, and how long its byte order mark is.
    Raises UnreadableError for what is plainly no trace.
    """
    packing, text = _packing_of(head), head[:SNIFF]
    if packing == "plain" and _NO_TEXT.search(text[:32]) and not _TEXT_BEGINS.match(text):
        packing = _packing_of_name(name)  # whose beginning is damaged
    if packing != "plain":
        text = _begin_of_text(name, file, packing)
        inner = _packing_of(text)
        if inner == TAR and packing != TAR:
            packing = TAR + IN + packing
            inner = _packing_of(text := _begin_of_text(name, file, packing))
        if inner != "plain":
            raise UnreadableError(f"{name}: is packed twice, {inner} in {packing}: unpack it once")
    encoding, mark = _encoding(text)
    if encoding == "utf-8":
        encoding = _own_encoding(name, text)
    return packing, encoding, mark


def _begin_of_text(name: str, file: Openable, packing: str) -> bytes:
    """Return the first SNIFF bytes of a packed text. Raises UnreadableError where there are none."""
    try:
        reader = open_packed(file, packing, zlib)  # quicker for so little than to load another library
        try:
            text = reader.read(SNIFF)
            if packing == TAR and isinstance(reader, TarReader):
                reader.check_others()
            problems = reader.problems
        finally:
            reader.close()
    except UnreadableError as error:
        raise UnreadableError(f"{name}: {error}") from error
    if not text:
        raise UnreadableError(f"{name}: {problems[0].message if problems else 'holds nothing'}")
    return text


def _packing_of(head: bytes) -> str:
    if is_tar(head):
        return TAR
    if is_skippable(head):
        return "zstd"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "plain")


def _packing_of_name(name: str) -> str:
    return next((kind for ending, kind in _NAMED.items() if name.lower().endswith(ending)), "plain")


def _encoding(text: bytes) -> tuple[str, int]:
    for mark, encoding in _BOMS:
        if text.startswith(mark):
            return encoding, len(mark)
    for pattern, encoding in _BARE_UTF16 if b"\0" in text[:2] else ():
        if pattern.match(text):
            return encoding, 0
    return "utf-8", 0


def _own_encoding(name: str, text: bytes) -> str:
    """Tell whether a file without a mark is text or packets. Raises UnreadableError for what is no trace."""
    is_json = text.lstrip()[:1] in (b"{", b"[")
    if not is_json and (encoding := added_encoding(name, text)):
        return encoding
    if not is_json and _SNAPSHOT.match(text):
        return SNAPSHOT
    for pattern, message in _FOREIGN_JSON if is_json else (*_FOREIGN, *_FOREIGN_BINARY):
        if pattern.match(text):
            raise UnreadableError(f"{name}: {message}")
    if not text.strip():
        raise UnreadableError(f"{name}: holds only blanks")
    if is_json:
        return "utf-8"
    unpacked = name.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".xz").removesuffix(".bz2")
    if _PERFETTO.match(text) or (unpacked.endswith(_PERFETTO_SUFFIXES) and text[:1] == b"\n"):
        return PERFETTO
    for suffix, message in _FOREIGN_SUFFIXES.items():
        if unpacked.endswith(suffix):
            raise UnreadableError(f"{name}: {message}")
    if text.count(0) > len(text) // 16:
        raise UnreadableError(f"{name}: is binary data, not a trace in JSON")
    return "utf-8"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def spooled_source(
    name: str,
    pipe: IO[bytes],
    folder: Path | None = None,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Source:
    """Copy a pipe to a temporary file that goes away with the Source. Raises UnreadableError, Cancelled."""
    from .spool import spooled  # a file by name needs none

    spool = spooled(pipe, folder, progress, cancelled)
    try:
        title = "standard input" if name == "-" else name
        source = _looked_at(title, LocalFile(spool.file), spool.digest, spool)
    except UnreadableError:
        spool.close()
        raise
    return replace(source, path=name, kind="stdin")
