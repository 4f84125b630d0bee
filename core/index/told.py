"""What a trace says of itself beside its events, looked up without reading the events."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import TracelaneError
from ..base.private import read_private
from ..read.envelope import EnvelopeReader
from ..read.source import Source, TextStream, open_source
from ..read.window import Window
from ..remote.files import is_url
from .cache import cache_root, index_key
from .version import FORMAT_VERSION, MANIFEST

MOST_HEAD = 1 << 20
"""Bytes before the events that are looked at."""
MOST_MANIFEST = 256 << 20
TAIL = 64 * 1024
_BLOCK = 1 << 16
_RANKS = re.compile(rb'"distributedInfo"\s*:\s*(?=\{)')


@dataclass(frozen=True)
class Told:
    """Rank, number of ranks and host as the file says them, None or empty where it does not."""

    rank: int | None = None
    world: int | None = None
    host: str = ""

    @property
    def complete(self) -> bool:
        """Whether there is no need to look elsewhere."""
        return self.rank is not None


NOTHING = Told()


def told_by(envelope: Mapping[str, Any]) -> Told:
    """Return what a trace's own keys say: `distributedInfo` and `host_name`."""
    info = envelope.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    host = envelope.get("host_name")
    return Told(
        _count(info.get("rank")), _count(info.get("world_size")), host if isinstance(host, str) else ""
    )


def told_in(path: str | Path, index_dir: Path | None = None) -> Told:
    """Return what a file says: before its events, else behind them, else in its cached index."""
    return look_into(path, index_dir)[1]


def look_into(path: str | Path, index_dir: Path | None = None) -> tuple[Source | None, Told]:
    """Return a file as a source, None where it is none, and what it says as `told_in` does."""
    if not is_url(path) and not os.path.isfile(path):
        return None, NOTHING
    try:
        source = open_source(path)
        said = told_by(_head(source))
        if not said.complete and source.seekable:
            said = _or(said, told_by(_tail(source)))
        if not said.complete:
            said = _or(said, told_by(_cached(source, index_dir)))
    except (TracelaneError, OSError):  # opening it will say what is wrong
        return None, NOTHING
    return source, said


class _Head:
    """The beginning of a stream."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream

    @property
    def offset(self) -> int:
        return self._stream.offset

    def read(self, n: int) -> bytes:
        return self._stream.read(n) if self.offset < MOST_HEAD else b""


def _head(source: Source) -> Mapping[str, Any]:
    stream = source.open()
    try:
        window = Window(_Head(stream), _BLOCK)
        window.more()
        window.at = len(window.data) - len(window.data.lstrip())
        if window.data[window.at : window.at + 1] != b"{":
            return {}
        reader = EnvelopeReader(window)
        reader.read_object()
        return reader.values
    finally:
        stream.close()


def _tail(source: Source) -> Mapping[str, Any]:
    data = source.read_range(max(0, source.size - TAIL), TAIL)
    matches = list(_RANKS.finditer(data))
    if not matches:
        return {}
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(
            data[matches[-1].end() :].decode("utf-8", "replace")
        )
    except (ValueError, RecursionError):
        return {}
    return {"distributedInfo": value}


def _cached(source: Source, index_dir: Path | None) -> Mapping[str, Any]:
    root = cache_root() if index_dir is None else index_dir
    if root is None:
        return {}
    folder = root / f"v{FORMAT_VERSION}" / index_key(dict(source.fingerprint))
    try:
        manifest = json.loads(read_private(folder / MANIFEST, MOST_MANIFEST))
    except (OSError, ValueError, RecursionError):
        return {}
    envelope = manifest.get("envelope") if isinstance(manifest, dict) else None
    return envelope if isinstance(envelope, dict) else {}


def _or(one: Told, other: Told) -> Told:
    return Told(
        other.rank if one.rank is None else one.rank,
        other.world if one.world is None else one.world,
        one.host or other.host,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
