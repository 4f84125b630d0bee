"""The index on disk: one folder, one file per column, binary lane and row tables, a manifest.

    manifest.json     what is in it: versions, fingerprint, read report, envelope, columns: dtype, length, CRC
    <column>.<dtype>  raw native-endian values, e.g. slices.start.i8

Positions. Slices (X, matched B/E, unclosed B, async spans) are stored row by row, by start within a row; a
slice's *position* is its place in that order, and `parent`, flows and promoted columns speak of positions.
Instants are stored lane by lane by start, counter samples row by row by start.

A lane owns consecutive rows; lanes stand in display order. Within a row slices are disjoint (a zero-length
slice may touch its neighbours), so that starts and ends are both sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import NamedTuple

import numpy as np

from ..read.promoted import PROMOTED, Kind

NONE = 0xFFFF_FFFF
"""The position or ordinal that means "none" in uint32 columns."""
LONG = 0xFFFF_FFFE
"""A duration or self time that does not fit uint32 ns: look it up in the table's `long` columns."""

NO_SUMS = 0xFFFF_FFFF_FFFF_FFFF
"""`sums` of a row that stores no category sums: it has so many categories that they would outgrow its
slices.
"""

CRC_BYTES = 1 << 20
"""Bytes of a column under one CRC."""
BLOCK = 64
"""Slices per block of the category sums and of the first pyramid level."""
FANOUT = 16
"""Blocks of one pyramid level per block of the next."""


class LaneKind(IntEnum):
    THREAD = 0  # pid, tid: CPU threads and device streams alike
    ASYNC = 1  # one async id (or many, see `ids`) of a category in a process
    COUNTER = 2  # one counter of a process; a row per series


class LaneRole(IntEnum):
    """Whose doing a lane shows (`core/index/roles.py`); its name in lower case is what people read."""

    HOST = 0
    DEVICE = 1
    TELEMETRY = 2  # counters: of the trace, of logs, computed
    PROFILER = 3  # what the profiler notes about itself
    DERIVED = 4  # what repeats or sums up other lanes: drawn, counted nowhere


class RowKind(IntEnum):
    """What a row holds; `first` and `count` of the row table index the table of that kind."""

    SLICES = 0
    INSTANTS = 1  # all instants of the lane, one row, the lane's last
    SAMPLES = 2  # one counter series


class SliceFlag(IntFlag):
    """Bits of `slices.flags`."""

    OVERLAP = 1  # overlaps an open slice without nesting in it
    UNCLOSED = 2  # a B without E, drawn to the end of its lane
    PAIR = 4  # from B and E (or b and e): the end's ordinal is in slices.end_ordinal
    CLAMPED = 8  # a time beyond base.units.TIME_LIMIT


LANE = np.dtype(
    [
        ("kind", "u1"),
        ("process", "u4"),  # index in the process table
        ("tid", "u4"),  # string number of the JSON text of tid (async: of the id; counter: of the id)
        ("name", "u4"),  # string number: thread_name, async category, counter name; 0 if none
        ("ids", "u4"),  # async: number of distinct ids in this lane; else 0
        ("first_row", "u4"),
        ("rows", "u4"),
        ("depth", "u4"),  # greatest number of slices open at once (nesting depth)
        ("slices", "u8"),  # without unclosed ones
        ("unclosed", "u8"),
        ("instants", "u8"),
        ("samples", "u8"),
        ("overlapping", "u8"),  # slices with OVERLAP
        ("start", "i8"),  # first start; last end, over everything in the lane
        ("end", "i8"),
        ("sort", "i8"),  # thread_sort_index or 0
        ("role", "u1"),  # LaneRole
    ]
)
PROCESS = np.dtype(
    [
        ("pid", "u4"),  # string number of its JSON text; a device's that is a program's, too, is marked
        ("name", "u4"),  # string number
        ("labels", "u4"),  # string number
        ("sort", "i8"),
        ("first_lane", "u4"),
        ("lanes", "u4"),  # non-empty lanes; empty ones are counted in `empty`
        ("empty", "u4"),  # lanes that metadata names but nothing lies in
    ]
)
ROW = np.dtype(
    [
        ("lane", "u4"),
        ("kind", "u1"),
        ("depth", "u4"),  # 0 = topmost row of the lane
        ("series", "u4"),  # SAMPLES: string number of the series
        ("first", "u8"),
        ("count", "u8"),
        ("start", "i8"),  # first start, last end
        ("end", "i8"),
        ("pyramid", "u8"),  # first entry in pyramid.* (SLICES: longest; SAMPLES: min/max), rows > BLOCK only
        ("categories", "u8"),  # first entry in row_categories
        ("category_count", "u4"),
        ("sums", "u8"),  # first entry in category_sums: (blocks + 1) x category_count, row-major; or NO_SUMS
    ]
)

