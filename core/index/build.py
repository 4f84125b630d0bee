"""Builds an index folder out of parts: every column, the tables, and the manifest last.

Lane by lane in display order, so that memory is about the largest lane's; whatever is larger than that lies
in scratch files of the same folder. The result does not depend on how the file was cut into parts.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..base.errors import CacheError
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..ingest.columns import BLOCKS, AnyArray, IdKind
from ..ingest.envelope import Envelope
from ..ingest.ledger import add_counts, merge_problems
from ..ingest.problem import Problem
from . import flows
from .all_lanes import AllLanes, Contents, Lane
from .asyncs import Asyncs
from .beside import Beside
from .columns_out import Columns, smallest_unsigned
from .counters import Counters
from .drawing import Drawing
from .format import COLUMNS, PROCESS, LaneKind
from .gather import ByLane, gather_all
from .lane_out import LaneWriter
from .lanes import LaneEntry, Names, ProcessEntry, async_entry, counter_entry, in_display_order, thread_entry
from .lifted_out import write_lifted
from .merge import AnyPart, merge_parts
from .order import order_by
from .scratch import Scratch
from .store import checksum_of, table_file
from .strings import write_strings
from .version import FORMAT_VERSION, MANIFEST

THREAD_COLUMNS = ("phase", "flags", "ordinal", "category", "name", "start", "duration")
MOST_APART = 8 << 20
"""Of more events copies of the process would take too much memory beside it."""


class ReadFacts(Protocol):
    """What reading came to over all parts; `core.ingest.reader.ReadResult` is one."""

    @property
    def envelope(self) -> Envelope: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def problems(self) -> Sequence[Problem]: ...


@dataclass(frozen=True)
class Facts:
    """The books of parts that no reader has added up."""

    envelope: Envelope
    counts: dict[str, int]
    problems: Sequence[Problem]

    @classmethod
    def of(cls, parts: Sequence[AnyPart], envelope: Envelope | None = None) -> Facts:
        """Add up the parts' own books."""
        counts = add_counts(part.counts for part in parts)
        return cls(envelope or Envelope(), counts, merge_problems(part.problems for part in parts))


def build(
    parts: Sequence[AnyPart],
    read: ReadFacts,
    folder: Path,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
    *,
    path: str = "",
    fingerprint: Mapping[str, Any] | None = None,
    apart: bool = False,
) -> None:
    """Write the index of parts, given in file order, into `folder`; raises CacheError and Cancelled.

    `path` and `fingerprint` go into the manifest to say whose index it is. With `apart` copies of this
    process do some of the work (see `beside`).
    The caller owns the folder: it commits it by rename, or removes what a failure left there.
    """
    with Scratch(folder) as scratch, Columns(folder) as columns:
        run = _Build(parts, read, folder, scratch, columns, progress, cancelled, apart)
        run.write({"path": path, "source": dict(fingerprint or {})})


