"""The picture of a trace that is still being read: what workers have drawn so far, added up and passed on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..read.coarse import THREAD, Coarse, LaneName, merged, read_coarse, write_coarse
from ..read.columns import Metadata
from .format import LaneKind
from .lanes import LaneEntry, Names, in_display_order, thread_entry

INTERVAL_S = 0.2
"""Pictures are passed on this often at most, and never take more than a tenth of the time."""
LEAST_PAUSE = 10
FILES = 2
"""Picture files that are left for the reader before the oldest is removed."""


class Sketching:
    """Takes the pictures of parts, in any order, and passes the picture of all on as one file."""

    def __init__(self, folder: Path, announce: Callable[[Path], None]) -> None:
        """Files lie in `folder`; `announce` is given each of them."""
        self._folder = folder
        self._announce = announce
        self._waiting: list[Path] = []
        self._coarse: Coarse | None = None
        self._metadata: dict[int, list[Metadata]] = {}
        self._names = Names()
        self._written: list[Path] = []
        self._count = 0
        self._next = 0.0

    def take(self, picture: Path) -> None:
        """Take the picture of a part; now and then all that came since is passed on."""
        self._waiting.append(picture)
        if time.monotonic() >= self._next:
            self.pass_on()

    def pass_on(self) -> None:
        """Pass on what has not been yet."""
        if not self._waiting:
            return
        began = time.monotonic()
        pictures = [] if self._coarse is None else [self._coarse]
        named = len(self._metadata)
        for picture in self._waiting:
            coarse, about = read_coarse(picture)
            picture.unlink()
            pictures.append(coarse)
            if about["metadata"]:
                self._metadata[about["number"]] = [Metadata(*event) for event in about["metadata"]]
        self._waiting.clear()
        self._coarse = merged(pictures)
        if len(self._metadata) != named:
            self._names = Names.of(part for _, part in sorted(self._metadata.items()))
        path = self._folder / f"sketch-{self._count}"
        self._count += 1
        write_coarse(path, self._coarse, process_entries(self._coarse, self._names))
        self._written.append(path)
        for old in self._written[:-FILES]:
            old.unlink(missing_ok=True)
        del self._written[:-FILES]
        self._announce(path)
        now = time.monotonic()
        self._next = now + max(INTERVAL_S, LEAST_PAUSE * (now - began))


def process_entries(coarse: Coarse, names: Names) -> list[dict[str, Any]]:
    """Return the processes that have lanes, in display order, each with its lanes: (number, title name)."""
    entries = (_entry(number, name, names) for number, name in enumerate(coarse.lanes))
    return [
        {
            "pid": process.pid,
            "name": process.names.name,
            "labels": process.names.labels,
            "lanes": [(entry.content, entry.name) for entry in process.lanes],
        }
        for process in in_display_order(entries, names)
        if process.lanes
    ]


def _entry(number: int, name: LaneName, names: Names) -> LaneEntry:
    if name.kind == THREAD:
        return thread_entry(number, name.pid, name.tid, names)
    key = (name.kind, name.name)
    return LaneEntry(LaneKind(name.kind), name.pid, name.tid, name.name, 0, 0, number, key)
