"""How traces are indexed: one value that travels from the command line to the reader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..read.source import TsUnit

FOLDERS = ("index_dir", "captures")
BUFFERS = 128 << 20
"""Bytes of events that wait in memory while an index is built, by default: those of a trace of a gigabyte."""


class IndexOptions(NamedTuple):
    """Where indexes lie and how they are built."""

    index_dir: Path | None = None  # None: the cache
    decoder: str = "native"  # or "python", which also reads where the native core is missing
    threads: int | None = None  # None: as many as there are cores
    force: bool = False  # build it anew even where an index is there
    cache_limit: int | None = None  # bytes of all indexes; None: what environment or settings say
    ts_unit: TsUnit = "us"  # what `ts` and `dur` count; an index is of one unit
    buffers: int = BUFFERS  # bytes of events in memory while an index is built; what is more lies in a file
    captures: Path | None = None  # folder with traces of captured graphs; None: the one beside the trace

    def to_message(self) -> dict[str, Any]:
        folders = {key: None if (path := getattr(self, key)) is None else str(path) for key in FOLDERS}
        return {**self._asdict(), **folders}

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> IndexOptions:
        folders = {key: None if (path := message[key]) is None else Path(path) for key in FOLDERS}
        return cls(**{**message, **folders})


DEFAULT_OPTIONS = IndexOptions()
