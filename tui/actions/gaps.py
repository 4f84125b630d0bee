"""Moves from gap to gap on the focused row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracelane.core.base.units import format_ns
from tracelane.core.index.format import RowKind
from tracelane.core.query.gaps import longest_gap, next_gap
from tracelane.core.trace import Row

from ..session import Session
from ..things import gap_in, row_of, thing_by_id
from .refusal import Refusal
from .select import first_row, select

if TYPE_CHECKING:
    from .table import Scene


def next_one(scene: Scene) -> Session:
    """Select the next gap on the row that is at least a cell wide."""
    session, row = scene.session, _row(scene)
    thing = None
    if session.selection is not None:
        thing = thing_by_id(scene.trace, session.clocks, session.selection)
    at = session.cursor if thing is None or thing.row.number != row.number else thing.end
    offset = session.clocks.offset(row.source, row.pid)
    least = max(1, session.viewport.span // max(1, session.viewport.width))
    found = next_gap(scene.trace.indexes[row.source], row.number, at - offset, least)
    if found is None:
        raise Refusal(f"no gap of a cell ({format_ns(least)}) or more from here on: zoom in for shorter ones")
    return _selected(scene, row, found)


def select_longest_gap(scene: Scene) -> Session:
    """Select the longest gap on the row, of the range if there is one."""
    session, row = scene.session, _row(scene)
    offset = session.clocks.offset(row.source, row.pid)
    within = None if session.range is None else (session.range[0] - offset, session.range[1] - offset)
    found = longest_gap(scene.trace.indexes[row.source], row.number, within)
    if found is None:
        raise Refusal("no gap on this row" + (" in the range" if within else ""))
    return _selected(scene, row, found[0])


def _row(scene: Scene) -> Row:
    key = scene.session.focus or first_row(scene.layout, scene.session, scene.height)
    row = None if key is None else row_of(scene.layout, key)
    if row is None or row.kind is not RowKind.SLICES:
        raise Refusal("gaps are between slices: ↑ ↓ choose a row of them")
    return row


def _selected(scene: Scene, row: Row, at: int) -> Session:
    thing = gap_in(scene.trace, scene.session.clocks, row, at)
    if thing is None:
        raise Refusal("there is no gap")
    # A gap begins where the cursor goes, so that the next one is looked for from there.
    session = replace(scene.session, cursor=thing.start)
    return select(scene.trace, session, scene.layout, scene.height, thing)
