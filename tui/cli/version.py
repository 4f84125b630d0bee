"""What `--version` says: versions of tracelane and of what it runs on, and whether it has its native core."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tracelane.core.index.version import FORMAT_VERSION
from tracelane.core.native.library import native_library

NEEDED = ("click", "numpy", "orjson", "rich", "textual")
OPTIONAL = ("isal", "duckdb", "fsspec", "distributed")
"""Faster or further where they are installed."""


def version_text() -> str:
    """Return one line per part: tracelane, native core, index format, Python, and what it depends on."""
    native = native_library()
    commit = _commit()
    lines = {
        "tracelane": version("tracelane"),
        **({"commit": commit} if commit else {}),
        "native core": f"no ({native.reason})" if native.functions is None else "yes",
        "index format": FORMAT_VERSION,
        "Python": f"{platform.python_version()} on {platform.machine()}",
        **{package: _installed(package) for package in NEEDED},
        **{package: _installed(package, "not installed") for package in OPTIONAL},
    }
    first, *others = (f"{name} {value}" for name, value in lines.items())
    return "\n".join([first, *(f"  {line}" for line in others)])


def _commit() -> str:
    """Return commit and date of the checkout that runs, as "d8a85cb of 2026-11-24"; "" where it is none."""
    home = Path(__file__).resolve().parents[2]
    if not (home / ".git").exists():
        return ""
    try:
        command = ["git", "-C", str(home), "log", "-1", "--format=%h of %cs"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _installed(package: str, otherwise: str = "is missing") -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise
