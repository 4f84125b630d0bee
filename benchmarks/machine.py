"""What was measured on: machine, system, versions."""

from __future__ import annotations

import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("tracelane", "textual", "rich", "numpy", "orjson", "ijson")


def machine() -> dict[str, Any]:
    """Return what the figures depend on beside the program."""
    return {
        "date": f"{(today := date.today()).day} {today:%B %Y}",
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "not known"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "not known"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
