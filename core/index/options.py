"""How traces are indexed: one value that travels from the command line to the reader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..read.source import TsUnit


class IndexOptions(NamedTuple):
    """Where indexes lie and how they are built."""

    index_dir: Path | None = None  # None: the cache
    decoder: str = "native"  # or "python", which also reads where the native core is missing
    threads: int | None = None  # None: as many as there are cores
    force: bool = False  # build it anew even where an index is there
    cache_limit: int | None = None  # bytes of all indexes; None: what environment or settings say
    ts_unit: TsUnit = "us"  # what `ts` and `dur` count; an index is of one unit

    def to_message(self) -> dict[str, Any]:
        return {**self._asdict(), "index_dir": None if self.index_dir is None else str(self.index_dir)}

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> IndexOptions:
        folder = message["index_dir"]
        return cls(**{**message, "index_dir": None if folder is None else Path(folder)})


DEFAULT_OPTIONS = IndexOptions()
