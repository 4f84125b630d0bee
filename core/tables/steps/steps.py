"""Step by step: how long each took, what host and device did in it, and where its time went.

Device work counts for the step that launched it (see attribution.py): its time, busy time, span, and what of
it is communication and copies. `idle_ns` is of the window: how long the device did nothing, for whatever
step, while this one lasted on the host. So are TensorBoard's parts (`split_…`), which add up to the
wall time. With `scope.attribute` "window" all columns are of the window, as in HTA.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from ...base.arrays import EMPTY, I64, AnyArray, sum_of
from ...base.units import format_ns
from ...query.groups import Groups, concatenated
from ...query.views import plain
from ...trace.devices import device_word, devices
from ...trace.step_choice import Steps, find_steps
from ..frame.cached import cached_table
from ..frame.frame import Frame
from ..frame.frame_columns import work_of
from ..frame.metrics import Metric, percentile, spread_metrics
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables, Value
from ..frame.table_rows import Values
from .attribution import StepRule, outside_windows, work_in_windows
from .step_length import step_lengths
from .step_sets import ROLES, StepSets

PERCENTILES = (50, 95, 99)
CHIEF = ("step", "source", "process", "length_ns", "wall_ns", "device_busy_ns", "idle_ns", "cpu_busy_ns")
LAUNCH_NOTE = (
    "{word} time belongs to the step that launched it (HTA cuts it at the step's window, as --attribute "
    "window does; TensorBoard lengthens the step to its end); idle is of the step's own window"
)
WINDOW_NOTE = "{word} time is what is in the step's time on the host, as in HTA, whoever launched it"
NOTHING = np.empty(0, np.int64)
RULES = (StepRule.LAUNCH, StepRule.ANNOTATION, StepRule.START)


@dataclass(frozen=True, eq=False)
class _SourceSteps:
    """The steps of one source with their columns, and which of them are in the table."""

    steps: Steps
    rows: I64
    columns: dict[str, AnyArray]
    ahead: float  # by how many steps the host runs ahead at most; 0: it waits for the device


class _Rest(NamedTuple):
    """Device work outside the steps, and time that counts in several steps: busy time where work counts for
    the step that launched it, device time where it counts by window.
    """

    outside_ns: int = 0
    outside_slices: int = 0
    shared_ns: int = 0


def analyse_steps(scope: Scope, groups: bool = False) -> Tables:
    """Return the steps and their groups, or the groups alone."""
    counted = cache(partial(steps, scope))
    tables = {"groups": lambda: step_groups(counted())}
    if not groups:
        tables = {"steps": counted, **tables}
    return Tables(scope.text, scope.origin, tables)


def step_metrics(scope: Scope) -> list[Metric]:
    """Return how many steps there are and their times, by what they are spent on; where several processes of
    a file have steps, their number and sums are those of the one that has most: the others ran beside it.
    """
    table = steps(scope)
    metrics = [Metric("step.count", "count", _most_of_a_process(table, np.ones(len(table), np.int64)))]
    for key in ("length", "wall", "cpu_busy", "device_busy", "idle", "comm", "copy"):
        values = table.numbers(f"{key}_ns") if is_known(table, f"{key}_ns") else NOTHING
        _, total, *others = spread_metrics(f"step.{key}", values)
        metrics += [total._replace(value=_most_of_a_process(table, values) if len(values) else None), *others]
    cadence = np.asarray(table.data["cadence_ns"], np.float64)
    known = np.empty(0, np.int64) if np.isnan(cadence).any() else cadence.astype(np.int64)
    metrics += spread_metrics("step.cadence", known)[2:]
    return [*metrics, Metric("step.ahead", "number", table.totals.get("ahead", 0.0))]


UNKNOWN = ("idle_ns", "device_busy_ns", "device_span_ns")
"""What may not be known of a step: there is no device, or its times are lost or on another clock."""


def is_known(table: Table, key: str) -> bool:
    """Tell whether a column is known of all steps."""
    return not np.isnan(np.asarray(table.data[key], np.float64)).any()


def known_numbers(table: Table, key: str) -> I64:
    """Return the numbers of a column, 0 where it is not known of all steps."""
    return table.numbers(key) if is_known(table, key) else np.zeros(len(table), np.int64)


def _most_of_a_process(table: Table, values: I64) -> int:
    """Return the sum of values over the steps of each file; of its processes, of the one with most."""
    sums: dict[int, dict[Value, int]] = {}
    processes = table.data.get("process", [""] * len(table))
    sources = [0] * len(table) if table.sources is None else table.sources.tolist()
    for source, process, value in zip(sources, processes, values.tolist()):
        of_file = sums.setdefault(source, {})
        of_file[process] = of_file.get(process, 0) + value
    return sum_of(max(of_file.values()) for of_file in sums.values())


def steps(scope: Scope) -> Table:
    """Return the steps that lie in the scope's range wholly."""
    return cached_table(scope, "steps", lambda: _table(scope))


