"""What must hold of an index before its numbers are used: whoever reads a column never checks it again.

An index may be damaged, or made by somebody who wants a reader to fail. Checksums find the first; the checks
here hold for both. Three steps, in this order:

    check_manifest   at opening: types of everything that is read, known column names and dtypes, sizes
    check_tables     at opening: lanes, rows and processes speak of each other and of places inside columns
    check_values     when a column is used first: string numbers, categories, positions and flow numbers are
                     below what they number, offsets ascend, a parent stands before its children, starts
                     ascend within a row

All raise ValueError with a sentence that names the column or the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..base.arrays import AnyArray
from ..read.columns import TIME_LIMIT
from ..read.promoted import PROMOTED, Kind
from .format import BLOCK, COLUMNS, LONG, NO_SUMS, NONE, OVERVIEW_CELLS, TABLES, LaneKind, RowKind
from .pyramid import blocks_of, pyramid_sizes
from .version import FORMAT_VERSION

CRC_BYTES = 1 << 20
"""Bytes of a column under one CRC."""
CHUNK = 1 << 18
"""Values that are looked at together: they stay in the processor's cache."""
MOST_BYTES = 1 << 48
"""No column is longer: a greater length is a damaged manifest."""
_INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8")
_LIFTED_DTYPES = {Kind.INTEGER: _INTEGERS, Kind.FLOAT: ("f8",), Kind.TEXT: ("u4",)}
_EQUAL = ("slices", "instants", "samples", "flags", "ends", "long", "flows", "blocks", "overview")
"""Columns that begin with one of these words, and a dot, are equally long."""
_PROCESS_TEXTS = ("pid", "name", "labels")
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


@dataclass(frozen=True)
class ColumnRule:
    """What holds of every value of a column: it is below the count of what it numbers, or NONE where that
    is allowed; `ascending`: each is greater than the one before.
    """

    numbers: str = ""
    none: bool = False
    ascending: bool = False


RULES: Mapping[str, ColumnRule] = {
    "slices.name": ColumnRule("strings"),
    "slices.category": ColumnRule("categories"),
    "slices.parent": ColumnRule("slices.start", none=True),
    "flags.position": ColumnRule("slices.start", ascending=True),
    "ends.position": ColumnRule("slices.start", ascending=True),
    "long.position": ColumnRule("slices.start", ascending=True),
    "instants.name": ColumnRule("strings"),
    "instants.category": ColumnRule("categories"),
    "row_categories": ColumnRule("categories"),
    "pyramid.longest": ColumnRule("slices.start"),
    "overview.cell": ColumnRule("cells"),
    "overview.category": ColumnRule("categories"),
    "overview.longest": ColumnRule("slices.start"),
    "flows.source": ColumnRule("slices.start", none=True),
    "flows.target": ColumnRule("slices.start", none=True),
    "flows.category": ColumnRule("categories"),
    "flows.by_target": ColumnRule("flows.target"),
    "categories": ColumnRule("strings"),
    "slices.ordinal": ColumnRule("events"),
    "ends.ordinal": ColumnRule("events"),
    "instants.ordinal": ColumnRule("events"),
    "samples.ordinal": ColumnRule("events"),
    "flows.source_ordinal": ColumnRule("events", none=True),
    "flows.target_ordinal": ColumnRule("events", none=True),
}


# -- the manifest -------------------------------------------------------------------------------------------


def check_manifest(manifest: object) -> dict[str, Any]:
    """Return a manifest whose every entry that is read has the type that readers expect."""
    _require(isinstance(manifest, dict), "the manifest is no object")
    assert isinstance(manifest, dict)
    _require(manifest.get("format") == FORMAT_VERSION, "it is of another format")
    _require(manifest.get("byte_order") == sys.byteorder, "it was written on a machine of another byte order")
    for name in ("path", "form", "display_unit"):
        _require(isinstance(manifest.get(name, ""), str | None), f"{name} is no text")
    for name in ("base_time_ns", "start_ns", "end_ns"):
        _require(manifest.get(name) is None or _is_integer(manifest[name]), f"{name} is no integer")
    _require(isinstance(manifest.get("envelope"), dict), "the envelope is no object")
    _check_source(manifest.get("source"))
    _check_ledger(manifest.get("ledger"))
    for need in ("events", "slices"):
        _require(_is_integer(manifest["ledger"].get(need)), f"the ledger has no {need}")
    problems = manifest.get("problems")
    _require(isinstance(problems, list) and all(map(_is_problem, problems)), "problems are no list of them")
    _check_columns(manifest.get("columns"))
    tables = manifest.get("tables")
    _require(isinstance(tables, dict) and tables.keys() == TABLES.keys(), "tables are missing")
    assert isinstance(tables, dict)
    for name, entry in tables.items():
        sound = isinstance(entry, dict) and _is_count(entry.get("length")) and _is_count(entry.get("crc"))
        _require(sound, f"the entry of the table {name} is damaged")
    return manifest


