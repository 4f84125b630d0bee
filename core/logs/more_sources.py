"""A trace with further sources (logs, computed counters) that leave its time and clocks as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.clock import Clocks
from ..index.store import Index
from ..query.samples import SeriesRange
from ..trace import Row, Trace

if TYPE_CHECKING:
    from ..tables.alignment import Alignment

NO_CLOCKS = Clocks()


class TraceWithMore(Trace):
    """A trace with further sources after its own; time and clocks are those of the trace."""

    def __init__(self, own: Trace, more: Sequence[Index]) -> None:
        self.own = own
        super().__init__([*own.indexes, *more], own.members, own.captures, own.open_capture)
        self.opens, self.answers = own.opens, own.answers

    @property
    def alignment(self) -> Alignment:
        """Of the trace without the further sources."""
        return self.own.alignment

    @property
    def clocks(self) -> Clocks:
        """Of the trace without the further sources."""
        return self.own.clocks

    def span_at(self, clocks: Clocks = NO_CLOCKS) -> tuple[int, int]:
        """Return the span of the trace: a log that ran for hours does not make it longer."""
        return self.own.span_at(clocks)

    def series_range(self, row: Row) -> SeriesRange:
        """Return which values a counter series has and what it is drawn in, as the trace below has it."""
        below = row.source < len(self.own.indexes)
        return self.own.series_range(row) if below else super().series_range(row)

    @property
    def span(self) -> tuple[int, int]:
        """Of the trace without the further sources."""
        return self.own.span

    @property
    def opening_span(self) -> tuple[int, int]:
        """Of the trace without the further sources."""
        return self.own.opening_span
