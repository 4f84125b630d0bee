"""Which files belong together: by run (folder), capture (when it was written) and rank."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.units import format_count
from ..read.remote_files import is_url
from .file_facts import SECOND, FileFacts, NameFacts, axes_text, name_facts, rank_in, ranks_by_axes

if TYPE_CHECKING:
    from ..base.errors import UnreadableError
    from ..read.source import Source

CAPTURE_GAP_NS = 300 * SECOND
"""The ranks of one capture write their files at most so long after each other: exporting takes its time."""
PROCESS_GAP_NS = 60 * SECOND
"""The same for files that name no rank: one process that is profiled twice is easily taken for two."""

JOB = re.compile(r"(?<![a-z])job[-_]?\d{1,7}", re.IGNORECASE)
"""How FLEX calls its files: prefix-0-job-3.json."""
NAMED_JOB = re.compile(r"(?<!\d)(\d{1,6})[-_.]job[-_]?\d", re.IGNORECASE)
"""The rank in such a name."""


@dataclass(frozen=True)
class Member:
    """One file of a capture; `rank` is None for a host process, as a server's front end."""

    path: str | Path
    run: str
    rank: int | None = None
    world: int | None = None
    host: str = ""
    layout: str = ""  # its position in the parallel layout, as "TP 1 DP 0"
    stamp_ns: int | None = None
    time_ns: int = 0  # its stamp, else when it was changed last
    stem: str = ""
    pid: int | None = None  # of the process that wrote it, where its name is Kineto's
    start_ns: int | None = None  # when its first events begin, since 1970
    numbered: bool = False  # no file tells its rank: it is its place among the processes of the run
    side: str = ""  # of two runs that are shown together the one that it is of: "A"
    job_rank: int | None = None  # the pid of a FLEX job trace: its rank, if no other file has the same
    source: Source | None = field(default=None, compare=False, repr=False)  # what is there, if it is a trace
    trouble: UnreadableError | None = field(default=None, compare=False, repr=False)  # why it is none

    @property
    def title(self) -> str:
        """What the file is called beside others: "rank 3", "rank 3 (TP 1 DP 1)", else its name; of two runs
        with its side: "A · rank 3".
        """
        name = Path(self.path).name if self.rank is None else f"rank {self.rank}"
        layout = f" ({self.layout})" if self.rank is not None and " DP " in self.layout else ""
        return f"{self.side} · {name}{layout}" if self.side else name + layout

    def with_facts(self, facts: FileFacts) -> Member:
        """Return the member with what its file says about itself, which counts more than its name."""
        return replace(
            self,
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


@dataclass(frozen=True)
class Capture:
    """The files of one run that were written together, by rank, host processes last."""

    run: str
    members: tuple[Member, ...]

    @property
    def time_ns(self) -> int:
        """When the last of them was written, by the stamps where there are any."""
        stamps = [member.stamp_ns for member in self.members if member.stamp_ns is not None]
        return max(stamps or (member.time_ns for member in self.members))

    @property
    def when(self) -> str:
        """The same as text, in UTC."""
        return f"{datetime.fromtimestamp(self.time_ns // SECOND, UTC):%Y-%m-%d %H:%M:%S} UTC"

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted({member.rank for member in self.members if member.rank is not None}))

    @property
    def world(self) -> int | None:
        """How many ranks there were, where a file or its name tells."""
        return max((member.world for member in self.members if member.world), default=None)

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks that are not there though the files speak of them, or that leave holes."""
        ranks = self.ranks
        if not ranks:
            return ()
        return tuple(sorted(set(range(max(self.world or 0, ranks[-1] + 1))) - set(ranks)))

    @property
    def missing_text(self) -> str:
        """A sentence that names the missing ranks, empty where there are none."""
        missing = self.missing
        if not missing:
            return ""
        of = f" of {format_count(self.world)}" if self.world else ""
        return f"missing: rank{'s' if len(missing) > 1 else ''} {ranks_text(missing)}{of}"

    @property
    def title(self) -> str:
        """What it is in a list."""
        count = f"{format_count(len(self.members))} file{'s' if len(self.members) != 1 else ''}"
        return f"{self.when} · ranks {ranks_text(self.ranks)}" if self.ranks else f"{self.when} · {count}"


def members_of(files: Iterable[str | Path], facts_of: Callable[[str | Path], FileFacts]) -> list[Member]:
    """Return what is known about each file: from its name, and from `facts_of`, which looks into it.

    The file counts more than its name, except where that makes ranks of one name the same: then they are
    copies under other names.
    """
    paths = list(files)
    facts = [name_facts(path) for path in paths]
    by_name = [_member(path, fact) for path, fact in zip(paths, facts)]
    members = [member.with_facts(facts_of(member.path)) for member in by_name]
    groups: dict[tuple[str, str], list[int]] = {}
    for number, member in enumerate(by_name):
        if member.rank is not None:
            groups.setdefault((member.run, member.stem), []).append(number)
    for numbers in groups.values():
        if _distinct(by_name, numbers) and not _distinct(members, numbers):
            for number in numbers:
                members[number] = replace(members[number], rank=by_name[number].rank, world=None)
    for numbers in _by_layout(members, facts):
        ranks = ranks_by_axes([facts[number].axes for number in numbers])
        for number, rank in zip(numbers, ranks):
            members[number] = replace(members[number], rank=rank)
    _number_jobs(members)
    for numbers in _by_job(members):
        for number in numbers:
            member = members[number]
            members[number] = replace(member, rank=member.job_rank, stem=_job(member) or member.stem)
    return members


def captures_of(members: Sequence[Member]) -> list[Capture]:
    """Return the members as captures, the newest first."""
    captures: list[Capture] = []
    for run, of_run in groupby(sorted(members, key=lambda member: member.run), lambda member: member.run):
        stamped: list[Member] = []
        named: list[Member] = []
        loose: list[Member] = []
        for member in of_run:
            kind = stamped if member.stamp_ns is not None else loose if member.rank is None else named
            kind.append(member)
        workers = [
            member for member in stamped if member.rank is None and member.pid is not None and member.span
        ]
        stamped = [member for member in stamped if member not in workers]
        groups = [*_by_span(workers), *_by_time(stamped), *_by_name(named)]
        groups.sort(key=lambda group: max(member.time_ns for member in group))
        if loose and groups:
            groups[-1].extend(loose)  # what names neither rank nor time goes with the newest
        elif loose:
            groups.append(loose)
        captures += [Capture(run, tuple(sorted(group, key=_order))) for group in groups]
    return sorted(captures, key=lambda capture: -capture.time_ns)


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ascending ranks as text: "0-3, 7"."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def _member(path: str | Path, fact: NameFacts) -> Member:
    parent = Path(path).parent
    in_folder_of_rank = rank_in(Path(path).name)[0] is None and rank_in(parent.name)[0] is not None
    run = str(parent.parent if in_folder_of_rank else parent)
    if is_url(path):
        run = run.replace(":/", "://", 1)
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError:
        changed = 0
    time = changed if fact.stamp_ns is None else fact.stamp_ns
    layout = axes_text(fact.axes)
    return Member(
        path, run, fact.rank, fact.world, fact.host, layout, fact.stamp_ns, time, fact.stem, fact.pid
    )


def _distinct(members: Sequence[Member], numbers: Sequence[int]) -> bool:
    return len({members[number].rank for number in numbers}) == len(numbers)


def _by_layout(members: Sequence[Member], facts: Sequence[NameFacts]) -> list[list[int]]:
    """Return the numbers of members that name only their position in a parallel layout, by run and name."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, (member, fact) in enumerate(zip(members, facts)):
        if member.rank is None and fact.axes:
            groups.setdefault((member.run, member.stem), []).append(number)
    return list(groups.values())