def _check_source(source: object) -> None:
    """Check the fingerprint of the file that was indexed; that of an index in memory is empty."""
    sound = isinstance(source, dict) and all(isinstance(value, int | str) for value in source.values())
    _require(sound, "the source is no fingerprint")
    assert isinstance(source, dict)
    for name in ("size", "mtime_ns"):
        _require(name not in source or _is_integer(source[name]), f"the source's {name} is no integer")


def _check_ledger(ledger: object) -> None:
    """Check that the read report holds integers; `counts` is an object of them, `flows` one per category."""
    _check_counts(ledger, "ledger", {"counts": _check_counts, "flows": _check_flow_counts})


def _check_flow_counts(flows: object, where: str) -> None:
    categories = flows if isinstance(flows, dict) else ()
    _check_counts(flows, where, dict.fromkeys(categories, _check_counts))


def _check_counts(
    counts: object, where: str, others: Mapping[str, Callable[[object, str], None]] | None = None
) -> None:
    """Check that an object holds integers; what `others` names is checked by that instead."""
    _require(isinstance(counts, dict), f"{where} is no object")
    assert isinstance(counts, dict)
    for name, value in counts.items():
        if others is not None and name in others:
            others[name](value, f"{where}.{name}")
        else:
            _require(_is_integer(value), f"{where}.{name} is no count")


def _is_problem(problem: object) -> bool:
    return (
        isinstance(problem, dict)
        and isinstance(problem.get("kind"), str)
        and isinstance(problem.get("message"), str)
        and _is_integer(problem.get("count"))
        and (problem.get("offset") is None or _is_integer(problem["offset"]))
    )


