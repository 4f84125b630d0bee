"""Waiting in tests: for conditions, with one patience that a loaded machine does not exhaust."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 120.0
POLL_S = 0.02


def wait_until(holds: Callable[[], bool], what: str = "the condition") -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_S:.0f} s for {what}")
        time.sleep(POLL_S)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    children = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                children.append(int(entry.name))
    return children


def running_threads() -> int:
    """Return how many threads of Python run beside the first one, whoever started them."""
    return _thread._count()
