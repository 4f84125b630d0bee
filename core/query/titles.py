"""The titles of processes, lanes and ranks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..base.safe_text import safe
from ..index.format import LaneKind

if TYPE_CHECKING:
    from ..base.pattern import Pattern
    from ..index.file_facts import Member


def plain(text: str) -> str:
    """Return the JSON text of a pid, tid or id as people write it: strings without their quotes."""
    if text.startswith('"'):
        try:
            return safe(str(json.loads(text)))
        except (ValueError, RecursionError):
            return safe(text)
    return safe(text)


def id_value(text: str) -> Any:
    """Return the value of the JSON text of a pid or tid; the text itself where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def process_title(pid: str, name: str, labels: str) -> str:
    """Return a process's title: name, pid and labels, as in "python 1488737 · AIU 0"."""
    title, marks = safe(name).strip(), safe(labels).strip()
    number = plain(pid).strip()
    if number in ("", "null"):
        number = "" if title else "(no process)"
    head = title if title == number else " ".join(part for part in (title, number) if part)
    if title.endswith(f" {number}"):
        head = title  # as in "MTIA 17"
    elif not title and number and number.lstrip("-")[:1].isdigit():
        head = f"process {number}"
    return f"{head} · {marks}" if marks and marks != title else head


def lane_title(kind: LaneKind, tid: str, name: str, ids: int = 0) -> str:
    """Return a lane's title: thread name or number, async category and id, counter name."""
    title, number = safe(name).strip(), plain(tid).strip()
    if kind is LaneKind.COUNTER:
        counter = title or "(counter)"
        return f"{counter} {number}" if number not in ("", "null") else counter
    if kind is LaneKind.ASYNC:
        category = title or "async"
        if ids > 1:
            return f"{category} ({ids:,} ids)"
        return f"{category} {number}" if number not in ("", "null") else category
    if title:
        return title
    if number in ("", "null"):
        return "(no thread)"
    return f"thread {number}" if number.lstrip("-")[:1].isdigit() else number


def rank_titles(members: Sequence[Member]) -> Mapping[int, str]:
    """Return by source what its rank is called, "rank 1 · host"; nothing where there are not two ranks.
    Files of two runs have titles, too.
    """
    titles = {
        source: f"{member.title} · {member.host}" if member.host else member.title
        for source, member in enumerate(members)
        if member.rank is not None or member.side
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
