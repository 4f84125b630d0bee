"""Arguments of device work beside its times: as a column of numbers, or as what tells groups apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..base.errors import UsageError
from ..query.promoted_terms import argument_values
from ..query.scan import json_value_text, number_of
from .groups import Groups, Labels
from .table import ARG, Column, Unit
from .work import Work

HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
NO_VALUE = "(none)"


def argument_key(text: str) -> str:
    """Return the key that `arg:KEY` names; UsageError for anything else."""
    if not text.startswith(ARG) or len(text) == len(ARG):
        raise UsageError(f"{text!r} names no argument: arg:KEY, as arg:bytes")
    return text.removeprefix(ARG)


def by_argument(key: str) -> Callable[[Work, Labels], I64]:
    """Return the grouping of work by an argument's value, work without it in a group of its own."""

    def codes(work: Work, labels: Labels) -> I64:
        values = argument_values(work.index, key, work.positions)
        return labels.codes([NO_VALUE if value is None else json_value_text(value) for value in values])

    return codes


def argument_numbers(work: Work, key: str) -> F64:
    """Return an argument of each slice as a number, NaN where there is none; FLEX writes some as "0x1f"."""
    values = argument_values(work.index, key, work.positions)
    numbers = (
        int(value, 16) if isinstance(value, str) and HEXADECIMAL.fullmatch(value) else number_of(value)
        for value in values
    )
    result: F64 = np.array([np.nan if number is None else float(number) for number in numbers], np.float64)
    return result


def argument_columns(
    works: Sequence[Work], groups: Groups, keys: Sequence[str]
) -> tuple[tuple[Column, ...], Mapping[str, AnyArray]]:
    """Return for each argument two columns: its sum and its mean over those of a group that have it.

    Both are none where no one has. UsageError for an argument that no slice has as a number.
    """
    columns: list[Column] = []
    data: dict[str, AnyArray] = {}
    for key in keys:
        numbers = np.concatenate([np.empty(0), *(argument_numbers(work, key) for work in works)])
        has = ~np.isnan(numbers)
        if len(numbers) and not has.any():
            raise UsageError(f"no kernel has a number as its argument {key!r}")
        count = groups.counts_where(has)
        total = np.bincount(groups.codes[has], weights=numbers[has], minlength=groups.size)
        total = total.astype(np.float64)  # bincount of nothing is of whole numbers
        total[count == 0] = np.nan
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / count
        unit: Unit = "bytes" if key.lower() == "bytes" else "number"
        columns.append(Column(f"{ARG}{key}", key, unit))
        columns.append(Column(f"{ARG}{key}_mean", f"mean {key}", unit, statistic=True))
        data |= {columns[-2].key: total, columns[-1].key: mean}
    return tuple(columns), data
