"""The commit that this was made from: the build writes it into sdist and wheel, a checkout asks git."""

from __future__ import annotations

import subprocess
from pathlib import Path

FILE = "COMMIT"
"""Lies where core and tui do: bundle/hatch_hook.py puts it there."""


def commit_of(home: Path) -> str:
    """Return commit and date of what lies in a folder, as "d8a85cb of 2026-11-24"; "" where nothing says."""
    if (written := home / FILE).is_file():
        return written.read_text(encoding="utf-8").strip()
    if not (home / ".git").exists():
        return ""
    try:
        command = ["git", "-C", str(home), "log", "-1", "--format=%h of %cs"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
