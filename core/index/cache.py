"""Where indexes lie, how they come there whole, and how they go.

<root>/v<format>/<key>/             a committed index; the key is that of the source's fingerprint
<root>/v<format>/.building-<key>-*  one being written; never opened, swept when its writer is gone
<root>/v<format>/.lock-<key>        held exclusively by the one who builds, shared by readers

Folders have mode 0700 and files 0600 whatever the umask is. What another user owns is never opened: an index,
a lock or a folder that somebody planted counts as not there.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import pwd
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.digest import blake2b
from ..base.errors import CacheError, Cancelled
from ..base.private import (
    FOLDER_MODE,
    FOREIGN,
    is_own_folder,
    make_folders,
    make_private_folder,
    open_private,
)
from ..base.progress import CancelledCallback, never
from .version import FORMAT_VERSION, MANIFEST

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

APPLICATION = "tracelane"
BUILDING = ".building-"
DOOMED = ".doomed-"
LOCK = ".lock-"
WRITER = ".writer"
POLL_S = 0.1
READERS_WAIT_S, TURN_S = 2.0, 0.01
CLOCK_SKEW_S = 3600.0
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def cache_root() -> Path | None:
    """Return the folder for indexes ($XDG_CACHE_HOME or ~/.cache), None when there is no home at all."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given) / APPLICATION
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:  # a container with an arbitrary uid
            return None
    return Path(home) / ".cache" / APPLICATION if os.path.isabs(home) else None


