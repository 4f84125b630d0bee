"""What a performance issue needs in one file: report, summary, a cut of one iteration, the logs' lines; and
redaction, which hides names of hosts and users, addresses, and the folders of paths.
"""

from __future__ import annotations

import gzip
import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ..base.clock import Clocks
from ..base.errors import CacheError, UsageError
from ..base.safe_text import safe_lines
from ..base.whole_file import publish, unfinished
from ..tables.frame.scope import Scope
from .cut import cut_scope
from .report import Example

if TYPE_CHECKING:
    from ..trace import Trace


_ESCAPED_SLASH = re.compile(r"(?<!\\)((?:\\\\)*)\\/")
MAX_SLICES = 2_000_000
"""A trace without steps is cut to the scope; with more slices than this the file would not be small, and is
left out.
"""


def bundle(
    out: Path,
    trace: Trace,
    example: Example,
    clocks: Clocks,
    texts: Mapping[str, str],
    logs: Mapping[str, bytes],
    hide: Callable[[str], str] | None = None,
) -> list[str]:
    """Write texts, logs and a cut of each file's example, under these clocks, to a zip file; return the names
    in it. `hide` is applied to all but the texts, which the caller has redacted already. Raises UsageError
    where `out` exists, CacheError where it cannot be written.
    """
    if out.exists():
        raise UsageError(f"{out} is there already: choose another name, or remove it")
    names: list[str] = []
    try:
        with unfinished(out) as whole, tempfile.TemporaryDirectory(prefix="tracelane-") as folder:
            with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
                for name, text in texts.items():
                    packed.writestr(name, safe_lines(text))
                    names.append(name)
                for name, data in logs.items():
                    manifest = data.decode("utf-8", "replace")
                    packed.writestr(name, hide(manifest) if hide else manifest)
                    names.append(name)
                names += _cuts(packed, Path(folder), trace, example, clocks, hide)
            publish(whole, out)
    except OSError as error:
        raise CacheError(f"{out} cannot be written: {error.strerror or error}") from error
    return names


def _cuts(
    packed: zipfile.ZipFile,
    folder: Path,
    trace: Trace,
    example: Example,
    clocks: Clocks,
    hide: Callable[[str], str] | None,
) -> list[str]:
    """Add a cut of the example of each file that has something in it."""
    names = []
    for number, index in enumerate(trace.indexes):
        if not example.label and index.length("slices.start") > MAX_SLICES:
            continue
        piece = folder / f"{number}.json"
        name = f"trace-{number}.json.gz" if len(trace.indexes) > 1 else "trace.json.gz"
        try:
            cut_scope(Scope(trace, (example.start, example.end), clocks=clocks, source=number), piece)
        except UsageError:
            continue  # nothing of this file lies in the window
        with (
            piece.open(encoding="utf-8", errors="surrogateescape") as lines,
            packed.open(name, "w", force_zip64=True) as entry,
            gzip.GzipFile(fileobj=entry, mode="wb", mtime=0) as stream,
            io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape") as text,
        ):
            for line in lines:
                text.write(hide(_ESCAPED_SLASH.sub(r"\1/", line)) if hide else line)
        piece.unlink()
        names.append(name)
    return names


HIDDEN = "redacted"
_KEYS = re.compile(r"host|user|job|task|cluster|entitlement|attribution|node|mail|workflow", re.IGNORECASE)
"""Keys of an envelope whose values may name a host, a user or a job."""
_USER = re.compile(r"(?:/home/|/Users/|/u/|torchinductor_)([A-Za-z_][\w.-]*)")
_WORKER = re.compile(r"^([A-Za-z][\w.-]*?)_\d+(?:\.\d+)*\.pt\.trace\.json")
"""torch's file names: worker (host and pid), time."""
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_FOLDERS = re.compile(r"(?<![\w.>])/(?:[^\s\"'/:;,()\\<>|\[\]{}]+/)+")
_TELLING = re.compile(r"^(?:sdsc|triton|spyre)_\w+$")
"""Names of folders that stay: the last folder of a generated kernel is the name of the kernel."""
SHORTEST = 3
"""Words of fewer letters are too common to be hidden wherever they stand."""


@dataclass(frozen=True)
class Redaction:
    """The words to hide wherever they stand, besides addresses and folders."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, trace: Trace, more: Iterable[str] = ()) -> Redaction:
        """Return the redaction for a trace: what its envelopes and file names say of hosts and users."""
        words = {word for word in (*_words(trace), *more) if len(word) >= SHORTEST}
        return cls(tuple(sorted(words, key=lambda word: (-len(word), word))))

    def __call__(self, text: str) -> str:
        """Return a text with the words, users, addresses and folders hidden; the last part of each path
        stays.
        """
        users = {user for user in _USER.findall(text) if len(user) >= SHORTEST} - set(self.words)
        text = _FOLDERS.sub(_folders, text)
        for word in (*self.words, *sorted(users, key=len, reverse=True)):
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", HIDDEN, text)
        return _ADDRESS.sub(HIDDEN, text)


def _folders(match: re.Match[str]) -> str:
    last = match.group().rstrip("/").rsplit("/", 1)[-1]
    return f"/{HIDDEN}/{last}/" if _TELLING.match(last) else f"/{HIDDEN}/"


def _words(trace: Trace) -> Iterator[str]:
    for index in trace.indexes:
        for key, value in index.envelope.items():
            if _KEYS.search(key) and isinstance(value, str):
                yield value
    for source in trace.sources:
        path = PurePath(source.path)
        if match := _WORKER.match(path.name):
            yield match.group(1)
        yield from _USER.findall(str(path.parent) + "/")
