"""Section calls of a SambaTune report by hyperfunction (its row) and hypersection, arguments as columns.

Little is public about the report: it is Trace Event JSON with a row for the run of the model and, below it,
one row per hyperfunction; colours stand for the hypersections, arguments hold the rest. Nothing more is
assumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ...base.arrays import F64, I64, distinct, merge, sum_of
from ...base.errors import UsageError
from ...base.safe_text import safe
from ...base.units import format_count
from ...query.args import arguments_read, json_value_text
from ...query.groups import Groups
from ..frame.schema import ARG, Column, TableSchema
from ..frame.scope import Chunk, Scope
from ..frame.table import Table, Tables
from ..frame.table_rows import EXACT_FLOATS, Values

if TYPE_CHECKING:
    from ...trace import Trace

By: TypeAlias = Literal["both", "hyperfunction", "hypersection"]
REPORT = re.compile(r"_chrome_tracing_report\.json(\.\w+)?$", re.IGNORECASE)
HYPERSECTION = re.compile(r"hyper[ _.-]?section", re.IGNORECASE)
IDENTITY = re.compile(r"(^|[ _.-])(id|index|number)$", re.IGNORECASE)
"""Arguments that tell calls apart: their mean means nothing."""
LATENCY = re.compile(r"latency|duration|time|cycles", re.IGNORECASE)
ESTIMATED = re.compile(r"(^|[^a-z])est(imated|\b|_)|predicted", re.IGNORECASE)
MEASURED = re.compile(r"(^|[^a-z])meas(ured|\b|_)|actual", re.IGNORECASE)
UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]|_([munµ]?s|cycles)$", re.IGNORECASE)
MAX_CALLS = 500_000
"""Calls whose arguments are read for one table."""
MAX_ARGUMENTS = 40
"""Arguments that become columns: those that most calls have."""
HOLDERS = "without the rows that hold the calls of others, which no sum counts twice"


def is_report(trace: Trace) -> bool:
    """Tell whether a file of the trace has the name that SambaTune gives its reports."""
    return any(REPORT.search(Path(source.path).name) for source in trace.sources)


def analyse_sections(scope: Scope, by: By = "both", only_report: bool = False) -> Tables:
    """Return section calls by hyperfunction and hypersection; with `only_report` none of other files."""
    if only_report and not is_report(scope.trace):
        scope = replace(scope, lanes=())
    return Tables(scope.text, scope.origin, {"sections": lambda: sections(scope, by)})


def sections(scope: Scope, by: By = "both") -> Table:
    """Return a row per hyperfunction and hypersection, or one of both, in the order of the report's rows.

    A numeric argument's column holds its mean over the calls that have it. Raises UsageError for more calls
    than MAX_CALLS.
    """
    calls = _Calls(scope, by)
    groups, which = _grouped(calls, by)
    size = len(groups)
    stats = Groups(which, size).statistics(calls.durations)
    columns = [Column("count", "calls", "count"), Column("total_ns", "total", "ns")]
    columns += [Column(f"{word}_ns", word, "ns", statistic=True) for word in ("mean", "min", "max")]
    data: dict[str, Values] = {column.key: stats[column.key] for column in columns}
    for column, values in _arguments(calls, which, size):
        columns.append(column)
        data[column.key] = values
    heads = [Column(word, word, "text") for word in ("hyperfunction", "hypersection") if by in ("both", word)]
    for at, column in enumerate(heads):
        data[column.key] = [group[at] for group in groups]
    is_held = ~np.isin(calls.lanes, calls.holders)
    if not is_held.all():
        heads.append(Column("holds", "holds", "text"))
        held = np.bincount(which, is_held, size) > 0
        data["holds"] = ["" if one else "calls of other rows" for one in held.tolist()]
    return Table.from_arrays(
        TableSchema("sections", "Sections", (*heads, *columns)),
        scope.text,
        data,
        totals={"calls": int(np.count_nonzero(is_held)), "total_ns": sum_of(calls.durations[is_held])},
        notes=calls.notes,
        positions=calls.positions[stats["longest"]],
        sources=calls.sources[stats["longest"]],
    )


class _Calls:
    """The section calls of a scope, columns of equal length, and what their arguments say."""

    def __init__(self, scope: Scope, by: By) -> None:
        self.trace = scope.trace
        self.numbers: dict[str, tuple[list[int], list[int | float]]] = {}  # by argument: calls, values
        self.hypersections: list[str] = []
        chunks = list(scope.chunks())
        self.holders = _holders(scope.trace, chunks)
        self.notes: tuple[str, ...] = (HOLDERS,) if len(self.holders) else ()
        if by == "hypersection":
            chunks = [chunk.take(~np.isin(chunk.lanes, self.holders)) for chunk in chunks]
        size = sum(map(len, chunks))
        if size > MAX_CALLS:
            raise UsageError(
                f"reading the arguments of {format_count(size)} slices takes too long (at most "
                f"{format_count(MAX_CALLS)}): narrow the scope by --lanes, --where or --from and --to"
            )
        none = np.empty(0, np.int64)
        sources = (np.full(len(chunk), chunk.source) for chunk in chunks)
        self.durations: I64 = np.concatenate([none, *(chunk.durations for chunk in chunks)])
        self.positions: I64 = np.concatenate([none, *(chunk.positions for chunk in chunks)])
        self.lanes: I64 = np.concatenate([none, *(chunk.lanes for chunk in chunks)])
        self.sources: I64 = np.concatenate([none, *sources])
        for chunk in chunks:
            self._read(chunk, scope)

    def _read(self, chunk: Chunk, scope: Scope) -> None:
        begin = len(self.hypersections)
        texts = [""] * len(chunk)
        known, colours = (chunk.index.column(f"promoted.cname.{what}") for what in ("position", "value"))
        _, here, there = np.intersect1d(chunk.positions, known, return_indices=True)
        for at, colour in zip(here.tolist(), colours[there].tolist()):
            texts[at] = chunk.index.string(colour)
        self.hypersections += texts
        for at, arguments in arguments_read(chunk.index, chunk.positions, scope.cancelled):
            for key, value in _flat(arguments):
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if HYPERSECTION.search(key) and value is not None:
                    self.hypersections[begin + at] = json_value_text(value)
                elif is_number and not IDENTITY.search(key):
                    of, values = self.numbers.setdefault(key, ([], []))
                    of.append(begin + at)
                    values.append(value)


def _holders(trace: Trace, chunks: list[Chunk]) -> I64:
    """Return the lanes that repeat the calls of others, such as the run of the model: the first one of a
    process, or of the trace, if all calls on the others lie within its own.
    """
    none = np.empty(0, np.int64)
    lanes, starts, ends = (
        np.concatenate([none, *(getattr(chunk, key) for chunk in chunks)])
        for key in ("lanes", "starts", "ends")
    )
    everything = range(len(trace.lanes))
    holders = []
    for members in (everything, *(process.lanes for process in trace.processes)):
        here = np.isin(lanes, np.arange(members.start, members.stop))
        own = here & (lanes == lanes[here].min(initial=len(trace.lanes)))
        others = here & ~own
        covered = merge(starts[own], ends[own]).covered(starts[others], ends[others])
        if others.any() and (covered == (ends - starts)[others]).all():
            holders.append(int(lanes[own][0]))
    return distinct(np.array(holders, np.int64))


def _title(trace: Trace, lane: int) -> str:
    """Return what a hyperfunction is called: as its lane, or as its process where that has a name and no lane
    but this, with a name that tells nothing.
    """
    own = trace.lanes[lane]
    alone = sum(trace.lanes[at].slices > 0 for at in own.process.lanes) == 1
    return safe(own.process.name if alone and own.process.name and not own.name else own.title)


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield arguments by key, those inside of others by both keys with a point between."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _grouped(calls: _Calls, by: By) -> tuple[list[tuple[str, ...]], I64]:
    """Return what each group is called, in the order of the lanes, and which group each call is of."""
    kinds = {text: row for row, text in enumerate(dict.fromkeys(calls.hypersections))}
    kind = np.array([kinds[text] for text in calls.hypersections], np.int64)
    lanes = np.zeros(len(kind), np.int64) if by == "hypersection" else calls.lanes
    if by == "hyperfunction":
        kind = np.zeros(len(kind), np.int64)
    pairs, which = np.unique(lanes * max(1, len(kinds)) + kind, return_inverse=True)
    texts = list(kinds)
    groups = []
    for lane, at in (divmod(pair, max(1, len(kinds))) for pair in pairs.tolist()):
        both = _title(calls.trace, lane), safe(texts[at])
        groups.append({"both": both, "hyperfunction": both[:1], "hypersection": both[1:]}[by])
    return groups, which.astype(np.int64)


def _arguments(calls: _Calls, which: I64, size: int) -> Iterator[tuple[Column, Values]]:
    """Yield a column per numeric argument; first estimated, measured latency and what one is of the other."""
    usual = sorted(calls.numbers, key=lambda key: -len(calls.numbers[key][0]))[:MAX_ARGUMENTS]
    keys = [key for key in calls.numbers if key in set(usual)]
    latencies = [key for key in keys if LATENCY.search(key)]
    estimated = next((key for key in latencies if ESTIMATED.search(key)), None)
    measured = next((key for key in latencies if MEASURED.search(key)), None)
    first = [key for key in (estimated, measured) if key is not None]
    for key in first:
        yield Column(f"{ARG}{key}", safe(key), statistic=True), _mean(*calls.numbers[key], which, size)
    if estimated is not None and measured is not None and _unit(estimated) == _unit(measured):
        column = Column("measured_of_estimated", "measured / estimated", statistic=True)
        yield column, _ratio(calls.numbers[measured], calls.numbers[estimated], which, size)
    for key in keys:
        if key not in first:
            yield Column(f"{ARG}{key}", safe(key), statistic=True), _mean(*calls.numbers[key], which, size)


def _unit(key: str) -> str:
    match = UNIT.search(key)
    return "" if match is None else (match[1] or match[2]).lower()


def _mean(of: list[int], values: list[int | float], which: I64, size: int) -> Values:
    group = which[np.array(of, np.int64)]
    if any(abs(value) >= EXACT_FLOATS for value in values):
        return _exact_means(group, values, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: F64 = np.bincount(group, values, size) / np.bincount(group, minlength=size)
    return mean


def _exact_means(group: I64, values: list[int | float], size: int) -> list[int | float | None]:
    """Return the means of numbers that a float would round, such as stamps in ns; None of none."""
    of_groups: list[list[int | float]] = [[] for _ in range(size)]
    for number, value in zip(group.tolist(), values):
        of_groups[number].append(value)
    means: list[int | float | None] = []
    for numbers in of_groups:
        whole, rest = divmod(sum(numbers), len(numbers)) if numbers else (None, 0)
        means.append(sum(numbers) / len(numbers) if rest else whole)
    return means


def _ratio(
    above: tuple[list[int], list[int | float]],
    below: tuple[list[int], list[int | float]],
    which: I64,
    size: int,
) -> F64:
    """Return the sum of one argument by that of another, over the calls that have both."""
    both, one, other = np.intersect1d(above[0], below[0], return_indices=True)
    group = which[both.astype(np.int64)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: F64 = np.bincount(group, np.array(above[1])[one], size) / np.bincount(
            group, np.array(below[1])[other], size
        )
    ratio[~np.isfinite(ratio)] = np.nan
    return ratio
