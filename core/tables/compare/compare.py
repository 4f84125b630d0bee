"""Tables of one kind compared: which rows are the same, how much each number changed, what of it is noise.

compare(now, past)                      rows meet by the key columns of their schema
compare(now, past, by_kind("batch 7"))  rows of alike names meet, too: ProfilerStep#4 and #5, kernels whose
                                        folders have other suffixes
compare(now, past, with_first)          every row against the first one of the past: steps against one step
compare(now, past, noise=noise)         with a verdict on each row: `noise` compares what repeats of it

Whether a change from one run to another is more than noise, told from values that repeat.

Each side gives values of one thing: of each step of a run, or of each of several runs. The test compares
medians, because single steps are often far off (a first step, a garbage collection):

    change = median(now) - median(before)
    error  = sqrt(s_before² / n_before + s_now² / n_now),  s = 1.4826 * MAD * 1.2533
    beyond the noise: |change| > LIMIT * error, with n >= MIN on both sides

MAD is the median distance from the median; times 1.4826 it is the standard deviation of normal values, and
1.2533 (the square root of pi / 2) is how much wider the median of such values scatters than their mean. Where
more than half of the values are equal MAD is 0: then the mean distance from the median times 1.2533 stands
for it, so that a single step that is off is not taken for no noise at all. So it does for three values, where
it is more. With LIMIT = 3 one comparison in
some 400 of unchanged runs is called a change; with few values, where the error itself is uncertain, the limit
is that of Student's distribution for the same share. Sources: Rousseeuw and Croux, Alternatives to the median
absolute deviation, 1993; any table of Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from ...base.arrays import I64, AnyArray, Bools
from ...base.short_names import comparable_name
from ..frame.schema import Column
from ..frame.table import ABSENT, Table, Value
from ..frame.table_rows import Values
from ..frame.text_column import TextColumn

Verdict: TypeAlias = Literal[
    "slower", "faster", "higher", "lower", "within the noise", "noise unknown", "cannot be compared"
]

VERDICTS: Mapping[str, Verdict] = {str(one): one for one in get_args(Verdict)}
"""Verdicts by their texts, as columns hold them."""
MIN = 3
"""The fewest values of a side from which its noise can be estimated."""
LIMIT = 3.0
UNKNOWN: Verdict = "noise unknown"
WITHIN: Verdict = "within the noise"
TEST = "difference of medians beyond 3 standard errors (from MAD; for few values Student's t for 0.27 %)"
"""The test in one line, printed below results."""
FEW = 3
"""Values of which MAD is only the smaller of two distances: their mean distance counts where it is more."""
_STUDENT = {
    2: 19.2, 3: 9.22, 4: 6.62, 5: 5.51, 6: 4.90, 7: 4.53, 8: 4.28, 9: 4.09,
    10: 3.96, 12: 3.76, 15: 3.59, 20: 3.42, 30: 3.27, 60: 3.13,
}  # fmt: skip
"""Degrees of freedom -> two-sided quantile of the share that lies beyond 3 standard deviations (0.27 %)."""


@dataclass(frozen=True)
class Spread:
    """Values of one thing that repeat: their median, and how far they scatter about it.

    A single one is one value of them, in place of the median: a step among the others.
    """

    count: int
    median: float
    deviation: float  # as the standard deviation of normal values; 0 where all are equal
    is_single: bool = False

    @property
    def is_known(self) -> bool:
        return self.count >= MIN

    def of_single(self, value: float) -> Spread:
        """Return a single one of the values, which scatters as all do."""
        return replace(self, median=float(value), is_single=True)

    def error(self, deviation: float) -> float:
        """Return the standard error of the median, of a single one that of a value, if it scatters so."""
        return deviation if self.is_single else 1.2533 * deviation / math.sqrt(self.count)


@dataclass(frozen=True)
class Comparison:
    """One thing on both sides; `error` is of the change, None where the noise of no side is known."""

    before: Spread
    now: Spread
    error: float | None
    limit: float

    @property
    def change(self) -> float:
        return self.now.median - self.before.median

    @property
    def verdict(self) -> Verdict:
        """Slower or faster where the change is beyond the noise."""
        if self.error is None:
            return UNKNOWN
        if abs(self.change) <= self.limit * self.error:
            return WITHIN
        return "slower" if self.change > 0 else "faster"


def spread_of(values: Sequence[float]) -> Spread:
    """Return the median and the scatter of at least one value."""
    from statistics import median  # with decimal and fractions, which ranges of one trace do without

    middle = median(values)
    distances = [abs(value - middle) for value in values]
    deviation = 1.4826 * median(distances)
    mean_distance = sum(distances) / len(distances)
    if not deviation or len(values) <= FEW:
        deviation = max(deviation, 1.2533 * mean_distance)
    return Spread(len(values), float(middle), deviation)


def compare_values(before: Sequence[float], now: Sequence[float]) -> Comparison:
    """Compare what repeats on two sides, at least one value each."""
    return compare_spreads(spread_of(before), spread_of(now))


def compare_spreads(before: Spread, now: Spread) -> Comparison:
    """Compare what repeats on two sides.

    Where one side alone repeats, its noise stands for the other's; where neither does, it is unknown.
    """
    known = [side for side in (before, now) if side.is_known]
    if not known:
        return Comparison(before, now, None, LIMIT)
    errors = [side.error((side if side.is_known else known[0]).deviation) for side in (before, now)]
    freedom = sum(side.count - 1 for side in known)
    return Comparison(before, now, math.hypot(*errors), student_limit(freedom))


def are_within_scatter(before: I64, now: I64) -> Bools:
    """Return which of the steps that two runs have changed by no more than single steps scatter; none where
    that is not known. All are compared at once, each as `compare_spreads` compares single ones.
    """
    if len(before) < MIN:
        return np.zeros(len(before), np.bool_)
    error = math.hypot(*(spread_of(values.tolist()).deviation for values in (before, now)))
    return np.asarray(np.abs(now - before) <= student_limit(2 * (len(before) - 1)) * error, np.bool_)


def student_limit(freedom: int) -> float:
    """Return the limit for so many degrees of freedom, between the entries of the table that of the fewer."""
    if freedom > max(_STUDENT) * 2:
        return LIMIT
    return _STUDENT[max((n for n in _STUDENT if n <= freedom), default=min(_STUDENT))]


Keys: TypeAlias = Callable[[Table, Table], tuple[I64, I64]]
"""Gives for each row of both tables together its row now and in the past, ABSENT for none."""
RowNoise: TypeAlias = "Callable[[str], Comparison | None]"
"""Compares what repeats of a row, by the text in the table's first column; None where nothing does."""
PRESENCE = "presence"
BOTH, NEW, GONE = "both", "new", "gone"
"""Where a row is: in both tables, only in the present one, only in the past."""
VERDICT = Column("verdict", "noise", "text")
ERROR = Column("error_ns", "error of the change", "ns", statistic=True, detail=True)
"""What the noise says of a row's change, and the standard error that it was compared with."""