def index_key(fingerprint: dict[str, Any]) -> str:
    text = json.dumps([FORMAT_VERSION, fingerprint], sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Lease:
    """A shared lock that says "an index here is being read"; held until closed or forgotten."""

    def __init__(self, descriptor: int) -> None:
        self.close: Callable[[], object] = weakref.finalize(self, os.close, descriptor)


class IndexLocation(NamedTuple):
    """Where the index of one source belongs. `notes` say why it is not the usual location, `events` what
    happened to an index that lay there.
    """

    folder: Path
    notes: tuple[str, ...] = ()
    temporary: bool = False
    events: tuple[str, ...] = ()

    def with_events(self, events: Sequence[str]) -> IndexLocation:
        return self._replace(events=(*self.events, *events))

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def lock_file(self) -> Path:
        """The file whose lock readers share and builders own."""
        return self.folder.parent / f"{LOCK}{self.key}"

    def exists(self) -> bool:
        """Tell whether a committed index of ours lies here."""
        return is_own_folder(self.folder) and os.path.lexists(self.folder / MANIFEST)

    def lease(self) -> Lease | None:
        """Take the readers' lock; None where locks do not work."""
        return _lease(self.lock_file)

    @contextmanager
    def building(self) -> Iterator[Path]:
        """Yield an empty folder to write an index into; on leaving it becomes the committed index. Any
        exception leaves nothing behind; a full disk and other write errors become a CacheError that says so.
        """
        parent = self.folder.parent
        with _write_errors(parent), unfinished_folder(parent, self.key) as building:
            yield building
            if not (building / MANIFEST).is_file():
                raise CacheError(f"no index was written in {building}")
            self._commit(building)

    @contextmanager
    def exclusive(self, cancelled: CancelledCallback = never) -> Iterator[None]:
        """Be the only builder of this index; waits for another one. Raises Cancelled."""
        held = _wait_for(self.folder.parent / f"{LOCK}{self.key}.build", cancelled)
        try:
            yield
        finally:
            if held is not None:
                held.close()

    def _commit(self, building: Path) -> None:
        """Put the written folder in its place with one rename; what was there is moved aside and removed.
        Readers of the old one keep their mappings: its files are unlinked, never changed.
        """
        is_committed = False
        while not is_committed:
            doomed = _doom(self.folder)
            try:
                finish_folder(building, self.folder)
                is_committed = True
            except OSError as error:  # another one was put there in between, by who removed the lock, too
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            finally:
                if doomed is not None:
                    _remove(doomed)


@contextmanager
def unfinished_folder(parent: Path, key: str) -> Iterator[Path]:
    """Yield an empty private folder in `parent` for what `finish_folder` puts in its place; else it is
    removed on leaving, or by `sweep` once its writer was killed. What others left there is swept first.
    """
    from tempfile import mkdtemp

    sweep(parent)
    building = Path(mkdtemp(prefix=f"{BUILDING}{key}-", dir=parent))
    make_private_folder(building)  # whatever the umask left of its mode
    held = _lease(building / f"{WRITER}-new", exclusive=True)
    try:
        if held is not None:  # it must be held when others see it: what nobody holds is swept
            os.rename(building / f"{WRITER}-new", building / WRITER)
        yield building
    finally:
        if held is not None:
            held.close()
        _remove(building)


def finish_folder(building: Path, target: Path) -> None:
    """Give a folder of `unfinished_folder` its place; OSError, also where something lies there."""
    (building / WRITER).unlink(missing_ok=True)
    os.rename(building, target)


def discard(folder: Path) -> bool:
    """Remove an index, damaged or not wanted any more; False where that cannot be done. Readers keep what
    they have mapped. It goes out of sight first, so that nobody opens half of it.
    """
    try:
        doomed = _doom(folder)
    except OSError:
        return False
    if doomed is not None:
        _remove(doomed)
    return True


def _doom(folder: Path) -> Path | None:
    """Give what lies in the place of an index a name that is swept; None where nothing lies there."""
    from secrets import token_hex

    doomed = folder.with_name(f"{DOOMED}{folder.name}-{os.getpid()}-{token_hex(4)}")
    try:
        os.rename(folder, doomed)
    except FileNotFoundError:
        return None
    return doomed


def _remove(path: Path) -> None:
    """Remove a folder with all that is in it, or what somebody put in its place."""
    from shutil import rmtree

    if path.is_dir() and not path.is_symlink():
        rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def committed_index(fingerprint: dict[str, Any], index_dir: Path | None = None) -> IndexLocation | None:
    """Return where the index of a source lies, in the given folder or the cache, if there is one of ours."""
    root = cache_root() if index_dir is None else index_dir
    if root is None:
        return None
    location = IndexLocation(_version_folder(root) / index_key(fingerprint))
    return location if is_own_folder(location.folder.parent) and location.exists() else None


def locate(fingerprint: dict[str, Any], index_dir: Path | None = None) -> IndexLocation:
    """Return where the index of a source belongs: the given folder, the cache, or a private temporary one.
    The temporary one is removed when the process ends. Raises CacheError when not even that can be made.
    """
    key = index_key(fingerprint)
    root = cache_root() if index_dir is None else index_dir
    if root is None:
        return _temporary(key, "there is no home folder for the cache")
    if (there := committed_index(fingerprint, root)) is not None:
        return there  # a cache that may only be read is good enough for reading
    folder = _version_folder(root)
    location = IndexLocation(folder / key, events=_foreign_events(folder / key))
    trouble = _trouble_writing(folder, shared=index_dir is not None)
    if trouble:
        where = f"the cache {root}" if index_dir is None else f"{index_dir}"
        temporary = _temporary(key, f"{where} cannot be written ({trouble})")
        # What lies there may be an index of this file: each command says that it reads the file again.
        is_foreign = trouble.endswith(FOREIGN)
        return temporary._replace(notes=(), events=temporary.notes) if is_foreign else temporary
    return location


def _foreign_events(folder: Path) -> tuple[str, ...]:
    """Return a line that says whose index lies there, where it is not ours: one of ours takes its place."""
    try:
        foreign = os.lstat(folder).st_uid != os.geteuid()
    except OSError:
        return ()
    return (f"an index in {folder.parent} {FOREIGN}: it was not used",) if foreign else ()


def _version_folder(root: Path) -> Path:
    return root / f"v{FORMAT_VERSION}"


def _trouble_writing(folder: Path, shared: bool) -> str:
    """Make a version folder, try to write in it, and return what went wrong in plain words, or "". The root
    that it lies in is made private, too, unless it is a `shared` one that a user named.
    """
    root = folder.parent
    try:
        if shared:
            root.parent.mkdir(parents=True, exist_ok=True)
        else:
            make_folders(root.parent)
        if not os.path.lexists(root):
            os.mkdir(root, FOLDER_MODE)
        elif not shared and os.lstat(root).st_uid != os.geteuid():  # a link to another disk may be the user's
            return f"{root} {FOREIGN}"
        if not shared:
            make_private_folder(root.resolve())
        make_private_folder(folder)
        from tempfile import TemporaryFile

        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        return f"{error.filename} {reason}" if reason == FOREIGN else reason
    return ""


_temporaries: list[TemporaryDirectory[str]] = []


def _temporary(key: str, why: str) -> IndexLocation:
    import tempfile

    try:
        folder = tempfile.TemporaryDirectory(prefix=f"{APPLICATION}-", ignore_cleanup_errors=True)
        # Laid out like a cache: what is kept beside an index, its marks, stays inside and goes with it.
        versioned = _version_folder(Path(folder.name))
        make_private_folder(versioned)
    except OSError as error:
        raise CacheError(
            f"{why}, and neither can {tempfile.gettempdir()} ({error.strerror or error}): use --index-dir"
        ) from None
    _temporaries.append(folder)  # held until the process ends, then removed by its finalizer
    note = f"{why}: the index is in a temporary folder and deleted afterwards; --index-dir names another"
    return IndexLocation(versioned / key, (note,), temporary=True)


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    """Turn write errors into a CacheError that says where and what to do about it."""
    try:
        yield
    except (OSError, CacheError) as error:
        cause = error.__cause__ if isinstance(error, CacheError) else error
        if isinstance(cause, OSError) and cause.errno in FULL:
            raise CacheError(
                f"no space left in {folder} for the index: free some (tracelane cache clear removes some), "
                "or name another folder with --index-dir"
            ) from error
        if isinstance(error, CacheError):
            raise
        raise CacheError(f"the index cannot be written in {folder}: {error.strerror or error}") from error


def _open_lock(path: Path) -> int | None:
    """Return a descriptor of a lock file of ours; None where there is none and none can be made."""
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        try:
            return open_private(path, flags)
        except OSError:
            continue
    return None


def _try_lock(descriptor: int, how: int) -> bool:
    """Lock without waiting; where the file system has no locks the answer is yes."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _lease(path: Path, *, exclusive: bool = False) -> Lease | None:
    """Lock a file; None where another process has, or none can be made. Readers wait for those who look
    whether an index is in use, or who remove it: both take but a moment.
    """
    until = time.monotonic() + (0.0 if exclusive else READERS_WAIT_S)
    while (descriptor := _open_lock(path)) is not None:
        if _try_lock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH):
            if os.fstat(descriptor).st_nlink:
                return Lease(descriptor)
            os.close(descriptor)  # removed with its index a moment ago: whoever comes next makes another
            continue
        os.close(descriptor)
        if time.monotonic() >= until:
            break
        time.sleep(TURN_S)
    return None


def _wait_for(path: Path, cancelled: CancelledCallback) -> Lease | None:
    """Lock a file for oneself alone, waiting for others; None where none can be made. Raises Cancelled."""
    while (descriptor := _open_lock(path)) is not None:
        lease = Lease(descriptor)
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if cancelled():
                lease.close()
                raise Cancelled
            time.sleep(POLL_S)
        if os.fstat(descriptor).st_nlink:
            return lease
        lease.close()  # removed with its index meanwhile: whoever comes next makes another
    return None


@contextmanager
def unread(lock_file: Path) -> Iterator[bool]:
    """Keep readers of an index away meanwhile; False where there are some, or nothing can be locked."""
    held = _lease(lock_file, exclusive=True)
    try:
        yield held is not None
    finally:
        if held is not None:
            held.close()


def in_use(path: Path) -> bool:
    if not path.exists():
        return False
    with unread(path) as alone:
        return not alone


def sweep(folder: Path) -> None:
    """Remove what killed builders left behind in a version folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        leftover = folder / name
        if name.startswith(DOOMED) or (name.startswith(BUILDING) and _is_abandoned(leftover)):
            _remove(leftover)


def _is_abandoned(building: Path) -> bool:
    writer = building / WRITER
    if writer.exists():  # looked for once: it may appear at any moment, and is held then
        return not in_use(writer)
    try:  # between its making and its writer's lock is but a moment
        return seconds_since(building.stat().st_mtime) > 60
    except OSError:
        return False


def seconds_since(moment: float) -> float:
    """Return how long ago a moment was (seconds since the epoch). Infinite where it lies more than an hour
    ahead: the clock was set back since, and what counts from that moment would otherwise stay new until it
    comes again. Clocks of other hosts may be ahead by less.
    """
    elapsed = time.time() - moment
    return max(elapsed, 0.0) if elapsed >= -CLOCK_SKEW_S else math.inf
