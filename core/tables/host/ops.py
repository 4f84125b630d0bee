"""PyTorch's key_averages from the trace file: a row per name, with its time, memory and device time.

The rules are those of torch's profiler, event for event, so that the numbers are those that
`prof.key_averages()` gave when the trace was written. What the file does not tell: regions ended on another
thread have no self time in torch, here they are ops like others; FLOPs are not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.arrays import I64, AnyArray, add_at, added_upwards, distinct, greatest_upwards, means_of, sum_of
from ...base.errors import UsageError
from ...base.kineto import DEVICE_ANNOTATION, MEMORY_RECORD, SYNC_CATEGORIES, WORK
from ...query.groups import Groups, concatenated, dense
from ...query.lookup import category_mask, nearest_around
from ...trace import Trace
from ...trace.devices import device_word
from ..frame.cached import cached_table
from ..frame.frame import Frame
from ..frame.frame_columns import work_of
from ..frame.metrics import Metric
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables, Value
from ..frame.table_rows import Values
from ..steps.attribution import by_step
from .op_events import ANNOTATION, OP, OpEvents, name_keys, op_events, positions_of
from .op_sums import (
    ANYWHERE,
    NO_GROUPING,
    Grouping,
    LinkedWork,
    OpMemory,
    grouped,
    memory_of,
    op_device_times,
    ops_of_calls,
    parse_grouping,
    staying,
    uncategorised_work,
    work_in,
    work_positions,
)

SUMS = ("cpu_total_ns", "self_cpu_ns", "device_total_ns", "self_device_ns")
MEMORY_SUMS = ("cpu_mem", "self_cpu_mem", "device_mem", "self_device_mem")
LINKED = ("device_self_ns", "device_busy_ns")
"""By the innermost operator around the launch, as in `kernels --by op`; PyTorch's go by External ids."""
REST = ("outside_any_op_ns", "launch_not_in_file_ns")
COUNTED = (*("calls", "start", "end", "ordinal", "ns", "source", "position"), *(*SUMS, *MEMORY_SUMS, *LINKED))
AVERAGES = {"cpu_avg_ns": "cpu_total_ns", "device_avg_ns": "device_total_ns"}

NOTHING = np.empty(0, np.int64)
"""The column for values that are all zero: most traces have no memory, many no device."""
CHIEF = ("self_cpu_ns", "device_total_ns", "cpu_total_ns", "calls")
NO_SLICE = -1
"""The position that a row without slices of its own jumps to."""

SORTS = {
    "count": "calls",
    "cpu_time": "cpu_avg_ns",
    "cpu_time_total": "cpu_total_ns",
    "self_cpu_time_total": "self_cpu_ns",
    "cpu_memory_usage": "cpu_mem",
    "self_cpu_memory_usage": "self_cpu_mem",
    "device_time": "device_avg_ns",
    "device_time_total": "device_total_ns",
    "self_device_time_total": "self_device_ns",
    "device_memory_usage": "device_mem",
    "self_device_memory_usage": "self_device_mem",
}
"""PyTorch's sort keys -> our columns; its names of devices (cuda_time_total …) mean "device"."""
DEVICE_SORT = re.compile(r"^(self_)?(?!cpu_|self_)[a-z0-9]+(?=_(time|memory))")
"""How a key of a device begins, by whatever name it goes: self_cuda_time_total, npu_time."""


class _Key(NamedTuple):
    """What makes a row. `by_capture`: it did not run in the trace, but a graph that was captured from it."""

    name: str
    annotation: bool
    on_device: bool
    text: str  # of the grouping
    by_capture: bool = False


_Columns = dict[str, I64]
"""COUNTED of some rows: their calls, their first and their longest event, and what is summed."""


def analyse_ops(scope: Scope, group_by: str = "", by: str = "", no_frames: bool = False) -> Tables:
    """Return the ops of a scope, or (by step) of each step in it."""
    grouping = parse_grouping(group_by) if group_by else NO_GROUPING
    if no_frames:
        grouping = grouping._replace(no_frames=True)

    def table() -> Table:
        if by == "step":
            return by_step(scope, partial(ops, by=grouping))
        return ops(scope, grouping)

    return Tables(scope.text, scope.origin, {"ops": table})


