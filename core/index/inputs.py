"""Which files a command line's paths mean."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import UnreadableError

TRACE_ENDINGS = (".json", ".json.gz", ".json.zip", ".json.zst", ".trace", ".trace.gz", ".pt.trace")
STDIN = "-"


def traces_in(folder: Path) -> list[Path]:
    """Return the files of a folder that are named like traces, by name; [] where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file() and not entry.name.startswith(".")]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if name.lower().endswith(TRACE_ENDINGS)]


def expanded(paths: Sequence[str | Path]) -> list[str | Path]:
    """Return the files to open: a folder stands for the traces in it, else in its folders; a pattern for the
    files that it matches. Raises UnreadableError for an empty folder.
    """
    found: list[str | Path] = []
    for path in paths:
        if str(path) == STDIN or not os.path.isdir(path):
            matching = [] if os.path.exists(path) else sorted(glob.glob(str(path)))
            found.extend(Path(match) for match in matching if os.path.isfile(match))
            if not matching:
                found.append(path)
            continue
        inside = traces_in(Path(path)) or _in_folders_of(Path(path))
        if not inside:
            raise UnreadableError(f"{path}: is a directory without traces")
        found.extend(inside)
    return found


def _in_folders_of(folder: Path) -> list[Path]:
    """Return the traces in the folders of a folder: its runs, or one folder per rank."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] != ".")
    except OSError:
        return []
    return [trace for name in names for trace in traces_in(folder / name)]
