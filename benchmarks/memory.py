"""What a command costs: time, and the peak memory of it and all its children, sampled from /proc."""

from __future__ import annotations

import resource
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
class Memory:
    """Bytes held by a process and all its descendants; all 0 where it cannot be told (no /proc)."""

    private: int = 0  # not backed by files: what the machine must have
    proportional: int = 0  # PSS: with mapped files, each page divided among those who map it

    def __or__(self, other: Memory) -> Memory:
        """Return the greater of both, each."""
        return Memory(max(self.private, other.private), max(self.proportional, other.proportional))


@dataclass(frozen=True)
class Cost:
    """What a command cost."""

    seconds: float
    cpu_s: float  # processor time of all its processes, user and system
    peak: Memory
    output: str


def measured(command: Sequence[str]) -> Cost:
    """Run a command to its end and return its cost; RuntimeError when it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as complaints:
        began, cpu = time.perf_counter(), _cpu_of_children()
        child = subprocess.Popen(command, stdout=out, stderr=complaints)
        peak = Memory()
        while child.poll() is None:
            peak |= memory_of(child.pid)
            time.sleep(INTERVAL_S)
        seconds, cpu = time.perf_counter() - began, _cpu_of_children() - cpu
        out.seek(0)
        complaints.seek(0)
        if child.returncode:
            raise RuntimeError(complaints.read().strip()[-500:] or f"exit code {child.returncode}")
        return Cost(seconds, cpu, peak, out.read())


def measured_python(program: str, *arguments: str) -> Cost:
    """Run a Python program text under the interpreter that runs this one."""
    return measured([sys.executable, "-c", program, *arguments])


def memory_of(root: int) -> Memory:
    """Return what a process and its descendants hold now."""
    private = proportional = 0
    for pid in _family(root):
        try:
            lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines[1:] if line.endswith("kB")}
        private += sizes.get("Pss_Anon", 0) + sizes.get("Pss_Shmem", 0)
        proportional += sizes.get("Pss", 0)
    return Memory(private, proportional)


def free_memory() -> int:
    """Return how many bytes a program could still take, 0 where it cannot be told."""
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), 0)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
