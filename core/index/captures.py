"""Which files belong together: by run (folder), capture (when it was written) and rank; which are opened."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ..base.errors import UsageError
from ..base.late_pattern import late_pattern
from ..base.numbers import whole_number
from ..base.units import format_count
from .member import SECOND, FileFacts, Member, member_of, ranks_by_axes

CAPTURE_GAP_NS = 300 * SECOND
"""The ranks of one capture write their files at most so long after each other: exporting takes its time."""
PROCESS_GAP_NS = 60 * SECOND
"""The same for files that name no rank: one process that is profiled twice is easily taken for two."""

JOB = late_pattern(r"(?<![a-z])job[-_]?\d{1,7}", re.IGNORECASE)
"""How FLEX calls its files: prefix-0-job-3.json."""
NAMED_JOB = late_pattern(r"(?<!\d)(\d{1,6})[-_.]job[-_]?\d", re.IGNORECASE)
"""The rank in such a name."""


class Capture(NamedTuple):
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
        count = f"{format_count(len(self.members))} file{'s' if len(self.members) != 1 else ''}"
        return f"{self.when} · ranks {ranks_text(self.ranks)}" if self.ranks else f"{self.when} · {count}"


def members_of(files: Iterable[str | Path], facts_of: Callable[[str | Path], FileFacts]) -> list[Member]:
    """Return what is known about each file: from its name, and from `facts_of`, which looks into it. The file
    counts more than its name, except where that makes ranks of one name the same: then they are copies under
    other names.
    """
    by_name = [member_of(path) for path in files]
    members = [member.with_facts(facts_of(member.path)) for member in by_name]
    for numbers in _alike(by_name, lambda member: member.rank is not None):
        if _distinct(by_name, numbers) and not _distinct(members, numbers):
            for number in numbers:
                members[number] = members[number]._replace(rank=by_name[number].rank, world=None)
    for numbers in _alike(members, lambda member: member.rank is None and bool(member.axes)):
        ranks = ranks_by_axes([dict(members[number].axes) for number in numbers])
        for number, rank in zip(numbers, ranks):
            members[number] = members[number]._replace(rank=rank)
    _number_jobs(members)
    for numbers in _by_job(members):
        for number in numbers:
            member = members[number]
            members[number] = member._replace(rank=member.job_rank, stem=_job(member) or member.stem)
    return members


def captures_of(members: Sequence[Member]) -> list[Capture]:
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
        groups = [*_by_span(workers), *_by_stamp(stamped), *_by_name(named)]
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


def _distinct(members: Sequence[Member], numbers: Sequence[int]) -> bool:
    return len({members[number].rank for number in numbers}) == len(numbers)


def _alike(members: Sequence[Member], fits: Callable[[Member], bool]) -> list[list[int]]:
    """Return the numbers of the members that fit, by run and name without rank and stamp."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, member in enumerate(members):
        if fits(member):
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
        ranks = [whole_number(match[1]) for match in named if match is not None]
        if len({members[at].job_rank for at in numbers}) == 1 < len(set(ranks)) == len(numbers):
            for at, rank in zip(numbers, ranks):
                members[at] = members[at]._replace(job_rank=rank)


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
    for group in groups:
        if len(group) > 1:
            group.sort(key=lambda member: (member.host, member.pid or 0))
            group[:] = [member._replace(rank=rank, numbered=True) for rank, member in enumerate(group)]
    return groups


def _by_stamp(members: Sequence[Member]) -> list[list[Member]]:
    """Return groups of files that were written soon after each other. Where a rank wrote so late that another
    capture came in between, they go by when their recordings began, which then makes fewer groups.
    """
    groups = _by_time(members, CAPTURE_GAP_NS, PROCESS_GAP_NS)
    if all(member.start_ns is not None for member in members):
        begun = [member._replace(time_ns=member.start_ns or 0) for member in members]
        times = {member.path: member.time_ns for member in members}
        by_start = [
            [member._replace(time_ns=times[member.path]) for member in group]
            for group in _by_time(begun, CAPTURE_GAP_NS, PROCESS_GAP_NS)
        ]
        return by_start if len(by_start) < len(groups) else groups
    return groups


