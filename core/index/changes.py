"""Files that are still being written, as far as that can be told without reading their events; and what has
become of the files of a trace since they were read, looked up by a thread that may hang.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ..base.errors import UnreadableError
from ..base.threads import BackgroundThread
from ..base.units import format_bytes
from ..read.source import Source, open_source
from .inputs import STDIN, UNFINISHED, expanded, unfinished_in

if TYPE_CHECKING:
    from .store import Index

PERIOD_S = 3.0
"""Seconds between two looks."""

State = tuple[int, int]
"""Size, and time of the last change in ns."""


class Change(NamedTuple):
    """A file that is not what was read: longer, renamed by its writer, deleted, written anew, or new."""

    path: str
    grown: int = 0  # bytes; 0: renamed, or written anew
    renamed: str = ""
    deleted: bool = False
    is_new: bool = False  # it was not there when its folder was read

    @property
    def text(self) -> str:
        """What happened, as the end of a sentence: "grew by 1.2 MB"."""
        if self.renamed:
            return f"is complete: {Path(self.renamed).name}"
        if self.deleted:
            return "was deleted"
        if self.is_new:
            return f"is new: {Path(self.path).name}"
        return f"grew by {format_bytes(self.grown)}" if self.grown else "was rewritten"


def changes_text(changes: Sequence[Change]) -> str:
    """Return what happened to the files as one sentence's beginning."""
    if len(changes) == 1:
        return f"file {changes[0].text}"
    if all(change.deleted for change in changes):
        return f"{len(changes)} files were deleted"
    if all(change.is_new for change in changes):
        return f"{len(changes)} files are new"
    grown = sum(change.grown for change in changes)
    return f"{len(changes)} files changed" + (f", {format_bytes(grown)} more" if grown else "")


def finished_name(path: str) -> str:
    whole = path.removesuffix(UNFINISHED)
    return whole if whole != path and not os.path.exists(path) and os.path.exists(whole) else path


def states_read(indexes: Sequence[Index]) -> dict[str, State]:
    """Return the files behind indexes as they were when they were read; pipes and logs are none."""
    states = {}
    for index in indexes:
        source = index.manifest.get("source")
        if isinstance(source, dict) and "mtime_ns" in source:
            states[index.path] = int(source["size"]), int(source["mtime_ns"])
    return states


def changes_since(states: Mapping[str, State]) -> tuple[Change, ...]:
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


STABLE_S = 2.0
"""A file that has not changed for so long is held for complete, if it ends as it should."""


class Awaited(NamedTuple):
    """What is waited for: a file or folder, what is missing of it, how large it is by now."""

    path: str
    why: str
    size: int | None = None

    @property
    def text(self) -> str:
        size = "" if self.size is None else f", {format_bytes(self.size)} by now"
        return f"{self.path} {self.why}{size}"


IsKnown = Callable[[str, State], bool]
"""Whether a file in a state is known, so that it need not be looked into."""


def nothing_known(_path: str, _state: State) -> bool:
    return False


class FolderLook(NamedTuple):
    """What was seen of the files that are followed: those that are whole, and what others lack."""

    whole: Mapping[str, State]
    awaited: tuple[Awaited, ...]


class Following:
    """Looks at files and folders again and again, into each file once while it stays the same."""

    def __init__(
        self,
        paths: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Follow the paths of a command line; `clock` and `now` tell the time between looks, and the time of
        day.
        """
        self._paths = tuple(paths)
        self._clock, self._now = clock, now
        self._seen: dict[str, tuple[State, float]] = {}
        self._lacking: dict[str, tuple[State, str]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The paths, with the names that complete files have."""
        return tuple(finished_name(path) for path in self._paths)

    def look(self, is_over: bool = False, is_known: IsKnown = nothing_known) -> FolderLook:
        """Return what there is. Once it `is_over` nobody writes any more: no file has to stay the same. Files
        that are known in their state count as whole and are not looked into.
        """
        whole: dict[str, State] = {}
        awaited: list[Awaited] = []
        for path in self.names:
            if path != STDIN:
                for file in self._files_of(path, awaited):
                    seen = self._look_at_file(file, is_over, is_known)
                    if isinstance(seen, Awaited):
                        awaited.append(seen)
                    elif seen is not None:
                        whole[file] = seen
        there = {*whole, *(one.path for one in awaited)}
        self._seen = {path: seen for path, seen in self._seen.items() if path in there}
        self._lacking = {path: why for path, why in self._lacking.items() if path in there}
        return FolderLook(whole, tuple(awaited))

    def _files_of(self, path: str, awaited: list[Awaited]) -> list[str]:
        """Return the files that a path stands for; a folder without any is awaited."""
        try:
            files = [str(file) for file in expanded([path])]
        except UnreadableError:
            files = []
        if os.path.isdir(path):
            files += unfinished_in(Path(path))
            if not files:
                awaited.append(Awaited(path, "holds no trace yet"))
        return files

    def _look_at_file(self, path: str, is_over: bool, is_known: IsKnown) -> Awaited | State | None:
        """Return the state of a whole file, what another lacks, None for what has no end that is seen."""
        try:
            status = os.stat(path)
        except OSError:
            writing = path + UNFINISHED
            if not os.path.exists(writing):
                return Awaited(path, "is not there yet")
            return Awaited(path, f"is still called {Path(writing).name}", _size(writing))
        if not stat.S_ISREG(status.st_mode):
            return None  # a pipe is read until its writer closes it
        state = status.st_size, status.st_mtime_ns
        if is_known(path, state):
            return state
        if not self._is_stable(path, state) and not is_over:
            return Awaited(path, "is being written", status.st_size)
        if self._lacking.get(path, (None, ""))[0] != state:
            self._lacking[path] = state, lacking(path)
        why = self._lacking[path][1]
        return Awaited(path, why, status.st_size) if why else state

    def _is_stable(self, path: str, state: State) -> bool:
        """Tell whether a file has been the same for a while: at first by its time, then by what was seen."""
        clock = self._clock()
        if path not in self._seen:
            self._seen[path] = state, clock - max(0.0, self._now() - state[1] / 1e9)
        elif self._seen[path][0] != state:
            self._seen[path] = state, clock
        return clock - self._seen[path][1] >= STABLE_S


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


END = 64 * 1024
"""Bytes at either end in which a bracket is looked for."""
BLOCK = 1 << 20
CLOSED_BY: Final = {b"{": b"}", b"[": b"]"}


def lacking(path: str | Path) -> str:
    """Return what a file lacks of a whole trace, "" where nothing: it ends in the bracket that closes its
    first one, and packed data inflates to its end.
    """
    try:
        source = open_source(path)
        first, last = _ends(source) if source.seekable else _ends_read_through(source)
    except UnreadableError as error:
        return str(error).removeprefix(f"{path}: ")
    return "" if first and CLOSED_BY.get(first) == last else "ends in the middle"


def _ends(source: Source) -> tuple[bytes, bytes]:
    head = source.read_range(source.text_start, END)
    tail = source.read_range(max(0, source.size - END), END)
    return head.lstrip()[:1], tail.rstrip()[-1:]


def _ends_read_through(source: Source) -> tuple[bytes, bytes]:
    """Return the first and the last letter of inflated text; none where it is cut off."""
    first = last = b""
    stream = source.open()
    try:
        while data := stream.read(BLOCK):
            first = first or data.lstrip()[:1]
            last = data.rstrip()[-1:] or last
        return (b"", b"") if stream.problems else (first, last)
    finally:
        stream.close()
