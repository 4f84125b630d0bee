"""A plain, slow writer of index folders from lists of slices: for testing the store and the queries alone."""

from __future__ import annotations

import json
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tracelane.core.index.format import (
    BLOCK,
    COLUMNS,
    FANOUT,
    LONG,
    NONE,
    TABLES,
    LaneKind,
    RowKind,
    SliceFlag,
)
from tracelane.core.index.store import checksum_of, table_file
from tracelane.core.index.version import FORMAT_VERSION
from tracelane.core.read.promoted import PROMOTED, Kind

TEXTS = frozenset(promoted.key for promoted in PROMOTED if promoted.kind is Kind.TEXT)
"""Promoted arguments whose values are string numbers."""


@dataclass
class S:
    """A slice as a test states it; the ordinal is given by order unless stated."""

    start: int
    duration: int
    name: str = "x"
    category: str = "cpu_op"
    ordinal: int | None = None
    promoted: dict[str, int] = field(default_factory=dict)
    end_ordinal: int | None = None
    flags: int = 0

    @property
    def end(self) -> int:
        return self.start + self.duration


@dataclass
class L:
    """A lane: slices, instants as (start, name, category), series as name -> [(start, value)]."""

    slices: list[S] = field(default_factory=list)
    instants: list[tuple[int, str, str]] = field(default_factory=list)
    series: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    pid: str = "1"
    tid: str = "1"
    name: str = ""
    kind: LaneKind = LaneKind.THREAD
    ids: int = 0
    process_name: str = ""
    labels: str = ""
    one_row: bool = False  # the slices are disjoint and stand in their row's order already


def rows_of(slices: list[S]) -> tuple[list[list[S]], dict[int, S | None], set[int]]:
    """Assign rows the slow way: the lowest row below the parent's where the slice fits."""
    order = sorted(slices, key=lambda s: (s.start, -s.end, s.ordinal))
    rows: list[list[S]] = []
    parents: dict[int, S | None] = {}
    overlaps: set[int] = set()
    row_of: dict[int, int] = {}
    for place, one in enumerate(order):
        around = [
            other
            for other in order[:place]
            if other.start <= one.start and other.end >= one.end and (other.end > one.start)
        ]
        parent = max(around, key=lambda s: row_of[id(s)], default=None)
        parents[id(one)] = parent
        if any(o.start < one.start < o.end < one.end for o in order[:place]):
            overlaps.add(id(one))
        row = 0 if parent is None else row_of[id(parent)] + 1
        while row < len(rows) and rows[row] and rows[row][-1].end > one.start:
            row += 1
        if row == len(rows):
            rows.append([])
        rows[row].append(one)
        row_of[id(one)] = row
    return rows, parents, overlaps


def levels(values: list[Any], better: Any) -> list[Any]:
    """Return all pyramid entries of a row, level after level, up to a single one."""
    if len(values) <= BLOCK:
        return []
    out: list[Any] = []
    size, level = BLOCK, values
    while True:
        level = [better(level[i : i + size]) for i in range(0, len(level), size)]
        out += level
        if len(level) == 1:
            return out
        size = FANOUT


