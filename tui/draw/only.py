"""The lanes that `:only` leaves."""

from __future__ import annotations

import re
from functools import lru_cache

from tracelane.core.base.errors import UsageError
from tracelane.core.base.pattern import Pattern
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.query.titles import names_rank
from tracelane.core.trace import Trace

from .ranks import by_rank, rank_heads


@lru_cache(maxsize=4)
def only_lanes(trace: Trace, only: str) -> frozenset[int]:
    """Return the places of the lanes whose own title, or whose process's or rank's, matches a text. Raises
    SlowPatternError.
    """
    pattern = pattern_of(only)
    matching: list[int] = []
    titles = titles_of(trace)
    hits = dict(zip(titles, pattern.matches_in(titles)))
    for rank, processes in by_rank(trace):
        whole = rank is not None and names_rank(pattern, rank.title)
        for process in processes:
            if whole or hits[process.title]:
                matching += process.lanes
            else:
                matching += [number for number in process.lanes if hits[trace.lanes[number].title]]
    return frozenset(matching)


def pattern_of(only: str) -> Pattern:
    """Return the pattern; what is no regular expression is looked for as it stands."""
    pattern = Pattern(only, ignore_case=True)
    try:
        pattern.check(only)
    except UsageError:
        return Pattern(re.escape(only), ignore_case=True)
    return pattern


def titles_of(trace: Trace) -> list[str]:
    """Return the titles of all lanes, processes and ranks."""
    lanes = [lane.title for lane in trace.lanes]
    processes = [process.title for process in trace.processes]
    ranks = [head.title for head in rank_heads(trace).values()]
    return list(dict.fromkeys((*lanes, *processes, *ranks)))


def ask_titles(trace: Trace, pattern: Pattern, cancelled: CancelledCallback) -> None:
    """Have a pattern that may take long answered for all titles, so that asking again takes no time. Raises
    SlowPatternError, Cancelled.
    """
    pattern.matches_in(titles_of(trace), cancelled)
    for head in rank_heads(trace).values():
        pattern.end_of_match(head.title, cancelled)