def _table(scope: Scope) -> Table:
    parts, rests = [], [_Rest()]
    for source in scope.sources:
        own = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
        if own is None:
            work = work_of(replace(scope, range=None, source=source, work=None))
            rests.append(_Rest(sum_of(work.dur), len(work)))
            continue
        sets = StepSets(scope, own)
        is_all = scope.attribute == "launch" and scope.where is None and scope.lanes is None
        lengths = step_lengths(scope, own, sets.stepped if is_all else None)
        of_length = {"length_ns": lengths.length, "cadence_ns": lengths.cadence}
        values = step_columns(scope, own, sets) | of_length
        part = _SourceSteps(own, own.within(scope.range), values, float(lengths.ahead.max(initial=0)))
        parts.append(part)
        rests.append(_rest(scope, sets, part.columns))
    rest = _Rest(*map(sum_of, zip(*rests)))
    word = device_word(scope.trace)
    # A log laid over the trace has no slices, and is no source of steps.
    several = sum(index.length("slices.start") > 0 for index in scope.trace.indexes) > 1
    processes = any(len(set(part.steps.processes.tolist())) > 1 for part in parts)
    ahead = max((part.ahead for part in parts), default=0.0)
    own_length = any(
        (part.columns["length_ns"] != part.columns["wall_ns"])[part.rows].any() for part in parts
    )
    unknown = {key for key in UNKNOWN if any(np.isnan(part.columns[key]).any() for part in parts)}
    columns = _titles(scope, word, several, processes, own_length, ahead > 0, unknown)
    data = _values(scope, parts, columns, processes)
    chosen = [part.steps for part in parts]
    totals: dict[str, Value] = {
        "choice": chosen[0].choice if chosen else "",
        "reason": chosen[0].reason if chosen else "nothing repeats here",
        "device": word,
        "attribute": scope.attribute,
        "ahead": ahead,
        **rest._asdict(),
    }
    length = np.asarray(data["length_ns"], np.int64)
    if len(length) > 1:
        totals |= {"first_ns": int(length[0]), "steady_ns": percentile(length[1:], 50)}
    keys = (*(["source"] if several else []), *(["process"] if processes else []), "step")
    return Table.from_arrays(
        TableSchema("steps", "Steps", columns, keys, chief=CHIEF),
        scope.text,
        data,
        totals=totals,
        notes=_notes(scope, chosen, word, rest, data, ahead, own_length),
        positions=concatenated([part.steps.positions[part.rows] for part in parts]),
        sources=concatenated([np.full(len(part.rows), part.steps.source) for part in parts]),
    )


