"""Memory: how much each allocator gave out, the peak and what was live at it, what stayed; and the copies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import F64, I64, AnyArray, sum_of
from ...base.kineto import FILLING
from ...base.safe_text import safe
from ...base.short_names import short_name
from ...base.units import format_bytes
from ...query.groups import concatenated, dense
from ...query.lookup import promoted_of
from ...trace.devices import ALLOCATION_NAMES, is_aiu
from ..frame.frame import Frame, FrameGroups
from ..frame.frame_columns import NEVER, work_of
from ..frame.metrics import Metric
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.shape import ON_DEVICE, Aggregate, Shape, flagged, n, statistic, text, total
from ..frame.table import Table, Tables, row_of_object
from ..frame.table_rows import Values
from ..frame.text_column import TextColumn
from ..host.allocations import BY_SIZE, NO_RECORD, Allocator
from ..host.allocators import allocators, unnamed
from .memory_map import segment_table
from .memory_said import Said, notes_said, records_said
from .memory_stacks import stack_table
from .memory_steps import memory_step_table

GB = 1e9
"""The unit of the profiler's "memory bandwidth (GB/s)", in bytes."""
WORDS = {"HOST": "H", "DEVICE": "D"}
_KIND = re.compile(r"\b([HDAP])to([HDAP])\b")
_ROCM = re.compile(r"Copy(Host|Device)To(Host|Device)", re.IGNORECASE)
_MEMORY = re.compile(r"\(([^()>]*)->([^()]*)\)")
ALLOCATION = "Allocation"


def kind_of(name: str, aiu: bool = False) -> tuple[str, str]:
    """Return (kind, from which memory to which) of a copy by its name: ("HtoD", "Pageable → Device").

    On an AIU a Memset (Device) is no copy: it is where memory was allocated.
    """
    if aiu and name in ALLOCATION_NAMES:
        return ALLOCATION, ""
    way = _MEMORY.search(name)
    memory = f"{way[1].strip()} → {way[2].strip()}" if way else ""
    if match := _KIND.search(name):
        return match[0], memory
    if rocm := _ROCM.search(name):
        return "to".join(WORDS[side.upper()] for side in rocm.groups()), memory
    if FILLING.match(name):
        return "Memset", memory
    return safe(name) if name.startswith("Memcpy") else short_name(name), memory


def _bandwidths(g: FrameGroups) -> Values:
    """Return all bytes by all time of the copies whose bytes are known; what moves none has no bandwidth."""
    sums = zip(*(g.sums(g.column(key)).tolist() for key in ("bytes", "sized_ns")), text("way").of(g))
    return np.array([size * 10**9 / ns if ns and way != ALLOCATION else np.nan for size, ns, way in sums])


def _recorded(of: Callable[[F64, I64], float]) -> Aggregate:
    """Take one number of the bandwidths that were recorded, and the time of each."""

    def answers(g: FrameGroups) -> Values:
        parts = (part[~np.isnan(part.recorded)] for part in g.parts)
        return np.array([of(part.recorded, part.full_ns) if len(part) else np.nan for part in parts])

    return flagged(Aggregate(answers, "bytes/s"), "statistic")


def _mean(speeds: F64, ns: I64) -> float:
    return float((speeds * ns).sum()) / sum_of(ns) if ns.any() else np.nan


COPIES = Shape(
    "copies",
    "Copies",
    {
        **ON_DEVICE,
        "name": ("kind", text("way")),
        "memory": text("memory"),
        "count": n(),
        "bytes": total("bytes", "bytes"),
        "time_ns": total("full_ns"),
        "bandwidth": flagged(Aggregate(_bandwidths), "statistic"),
        "recorded_mean": _recorded(_mean),
        "recorded_max": _recorded(lambda speeds, _: float(speeds.max())),
        "max_ns": ("longest", flagged(statistic("max_ns", "full_ns"), "statistic")),
        "without_bytes": n(lambda copies: ~copies.has_bytes),
    },
    {"chief": ("memory", "bytes", "time_ns", "bandwidth", "count", "rank")},
)


