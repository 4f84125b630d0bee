"""What a row shows in each cell of a viewport."""

from __future__ import annotations

from dataclasses import dataclass

from ..ingest.columns import AnyArray, F64, I64, U32


@dataclass(frozen=True)
class Cells:
    """A row of slices seen through a viewport: arrays of length `width`, one entry per cell.

    A slice belongs to every cell [bounds[i], bounds[i+1]) that it touches; a zero-length slice to the one that
    holds its stamp. A cell with count > 0 is never blank.
    """

    count: I64  # slices touching the cell
    longest: I64  # index *within the row* of the longest one (by full duration; the first of equals), -1
    category: I64  # index of the category with most ns inside the cell (ties: the longest's), -1 if empty
    busy: I64  # ns of the cell covered by slices


@dataclass(frozen=True)
class SampleCells:
    """A counter series seen through a viewport; step-wise: a value holds until the next sample."""

    count: I64  # samples inside the cell
    low: F64  # least and greatest value that holds anywhere in the cell; nan before the first sample
    high: F64
    last: F64  # value at the cell's end


@dataclass(frozen=True)
class InstantCells:
    """Instants seen through a viewport."""

    count: I64
    first: I64  # index within the row of the first instant of the cell, -1 if none


@dataclass(frozen=True)
class Span:
    """Cells [left, right) of a row that are drawn alike.

    One slice that fills the cells alone (count 1), or neighbouring cells in which several slices lie and the same
    category has most time.
    """

    left: int
    right: int
    category: int
    index: int  # index within the row: the slice itself, or the longest of those it stands for
    count: int  # slices it stands for (in the fullest cell)
    whole: bool  # True: one single slice


Bounds = I64
__all__ = ["AnyArray", "Bounds", "Cells", "InstantCells", "SampleCells", "Span", "U32"]
