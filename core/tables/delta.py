"""Two tables of one kind compared: each number as it is now, and by how much it changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from .schema import Column
from .table import ABSENT, Table, Value

PRESENCE = "presence"
BOTH, NEW, GONE = "both", "new", "gone"
"""Where a row is: in both tables, only in the present one, only in the baseline."""


def delta(now: Table, baseline: Table, scope: str = "", steps: str | None = None) -> Table:
    """Return the rows of both tables, each number followed by its change (now - baseline) and, unless it is
    a share, by its relative change (a share of 1; none where the baseline is zero or none). Moments do not
    change.

    Rows are found again by `key_columns`, of equal ones the first by the first. Those of `now` keep their
    order, those that are only in the baseline follow; what a side lacks is zero, of a statistic none. A row
    that is only in the baseline jumps to the baseline's slice. `scope` is what the table says it speaks of,
    both scopes if empty. Given `steps`, the rows of steps that only one side has meet by their names without
    numbers, in order (ProfilerStep#4 and #5); a text that is not empty is the name of further steps. Raises
    ValueError where the tables have two names.
    """
    here, there = now.join(baseline)
    if steps is not None:
        here, there = _with_steps_joined(now, baseline, here, there, steps)
    return _held_against(now, baseline, here, there, scope)


def _with_steps_joined(now: Table, baseline: Table, here: I64, there: I64, steps: str) -> tuple[I64, I64]:
    """Return the joined rows with those of steps that only one side has in one row each."""
    from .step_choice import step_order  # where steps are compared, not when the first frame is drawn

    here, there = here.copy(), there.copy()
    gone: dict[tuple[object, ...], list[int]] = {}
    for at in np.flatnonzero(here == ABSENT).tolist():
        if key := _step_key(baseline, int(there[at]), steps):
            gone.setdefault(key, []).append(at)
    for rows in gone.values():
        rows.sort(key=lambda at: step_order(str(baseline.data["name"][int(there[at])])), reverse=True)
    new = np.flatnonzero(there == ABSENT).tolist() if gone else []
    keys = {at: key for at in new if (key := _step_key(now, int(here[at]), steps)) in gone}
    joined: list[int] = []
    for at in sorted(keys, key=lambda at: step_order(str(now.data["name"][int(here[at])]))):
        if past := gone[keys[at]]:
            joined.append(past.pop())
            there[at] = there[joined[-1]]
    return np.delete(here, joined), np.delete(there, joined)


def _step_key(table: Table, row: int, steps: str) -> tuple[object, ...]:
    """Return what a step's row has in common with those of other steps, nothing of another row."""
    from .step_choice import step_kind

    if "name" not in table.key_columns or "name" not in table.data:
        return ()
    kind = step_kind(str(table.data["name"][row]), steps)
    others = (key for key in table.key_columns if key != "name" and key in table.data)
    return (kind, *(table.data[key][row] for key in others)) if kind else ()


def delta_to_first(now: Table, baseline: Table, scope: str = "") -> Table:
    """Return every row of a table held against the first row of the baseline, whatever it is called: steps
    against one step. Columns, scope and errors are as of `delta`.
    """
    first = 0 if len(baseline) else ABSENT
    return _held_against(now, baseline, np.arange(len(now)), np.full(len(now), first), scope)


def _held_against(now: Table, baseline: Table, here: I64, there: I64, scope: str) -> Table:
    if now.name != baseline.name:
        raise ValueError(f"a table of {now.name} cannot be held against one of {baseline.name}")
    columns: list[Column] = []
    data: dict[str, AnyArray | list[str]] = {}
    for column in _columns(now, baseline):
        columns.append(column)
        if any(isinstance(table.data.get(column.key), list) for table in (now, baseline)):
            data[column.key] = _texts(now, baseline, column.key, here, there)
        elif column.unit == "id" or column.key in now.key_columns:
            data[column.key] = np.where(here == ABSENT, *_key_numbers(now, baseline, column.key, here, there))
        else:
            present, past = _numbers(now, column, here), _numbers(baseline, column, there)
            data[column.key] = present
            if column.moment:
                continue
            more = Column(delta_key(column.key), f"Δ {column.title}", column.unit, column.statistic, True)
            columns.append(more)
            data[more.key] = present - past
            if column.unit != "share":
                more = Column(relative_key(column.key), f"{column.title} ±%", "share", True, True)
                columns.append(more)
                data[more.key] = _relative(present, past)
    columns.append(Column(PRESENCE, "in", "text"))
    data[PRESENCE] = [
        NEW if old == ABSENT else GONE if new == ABSENT else BOTH
        for new, old in zip(here.tolist(), there.tolist())
    ]
    positions, sources = _jumps(now, baseline, here, there)
    return replace(
        now,
        scope=scope or f"{now.scope} against {baseline.scope}",
        columns=tuple(columns),
        data=data,
        totals=_totals(now, baseline),
        notes=tuple(dict.fromkeys((*now.notes, *(f"baseline: {note}" for note in baseline.notes)))),
        positions=positions,
        sources=sources,
    )


def delta_key(key: str) -> str:
    """Return the key of the column that holds another one's change."""
    return f"{key}_delta"


def relative_key(key: str) -> str:
    """Return the key of the column that holds another one's relative change."""
    return f"{key}_relative"


def _columns(now: Table, baseline: Table) -> list[Column]:
    known = {column.key for column in now.columns}
    return [*now.columns, *(column for column in baseline.columns if column.key not in known)]


def _texts(now: Table, baseline: Table, key: str, here: I64, there: I64) -> list[Any]:
    mine, other = now.data.get(key), baseline.data.get(key)
    return [
        mine[new] if mine is not None and new != ABSENT else other[old] if other is not None else ""
        for new, old in zip(here.tolist(), there.tolist())
    ]


def _key_numbers(now: Table, baseline: Table, key: str, here: I64, there: I64) -> tuple[AnyArray, AnyArray]:
    """Return a numeric key column as the baseline and as the present table have it, for all rows."""
    sides = []
    for table, rows in ((baseline, there), (now, here)):
        values = np.asarray(table.data[key])
        sides.append(values[np.maximum(rows, 0)] if len(values) else np.zeros(len(rows), values.dtype))
    return sides[0], sides[1]


def _numbers(table: Table, column: Column, rows: I64) -> AnyArray:
    """Return a column for these rows: zero, of a statistic NaN, where there is no such row or column."""
    has = rows != ABSENT if column.key in table.data else np.zeros(len(rows), np.bool_)
    values = np.asarray(table.data.get(column.key, np.empty(0, np.int64)))
    if values.dtype.kind == "f" or (column.statistic and not has.all()):
        numbers: AnyArray = np.full(len(rows), np.nan if column.statistic else 0.0)
    else:
        numbers = np.zeros(len(rows), np.int64)
    numbers[has] = values[rows[has]]
    return numbers


def _relative(present: AnyArray, past: AnyArray) -> F64:
    shares: F64 = np.full(len(present), np.nan)
    np.divide(present - past, past, out=shares, where=past != 0)
    return shares


def _totals(now: Table, baseline: Table) -> dict[str, Value]:
    totals = dict(now.totals)
    for key, value in now.totals.items():
        past = baseline.totals.get(key)
        if isinstance(value, int | float) and isinstance(past, int | float):
            totals[delta_key(key)] = value - past
    return totals


def _jumps(now: Table, baseline: Table, here: I64, there: I64) -> tuple[AnyArray | None, AnyArray | None]:
    """Return positions and sources of all rows, the baseline's for rows that are only there."""
    if now.positions is None or baseline.positions is None:
        return None, None
    positions, sources = np.zeros(len(here), np.int64), np.zeros(len(here), np.int64)
    for table, which, rows in ((now, here != ABSENT, here), (baseline, here == ABSENT, there)):
        if table.positions is not None:
            positions[which] = table.positions[rows[which]]
            sources[which] = 0 if table.sources is None else table.sources[rows[which]]
    return positions, sources
