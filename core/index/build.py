"""Builds an index folder out of batches: every column, the tables, and the manifest last.

Events are placed lane by lane, lanes are written by several threads, then all that speaks of positions.
What is larger than memory lies in a scratch file of the same folder. The result depends neither on how the
file was cut into parts nor on the threads, nor on whether the loops run in C.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import U32, AnyArray
from ..base.errors import CacheError, WrongIndexError
from ..base.private import open_private
from ..base.progress import Progress, ProgressCallback, no_progress
from ..read.batch import IdKind
from .batches import NumberedBatches, SourceStrings
from .column_files import ColumnFiles, Scratch
from .events import FlowPairs, correlations, flow_events, lane_events, paired, promoted_jobs, write_flows
from .format import NONE, PROCESS, LaneKind
from .id_lanes import AsyncEvents, AsyncLane, CounterSamples
from .lane_tables import LaneTables, NumberedLane, write_lane_tables
from .lane_writer import LaneWriter
from .lanes import LaneEntry, Names, ProcessEntry, async_entry, counter_entry, in_display_order, thread_entry
from .pyramid import Drawing
from .roles import lane_roles
from .shared_pids import told_apart
from .store import Index, checksum_of, table_file
from .version import FORMAT_VERSION, MANIFEST
from .workers import BuildJob, Worker, Workers

if TYPE_CHECKING:
    from ..read.reader import ReadResult

STAGE = "index"


def build(
    read: ReadResult,
    folder: Path,
    workers: Workers,
    progress: ProgressCallback = no_progress,
    *,
    path: str = "",
    fingerprint: Mapping[str, Any] | None = None,
    free_events: Callable[[], None] = lambda: None,
) -> None:
    """Write the index of what was read into `folder`; raises CacheError and Cancelled.

    `path` and `fingerprint` go into the manifest to say whose index it is. `free_events` is called when the
    columns of events are not read any more. The caller owns the folder: it commits it by rename, or removes
    what a failure left there.
    """
    with Scratch(folder, workers.buffers) as scratch:
        numbered = NumberedBatches(
            read.batches, read.tables, workers.loops, scratch.array, workers.check, free_events
        )
        with ColumnFiles(folder, numbered.category_dtype) as columns:
            run = _Build(numbered, read, folder, columns, scratch, workers, progress)
            try:
                run.write({"path": path, "source": dict(fingerprint or {})})
            except ValueError as error:  # by `require`, or by numpy: whatever was read, it can be built
                raise WrongIndexError.of(path, str(error)) from error


@dataclass
class _Build:
    """One run of the builder."""

    batches: NumberedBatches
    read: ReadResult
    folder: Path
    columns: ColumnFiles
    scratch: Scratch
    workers: Workers
    progress: ProgressCallback

    @property
    def strings(self) -> SourceStrings:
        return self.batches.strings

    def write(self, identity: Mapping[str, Any]) -> None:
        batches, columns = self.batches, self.columns
        with self.scratch.inner() as rooms:
            self.workers.run([self._sort_asyncs, self._sort_counters], rooms.array)
        filled = np.flatnonzero(batches.track_counts("timed")).tolist()
        names = Names.of(
            (batch.metadata for batch in batches.batches), {batches.tracks[track] for track in filled}
        )
        processes = told_apart(in_display_order(self._lanes(filled, names), names), batches)
        process_table, lanes = self._numbered(processes)
        slot_of = self.scratch.array(batches.events, "u4")
        tables, flow_counts = self._write_lanes(lanes, slot_of)
        with self.scratch.inner() as scratch:
            jobs: list[BuildJob] = [
                lambda worker: self._draw(tables, worker),
                self._write_rest,
                *promoted_jobs(batches, tables.slices, tables.instants, slot_of, columns),
            ]
            self.workers.run(jobs, scratch.array)
        self.columns.finish()
        by_name = {"lanes": tables.lanes, "rows": tables.rows, "processes": process_table}
        tables.lanes["role"] = self._roles(by_name)
        written = {}
        for name, table in by_name.items():
            _write_file(self.folder / table_file(name), raw := table.tobytes())
            written[name] = {"length": len(table), "crc": zlib.crc32(raw)}
        self._write_manifest(identity, written, flow_counts, tables)

    def _sort_asyncs(self, worker: Worker) -> None:
        self.asyncs = AsyncEvents(self.batches, self.scratch, worker)

    def _sort_counters(self, worker: Worker) -> None:
        self.counters = CounterSamples(self.batches, self.scratch, worker)

    # -- lanes --------------------------------------------------------------------------------------------

    def _lanes(self, tracks: Sequence[int], names: Names) -> Iterator[LaneEntry]:
        batches = self.batches
        for track in tracks:
            yield thread_entry(track, *batches.tracks[track], names)
        for one in self.asyncs.lanes:
            category = self.strings.text(batches.categories[one.category])
            yield async_entry(one, batches.pids[one.pid], category, self._id_text(one.id_kind, one.id_value))
        for counter in self.counters.lanes():
            id_text = self._id_text(counter.id_kind, counter.id_value)
            yield counter_entry(counter, batches.pids[counter.pid], self.strings.text(counter.name), id_text)

    def _roles(self, tables: dict[str, AnyArray]) -> AnyArray:
        """Return the role of each lane, asked of the columns as whoever opens the index will read them."""
        index = Index(self.folder, {"read_report": {}, "columns": self.columns.entries}, tables)
        roles = lane_roles(index)
        index.close()
        return roles

    def _id_text(self, kind: int, value: int) -> str:
        if kind == IdKind.NONE:
            return ""
        return str(value) if kind == IdKind.INTEGER else self.strings.text(value)

    def _write_lanes(
        self, lanes: Sequence[NumberedLane], slot_of: U32
    ) -> tuple[LaneTables, dict[str, dict[str, int]]]:
        """Write all lanes and flows; return the tables, and the counts of flows per category."""
        batches, columns, workers = self.batches, self.columns, self.workers
        contents = [lane.entry.content for lane in lanes]
        drawn = [content for content in contents if isinstance(content, int | AsyncLane)]
        threads = [content for content in drawn if isinstance(content, int)]
        with self.scratch.inner() as scratch:
            events, event_jobs = lane_events(batches, drawn, self.asyncs, scratch, workers.threads)
            flows, flow_jobs = flow_events(batches, threads, scratch, workers.threads)
            known, correlate = correlations(batches, scratch)
            clear = [lambda _: slot_of.fill(NONE), lambda _: flows.bound.fill(NONE)]
            workers.run([*event_jobs, *flow_jobs, correlate, *clear], scratch.array)
            batches.free_events()
            workers.run([partial(events.count_slices, lanes) for lanes in events.groups()], scratch.array)
            is_thread = [isinstance(one, int) for one in drawn]
            writer = LaneWriter(events, is_thread, flows, known, columns, slot_of, scratch)
            arrows: list[FlowPairs] = []
            jobs = [lambda worker: arrows.append(paired(flows, batches, worker)), *writer.jobs()]

            def tell() -> None:
                done = sum(len(group.lanes) for group in tuple(writer.groups.values()))
                self.progress(Progress(STAGE, done, len(drawn), writer.slices))

            workers.run(jobs, scratch.array, tell)
            tables = write_lane_tables(lanes, writer, events, self.counters, columns, slot_of, workers.check)

            def finish(name: str) -> BuildJob:
                return lambda worker: columns.finish(name)

            def flows_out(worker: Worker) -> None:
                write_flows(arrows[0], flows, columns, worker)

            workers.run([flows_out, *map(finish, columns.unfinished)], scratch.array)
        counts = {
            self.strings.text(batches.categories[number]): counts
            for number, counts in arrows[0].by_category().items()
        }
        return tables, counts

    def _numbered(self, processes: Sequence[ProcessEntry]) -> tuple[AnyArray, list[NumberedLane]]:
        texts: dict[str, int] = {"": 0}
        for process in processes:
            for text in (process.pid, process.names.name, process.names.labels):
                texts.setdefault(text, 0)
            for entry in process.lanes:
                texts.setdefault(entry.tid, 0)
                texts.setdefault(entry.name, 0)
        texts = dict(zip(texts, self.strings.numbers(list(texts)).tolist()))
        table = np.zeros(len(processes), PROCESS)
        lanes: list[NumberedLane] = []
        for i, process in enumerate(processes):
            names = process.names
            numbers = (texts[text] for text in (process.pid, names.name, names.labels))
            table[i] = (*numbers, names.sort, len(lanes), len(process.lanes), process.empty)
            lanes += (NumberedLane(entry, i, texts[entry.tid], texts[entry.name]) for entry in process.lanes)
        return table, lanes

    # -- what speaks of positions, strings, blocks --------------------------------------------------------

    def _draw(self, tables: LaneTables, worker: Worker) -> None:
        Drawing(self.columns, tables.rows, len(self.batches.categories)).write(worker.check)

    def _write_rest(self, worker: Worker) -> None:
        batches = self.batches
        self.columns.writer("categories").append(np.array(batches.categories))
        for batch, first in zip(batches.batches, batches.first_ordinal):
            for name, values in batch.tables.get("blocks", {}).items():
                own = np.add(values, first, dtype=np.uint32) if name == "ordinal" else values
                self.columns.writer(f"blocks.{name}").append(own)
        if self.read.checkpoints is not None:
            for name, values in self.read.checkpoints.columns().items():
                self.columns.writer(f"checkpoints.{name}").append(values)
            for window in self.read.checkpoints.windows():
                self.columns.writer("windows").append(window)
        if self.read.packed_text is not None:
            for name, values in self.read.packed_text.columns().items():
                self.columns.writer(f"text.{name}").append(values)
            for chunk in self.read.packed_text.packed():
                self.columns.writer("text.packed").append(chunk)
        self.strings.write(
            self.columns.writer("strings.blob"), self.columns.writer("strings.offset"), worker.loops
        )
        self.columns.finish("categories", "strings.blob", "strings.offset")

    # -- manifest -----------------------------------------------------------------------------------------

    def _write_manifest(
        self,
        identity: Mapping[str, Any],
        written: Mapping[str, Any],
        flow_counts: Mapping[str, Any],
        tables: LaneTables,
    ) -> None:
        envelope = self.read.envelope
        manifest: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "byte_order": sys.byteorder,
            **identity,
            "form": envelope.form,
            "base_time_ns": envelope.base_time_ns,
            "origin_ns": self.read.origin_ns,
            "display_unit": envelope.display_unit,
            "envelope": envelope.values,
            "start_ns": tables.start_ns,
            "end_ns": tables.end_ns,
            "read_report": self._read_report(tables, flow_counts),
            "problems": [asdict(problem) for problem in self.read.problems],
            "columns": dict(sorted(self.columns.entries.items())),
            "tables": dict(written),
        }
        manifest = json.loads(json.dumps(manifest))  # as it will be read
        manifest["checksum"] = checksum_of(manifest)
        _write_file(self.folder / MANIFEST, json.dumps(manifest).encode())

    def _read_report(self, tables: LaneTables, flow_counts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the read report. All events are: slices, and once more those that are pairs, instant events
        (events of any other phase too), counter, flow and async events, metadata, unmatched begins and ends,
        events without a usable time, empty ones, what is no object, and what is unreadable.
        """
        counts, lengths = self.read.counts, self.batches.lengths
        threads = tables.lanes[tables.lanes["kind"] == LaneKind.THREAD]
        asyncs = tables.lanes[tables.lanes["kind"] == LaneKind.ASYNC]
        unmatched_ends = tables.unmatched_ends[LaneKind.THREAD]

        counter_events = counts.get("phase.C", 0) - counts.get("no_usable_time.C", 0)
        placed = {name: sum(lengths(name)) for name in ("timed", "flows", "asyncs")}
        placed["flows"] -= counts.get("slice_flows", 0)
        all_phases = sum(number for key, number in counts.items() if key.startswith("phase."))
        without_time = all_phases - counts.get("phase.M", 0) - counter_events - sum(placed.values())

        unusable = counts.get("no_usable_time", 0) - counts.get("no_usable_time.M", 0)
        return {
            "events": self.batches.events + counts.get("unreadable", 0),
            "slices": int(threads["slices"].sum()),
            "pairs": tables.pairs,
            "instants": counts.get("phase.i", 0) + counts.get("phase.I", 0),
            "instant_events": int(threads["instants"].sum()) - unmatched_ends,
            "counter_samples": counts.get("phase.C", 0),
            "counter_events": counter_events,
            "counter_values": tables.samples,
            "empty_counters": counter_events - self.counters.events,
            "metadata": counts.get("phase.M", 0),
            "async_events": placed["asyncs"],
            "async_spans": int(asyncs["slices"].sum()),
            "async_unmatched_begin": int(asyncs["unclosed"].sum()),
            "async_unmatched_end": tables.unmatched_ends[LaneKind.ASYNC],
            "flow_events": placed["flows"],
            "flows": flow_counts,
            "unmatched_begin": int(threads["unclosed"].sum()),
            "unmatched_end": unmatched_ends,
            "mismatched_ends": tables.mismatched_ends,
            "without_time": without_time,
            "empty": counts.get("empty", 0),
            "not_objects": counts.get("not_object", 0),
            "negative_durations": counts.get("negative_dur", 0),
            # Where only the duration is unusable, the event is an instant.
            "missing_durations": counts.get("missing_dur", 0) + unusable - without_time,
            "repaired": counts.get("repaired", 0),
            "oversized": counts.get("oversized", 0),
            "unreadable": counts.get("unreadable", 0),
            "counts": counts,
        }


def _write_file(path: Path, raw: bytes) -> None:
    try:
        with open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(raw)
    except OSError as error:
        raise CacheError(f"cannot write the index ({path}): {error.strerror or error}") from error