def copies(scope: Scope) -> Table:
    """Return a row per device, kind and memory of the copies that start in a scope, most time first.

    They count whole. `bandwidth` is all bytes by all time of those whose bytes are known; `recorded_…` is
    what the profiler wrote of each, its mean weighted by time.
    """
    work = work_of(replace(scope, allocations=True))
    work = work[work.is_type("memory") & work.is_begun]
    ways: list[tuple[str, str]] = []

    def codes(part: Frame) -> AnyArray:
        rows, numbers = dense(part.name_number)
        aiu = is_aiu(part.index)
        ways.extend(kind_of(name, aiu) for name in part.index.strings(numbers))
        return rows + (len(ways) - len(numbers))

    code = work.from_parts(codes)
    way, memory = (TextColumn(code, [pair[at] for pair in ways]) for at in (0, 1))
    moves = np.array([kind != ALLOCATION for kind in way.texts], np.bool_)[code]
    size = work.from_parts(lambda part: promoted_of(part.index, "bytes", part.position, NEVER))
    recorded = work.from_parts(lambda part: promoted_of(part.index, "bandwidth", part.position, np.nan) * GB)
    has = size != NEVER
    columns = {"bytes": np.where(has, size, 0), "has_bytes": has, "sized_ns": np.where(has, work.full_ns, 0)}
    work = work.plus(way=way, memory=memory, recorded=np.where(moves, recorded, np.nan), **columns)
    groups = work.group("device_row", "way", "memory")
    table = COPIES.of(groups, jump="full_ns", sort="time_ns")
    return replace(table, totals={key: sum_of(table.numbers(key)) for key in ("count", "bytes", "time_ns")})


MAX_LISTED = 20
"""How many allocations are listed for each allocator unless --limit says otherwise."""

MEMORY = TableSchema(
    "memory",
    "Memory",
    (
        Column("rank", "rank", "text"),
        Column("name", "allocator", "text"),
        Column("peak_bytes", "peak", "bytes", statistic=True),
        Column("peak_ns", "peak at", "ns", statistic=True, moment=True),
        Column("first_bytes", "at the start", "bytes", statistic=True),
        Column("last_bytes", "at the end", "bytes", statistic=True),
        Column("kept", "kept", "count"),
        Column("kept_bytes", "kept bytes", "bytes"),
        Column("allocations", "allocations", "count"),
        Column("releases", "releases", "count"),
        Column("allocated_bytes", "allocated", "bytes"),
        Column("released_bytes", "released", "bytes"),
        Column("reserved_bytes", "reserved", "bytes", statistic=True),
        Column("known_by", "totals", "text"),
        Column("device_type", "device type", "id", detail=True),
        Column("device_id", "device number", "id", detail=True),
    ),
    keys=("rank", "name"),
    jumps_to="the op at the peak",
    chief=("name", "peak_bytes", "last_bytes", "kept", "rank"),
)
LIVE = TableSchema(
    "live",
    "Live",
    (
        Column("rank", "rank", "text"),
        Column("allocator", "allocator", "text"),
        Column("name", "allocated in", "text", is_name=True),
        Column("bytes", "size", "bytes"),
        Column("start_ns", "allocated at", "ns", statistic=True, moment=True),
        Column("end_ns", "released at", "ns", statistic=True, moment=True),
        Column("held_ns", "held", "ns", statistic=True),
        Column("address", "address", "text"),
        Column("kind", "kind", "text", detail=True),
    ),
    keys=("rank", "allocator", "name"),
    jumps_to="the op",
    chief=("name", "bytes", "held_ns", "allocator"),
)
MEMORY_CURVE = TableSchema(
    "memory_curve",
    "Memory over time",
    (
        Column("rank", "rank", "text"),
        Column("allocator", "allocator", "text"),
        Column("at_ns", "at", "ns", moment=True),
        Column("change", "change", "bytes"),
        Column("allocated", "allocated", "bytes"),
        Column("reserved", "reserved", "bytes"),
    ),
)
BEFORE = "before the trace"
LEADS = {"peak": "at_peak"}
"""Value of --first -> name of the table, where the two differ."""
UNPAIRED = "what was live cannot be told"
FILTERED = "the filter is for the copies: [memory] records are no slices, so allocations count unfiltered"
NO_RECORDS = "no [memory] records: profile_memory=True makes torch.profiler write them"


@dataclass(frozen=True, eq=False)
class AllocatorUse:
    """What one allocator did in records [begin, end); times are trace time in ns.

    `peak` is None where only releases are recorded. `at_peak` and `unreleased` are numbers of allocations,
    largest first.
    """

    allocator: Allocator
    begin: int
    end: int
    peak: int | None  # the record after which most is allocated; begin - 1: what came before it
    peak_at: int
    at_peak: I64
    unreleased: I64

    @property
    def first_bytes(self) -> int:
        """What is allocated before its first record."""
        one = self.allocator
        at = self.begin
        return int(one.total[at]) - int(one.changes[at]) if at < len(one) else int(one.total[-1])

    @property
    def peak_bytes(self) -> int | None:
        """The most that is allocated at once."""
        if self.peak is None:
            return None
        return self.first_bytes if self.peak < self.begin else int(self.allocator.total[self.peak])

    def size(self, change: int) -> tuple[int, int]:
        """Return (count, bytes) of its allocations (1) or releases (-1)."""
        values = self.allocator.changes[self.begin : self.end] * change
        values = values[values > 0]
        return len(values), sum_of(values)


