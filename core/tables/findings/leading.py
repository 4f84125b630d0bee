"""The finding to read first, as one line says it: stored, it is there before what judges is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...base.clock import Clocks
from ...base.private import read_sealed_json
from ...trace import Trace
from ..frame.cached import usual_cache_file

NAME = "findings"
"""What the stored findings of a whole trace are called."""
SCHEMA = 1


class Leading(NamedTuple):
    """What a line needs to know of a finding."""

    title: str
    text: str
    short: str  # the same in a few words
    rule: str
    kind: str
    claimed_ns: int
    share: float  # of the time looked at
    has_places: bool


def stored_leading(trace: Trace, clocks: Clocks) -> tuple[Leading, ...] | None:
    """Return the finding to read first of those stored of a whole trace, none where nothing stands out; None
    where they are not known.
    """
    path = usual_cache_file(trace, clocks, NAME)
    try:
        form = None if path is None else read_sealed_json(path)
        if form is None or form["schema"] != SCHEMA:
            return None
        rows: Sequence[Mapping[str, Any]] = form["rows"]
        return tuple(
            Leading(
                str(row["title"]),
                str(row["finding"]),
                str(row["short"]),
                str(row["rule"]),
                str(row["kind"]),
                int(row["claimed_ns"]),
                float(row["share"]),
                bool(row["evidence"]),
            )
            for row in [row for row in rows if row["kind"] != "note"][:1]
        )
    except (OSError, KeyError, TypeError, ValueError):
        return None
