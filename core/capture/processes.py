"""What Linux tells of processes, as far as it lets one user see it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..base.numbers import whole_number

PROC = Path("/proc")
MAX_READ = 1 << 20
DAEMON = "KINETO_USE_DAEMON"
"""The variable that has PyTorch ask a daemon."""
SOCKET_FOLDER = "KINETO_IPC_SOCKET_DIR"
"""The variable that has it look for the daemon's socket in a folder."""
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
"""Variables in which launchers name the rank of a process: torchrun, Slurm, MPI."""
MAX_COMMAND = 60
"""Characters of a command line that are shown."""


def _read(pid: int, name: str) -> bytes:
    """Return the beginning of a file of a process, b"" where it is not to be read."""
    try:
        with open(PROC / str(pid) / name, "rb") as file:
            return file.read(MAX_READ)
    except OSError:
        return b""


def environment_of(pid: int) -> Mapping[str, str]:
    """Return the variables that a process was started with; none of another user's."""
    pairs = (pair.partition(b"=") for pair in _read(pid, "environ").split(b"\0") if b"=" in pair)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def launched_rank(pid: int) -> int | None:
    """Return the rank that a launcher gave a process."""
    environment = environment_of(pid)
    texts = (environment.get(name, "") for name in RANKS)
    return next((whole_number(text) for text in texts if text.isdecimal() and len(text) < 8), None)


def command_line(pid: int) -> str:
    """Return the command line of a process, of a long one the beginning."""
    text = " ".join(os.fsdecode(word) for word in _read(pid, "cmdline").split(b"\0") if word)
    return text if len(text) <= MAX_COMMAND else f"{text[:MAX_COMMAND]}…"


def is_there(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and was not waited for does not."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return bool(fields) and fields[0] not in (b"Z", b"X")


def namespace_of(pid: int | str, kind: str) -> str:
    """Return which namespace of a kind (net, mnt, pid) a process is in, "" where that is not to be seen."""
    try:
        return os.readlink(PROC / str(pid) / "ns" / kind)
    except OSError:
        return ""


def is_shared(pid: int, kind: str) -> bool:
    """Tell whether a process is in the namespace that this one is in, as far as that is to be seen."""
    own, other = namespace_of("self", kind), namespace_of(pid, kind)
    return not own or not other or own == other


def own_processes() -> list[int]:
    """Return the processes of this user, by number."""
    pids = []
    with suppress(OSError):
        for entry in os.scandir(PROC):
            if entry.name.isdecimal():
                with suppress(OSError):
                    if entry.stat().st_uid == os.getuid():
                        pids.append(whole_number(entry.name))
    return sorted(pids)


def silent_processes(heard: set[int]) -> list[int]:
    """Return the processes of this user that were started to ask a daemon, but for those that were heard."""
    return [pid for pid in own_processes() if pid not in heard and DAEMON in environment_of(pid)]


def why_silent(pid: int, seconds: float) -> str:
    """Return why a process has probably not asked the daemon for so many seconds."""
    if not is_there(pid):
        return "there is no such process"
    with suppress(OSError):
        if (PROC / str(pid)).stat().st_uid != os.getuid():
            return "it belongs to another user: run tracelane as that user"
    environment = environment_of(pid)
    if DAEMON not in environment:
        return f"it was started without {DAEMON}=1 in its environment"
    own, other = os.environ.get(SOCKET_FOLDER, ""), environment.get(SOCKET_FOLDER, "")
    if own != other:
        return f"its {SOCKET_FOLDER} is {other or 'not set'}, here it is {own or 'not set'}: set the same"
    if not other and not is_shared(pid, "net"):
        return (
            "it is in another network namespace, as a container's: run tracelane inside, or start both with "
            f"{SOCKET_FOLDER} set to a folder that both see"
        )
    return f"it has not asked for {seconds:.0f} s: PyTorch is not imported yet, is stopped, or has no Kineto"


def holder_of(inode: str) -> int | None:
    """Return the process that has a socket open, None where that is not to be seen."""
    for entry in PROC.glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(entry) == f"socket:[{inode}]":
                return whole_number(entry.parts[2])
    return None


def inode_of(name: str) -> str:
    """Return the number of the socket of a name ("@…" where it is abstract), "" where there is none."""
    with suppress(OSError), open(PROC / "net" / "unix", encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.split(maxsplit=7)
            if len(fields) == 8 and fields[7].rstrip("@\n") == name:
                return fields[6]
    return ""
