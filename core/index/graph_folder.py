"""Where the traces of captured graphs lie: the folder that engines write beside a trace, and its files.

A replayed graph leaves its kernels in a trace, but not the ops that launched them: those ran once, while the
graph was captured. vLLM and SGLang can record that too, a trace for each batch size, in a folder
`capture_traces`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..base.errors import UsageError
from ..base.numbers import json_value, whole_number
from ..base.private import read_regular
from ..read.urls import is_url
from .inputs import CAPTURE_TRACES, STDIN, traces_in
from .options import IndexOptions

DETAILS = "execution_details.json"
"""A list of what the files hold, in folders that TraceLens has looked at: file, batch_size, mode."""
MAX_DETAILS = 4 << 20
BATCH = re.compile(r"(?:^|[_-])bs_?(\d{1,9})(?!\d)")
RANK = re.compile(r"rank_?(\d{1,6})(?!\d)")


class GraphFile(NamedTuple):
    """A trace of captured graphs; `batch`, `mode` and `rank` as its name or the folder's list says, None and
    "" where neither does.
    """

    path: Path
    batch: int | None
    mode: str
    rank: int | None


class GraphFolder(NamedTuple):
    """A folder with traces of captured graphs; `options` say where their indexes lie."""

    path: Path
    options: IndexOptions

    @property
    def state(self) -> list[list[Any]]:
        """Name, size and time of each file: another state means that the folder has changed."""
        states = []
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat()
                    states.append([entry.name, status.st_size, status.st_mtime_ns])
        return sorted(states)

    def files(self) -> list[GraphFile]:
        """Return the traces in it, by name."""
        listed = _listed(self.path / DETAILS)
        files = []
        for path in traces_in(self.path):
            if path.name == DETAILS:
                continue
            batch, mode = listed.get(path.name, (_number(BATCH, path.name), ""))
            files.append(GraphFile(path, batch, mode, _number(RANK, path.name)))
        return files


def graph_folder(trace: str | Path, named: Sequence[str | Path], options: IndexOptions) -> GraphFolder | None:
    """Return the folder with the captured graphs of a trace: the one that the options name, else the one
    beside it or in a folder that a user `named`; None where there is none. UsageError where the options name
    a folder without traces.
    """
    own = options._replace(captures=None, force=False)
    if options.captures is not None:
        inside = options.captures / CAPTURE_TRACES
        folder = GraphFolder(inside if inside.is_dir() else options.captures, own)
        if not folder.files():
            raise UsageError(f"--captures: {options.captures} is no folder with traces of captured graphs")
        return folder
    if is_url(trace) or str(trace) == STDIN:
        return None
    folders = [Path(path).absolute() for path in named if not is_url(path)]
    for parent in (Path(trace).absolute().parent, *folders):
        folder = GraphFolder(parent / CAPTURE_TRACES, own)
        if parent.name != CAPTURE_TRACES and folder.path.is_dir() and folder.files():
            return folder
    return None


def _listed(path: Path) -> dict[str, tuple[int | None, str]]:
    """Return batch size and mode of each file that the folder's list names; nothing where there is none."""
    entries: Any = ()
    with suppress(OSError, ValueError):
        entries = json_value(read_regular(path, MAX_DETAILS))
    listed = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(name := entry.get("file"), str):
            batch, mode = entry.get("batch_size"), entry.get("mode")
            is_number = isinstance(batch, int) and not isinstance(batch, bool)
            listed[name] = (batch if is_number else None, mode if isinstance(mode, str) else "")
    return listed


def _number(pattern: re.Pattern[str], name: str) -> int | None:
    match = pattern.search(name)
    return None if match is None else whole_number(match[1])