def _number_jobs(members: list[Member]) -> None:
    """Give FLEX job traces of a run that all have the same pid the rank in their names, where those differ:
    each process may count its devices from 0.
    """
    runs: dict[tuple[str, str], list[int]] = {}
    for number, member in enumerate(members):
        if member.rank is None and member.job_rank is not None:
            runs.setdefault((member.run, _job(member)), []).append(number)
    for numbers in runs.values():
        named = [NAMED_JOB.search(Path(members[at].path).name) for at in numbers]
        ranks = [int(match[1]) for match in named if match is not None]
        if len({members[at].job_rank for at in numbers}) == 1 < len(set(ranks)) == len(numbers):
            for at, rank in zip(numbers, ranks):
                members[at] = replace(members[at], job_rank=rank)


def _by_job(members: Sequence[Member]) -> list[list[int]]:
    """Return the numbers of the FLEX job traces of each run and job in which no two are of the same rank;
    none of a run in which some are.
    """
    runs: dict[str, dict[str, list[int]]] = {}
    for number, member in enumerate(members):
        if member.rank is None and member.job_rank is not None:
            runs.setdefault(member.run, {}).setdefault(_job(member), []).append(number)
    return [
        numbers
        for jobs in runs.values()
        if any(len(numbers) > 1 for numbers in jobs.values())
        and all(len({members[at].job_rank for at in numbers}) == len(numbers) for numbers in jobs.values())
        for numbers in jobs.values()
    ]