class MemoryUse(NamedTuple):
    """The allocators of a scope that have a record in it, and the copies."""

    scope: str
    uses: tuple[AllocatorUse, ...]
    copies: Table
    notes: tuple[str, ...]


def analyse_memory(scope: Scope, first: str = "allocators", limit: int | None = None) -> Tables:
    """Return allocators, the largest allocations at peaks and in the end, and copies; or the curve alone."""
    use = memory(scope)
    notes = (FILTERED,) if scope.where is not None and first != "copies" else ()
    if first == "curve":
        return Tables(use.scope, scope.origin, {"memory": lambda: curve_table(use)}, notes)
    tables = {
        "allocators": lambda: allocator_table(use),
        "at_peak": lambda: peak_table(use, limit or MAX_LISTED),
        "kept": lambda: unreleased_table(use, limit or MAX_LISTED),
        "steps": lambda: memory_step_table(scope, [one.allocator for one in use.uses]),
        "stacks": lambda: stack_table(use.scope, [(one.allocator, one.at_peak) for one in use.uses], limit),
        "segments": lambda: segment_table(scope, limit or MAX_LISTED),
        "copies": lambda: use.copies,
    }
    return Tables(use.scope, scope.origin, tables, notes).led_by(LEADS.get(first, first))


def memory_metrics(scope: Scope) -> list[Metric]:
    """Return the greatest peak of an allocator and how much was copied."""
    result = memory(scope)
    peaks = [use.peak_bytes for use in result.uses if use.peak_bytes is not None]
    return [
        Metric("memory.peak", "bytes", max(peaks, default=None)),
        Metric("memory.copied", "bytes", sum_of(result.copies.numbers("bytes"))),
    ]


def memory(scope: Scope) -> MemoryUse:
    """Return what the allocators of a scope did in its range, and what was copied in it."""
    uses = allocator_uses(scope)
    return MemoryUse(scope.text, uses, copies(scope), tuple(_notes(scope, uses)))


def allocator_uses(scope: Scope) -> tuple[AllocatorUse, ...]:
    """Return what the allocators of a scope that have records in its range did in it."""
    uses = []
    for allocator in allocators(scope):
        begin, end = allocator.between(scope.range)
        if begin < end:
            uses.append(_use(allocator, begin, end, scope.range))
    return tuple(uses)


def _use(allocator: Allocator, begin: int, end: int, span: tuple[int, int] | None) -> AllocatorUse:
    totals = allocator.total[begin:end]
    before = int(totals[0]) - int(allocator.changes[begin])
    peak: int | None = begin + int(np.argmax(totals))
    if before > int(totals.max()):
        peak = begin - 1
    if allocator.releases_only:
        peak = None
    start = int(allocator.times[begin]) if span is None else span[0]
    peak_at = start if peak is None or peak < begin else int(allocator.times[peak])
    live = np.empty(0, np.int64) if peak is None else allocator.live(peak)
    unreleased = allocator.unreleased(begin, end)
    sizes = allocator.allocations.bytes
    largest_first = (some[np.argsort(-sizes[some], kind="stable")] for some in (live, unreleased))
    return AllocatorUse(allocator, begin, end, peak, peak_at, *largest_first)


def _notes(scope: Scope, uses: Sequence[AllocatorUse]) -> Iterable[str]:
    if scope.where is not None:
        yield FILTERED
    lost = unnamed(scope)
    if lost:
        yield f"{lost:,} records name no device that the index has, or no size: they are not counted"
    elif not uses and scope.range is None:
        yield NO_RECORDS
    for use in uses:
        one = use.allocator
        if one.releases_only:
            yield f"{one.title}: only releases are recorded, so its totals are no amounts and it has no peak"
        elif one.known_by == BY_SIZE:
            yield (
                f"{one.title}: its allocations are Memset (Device) slices, with sizes and without addresses: "
                f"totals count from the least level that is possible, and {UNPAIRED}"
            )
        else:
            yield from notes_said(one, use.begin, use.end, use.peak)
        if one.known_by != BY_SIZE and use.peak is not None and len(use.at_peak):
            sizes, begins = one.allocations.bytes[use.at_peak], one.allocations.begins[use.at_peak]
            inside, earlier = (sum_of(sizes[own]) for own in (begins != NO_RECORD, begins == NO_RECORD))
            rest = (use.peak_bytes or 0) - inside - earlier
            if rest < 0:
                yield f"{one.title}: addresses that are released are not those that were given: {UNPAIRED}"
                continue
            words = f"{one.title}: of the peak {format_bytes(inside)} were allocated in the trace"
            if earlier:
                words += f", {format_bytes(earlier)} before it"
            if rest > 0:
                words += f"; when the other {format_bytes(rest)} were allocated is not recorded"
            yield words
    if len({use.allocator.title for use in uses if not use.allocator.host}) > 1:
        yield "allocators of one device are kept apart: their sum means nothing"


