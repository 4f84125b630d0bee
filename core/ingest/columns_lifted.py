"""Lifting arguments: events with the same category group and argument keys are treated alike, by column."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from .columns import U32, AnyArray, LiftedColumn
from .columns_time import values_of
from .interning import StringTable, looked_up
from .lifted import GROUPS, LIFTED, Kind

FLUSH_VALUES = 1 << 16
"""Values of one column kept as Python objects before they become an array."""
MOST_SHAPES = 10_000
"""Distinct lists of keys remembered; traces with keys of their own per event have no bound."""
_DIGITS = re.compile(r"\s*[+-]?\d{1,20}\s*", re.ASCII)
_GROUP_OF = {category: group for group, categories in GROUPS.items() for category in categories}
_GROUP_NAMES = tuple(GROUPS)
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


class _Shapes(dict[tuple[str, ...], int]):
    """The keys that events' arguments have, in order -> number."""

    def __missing__(self, keys: tuple[str, ...]) -> int:
        number = self[keys] = len(self)
        return number


def _plan(group: str, present: set[str]) -> Plan:
    """Return what to take from events of a category group whose arguments have these keys."""
    plan: list[tuple[str, str]] = []
    for lifted in LIFTED:
        key = next((key for key in lifted.args if key and key in present), None)
        if key is not None and group in lifted.groups:
            plan.append((lifted.key, key))
    return tuple(plan)


def _groups_of(categories: U32, strings: StringTable) -> U32:
    """Return the number of the category group per event."""
    table = np.zeros(int(categories.max()) + 1, np.uint32)
    for number in set(categories.tolist()):
        table[number] = _GROUP_NAMES.index(_GROUP_OF.get(strings.strings[number], "other"))
    return table[categories]


class Lifter:
    """Takes the lifted arguments out of a part's timed events."""

    def __init__(self) -> None:
        """Begin empty."""
        self._columns: dict[str, _Column] = {}
        self._shapes = _Shapes()
        self._plans: dict[int, Plan] = {}

    def pieces(
        self,
        events: Sequence[dict[str, Any]],
        ordinals: U32,
        categories: U32,
        strings: StringTable,
        exact: bool,
    ) -> list[Piece]:
        """Return what one block's timed events have of lifted arguments; nothing is kept before `keep`."""
        pieces: list[Piece] = []
        named = [place for place, event in enumerate(events) if "cname" in event]
        if named:
            named_events = [events[place] for place in named]
            self._take(pieces, (("cname", "cname"),), named_events, ordinals[named], strings, exact)
        args = values_of(events, "args")
        if set(map(type, args)) != {dict}:
            args = [arguments_of(event) for event in events]
        if len(self._shapes) > MOST_SHAPES:
            self._shapes.clear()
            self._plans.clear()
        codes = looked_up(self._shapes, list(map(tuple, args))) * np.uint32(len(_GROUP_NAMES))
        codes += _groups_of(categories, strings)
        order = np.argsort(codes, kind="stable")
        sorted_codes = codes[order]
        bounds = [0, *(np.flatnonzero(sorted_codes[1:] != sorted_codes[:-1]) + 1).tolist(), len(codes)]
        for begin, end in pairwise(bounds):
            code = int(sorted_codes[begin])
            plan = self._plans.get(code)
            if plan is None:
                group = _GROUP_NAMES[code % len(_GROUP_NAMES)]
                plan = self._plans[code] = _plan(group, set(args[order[begin]]))
            if plan:
                places = order[begin:end]
                taken = args if len(places) == len(args) else [args[place] for place in places.tolist()]
                self._take(pieces, plan, taken, ordinals[places], strings, exact)
        return pieces

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
