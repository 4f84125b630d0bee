"""Which of the captures among the named files is opened, and the note on the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import UsageError
from .captures import Capture, Member, ranks_text

ALL = "all"


@dataclass(frozen=True)
class Choice:
    """What a person asks for: a part of the run's folder, a capture by number (1: the newest), a part of its
    time or "all", and ranks as "0-3,7". Empty: all runs, the newest capture, all ranks.
    """

    run: str = ""
    capture: str = ""
    ranks: str = ""


@dataclass(frozen=True)
class ResolvedFiles:
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
    if text.isdecimal() and 1 <= int(text) <= len(captures):
        return int(text) - 1
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
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise UsageError(f"--rank: {text!r} is no list of ranks, as 0-3,7 is")
        ranks.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return ranks
