"""What the viewer did, in a file that can be read after something went wrong."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from pathlib import Path

from tracelane.core.base.private import make_folders
from tracelane.core.base.safe_text import safe

RECENT = 200
"""Lines that are remembered while there is nothing to write them for."""
MAX_BYTES = 4 << 20
"""Bytes after which a log takes no more."""


class SessionLog:
    """Lines about a session. Given a file, each is written at once; otherwise the last ones are remembered,
    and written to the default file together with the first error.
    """

    def __init__(self, path: Path | None = None, default: Path | None = None) -> None:
        """Log to `path`, or upon an error to `default`. Raises OSError where `path` cannot be written."""
        self._default = default
        self._recent: deque[str] = deque(maxlen=RECENT)
        self._known: set[str] = set()  # errors whose traceback is in the file
        self._file: int | None = None
        self.path: Path | None = None
        """The file that is written to, None while there is none."""
        if path is not None:
            self._open(path)
            self.note(_versions())

    @property
    def target(self) -> Path | None:
        """The file that an error is or would be written to."""
        return self.path or self._default

    def note(self, text: str) -> None:
        line = f"{_now()} {safe(text)}\n"
        if self._file is None:
            self._recent.append(line)
        else:
            self._write(line)

    def error(self, error: BaseException) -> Path | None:
        """Log an error with its traceback; return the file, None where none can be written."""
        import traceback  # most logs have none

        if self._file is None and self._default is not None:
            try:
                self._open(self._default)
            except OSError:
                self._default = None
            else:
                self._write(f"\n{_now()} {_versions()}\n{''.join(self._recent)}")
                self._recent.clear()
        lines = [line for part in traceback.format_exception(error) for line in part.splitlines()]
        where = lines[-3:][0] if len(lines) > 2 else ""
        again = f"{type(error).__name__} {where}"
        self.note(f"error: {type(error).__name__}: {error}")
        if again not in self._known:
            self._known.add(again)
            for line in lines:
                self.note(f"  {line}")
        return self.path

    def _open(self, path: Path) -> None:
        make_folders(path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        self._file = os.open(path, flags, 0o600)
        self.path = path

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        try:
            if os.fstat(self._file).st_size < MAX_BYTES:
                os.write(self._file, text.encode("utf-8", "replace"))
        except OSError:  # a full disk must not end the session
            pass


def default_log() -> Path | None:
    """Return where errors are logged by themselves, None where there is no home directory."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(folder):
        return Path(folder) / "tracelane" / "viewer.log"
    try:
        return Path.home() / ".local" / "state" / "tracelane" / "viewer.log"
    except RuntimeError:
        return None


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    names = []
    for name in ("tracelane", "textual", "rich", "numpy"):
        try:
            names.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            names.append(f"{name} ?")
    terminal = f"TERM={os.environ.get('TERM', '')} COLORTERM={os.environ.get('COLORTERM', '')}"
    return f"{', '.join(names)}, Python {sys.version.split()[0]} on {sys.platform}, {terminal}"