READ_REPORT = (
    *("events", "slices", "pairs", "instants", "instant_events", "counter_samples", "counter_events"),
    *("counter_values", "empty_counters", "metadata", "async_events", "async_spans", "async_unmatched_begin"),
    *("async_unmatched_end", "flow_events", "unmatched_begin", "unmatched_end", "mismatched_ends"),
    *("without_time", "empty", "not_objects", "negative_durations", "missing_durations", "repaired"),
    *("oversized", "unreadable"),
)
"""Counts of the read report; besides, `counts` has the reader's own, `flows` FLOW_COUNTS per category."""
FLOW_COUNTS = ("starts", "steps", "ends", "paired", "orphan_starts", "orphan_ends")
"""What is counted of the flow events of a category."""
TABLES: Mapping[str, np.dtype[np.void]] = {"lanes": LANE, "processes": PROCESS, "rows": ROW}


class StoredColumn(NamedTuple):
    """The dtypes that a column may have, and what holds of every value: it is below the count of what it
    `numbers` (a column, "strings", "events"), or NONE where that is allowed; `ascending`: each is
    greater than the one before.
    """

    dtype: str
    numbers: str = ""
    none: bool = False
    ascending: bool = False
    others: tuple[str, ...] = ()  # dtypes that it may have instead

    @property
    def dtypes(self) -> tuple[str, ...]:
        return (self.dtype, *self.others)


