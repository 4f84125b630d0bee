"""The columns of tables: keys, headings and units, and what all tables of a name have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

Unit: TypeAlias = Literal["text", "id", "ns", "count", "share", "bytes", "bytes/s", "number", "object"]
"""An id is a number or text that identifies something; an object is a list or mapping, in JSON only."""
WHOLE: frozenset[Unit] = frozenset({"ns", "count", "bytes", "id"})
"""Units of what is counted in whole numbers, means aside."""
ENDINGS: Mapping[str, Unit] = {"_ns": "ns", "share": "share", "bandwidth": "bytes/s", "bytes": "bytes"}
"""What the end of a column's key says of its unit; all others are counts."""
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


_COLUMN = re.compile(r"(\w+)(?:: ([\w/]+))?(?: = ([^(]+?))?(?: \(([a-z_ ]+)\))?")


def columns_from(text: str) -> tuple[Column, ...]:
    """Return the columns that a text lists: `step_ns, comm_ns = communication, path: text = file (detail)`.

    Each is a key; a unit where that is not what the key's end says; a heading where that is not the key in
    words; properties of Column. ValueError for anything else.
    """
    columns = []
    for part in " ".join(text.split()).split(", "):
        match = _COLUMN.fullmatch(part)
        if match is None or match[2] not in (None, *get_args(Unit)):
            raise ValueError(f"{part!r} is no column")
        key, unit, heading, flags = match.groups()
        properties = dict.fromkeys((flags or "").split(), True)
        unit = cast(Unit, unit or unit_by_end(key))
        columns.append(Column(key, heading or words_of(key), unit, **properties))
    return tuple(columns)


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


def schema_from(text: str) -> TableSchema:
    """Return the schema that a text describes: `name: Title; keys rank name; jumps_to the op; not drawn;` and
    its columns, as `columns_from` takes them. Other parts are fields of TableSchema.
    """
    head, *parts, columns = " ".join(text.split()).split("; ")
    fields: dict[str, Any] = {}
    for part in parts:
        key, _, value = part.partition(" ")
        fields[key] = tuple(value.split()) if key in ("keys", "chief") else value
    if fields.pop("not", ""):
        fields["is_drawn"] = False
    name, _, title = head.partition(": ")
    return TableSchema(name, title, columns_from(columns), **fields)
