"""Which files a command line's paths mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UnreadableError, UsageError
from ..base.threads import each_at_once
from ..base.vendors import PART_OF_EXPORT, WHOLE_EXPORT
from ..read.urls import WEB, is_url, scheme_of, shown_url, url_name
from .cache import seconds_since

if TYPE_CHECKING:
    from ..read.remote_files import RemoteStatus

LIVE_S = 60.0
"""A file that was written to so lately may still grow."""
TRACE_ENDINGS = (
    ".json",
    ".json.gz",
    ".json.zip",
    ".json.zst",
    ".json.xz",
    ".json.bz2",
    ".trace",
    ".trace.gz",
    ".pt.trace",
)
CAPTURE_TRACES = "capture_traces"
"""The folder in which engines record the graphs that a trace beside it replays."""
MAX_LEVELS, MAX_FOLDERS = 3, 1_000
"""So deep below a folder, and in so many, traces are looked for: CANN writes PROF_x/device_0/timeline."""
DIGITS_OF_DATES = 14
"""Numbers of devices, models and iterations have fewer: step_trace_20240101120001.json."""
STDIN = "-"
UNFINISHED = ".tmp"
"""torch.profiler writes NAME.tmp and renames it when it is complete."""


def traces_in(folder: Path) -> list[Path]:
    """Return the traces in a folder; what an export wrote whole it has not in parts, too."""
    names = [name for name in _names_in(folder) if name.lower().endswith(TRACE_ENDINGS)]
    wholes = {_exported(match[1]) for name in names if (match := WHOLE_EXPORT.match(name))}
    parts = {
        name for name in names if (match := PART_OF_EXPORT.match(name)) and _exported(match[1]) in wholes
    }
    return [folder / name for name in names if name not in parts or WHOLE_EXPORT.match(name)]


def _exported(numbers: str) -> str:
    """Return the numbers in a file's name that tell what was exported; not when, which differs by file."""
    return "" if len(numbers) > DIGITS_OF_DATES else numbers


def unfinished_in(folder: Path) -> list[str]:
    """Return the files of a folder that are named like traces still being written, by name."""
    endings = tuple(ending + UNFINISHED for ending in TRACE_ENDINGS)
    return [str(folder / name) for name in _names_in(folder) if name.lower().endswith(endings)]


def _names_in(folder: Path, *, folders: bool = False) -> list[str]:
    """Return the names of the files (or `folders`) in a folder, but hidden ones; [] where it cannot be
    listed.
    """
    try:
        with os.scandir(folder) as entries:
            is_one = os.DirEntry.is_dir if folders else os.DirEntry.is_file
            return sorted(entry.name for entry in entries if is_one(entry) and entry.name[0] != ".")
    except OSError:
        return []


def expanded(paths: Sequence[str | Path]) -> list[str | Path]:
    """Return the files to open: a folder stands for the traces in it, else in its folders, else in theirs; a
    pattern for the files that it matches. Raises UnreadableError for a folder without any.
    """
    files: list[str | Path] = []
    for path in paths:
        if is_url(path):
            files.extend(remote_inputs(str(path)))
            continue
        if str(path) == STDIN or not os.path.isdir(path):
            matching = [] if os.path.exists(path) else _matching(path)
            files.extend(Path(match) for match in matching if os.path.isfile(match))
            if not matching:
                files.append(path)
            continue
        inside = traces_in(Path(path)) or _traces_below(Path(path))
        if not inside:
            writing = "".join(f"; {note}" for note in unfinished_notes([path]))
            raise UnreadableError(f"{path}: is a directory without traces{writing}")
        files.extend(inside)
    return files


def _traces_below(path: Path) -> list[Path]:
    """Return the traces in the folders of a folder, which are runs or ranks, else in the folders of these;
    what engines captured only where there is nothing else.
    """
    level = [path]
    for _ in range(MAX_LEVELS):
        level = [above / name for above in level for name in _names_in(above, folders=True)][:MAX_FOLDERS]
        runs = [folder for folder in level if folder.name != CAPTURE_TRACES]
        inside = _traces_of(runs) or _traces_of(level)
        if inside:
            return inside
    return []


def _traces_of(folders: Iterable[Path]) -> list[Path]:
    return [trace for folder in folders for trace in traces_in(folder)]


def remote_inputs(url: str) -> list[str]:
    """Return the files that a URL stands for, as `expanded` does. Raises UnreadableError."""
    from ..read.remote_files import list_remote, matching_remote, remote_status

    magic = "*[" if scheme_of(url) in WEB else "*?["
    if set(magic) & set(url):
        if matching := matching_remote(url):
            return matching
        raise UnreadableError(f"{shown_url(url)}: no file matches")
    status = remote_status(url)
    page = scheme_of(url) in WEB and status.mime_type.startswith("text/html")
    if not status.is_folder and not page:
        return [url]
    entries = list_remote(url)
    folders = [entry.url for entry in entries if entry.is_folder]
    runs = [url for url in folders if url_name(url) != CAPTURE_TRACES]
    inside = _named_like_traces(entries)
    for these in (runs, folders):
        inside = inside or [
            name for listed in each_at_once(list_remote, these) for name in _named_like_traces(listed)
        ]
    if not inside:
        raise UnreadableError(f"{shown_url(url)}: is a directory without traces")
    return inside


def _named_like_traces(entries: Iterable[RemoteStatus]) -> list[str]:
    return [
        entry.url
        for entry in entries
        if not entry.is_folder and url_name(entry.url).lower().endswith(TRACE_ENDINGS)
    ]


def check_there(paths: Iterable[str | Path]) -> None:
    """Raise UnreadableError, which names each, where there are paths that lead nowhere; UsageError where
    standard input is given twice.
    """
    names = list(map(str, paths))
    if names.count(STDIN) > 1:
        raise UsageError("standard input can be read once: give - once")
    reasons: dict[str, list[str]] = {}
    for path in dict.fromkeys(names):
        if path != STDIN and not is_url(path) and (reason := _missing(path)):
            reasons.setdefault(reason, []).append(path)
    if reasons:
        raise UnreadableError("; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items()))


def _missing(path: str) -> str:
    """Return why there is nothing at a path, or behind a pattern; "" where there is something."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "" if any(map(os.path.exists, _matching(path))) else "no such file or directory"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def unfinished_notes(paths: Sequence[str | Path]) -> list[str]:
    """Return a sentence for each of the folders among these in which traces are still being written."""
    notes = []
    for path in paths:
        names = [Path(name).name for name in unfinished_in(Path(path))] if os.path.isdir(path) else []
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            notes.append(f"{names[0]}{more} still being written: --wait waits for it")
    return notes


def unfinished_note(path: str) -> tuple[str, ...]:
    """Return what is to be said of a file that has the name of one still being written."""
    if not path.endswith(UNFINISHED):
        return ()
    name = Path(path).name
    try:
        live = seconds_since(os.stat(path).st_mtime) < LIVE_S
    except OSError:
        return ()
    if live:
        return (f"{name} is still being written: it holds what was there so far; --wait waits for the rest",)
    return (f"{name} was left unfinished: a profiler renames a trace that is complete",)


def _matching(pattern: str | Path) -> list[str]:
    """Return the paths that match a pattern of the shell, in order."""
    import glob  # not needed for a path that is there

    return sorted(glob.glob(str(pattern)))