def compare(
    now: Table, past: Table, keys: Keys = Table.join, noise: RowNoise | None = None, scope: str = ""
) -> Table:
    """Return the rows of both tables, each number followed by its change (now - past) and, unless it is a
    share, by its relative change (a share of 1; none where the past is zero or none). Moments do not change.

    Of equal rows the first meets the first; nodes of trees meet by the names on their paths, and stand depth
    first. Other rows of `now` keep their order, those only in the past follow and jump to its slices; what a
    side lacks is zero, of a statistic none. `scope` is what the table says it speaks of, else both scopes.
    Raises ValueError where the tables have two names.
    """
    if now.name != past.name:
        raise ValueError(f"a table of {now.name} cannot be held against one of {past.name}")
    is_tree = now.key_columns == ("node",)
    parents, here, there = _paths(now, past) if is_tree else (None, *keys(now, past))
    known = {column.key for column in now.columns}
    columns: list[Column] = []
    data: dict[str, Values] = {}
    for column in (*now.columns, *(column for column in past.columns if column.key not in known)):
        key, mine, other = column.key, _cells(now, column, here), _cells(past, column, there)
        columns.append(column)
        is_text = mine.dtype == object or other.dtype == object
        if is_text or column.unit == "id" or key in now.key_columns:
            either = np.where((here != ABSENT) & (key in now.data), mine, other)
            data[key] = either.tolist() if is_text else either
            continue
        data[key] = mine
        if column.moment:
            continue
        columns.append(Column(delta_key(key), f"Δ {column.title}", column.unit, column.statistic, True))
        data[delta_key(key)] = mine - other
        if column.unit != "share":
            columns.append(Column(relative_key(key), f"{column.title} ±%", "share", True, True))
            shares = np.full(len(mine), np.nan)
            data[relative_key(key)] = np.divide(mine - other, other, out=shares, where=other != 0)
    columns.append(Column(PRESENCE, "in", "text"))
    pairs = zip(here.tolist(), there.tolist())
    data[PRESENCE] = [NEW if old == ABSENT else GONE if new == ABSENT else BOTH for new, old in pairs]
    positions, sources = _jumps(now, past, here, there)
    table = replace(
        now,
        scope=scope or f"{now.scope} against {past.scope}",
        columns=tuple(columns),
        data=data,
        totals=_totals(now, past),
        notes=tuple(dict.fromkeys((*now.notes, *(f"baseline: {note}" for note in past.notes)))),
        positions=positions,
        sources=sources,
    )
    if parents is not None:
        table = _depth_first(table, parents)
    return table if noise is None else judged(table, map(noise, table.texts(table.columns[0].key)))


