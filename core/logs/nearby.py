"""The telemetry logs in the folders of a trace: offered to the user, never opened on their own."""

from __future__ import annotations

from pathlib import Path

from ..base.private import open_regular
from ..trace import Trace
from .header import csv_header, text_header

LOG_SUFFIXES = (".txt", ".csv", ".log")
HEAD = 4096
MOST_FILES = 1000
"""The most files of a folder that are looked at for a log."""


def nearby_logs(trace: Trace) -> list[Path]:
    """Return the aiu-smi logs that lie in the folders of a trace's files, by their first line."""
    paths = [Path(source.path) for source in trace.sources]
    folders = dict.fromkeys(path.parent for path in paths if path.is_file())
    logs = []
    for folder in folders:
        try:
            files = sorted(p for p in folder.iterdir() if p.suffix.lower() in LOG_SUFFIXES)[:MOST_FILES]
        except OSError:
            continue
        logs += [path for path in files if is_aiu_smi(path)]
    return logs


def is_aiu_smi(path: Path) -> bool:
    try:
        with open(open_regular(path), "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    for line in head.splitlines()[:20]:
        text = line.lstrip().startswith(b"#") and b"," not in line
        header = text_header(line) if text else csv_header(line)
        if header is not None:
            return header.tool == "aiu-smi"
    return False
