"""What must hold of a column's values before they are used: whoever reads a column never checks it again.

`check_values` looks at a column when it is used first: string numbers, categories, positions and flow numbers
are below what they number, offsets ascend, a parent stands before its children, starts ascend within a row.
It raises ValueError with a sentence that names the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np

from ..base.arrays import AnyArray
from ..base.units import TIME_LIMIT
from .checks import MAX_BYTES, require
from .format import LONG, NONE, RowKind, StoredColumn, stored_column
from .pyramid import pyramid_sizes

CHUNK = 1 << 18
"""Values that are looked at together: they stay in the processor's cache."""
_LONG_DURATIONS = {"slices.duration": "long.duration", "slices.self": "long.self"}


class Columns(Protocol):
    """What a check may look at besides the column it is for."""

    @property
    def rows(self) -> AnyArray:
        """The row table."""

    def column(self, name: str) -> AnyArray:
        """Return another column, checked."""

    def length(self, name: str) -> int:
        """Return the length of a column as the manifest has it."""


def check_values(name: str, values: AnyArray, columns: Columns) -> None:
    """Check the values of a column, whose checksums are right or are looked at later."""
    if not len(values):
        return
    known = stored_column(name)
    if known is not None and (known.numbers or known.ascending):
        _check_rule(name, values, known, _limit(known.numbers, columns))
    special = _SPECIAL.get(name)
    if special is not None:
        special(name, values, columns)


def _limit(numbers: str, columns: Columns) -> int:
    if numbers == "strings":
        return columns.length("strings.offset") - 1
    if numbers == "events":
        last = columns.column("blocks.ordinal")[-1:], columns.column("blocks.count")[-1:]
        return int(last[0][0]) + int(last[1][0]) if len(last[0]) else NONE
    return columns.length(numbers)


def _chunks(values: AnyArray) -> Iterator[tuple[int, AnyArray]]:
    """Yield (place, some of the values): each chunk begins with the last value of the one before."""
    for begin in range(0, len(values), CHUNK):
        first = max(0, begin - 1)
        yield first, values[first : begin + CHUNK]


def _check_rule(name: str, values: AnyArray, rule: StoredColumn, limit: int) -> None:
    for _, chunk in _chunks(values):
        sound = int(chunk.max()) < limit
        if not sound and rule.none:
            sound = bool(((chunk < limit) | (chunk == NONE)).all())
        require(sound, f"{name} numbers what is not there")
        if rule.ascending:
            require(bool((chunk[1:] > chunk[:-1]).all()), f"{name} does not ascend")


def _check_parents(name: str, values: AnyArray, columns: Columns) -> None:
    for first, chunk in _chunks(values):
        positions = np.arange(first, first + len(chunk), dtype=np.uint32)
        require(
            bool(((chunk < positions) | (chunk == NONE)).all()), f"{name}: a slice comes before its parent"
        )


def _check_long(name: str, values: AnyArray, columns: Columns) -> None:
    known = columns.column("long.position")
    for first, chunk in _chunks(values):
        if int(chunk.max()) < LONG:
            continue
        require(not bool((chunk > LONG).any()), f"{name} has an impossible duration")
        positions = np.flatnonzero(chunk == LONG) + first
        where = np.searchsorted(known, positions)
        sound = where < len(known)
        sound[sound] = known[where[sound]] == positions[sound]
        require(bool(sound.all()), f"{name} lacks long durations")
    if len(known):
        columns.column(_LONG_DURATIONS[name])


def _check_long_durations(name: str, values: AnyArray, columns: Columns) -> None:
    sound = (values >= 0) & (values <= 2 * TIME_LIMIT)
    require(bool(sound.all()), f"{name} has an impossible duration")


def _starts_checked(kind: RowKind) -> Callable[[str, AnyArray, Columns], None]:
    def check(name: str, values: AnyArray, columns: Columns) -> None:
        rows = columns.rows
        rows = rows[(rows["kind"] == kind) & (rows["count"] > 0)]
        # Starts of rows stand one after the other, 0 4 9 2 6 of rows that begin at 0 and 3: each ascends. So
        # the column may fall, but only where a row begins: what falls anywhere else is damage, and no row has
        # to be looked at by itself.
        firsts = np.sort(rows["first"].astype(np.int64))
        for first, chunk in _chunks(values):
            falls = np.flatnonzero(chunk[1:] < chunk[:-1]) + first + 1
            if len(falls):
                where = np.searchsorted(firsts, falls)
                sound = where < len(firsts)
                sound[sound] = firsts[where[sound]] == falls[sound]
                require(bool(sound.all()), f"{name} does not ascend within a row")
        first, count = rows["first"].astype(np.int64), rows["count"].astype(np.int64)
        sound = (values[first] >= rows["start"]) & (values[first + count - 1] <= rows["end"])
        require(bool(sound.all()), f"{name} reaches beyond its rows")

    return check


def _check_order(name: str, values: AnyArray, columns: Columns) -> None:
    for _, chunk in _chunks(values):
        require(bool((chunk[1:] >= chunk[:-1]).all()), f"{name} does not ascend")