def _paths(now: Table, past: Table) -> tuple[I64, I64, I64]:
    """Return for each path of two trees the path above it, -1 for none, and its row now and in the past."""
    numbers: dict[tuple[int, str], int] = {}
    rows = []
    for table in (now, past):
        of_node, own = {-1: -1}, dict[int, int]()
        nodes = (table.numbers(key).tolist() for key in ("node", "parent"))
        for row, (node, parent, name) in enumerate(zip(*nodes, table.texts("name"))):
            of_node[node] = numbers.setdefault((of_node[parent], name), len(numbers))
            own[of_node[node]] = row
        rows.append(own)
    here, there = (np.array([own.get(path, ABSENT) for path in numbers.values()], np.int64) for own in rows)
    return np.array([parent for parent, _ in numbers], np.int64), here, there


def _depth_first(table: Table, parents: I64) -> Table:
    """Return a compared tree depth first: of the nodes below one those last that are only in the past."""
    from ..host.tree_nodes import depth_first

    depths = np.zeros(len(parents) + 1, np.int64)  # the last one is that of what has no parent
    depths[-1] = -1
    for path, parent in enumerate(parents.tolist()):
        depths[path] = depths[parent] + 1
    data = {**table.data, "node": np.arange(len(parents)), "parent": parents, "depth": depths[:-1]}
    changes = (delta_key("depth"), relative_key("depth"))
    columns = tuple(column for column in table.columns if column.key not in changes)
    return replace(table, columns=columns, data=data).take(
        depth_first(parents, np.argsort(parents, kind="stable"))
    )


def by_kind(steps: str = "") -> Keys:
    """Return keys by which rows that only one side has meet, too: steps of one kind, that is of one name
    without numbers, in the order of the numbers, and names that differ in what each run makes up anew
    (`comparable_name`). A text that is not empty is the name of further steps.
    """

    def keys(now: Table, past: Table) -> tuple[I64, I64]:
        here, there = now.join(past)
        gone = _rows_by_kind(past, there, np.flatnonzero(here == ABSENT), steps)
        new = _rows_by_kind(now, here, np.flatnonzero(there == ABSENT), steps) if gone else {}
        pairs = [pair for kind, rows in new.items() for pair in zip(rows, gone.get(kind, ()))]
        for row, past_row in pairs:
            there[row] = there[past_row]
        joined = [past_row for _, past_row in pairs]
        return np.delete(here, joined), np.delete(there, joined)

    return keys