COLUMNS: Mapping[str, StoredColumn] = {
    # -- slices, by position ------------------------------------------------------------------------------
    "slices.start": StoredColumn("i8"),
    "slices.duration": StoredColumn("u4"),  # ns; LONG: see long.*
    "slices.self": StoredColumn("u4"),  # ns, duration minus the union of its children; LONG likewise
    "slices.name": StoredColumn("u4", numbers="strings"),  # string number
    # index in `categories`; the smallest of the dtypes that holds them all
    "slices.category": StoredColumn("u1", numbers="categories", others=("u2", "u4")),
    "slices.ordinal": StoredColumn("u4", numbers="events"),  # event ordinal (of the begin event)
    "slices.parent": StoredColumn("u4", numbers="slices.start", none=True),  # position; NONE
    # sparse facts, by sorted position
    "flags.position": StoredColumn("u4", numbers="slices.start", ascending=True),
    "flags.value": StoredColumn("u1"),  # SliceFlag
    "ends.position": StoredColumn("u4", numbers="slices.start", ascending=True),
    "ends.ordinal": StoredColumn("u4", numbers="events"),  # ordinal of the end event of PAIR slices
    "long.position": StoredColumn("u4", numbers="slices.start", ascending=True),
    "long.duration": StoredColumn("i8"),
    "long.self": StoredColumn("i8"),
    # -- instants, by lane and start ----------------------------------------------------------------------
    "instants.start": StoredColumn("i8"),
    "instants.name": StoredColumn("u4", numbers="strings"),
    "instants.category": StoredColumn("u1", numbers="categories", others=("u2", "u4")),
    "instants.ordinal": StoredColumn("u4", numbers="events"),
    "instants.phase": StoredColumn("u1"),  # ASCII; b/n/e marks and unmatched E included
    # -- counter samples, by row and start ----------------------------------------------------------------
    "samples.start": StoredColumn("i8"),
    "samples.value": StoredColumn("f8"),
    "samples.ordinal": StoredColumn("u4", numbers="events"),
    # -- drawing ------------------------------------------------------------------------------------------
    "row_categories": StoredColumn("u4", numbers="categories"),  # category index, per row, ascending
    # ns before block b of category c in the row; last block row = totals
    "category_sums": StoredColumn("i8"),
    # SLICES: position of the longest slice per block, level after level
    "pyramid.longest": StoredColumn("u4", numbers="slices.start"),
    "pyramid.low": StoredColumn("f8"),  # SAMPLES: smallest and greatest value per block, level after level
    "pyramid.high": StoredColumn("f8"),
    # -- flows, by source position (unbound sources last) -------------------------------------------------
    # position; NONE: its stamp lies in no slice
    "flows.source": StoredColumn("u4", numbers="slices.start", none=True),
    "flows.target": StoredColumn("u4", numbers="slices.start", none=True),
    "flows.category": StoredColumn("u1", numbers="categories", others=("u2", "u4")),
    # event ordinals of the s (or t) and of the f (or t)
    "flows.source_ordinal": StoredColumn("u4", numbers="events"),
    "flows.target_ordinal": StoredColumn("u4", numbers="events"),
    "flows.by_target": StoredColumn("u4", numbers="flows.target"),  # flow numbers in order of target
    # -- blocks of the source -----------------------------------------------------------------------------
    "blocks.offset": StoredColumn("i8"),
    "blocks.length": StoredColumn("i8"),
    "blocks.ordinal": StoredColumn("u4"),
    "blocks.count": StoredColumn("u4"),
    "blocks.repaired": StoredColumn("u1"),
    # -- where the text of a deflated source can be inflated from; none of others ---------------------------
    "checkpoints.text": StoredColumn("i8"),  # offset in the text
    "checkpoints.block": StoredColumn("i8"),  # bits of the file: where the block's header begins
    "checkpoints.bit": StoredColumn("i8"),  # and where inflating begins
    "checkpoints.crc": StoredColumn("u4"),  # of the text before it, up to 32 KB
    "checkpoints.window": StoredColumn("i8"),  # where that ends in
    "windows": StoredColumn("u1"),  # the packed texts, one after the other
    # -- the text of a source that is neither plain nor has checkpoints, in chunks of one length -------------
    "text.end": StoredColumn("i8"),  # where a packed chunk ends in
    "text.packed": StoredColumn("u1"),  # the packed chunks, one after the other
    # -- strings ------------------------------------------------------------------------------------------
    "strings.blob": StoredColumn("u1"),  # UTF-8 (surrogates escaped as U+FFFD)
    "strings.offset": StoredColumn("i8"),  # number of strings + 1
    # string number of each category; [0] is the empty string
    "categories": StoredColumn("u4", numbers="strings"),
}
_PROMOTED_VALUES = {
    Kind.INTEGER: StoredColumn("i1", others=("u1", "i2", "u2", "i4", "u4", "i8")),
    Kind.FLOAT: StoredColumn("f8"),
    Kind.TEXT: StoredColumn("u4", numbers="strings"),
}
PROMOTED_COLUMNS: Mapping[str, StoredColumn] = {
    f"promoted.{argument.key}.{name}": column
    for argument in PROMOTED
    for values in [_PROMOTED_VALUES[argument.kind]]
    for name, column in (
        ("position", StoredColumn("u4", numbers="slices.start", ascending=True)),
        ("value", values),
        ("instant", StoredColumn("u4", numbers="instants.start", ascending=True)),
        ("instant_value", values),
    )
}
"""Per promoted key that occurs: values of slices, and of instants (by index in the instant table); integers
in the smallest dtype that holds them, texts as string numbers.
"""
EQUALLY_LONG = (
    *(
        tuple(name for name in COLUMNS if name.startswith(f"{table}."))
        for table in (
            *("slices", "instants", "samples", "flags", "ends", "long", "flows", "blocks"),
            "checkpoints",
        )
    ),
    ("pyramid.low", "pyramid.high"),
    *(
        (f"promoted.{argument.key}.{holders}", f"promoted.{argument.key}.{values}")
        for argument in PROMOTED
        for holders, values in (("position", "value"), ("instant", "instant_value"))
    ),
)
"""Columns of one table."""


def stored_column(name: str) -> StoredColumn | None:
    """Return what is known of a column, None where there is none of this name."""
    return COLUMNS.get(name) or PROMOTED_COLUMNS.get(name)
