"""Which files a command line's paths mean."""

from __future__ import annotations

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
    """Return the files to open: a folder stands for the traces in it. Raises UnreadableError for an empty
    one.
    """
    found: list[str | Path] = []
    for path in paths:
        if str(path) == STDIN or not os.path.isdir(path):
            found.append(path)
            continue
        inside = traces_in(Path(path))
        if not inside:
            raise UnreadableError(f"{path}: is a directory without traces")
        found.extend(inside)
    return found
