"""What `--version` says: versions of tracelane and of what it runs on, and whether it has its native core."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tracelane.core.base.installed import commit_of
from tracelane.core.index.version import FORMAT_VERSION
from tracelane.core.native.library import native_library

NEEDED = ("click", "numpy", "orjson", "rich", "textual")
OPTIONAL = ("isal", "duckdb", "fsspec", "distributed")
"""Faster or further where they are installed."""


def version_text() -> str:
    """Return one line per part: tracelane, native core, index format, Python, and what it depends on."""
    native = native_library()
    commit = commit_of(Path(__file__).resolve().parents[2])
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


def _installed(package: str, otherwise: str = "is missing") -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise
