"""What the ranks of a trace are called, and whether a text means one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..base.pattern import Pattern

if TYPE_CHECKING:
    from ..index.captures import Member


def rank_titles(members: Sequence[Member]) -> Mapping[int, str]:
    """Return by source what its rank is called, "rank 1 · host"; nothing where there are not two ranks."""
    titles = {
        source: f"{member.title} · {member.host}" if member.host else member.title
        for source, member in enumerate(members)
        if member.rank is not None
    }
    return titles if len(titles) > 1 else {}


def names_rank(pattern: Pattern, title: str) -> bool:
    """Tell whether a pattern means a rank: it matches its title from the start on, and whole words of it, so
    that "rank 1" is not rank 10 and "1" is no rank.
    """
    end = pattern.end_of_match(title)
    if not end:
        return False
    return end == len(title) or not (title[end - 1].isalnum() and title[end].isalnum())