class _Build:
    """One run of the builder."""

    def __init__(
        self,
        parts: Sequence[AnyPart],
        read: ReadFacts,
        folder: Path,
        scratch: Scratch,
        columns: Columns,
        progress: ProgressCallback,
        cancelled: CancelledCallback,
        apart: bool,
    ) -> None:
        self.read, self.folder, self.scratch, self.columns = read, folder, scratch, columns
        self.progress, self.cancelled = progress, cancelled
        self.merged = merge_parts(parts)
        self.apart = apart and self.merged.events <= MOST_APART
        self.strings = self.merged.strings

    def write(self, identity: Mapping[str, Any]) -> None:
        merged, columns = self.merged, self.columns
        self.asyncs, self.counters = Asyncs(merged), Counters(merged)
        filled = np.flatnonzero(merged.track_counts("timed")).tolist()
        names = Names.of((part.metadata for part in merged.parts), {merged.tracks[track] for track in filled})
        processes = in_display_order(self._lanes(filled, names), names)
        entries = (entry.content for process in processes for entry in process.lanes)
        tracks = [content for content in entries if isinstance(content, int)]
        writer = LaneWriter(columns, len(merged.categories))
        self.out = writer.written
        with self.scratch.another() as scratch:
            process_table, ends, arrows = self._write_events(processes, tracks, writer, scratch)
        columns.finish("slices.ordinal", "instants.ordinal", "ends.position", "ends.ordinal")
        with Beside(self._write_lifted, self.apart, self.folder) as beside:
            ledger_flows = self._write_flows(ends, arrows)
            del ends, arrows  # their room is needed for other things now
            columns.writer("categories", "u4").append(np.array(merged.categories))
            self._write_blocks()
            write_strings(self.strings, self._writer("strings.blob"), self._writer("strings.offset"))
            columns.finish()
            merged.let_go_all()
            self.scratch.let_go()
            lanes, rows = self.out.tables()
            category = smallest_unsigned(len(merged.categories) - 1)
            Drawing(columns, rows, len(merged.categories), category).write(self._overview_span())
            columns.finish()
            columns.entries |= beside.result()
        tables = {
            name: self._write_table(name, table)
            for name, table in (("lanes", lanes), ("rows", rows), ("processes", process_table))
        }
        self._write_manifest(identity, tables, ledger_flows, lanes[lanes["kind"] == LaneKind.THREAD])

    def _writer(self, name: str) -> Any:
        return self.columns.writer(name, COLUMNS[name])

    # -- lanes --------------------------------------------------------------------------------------------

    def _lanes(self, tracks: Sequence[int], names: Names) -> Iterator[LaneEntry]:
        merged = self.merged
        for track in tracks:
            yield thread_entry(track, *merged.tracks[track], names)
        for one in self.asyncs.lanes():
            category = self.strings.text(merged.categories[one.category])
            yield async_entry(one, merged.pids[one.pid], category, self._id_text(one.id_kind, one.id_value))
        for counter in self.counters.lanes():
            id_text = self._id_text(counter.id_kind, counter.id_value)
            yield counter_entry(counter, merged.pids[counter.pid], self.strings.text(counter.name), id_text)

    def _id_text(self, kind: int, value: int) -> str:
        if kind == IdKind.NONE:
            return ""
        return str(value) if kind == IdKind.INTEGER else self.strings.text(value)

    def _write_events(
        self, processes: Sequence[ProcessEntry], tracks: Sequence[int], writer: LaneWriter, scratch: Scratch
    ) -> tuple[AnyArray, flows.FlowEnds, flows.Arrows]:
        """Write all lanes; return the process table, what flow events belong to, and how they are paired."""
        table, lanes = self._numbered(processes)
        threads = ByLane(self.merged, "timed", THREAD_COLUMNS, tracks, scratch)
        loose = np.setdiff1d(np.flatnonzero(self.merged.track_counts("flows")), tracks).tolist()
        events = gather_all(self.merged, "flows", flows.COLUMNS, [*tracks, *loose], scratch)
        ends = flows.FlowEnds.of(events, self.merged, scratch)
        contents = Contents(threads, self.asyncs, self.counters, ends)
        out = AllLanes(contents, self.folder, self.scratch.let_go, self.progress, self.cancelled)
        with Beside(lambda: self._paired(ends), self.apart, self.folder) as arrows:
            out.write(lanes, writer, self.apart)
            del threads, contents, out  # their room is needed for other things now
            return table, ends, arrows.result()

    def _numbered(self, processes: Sequence[ProcessEntry]) -> tuple[AnyArray, list[Lane]]:
        """Return the process table and all lanes, with numbers for their texts."""
        table = np.zeros(len(processes), PROCESS)
        lanes: list[Lane] = []
        number, threads = self.strings.number, count()
        for i, process in enumerate(processes):
            names = process.names
            texts = (number(text) for text in (process.pid, names.name, names.labels))
            table[i] = (*texts, names.sort, len(lanes), len(process.lanes), process.empty)
            for entry in process.lanes:
                thread = next(threads) if isinstance(entry.content, int) else None
                lanes.append(Lane(entry, i, number(entry.tid), number(entry.name), thread))
        return table, lanes

    # -- flows, lifted arguments, blocks ------------------------------------------------------------------

    def _paired(self, flow_ends: flows.FlowEnds) -> flows.Arrows:
        events = flow_ends.events
        pid = np.repeat(self.merged.track_pid[events.tracks], np.diff(events.bounds))
        return flows.pair(events.columns, pid)

    def _write_flows(self, flow_ends: flows.FlowEnds, arrows: flows.Arrows) -> dict[str, dict[str, int]]:
        events, bound, merged = flow_ends.events.columns, flow_ends.bound, self.merged
        ordinal, category = events["ordinal"], events["category"]
        source, target = bound[arrows.source], bound[arrows.target]
        order = order_by(source, ordinal[arrows.target], ordinal[arrows.source]).astype(np.uint32)
        source, target = source[order], target[order]
        self._writer("flows.source").append(source)
        self._writer("flows.target").append(target)
        self._writer("flows.source_ordinal").append(ordinal[arrows.source][order])
        self._writer("flows.target_ordinal").append(ordinal[arrows.target][order])
        small = smallest_unsigned(len(merged.categories) - 1)
        self.columns.writer("flows.category", small).append(category[arrows.source][order])
        self._writer("flows.by_target").append(order_by(target, np.arange(len(target))))
        return {
            self.strings.text(merged.categories[number]): books
            for number, books in sorted(arrows.ledger.items())
        }

    def _write_lifted(self) -> dict[str, dict[str, object]]:
        """Write all lifted arguments; return their entries for the manifest."""
        if not any(len(column.ordinals) for part in self.merged.parts for column in part.lifted.values()):
            return {}
        with Scratch(self.folder) as scratch, Columns(self.folder) as columns:
            write_lifted(self.merged, self.columns, self.out.slices, self.out.instants, columns, scratch)
            columns.finish()
            return columns.entries

    def _write_blocks(self) -> None:
        for part, first in zip(self.merged.parts, self.merged.first_ordinal):
            blocks = part.tables.get("blocks")
            for name in BLOCKS if blocks is not None else ():
                values = blocks[name] if blocks is not None else np.empty(0)
                self._writer(f"blocks.{name}").append(
                    values + np.uint32(first) if name == "ordinal" else values
                )

    # -- manifest -----------------------------------------------------------------------------------------

    def _write_table(self, name: str, table: AnyArray) -> dict[str, int]:
        raw = table.tobytes()
        _write_file(self.folder / table_file(name), raw)
        return {"length": len(table), "crc": zlib.crc32(raw)}

    def _overview_span(self) -> tuple[int, int] | None:
        """Return first start and last end of slices as the columns have them."""
        low = [bound.low for bound in (self.out.closed, self.out.clamped) if bound.low is not None]
        high = [bound.high for bound in (self.out.closed, self.out.clamped) if bound.high is not None]
        return (min(low), max(high)) if low else None

    def _exact_span(self) -> tuple[int | None, int | None]:
        """Return first start and last end of slices, exact beyond what columns hold."""
        parts, closed, clamped = self.merged.parts, self.out.closed, self.out.clamped
        lows = [part.exact_start for part in parts if part.exact_start is not None]
        highs = [part.exact_end for part in parts if part.exact_end is not None]
        if not lows and clamped.low is not None:
            lows.append(clamped.low)
        if not highs and clamped.high is not None:
            highs.append(clamped.high)
        lows += [closed.low] if closed.low is not None else []
        highs += [closed.high] if closed.high is not None else []
        return min(lows, default=None), max(highs, default=None)

    def _write_manifest(
        self,
        identity: Mapping[str, Any],
        tables: Mapping[str, Any],
        flow_books: Mapping[str, Any],
        threads: AnyArray,
    ) -> None:
        out, envelope, counts = self.out, self.read.envelope, self.read.counts
        start, end = self._exact_span()
        phase = {key.removeprefix("phase."): n for key, n in counts.items() if key.startswith("phase.")}
        ledger = {
            "events": self.merged.events,
            "slices": int(threads["slices"].sum()),
            "instants": phase.get("i", 0) + phase.get("I", 0),
            "counter_samples": phase.get("C", 0),
            "counter_values": out.samples,
            "metadata": phase.get("M", 0),
            "async_spans": self.asyncs.spans,
            "async_unmatched_begin": self.asyncs.unmatched_begin,
            "async_unmatched_end": self.asyncs.unmatched_end,
            "flows": flow_books,
            "unmatched_begin": int(threads["unclosed"].sum()),
            "unmatched_end": self.out.unmatched_end,
            "repaired": counts.get("repaired", 0),
            "oversized": counts.get("oversized", 0),
            "unreadable": counts.get("unreadable", 0),
            "counts": counts,
        }
        manifest: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "byte_order": sys.byteorder,
            "numpy": np.__version__,
            **identity,
            "form": envelope.form,
            "base_time_ns": envelope.base_time_ns,
            "display_unit": envelope.display_unit,
            "envelope": envelope.values,
            "start_ns": start,
            "end_ns": end,
            "bounds": None if out.bounds.low is None else [out.bounds.low, out.bounds.high],
            "ledger": ledger,
            "problems": [
                {"kind": p.kind, "count": p.count, "offset": p.offset, "message": p.message}
                for p in self.read.problems
            ],
            "columns": dict(sorted(self.columns.entries.items())),
            "tables": dict(tables),
        }
        manifest = json.loads(json.dumps(manifest))  # as it will be read
        manifest["checksum"] = checksum_of(manifest)
        _write_file(self.folder / MANIFEST, json.dumps(manifest).encode())


def _write_file(path: Path, raw: bytes) -> None:
    try:
        path.write_bytes(raw)
    except OSError as error:
        raise CacheError(f"cannot write the index ({path}): {error.strerror or error}") from error
