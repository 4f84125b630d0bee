"""The rows of an overview, each of which leads to a place: their shape, and those stored beside an index.

Nothing is loaded here of what counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...base.private import read_sealed_json
from ...query.views import SliceId
from ..findings.finding import Evidence
from ..frame.cached import cache_file, is_whole, write_cached
from ..frame.scope import Scope

NAME = "overview"
SCHEMA = 1


class OverviewRow(NamedTuple):
    """One thing that takes time, or memory."""

    name: str
    amount: int  # ns; of memory bytes
    share: float = 0.0  # of all of its group
    calls: int = 0
    waited_ns: int = 0  # of the amount: waiting for other ranks
    kind: str = ""  # of device work: compute, communication, memory
    text: str = ""  # what else is known of it
    evidence: Evidence | None = None


Groups: TypeAlias = Mapping[str, tuple[OverviewRow, ...]]
GROUPS = ("work", "idle", "ranks", "steps", "compile", "memory", "held", "ops", "slices")
"""The groups of rows: device work by name, why devices are idle, ranks by lateness, what a step takes where a
host runs ahead, phases of torch.compile, allocators, what holds memory at their peaks, operators and all
slices of hosts by their own time.
"""


def stored_overview(scope: Scope) -> Groups | None:
    """Return the overview stored of a whole trace, None where there is none."""
    if scope.trace.answers is not None or not is_whole(scope):
        return None
    try:
        return _read(read_sealed_json(cache_file(scope, NAME)))
    except (OSError, KeyError, TypeError, ValueError, IndexError):
        return None


def store_overview(scope: Scope, groups: Groups) -> None:
    """Store the overview of a whole trace; a failure only costs time later."""
    if is_whole(scope):
        write_cached(cache_file(scope, NAME), _object(groups))


def _object(groups: Groups) -> dict[str, Any]:
    return {"schema": SCHEMA, **{name: [_row_object(row) for row in rows] for name, rows in groups.items()}}


def _row_object(row: OverviewRow) -> list[Any]:
    evidence = row.evidence
    if evidence is None:
        return [*row[:-1], None]
    identity = None if evidence.slice is None else [evidence.slice.source, evidence.slice.ordinal]
    return [*row[:-1], [evidence.label, evidence.start, evidence.end, identity]]


def _read(stored: Mapping[str, Any]) -> Groups:
    if stored["schema"] != SCHEMA:
        raise ValueError("another schema")
    return {name: tuple(map(_row_of, stored[name])) for name in GROUPS if name in stored}


def _row_of(stored: Sequence[Any]) -> OverviewRow:
    name, amount, share, calls, waited_ns, kind, text, form = stored
    evidence = None
    if form is not None:
        label, start, end, identity = form
        slice_id = None if identity is None else SliceId(*identity)
        evidence = Evidence(str(label), int(start), int(end), slice_id)
    return OverviewRow(name, amount, share, calls, waited_ns, kind, text, evidence)
