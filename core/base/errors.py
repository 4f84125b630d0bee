"""Errors that are explained to the user in one line."""

from __future__ import annotations

import errno
from pathlib import Path


class TracelaneError(Exception):
    """A failure that is explained by its message alone: shown as one line, never as a traceback."""

    exit_code = 1


class UnreadableError(TracelaneError):
    """The input is no trace, or cannot be read at all."""

    exit_code = 2


class IncomparableError(TracelaneError):
    """Two runs cannot be compared: the recording of one lacks what the other has."""

    exit_code = 3


class UsageError(TracelaneError):
    """The user asks for something that does not exist."""

    exit_code = 64


class MissingPackageError(TracelaneError, ImportError):
    """Something needs an optional package that is not installed."""

    def __init__(self, message: str, package: str) -> None:
        ImportError.__init__(self, message, name=package)


class CacheError(TracelaneError):
    """The index cannot be written or read."""


class DamagedIndexError(CacheError):
    """An index on disk is not what was written: it is discarded and built again from the trace."""

    def __init__(self, folder: Path, why: str, path: str = "") -> None:
        """Say what is damaged; `path`: of the trace, where it is known."""
        super().__init__(f"the index {f'of {path}' if path else f'in {folder}'} is damaged: {why}")
        self.folder = folder
        self.why = why


class WrongIndexError(CacheError):
    """An index that was just written, or is being written, holds what no index may: a fault of tracelane."""

    @classmethod
    def of(cls, path: str, why: str) -> WrongIndexError:
        return cls(
            f"the index of {path} was written wrongly ({why}): this is a fault of tracelane, not of the "
            "file; please report it with this line, `tracelane --version` and, if you may share it, the file"
        )


class Cancelled(Exception):  # noqa: N818 - a request, not an error
    """The caller's `cancelled()` answered True."""


def lacks_memory(error: BaseException | None) -> bool:
    """Tell whether an error is want of memory, or came of it: MemoryError, or the system's ENOMEM."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        error = error.__cause__ or error.__context__
    return False
