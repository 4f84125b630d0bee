"""The lanes that `:only` leaves."""

from __future__ import annotations

import re
from functools import lru_cache

from tracelane.core.query.rank_titles import names_rank
from tracelane.core.trace import Trace

from .ranks import by_rank


@lru_cache(maxsize=4)
def only_lanes(trace: Trace, only: str) -> frozenset[int]:
    """Return the places of the lanes whose own title, or whose process's or rank's, matches a text."""
    pattern = _compiled(only)
    found: list[int] = []
    for rank, processes in by_rank(trace):
        whole = rank is not None and names_rank(pattern, rank.title)
        for process in processes:
            if whole or pattern.search(process.title):
                found += process.lanes
            else:
                found += [place for place in process.lanes if pattern.search(trace.lanes[place].title)]
    return frozenset(found)


def _compiled(only: str) -> re.Pattern[str]:
    """Return the pattern; what is no regular expression is looked for as it stands."""
    try:
        return re.compile(only, re.IGNORECASE)
    except re.error:
        return re.compile(re.escape(only), re.IGNORECASE)