def op_metrics(scope: Scope) -> list[Metric]:
    """Return how many calls of operators there are, and the time of host and device."""
    table = ops(scope)
    host = table.take(table.numbers("on_device") == 0)
    return [
        Metric("ops.calls", "count", sum_of(host.numbers("calls"))),
        Metric("ops.names", "count", len(host)),
        Metric("ops.self_cpu", "ns", table.totals["self_cpu_total_ns"]),
        Metric("ops.self_device", "ns", table.totals["self_device_total_ns"]),
    ]


def ops(scope: Scope, by: Grouping = NO_GROUPING) -> Table:
    """Return the ops of a scope in torch's own order: by the first start of each row.

    Slices cut by the edge of the scope's range count by their part inside, device work by the op that
    launched it in the range, wherever it ran. Times are ns, memory bytes.
    """
    name = f"ops-{by.by}-{by.depth}{'-no-frames' if by.no_frames else ''}" if by != NO_GROUPING else "ops"
    return cached_table(scope, name, lambda: _counted(scope, by))


def _counted(scope: Scope, by: Grouping) -> Table:
    parts: list[tuple[list[_Key], _Columns]] = []
    notes: list[str] = []
    rest = np.zeros(len(REST), np.int64)
    for source in scope.sources:
        rest += _host_rows(scope, source, by, parts, notes)
        parts += _device_rows(scope, source)
    codes: dict[_Key, int] = {}
    of = np.array([codes.setdefault(key, len(codes)) for keys, _ in parts for key in keys], np.int64)
    columns = {key: concatenated([part[key] for _, part in parts]) for key in COUNTED}
    first = np.lexsort((columns["ordinal"], -columns["end"], columns["start"], of))
    longest = np.lexsort((columns["position"], columns["source"], columns["ns"], of))
    groups = Groups(of, len(codes))
    edges = np.cumsum(groups.counts)
    first, longest = first[edges - groups.counts], longest[edges - 1]
    order = np.lexsort(
        [columns[key][first] * way for key, way in (("ordinal", 1), ("end", -1), ("start", 1))]
    )
    rows = {key: groups.sums(columns[key])[order] for key in ("calls", *SUMS, *MEMORY_SUMS, *LINKED)}
    rows |= {key: columns[key][longest][order] for key in ("source", "position")}
    keys = list(codes)
    return _table(scope, by, [keys[at] for at in order.tolist()], rows, dict(zip(REST, rest.tolist())), notes)


def sort_column(key: str) -> str:
    """Return the column (with - before it: smallest first) of one of PyTorch's sort keys or of a column's own
    name; UsageError for others.
    """
    column = key.removeprefix("-")
    column = DEVICE_SORT.sub(r"\1device", column)
    column = SORTS.get(column, column)
    if column not in ("name", "calls", *SUMS, *MEMORY_SUMS, *LINKED, *AVERAGES):
        raise UsageError(f"no sort key {key!r}; there are {', '.join(SORTS)}")
    return f"-{column}" if key.startswith("-") or column == "name" else column


