"""What changed from one run to another, as rows of an overview that lead to slices."""

from __future__ import annotations

from ...base.clock import Clocks
from ..compare.compare import GONE, NEW
from ..compare.run_changes import RowChange, RunChanges
from ..compare.run_pair import RunPair
from ..findings.finding import Evidence
from .rows import Groups, OverviewRow

MAX_ROWS = 32
"""The most rows of a group: those that changed most."""


def pair_rows(pair: RunPair, changes: RunChanges, clocks: Clocks) -> Groups:
    """Return the kernels and ops that changed, by the names of their tables, each with its longest slice: its
    amount is how much longer B takes, its share of what A takes, its text what of that is noise.
    """
    return {
        name: tuple(_row(pair, row, clocks) for row in rows[:MAX_ROWS])
        for name, rows in changes.rows.items()
        if rows
    }


def _row(pair: RunPair, row: RowChange, clocks: Clocks) -> OverviewRow:
    share = row.delta_ns / row.before_ns if row.before_ns else 0.0
    text = row.presence if row.presence in (NEW, GONE) else row.verdict
    return OverviewRow(row.name, row.delta_ns, share, text=text, evidence=_longest(pair, row, clocks))


def _longest(pair: RunPair, row: RowChange, clocks: Clocks) -> Evidence | None:
    if row.longest is None:
        return None
    side, source, position = row.longest
    slice_id = pair.slice_id_of(source + side * pair.first, position)
    row_and_index = pair.find(slice_id)
    if row_and_index is None:
        return None
    label = f"longest {row.name} of {pair.spoken_names[side]}"
    return Evidence(label, *pair.bounds(*row_and_index, clocks), slice_id)
