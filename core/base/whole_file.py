"""Files that get their name when they are whole. What a killed process left of one is removed by the next
that writes a file of the name.

An unfinished file is called `.NAME-HOST-PID.part`. It is left over where no process of that number runs on
this host and nobody holds a lock on it, or where nobody has written to it for a day.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .numbers import whole_number

DAY_S = 86_400
MAX_NAME = 120
"""Characters of a name that stand in that of its unfinished file: names are limited to 255 bytes."""
_PARTS = re.compile(r"-(?P<host>[\w.-]*)-(?P<pid>\d{1,9})\.part")


def is_stream(out: Path) -> bool:
    """Tell whether a path is a pipe, or names a device or an open file (/dev/stdout): it is written to as it
    is, as no other file may take its name.
    """
    folder = out.absolute().parent
    return folder in (Path("/dev"), Path("/dev/fd")) or folder.is_relative_to("/proc") or out.is_fifo()


@contextmanager
def unfinished(out: Path) -> Iterator[Path]:
    """Yield the path of an empty file beside `out` to write to, which is gone afterwards unless it was given
    another name. Raises OSError.
    """
    remove_leftovers(out)
    path = out.with_name(f".{out.name[:MAX_NAME]}-{platform.node()[:MAX_NAME]}-{os.getpid()}.part")
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        os.close(descriptor)
        with suppress(OSError):
            path.unlink(missing_ok=True)


def publish(path: Path, out: Path) -> None:
    """Give an unfinished file its name; FileExistsError where there is one of that name, OSError."""
    try:
        os.link(path, out)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with open(out, "xb"):
            pass
        path.replace(out)


def remove_leftovers(out: Path) -> None:
    """Remove what killed processes left of a file of this name; what cannot be removed stays."""
    with suppress(OSError):
        for name in os.listdir(out.parent):
            parts = _PARTS.fullmatch(name.removeprefix(f".{out.name[:MAX_NAME]}"))
            if parts is not None and name.startswith(f".{out.name[:MAX_NAME]}-"):
                path = out.with_name(name)
                with suppress(OSError):
                    if _is_left(path, parts["host"], whole_number(parts["pid"])):
                        path.unlink()


def _is_left(path: Path, host: str, pid: int) -> bool:
    if time.time() - path.lstat().st_mtime > DAY_S:
        return True
    if host != platform.node()[:MAX_NAME] or _runs(pid):
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
