"""What has become of the files of a trace since they were read, looked up by a thread that may hang."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.threads import BackgroundThread
from ..base.units import format_bytes
from .cache import seconds_since
from .inputs import UNFINISHED

if TYPE_CHECKING:
    from .store import Index

PERIOD_S = 3.0
"""Seconds between two looks."""

LIVE_S = 60.0
"""A file that was written to so lately may still grow."""

State = tuple[int, int]
"""Size, and time of the last change in ns."""


@dataclass(frozen=True)
class Change:
    """A file that is not what was read: longer, renamed by its writer, deleted, or written anew."""

    path: str
    grown: int = 0  # bytes; 0: renamed, or written anew
    renamed: str = ""
    deleted: bool = False

    @property
    def text(self) -> str:
        """What happened, as the end of a sentence: "grew by 1.2 MB"."""
        if self.renamed:
            return f"is complete: {Path(self.renamed).name}"
        if self.deleted:
            return "was deleted"
        return f"grew by {format_bytes(self.grown)}" if self.grown else "was rewritten"


def changes_text(changes: Sequence[Change]) -> str:
    """Return what happened to the files as one sentence's beginning."""
    if len(changes) == 1:
        return f"file {changes[0].text}"
    if all(change.deleted for change in changes):
        return f"{len(changes)} files were deleted"
    grown = sum(change.grown for change in changes)
    return f"{len(changes)} files changed" + (f", {format_bytes(grown)} more" if grown else "")


def finished_name(path: str) -> str:
    """Return what a file that was still being written is called now, its own path where it is still there."""
    whole = path.removesuffix(UNFINISHED)
    return whole if whole != path and not os.path.exists(path) and os.path.exists(whole) else path


def unfinished_note(path: str) -> tuple[str, ...]:
    """Return what is to be said of a file that has the name of one still being written."""
    if not path.endswith(UNFINISHED):
        return ()
    name = Path(path).name
    try:
        live = seconds_since(os.stat(path).st_mtime) < LIVE_S
    except OSError:
        return ()
    if live:
        return (f"{name} is still being written: it holds what was there so far; --wait waits for the rest",)
    return (f"{name} was left unfinished: a profiler renames a trace that is complete",)


def states_read(indexes: Sequence[Index]) -> dict[str, State]:
    """Return the files behind indexes as they were when they were read; pipes and logs are none."""
    states = {}
    for index in indexes:
        source = index.manifest.get("source")
        if isinstance(source, dict) and "mtime_ns" in source:
            states[index.path] = int(source["size"]), int(source["mtime_ns"])
    return states


def changes_since(states: Mapping[str, State]) -> tuple[Change, ...]:
    """Return the files that are no longer in these states."""
    changes = []
    for path, (size, changed) in states.items():
        try:
            status = os.stat(path)
        except OSError as error:
            if (whole := finished_name(path)) != path:
                changes.append(Change(path, renamed=whole))
            elif isinstance(error, FileNotFoundError | NotADirectoryError):
                changes.append(Change(path, deleted=True))
            continue
        if (status.st_size, status.st_mtime_ns) != (size, changed):
            changes.append(Change(path, max(0, status.st_size - size)))
    return tuple(changes)


class Watch:
    """Looks after files now and then; a file system that hangs holds up nobody but its thread."""

    def __init__(
        self,
        states: Mapping[str, State],
        period_s: float = PERIOD_S,
        look: Callable[[Mapping[str, State]], tuple[Change, ...]] = changes_since,
    ) -> None:
        """Begin to look, the first time after a period."""
        self.changes: tuple[Change, ...] = ()
        """What the last look found."""
        self.looks = 0
        """How often was looked."""
        self._states, self._period_s, self._look = states, period_s, look
        self._wake = threading.Event()
        self._ended = False
        if states:
            BackgroundThread(self._run)

    @property
    def watches(self) -> bool:
        return bool(self._states)

    def look_now(self) -> None:
        """Look as soon as the thread can; `looks` tells when it has."""
        self._wake.set()

    def close(self) -> None:
        self._ended = True
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait(self._period_s)
            if self._ended:
                return
            self._wake.clear()
            self.changes = self._look(self._states)
            self.looks += 1