def _values(
    scope: Scope, parts: Sequence[_SourceSteps], columns: Sequence[Column], processes: bool
) -> dict[str, Values]:
    at = [(part.steps, row) for part in parts for row in part.rows.tolist()]
    data: dict[str, Values] = {
        "step": [own.labels[row] for own, row in at],
        "group": [own.groups[row] for own, row in at],
    }
    if processes:
        data["process"] = [_pid(scope, own.source, int(own.processes[row])) for own, row in at]
    for column in columns:
        if column.key not in data:
            data[column.key] = concatenated([part.columns[column.key][part.rows] for part in parts])
    return data


def _rest(scope: Scope, sets: StepSets, columns: dict[str, I64]) -> _Rest:
    """Return the device work outside the steps of a source, and the time that counts in several of them."""
    starts, ends = sets.work.start, sets.work.end
    if scope.attribute == "launch":
        outside = sets.steps_of_work.steps < 0
        inside = ~outside & sets.work.is_timed
        owners, of = np.unique(sets.chosen.processes, return_inverse=True)
        groups = Groups(of[sets.steps_of_work.steps[inside]].astype(np.int64), len(owners))
        busy = sum_of(groups.covered(starts[inside], ends[inside]))
        shared_ns = sum_of(np.nan_to_num(columns["device_busy_ns"]).astype(np.int64)) - busy
        return _Rest(sum_of((ends - starts)[outside]), int(np.count_nonzero(outside)), shared_ns)
    outside_ns = outside_slices = 0
    for part, mask in sets.owned:
        beyond_ns, is_outside = outside_windows(part.chosen, starts[mask], ends[mask])
        outside_ns += sum_of(beyond_ns)
        outside_slices += int(np.count_nonzero(is_outside))
    in_windows = sum_of(ends - starts) - outside_ns
    return _Rest(outside_ns, outside_slices, sum_of(columns["device_ns"]) - in_windows)


def _notes(
    scope: Scope,
    chosen: list[Steps],
    word: str,
    rest: _Rest,
    data: Mapping[str, Values],
    ahead: float,
    own_length: bool,
) -> tuple[str, ...]:
    by_launch = scope.attribute == "launch"
    notes = list(dict.fromkeys(f"steps are {steps.choice}: {steps.reason}" for steps in chosen))
    if ahead and len(data["wall_ns"]):
        wall = percentile(np.asarray(data["wall_ns"], np.int64), 50)
        notes.append(
            f"{host_runs_ahead(wall, ahead)}: a length is from the start of a step's work to the next"
        )
    elif own_length:
        notes.append("a step is as long as its work needs to be done, beyond its time on the host")
    if not chosen:
        notes.append(
            "no steps: neither a profiler nor an engine marked any, and no annotation, function or launch of "
            "a graph repeats as steps do"
        )
    if rest.outside_slices:
        what = f"{rest.outside_slices:,} {word} {'slice' if rest.outside_slices == 1 else 'slices'}"
        why = "belong to no step: launched outside" if by_launch else "are outside the steps, or in part"
        notes.append(f"{what} ({format_ns(rest.outside_ns)}) {why}")
    if np.any(np.asarray(data["device_slices"])):
        notes.append((LAUNCH_NOTE if by_launch else WINDOW_NOTE).format(word=word))
    if rest.shared_ns and by_launch:
        words = f"overlaps by {format_ns(rest.shared_ns)}: busy times add up to more"
        notes.append(f"{word} work of steps {words}")
    elif rest.shared_ns:
        notes.append(f"steps overlap: {format_ns(rest.shared_ns)} of {word} time counts in several of them")
    if by_launch and np.any(
        np.isnan(np.asarray(data["launch_offset_ns"])) & (np.asarray(data["by_launch"]) > 0)
    ):
        lost = "is on another clock than its launches: idle and launch to work are not known"
        notes.append(f"{word} work {lost}")
    return tuple(notes)


def host_runs_ahead(wall_ns: int, ahead: float) -> str:
    """Return what is said of a host that runs so many steps ahead and enqueues one in `wall_ns`."""
    return f"the host enqueues a step in {format_ns(wall_ns)} and runs up to {ahead:.1f} steps ahead"


