"""Problems met while reading, and those of all chunks put together; without numpy, as it is loaded to open a
file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One kind of trouble met while reading: how often, where first (byte offset), in plain words."""

    kind: str  # "repaired", "oversized", "unreadable", "truncated", "no usable time", "clamped time", …
    count: int
    offset: int | None
    message: str


DAMAGED, UNVERIFIED = "damaged", "unverified"
"""Problems of a file's packed data, whose offsets count the bytes of the file: what follows the damage is not
read; all was read, but may be wrong.
"""
SOUND, CUT_SHORT, CORRUPT = range(3)
"""What is known of the text of packed data: nothing against it; its end is missing, and with that its
checksum; some of it is wrong.
"""
NOT_READ = "kinds not read"
"""The problem of sound packets of kinds that are not read."""
NO_EVENTS = "no events"
"""The problem of sound JSON without an array of events."""


REPEATED_KEY = "repeated key"
"""The problem of an object that has several arrays of events, all of which are read."""
OTHER_TEXT, OTHER_DATA = "other text", "other data"
"""Problems of text beside the events that is none of them, such as a log's line, and of what a packed file
holds beside its text; offsets of the latter count the bytes of the file.
"""


def has_no_event_array(problems: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether a source is sound JSON that is no trace: a configuration that lies among traces, say."""
    return any(problem["kind"] == NO_EVENTS for problem in problems)


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums per key, keys in alphabetical order."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(sorted(total.items()))


def merge_problems(lists: Iterable[Sequence[Problem]]) -> tuple[Problem, ...]:
    """Return one problem per kind: counts added up, the first offset and its message kept. Problems without
    an offset count as met after those with one. The result is in order of first offsets.
    """
    first: dict[str, Problem] = {}
    for problem in (problem for problems in lists for problem in problems):
        known = first.get(problem.kind)
        if known is None:
            first[problem.kind] = problem
            continue
        earlier = problem if _offset_order(problem) < _offset_order(known) else known
        count = known.count + problem.count
        first[problem.kind] = Problem(problem.kind, count, earlier.offset, earlier.message)
    return tuple(sorted(first.values(), key=lambda problem: (_offset_order(problem), problem.kind)))


def _offset_order(problem: Problem) -> int:
    return 1 << 62 if problem.offset is None else problem.offset
