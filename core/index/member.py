"""A file of a capture by what its name says: its rank, its position in the parallel layout, when it was
written; and what is known of it once it was looked into (`file_facts.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..base.errors import UnreadableError
from ..base.late_pattern import late_pattern
from ..base.numbers import whole_number
from ..base.vendors import FOLDER_OF_DEVICE, WHOLE_EXPORT
from ..read.source import Source
from ..read.urls import is_url

SECOND = 1_000_000_000
AXES = ("DP", "PP", "CP", "TP")
"""Parallel axes from the slowest to the fastest: the order in which launchers number ranks."""

_RANK = late_pattern(r"(?<![a-z])(?<!local[-_])rank[-_=]?(\d{1,7})(?:[-_]?of[-_]?(\d{1,7}))?", re.IGNORECASE)
_WORKER = late_pattern(r"(?<![a-z])worker[-_=]?(\d{1,7})", re.IGNORECASE)
_AXIS = late_pattern(r"-(TP|DP|PP|EP|CP)-(\d{1,7})(?![0-9A-Za-z])")
_WORKER_AXES = late_pattern(r"(?<![0-9A-Za-z])dp(\d{1,7})_pp(\d{1,7})_tp(\d{1,7})(?=_(?:\w+_)?rank\d)")
"""How vLLM calls its workers: dp0_pp0_tp1_dcp0_ep1_rank1."""
_EPOCH = late_pattern(r"(?<![0-9A-Za-z])(1\d{18}|1\d{15}|1\d{12}|1\d{9}(?:\.\d{1,9})?)(?![0-9A-Za-z])")
_DATE = late_pattern(r"(?<!\d)(20\d\d)(\d\d)(\d\d)[-_T]?(\d\d)(\d\d)(\d\d)(?!\d)")
_HOST = late_pattern(r"(?P<host>[A-Za-z0-9][\w.\-]*?)_(?P<pid>\d{1,10})\.$")


class FileFacts(NamedTuple):
    """Rank, number of ranks and host as the file gives them, None or empty where it does not. `start_ns` is
    when its first events begin, in ns since 1970; `job_rank` the pid of a FLEX job trace, which is the rank
    of its process; `has_events` whether it holds any, where it is not too large to be looked through.
    """

    rank: int | None = None
    world: int | None = None
    host: str = ""
    start_ns: int | None = None
    job_rank: int | None = None
    has_events: bool = True


NO_FACTS = FileFacts()


def facts_in_keys(envelope: Mapping[str, Any]) -> FileFacts:
    """Return what the keys of a trace beside its events say: `distributedInfo` and `host_name`."""
    info = envelope.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    host = envelope.get("host_name")
    return FileFacts(
        _count(info.get("rank")), _count(info.get("world_size")), host if isinstance(host, str) else ""
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class Member(NamedTuple):
    """One file of a capture, by what its name and it itself say; `rank` is None for a host process, as a
    server's front end.
    """

    path: str | Path
    run: str
    rank: int | None = None
    world: int | None = None
    host: str = ""
    axes: tuple[tuple[str, int], ...] = ()  # its position in the parallel layout
    stamp_ns: int | None = None
    time_ns: int = 0  # its stamp, else when it was changed last
    stem: str = ""  # the name without rank and stamp: alike for the files of one capture
    pid: int | None = None  # of the process that wrote it, where its name is Kineto's
    start_ns: int | None = None  # when its first events begin, since 1970
    numbered: bool = False  # no file tells its rank: it is its place among the processes of the run
    side: str = ""  # of two runs that are shown together what it is called there: "A rank 3 · eager"
    job_rank: int | None = None  # the pid of a FLEX job trace: its rank, if no other file has the same
    source: Source | UnreadableError | None = None
    """What is there, or why that is no trace; None for one that was not looked at."""

    @property
    def layout(self) -> str:
        """Its position in the parallel layout as engines write it: "TP 1 DP 0"."""
        return " ".join(f"{axis} {number}" for axis, number in self.axes)

    @property
    def title(self) -> str:
        """What the file is called beside others: "rank 3", "rank 3 (TP 1 DP 1)", else its name; of two runs
        with its side and its run: "A eager", "A rank 3 · eager".
        """
        if self.side:
            return self.side
        name = Path(self.path).name if self.rank is None else f"rank {self.rank}"
        layout = f" ({self.layout})" if self.rank is not None and " DP " in self.layout else ""
        return name + layout

    def with_facts(self, facts: FileFacts) -> Member:
        """Return the member with what its file says about itself, which counts more than its name."""
        return self._replace(
            rank=self.rank if facts.rank is None else facts.rank,
            world=facts.world or self.world,
            host=facts.host or self.host,
            start_ns=facts.start_ns,
            job_rank=facts.job_rank,
        )

    @property
    def span(self) -> tuple[int, int] | None:
        """From its first events to when it was written (ns since 1970), None where either is not known."""
        if self.start_ns is None or self.stamp_ns is None or self.start_ns >= self.stamp_ns:
            return None
        return self.start_ns, self.stamp_ns


def member_of(path: str | Path) -> Member:
    """Return what a file's name tells: `rankN`, `workerN`, `-TP-n-DP-n`, `dpN_ppN_tpN_rankN`, a stamp,
    Kineto's `host_pid.stamp`. Of a folder's name only the rank counts, where the file's own tells none.
    """
    name, parent = Path(path).name, Path(path).parent
    epoch, date = _EPOCH.search(name), _DATE.search(name)
    stamp = _epoch_ns(epoch[1]) if epoch else _date_ns(date) if date else None
    own_rank, world = rank_in(name)
    rank = own_rank
    axes = [(axis, whole_number(number)) for axis, number in _AXIS.findall(name)]
    if worker := _WORKER_AXES.search(name):
        axes = list(zip(("DP", "PP", "TP"), map(int, worker.groups())))
    if rank is None and not axes:
        rank, world = rank_in(parent.name)
        if rank is None and _RANK.search(parent.parent.name):
            # A profiler's own folder in that of a rank: rank0_ascend_pt/ASCEND_PROFILER_OUTPUT.
            parent = parent.parent
            rank, world = rank_in(parent.name)
        elif rank is None and WHOLE_EXPORT.match(name) and (of := FOLDER_OF_DEVICE.match(parent.parent.name)):
            parent, rank = parent.parent.parent, whole_number(of[1])
    host = _HOST.search(name[: epoch.start()]) if epoch and own_rank is None else None
    stem = name
    for pattern in (_EPOCH, _DATE, _WORKER_AXES, _RANK, _WORKER, _AXIS):
        stem = pattern.sub("#", stem)
    run = str(parent.parent if own_rank is None and rank_in(parent.name)[0] is not None else parent)
    if is_url(path):
        run = run.replace(":/", "://", 1)
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError:
        changed = 0
    time_ns = changed if stamp is None else stamp
    host_name, pid = (host["host"], whole_number(host["pid"])) if host else ("", None)
    return Member(path, run, rank, world, host_name, tuple(axes), stamp, time_ns, stem, pid)


def rank_in(name: str) -> tuple[int | None, int | None]:
    """Return (rank, how many there are) as a name tells them, None for what it does not."""
    match = _RANK.search(name)
    if match:
        return whole_number(match[1]), whole_number(match[2]) if match[2] else None
    match = _WORKER.search(name)
    return (whole_number(match[1]) if match else None), None


def ranks_by_axes(positions: Sequence[Mapping[str, int]]) -> list[int]:
    """Return the ranks of files that name only their positions in a layout. They are counted along AXES, the
    last one fastest.
    """
    used = [axis for axis in AXES if any(axis in position for position in positions)] or ["EP"]
    sizes = {axis: 1 + max(position.get(axis, 0) for position in positions) for axis in used}
    ranks = []
    for position in positions:
        rank = 0
        for axis in used:
            rank = rank * sizes[axis] + position.get(axis, 0)
        ranks.append(rank)
    return ranks


def _epoch_ns(text: str) -> int:
    """Return seconds (with decimals), ms, µs or ns since 1970 as ns, told apart by their length."""
    whole, _, part = text.partition(".")
    if part:
        return whole_number(whole) * SECOND + whole_number(part.ljust(9, "0"))
    digits: int = 10 ** (19 - len(whole))
    return whole_number(whole) * digits


def _date_ns(match: re.Match[str]) -> int | None:
    try:
        moment = datetime(*(int(group) for group in match.groups()), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    return int(moment.timestamp()) * SECOND