def _job(member: Member) -> str:
    """Return which job of its process a FLEX trace holds, as its name tells: "job-3", else empty."""
    match = JOB.search(Path(member.path).name)
    return match[0] if match else ""


def _by_span(members: Sequence[Member]) -> list[list[Member]]:
    """Return groups of Kineto's files `host_pid.time` whose spans overlap: workers of one run, as of vLLM.

    Each process comes once in a group. Where there are several they are ranks, numbered by host and pid.
    """
    groups: list[list[Member]] = []
    reach = 0
    for member in sorted(members, key=lambda member: member.span or (0, 0)):
        start, end = member.span or (0, 0)
        again = bool(groups) and any(one.stem == member.stem for one in groups[-1])
        if not groups or start >= reach or again:
            groups.append([])
            reach = 0
        groups[-1].append(member)
        reach = max(reach, end)
    return [_numbered_by_pid(group) if len(group) > 1 else group for group in groups]


def _numbered_by_pid(members: Sequence[Member]) -> list[Member]:
    ordered = sorted(members, key=lambda member: (member.host, member.pid or 0))
    return [replace(member, rank=rank, numbered=True) for rank, member in enumerate(ordered)]


def _by_time(members: Sequence[Member]) -> list[list[Member]]:
    """Return groups of files whose stamps lie close together, each rank (else process) once in a group."""
    groups: list[list[Member]] = []
    seen: set[object] = set()
    last = 0
    for member in sorted(members, key=lambda member: member.time_ns):
        gap = PROCESS_GAP_NS if member.rank is None else CAPTURE_GAP_NS
        who = member.stem if member.rank is None else member.rank
        if not groups or who in seen or member.time_ns - last > gap:
            groups.append([])
            seen = set()
        groups[-1].append(member)
        seen.add(who)
        last = member.time_ns
    return groups


def _by_name(members: Sequence[Member]) -> list[list[Member]]:
    """Return groups of files whose names differ only in the rank; where each is alone, by when they were
    changed.
    """
    by_stem: dict[str, list[Member]] = {}
    for member in members:
        by_stem.setdefault(member.stem, []).append(member)
    alone = all(len(group) == 1 for group in by_stem.values())
    groups = []
    for group in [list(members)] if alone and members else by_stem.values():
        repeated = Counter(member.rank for member in group)
        if max(repeated.values()) == 1:
            groups.append(group)
        else:
            groups += _once_each(sorted(group, key=lambda member: member.time_ns))
    return groups


def _once_each(members: Sequence[Member]) -> list[list[Member]]:
    """Return runs of members in which no rank comes twice."""
    groups: list[list[Member]] = [[]]
    for member in members:
        if any(other.rank == member.rank for other in groups[-1]):
            groups.append([])
        groups[-1].append(member)
    return groups


def _order(member: Member) -> tuple[bool, int]:
    return member.rank is None, -1 if member.rank is None else member.rank
