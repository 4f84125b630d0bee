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
RESTS = 50
"""A look at the memory is followed by a pause of so many times what it took: looking must cost nothing."""
MAX_REST_S = 0.1
"""But no peak may pass unseen."""


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


def measured(command: Sequence[str], watched: bool = True) -> Cost:
    """Run a command to its end and return its cost; RuntimeError when it fails.

    Watching the memory of processes that share theirs takes them a tenth of their time: without it the peak
    is 0.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as complaints,
    ):
        began, cpu = time.perf_counter(), _cpu_of_children()
        child = subprocess.Popen(command, stdout=out, stderr=complaints)
        watch = _Watch(child.pid)
        while watched and child.poll() is None:
            watch.look()
        child.wait()
        seconds, cpu = time.perf_counter() - began, _cpu_of_children() - cpu
        out.seek(0)
        complaints.seek(0)
        if child.returncode:
            raise RuntimeError(complaints.read().strip()[-500:] or f"exit code {child.returncode}")
        return Cost(seconds, cpu, watch.peak, out.read())


def measured_python(program: str, *arguments: str, watched: bool = True) -> Cost:
    """Run a Python program text under the interpreter that runs this one."""
    return measured([sys.executable, "-c", program, *arguments], watched)


class _Watch:
    """The peak of a process and its descendants: private memory often, which the kernel just counts; PSS,
    for which it goes through all pages, more rarely the more there are.
    """

    def __init__(self, root: int) -> None:
        self.peak = Memory()
        self._root = root
        self._next_pss = 0.0

    def look(self) -> None:
        """Look once, and wait until the next look may follow."""
        began = time.perf_counter()
        pids = family(self._root)
        self.peak |= Memory(private=_private(pids))
        done = time.perf_counter()
        if done >= self._next_pss:
            self.peak |= Memory(proportional=_proportional(pids))
            pss_done = time.perf_counter()
            self._next_pss = pss_done + RESTS * (pss_done - done)
        time.sleep(max(INTERVAL_S, min(RESTS * (done - began), MAX_REST_S)))


def memory_of(root: int) -> Memory:
    """Return what a process and its descendants hold now."""
    pids = family(root)
    return Memory(_private(pids), _proportional(pids))


def _private(pids: Sequence[int]) -> int:
    """Return what is not backed by files; pages that a process shares with its copy are counted once."""
    parents = {pid: _text(pid, "stat").rpartition(")")[2].split()[1:2] for pid in pids}
    sharing: set[int] = set()
    for pid, parent in parents.items():
        if parent and int(parent[0]) in parents and _text(pid, "cmdline") == _text(int(parent[0]), "cmdline"):
            sharing |= {pid, int(parent[0])}
    return sum(
        _sizes(pid, "smaps_rollup", ("Pss_Anon",)) + _sizes(pid, "status", ("RssShmem",))
        if pid in sharing
        else _sizes(pid, "status", ("RssAnon", "RssShmem"))
        for pid in pids
    )


def _proportional(pids: Sequence[int]) -> int:
    return sum(_sizes(pid, "smaps_rollup", ("Pss",)) for pid in pids)


def _sizes(pid: int, file: str, names: Sequence[str]) -> int:
    """Return the sum of some sizes that a file of /proc tells of a process, 0 where it has ended."""
    fields = (line.split() for line in _text(pid, file).splitlines() if line.partition(":")[0] in names)
    return sum(int(words[1]) * 1024 for words in fields)


def _text(pid: int, file: str) -> str:
    try:
        return (PROC / str(pid) / file).read_text(encoding="utf-8")
    except OSError:
        return ""


def free_memory() -> int:
    """Return how many bytes a program could still take, 0 where it cannot be told."""
    try:
        lines = (PROC / "meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), 0)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def family(root: int) -> list[int]:
    """Return a process and all its descendants."""
    pids, todo = [], [root]
    while todo:
        pid = todo.pop()
        pids.append(pid)
        try:
            for task in (PROC / str(pid) / "task").iterdir():
                todo += [int(child) for child in (task / "children").read_text(encoding="utf-8").split()]
        except (OSError, ValueError):
            continue
    return pids