def _check_columns(columns: object) -> None:
    _require(isinstance(columns, dict), "there are no columns")
    assert isinstance(columns, dict)
    for name, entry in columns.items():
        allowed = dtypes_of(name)
        _require(bool(allowed), f"{name!r} is no column of this format")
        sound = isinstance(entry, dict) and entry.get("dtype") in allowed and _is_count(entry.get("length"))
        _require(sound, f"the entry of the column {name} is damaged")
        size = int(entry["length"]) * np.dtype(entry["dtype"]).itemsize
        _require(size < MOST_BYTES, f"the column {name} is longer than any can be")
        crcs = entry.get("crc")
        sound = isinstance(crcs, list) and len(crcs) == -(-size // CRC_BYTES) and all(map(_is_count, crcs))
        _require(sound, f"the column {name} has no checksums")
    _check_lengths({name: int(entry["length"]) for name, entry in columns.items()})


def dtypes_of(name: str) -> tuple[str, ...]:
    """Return the dtypes that a column of this name may have, none where there is no such column."""
    if name in COLUMNS:
        return tuple(COLUMNS[name].split("|"))
    return _LIFTED_COLUMNS.get(name, ())


def _lifted_columns() -> Iterator[tuple[str, tuple[str, ...]]]:
    for lifted in PROMOTED:
        for places, values in (("position", "value"), ("instant", "instant_value")):
            yield f"lifted.{lifted.key}.{places}", ("u4",)
            yield f"lifted.{lifted.key}.{values}", _LIFTED_DTYPES[lifted.kind]


_LIFTED_COLUMNS: Mapping[str, tuple[str, ...]] = dict(_lifted_columns())
_LIFTED_TEXTS = frozenset(lifted.key for lifted in PROMOTED if lifted.kind is Kind.TEXT)


def _check_lengths(lengths: Mapping[str, int]) -> None:
    """Check that columns of one table are equally long, and that positions fit their numbers."""
    for table in _EQUAL:
        each = {lengths.get(name, 0) for name in COLUMNS if name.startswith(f"{table}.")}
        _require(len(each) <= 1, f"the columns of {table} are not equally long")
    for name in lengths:
        for places, values in ((".position", ".value"), (".instant", ".instant_value")):
            if name.startswith("lifted.") and name.endswith(places):
                other = name.removesuffix(places) + values
                _require(lengths[name] == lengths.get(other, 0), f"{name} and {other} are not equally long")
            if name.startswith("lifted.") and name.endswith(values):
                other = name.removesuffix(values) + places
                _require(lengths[name] == lengths.get(other, 0), f"{name} and {other} are not equally long")
    low, high = lengths.get("pyramid.low", 0), lengths.get("pyramid.high", 0)
    _require(low == high, "pyramid.low and pyramid.high are not equally long")
    for name in ("slices.start", "instants.start", "samples.start", "flows.source"):
        _require(lengths.get(name, 0) < NONE, f"{name} is longer than positions can say")
    _require(lengths.get("strings.offset", 0) > 1, "there are no strings")
    _require(lengths.get("categories", 0) > 0, "there are no categories")


# -- lanes, rows and processes ------------------------------------------------------------------------------


def check_tables(tables: Mapping[str, AnyArray], lengths: Mapping[str, int]) -> None:
    """Check that each lane owns rows, each process lanes, and that rows lie within the columns."""
    lanes, rows, processes = tables["lanes"], tables["rows"], tables["processes"]
    strings = lengths["strings.offset"] - 1
    _require(bool((lanes["kind"] <= max(LaneKind)).all()), "a lane is of no kind")
    _require(bool((rows["kind"] <= max(RowKind)).all()), "a row is of no kind")
    texts = [lanes["tid"], lanes["name"], rows["series"], *(processes[name] for name in _PROCESS_TEXTS)]
    for numbers in texts:
        _require(bool((numbers < strings).all()), "a lane or process names a string that is not there")
    _check_owners(lanes["first_row"], lanes["rows"], rows["lane"], "lanes do not own the rows")
    _check_owners(
        processes["first_lane"], processes["lanes"], lanes["process"], "not all lanes have a process"
    )
    for table in (lanes, rows):
        start, end = table["start"], table["end"]
        sound = (start <= end) & (start >= -TIME_LIMIT) & (end <= TIME_LIMIT)
        _require(bool(sound.all()), "a lane or row ends before it starts, or beyond all times")
    for kind, column in (
        (RowKind.SLICES, "slices.start"),
        (RowKind.INSTANTS, "instants.start"),
        (RowKind.SAMPLES, "samples.start"),
    ):
        some, length = rows[rows["kind"] == kind], lengths.get(column, 0)
        _require(bool((some["count"] <= length).all()), f"rows reach beyond {column}")
        some = some[np.lexsort((some["count"], some["first"]))]
        ends = np.cumsum(some["count"].astype(np.int64))
        _require(int(ends[-1] if len(some) else 0) == length, f"rows do not hold what is in {column}")
        firsts = ends - some["count"].astype(np.int64)
        _require(bool((some["first"] == firsts).all()), f"rows do not follow each other in {column}")
    _check_drawing(rows, lengths)


def _check_owners(first: AnyArray, count: AnyArray, owner: AnyArray, message: str) -> None:
    """Check that owners stand one after the other, and that what they own says whose it is."""
    counts = count.astype(np.int64)
    _require(int(counts.sum()) == len(owner), message)
    _require(bool((first.astype(np.int64) == np.cumsum(counts) - counts).all()), message)
    _require(bool((owner == np.repeat(np.arange(len(counts)), counts)).all()), message)


def _check_drawing(rows: AnyArray, lengths: Mapping[str, int]) -> None:
    """Check that what rows say of pyramids, category sums and overviews lies in those columns."""
    slices, samples = rows[rows["kind"] == RowKind.SLICES], rows[rows["kind"] == RowKind.SAMPLES]
    for some, column in ((slices, "pyramid.longest"), (samples, "pyramid.low")):
        sizes = pyramid_sizes(some["count"].astype(np.int64))
        tall = sizes > 0
        _check_places(some["pyramid"][tall], sizes[tall], lengths.get(column, 0), column)
    kinds = slices["category_count"].astype(np.int64)
    _check_places(slices["categories"], kinds, lengths.get("row_categories", 0), "row_categories")
    _require(bool((kinds[slices["count"] > 0] > 0).all()), "a row has slices and no category")
    summed = slices[slices["sums"] != NO_SUMS]
    blocks = blocks_of(summed["count"].astype(np.int64), BLOCK) + 1
    sizes = blocks * summed["category_count"].astype(np.int64)
    _check_places(summed["sums"], sizes, lengths.get("category_sums", 0), "category_sums")
    cells = slices["overview_count"].astype(np.int64)
    _require(bool((cells <= OVERVIEW_CELLS).all()), "a row has more overview cells than there are")
    stored = cells > 0
    _check_places(slices["overview"][stored], cells[stored], lengths.get("overview.cell", 0), "overview.cell")


def _check_places(first: AnyArray, count: AnyArray, length: int, column: str) -> None:
    sound = (count >= 0) & (count <= length)
    sound &= first <= np.uint64(length) - np.where(sound, count, 0).astype(np.uint64)
    _require(bool(sound.all()), f"rows reach beyond {column}")


# -- values of columns --------------------------------------------------------------------------------------


def check_values(name: str, values: AnyArray, columns: Columns) -> None:
    """Check the values of a column, whose checksums are right or are looked at later."""
    if not len(values):
        return
    rule = RULES.get(name) or _lifted_rule(name)
    if rule is not None:
        _check_rule(name, values, rule, _limit(rule.numbers, columns))
    special = _SPECIAL.get(name)
    if special is not None:
        special(name, values, columns)


def _lifted_rule(name: str) -> ColumnRule | None:
    if not name.startswith("lifted."):
        return None
    _, key, what = name.split(".")
    if what == "position":
        return ColumnRule("slices.start", ascending=True)
    if what == "instant":
        return ColumnRule("instants.start", ascending=True)
    return ColumnRule("strings") if key in _LIFTED_TEXTS else None


def _limit(numbers: str, columns: Columns) -> int:
    if numbers == "strings":
        return columns.length("strings.offset") - 1
    if numbers == "events":
        last = columns.column("blocks.ordinal")[-1:], columns.column("blocks.count")[-1:]
        return int(last[0][0]) + int(last[1][0]) if len(last[0]) else NONE
    if numbers == "cells":
        return OVERVIEW_CELLS
    return columns.length(numbers)


def _chunks(values: AnyArray) -> Iterator[tuple[int, AnyArray]]:
    """Yield (place, some of the values): each chunk begins with the last value of the one before."""
    for begin in range(0, len(values), CHUNK):
        first = max(0, begin - 1)
        yield first, values[first : begin + CHUNK]


def _check_rule(name: str, values: AnyArray, rule: ColumnRule, limit: int) -> None:
    for _, chunk in _chunks(values):
        sound = int(chunk.max()) < limit
        if not sound and rule.none:
            sound = bool(((chunk < limit) | (chunk == NONE)).all())
        _require(sound, f"{name} numbers what is not there")
        if rule.ascending:
            _require(bool((chunk[1:] > chunk[:-1]).all()), f"{name} does not ascend")


def _check_parents(name: str, values: AnyArray, columns: Columns) -> None:
    for first, chunk in _chunks(values):
        places = np.arange(first, first + len(chunk), dtype=np.uint32)
        _require(
            bool(((chunk < places) | (chunk == NONE)).all()), f"{name}: a slice stands before its parent"
        )


def _check_long(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that each duration that does not fit is among the long ones."""
    known = columns.column("long.position")
    for first, chunk in _chunks(values):
        if int(chunk.max()) < LONG:
            continue
        _require(not bool((chunk > LONG).any()), f"{name} has a duration that is none")
        places = np.flatnonzero(chunk == LONG) + first
        where = np.searchsorted(known, places)
        sound = where < len(known)
        sound[sound] = known[where[sound]] == places[sound]
        _require(bool(sound.all()), f"{name} lacks long durations")
    if len(known):
        columns.column(_LONG_DURATIONS[name])


def _check_long_durations(name: str, values: AnyArray, columns: Columns) -> None:
    sound = (values >= 0) & (values <= 2 * TIME_LIMIT)
    _require(bool(sound.all()), f"{name} has a duration that is none")


def _starts_checked(kind: RowKind) -> Callable[[str, AnyArray, Columns], None]:
    """Return the check that starts ascend within the rows of a kind."""

    def check(name: str, values: AnyArray, columns: Columns) -> None:
        rows = columns.rows
        rows = rows[(rows["kind"] == kind) & (rows["count"] > 0)]
        firsts = np.sort(rows["first"].astype(np.int64))
        for place, chunk in _chunks(values):
            falls = np.flatnonzero(chunk[1:] < chunk[:-1]) + place + 1
            if len(falls):
                where = np.searchsorted(firsts, falls)
                sound = where < len(firsts)
                sound[sound] = firsts[where[sound]] == falls[sound]
                _require(bool(sound.all()), f"{name} does not ascend within a row")
        first, count = rows["first"].astype(np.int64), rows["count"].astype(np.int64)
        sound = (values[first] >= rows["start"]) & (values[first + count - 1] <= rows["end"])
        _require(bool(sound.all()), f"{name} reaches beyond its rows")

    return check


def _check_offsets(name: str, values: AnyArray, columns: Columns) -> None:
    for _, chunk in _chunks(values):
        _require(bool((chunk[1:] >= chunk[:-1]).all()), f"{name} does not ascend")
    sound = int(values[0]) == 0 and int(values[-1]) == columns.length("strings.blob")
    _require(sound, f"{name} does not cover the texts")


def _check_longest(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that the longest slices of a row, by block or by cell, lie in that row."""
    rows = columns.rows
    rows = rows[rows["kind"] == RowKind.SLICES]
    if name == "pyramid.longest":
        first, count = rows["pyramid"], pyramid_sizes(rows["count"].astype(np.int64))
    else:
        first, count = rows["overview"], rows["overview_count"].astype(np.int64)
    some = count > 0
    begin, size = rows["first"][some].astype(np.int64), rows["count"][some].astype(np.int64)
    first, count = first[some].astype(np.int64), count[some]
    places = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    longest = values[places].astype(np.int64)
    sound = (longest >= np.repeat(begin, count)) & (longest < np.repeat(begin + size, count))
    _require(bool(sound.all()), f"{name}: the longest slice of a row lies elsewhere")


def _check_cells(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that the overview cells of a row ascend."""
    rows = columns.rows
    rows = rows[(rows["kind"] == RowKind.SLICES) & (rows["overview_count"] > 0)]
    falls = np.flatnonzero(values[1:] <= values[:-1]) + 1
    _require(
        bool(np.isin(falls, rows["overview"].astype(np.int64)).all()), f"{name} does not ascend within a row"
    )


def _check_row_categories(name: str, values: AnyArray, columns: Columns) -> None:
    rows = columns.rows
    rows = rows[(rows["kind"] == RowKind.SLICES) & (rows["category_count"] > 0)]
    falls = np.flatnonzero(values[1:] <= values[:-1]) + 1
    sound = bool(np.isin(falls, rows["categories"].astype(np.int64)).all())
    _require(sound, f"{name} does not ascend within a row")


def _check_by_target(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that the order of flows by target is one, and holds each of them once."""
    targets = columns.column("flows.target")[values]
    _require(bool((targets[1:] >= targets[:-1]).all()), f"{name} is not in the order of targets")
    seen = np.zeros(len(values), np.bool_)
    seen[values] = True
    _require(bool(seen.all()), f"{name} lacks flows")


def _check_flow_sources(name: str, values: AnyArray, columns: Columns) -> None:
    for _, chunk in _chunks(values):
        _require(bool((chunk[1:] >= chunk[:-1]).all()), f"{name} does not ascend")


def _check_block_places(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that blocks follow each other in the text, and are no longer than a file can be."""
    _require(int(values.min()) >= 0 and int(values.max()) <= MOST_BYTES, f"{name} lies outside of any file")
    if name == "blocks.length":
        offsets = columns.column("blocks.offset")
        sound = bool((offsets[:-1] + values[:-1] <= offsets[1:]).all())
        _require(sound, "blocks overlap in the text")


def _check_block_events(name: str, values: AnyArray, columns: Columns) -> None:
    """Check that blocks hold consecutive events, each of which takes at least a byte."""
    if name == "blocks.ordinal":
        _require(bool((values[1:] >= values[:-1]).all()), f"{name} does not ascend")
        return
    ordinals = columns.column("blocks.ordinal").astype(np.int64)
    sound = bool((ordinals[:-1] + values[:-1] <= ordinals[1:]).all())
    _require(
        sound and bool((values <= columns.column("blocks.length")).all()), f"{name} counts too many events"
    )


def _check_phases(name: str, values: AnyArray, columns: Columns) -> None:
    _require(int(values.max()) < 128, f"{name} is no character")


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
    "overview.longest": _check_longest,
    "overview.cell": _check_cells,
    "row_categories": _check_row_categories,
    "flows.source": _check_flow_sources,
    "flows.by_target": _check_by_target,
    "blocks.offset": _check_block_places,
    "blocks.length": _check_block_places,
    "blocks.ordinal": _check_block_events,
    "blocks.count": _check_block_events,
    "instants.phase": _check_phases,
}


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