def _rows_by_kind(table: Table, numbers: I64, rows: I64, steps: str) -> dict[tuple[object, ...], list[int]]:
    """Return some of the joined rows, in order, by what they have in common: the kind of the step or the
    comparable name that their name is, and all other keys. `numbers` has the row of the table for each of all
    joined rows.
    """
    if "name" not in table.key_columns or "name" not in table.data:
        return {}
    from ...trace.step_names import step_kind, step_order

    names = table.texts("name")
    others = [table.data[key] for key in table.key_columns if key != "name" and key in table.data]
    kinds: dict[tuple[object, ...], list[int]] = {}
    for row in rows.tolist():
        at = int(numbers[row])
        step = step_kind(names[at], steps)
        key = (step, "" if step else comparable_name(names[at]), *(values[at] for values in others))
        kinds.setdefault(key, []).append(row)
    for key, alike in kinds.items():
        if key[0]:
            alike.sort(key=lambda row: step_order(names[int(numbers[row])]))
    return kinds


def with_first(now: Table, past: Table) -> tuple[I64, I64]:
    """Return keys by which every row meets the first one of the past, whatever it is called."""
    return np.arange(len(now)), np.full(len(now), 0 if len(past) else ABSENT)


def delta_key(key: str) -> str:
    """Return the key of the column that holds another one's change."""
    return f"{key}_delta"


def relative_key(key: str) -> str:
    """Return the key of the column that holds another one's relative change."""
    return f"{key}_relative"


def _cells(table: Table, column: Column, rows: I64) -> AnyArray:
    """Return a column for these rows: "", zero, of a statistic none where there is no such row or column."""
    values = table.data.get(column.key)
    has = (rows != ABSENT) & (values is not None)
    if isinstance(values, list | TextColumn) or (values is None and column.unit in ("text", "object")):
        texts = np.full(len(rows), "", object)
        for row in np.flatnonzero(has).tolist():
            texts[row] = "" if values is None else values[rows[row]]
        return texts
    numbers = np.empty(0, np.int64) if values is None else np.asarray(values)
    is_key = column.unit == "id" or column.key in table.key_columns
    is_float = numbers.dtype.kind == "f" or (column.statistic and not has.all())
    missing = np.nan if column.statistic and is_float else 0
    cells = np.full(len(rows), missing, numbers.dtype if is_key else np.float64 if is_float else np.int64)
    cells[has] = numbers[rows[has]]
    return cells


def judged(table: Table, of_rows: Iterable[Comparison | None]) -> Table:
    """Return a compared table with what is noise of each row, behind all other columns; None: not known."""
    comparisons = list(of_rows)
    errors = [np.nan if one is None or one.error is None else one.error for one in comparisons]
    verdicts = [UNKNOWN if one is None else one.verdict for one in comparisons]
    data = {**table.data, VERDICT.key: verdicts, ERROR.key: np.array(errors, np.float64)}
    return replace(table, columns=(*table.columns, VERDICT, ERROR), data=data)


def _totals(now: Table, past: Table) -> dict[str, Value]:
    totals = dict(now.totals)
    for key, value in now.totals.items():
        before = past.totals.get(key)
        if isinstance(value, int | float) and isinstance(before, int | float):
            totals[delta_key(key)] = value - before
    return totals


def _jumps(now: Table, past: Table, here: I64, there: I64) -> tuple[AnyArray | None, AnyArray | None]:
    """Return positions and sources of all rows, the past's for rows that are only there."""
    if now.positions is None or past.positions is None:
        return None, None
    positions, sources = np.zeros((2, len(here)), np.int64)
    for table, which, rows in ((now, here != ABSENT, here), (past, here == ABSENT, there)):
        if table.positions is not None:
            positions[which] = table.positions[rows[which]]
            sources[which] = 0 if table.sources is None else table.sources[rows[which]]
    return positions, sources
