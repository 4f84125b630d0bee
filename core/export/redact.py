"""Redaction: hides names of hosts and users, addresses, and the folders of paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..trace import Trace


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
