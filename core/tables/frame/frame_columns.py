"""The columns of device work, each defined here and nowhere else, and how the work of a scope is gathered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, run_starts
from ...base.kineto import ANNOTATIONS, GROUPS, MODULE, OPS, STEP, work_of_categories
from ...base.short_names import comparable_name, short_names
from ...index.flex import IN_NAMES, flex_work, is_flex, numbers_in_names
from ...index.format import NONE
from ...index.producers import parts_of_collectives
from ...index.store import Index
from ...query.args import argument_values
from ...query.groups import concatenated, dense
from ...query.lookup import category_mask, names_with_prefix, nearest_around, promoted_of
from ...query.lost import untimed_work
from ...trace.devices import Device, allocations_of, devices, flex_rank, lane_categories, rank_of
from .frame import ColumnMakers, Frame
from .kinds import kernel_kinds, kernel_types
from .scope import Scope
from .text_column import TextColumn
from .work_device import WorkDevice

if TYPE_CHECKING:
    from ...trace import Trace

KindRule: TypeAlias = Callable[[Index, AnyArray, AnyArray], AnyArray]
"""(index, names, categories) -> indexes into KERNEL_TYPES; 255 for slices of no type."""

OUTSIDE_ANY, NOT_IN_FILE = "launched outside any {}", "launch not in the file"
"""What launched work that no operator (module, annotation) did, and work whose launch is not known."""
UNJOINED = "replayed by a graph that no capture fits"
"""What owns work of a graph that is not joined to the captures that there are."""
BOOKS = 1 << 20
"""More books than any source has: it numbers pairs of a source and a book."""
NEVER = np.iinfo(np.int64).min
"""The `reach` of the first work on its stream."""
KERNEL_WAIT_NS = 30_000
"""A gap shorter than this (ns) is what the hardware needs between two kernels (30 µs, as in HTA)."""


def module_label(name: str) -> str:
    """Return the name of a module, or of any slice, as two runs have it in common."""
    return comparable_name(name.removeprefix(MODULE))


def by_rule(work: Frame, rule: KindRule) -> AnyArray:
    """Return what a rule says of each row; it is asked once for each distinct (name, category)."""

    def of_source(part: Frame) -> AnyArray:
        width = len(part.index.categories)
        names, numbers = dense(part.name_number)
        rows, pairs = dense(names * width + part.category)
        return rule(part.index, numbers[pairs // width], (pairs % width).astype(np.uint32))[rows]

    return np.asarray(work.from_parts(of_source), np.uint8)


def gap_classes(work: Frame, kernel_wait_ns: int = KERNEL_WAIT_NS) -> AnyArray:
    """Return the classes of gaps (HTA's rule): host_wait where the call that launched what ends a gap began
    in it, else kernel_wait below a limit, else other. How much of a gap the host takes is another question:
    it ends with the call, which may have begun before the gap (`held_up` of findings).
    """
    is_late = (work.launch >= 0) & (work.call_start > work.reach)
    return np.where(is_late, 0, np.where(work.gap < kernel_wait_ns, 1, 2)).astype(np.uint8)


def _is_begun(work: Frame) -> AnyArray:
    if work.scope.range is None:
        return np.ones(len(work), np.bool_)
    starts = work.from_parts(lambda part: part.scope.starts(part.source_number, part.position))
    return np.asarray(starts == work.start)


def _short(work: Frame) -> TextColumn:
    names = sorted(set(work.name.texts))
    forms = dict(zip(names, short_names(names)))
    return TextColumn(work.name.codes, [forms[text] for text in work.name.texts])


def _of_calls(value: Callable[[Frame], I64]) -> Callable[[Frame], AnyArray]:
    """Make a column of a value of the known launch calls; 0 where the call is not known."""

    def of_source(part: Frame) -> AnyArray:
        values, known = np.zeros(len(part), np.int64), np.flatnonzero(part.launch >= 0)
        if len(known):
            values[known] = value(part[known])
        return values

    return lambda work: work.from_parts(of_source)


def _launched(part: Frame) -> I64:
    positions = part.scope.trace.launches(part.source_number).launches_at(part.position)
    return np.where(positions == NONE, -1, positions.astype(np.int64))


def _is_doubtful(part: Frame) -> AnyArray:
    launches = part.scope.trace.launches(part.source_number)
    return np.append(launches.ambiguous, False)[launches.rows_of(part.position)]


def _reach(work: Frame) -> I64:
    reach = np.full(len(work), NEVER)
    for rows in work.by_stream:
        reach[rows[1:]] = np.maximum.accumulate(work.end[rows])[:-1]
    return reach


def _before(work: Frame) -> AnyArray:
    before = work.position.copy()
    for rows in work.by_stream:
        reach = np.maximum.accumulate(work.end[rows])
        # The slice that reached farthest is the last one at which the reach grew.
        grew = np.concatenate([[True], reach[1:] > reach[:-1]])
        farthest = np.maximum.accumulate(np.where(grew, np.arange(len(rows)), 0))
        before[rows[1:]] = work.position[rows[farthest[:-1]]]
    return np.asarray(before)


def _waiting(work: Frame) -> I64:
    ends = work.call_end
    free = np.minimum(np.maximum(work.reach, ends), work.start)
    return np.asarray(np.maximum(0, free - ends))


def row_arguments(work: Frame, key: str) -> list[Any]:
    """Return any argument of each row, None where it has none."""

    def values(part: Frame) -> AnyArray:
        of_part = argument_values(part.index, key, part.position)
        if key.lower() in IN_NAMES and is_flex(part.index):
            in_names = numbers_in_names(part.index, key.lower(), part.name_number)
            of_part = [own if value is None else value for value, own in zip(of_part, in_names)]
        return np.fromiter(of_part, object, len(part))

    return list(work.from_parts(values, "device_row"))


def _launched_in(members: Callable[[Index], I64]) -> Callable[[Frame], AnyArray]:
    """Make a column of the innermost of some slices of the host that launched each row, -1 for none."""

    def of_source(part: Frame) -> AnyArray:
        around = np.full(len(part), -1, np.int64)
        known = np.flatnonzero(part.launched >= 0)
        around[known] = nearest_around(part.index, part.launched[known], members(part.index), itself=True)
        return around

    return lambda work: work.from_parts(of_source)


def _owned_in(members: Callable[[Index], I64]) -> Callable[[Frame], AnyArray]:
    """Make a column of the innermost of some slices in which each row's owner lies, -1 for none."""

    def of_book(part: Frame) -> AnyArray:
        around, index = np.full(len(part), -1, np.int64), part.owner_index
        known = np.flatnonzero(part.owner >= 0)
        around[known] = nearest_around(index, part.owner[known], members(index), itself=True)
        return around

    return lambda work: work.from_parts(of_book, "owner_row")


def _of_owners(key: str, missing: int) -> Callable[[Frame], AnyArray]:
    """Make a column of what `Owners` says of each row, `missing` for work whose launch nobody looks for."""

    def of_source(part: Frame) -> AnyArray:
        owners = part.scope.trace.owners(part.source_number)
        values = getattr(owners, key)
        return np.append(values, np.array(missing, values.dtype))[owners.rows_of(part.position)]

    return lambda work: work.from_parts(of_source)


def _of_categories(categories: Container[str]) -> Callable[[Index], I64]:
    return lambda index: np.flatnonzero(category_mask(index, categories)[index.column("slices.category")])


def _named_modules(index: Index) -> I64:
    frames = _of_categories(GROUPS["python"])(index)
    return frames[np.isin(index.column("slices.name")[frames], names_with_prefix(index, MODULE))]


def _annotations(index: Index) -> I64:
    notes = _of_categories(ANNOTATIONS)(index)
    return notes[~np.isin(index.column("slices.name")[notes], names_with_prefix(index, STEP))]


def launching(work: Frame, key: str) -> TextColumn:
    """Return the "op" or "module" that owns each row, or the "annotation" that it was launched in; else
    whether its launch is known.
    """
    at = getattr(work, f"{key}_at")
    words = work.names_of(f"{key}_at", lambda text: text.removeprefix(MODULE), by_type=key == "op")
    outside, unknown, unjoined = range(len(words.texts), len(words.texts) + 3)
    nobody = np.where(work.launched >= 0, np.where(work.is_unjoined, unjoined, outside), unknown)
    codes = np.where(at >= 0, words.codes, nobody)
    texts = [*words.texts, OUTSIDE_ANY.format(key), NOT_IN_FILE, UNJOINED]
    if key != "op":
        return TextColumn(codes, texts)
    own = work.names_at(_own_type)  # some writers say it in the work itself
    return TextColumn(
        np.where((at < 0) & _has_type(work), own.codes + len(texts), codes), [*texts, *own.texts]
    )


def _own_type(part: Frame) -> AnyArray:
    """Return the number of the text that says for which type of operator each row is done, 0 for none."""
    return promoted_of(part.index, "op_name", part.position)


def _has_type(work: Frame) -> AnyArray:
    """Return which rows say for which type of operator they are done."""
    return np.asarray(
        work.from_parts(lambda part: promoted_of(part.index, "op_name", part.position, -1) >= 0), np.bool_
    )


def capture_notes(work: Frame) -> tuple[str, ...]:
    """Return what captures say of the work's sources, in sentences, and why not of all that is replayed."""
    sources = distinct(work.source).tolist()
    return tuple(note for source in sources for note in work.scope.trace.capture_notes(source))


GIVEN = ("position", "start", "end", "name_number", "category", "device_row", "stream")
"""What is gathered: numbers of names and categories in the index, rows of `devices` and `streams`."""
COLUMNS: dict[str, Callable[[Frame], Any]] = {
    # ns in the scope; ns whether the scope cuts it or not; whether its start is its own, its times are usable
    "dur": lambda work: work.end - work.start,
    "full_ns": lambda work: work.from_parts(lambda part: part.index.duration(part.position)),
    "is_begun": _is_begun,
    "is_timed": lambda work: work.from_parts(_is_timed).astype(np.bool_),
    "is_elsewhere": lambda work: work.from_parts(_is_elsewhere).astype(np.bool_),
    # what it is: names, the short forms by which no two of them are the same, indexes into KERNEL_TYPES (255:
    # none of them) and into the names of the table of kinds
    "name": lambda work: work.names_at(lambda part: part.name_number),
    "short": _short,
    "type": lambda work: by_rule(work, kernel_types),
    "kind": lambda work: by_rule(work, kernel_kinds),
    # where: number of the source, rank (without ranks the number of the source), title, name of the stream
    "source": lambda work: np.array([one.device.source for one in work.devices], np.int64)[work.device_row],
    "rank": lambda work: TextColumn(work.device_row, [str(one.rank) for one in work.devices]),
    "device": lambda work: TextColumn(work.device_row, [one.title for one in work.devices]),
    "stream_name": lambda work: TextColumn(work.stream, work.streams),
    # the launch call: its position, -1 where it is not known; whether another is as likely or it begins after
    # its work; its start, ns and end
    "launch": lambda work: work.from_parts(
        lambda part: part.scope.trace.launches(part.source_number).calls_of(part.position)
    ),
    "is_doubtful": lambda work: work.from_parts(_is_doubtful),
    "call_start": _of_calls(lambda part: part.scope.starts(part.source_number, part.launch)),
    "call_ns": _of_calls(lambda part: part.index.duration(part.launch)),
    "call_end": lambda work: work.call_start + work.call_ns,
    # the call, else by its External id the operator, that launched it, and the innermost annotation (without
    # the steps') in which that lies: positions, -1 for none
    "launched": lambda work: work.from_parts(_launched),
    "annotation_at": _launched_in(_annotations),
    # who owns it (core/trace/owners.py): the same, or of what a graph replays the captured call, which lies
    # in another book; whether a capture says so, or none fits; numbers of pairs of source and book; the
    # innermost operator and module of PyTorch in which the owner lies: positions in its book
    "owner": _of_owners("owner", -1),
    "book": _of_owners("book", 0),
    "is_by_capture": _of_owners("by_capture", False),
    "is_unjoined": _of_owners("is_unjoined", False),
    "owner_row": lambda work: work.source * BOOKS + work.book,
    "op_at": _owned_in(_of_categories(OPS)),
    "module_at": _owned_in(_named_modules),
    "op": lambda work: launching(work, "op"),
    "module": lambda work: launching(work, "module"),
    "annotation": lambda work: launching(work, "annotation"),
    # order: when all that began before on the stream was done, NEVER for the first; the position of what then
    # ended last; how long the stream did nothing after that, and why, as an index into GAP_CLASSES
    "reach": _reach,
    "before": _before,
    "gap": lambda work: np.maximum(0, np.where(work.reach == NEVER, 0, work.start - work.reach)),
    "gap_class": gap_classes,
    # from the end of the call to the start of the work; the part in which the stream was busy; the rest
    "delay": lambda work: np.maximum(0, work.start - work.call_start - work.call_ns),
    "waiting": _waiting,
    "latency": lambda work: work.delay - work.waiting,
}
MAKERS = ColumnMakers(COLUMNS, {"reach", "before"}, {"op_at", "module_at"})


def work_of(scope: Scope) -> Frame:
    """Return the work of all devices in a scope, in display order."""
    streams: list[str] = []
    gathered: list[WorkDevice] = []
    parts: list[tuple[AnyArray, ...]] = []
    for device in devices(scope.trace):
        if scope.source is not None and scope.source != device.source:
            continue
        lanes = device.lanes if scope.lanes is None else tuple(set(device.lanes) & set(scope.lanes))
        *part, keys = _gather(replace(scope, lanes=lanes, source=device.source), device)
        if len(keys):
            # Keys come in long runs.
            runs = run_starts(keys)
            numbers, which = np.unique(keys[runs], return_inverse=True)
            codes = np.repeat(which + len(streams), np.diff(np.append(runs, len(keys))))
            parts.append((*part, np.full(len(keys), len(gathered)), codes))
            texts = _lane_texts(scope.trace, [key >> 1 for key in numbers.tolist() if not key & 1])
            streams += [texts[key >> 1] if not key & 1 else str(key >> 1) for key in numbers.tolist()]
            gathered.append(_work_device(scope, device, part[0]))
    none = np.empty(0, np.int64)
    columns = [concatenated(column) for column in zip(*parts)] or [none.astype(np.uint32), *[none] * 6]
    return Frame(scope, MAKERS, dict(zip(GIVEN, columns)), devices=gathered, streams=streams)


def _lane_texts(trace: Trace, numbers: Sequence[int]) -> dict[int, str]:
    """Return what streams of a device are called that are known by their lanes alone: the thread, and where
    another one has the same, as in TensorFlow's timeline each stream is a process, the process, too.
    """
    lanes = {number: trace.lanes[number] for number in numbers}
    alike = Counter(lane.tid for lane in lanes.values())
    return {
        number: f"tid {lane.tid}" if alike[lane.tid] == 1 else f"{lane.process.name} tid {lane.tid}".lstrip()
        for number, lane in lanes.items()
    }


def timed_work(scope: Scope) -> Frame:
    """Return the work with usable times; the frame's scope says how much is left out."""
    work = work_of(scope)
    if work.is_timed.all():
        return work
    rows = np.flatnonzero(work.is_timed)
    return replace(work.separate(rows), scope=replace(scope, untimed=len(work) - len(rows)))


def _is_timed(part: Frame) -> AnyArray:
    index = part.index
    if index.column("slices.start")[part.position].all() and not index.length("flags.position"):
        return np.ones(len(part), np.bool_)
    return ~np.isin(part.position, untimed_work(index, part.scope.trace.launches(part.source_number)))


def _is_elsewhere(part: Frame) -> AnyArray:
    return np.isin(part.position, part.scope.trace.on_other_clock(part.source_number))


def _gather(scope: Scope, device: Device) -> tuple[AnyArray, ...]:
    """Return columns of a device's work, last the keys of its streams: `stream` argument, else lane."""
    index = scope.trace.indexes[device.source]
    present = set().union(*(lane_categories(index, scope.trace.lanes[at].rows) for at in device.lanes))
    is_work = category_mask(index, work_of_categories(present))
    allocations = np.empty(0, np.uint32) if scope.allocations else allocations_of(index)
    no_work = np.concatenate([allocations, parts_of_collectives(index)])
    only = flex_work(index) if is_flex(index) else None
    parts: list[tuple[AnyArray, ...]] = []
    for chunk in scope.chunks():
        keep = is_work[chunk.categories]
        if len(no_work):
            keep &= ~np.isin(chunk.names, no_work)
        if only is not None:
            keep &= np.isin(chunk.names, only)
        positions = chunk.positions.astype(np.uint32)
        stream = promoted_of(index, "stream", positions, NEVER)
        keys = np.where(stream != NEVER, stream << 1 | 1, chunk.lanes << 1)
        columns = (positions, chunk.starts, chunk.ends, chunk.names, chunk.categories, keys)
        parts.append(columns if keep.all() else tuple(column[keep] for column in columns))
    return tuple(concatenated(column) for column in zip(*parts)) or (np.empty(0, np.int64),)


def _work_device(scope: Scope, device: Device, positions: AnyArray) -> WorkDevice:
    index, rank = scope.trace.indexes[device.source], scope.trace.rank(device.source)
    if rank is None:
        own = flex_rank(device.pid) if is_flex(index) else None
        rank = rank_of(index, device.source) if own is None else own
    stated = int(promoted_of(index, "device", positions[:1], NEVER)[0])
    number = device.pid if stated == NEVER else stated
    return WorkDevice(device, rank, number if device.number is None else device.number)


def gap_rows(work: Frame) -> Frame:
    """Return the rows that end a gap, by stream and start."""
    return work[np.flatnonzero(work.gap)].in_order()
