"""A plain, slow writer of index folders from lists of slices: for testing the store and the queries alone."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from tracelane.core.index.format import (
    BLOCK,
    COLUMNS,
    FANOUT,
    LONG,
    NONE,
    READ_REPORT,
    TABLES,
    LaneKind,
    RowKind,
    SliceFlag,
)
from tracelane.core.index.roles import lane_roles
from tracelane.core.index.store import Index, checksum_of, table_file
from tracelane.core.index.version import FORMAT_VERSION
from tracelane.core.read.promoted import PROMOTED, Kind

TEXTS = frozenset(promoted.key for promoted in PROMOTED if promoted.kind is Kind.TEXT)
"""Promoted arguments whose values are string numbers."""

START, END = 6, 7
"""Fields of a row of the row table."""


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
    for number, one in enumerate(order):
        around = [
            other
            for other in order[:number]
            if other.start <= one.start and other.end >= one.end and (other.end > one.start)
        ]
        parent = max(around, key=lambda s: row_of[id(s)], default=None)
        parents[id(one)] = parent
        if any(o.start < one.start < o.end < one.end for o in order[:number]):
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
    flows: Sequence[tuple[int | None, int | None, str]] = (),
    blocks: Sequence[tuple[int, int, int, int, int]] = (),
    manifest: dict[str, Any] | None = None,
) -> None:
    """Write an index folder. `flows` name slices by ordinal; `blocks` are rows of the block table."""
    writer = _Writer(lanes, flows)
    for lane in lanes:
        writer.add_lane(lane)
    writer.add_slice_columns()
    writer.add_flows(flows)
    names = ("offset", "length", "ordinal", "count", "repaired")
    for block in blocks:
        for name, value in zip(names, block):
            writer.columns[f"blocks.{name}"].append(value)
    writer.save(folder, manifest or {})


class _Writer:
    """The columns and tables of an index, added lane by lane."""

    def __init__(self, lanes: list[L], flows: Sequence[tuple[int | None, int | None, str]]) -> None:
        """Number the categories in the order of use, and the slices that have no ordinal yet."""
        self.texts = {"": 0}
        self.categories = {"": 0}
        self.ordinal = 0
        for lane in lanes:
            used = [one.category for one in lane.slices] + [category for _, _, category in lane.instants]
            for category in used:
                self.categories.setdefault(category, len(self.categories))
            for one in lane.slices:
                if one.ordinal is None:
                    one.ordinal = self.ordinal
                self.ordinal = max(self.ordinal, one.ordinal) + 1
        for _, _, category in flows:
            self.categories.setdefault(category, len(self.categories))
        self.columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self.promoted: dict[str, list[tuple[int, int]]] = {}
        self.lanes: list[tuple[Any, ...]] = []
        self.rows: list[tuple[Any, ...]] = []
        self.processes: list[list[int]] = []
        self.slices: list[S] = []  # by position
        self.parent_of: dict[int, S | None] = {}

    def text(self, value: str) -> int:
        """Return the number of a text in the string table."""
        return self.texts.setdefault(value, len(self.texts))

    # -- lanes and rows -------------------------------------------------------------------------------------

    def add_lane(self, lane: L) -> None:
        """Add a lane with its rows: slices by depth, then each series, then the instants."""
        pid = self.text(lane.pid)
        if not self.processes or self.processes[-1][0] != pid:
            name, labels = self.text(lane.process_name), self.text(lane.labels)
            self.processes.append([pid, name, labels, 0, len(self.lanes), 0, 0])
        self.processes[-1][5] += 1
        if lane.one_row:
            rows, parents, overlaps = [lane.slices], dict.fromkeys(map(id, lane.slices)), set()
        else:
            rows, parents, overlaps = rows_of(lane.slices)
        self.parent_of.update(parents)
        for one in lane.slices:
            if id(one) in overlaps:
                one.flags |= SliceFlag.OVERLAP
        first_row = len(self.rows)
        for depth, row in enumerate(rows):
            self._add_slices(depth, row)
        for name, values in lane.series.items():
            self._add_series(len(self.rows) - first_row, name, sorted(values, key=lambda value: value[0]))
        if lane.instants:
            self._add_instants(len(self.rows) - first_row, sorted(lane.instants))
        own = self.rows[first_row:]
        self.lanes.append(
            (
                lane.kind,
                len(self.processes) - 1,
                self.text(lane.tid),
                self.text(lane.name),
                lane.ids,
                first_row,
                len(own),
                len(rows),
                len(lane.slices),
                0,
                len(lane.instants),
                sum(map(len, lane.series.values())),
                len(overlaps),
                min((row[START] for row in own), default=0),
                max((row[END] for row in own), default=0),
                0,
                0,
            )
        )

    def _add_slices(self, depth: int, row: list[S]) -> None:
        first = len(self.slices)
        self.slices += row
        kinds = sorted({self.categories[one.category] for one in row})
        pyramid = len(self.columns["pyramid.longest"])
        self.columns["pyramid.longest"] += levels(
            list(range(first, first + len(row))),
            lambda part: max(part, key=lambda position: (self.slices[position].duration, -position)),
        )
        sums_at, categories_at = len(self.columns["category_sums"]), len(self.columns["row_categories"])
        self.columns["row_categories"] += kinds
        spent, last = dict.fromkeys(kinds, 0), 0
        for end in [*range(0, len(row), BLOCK), len(row)]:
            for one in row[last:end]:
                spent[self.categories[one.category]] += one.duration
            last = end
            self.columns["category_sums"] += [spent[kind] for kind in kinds]
        times = row[0].start, max(one.end for one in row)
        pointers = (pyramid, categories_at, len(kinds), sums_at)
        self.rows.append((len(self.lanes), RowKind.SLICES, depth, 0, first, len(row), *times, *pointers))

    def _add_series(self, depth: int, name: str, values: list[tuple[int, float]]) -> None:
        first, pyramid = len(self.columns["samples.start"]), len(self.columns["pyramid.low"])
        self.columns["pyramid.low"] += levels([value for _, value in values], min)
        self.columns["pyramid.high"] += levels([value for _, value in values], max)
        self.columns["samples.start"] += [start for start, _ in values]
        self.columns["samples.value"] += [value for _, value in values]
        self.columns["samples.ordinal"] += range(self.ordinal, self.ordinal + len(values))
        self.ordinal += len(values)
        times = values[0][0], values[-1][0]
        head = (len(self.lanes), RowKind.SAMPLES, depth, self.text(name), first, len(values))
        self.rows.append((*head, *times, pyramid, 0, 0, 0))

    def _add_instants(self, depth: int, instants: list[tuple[int, str, str]]) -> None:
        first = len(self.columns["instants.start"])
        for start, name, category in instants:
            self.columns["instants.start"].append(start)
            self.columns["instants.name"].append(self.text(name))
            self.columns["instants.category"].append(self.categories[category])
            self.columns["instants.ordinal"].append(self.ordinal)
            self.columns["instants.phase"].append(ord("i"))
            self.ordinal += 1
        times = instants[0][0], instants[-1][0]
        self.rows.append(
            (len(self.lanes), RowKind.INSTANTS, depth, 0, first, len(instants), *times, *[0] * 4)
        )

    # -- columns of slices and flows ------------------------------------------------------------------------

    def add_slice_columns(self) -> None:
        """Add what is stored of each slice, by position."""
        position_of = {id(one): position for position, one in enumerate(self.slices)}
        children: dict[int, list[S]] = {}
        for one in self.slices:
            if (parent := self.parent_of[id(one)]) is not None:
                children.setdefault(id(parent), []).append(one)
        for position, one in enumerate(self.slices):
            parent = self.parent_of[id(one)]
            own = one.duration - covered([(child.start, child.end) for child in children.get(id(one), [])])
            self._add_slice(position, one, NONE if parent is None else position_of[id(parent)], own)

    def _add_slice(self, position: int, one: S, parent: int, self_ns: int) -> None:
        columns = self.columns
        columns["slices.start"].append(one.start)
        columns["slices.duration"].append(min(one.duration, LONG))
        columns["slices.self"].append(min(self_ns, LONG))
        if one.duration >= LONG or self_ns >= LONG:
            columns["long.position"].append(position)
            columns["long.duration"].append(one.duration)
            columns["long.self"].append(self_ns)
        columns["slices.name"].append(self.text(one.name))
        columns["slices.category"].append(self.categories[one.category])
        columns["slices.ordinal"].append(one.ordinal)
        columns["slices.parent"].append(parent)
        if one.flags:
            columns["flags.position"].append(position)
            columns["flags.value"].append(int(one.flags))
        if one.end_ordinal is not None:
            columns["ends.position"].append(position)
            columns["ends.ordinal"].append(one.end_ordinal)
        for key, value in one.promoted.items():
            self.promoted.setdefault(key, []).append((position, value))

    def add_flows(self, flows: Sequence[tuple[int | None, int | None, str]]) -> None:
        """Add flows, sorted by source and target; an end without a slice is None, its event the other's."""
        position_of = {one.ordinal: position for position, one in enumerate(self.slices)}
        arrows = sorted(
            (
                NONE if source is None else position_of[source],
                NONE if target is None else position_of[target],
                self.categories[category],
                target if source is None else source,
                source if target is None else target,
            )
            for source, target, category in flows
        )
        names = ("source", "target", "category", "source_ordinal", "target_ordinal")
        for name, values in zip(names, zip(*arrows)):
            self.columns[f"flows.{name}"] += values
        self.columns["flows.by_target"] = sorted(range(len(arrows)), key=lambda number: arrows[number][1])

    # -- files ----------------------------------------------------------------------------------------------

    def save(self, folder: Path, manifest: dict[str, Any]) -> None:
        """Write columns, tables and the manifest."""
        folder.mkdir(parents=True, exist_ok=True)
        self.columns["categories"] = [self.text(name) for name in self.categories]
        raw = [value.encode() for value in self.texts]
        self.columns["strings.offset"] = [0, *accumulate(map(len, raw))]
        self.columns["strings.blob"] = list(b"".join(raw))
        entries = {}
        for name, column in COLUMNS.items():
            dtype = "u1" if len(self.categories) < 256 and len(column.dtypes) > 1 else column.dtypes[-1]
            entries[name] = _save(folder, name, dtype, self.columns[name])
        for key, pairs in self.promoted.items():
            table = f"promoted.{key}"
            positions, values = zip(*pairs)
            entries[f"{table}.position"] = _save(folder, f"{table}.position", "u4", positions)
            entries[f"{table}.value"] = _save(
                folder, f"{table}.value", "u4" if key in TEXTS else "i8", values
            )
        arrays = {
            name: np.array([tuple(row) for row in rows], TABLES[name])
            for name, rows in (("lanes", self.lanes), ("rows", self.rows), ("processes", self.processes))
        }
        arrays["lanes"]["role"] = lane_roles(Index(folder, {"read_report": {}, "columns": entries}, arrays))
        tables = {}
        for name, array in arrays.items():
            data = array.tobytes()
            (folder / table_file(name)).write_bytes(data)
            tables[name] = {"length": len(array), "crc": zlib.crc32(data)}
        full: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "byte_order": sys.byteorder,
            "path": "trace.json",
            "form": "object",
            "base_time_ns": None,
            "source": {},
            "envelope": {},
            "read_report": dict.fromkeys(READ_REPORT, 0)
            | {"slices": len(self.slices), "events": self.ordinal, "counts": {}, "flows": {}},
            "problems": [],
            "columns": entries,
            "tables": tables,
            **manifest,
        }
        full["checksum"] = checksum_of(full)
        (folder / "manifest.json").write_text(json.dumps(full), encoding="utf-8")


def _save(folder: Path, name: str, dtype: str, values: Sequence[Any]) -> dict[str, Any]:
    """Write a column and return its entry in the manifest."""
    array = np.array(values, dtype)
    array.tofile(folder / f"{name}.{dtype}")
    raw = array.tobytes()
    crc = [zlib.crc32(raw[i : i + (1 << 20)]) for i in range(0, len(raw), 1 << 20)]
    return {"dtype": dtype, "length": len(array), "crc": crc}


def covered(ranges: list[tuple[int, int]]) -> int:
    """Return the length of the union of ranges."""
    total, reach = 0, None
    for start, end in sorted(ranges):
        if reach is None or start > reach:
            total, reach = total + end - start, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total
