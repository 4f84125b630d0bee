"""What the name of a trace file says: its rank, its position in the parallel layout, when it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

SECOND = 1_000_000_000
AXES = ("DP", "PP", "CP", "TP")
"""Parallel axes from the slowest to the fastest: the order in which launchers number ranks."""

_RANK = re.compile(r"(?<![a-z])(?<!local[-_])rank[-_=]?(\d{1,7})(?:[-_]?of[-_]?(\d{1,7}))?", re.IGNORECASE)
_WORKER = re.compile(r"(?<![a-z])worker[-_=]?(\d{1,7})", re.IGNORECASE)
_AXIS = re.compile(r"-(TP|DP|PP|EP|CP)-(\d{1,7})(?![0-9A-Za-z])")
_WORKER_AXES = re.compile(r"(?<![0-9A-Za-z])dp(\d{1,7})_pp(\d{1,7})_tp(\d{1,7})(?=_(?:\w+_)?rank\d)")
"""How vLLM calls its workers: dp0_pp0_tp1_dcp0_ep1_rank1."""
_EPOCH = re.compile(r"(?<![0-9A-Za-z])(1\d{18}|1\d{15}|1\d{12}|1\d{9}(?:\.\d{1,9})?)(?![0-9A-Za-z])")
_DATE = re.compile(r"(?<!\d)(20\d\d)(\d\d)(\d\d)[-_T]?(\d\d)(\d\d)(\d\d)(?!\d)")
_HOST = re.compile(r"(?P<host>[A-Za-z0-9][\w.\-]*?)_(?P<pid>\d{1,10})\.$")


@dataclass(frozen=True)
class NameFacts:
    """What a name says; None or empty where it says nothing."""

    rank: int | None
    world: int | None
    axes: Mapping[str, int]
    stamp_ns: int | None  # ns since 1970
    host: str
    pid: int | None  # of the process that wrote it, in Kineto's names
    stem: str  # the name without rank and stamp: alike for the files of one capture


def is_worker(path: str | Path) -> bool:
    """Tell whether a name is Kineto's of one process of a host, `host_pid.stamp`, and tells no rank."""
    facts = name_facts(path)
    return facts.pid is not None and facts.rank is None


def name_facts(path: str | Path) -> NameFacts:
    """Return what a file's name tells: `rankN`, `workerN`, `-TP-n-DP-n`, `dpN_ppN_tpN_rankN`, a
    stamp, Kineto's `host_pid.stamp`.

    Of a folder's name only the rank counts, where the file's own tells none.
    """
    path = Path(path)
    name = path.name
    epoch, date = _EPOCH.search(name), _DATE.search(name)
    stamp: int | None = None
    if epoch:
        stamp = _epoch_ns(epoch[1])
    elif date:
        stamp = _date_ns(date)
    rank, world = rank_in(name)
    axes = {axis: int(number) for axis, number in _AXIS.findall(name)}
    if worker := _WORKER_AXES.search(name):
        axes = dict(zip(("DP", "PP", "TP"), map(int, worker.groups())))
    if rank is None and not axes:
        rank, world = rank_in(path.parent.name)
    host = _HOST.search(name[: epoch.start()]) if epoch and rank_in(name)[0] is None else None
    stem = name
    for pattern in (_EPOCH, _DATE, _WORKER_AXES, _RANK, _WORKER, _AXIS):
        stem = pattern.sub("#", stem)
    host_name, pid = (host["host"], int(host["pid"])) if host else ("", None)
    return NameFacts(rank, world, axes, stamp, host_name, pid, stem)


def rank_in(name: str) -> tuple[int | None, int | None]:
    """Return (rank, how many there are) as a name tells them, None for what it does not."""
    match = _RANK.search(name)
    if match:
        return int(match[1]), int(match[2]) if match[2] else None
    match = _WORKER.search(name)
    return (int(match[1]) if match else None), None


def axes_text(axes: Mapping[str, int]) -> str:
    """Return a position in the parallel layout as engines write it: "TP 1 DP 0"."""
    return " ".join(f"{axis} {number}" for axis, number in axes.items())


def ranks_by_axes(positions: list[Mapping[str, int]]) -> list[int]:
    """Return the ranks of files that name only their positions in a layout.

    They are counted along AXES, the last one fastest.
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
        return int(whole) * SECOND + int(part.ljust(9, "0"))
    digits: int = 10 ** (19 - len(whole))
    return int(whole) * digits


def _date_ns(match: re.Match[str]) -> int | None:
    try:
        moment = datetime(*(int(group) for group in match.groups()), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    return int(moment.timestamp()) * SECOND
