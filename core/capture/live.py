"""One recording of several processes at one time: who takes part, what each has written, why one has not."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from ..base.errors import UsageError
from ..base.private import FILE_MODE, make_folders, make_private_folder, open_private
from ..base.units import format_bytes
from ..index.changes import lacking
from ..index.inputs import UNFINISHED
from .daemon import KinetoClient, KinetoDaemon
from .processes import is_shared, is_there, launched_rank, why_silent
from .protocol import POLL_S, RecordingPlan, path_problem

FALLBACK = "/tmp/libkineto_activities_{}.json"
"""Where Kineto writes if it does not accept the path: since June 2026 it takes those below /tmp alone, or
below the folder that KINETO_ONDEMAND_TRACE_DIR names.
"""


class CapturePace(NamedTuple):
    """Times of a recording in seconds: for how long processes may ask to take part, how much later it begins,
    and how long one may write nothing before it is given up.
    """

    listen_s: float = POLL_S + 1
    start_s: float = POLL_S + 4
    """A poll, so that an answer that was read a poll late still counts; 2 s to act on it, 2 s of warm-up."""
    patience_s: float = 60.0


PACE = CapturePace()


class Outcome(NamedTuple):
    """What became of a process: the trace that it wrote, or why there is none."""

    pid: int
    rank: int | None = None
    path: Path | None = None
    why: str = ""


@dataclass
class Participant:
    """A process that takes part, and the file that it writes."""

    client: KinetoClient
    rank: int | None
    path: Path  # of its trace, once that is complete
    size: int = 0  # bytes that it has written so far
    active: float = 0.0  # clock when it had written more
    outcome: Outcome | None = None

    @property
    def unfinished(self) -> Path:
        return self.path.with_name(self.path.name + UNFINISHED)

    @property
    def title(self) -> str:
        rank = "" if self.rank is None else f", rank {self.rank}"
        return f"{self.client.pid or self.client.own_pid}{rank}"


class LiveCapture:
    """Has processes record while it is entered: `advance` does all the work, a little at a time."""

    def __init__(
        self,
        plan: RecordingPlan,
        folder: Path,
        pids: Sequence[int] = (),
        pace: CapturePace = PACE,
        daemon: Callable[[Callable[[KinetoClient], str]], KinetoDaemon] = KinetoDaemon,
        fallback: str = FALLBACK,
    ) -> None:
        """Record the processes of these numbers and those that they started, else all; into a folder that is
        made for this user alone. Raises UsageError for a folder whose name Kineto cannot read.
        """
        self._fallback = fallback
        self.plan, self.pids, self.pace = plan, tuple(pids), pace
        self.folder = folder.absolute()
        if problem := path_problem(str(self.folder)):
            raise UsageError(
                f"{folder}: Kineto cannot write there, as {problem}: name another folder with -o"
            )
        self.daemon = daemon(self._config)
        self.participants: list[Participant] = []

    def __enter__(self) -> Self:
        self.daemon.__enter__()
        try:
            make_folders(self.folder.parent)
            make_private_folder(self.folder)
            self._stamp = self._free_stamp()
        except BaseException:
            self.daemon.__exit__()
            raise
        self._began, self._began_ns = time.monotonic(), time.time_ns()
        self._start_ms = int(time.time() * 1000 + (self.pace.listen_s + self.pace.start_s) * 1000)
        return self

    def __exit__(self, *_: object) -> None:
        self.daemon.__exit__()
        for one in self.participants:  # what nobody has written into
            with suppress(OSError):
                if one.unfinished.stat().st_size == 0:
                    one.unfinished.unlink()

    def _free_stamp(self) -> str:
        """Return a time of day, to the second, that no file of the folder is named for."""
        second = int(time.time())
        names = set(os.listdir(self.folder))
        while True:
            stamp = f"{datetime.fromtimestamp(second, UTC):%Y%m%d-%H%M%S}"
            if not any(name.startswith(stamp) for name in names):
                return stamp
            second += 1

    def _config(self, client: KinetoClient) -> str:
        """Return what a process is to record: nothing where it was not meant, or asks too late."""
        if not self.is_listening or (self.pids and not client.all_pids & set(self.pids)):
            return ""
        rank = launched_rank(client.pid) if client.pid else None
        stem = self._stamp + ("" if rank is None else f"_rank{rank}")
        paths = {one.path for one in self.participants}
        number = 1
        while (path := self.folder / f"{stem}_{client.own_pid}.json") in paths:
            number += 1
            stem = f"{self._stamp}-{number}" + ("" if rank is None else f"_rank{rank}")
        one = Participant(client, rank, path, active=time.monotonic())
        try:  # Kineto writes into the file that is there, so that it is ours alone from the beginning
            os.close(open_private(one.unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except OSError:
            return ""
        self.participants.append(one)
        return self.plan.config(f"{self.folder}/{stem}.json", self._start_ms)

    # -- what goes on ---------------------------------------------------------------------------------------

    @property
    def _age(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_listening(self) -> bool:
        """Whether processes may still take part."""
        return self._age < self.pace.listen_s

    @property
    def is_done(self) -> bool:
        """Whether nothing more is awaited."""
        return not self.is_listening and all(one.outcome is not None for one in self.participants)

    def advance(self, seconds: float) -> None:
        """Answer processes for so long, then look at what they have written."""
        self.daemon.serve(seconds)
        for one in self.participants:
            if one.outcome is None:
                one.outcome = self._outcome(one)

    @property
    def _until_start_s(self) -> float:
        return self._start_ms / 1000 - time.time()

    @property
    def text(self) -> str:
        """What is going on, as one line."""
        count = len(self.participants)
        who = f"{count:,} process{'es' if count != 1 else ''}"
        if self.is_listening:
            return f"{who} so far: listening for {self.pace.listen_s - self._age:.0f} s more"
        if not self.plan.steps and self._until_start_s > 0:
            return f"{who}: recording begins in {self._until_start_s:.0f} s"
        done = sum(one.outcome is not None for one in self.participants)
        size = sum(one.size for one in self.participants)
        what = f"{self.plan.steps:,} steps" if self.plan.steps else f"{self.plan.duration_ms:,} ms"
        return f"recording {what}: {done:,} of {who} done, {format_bytes(size)} written"

    # -- what became of it ----------------------------------------------------------------------------------

    def _outcome(self, one: Participant) -> Outcome | None:
        """Return what became of a process, None while that is open."""
        pid = one.client.pid or one.client.own_pid
        is_gone = bool(one.client.pid) and not is_there(one.client.pid)  # before looking at what it wrote
        if self._take_whole(one):
            return Outcome(pid, one.rank, one.path)
        size = max(_size(one.unfinished), _size(one.path))
        if size > one.size:
            one.size, one.active = size, time.monotonic()
        due = 0.0 if self.plan.steps else self._until_start_s + self.plan.duration_ms / 1000
        if not is_gone and (due > 0 or time.monotonic() - one.active < self.pace.patience_s):
            if due > 0:
                one.active = time.monotonic()
            return None
        return Outcome(pid, one.rank, None, self._why_nothing(one, is_gone))

    def _take_whole(self, one: Participant) -> bool:
        """Tell whether a trace is complete; if so it is for this user alone."""
        if not _is_ours(one.path) and not self._take_fallback(one):
            return False
        if (
            _size(one.unfinished) >= 0
        ):  # not renamed: this Kineto writes under the last name from the beginning
            if lacking(one.path):
                return False
            with suppress(OSError):
                one.unfinished.unlink()
        with suppress(OSError):
            descriptor = open_private(one.path)
            try:
                os.fchmod(descriptor, FILE_MODE)
            finally:
                os.close(descriptor)
        one.size = max(one.size, _size(one.path))
        return True

    def _take_fallback(self, one: Participant) -> bool:
        """Copy what Kineto has written elsewhere, where it did not accept the path; tell whether it has."""
        path = Path(self._fallback.format(one.client.own_pid))
        try:
            if not _is_ours(path) or path.stat().st_mtime_ns < self._began_ns or lacking(path):
                return False
            with open(open_private(path), "rb") as source:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                with open(open_private(one.path, flags), "wb") as target:
                    shutil.copyfileobj(source, target)
        except OSError:
            with suppress(OSError):
                one.path.unlink()  # a part of it
            return False
        with suppress(OSError):
            path.unlink()
        return True

    def _why_nothing(self, one: Participant, is_gone: bool) -> str:
        if one.size:
            return f"it has written {format_bytes(one.size)} and then no more: {one.unfinished}"
        if is_gone:
            return "it ended before it had written anything"
        if not one.client.pid or not is_shared(one.client.pid, "mnt"):
            return f"it is in a container, which must see {self.folder} under the same path"
        if self.plan.steps:
            return (
                "it has counted too few steps: it must call optimizer.step() or profiler.step(), else record "
                "a time with --ms"
            )
        return (
            "Kineto has dropped the request: the process was busy, or recording by itself (its stderr says)"
        )

    def outcomes(self) -> list[Outcome]:
        """Return what became of those that took part, and of those that were meant and did not."""
        outcomes = [one.outcome for one in self.participants if one.outcome is not None]
        part = {id(one.client) for one in self.participants}
        others = [client for client in self.daemon.clients if id(client) not in part]
        for client in others:
            if not client.can_record and (not self.pids or client.all_pids & set(self.pids)):
                why = "it is recording already: it runs a profiler of its own, or was asked by another"
                outcomes.append(Outcome(client.pid or client.own_pid, None, None, why))
        heard = {pid for client in self.daemon.clients for pid in client.all_pids}
        for pid in self.pids:
            if pid not in heard:
                outcomes.append(Outcome(pid, None, None, why_silent(pid, self.pace.listen_s)))
        return outcomes


def _size(path: Path) -> int:
    """Return the bytes of a file, -1 where it is not there."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return -1


def _is_ours(path: Path) -> bool:
    """Tell whether a path is a regular file of this user's, and no link."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
