"""Files and folders that belong to one user: made for that user alone, read only where that user owns them.

Others on a host may plant links, pipes and folders in places that everybody can write to. Nothing private
follows a link, waits for a pipe, or reads what somebody else owns. Modes do not depend on the umask. Files
that the user names (`open_regular`) may be links and anybody's, but no pipes or devices, which may never end.
So may the settings file, which is read here, too.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import zlib
from pathlib import Path
from typing import Any

from .numbers import toml_tables

FOLDER_MODE = 0o700
FILE_MODE = 0o600
FOREIGN = "belongs to another user"
MAX_JSON = 1 << 30
"""No file of results is longer."""
_SEAL = 9
"""Bytes before sealed data: eight hexadecimal digits and a line feed."""


def make_private_folder(folder: Path) -> None:
    """Make a folder into which only its owner may look, or make it so; PermissionError where it is not ours.
    The folder it lies in must be there.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, FOLDER_MODE)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        if not _is_ours(os.lstat(folder)):
            raise _foreign(folder) from None
        os.chmod(folder, FOLDER_MODE)  # ours, made under a umask that forbids everything
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not _is_ours(status):
            raise _foreign(folder)
        if stat.S_IMODE(status.st_mode) & 0o777 != FOLDER_MODE:
            with contextlib.suppress(OSError):  # a file system that is read-only, or has no modes
                os.fchmod(descriptor, FOLDER_MODE)
    finally:
        os.close(descriptor)


def make_folders(folder: Path) -> None:
    """Make a folder and those above it that are missing, for their owner alone whatever the umask; OSError.
    Those that are there stay as they are.
    """
    if folder.is_dir():
        return
    make_folders(folder.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, FOLDER_MODE)
        os.chmod(folder, FOLDER_MODE)


def is_own_folder(folder: Path) -> bool:
    """Tell whether a path is a folder that this user owns, and no link."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_ours(status)


def open_private(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file of ours; OSError for a link, a pipe, or somebody else's file."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, FILE_MODE)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
        if not _is_ours(status):
            raise _foreign(path)
        if flags & os.O_CREAT and stat.S_IMODE(status.st_mode) & 0o777 != FILE_MODE:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_private(path: Path, most: int) -> bytes:
    """Return the contents of a file of ours that has `most` bytes at most; OSError."""
    with open(open_private(path), "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, "is longer than it can be", str(path))
        return file.read()


def open_regular(path: str | Path) -> int:
    """Return a descriptor for reading a regular file of anybody; OSError, at once, for a pipe or device."""
    _check_regular(path, os.stat(path).st_mode)  # before it is opened: that alone would end a pipe's writer
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_regular(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(path: str | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "is a directory", str(path))
    if stat.S_ISFIFO(mode):
        raise OSError(errno.EINVAL, "is a pipe: write what comes from it to a file first", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is a device or socket, not a file", str(path))


def read_regular(path: str | Path, most: int) -> bytes:
    """Return the contents of a regular file that has `most` bytes at most; OSError."""
    with open(open_regular(path), "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"is longer than {most >> 20} MiB", str(path))
        return file.read()


def stays_in(path: Path, folder: Path) -> bool:
    """Tell whether a path lies in a folder, or is it, once all links on the way to either are followed."""
    return path.resolve().is_relative_to(folder.resolve())


def reason_of(error: OSError) -> str:
    """Return why a file cannot be read or written, as words that follow a colon."""
    if error.errno == errno.ELOOP:
        return "it is a link, which is not followed there"
    reason = error.strerror or str(error)
    return f"it {reason}" if reason.startswith(("is ", "belongs ")) else reason


def write_private(path: Path, data: bytes) -> None:
    """Write a file in place of the one before, whole or not at all; OSError. Its folder must be there."""
    from tempfile import mkstemp

    descriptor, temporary = mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, FILE_MODE)
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def sealed(data: bytes) -> bytes:
    return b"%08x\n" % zlib.crc32(data) + data


def unsealed(data: bytes) -> bytes:
    """Return the data without its checksum; ValueError where they do not agree."""
    body = data[_SEAL:]
    if data[:_SEAL] != b"%08x\n" % zlib.crc32(body):
        raise ValueError("it does not match its checksum")
    return body


def read_sealed_json(path: Path) -> Any:
    """Return the value of a sealed JSON file of ours; OSError, or ValueError where it is damaged."""
    try:
        return json.loads(unsealed(read_private(path, MAX_JSON)))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_sealed_json(path: Path, value: object) -> None:
    """Write a value as a sealed JSON file in a private folder, which is made where it is missing; OSError."""
    make_private_folder(path.parent)
    write_private(path, sealed(json.dumps(value).encode()))


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()


def _foreign(path: Path) -> PermissionError:
    return PermissionError(errno.EPERM, FOREIGN, str(path))


MAX_BYTES = 1 << 20
"""No settings file is longer."""
KERNEL_KINDS = "kernel-kinds"
"""The table of the settings that holds patterns of device work: kind = "regex", or several in a list."""


def config_path() -> Path | None:
    """Return where the settings lie, or None where there is no home directory (an unknown uid in a pod)."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(folder):
        return Path(folder) / "tracelane" / "config.toml"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ".config" / "tracelane" / "config.toml"


def read_settings(path: Path) -> dict[str, Any]:
    """Return what a settings file holds; FileNotFoundError, or ValueError that says what is wrong."""
    try:
        text = read_regular(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise ValueError(f"cannot be read: {reason_of(error)}") from None
    try:
        return toml_tables(text.decode())
    except UnicodeDecodeError:
        raise ValueError("cannot be read: it is not UTF-8") from None


def settings_table(name: str) -> dict[str, Any]:
    """Return a table of the settings, empty where there is none or the file is damaged."""
    path = config_path()
    if path is None or not os.path.exists(path):
        return {}
    try:
        table = read_settings(path).get(name)
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
