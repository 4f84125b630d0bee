"""What is installed: how to get what is missing, in the way in which tracelane itself was installed, what
other packages add to it, by entry points (docs/recipes.md), and the commit that it was made from.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ADDED_ANALYSES, READERS = "tracelane.analyses", "tracelane.readers"
COMMIT_FILE = "COMMIT"
"""Lies where core and tui do: bundle/hatch_hook.py puts it into sdist and wheel; a checkout asks git."""


def install_hint(packages: str, environment: Path | None = None) -> str:
    """Return the command that adds packages to an environment, without one to that which runs: of pipx or uv
    by the file that each keeps there, else by pip.
    """
    home = Path(sys.prefix) if environment is None else environment
    if (home / "pipx_metadata.json").exists():
        return f"pipx inject tracelane {packages}"
    if (home / "uv-receipt.toml").exists():
        return "uv tool install tracelane " + " ".join(f"--with {name}" for name in packages.split())
    return f"pip install {packages}"


@cache
def added(group: str) -> Mapping[str, Any]:
    """Return the objects of an entry point group by name; what cannot be loaded is warned of and left out."""
    # Looked up here in 2 ms of the 40 that every command would pay for importing importlib.metadata.
    files = (file for folder in sys.path for file in Path(folder).glob("*.dist-info/entry_points.txt"))
    if not any(group.encode() in file.read_bytes() for file in files):
        return {}
    from importlib.metadata import entry_points

    objects: dict[str, Any] = {}
    for point in sorted(entry_points(group=group), key=lambda one: one.name):
        try:
            objects[point.name] = point.load()
        except Exception as error:  # whatever somebody else's code raises
            warnings.warn(f"{group}: {point.value} cannot be loaded: {error!r}", stacklevel=2)
    return objects


def commit_of(home: Path) -> str:
    """Return commit and date of what lies in a folder, as "d8a85cb of 2026-11-24"; "" where nothing says."""
    if (written := home / COMMIT_FILE).is_file():
        return written.read_text(encoding="utf-8").strip()
    if not (home / ".git").exists():
        return ""
    import subprocess

    try:
        command = ["git", "-C", str(home), "log", "-1", "--format=%h of %cs"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
