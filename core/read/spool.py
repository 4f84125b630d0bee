"""What comes through a pipe, copied to a temporary file that can be read again."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import weakref
from pathlib import Path
from typing import IO

from ..base.digest import blake2b
from ..base.errors import Cancelled, UnreadableError
from ..base.progress import CancelledCallback, Progress, ProgressCallback

SPOOL_BLOCK = 1 << 20
ROOM = 256 << 20
"""Bytes that a spooled input leaves on the disk."""
ROOM_EVERY = 64 << 20
SPOOL_PREFIX = "tracelane-input-"


class Spool:
    """A temporary file without a name, or one that is held locked, removed when nobody needs it any more."""

    def __init__(self, descriptor: int, path: Path) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self.digest = ""
        """Of all of it."""
        self.file = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
        """What is opened to read it, by children of this process, too."""
        if self.file.exists():
            path.unlink()
        else:
            self.file = path
        self.close = weakref.finalize(self, _remove, descriptor, path)


def spooled(
    pipe: IO[bytes], folder: Path | None, progress: ProgressCallback, cancelled: CancelledCallback
) -> Spool:
    """Copy a pipe to a temporary file in a folder, else in the system's. Raises UnreadableError, Cancelled.

    It has no name where other processes can open what this one has open (/proc), so that nothing is left of
    it after a kill either. Elsewhere it is locked while in use, so that leftovers can be told from files in
    use and swept. Reading stops before the disk is full.
    """
    parent = Path(folder or tempfile.gettempdir())
    _sweep(parent)
    try:
        descriptor, path = tempfile.mkstemp(prefix=SPOOL_PREFIX, dir=parent)
    except OSError as error:
        raise _failed(parent, error) from error
    os.fchmod(descriptor, 0o600)
    spool = Spool(descriptor, Path(path))
    try:
        spool.digest = _copied(pipe, descriptor, progress, cancelled)
    except OSError as error:
        spool.close()
        raise _failed(parent, error) from error
    except BaseException:
        spool.close()
        raise
    return spool


def _copied(
    pipe: IO[bytes], descriptor: int, progress: ProgressCallback, cancelled: CancelledCallback
) -> str:
    """Write all that comes to a file and return its digest. Raises OSError, Cancelled."""
    digest, done = blake2b(digest_size=16), 0
    while data := pipe.read(SPOOL_BLOCK):
        if cancelled():
            raise Cancelled
        digest.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        done += len(data)
        if done // ROOM_EVERY != (done - len(data)) // ROOM_EVERY and _room(descriptor) < ROOM:
            raise OSError(errno.ENOSPC, "the input is larger than the disk has room for")
        progress(Progress("reading input", done, None))
    return digest.hexdigest()


def _failed(folder: Path, error: OSError) -> UnreadableError:
    reason = (error.strerror or str(error)).lower()
    return UnreadableError(f"cannot spool the input to {folder}: {reason}")


def _room(descriptor: int) -> int:
    disk = os.fstatvfs(descriptor)
    return disk.f_bavail * disk.f_frsize


def _remove(descriptor: int, path: Path) -> None:
    path.unlink(missing_ok=True)
    os.close(descriptor)


def _sweep(folder: Path) -> None:
    for stale in folder.glob(f"{SPOOL_PREFIX}*"):
        try:
            descriptor = os.open(stale, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stale.unlink(missing_ok=True)
        except OSError:
            pass  # in use, or somebody else's
        finally:
            os.close(descriptor)
