"""Chains as JSON: slices by the names, pids and times (ns) that stand in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import I64, U32, AnyArray, distinct, sum_of
from ..base.pattern import Pattern
from ..index.store import Index
from ..query.chain import Chain, Replays, full_chain, replays_of
from ..query.launches import Launched, kernels_under
from ..query.lookup import SliceList
from ..query.views import id_value
from ..tables.frame.schema import Column, TableSchema
from ..tables.frame.table import Table

if TYPE_CHECKING:
    from ..trace import Trace

CHUNK = 1 << 20
CACHED_REPLAYS = 8
"""The number of graphs whose compared replays are held in memory."""


def slice_json(index: Index, position: int) -> dict[str, Any]:
    """Return a slice as JSON: its name, lane and times as they stand in the file."""
    lane = index.lanes[int(index.rows[index.row_of(position)]["lane"])]
    process = index.processes[int(lane["process"])]
    return {
        "name": index.string(int(index.column("slices.name")[position])),
        "category": index.categories[int(index.column("slices.category")[position])],
        "pid": id_value(index.string(int(process["pid"]))),
        "tid": id_value(index.string(int(lane["tid"]))),
        "start_ns": index.start(position),
        "duration_ns": int(index.duration([position])[0]),
    }


class SourceChains:
    """What launched what in one source of a trace; replays of one graph are compared once."""

    def __init__(self, trace: Trace, source: int) -> None:
        """Look up the launch of all device work."""
        self._index, self._launches = trace.indexes[source], trace.launches(source)
        self._source, self._cache, self._trace = source, list[Replays](), trace

    def named(self, pattern: Pattern) -> U32:
        """Return the positions of the slices whose raw name the pattern finds, by start and position."""
        names = self._index.column("slices.name")
        parts = [(at, names[at : at + CHUNK]) for at in range(0, len(names), CHUNK)]
        used = distinct(np.concatenate([distinct(part) for _, part in parts] or [names]))
        matching = used[np.array(pattern.matches_in(self._index.strings(used)), np.bool_)]
        matched = (at + np.flatnonzero(np.isin(part, matching)) for at, part in parts)
        positions = np.concatenate([np.empty(0, np.int64), *matched])
        order = np.lexsort((positions, self._index.column("slices.start")[positions]))
        return positions[order].astype(np.uint32)

    def at(self, positions: U32, time: int) -> U32:
        """Return those of the slices that cover a lane time, else the one nearest to it; innermost first."""
        if not len(positions):
            return positions
        start: I64 = self._index.column("slices.start")[positions].astype(np.int64)
        length = self._index.duration(positions)
        away = np.maximum(start - time, np.maximum(0, time - start - np.maximum(length, 1) + 1))
        order = np.lexsort((positions, length, -start))
        covering = order[away[order] == 0]
        near = covering if len(covering) else order[np.argsort(away[order], kind="stable")][:1]
        innermost: U32 = positions[near]
        return innermost

    def are_device_work(self, positions: U32) -> AnyArray:
        return np.isin(positions, self._launches.kernels)

    def slices(self, positions: Sequence[int] | AnyArray) -> SliceList:
        return SliceList(self._index, self._source, positions)

    def chain(self, kernel: int) -> Chain:
        """Return the chain of a kernel, its launch looked up in the table of all launches."""
        return full_chain(self._index, kernel, *self._launches.launch_of(kernel))

    def captured(self, kernel: int) -> Mapping[str, str]:
        """Return what a capture says of a kernel that a graph replays, by heading, or why none does."""
        return self._trace.captured_facts(self._trace.slice_id_of(self._source, kernel))

    def launched(self, position: int) -> Launched:
        """Return the device work launched within a slice's time on its lane."""
        return kernels_under(self._index, self._launches, position)

    def chain_json(self, kernel: int) -> dict[str, Any]:
        """Return a kernel's chain as JSON, with null for what the trace does not say, and how it compares
        with other replays of its graph.
        """
        chain, index = self.chain(kernel), self._index
        return {
            "kernel": slice_json(index, kernel),
            "via": chain.via or None,
            "launch": None if chain.launch is None else slice_json(index, chain.launch),
            "op": None if chain.op is None else slice_json(index, chain.op),
            "ancestors": [slice_json(index, position) for position in chain.ancestors],
            "launch_delay_ns": chain.launch_delay,
            **({"by_capture": dict(facts)} if (facts := self.captured(kernel)) else {}),
            **self._replay_json(chain.launch, kernel),
        }

    def launched_json(self, position: int) -> dict[str, Any]:
        """Return what a slice launched, in order of start, as JSON, with how it compares with other replays
        of its graph.
        """
        launched = self.launched(position)
        return {
            "slice": slice_json(self._index, position),
            "launches": launched.launches,
            "kernels": [slice_json(self._index, kernel) for kernel in launched.kernels.tolist()],
            "device_ns": launched.total,
            "busy_ns": launched.busy,
            "idle_ns": launched.idle,
            "gaps": launched.gaps,
            **self._replay_json(position),
        }

    def _replay_json(self, launch: int | None, kernel: int | None = None) -> dict[str, Any]:
        """Return, under "replay", how a launch's kernels (and one of them, by its position in the graph)
        compare with those of the graph's other replays; nothing where the launch started fewer than two.
        """
        replays = None if launch is None else self.replays(launch)
        if replays is None:
            return {}
        facts: dict[str, Any] = {
            "number": replays.this + 1,
            "of": len(replays.launches),
            "kernels": replays.kernels.shape[1],
            "device_ns": _compared(replays.durations.sum(axis=1), replays.this),
        }
        if kernel is not None:
            at = int(np.flatnonzero(replays.kernels[replays.this] == kernel)[0])
            facts["position"] = at + 1
            facts["kernel_ns"] = _compared(replays.durations[:, at], replays.this)
        return {"replay": facts}

    def replays(self, launch: int) -> Replays | None:
        """Return the replays of the graph that a launch started; None where it started fewer than two
        kernels.
        """
        for cached in self._cache:
            rows = np.flatnonzero(cached.launches == launch)
            if len(rows):
                return replace(cached, this=int(rows[0]))
        replays = replays_of(self._index, self._launches, launch)
        if replays is not None:
            self._cache = [replays, *self._cache[: CACHED_REPLAYS - 1]]
        return replays