def _titles(
    scope: Scope,
    word: str,
    several: bool,
    processes: bool,
    own_length: bool,
    is_ahead: bool,
    unknown: Container[str],
) -> tuple[Column, ...]:
    rules = RULES if scope.attribute == "launch" else ()
    return (
        *((Column("source", "Source", "count"),) if several else ()),
        *((Column("process", "Process", "text"),) if processes else ()),
        Column("step", "Step", "text"),
        Column("group", "Group", "text"),
        Column("start_ns", "Start", "ns", moment=True),
        Column("length_ns", "Length", "ns", detail=not own_length),
        Column("cadence_ns", "cadence", "ns", statistic=True, detail=True),
        Column("wall_ns", "Enqueued in" if is_ahead else "Wall", "ns"),
        Column("cpu_busy_ns", "CPU busy", "ns"),
        Column("device_ns", f"{word} time", "ns"),
        Column("device_busy_ns", f"{word} busy", "ns", statistic="device_busy_ns" in unknown),
        Column("device_span_ns", f"{word} span", "ns", statistic="device_span_ns" in unknown),
        Column("idle_ns", f"{word} idle", "ns", statistic="idle_ns" in unknown),
        Column("kernel_ns", f"{word} kernels", "ns"),
        Column("comm_ns", f"{word} comm", "ns"),
        Column("copy_ns", f"{word} copies", "ns"),
        Column("device_slices", f"{word} slices", "count"),
        Column("launch_offset_ns", "Launch to work", "ns", statistic=True),
        *(Column(f"split_{role.lower()}_ns", role, "ns") for role in (*ROLES, "Other")),
        *(Column(f"by_{rule.name.lower()}", f"by {rule.name.lower()}", "count") for rule in rules),
    )


def _pid(scope: Scope, source: int, process: int) -> str:
    index = scope.trace.indexes[source]
    return plain(index.string(int(index.processes["pid"][process])))


def step_columns(scope: Scope, chosen: Steps, sets: StepSets | None = None) -> dict[str, I64]:
    """Return the columns of all steps of a source; of several processes each step has its own's."""
    sets = sets or StepSets(scope, chosen)
    columns: dict[str, I64] = {}
    for rows, own in sets.by_process:
        for key, values in _own_columns(scope, own).items():
            columns.setdefault(key, np.empty(len(chosen), values.dtype))[rows] = values
    if scope.attribute == "launch":
        held = sets.steps_of_work
        columns |= _device_columns(sets.stepped, len(chosen))
        groups, rules = Groups(held.steps[held.steps >= 0], len(chosen)), held.rules[held.steps >= 0]
        columns |= {f"by_{rule.name.lower()}": groups.counts_where(rules == rule) for rule in RULES}
    return columns


def _own_columns(scope: Scope, sets: StepSets) -> dict[str, I64]:
    """Return the columns that describe the windows of the steps."""
    chosen, device = sets.chosen, sets.device
    starts, ends = chosen.starts, chosen.ends
    wall = ends - starts
    columns = {
        "source": np.full(len(chosen), chosen.source, np.int64),
        "start_ns": starts,
        "wall_ns": wall,
        "cpu_busy_ns": sets.host.covered(starts, ends),
        "launch_offset_ns": _launch_offsets(sets, chosen),
    }
    has_device = any(one.source == chosen.source for one in devices(scope.trace))
    is_known = has_device and 2 * np.count_nonzero(sets.work.is_elsewhere) <= len(sets.work)
    columns["idle_ns"] = wall - device.covered(starts, ends) if is_known else np.full(len(chosen), np.nan)
    if scope.attribute == "window":
        columns |= _device_columns(work_in_windows(sets.work, chosen), len(chosen))
        columns["device_span_ns"] = wall
    covered, until_here = EMPTY, np.zeros(len(chosen), np.int64)
    for role in ROLES:
        covered, before = covered.union(sets.roles[role]), until_here
        until_here = covered.covered(starts, ends)
        columns[f"split_{role.lower()}_ns"] = until_here - before
    columns["split_other_ns"] = wall - until_here
    return columns