def _host_rows(
    scope: Scope, source: int, by: Grouping, parts: list[tuple[list[_Key], _Columns]], notes: list[str]
) -> I64:
    """Add the rows of the host; return the ns of the device work that belongs to none, as REST."""
    events = op_events(scope, source, by.no_frames)
    index = events.index
    offsets = scope.lane_offsets(source)
    alive, parent = events.merged
    scope.check()
    start, end = events.start, events.end
    if offsets.any():
        start, end = start + offsets[events.lane], end + offsets[events.lane]
    total = _cut(scope, end) - _cut(scope, start)
    scope.check()
    owners, launches = scope.trace.owners(source), scope.trace.launches(source)
    positions = work_positions(index, launches)
    by_capture = np.append(owners.by_capture, False)[owners.rows_of(positions)]
    device_total, device_self = op_device_times(events, launches, positions, by_capture)
    scope.check()
    shift = int(offsets[events.lane[0]]) if len(events) else 0
    low, high = scope.range if scope.range is not None else ANYWHERE
    memory = memory_of(index, low - shift, high - shift)
    host_bytes, device_bytes = memory.between(events.start, events.end)
    if memory.both_device_types:
        notes.append(
            "device memory is what PyTorch's allocator recorded; the runtime recorded the same bytes again"
        )
    own = [_without_children(values, parent, alive) for values in (total, host_bytes, device_bytes)]
    scope.check()
    work, around = work_in(scope, source, events.positions[events.kind == OP])
    nodes = staying(events, np.where(around < 0, -1, events.where[around]).astype(np.int64))
    linked = LinkedWork(work, nodes, parent)
    sums = [total, own[0], device_total, device_self, host_bytes, own[1], device_bytes, own[2], linked.own_ns]
    annotation = events.kind == ANNOTATION
    extra, texts = grouped(events, by) if by.by else (np.zeros(len(events), np.int64), [""])
    keep = alive if scope.where is None else alive & scope.where(index, events.positions)
    code = (extra * len(events.names) + events.key) * 2 + annotation
    # What is left out is summed too, as one more code: cheaper than copying all columns without it.
    left_out = 2 * len(events.names) * len(texts)
    code[~keep] = left_out
    busy = linked.busy_ns(code, left_out + 1)
    codes, columns = _summed(
        source, events.positions, index.column("slices.ordinal"), code, (start, end, total),
        [values if values.any() else NOTHING for values in sums],
    )  # fmt: skip
    columns[LINKED[1]] = busy[codes]
    counted = len(codes) - int(left_out in codes[-1:])
    pairs = (divmod(number, len(events.names)) for number in (codes[:counted] // 2).tolist())
    is_note = (codes[:counted] % 2 > 0).tolist()
    keys = [_Key(events.names[at], note, False, texts[of]) for (of, at), note in zip(pairs, is_note)]
    parts.append((keys, {key: values[:counted] for key, values in columns.items()}))
    if scope.where is None:
        parts += _memory_outside(memory, events, source, by, shift)
    is_known, is_owned = work.launched >= 0, around >= 0
    for book in distinct(work.book[work.is_by_capture]).tolist():
        captured = CapturedOps.of(scope, source, by, work, book)
        is_owned[captured.rows] |= captured.is_owned
        parts.append(captured.table_rows(source, by))
    notes += scope.trace.capture_notes(source)
    rest = ~is_owned & is_known, ~is_known
    return np.array([sum_of(work.full_ns[rows]) for rows in rest], np.int64)


def _memory_outside(
    memory: OpMemory, events: OpEvents, source: int, by: Grouping, shift: int
) -> list[tuple[list[_Key], _Columns]]:
    """Return the row of the memory that no op took or gave back, none where there is no such memory."""
    # What lies in another event need not be looked at, unless it outlasts that.
    is_outer = (events.parent < 0) | (events.end > events.end[events.parent])
    outside = np.flatnonzero(memory.outside(events.start[is_outer], events.end[is_outer]))
    if not len(outside):
        return []
    first = int(memory.times[outside[0]]) + shift
    inside = [sum_of(memory.host[outside])] * 2 + [sum_of(memory.device[outside])] * 2
    row = (len(outside), first, first, 0, -1, source, NO_SLICE, *[0] * len(SUMS), *inside, 0, 0)
    key = _Key(MEMORY_RECORD, False, False, "[]" if by.by == "shape" else "")
    return [([key], {name: np.array([value], np.int64) for name, value in zip(COUNTED, row)})]


@dataclass(frozen=True, eq=False)
class CapturedOps:
    """The host events of a capture, and the device work of graphs that replayed what they launched."""

    events: OpEvents
    work: Frame
    rows: I64  # of the work that has its owner in the capture
    targets: I64  # the event that owns each of these, by the rules of op_device_times; -1 for none
    nodes: I64  # the innermost operator around the owner of each
    source: int

    @classmethod
    def of(cls, scope: Scope, source: int, by: Grouping, work: Frame, book: int) -> CapturedOps:
        capture = Trace((scope.trace.owners(source).indexes[book],))
        events = op_events(Scope(capture, cancelled=scope.cancelled), 0, by.no_frames)
        rows = np.flatnonzero(work.book == book)
        ops = events.positions[events.kind == OP]
        around = nearest_around(events.index, work.owner[rows], ops, itself=True)
        nodes = np.where(around < 0, -1, events.where[around]).astype(np.int64)
        targets = ops_of_calls(events, work.owner[rows])
        return cls(events, work, rows, staying(events, targets), staying(events, nodes), source)

    @property
    def is_owned(self) -> AnyArray:
        """Which of the rows have an operator that owns them; bool."""
        return self.nodes >= 0

    def table_rows(self, source: int, by: Grouping) -> tuple[list[_Key], _Columns]:
        """Return the rows of what owns device work: calls are replays, the host spent no time on them. They
        lead to the first work that they own, and stand where it began.
        """
        events, work = self.events, self.work[self.rows]
        alive, parent = events.merged
        known, ns = np.flatnonzero(self.targets >= 0), work.full_ns
        own, replays, first = (np.zeros(len(events), np.int64) for _ in range(3))
        add_at(own, self.targets[known], ns[known])
        _, at, counts = np.unique(work.owner, return_index=True, return_counts=True)
        for of in (self.targets, self.nodes):
            np.maximum.at(replays, of[at][of[at] >= 0], counts[of[at] >= 0])
        order = np.argsort(work.start, kind="stable")
        latest = np.empty(len(work), np.int64)
        latest[order] = np.arange(len(work), 0, -1)  # of what begins first it is the greatest
        for of in (self.targets, self.nodes):
            np.maximum.at(first, of[of >= 0], latest[of >= 0])
        replays, first = greatest_upwards(replays, parent), greatest_upwards(first, parent)
        total, linked = added_upwards(own, parent), LinkedWork(work, self.nodes, parent)
        is_owning = alive & ((total > 0) | (linked.total_ns > 0))
        owning = np.flatnonzero(is_owning)
        extra, texts = grouped(events, by) if by.by else (np.zeros(len(events), np.int64), [""])
        code = (extra * len(events.names) + events.key) * 2 + (events.kind == ANNOTATION)
        row = order[len(work) - first[owning]]
        begin, index = work.start[row], work.index
        sums = [NOTHING, NOTHING, total[owning], own[owning], *[NOTHING] * 4, linked.own_ns[owning]]
        codes, columns = _summed(
            source, work.position[row].astype(np.int64), index.column("slices.ordinal"), code[owning],
            (begin, begin + work.full_ns[row], total[owning]), sums,
        )  # fmt: skip
        columns["calls"] = Groups(np.searchsorted(codes, code[owning]), len(codes)).sums(replays[owning])
        busy = linked.busy_ns(np.where(is_owning, np.searchsorted(codes, code), len(codes)), len(codes) + 1)
        columns[LINKED[1]] = busy[:-1]
        pairs = (divmod(number, len(events.names)) for number in (codes // 2).tolist())
        is_note = (codes % 2 > 0).tolist()
        keys = [
            _Key(events.names[at], note, False, texts[of], by_capture=True)
            for (of, at), note in zip(pairs, is_note)
        ]
        return keys, columns


def _device_rows(scope: Scope, source: int) -> Iterator[tuple[list[_Key], _Columns]]:
    index = scope.trace.indexes[source]
    positions = positions_of(
        scope, source, category_mask(index, WORK | SYNC_CATEGORIES | {DEVICE_ANNOTATION})
    )
    if len(others := uncategorised_work(index, scope.trace.launches(source))):
        own = work_of(replace(scope, source=source)).position
        positions = distinct(np.concatenate([positions, own[np.isin(own, others)]]))
    if scope.where is not None:
        positions = positions[scope.where(index, positions)]
    if not len(positions):
        return
    key, names = name_keys(index, index.column("slices.name")[positions])
    annotation = category_mask(index, {DEVICE_ANNOTATION})[index.column("slices.category")[positions]]
    start = scope.starts(source, positions)
    end = start + index.duration(positions)
    total = np.where(scope.is_whole(source, positions), end - start, _cut(scope, end) - _cut(scope, start))
    sums = [NOTHING, NOTHING, total, total, *[NOTHING] * 6]
    ordinal = index.column("slices.ordinal")
    code = key.astype(np.int64) * 2 + annotation
    codes, columns = _summed(source, positions, ordinal, code, (start, end, total), sums)
    yield [_Key(names[number // 2], bool(number % 2), True, "") for number in codes.tolist()], columns


def _cut(scope: Scope, times: I64) -> I64:
    return times if scope.range is None else np.clip(times, *scope.range)


def _without_children(values: I64, parent: npt.NDArray[np.int32], alive: npt.NDArray[np.bool_]) -> I64:
    """Return each event's value minus those of its direct children."""
    own, children = values.copy(), np.flatnonzero(values)
    children = children[alive[children] & (parent[children] >= 0)]
    add_at(own, parent[children], -values[children])
    return own


def _summed(
    source: int, positions: I64, ordinals: AnyArray, code: I64, times: tuple[I64, I64, I64], sums: list[I64]
) -> tuple[I64, _Columns]:
    """Return (the distinct codes of these events, ascending, what is counted of each); `ordinals` are those
    of the whole index, `times` when events begin and end, and how much of that lies in the scope (ns).
    """
    of, codes = dense(code)
    groups, (start, end, ns) = Groups(of, len(codes)), times
    at = np.flatnonzero(start == groups.least(start)[of])
    at = at[np.lexsort((ordinals[positions[at]], -end[at], of[at]))]
    first = at[np.searchsorted(of[at], np.arange(len(codes)))]
    most = groups.most(ns, -1)
    longest = positions[groups.longest(ns, most)] if len(codes) else codes
    facts = (start[first], end[first], ordinals[positions[first]], most)
    added = (groups.sums(values) if len(values) else np.zeros(len(codes), np.int64) for values in sums)
    values = (groups.counts, *facts, np.full(len(codes), source), longest, *added)
    return codes, {key: column.astype(np.int64) for key, column in zip(COUNTED, values)}


def _columns(device: str, has_device_memory: bool) -> list[Column]:
    """Return the columns that every grouping has; `device` is what the trace's accelerator is called."""
    is_hidden = not has_device_memory
    return [
        Column("name", "Name", "text", is_name=True),
        Column("calls", "# of Calls", "count"),
        Column("cpu_total_ns", "CPU total", "ns"),
        Column("self_cpu_ns", "Self CPU", "ns"),
        Column("device_total_ns", f"{device} total", "ns"),
        Column("self_device_ns", f"Self {device}", "ns"),
        Column("cpu_mem", "CPU Mem", "bytes"),
        Column("self_cpu_mem", "Self CPU Mem", "bytes"),
        Column("device_mem", f"{device} Mem", "bytes", detail=is_hidden),
        Column("self_device_mem", f"Self {device} Mem", "bytes", detail=is_hidden),
        Column("annotation", "Annotation", "number"),
        Column("on_device", f"On {device}", "number"),
        Column("cpu_avg_ns", "CPU time avg", "ns", statistic=True, detail=True),
        Column("device_avg_ns", f"{device} time avg", "ns", statistic=True, detail=True),
        Column("device_self_ns", f"{device} launched by it alone", "ns", detail=True),
        Column("device_busy_ns", f"{device} busy with it", "ns", detail=True),
    ]


def _table(
    scope: Scope,
    by: Grouping,
    keys: Sequence[_Key],
    rows: _Columns,
    rest: Mapping[str, int],
    notes: list[str],
) -> Table:
    """Return the rows by first appearance, with the columns that the trace has something for."""
    word = device_word(scope.trace)
    on_device = np.array([key.on_device for key in keys], np.bool_)
    annotation = np.array([key.annotation for key in keys], np.bool_)
    positions, sources = rows.pop("position"), rows.pop("source")
    data: dict[str, Values] = {"name": [key.name for key in keys], **rows}
    device_memory = bool(np.any(rows["device_mem"]) or np.any(rows["self_device_mem"]))
    for average, total in AVERAGES.items():
        data[average] = means_of(np.asarray(data[total]), np.asarray(data["calls"]))
    data["annotation"], data["on_device"] = annotation, on_device
    columns = _columns(word, device_memory)
    identity = ["name", "annotation", "on_device"]
    if by.by:
        key, title = by.column
        identity.append(key)
        columns.append(Column(key, title, "text"))
        data[key] = [one.text for one in keys]
        if by.by == "stack" and not any(data[key]):
            notes.append("the trace holds no call stacks (PyTorch writes them with verbose=True only)")
    if any(one.by_capture for one in keys):
        identity.append("by_capture")
        columns.append(Column("by_capture", "By capture", "number"))
        data["by_capture"] = np.array([one.by_capture for one in keys], np.bool_)
    says_memory = any(index.envelope.get("profile_memory") for index in scope.trace.indexes)
    has_memory = says_memory or any(np.any(rows[key]) for key in MEMORY_SUMS)
    device = np.asarray(data["self_device_ns"])
    totals: dict[str, Value] = {
        "self_cpu_total_ns": sum_of(np.asarray(data["self_cpu_ns"])),
        "self_device_total_ns": sum_of(device[on_device & ~annotation]),
        "linked_device_total_ns": sum_of(np.asarray(data["device_self_ns"])),
        **rest,
        "device": word,
        "profile_memory": int(has_memory),
    }
    read_by = "self_device_ns" if np.any(device) else "self_cpu_ns"
    chief = ("name", *identity[3:], *CHIEF)
    return Table.from_arrays(
        TableSchema("ops", "Ops", tuple(columns), tuple(identity), read_by=read_by, chief=chief),
        scope.text,
        data,
        totals=totals,
        notes=tuple(notes),
        positions=positions,
        sources=sources,
    )
