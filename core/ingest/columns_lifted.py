"""Lifting arguments: events with the same category and argument keys are treated alike, as one column each."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .columns import U32, AnyArray, LiftedColumn
from .columns_time import values_of
from .interning import StringTable
from .lifted import GROUPS, LIFTED, Kind

FLUSH_VALUES = 1 << 16
"""Values of one column kept as Python objects before they become an array."""
MOST_SHAPES = 10_000
"""Distinct (category, keys) pairs remembered; traces with keys of their own per event have no bound."""
_DIGITS = re.compile(r"\s*[+-]?\d{1,20}\s*", re.ASCII)
_GROUP_OF = {category: group for group, categories in GROUPS.items() for category in categories}
_BY_KEY = {lifted.key: lifted for lifted in LIFTED}

Plan = tuple[tuple[str, str], ...]
"""Which (lifted key, args key) pairs to take from events of one shape."""
Piece = tuple[str, U32, Sequence[Any]]
"""Values of one lifted key from one block: key, ordinals, values (TEXT: string numbers)."""


class _Column:
    """The values of one lifted argument so far."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.ordinals: list[U32] = []
        self.waiting: list[Any] = []
        self.waiting_ordinals: list[U32] = []
        self.arrays: list[AnyArray] = []

    def add(self, ordinals: U32, values: Sequence[Any]) -> None:
        if self.kind is Kind.TEXT:
            self.ordinals.append(ordinals)
            self.arrays.append(np.asarray(values, np.uint32))
            return
        self.waiting.extend(values)
        self.waiting_ordinals.append(ordinals)
        if len(self.waiting) >= FLUSH_VALUES:
            self.flush()

    def flush(self) -> None:
        if not self.waiting:
            return
        ordinals = np.concatenate(self.waiting_ordinals)
        values = _as_array(self.waiting, self.kind)
        if values is None:
            convert = _integer if self.kind is Kind.INTEGER else _number
            converted = [convert(value) for value in self.waiting]
            keep = np.array([value is not None for value in converted], np.bool_)
            ordinals = ordinals[keep]
            values = np.array([value for value in converted if value is not None], self.kind.value)
        self.ordinals.append(ordinals)
        self.arrays.append(values)
        self.waiting = []
        self.waiting_ordinals = []

    def finish(self) -> LiftedColumn | None:
        self.flush()
        if not self.arrays:
            return None
        ordinals = np.concatenate(self.ordinals)
        values = np.concatenate(self.arrays)
        order = np.argsort(ordinals, kind="stable")
        return LiftedColumn(ordinals[order], values[order]) if ordinals.size else None


def _as_array(values: list[Any], kind: Kind) -> AnyArray | None:
    kinds = set(map(type, values))
    try:
        if kind is Kind.INTEGER:
            return np.array(values, np.int64) if kinds == {int} else None
        if kinds <= {int, float}:
            numbers = np.array(values, np.float64)
            return numbers if np.isfinite(numbers).all() else None
    except OverflowError:
        pass
    return None


def _integer(value: object) -> int | None:
    if type(value) is str and _DIGITS.fullmatch(value):
        value = int(value)
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    return None


def _number(value: object) -> float | None:
    if type(value) is not int and type(value) is not float:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Lifter:
    """Takes the lifted arguments out of a part's timed events."""

    def __init__(self) -> None:
        """Begin empty."""
        self._columns: dict[str, _Column] = {}
        self._numbers: dict[tuple[Any, tuple[str, ...]], int] = {}
        self._plans: list[Plan] = [()]

    def pieces(
        self,
        events: Sequence[dict[str, Any]],
        ordinals: U32,
        categories: Sequence[Any],
        strings: StringTable,
        exact: bool,
    ) -> list[Piece]:
        """Return what one block's timed events have of lifted arguments; nothing is kept before `keep`."""
        pieces: list[Piece] = []
        named = [place for place, event in enumerate(events) if "cname" in event]
        if named:
            self._take(
                pieces, ((("cname", "cname")),), [events[i] for i in named], ordinals[named], strings, exact
            )
        args = values_of(events, "args")
        if set(map(type, args)) != {dict}:
            args = [arguments_of(event) for event in events]
        if len(self._numbers) > MOST_SHAPES:
            self._numbers.clear()
            self._plans = [()]
        shapes = list(zip(categories, map(tuple, args)))
        numbers = self._numbers
        try:
            plan_numbers = np.fromiter(map(numbers.__getitem__, shapes), np.intp, len(shapes))
        except (KeyError, TypeError):
            plan_numbers = np.array([self._plan_number(*shape) for shape in shapes], np.intp)
        order = np.argsort(plan_numbers, kind="stable")
        bounds = np.flatnonzero(np.diff(plan_numbers[order], prepend=-1)).tolist() + [len(shapes)]
        for begin, end in zip(bounds, bounds[1:]):
            places = order[begin:end]
            plan = self._plans[plan_numbers[places[0]]]
            if plan:
                taken = list(map(args.__getitem__, places.tolist()))
                self._take(pieces, plan, taken, ordinals[places], strings, exact)
        return pieces

    def _plan_number(self, category: object, keys: tuple[str, ...]) -> int:
        group = _GROUP_OF.get(category, "other") if type(category) is str else "other"
        shape = (category if type(category) is str else None, keys)
        number = self._numbers.get(shape)
        if number is not None:
            return number
        present = set(keys)
        plan: list[tuple[str, str]] = []
        for lifted in LIFTED:
            if group in lifted.groups:
                key = next((key for key in lifted.args if key and key in present), None)
                if key is not None:
                    plan.append((lifted.key, key))
        number = self._numbers[shape] = len(self._plans) if plan else 0
        if plan:
            self._plans.append(tuple(plan))
        return number

    def _take(
        self,
        pieces: list[Piece],
        plan: Plan,
        sources: Sequence[dict[str, Any]],
        ordinals: U32,
        strings: StringTable,
        exact: bool,
    ) -> None:
        for lifted, key in plan:
            values: Sequence[Any] = list(map(itemgetter(key), sources))
            here = ordinals
            if _BY_KEY[lifted].kind is Kind.TEXT:
                if None in values:
                    present = [place for place, value in enumerate(values) if value is not None]
                    values = [values[place] for place in present]
                    here = ordinals[present]
                values = strings.numbers(values, exact)  # type: ignore[assignment]
            pieces.append((lifted, here, values))

    def keep(self, pieces: Sequence[Piece]) -> None:
        """Add one block's pieces to the columns."""
        for key, ordinals, values in pieces:
            column = self._columns.get(key)
            if column is None:
                column = self._columns[key] = _Column(_BY_KEY[key].kind)
            column.add(ordinals, values)

    def finish(self) -> dict[str, LiftedColumn]:
        """Return the columns that have values, in the order of the lifted table, by ascending ordinal."""
        finished = {key: self._columns[key].finish() for key in _BY_KEY if key in self._columns}
        return {key: column for key, column in finished.items() if column is not None}


def arguments_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event's arguments: `args`, or its synonym `attr`."""
    for key in ("args", "attr"):
        args = event.get(key)
        if type(args) is dict:
            return args
    return {}
