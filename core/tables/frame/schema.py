"""The columns of tables: keys, headings and units, and what all tables of a name have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

Unit: TypeAlias = Literal["text", "id", "ns", "count", "share", "bytes", "bytes/s", "number", "object"]
"""An id is a number or text that identifies something; an object is a list or mapping, in JSON only."""
WHOLE: frozenset[Unit] = frozenset({"ns", "count", "bytes", "id"})
"""Units of what is counted in whole numbers, means aside."""
ENDINGS: Mapping[str, Unit] = {"_ns": "ns", "share": "share", "bandwidth": "bytes/s", "bytes": "bytes"}
"""What the end of a column's key says of its unit; all others are counts."""
Property: TypeAlias = Literal["statistic", "change", "moment", "is_name", "detail"]
"""What a column may be besides its unit: the flags of Column."""
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
        """The title with a capital; keys of arguments, p95 and the like stay as they are."""
        title = self.title
        return title if self.key.startswith(ARG) or title[1:2].isdigit() else title[:1].upper() + title[1:]


def unit_by_end(key: str) -> Unit:
    """Return the unit that the end of a column's key says."""
    units: list[Unit] = [unit for end, unit in ENDINGS.items() if key.endswith(end)]
    return units[0] if units else "count"


def words_of(key: str) -> str:
    """Return a column's key as a heading."""
    return key.removesuffix("_ns").replace("_", " ")


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


class SchemaFields(TypedDict, total=False):
    """What a table may say of itself besides its name, title and columns: the fields of TableSchema."""

    keys: tuple[str, ...]
    jumps_to: str
    read_by: str
    is_drawn: bool
    within: str
    chief: tuple[str, ...]
