"""The columns of tables: keys, headings and units, and what all tables of a name have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["text", "id", "ns", "count", "share", "bytes", "bytes/s", "number", "object"]
"""An id is a number or text that identifies something; an object is a list or mapping, in JSON only."""
WHOLE: frozenset[Unit] = frozenset({"ns", "count", "bytes", "id"})
"""Units of what is counted in whole numbers, means aside."""
ARG = "arg:"
"""Keys of columns that hold an argument of slices begin with this."""


@dataclass(frozen=True)
class Column:
    """One column: its key (in JSON and for sorting), its heading, and what its values are.

    A statistic (a mean, an extreme) of nothing is none, every other number of nothing is zero. A change is
    drawn with its sign and sorted by its size. A moment is a time on the trace's axis, not a length. A name
    is drawn short and exported in full. A detail is exported only. An object is drawn as its length.
    """

    key: str
    title: str
    unit: Unit = "number"
    statistic: bool = False
    change: bool = False
    moment: bool = False
    is_name: bool = False
    detail: bool = False

    @property
    def heading(self) -> str:
        """The title with a capital at its start, as it stands over the column; the key of an argument, p95
        and the like stay as they are.
        """
        title = self.title
        return title if self.key.startswith(ARG) or title[1:2].isdigit() else title[:1].upper() + title[1:]


@dataclass(frozen=True)
class TableSchema:
    """What all tables of an analysis have in common; declared once, beside the analysis.

    `name` is the table's name in JSON and Python. `keys` are the columns that identify a row and match it
    with a row of another table of this name; without them the columns of text.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()
    jumps_to: str = "the longest"  # what a row's position is to the row
    read_by: str = ""  # the column by which people read it, greatest first; programs get the rows as they are
    is_drawn: bool = True  # else it is in exports only
    within: str = ""  # rows are sorted within the runs of equal text in this column
    chief: tuple[str, ...] = ()  # the columns that stay where there is room for few, what matters most first
