"""What a command costs: wall time, and the peak memory of it and all its children, sampled from /proc."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
INTERVAL_S = 0.02


@dataclass(frozen=True)
class Cost:
    """What a command cost; memory in bytes, None where it cannot be told (no /proc)."""

    seconds: float
    own: int | None  # peak of the sum of private and proportionally shared memory (PSS)
    resident: int | None  # peak of the sum of RSS, shared pages counted in each process
    output: str


def measured(command: Sequence[str]) -> Cost:
    """Run a command to its end and return its cost; RuntimeError when it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as complaints:
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=complaints)
        own = resident = 0
        while child.poll() is None:
            shares = [_memory(pid) for pid in _family(child.pid)]
            own = max(own, sum(share[0] for share in shares))
            resident = max(resident, sum(share[1] for share in shares))
            time.sleep(INTERVAL_S)
        seconds = time.perf_counter() - began
        out.seek(0)
        complaints.seek(0)
        if child.returncode:
            raise RuntimeError(complaints.read().strip()[-500:] or f"exit code {child.returncode}")
        known = resident > 0
        return Cost(seconds, own if known else None, resident if known else None, out.read())


def measured_python(program: str, *arguments: str) -> Cost:
    """Run a Python program text under the interpreter that runs this one."""
    return measured([sys.executable, "-c", program, *arguments])


def _family(root: int) -> list[int]:
    """Return a process and all its descendants."""
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            for task in (PROC / str(pid) / "task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, ValueError):
            continue
    return found


def _memory(pid: int) -> tuple[int, int]:
    """Return (PSS, RSS) of a process in bytes; zeros once it is gone."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines[1:] if line.endswith("kB")}
    return fields.get("Pss", 0), fields.get("Rss", 0)