def _compared(times: I64, this: int) -> dict[str, int]:
    """Return a time of one replay, and mean, least and greatest of all, in ns."""
    mean = sum_of(times) // len(times)
    return {"this": int(times[this]), "mean": mean, "min": int(times.min()), "max": int(times.max())}


LINKS = TableSchema(
    "links",
    "Chains",
    (
        Column("match", "match", "count"),
        Column("role", "role", "text"),
        Column("name", "name", "text", is_name=True),
        Column("category", "category", "text"),
        Column("pid", "pid", "text"),
        Column("tid", "tid", "text"),
        Column("start_ns", "start (ns)", "id"),
        Column("duration_ns", "duration", "ns"),
        Column("launch_delay_ns", "launch delay", "ns", statistic=True),
    ),
)


def links_table(entries: Sequence[Mapping[str, Any]], scope: str) -> Table:
    """Return the slices of chains, and of what slices launched, as rows: of each match, outermost first."""
    rows: list[dict[str, Any]] = []
    for match, entry in enumerate(entries, 1):
        if "slice" in entry:
            links = [("slice", entry["slice"]), *(("kernel", kernel) for kernel in entry["kernels"])]
        else:
            above = [("around", one) for one in entry["ancestors"] if one != entry["op"]]
            links = [*above, ("op", entry["op"]), ("launch", entry["launch"]), ("kernel", entry["kernel"])]
        rows += [
            {
                **link,
                **{key: str(link[key]) for key in ("pid", "tid")},
                "match": match,
                "role": role,
                "launch_delay_ns": entry.get("launch_delay_ns") if role == "kernel" else None,
            }
            for role, link in links
            if link is not None
        ]
    return Table.from_rows(LINKS, scope, rows)