def _device_columns(work: Frame, count: int) -> dict[str, I64]:
    """Return what the device did for each of so many steps, of which the work tells its own; when it did, as
    far as times are not lost, NaN where all of a step's are.
    """
    work = work[np.flatnonzero(work.step >= 0)]
    groups = Groups(work.step, count)
    columns = {
        "device_ns": groups.sums(work.dur),
        "kernel_ns": groups.sums(np.where(work.is_type("compute", "communication"), work.dur, 0)),
        "device_slices": groups.counts,
    }
    slices = groups.counts
    if not work.is_timed.all():
        work = work[np.flatnonzero(work.is_timed)]
        groups = Groups(work.step, count)
    last = groups.most(work.end, np.iinfo(np.int64).min)
    span = np.where(groups.counts > 0, last - groups.least(work.start), 0)
    is_lost = (slices > 0) & (groups.counts == 0)
    for key, values in (("busy", groups.covered(work.start, work.end)), ("span", span)):
        columns[f"device_{key}_ns"] = np.where(is_lost, np.nan, values) if is_lost.any() else values
    for key, kind in (("comm_ns", "communication"), ("copy_ns", "memory")):
        of_kind = np.flatnonzero(work.is_type(kind))
        columns[key] = Groups(groups.codes[of_kind], count).covered(work.start[of_kind], work.end[of_kind])
    return columns


def _launch_offsets(sets: StepSets, chosen: Steps) -> AnyArray:
    """Return per step the ns from its first launch to its work; NaN for none, or for lost times."""
    work = sets.work[sets.work.launch >= 0]
    at, begun = work.call_start, work.start
    order = np.lexsort((begun, at))
    at, begun, is_elsewhere = at[order], begun[order], work.is_elsewhere[order]
    offsets = np.full(len(chosen), np.nan)
    if len(at):
        first = np.minimum(np.searchsorted(at, chosen.starts, "left"), len(at) - 1)
        inside = (at[first] >= chosen.starts) & (at[first] < chosen.ends)
        offsets[inside] = np.where(is_elsewhere[first], np.nan, begun[first] - at[first])[inside]
    return offsets


def step_groups(table: Table) -> Table:
    """Return lengths by group (prefill, decode, batch size), by process where several have steps."""
    length = table.numbers("length_ns")
    by = [key for key in ("process", "group") if key in table.data]
    pairs = list(zip(*(table.texts(key) for key in by)))
    distinct = list(dict.fromkeys(pairs))
    codes = {pair: number for number, pair in enumerate(distinct)}
    groups = Groups(np.array([codes[pair] for pair in pairs], np.int64), len(distinct))
    lengths = [length[groups.codes == number] for number in range(groups.size)]
    data: dict[str, Values] = {
        **{key: [pair[at] for pair in distinct] for at, key in enumerate(by[:-1])},
        "group": [pair[-1] or "all" for pair in distinct],
        "count": groups.counts,
        "mean_ns": groups.sums(length) // groups.counts,
        **{f"p{p}_ns": np.array([percentile(part, p) for part in lengths], np.int64) for p in PERCENTILES},
        "max_ns": groups.most(length),
    }
    columns = (
        *(Column(key, key.capitalize(), "text") for key in by[:-1]),
        Column("group", "Group", "text"),
        Column("count", "Steps", "count"),
        Column("mean_ns", "Mean", "ns", statistic=True),
        *(Column(f"p{p}_ns", f"p{p}", "ns", statistic=True) for p in PERCENTILES),
        Column("max_ns", "Max", "ns", statistic=True),
    )
    return Table.from_arrays(TableSchema("groups", "Steps by group", columns), table.scope, data)
