"""Where the traces of captured graphs lie: the folder that engines write beside a trace, and its files.

A replayed graph leaves its kernels in a trace, but not the ops that launched them: those ran once, while the
graph was captured. vLLM and SGLang can record that too, a trace for each batch size, in a folder
`capture_traces`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..base.errors import UnreadableError, UsageError
from ..base.late_pattern import late_pattern
from ..base.numbers import json_value, whole_number
from ..base.private import read_regular
from ..read.urls import is_url, url_in, url_name
from .inputs import CAPTURE_TRACES, STDIN, TRACE_ENDINGS, traces_in
from .options import IndexOptions

DETAILS = "execution_details.json"
"""A list of what the files hold, in folders that TraceLens has looked at: file, batch_size, mode."""
MAX_DETAILS = 4 << 20
BATCH = late_pattern(r"(?:^|[_-])bs_?(\d{1,9})(?!\d)")
RANK = late_pattern(r"rank_?(\d{1,6})(?!\d)")


FileState: TypeAlias = tuple[str, int, str]
"""Name, size and version of a remote file."""


class GraphFile(NamedTuple):
    """A trace of captured graphs; `batch`, `mode` and `rank` as its name or the folder's list says, None and
    "" where neither does.
    """

    path: Path | str  # or URL
    name: str
    batch: int | None
    mode: str
    rank: int | None


class GraphFolder(NamedTuple):
    """A folder with traces of captured graphs; `options` say where their indexes lie. What lies at a URL was
    `listed` when the trace was opened.
    """

    path: Path | str
    options: IndexOptions
    listed: tuple[FileState, ...] = ()

    @property
    def state(self) -> list[list[Any]]:
        """Name, size and time of each file: another state means that the folder has changed."""
        if isinstance(self.path, str):
            return [list(one) for one in self.listed]
        states = []
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat()
                    states.append([entry.name, status.st_size, status.st_mtime_ns])
        return sorted(states)

    def files(self) -> list[GraphFile]:
        """Return the traces in it, by name."""
        known = _said_of_files(self._list_of_files())
        files = []
        for name in self._names():
            if name != DETAILS:
                batch, mode = known.get(name, (_number(BATCH, name), ""))
                files.append(GraphFile(_inside(self.path, name), name, batch, mode, _number(RANK, name)))
        return files

    def _names(self) -> list[str]:
        if isinstance(self.path, Path):
            return [path.name for path in traces_in(self.path)]
        return [name for name, _, _ in self.listed if name.lower().endswith(TRACE_ENDINGS)]

    def _list_of_files(self) -> bytes:
        """Return the folder's list of its files, empty where it has none that can be read."""
        if isinstance(self.path, Path):
            with suppress(OSError):
                return read_regular(self.path / DETAILS, MAX_DETAILS)
        elif any(name == DETAILS for name, _, _ in self.listed):
            from ..read.remote_files import read_remote

            with suppress(OSError, UnreadableError):
                return read_remote(url_in(self.path, DETAILS), 0, MAX_DETAILS)
        return b""


def graph_folder(
    trace: str | Path, named: Sequence[str | Path], options: IndexOptions, may_replay: bool
) -> GraphFolder | None:
    """Return the folder with the captured graphs of a trace: the one that the options name, else the one
    beside it or in a folder that a user `named`; None where there is none. A server is asked only where the
    trace `may_replay` graphs. UsageError where the options name a folder without traces.
    """
    own = options._replace(captures=None, force=False)
    if options.captures is not None:
        inside = options.captures / CAPTURE_TRACES
        folder = GraphFolder(inside if inside.is_dir() else options.captures, own)
        if not folder.files():
            raise UsageError(f"--captures: {options.captures} is no folder with traces of captured graphs")
        return folder
    if str(trace) == STDIN:
        return None
    if is_url(trace):
        return _remote_folder(str(trace), map(str, filter(is_url, named)), own) if may_replay else None
    folders = [Path(path).absolute() for path in named if not is_url(path)]
    for parent in (Path(trace).absolute().parent, *folders):
        path = parent / CAPTURE_TRACES
        if parent.name != CAPTURE_TRACES and path.is_dir() and (folder := GraphFolder(path, own)).files():
            return folder
    return None


def _remote_folder(trace: str, named: Iterable[str], options: IndexOptions) -> GraphFolder | None:
    """Return the folder of captured graphs beside a URL or in those named; None where none can be listed."""
    from ..read.remote_files import list_remote

    parents = (trace.rpartition("/")[0], *(url.rstrip("/") for url in named if url != trace))
    for parent in dict.fromkeys(parents):
        if url_name(parent) == CAPTURE_TRACES or "?" in parent:  # what is signed is one file
            continue
        url = url_in(parent, CAPTURE_TRACES)
        with suppress(OSError, UnreadableError):
            listed = tuple(
                (url_name(one.url), one.version.size, one.version.etag or one.version.changed)
                for one in list_remote(url)
                if not one.is_folder
            )
            if (folder := GraphFolder(url, options, listed))._names():
                return folder
    return None


def _inside(folder: Path | str, name: str) -> Path | str:
    return folder / name if isinstance(folder, Path) else url_in(folder, name)


def _said_of_files(text: bytes) -> dict[str, tuple[int | None, str]]:
    """Return batch size and mode of each file that a folder's list names; nothing where there is none."""
    entries: Any = ()
    with suppress(ValueError):
        entries = json_value(text)
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
