"""What `--version` says: versions of tracelane and of what it runs on, and whether it has its native core."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from tracelane.core.index.version import FORMAT_VERSION
from tracelane.core.native.library import native_library


def version_text() -> str:
    """Return one line per part: tracelane, native core, index format, Python, numpy, textual."""
    native = native_library()
    lines = {
        "tracelane": version("tracelane"),
        "native core": f"no ({native.reason})" if native.functions is None else "yes",
        "index format": FORMAT_VERSION,
        "Python": f"{platform.python_version()} on {platform.machine()}",
        "numpy": _installed("numpy"),
        "textual": _installed("textual"),
    }
    first, *others = (f"{name} {value}" for name, value in lines.items())
    return "\n".join([first, *(f"  {line}" for line in others)])


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is missing"