def _check_offsets(name: str, values: AnyArray, columns: Columns) -> None:
    _check_order(name, values, columns)
    sound = int(values[0]) == 0 and int(values[-1]) == columns.length("strings.blob")
    require(sound, f"{name} does not cover the texts")


def _check_longest(name: str, values: AnyArray, columns: Columns) -> None:
    rows = columns.rows
    rows = rows[rows["kind"] == RowKind.SLICES]
    first, count = rows["pyramid"], pyramid_sizes(rows["count"].astype(np.int64))
    some = count > 0
    begin, size = rows["first"][some].astype(np.int64), rows["count"][some].astype(np.int64)
    first, count = first[some].astype(np.int64), count[some]
    # Of each row's part from its begin to its end, which the next one's begin need not be.
    edges, padded = np.stack([first, first + count], axis=1).ravel(), np.append(values.astype(np.int64), 0)
    least, most = (of.reduceat(padded, edges)[::2] for of in (np.minimum, np.maximum))
    sound = (least >= begin) & (most < begin + size)
    require(bool(sound.all()), f"{name}: the longest slice of a row is elsewhere")


def _check_ascent(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that values ascend within the part of each row; in a crafted index such parts may overlap."""
    rows = columns.rows
    rows = rows[(rows["kind"] == RowKind.SLICES) & (rows["category_count"] > 0)]
    falls = np.append(0, np.cumsum(values[1:] <= values[:-1]))  # before and at each value
    begins = rows["categories"].astype(np.int64)
    sound = falls[begins + rows["category_count"].astype(np.int64) - 1] == falls[begins]
    require(bool(sound.all()), f"{name} does not ascend within a row")


def _check_by_target(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that the order of flows by target is one, and holds each of them once."""
    targets = columns.column("flows.target")[values]
    require(bool((targets[1:] >= targets[:-1]).all()), f"{name} is not in the order of targets")
    seen = np.zeros(len(values), np.bool_)
    seen[values] = True
    require(bool(seen.all()), f"{name} lacks flows")


def _check_block_places(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that blocks follow each other in the text, and are no longer than a file can be."""
    require(int(values.min()) >= 0 and int(values.max()) <= MAX_BYTES, f"{name} is outside of any file")
    if name == "blocks.length":
        offsets = columns.column("blocks.offset")
        sound = bool((offsets[:-1] + values[:-1] <= offsets[1:]).all())
        require(sound, "blocks overlap in the text")


def _check_block_events(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that blocks hold consecutive events, each of which takes at least a byte."""
    if name == "blocks.ordinal":
        _check_order(name, values, columns)
        sound = bool((values <= columns.column("blocks.offset")).all())
        require(sound, f"{name}: more events come before a block than bytes")
        return
    ordinals = columns.column("blocks.ordinal").astype(np.int64)
    sound = bool((ordinals[:-1] + values[:-1] <= ordinals[1:]).all())
    require(
        sound and bool((values <= columns.column("blocks.length")).all()), f"{name} counts too many events"
    )


def _check_checkpoints(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that checkpoints lie in a file, behind their blocks' headers, and their windows in `windows`."""
    most = columns.length("windows") if name == "checkpoints.window" else 8 * MAX_BYTES
    require(int(values.min()) >= 0 and int(values.max()) <= most, f"{name} is outside of what it is in")
    if name == "checkpoints.text":
        require(bool((values[1:] > values[:-1]).all()), f"{name} does not ascend")
    elif name == "checkpoints.window":
        _check_order(name, values, columns)
    elif name == "checkpoints.bit":
        sound = bool((columns.column("checkpoints.block") <= values).all())
        require(sound, f"{name}: a block begins behind what is in it")


def _check_text(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that packed chunks of text lie one after the other in `text.packed`."""
    _check_order(name, values, columns)
    sound = int(values.min()) >= 0 and int(values.max()) <= columns.length("text.packed")
    require(sound, f"{name} is outside of what it is in")


_SPECIAL: Mapping[str, Callable[[str, AnyArray, Columns], None]] = {
    "slices.start": _starts_checked(RowKind.SLICES),
    "instants.start": _starts_checked(RowKind.INSTANTS),
    "samples.start": _starts_checked(RowKind.SAMPLES),
    "slices.parent": _check_parents,
    "slices.duration": _check_long,
    "slices.self": _check_long,
    "long.duration": _check_long_durations,
    "long.self": _check_long_durations,
    "strings.offset": _check_offsets,
    "pyramid.longest": _check_longest,
    "row_categories": _check_ascent,
    "flows.source": _check_order,
    "flows.by_target": _check_by_target,
    "blocks.offset": _check_block_places,
    "blocks.length": _check_block_places,
    "blocks.ordinal": _check_block_events,
    "blocks.count": _check_block_events,
    "text.end": _check_text,
    "checkpoints.text": _check_checkpoints,
    "checkpoints.block": _check_checkpoints,
    "checkpoints.bit": _check_checkpoints,
    "checkpoints.window": _check_checkpoints,
    "instants.phase": lambda name, values, _: require(int(values.max()) < 128, f"{name} is no character"),
}
