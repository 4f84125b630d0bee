"""Pids, as JSON texts, that name no process, or two."""

from __future__ import annotations

SHARED_PID = " "
"""Stands after the JSON text of a device's pid that is a program's, too (core/index/shared_pids.py)."""

_ASIDE = frozenset({'""', "null", '"Spans"', '"Traces"'})
"""Those under which profilers file notes about themselves, and what has no pid."""


def stands_aside(pid: str, name: str) -> bool:
    """Tell whether a process is none: the profiler's own notes, or events without a pid."""
    return not name and pid in _ASIDE
