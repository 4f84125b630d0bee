"""What must hold of an index before it is opened: its manifest and its tables.

An index may be damaged, or made by somebody who wants a reader to fail. Checksums find the first; the checks
here hold for both. Three steps, in this order:

    check_manifest   at opening: types of everything that is read, known column names and dtypes, sizes
    check_tables     at opening: lanes, rows and processes speak of each other and of places inside columns
    check_values     when a column is used first (in `column_checks`)

All raise ValueError with a sentence that names the column or the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from ..base.units import TIME_LIMIT
from .format import (
    BLOCK,
    CRC_BYTES,
    EQUALLY_LONG,
    FLOW_COUNTS,
    NO_SUMS,
    NONE,
    READ_REPORT,
    TABLES,
    LaneKind,
    LaneRole,
    RowKind,
    stored_column,
)
from .pyramid import blocks_of, pyramid_sizes
from .version import FORMAT_VERSION

MAX_BYTES = 1 << 48
"""No column is longer: a greater length is a damaged manifest."""
_PROCESS_TEXTS = ("pid", "name", "labels")


# -- the manifest -------------------------------------------------------------------------------------------


def check_manifest(manifest: object) -> dict[str, Any]:
    """Return a manifest whose every entry that is read has the type that readers expect."""
    require(isinstance(manifest, dict), "the manifest is no object")
    assert isinstance(manifest, dict)
    require(manifest.get("format") == FORMAT_VERSION, "it is of another format")
    require(manifest.get("byte_order") == sys.byteorder, "it was written on a machine of another byte order")
    for name in ("path", "form", "display_unit"):
        require(isinstance(manifest.get(name, ""), str | None), f"{name} is no text")
    for name in ("base_time_ns", "origin_ns", "start_ns", "end_ns"):
        require(manifest.get(name) is None or _is_integer(manifest[name]), f"{name} is no integer")
    require(isinstance(manifest.get("envelope"), dict), "the envelope is no object")
    _check_source(manifest.get("source"))
    _check_read_report(manifest.get("read_report"))
    problems = manifest.get("problems")
    require(isinstance(problems, list) and all(map(_is_problem, problems)), "problems are no list of them")
    _check_columns(manifest.get("columns"))
    tables = manifest.get("tables")
    require(isinstance(tables, dict) and tables.keys() == TABLES.keys(), "tables are missing")
    assert isinstance(tables, dict)
    for name, entry in tables.items():
        sound = isinstance(entry, dict) and _is_count(entry.get("length")) and _is_count(entry.get("crc"))
        require(sound, f"the entry of the table {name} is damaged")
    return manifest


def _check_source(source: object) -> None:
    """Check the fingerprint of the file that was indexed; that of an index in memory is empty."""
    sound = isinstance(source, dict) and all(isinstance(value, int | str) for value in source.values())
    require(sound, "the source is no fingerprint")
    assert isinstance(source, dict)
    for name in ("size", "mtime_ns"):
        require(name not in source or _is_integer(source[name]), f"the source's {name} is no integer")


def _check_read_report(read_report: object) -> None:
    """Check that the read report holds integers; `counts` is an object of them, `flows` one per category."""
    _check_counts(read_report, "read_report", {"counts": _check_counts, "flows": _check_flow_counts})
    assert isinstance(read_report, dict)
    for name in (*READ_REPORT, "counts", "flows"):
        require(name in read_report, f"the read report has no {name}")


def _check_flow_counts(flows: Any, where: str) -> None:
    categories = flows if isinstance(flows, dict) else ()
    _check_counts(flows, where, dict.fromkeys(categories, _check_counts))
    for category in categories:
        require(flows[category].keys() == set(FLOW_COUNTS), f"{where}.{category} lacks counts")


def _check_counts(
    counts: object, where: str, others: Mapping[str, Callable[[object, str], None]] | None = None
) -> None:
    """Check that an object holds integers; what `others` names is checked by that instead."""
    require(isinstance(counts, dict), f"{where} is no object")
    assert isinstance(counts, dict)
    for name, value in counts.items():
        if others is not None and name in others:
            others[name](value, f"{where}.{name}")
        else:
            require(_is_integer(value), f"{where}.{name} is no count")


def _is_problem(problem: object) -> bool:
    return (
        isinstance(problem, dict)
        and isinstance(problem.get("kind"), str)
        and isinstance(problem.get("message"), str)
        and _is_integer(problem.get("count"))
        and (problem.get("offset") is None or _is_integer(problem["offset"]))
    )


def _check_columns(columns: object) -> None:
    require(isinstance(columns, dict), "there are no columns")
    assert isinstance(columns, dict)
    for name, entry in columns.items():
        known = stored_column(name)
        require(known is not None, f"{name!r} is no column of this format")
        assert known is not None
        sound = isinstance(entry, dict) and entry.get("dtype") in known.dtypes
        sound = sound and _is_count(entry.get("length"))
        require(sound, f"the entry of the column {name} is damaged")
        size = int(entry["length"]) * np.dtype(entry["dtype"]).itemsize
        require(size < MAX_BYTES, f"the column {name} is longer than any can be")
        crcs = entry.get("crc")
        sound = isinstance(crcs, list) and len(crcs) == -(-size // CRC_BYTES) and all(map(_is_count, crcs))
        require(sound, f"the column {name} has no checksums")
    _check_lengths({name: int(entry["length"]) for name, entry in columns.items()})


def _check_lengths(lengths: Mapping[str, int]) -> None:
    """Check that columns of one table are equally long, and that positions fit their numbers."""
    for names in EQUALLY_LONG:
        equal = len({lengths.get(name, 0) for name in names}) <= 1
        require(equal, f"{', '.join(names)} are not equally long")
    for name in ("slices.start", "instants.start", "samples.start", "flows.source"):
        require(lengths.get(name, 0) < NONE, f"{name} is longer than positions can say")
    require(lengths.get("strings.offset", 0) > 1, "there are no strings")
    require(lengths.get("categories", 0) > 0, "there are no categories")


# -- lanes, rows and processes ------------------------------------------------------------------------------


def check_tables(tables: Mapping[str, AnyArray], lengths: Mapping[str, int]) -> None:
    """Check that each lane owns rows, each process lanes, and that rows lie within the columns."""
    lanes, rows, processes = tables["lanes"], tables["rows"], tables["processes"]
    strings = lengths["strings.offset"] - 1
    require(bool((lanes["kind"] <= max(LaneKind)).all()), "a lane is of no kind")
    require(bool((lanes["role"] <= max(LaneRole)).all()), "a lane is of no role")
    require(bool((rows["kind"] <= max(RowKind)).all()), "a row is of no kind")
    texts = [lanes["tid"], lanes["name"], rows["series"], *(processes[name] for name in _PROCESS_TEXTS)]
    for numbers in texts:
        require(bool((numbers < strings).all()), "a lane or process names a string that is not there")
    _check_owners(lanes["first_row"], lanes["rows"], rows["lane"], "lanes do not own the rows")
    _check_owners(
        processes["first_lane"], processes["lanes"], lanes["process"], "not all lanes have a process"
    )
    for table in (lanes, rows):
        start, end = table["start"], table["end"]
        sound = (start <= end) & (start >= -TIME_LIMIT) & (end <= TIME_LIMIT)
        require(bool(sound.all()), "a lane or row ends before it starts, or beyond all times")
    for kind, column in (
        (RowKind.SLICES, "slices.start"),
        (RowKind.INSTANTS, "instants.start"),
        (RowKind.SAMPLES, "samples.start"),
    ):
        some, length = rows[rows["kind"] == kind], lengths.get(column, 0)
        require(bool((some["count"] <= length).all()), f"rows reach beyond {column}")
        some = some[np.lexsort((some["count"], some["first"]))]
        ends = np.cumsum(some["count"].astype(np.int64))
        require(int(ends[-1] if len(some) else 0) == length, f"rows do not hold what is in {column}")
        firsts = ends - some["count"].astype(np.int64)
        require(bool((some["first"] == firsts).all()), f"rows do not follow each other in {column}")
    _check_drawing(rows, lengths)


def _check_owners(first: AnyArray, count: AnyArray, owner: AnyArray, message: str) -> None:
    """Check that owners stand one after the other, and that what they own says whose it is."""
    counts = count.astype(np.int64)
    require(int(counts.sum()) == len(owner), message)
    require(bool((first.astype(np.int64) == np.cumsum(counts) - counts).all()), message)
    require(bool((owner == np.repeat(np.arange(len(counts)), counts)).all()), message)


def _check_drawing(rows: AnyArray, lengths: Mapping[str, int]) -> None:
    """Check that what rows say of pyramids and category sums lies in those columns."""
    slices, samples = rows[rows["kind"] == RowKind.SLICES], rows[rows["kind"] == RowKind.SAMPLES]
    for some, column in ((slices, "pyramid.longest"), (samples, "pyramid.low")):
        sizes = pyramid_sizes(some["count"].astype(np.int64))
        tall = sizes > 0
        _check_places(some["pyramid"][tall], sizes[tall], lengths.get(column, 0), column)
    kinds = slices["category_count"].astype(np.int64)
    _check_places(slices["categories"], kinds, lengths.get("row_categories", 0), "row_categories")
    require(bool((kinds[slices["count"] > 0] > 0).all()), "a row has slices and no category")
    summed = slices[slices["sums"] != NO_SUMS]
    blocks = blocks_of(summed["count"].astype(np.int64), BLOCK) + 1
    sizes = blocks * summed["category_count"].astype(np.int64)
    _check_places(summed["sums"], sizes, lengths.get("category_sums", 0), "category_sums")


def _check_places(first: AnyArray, count: AnyArray, length: int, column: str) -> None:
    sound = (count >= 0) & (count <= length)
    sound &= first <= np.uint64(length) - np.where(sound, count, 0).astype(np.uint64)
    require(bool(sound.all()), f"rows reach beyond {column}")


def require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_integer(value) and value >= 0  # type: ignore[operator]