def allocator_table(result: MemoryUse) -> Table:
    """Return a row per allocator."""
    rows = [_row(use) for use in result.uses]
    peaks = [max(use.peak if use.peak is not None else use.begin, use.begin) for use in result.uses]
    jumps = [(use.allocator.source, use.allocator.op_at(at)) for use, at in zip(result.uses, peaks)]
    return Table.from_rows(MEMORY, result.scope, rows, jumps, notes=result.notes)


def _row(use: AllocatorUse) -> dict[str, Any]:
    one = use.allocator
    (allocations, allocated), (releases, released) = use.size(1), use.size(-1)
    reserved = None if one.reserved is None else int(one.reserved[use.begin : use.end].max())
    at = {"peak_ns": use.peak_at, "last_bytes": int(one.total[use.end - 1])}
    own = {
        "allocations": allocations,
        "releases": releases,
        "allocated_bytes": allocated,
        "released_bytes": released,
        "kept": len(use.unreleased),
        "kept_bytes": sum_of(one.allocations.bytes[use.unreleased]),
        "reserved_bytes": reserved,
        "known_by": one.known_by,
        **(dict.fromkeys(at) if use.peak is None else at),
        **{key: getattr(use, key) for key in ("first_bytes", "peak_bytes")},
    }
    return row_of_object(MEMORY.columns, one, rank=str(one.rank), name=one.title, **own)


def peak_table(result: MemoryUse, limit: int = MAX_LISTED) -> Table:
    """Return the largest allocations that were live at each allocator's peak."""
    lists = [(use, use.at_peak) for use in result.uses]
    return _live_table(result, "memory_peak", "Live at the peak", lists, limit)


def unreleased_table(result: MemoryUse, limit: int = MAX_LISTED) -> Table:
    """Return the largest allocations of the scope that nothing in it released."""
    return _live_table(result, "memory_kept", "Not released", [(u, u.unreleased) for u in result.uses], limit)


def _live_table(
    result: MemoryUse, name: str, title: str, lists: list[tuple[AllocatorUse, I64]], limit: int
) -> Table:
    rows, jumps, notes = [], [], []
    for use, numbers in lists:
        said = records_said(use.allocator, numbers[:limit])
        for number, of_record in zip(numbers[:limit].tolist(), said):
            row, position = _live_row(use, number, of_record)
            rows.append(row)
            jumps.append((use.allocator.source, position))
        if len(numbers) > limit:
            rest = sum_of(use.allocator.allocations.bytes[numbers[limit:]])
            more = len(numbers) - limit
            words = f"{more:,} smaller ones, {format_bytes(rest)}, are not listed"
            notes.append(f"{use.allocator.title}: {words}")
    return Table.from_rows(replace(LIVE, name=name, title=title), result.scope, rows, jumps, notes=notes)


def _live_row(use: AllocatorUse, number: int, said: Said) -> tuple[dict[str, Any], int | None]:
    one, of = use.allocator, use.allocator.allocations
    begin, end = int(of.begins[number]), int(of.ends[number])
    start = None if begin == NO_RECORD else int(one.times[begin])
    stop = None if end >= len(one) else int(one.times[end])
    position = one.op_of(number)
    op = said.op or (BEFORE if position is None and begin == NO_RECORD else "")
    if position is not None and not op:
        op = one.index.string(int(one.index.column("slices.name")[position]))
    held = None if start is None or stop is None else stop - start
    row = {"rank": str(one.rank), "allocator": one.title, "name": op, "held_ns": held, "kind": said.kind}
    row |= {"start_ns": start, "end_ns": stop, "bytes": int(of.bytes[number])}
    return {**row, "address": f"{int(of.addresses[number]):#x}"}, position


def curve_table(result: MemoryUse) -> Table:
    """Return what is allocated after each record of the scope, allocator by allocator."""
    owners = [use.allocator for use in result.uses for _ in range(use.begin, use.end)]
    texts = {"rank": [str(one.rank) for one in owners], "allocator": [one.title for one in owners]}
    parts: dict[str, list[AnyArray]] = {"at_ns": [], "change": [], "allocated": [], "reserved": []}
    for use in result.uses:
        one, part = use.allocator, slice(use.begin, use.end)
        reserved = np.full(len(one), np.nan) if one.reserved is None else one.reserved
        for values, column in zip(parts.values(), (one.times, one.changes, one.total, reserved)):
            values.append(column[part])
    data: dict[str, Values] = {**texts, **{key: concatenated(values) for key, values in parts.items()}}
    return Table.from_arrays(MEMORY_CURVE, result.scope, data, notes=result.notes)