def write_index(
    folder: Path,
    lanes: list[L],
    *,
    flows: list[tuple[int | None, int | None, str]] = (),  # type: ignore[assignment]
    blocks: list[tuple[int, int, int, int, int]] = (),  # type: ignore[assignment]
    manifest: dict[str, Any] | None = None,
) -> None:
    """Write an index folder. `flows` name slices by ordinal; `blocks` are rows of the block table."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"": 0}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    categories = {"": 0}
    for lane in lanes:
        for one in lane.slices:
            categories.setdefault(one.category, len(categories))
        for _, _, category in lane.instants:
            categories.setdefault(category, len(categories))
    for _, _, category in flows:
        categories.setdefault(category, len(categories))
    ordinal = 0
    for lane in lanes:
        for one in lane.slices:
            if one.ordinal is None:
                one.ordinal = ordinal
            ordinal = max(ordinal, one.ordinal) + 1

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    lane_table, row_table, process_table = [], [], []
    placed: list[S] = []
    parent_of: dict[int, S | None] = {}
    for number, lane in enumerate(lanes):
        if not process_table or process_table[-1][0] != text(lane.pid):
            process_table.append(
                [text(lane.pid), text(lane.process_name), text(lane.labels), 0, number, 0, 0]
            )
        process_table[-1][5] += 1
        if lane.one_row:
            rows, parents, overlaps = [lane.slices], dict.fromkeys(map(id, lane.slices)), set()
        else:
            rows, parents, overlaps = rows_of(lane.slices)
        parent_of.update(parents)
        first_row = len(row_table)
        times: list[int] = []
        for depth, row in enumerate(rows):
            first = len(placed)
            placed += row
            kinds = sorted({categories[s.category] for s in row})
            pyramid = len(columns["pyramid.longest"])
            columns["pyramid.longest"] += levels(
                list(range(first, first + len(row))),
                lambda part: max(part, key=lambda p: (placed[p].duration, -p)),  # noqa: B023
            )
            sums_at, categories_at = len(columns["category_sums"]), len(columns["row_categories"])
            columns["row_categories"] += kinds
            spent, last = dict.fromkeys(kinds, 0), 0
            for end in [*range(0, len(row), BLOCK), len(row)]:
                if end:
                    for s in row[last:end]:
                        spent[categories[s.category]] += s.duration
                last = end
                columns["category_sums"] += [spent[kind] for kind in kinds]
            for s in row:
                if id(s) in overlaps:
                    s.flags |= SliceFlag.OVERLAP
            times += [row[0].start, max(s.end for s in row)]
            row_table.append(
                (
                    number,
                    RowKind.SLICES,
                    depth,
                    0,
                    first,
                    len(row),
                    row[0].start,
                    max(s.end for s in row),
                    pyramid,
                    categories_at,
                    len(kinds),
                    sums_at,
                    0,
                    0,
                )
            )
        samples = 0
        for name, values in lane.series.items():
            values = sorted(values, key=lambda v: v[0])
            first = len(columns["samples.start"])
            pyramid = len(columns["pyramid.low"])
            columns["pyramid.low"] += levels([v for _, v in values], min)
            columns["pyramid.high"] += levels([v for _, v in values], max)
            columns["samples.start"] += [t for t, _ in values]
            columns["samples.value"] += [v for _, v in values]
            columns["samples.ordinal"] += range(ordinal, ordinal + len(values))
            ordinal += len(values)
            samples += len(values)
            times += [values[0][0], values[-1][0]]
            row_table.append(
                (
                    number,
                    RowKind.SAMPLES,
                    len(row_table) - first_row,
                    text(name),
                    first,
                    len(values),
                    values[0][0],
                    values[-1][0],
                    pyramid,
                    0,
                    0,
                    0,
                    0,
                    0,
                )
            )
        if lane.instants:
            instants = sorted(lane.instants)
            first = len(columns["instants.start"])
            for start, name, category in instants:
                columns["instants.start"].append(start)
                columns["instants.name"].append(text(name))
                columns["instants.category"].append(categories[category])
                columns["instants.ordinal"].append(ordinal)
                columns["instants.phase"].append(ord("i"))
                ordinal += 1
            times += [instants[0][0], instants[-1][0]]
            row_table.append(
                (
                    number,
                    RowKind.INSTANTS,
                    len(row_table) - first_row,
                    0,
                    first,
                    len(instants),
                    instants[0][0],
                    instants[-1][0],
                    *[0] * 6,
                )
            )
        lane_table.append(
            (
                lane.kind,
                len(process_table) - 1,
                text(lane.tid),
                text(lane.name),
                lane.ids,
                first_row,
                len(row_table) - first_row,
                len(rows),
                len(lane.slices),
                0,
                len(lane.instants),
                samples,
                len(overlaps),
                min(times, default=0),
                max(times, default=0),
                0,
            )
        )

    position = {id(s): p for p, s in enumerate(placed)}
    by_ordinal = {s.ordinal: p for p, s in enumerate(placed)}
    promoted: dict[str, list[tuple[int, int]]] = {}
    below: dict[int, list[S]] = {}
    for s in placed:
        if (parent := parent_of[id(s)]) is not None:
            below.setdefault(id(parent), []).append(s)
    for p, s in enumerate(placed):
        parent = parent_of[id(s)]
        own = s.duration - covered([(o.start, o.end) for o in below.get(id(s), [])])
        columns["slices.start"].append(s.start)
        columns["slices.duration"].append(min(s.duration, LONG))
        columns["slices.self"].append(min(own, LONG))
        if s.duration >= LONG or own >= LONG:
            columns["long.position"].append(p)
            columns["long.duration"].append(s.duration)
            columns["long.self"].append(own)
        columns["slices.name"].append(text(s.name))
        columns["slices.category"].append(categories[s.category])
        columns["slices.ordinal"].append(s.ordinal)
        columns["slices.parent"].append(NONE if parent is None else position[id(parent)])
        if s.flags:
            columns["flags.position"].append(p)
            columns["flags.value"].append(int(s.flags))
        if s.end_ordinal is not None:
            columns["ends.position"].append(p)
            columns["ends.ordinal"].append(s.end_ordinal)
        for key, value in s.promoted.items():
            promoted.setdefault(key, []).append((p, value))
    arrows = sorted(
        (NONE if a is None else by_ordinal[a], NONE if b is None else by_ordinal[b], categories[c], a, b)
        for a, b, c in flows
    )
    for a, b, c, oa, ob in arrows:
        columns["flows.source"].append(a)
        columns["flows.target"].append(b)
        columns["flows.category"].append(c)
        columns["flows.source_ordinal"].append(NONE if oa is None else oa)
        columns["flows.target_ordinal"].append(NONE if ob is None else ob)
    columns["flows.by_target"] = sorted(range(len(arrows)), key=lambda i: arrows[i][1])
    for offset, length, first, count, repaired in blocks:
        for name, value in zip(
            ("offset", "length", "ordinal", "count", "repaired"), (offset, length, first, count, repaired)
        ):
            columns[f"blocks.{name}"].append(value)
    columns["categories"] = [text(name) for name in categories]

    blob = b""
    offsets = [0]
    for value in texts:
        blob += value.encode()
        offsets.append(len(blob))
    columns["strings.offset"] = offsets
    columns["strings.blob"] = list(blob)

    entries: dict[str, Any] = {}

    def save(name: str, dtype: str, values: Any) -> None:
        array = np.array(values, dtype)
        array.tofile(folder / f"{name}.{dtype}")
        raw = array.tobytes()
        crc = [zlib.crc32(raw[i : i + (1 << 20)]) for i in range(0, len(raw), 1 << 20)]
        entries[name] = {"dtype": dtype, "length": len(array), "crc": crc}

    for name, dtype in COLUMNS.items():
        save(name, "u1" if len(categories) < 256 and "|" in dtype else dtype.split("|")[-1], columns[name])
    for key, pairs in promoted.items():
        save(f"promoted.{key}.position", "u4", [p for p, _ in pairs])
        save(f"promoted.{key}.value", "u4" if key in TEXTS else "i8", [v for _, v in pairs])
    tables = {}
    for name, rows in (("lanes", lane_table), ("rows", row_table), ("processes", process_table)):
        raw = np.array([tuple(row) for row in rows], TABLES[name]).tobytes()
        (folder / table_file(name)).write_bytes(raw)
        tables[name] = {"length": len(rows), "crc": zlib.crc32(raw)}
    full: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "byte_order": sys.byteorder,
        "path": "trace.json",
        "form": "object",
        "base_time_ns": None,
        "source": {},
        "envelope": {},
        "read_report": {"slices": len(placed), "events": ordinal},
        "problems": [],
        "columns": entries,
        "tables": tables,
        **(manifest or {}),
    }
    full["checksum"] = checksum_of(full)
    (folder / "manifest.json").write_text(json.dumps(full))


def covered(stretches: list[tuple[int, int]]) -> int:
    """Return the length of the union of stretches."""
    total, reach = 0, None
    for start, end in sorted(stretches):
        if reach is None or start > reach:
            total, reach = total + end - start, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total