def _by_time(members: Sequence[Member], rank_gap: float, process_gap: float) -> list[list[Member]]:
    """Return groups of files whose times lie no further apart, each rank (else process) once in a group."""
    groups: list[list[Member]] = []
    seen: set[object] = set()
    last = 0
    for member in sorted(members, key=lambda member: member.time_ns):
        gap = process_gap if member.rank is None else rank_gap
        who = member.stem if member.rank is None else member.rank
        if not groups or who in seen or member.time_ns - last > gap:
            groups.append([])
            seen = set()
        groups[-1].append(member)
        seen.add(who)
        last = member.time_ns
    return groups


def _by_name(members: Sequence[Member]) -> list[list[Member]]:
    """Return groups of files whose names differ only in the rank; where each is alone, by their times."""
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
            groups += _by_time(group, math.inf, math.inf)
    return groups


def _order(member: Member) -> tuple[bool, int]:
    return member.rank is None, -1 if member.rank is None else member.rank


# -- which of them is opened ---------------------------------------------------------------------------------

ALL = "all"


class Choice(NamedTuple):
    """What a person asks for: a part of the run's folder, a capture by number (1: the newest), a part of its
    time or "all", and ranks as "0-3,7". Empty: all runs, the newest capture, all ranks.
    """

    run: str = ""
    capture: str = ""
    ranks: str = ""


class ResolvedFiles(NamedTuple):
    """The files to open, by rank; all captures, newest first, and the position of the one that is open (None:
    all); notes on what is left out; the paths that a user `named`.
    """

    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    current: int | None = None
    notes: tuple[str, ...] = ()
    named: tuple[str | Path, ...] = ()


def choose(captures: Sequence[Capture], choice: Choice) -> ResolvedFiles:
    """Return what a choice leaves; UsageError where it leaves nothing, or means nothing."""
    of_run = [capture for capture in captures if choice.run.lower() in capture.run.lower()]
    if not of_run:
        runs = ", ".join(sorted({capture.run for capture in captures}))
        raise UsageError(f"--run: no run is called {choice.run!r}; there is {runs}")
    if choice.capture == ALL:
        members = tuple(member for capture in of_run for member in capture.members)
        return ResolvedFiles(_of_ranks(members, choice.ranks), tuple(of_run), None, ())
    number = _numbered(of_run, choice.capture)
    capture = of_run[number]
    left_out = left_out_text(of_run, number)
    notes = [left_out] if left_out else []
    members = _of_ranks(capture.members, choice.ranks)
    left = len(capture.members) - len(members)
    if left:
        notes.append(f"left out by --rank: {left} file{'s' if left != 1 else ''}")
    return ResolvedFiles(members, tuple(of_run), number, tuple(notes))


def left_out_text(captures: Sequence[Capture], current: int | None) -> str:
    """Return a line that says which of the captures is open, empty where no other is left out."""
    if current is None or len(captures) < 2:
        return ""
    others = "1 other capture" if len(captures) == 2 else f"{len(captures) - 1} other captures"
    return f"capture of {captures[current].when}; left out: {others} (--capture 1..{len(captures)} or all)"


def _numbered(captures: Sequence[Capture], text: str) -> int:
    """Return the position of the capture that a text names: its number from 1, else a part of its time."""
    if not text:
        return 0
    if text.isdecimal() and 1 <= whole_number(text) <= len(captures):
        return whole_number(text) - 1
    matches = [number for number, capture in enumerate(captures) if text in capture.when]
    if not matches or (text.isdecimal() and len(text) < 4):
        times = ", ".join(f"{number} ({capture.when})" for number, capture in enumerate(captures[:5], 1))
        raise UsageError(f"--capture: there is no {text}; there is {times}")
    return matches[0]


def _of_ranks(members: Sequence[Member], text: str) -> tuple[Member, ...]:
    if not text:
        return tuple(members)
    ranks = parsed_ranks(text)
    chosen = tuple(member for member in members if member.rank in ranks)
    if not chosen:
        there = ranks_text(sorted({member.rank for member in members if member.rank is not None}))
        raise UsageError(f"--rank: there is no rank {text}; there is {there or 'none'}")
    return chosen


def parsed_ranks(text: str) -> set[int]:
    """Return the ranks that "0-3,7" means; UsageError for anything else."""
    ranks: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,7})(?:\s*-\s*(\d{1,7}))?\s*", part)
        if match is None or whole_number(match[2] or match[1]) < whole_number(match[1]):
            raise UsageError(f"--rank: {text!r} is no list of ranks, as 0-3,7 is")
        ranks.update(range(whole_number(match[1]), whole_number(match[2] or match[1]) + 1))
    return ranks
