"""When kernels run that only one of two runs has, as marks on the ruler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rich.style import Style

from tracelane.core.base.arrays import I64, Bools, Intervals
from tracelane.core.base.clock import Clocks
from tracelane.core.trace import Trace

from ..session import Viewport
from ..steps import pair_of
from .cells import LineCells
from .line_context import LineContext

NEW, GONE, EITHER = "+", "-", "±"
"""Kernels that only the later run has, only the earlier one, and of both kinds in one cell."""


class LonelyWork(NamedTuple):
    """When kernels run that the other run lacks: the later one's `new`, moved by `move` ns, the earlier one's
    `gone`.
    """

    new: Intervals
    gone: Intervals
    move: int

    def characters(self, view: Viewport) -> list[str]:
        """Return what is marked in each cell of a view, "" for nothing."""
        edges = np.array(view.edges(), np.int64)
        new, gone = _touched(self.new, edges - self.move), _touched(self.gone, edges)
        kinds = ("", NEW, GONE, EITHER)
        return [kinds[kind] for kind in (new.astype(np.int64) + 2 * gone).tolist()]


def lonely_work(trace: Trace, clocks: Clocks) -> LonelyWork | None:
    """Return it under some clocks; None of a trace that is not two runs, or as long as it is not counted."""
    pair = pair_of(trace)
    if pair is None or pair.changes is None:
        return None
    return LonelyWork(pair.changes.new, pair.changes.gone, pair.move(clocks))


def draw_run_marks(cells: LineCells, lonely: LonelyWork, view: Viewport, look: LineContext) -> None:
    """Mark the cells of the ruler in which such kernels run by a character, what is written there by a line
    below it.
    """
    style = look.palette.accent_plain
    below = Style(color=style.color, underline=True)
    for cell, character in enumerate(lonely.characters(view)):
        if not character:
            continue
        if cells.character(cell)[0] == " ":
            cells.put(cell, character, style)
        else:
            cells.add(cell, cell + 1, below)


def _touched(work: Intervals, edges: I64) -> Bools:
    """Return which of the spans between edges some of the work lies in."""
    begun, ended = np.searchsorted(work.starts, edges[1:]), np.searchsorted(work.ends, edges[:-1], "right")
    return np.asarray(begun > ended, np.bool_)
