"""Lifting arguments: events with the same category group and argument keys are treated alike, by column."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import U32, AnyArray, LiftedColumn
from .columns_time import columns_of_keys, values_of
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
            return np.fromiter(values, np.int64, len(values)) if kinds == {int} else None
        if kinds <= {int, float}:
            numbers = np.fromiter(values, np.float64, len(values))
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


def _alike(codes: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    """Return the places of each code, in the order of the codes."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    return np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def _groups_of(categories: U32, strings: StringTable) -> U32:
    """Return the number of the category group per event."""
    table = np.zeros(int(categories.max()) + 1, np.uint32)
    first = int(categories[0])
    for number in [first] if (categories == first).all() else set(categories.tolist()):
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
        codes = looked_up(self._shapes, list(map(tuple, args))).astype(np.intp) * len(_GROUP_NAMES)
        codes += _groups_of(categories, strings)
        for places in _alike(codes):
            code = int(codes[places[0]])
            plan = self._plans.get(code)
            if plan is None:
                group = _GROUP_NAMES[code % len(_GROUP_NAMES)]
                plan = self._plans[code] = _plan(group, set(args[places[0]]))
            if plan:
                alike = args if len(places) == len(args) else itemgetter(*places.tolist(), 0)(args)[:-1]
                self._take(pieces, plan, alike, ordinals[places], strings, exact)
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
        columns = columns_of_keys(sources, tuple(key for _, key in plan))
        for (lifted, _), values in zip(plan, columns):
            self._piece(pieces, lifted, ordinals, values, strings, exact)

    def _piece(
        self,
        pieces: list[Piece],
        lifted: str,
        ordinals: U32,
        values: Sequence[Any],
        strings: StringTable,
        exact: bool,
    ) -> None:
        """Add one argument of some events; texts become string numbers, null counts as absent."""
        if _BY_KEY[lifted].kind is not Kind.TEXT:
            pieces.append((lifted, ordinals, values))
            return
        if type(None) in set(map(type, values)):
            present = [place for place, value in enumerate(values) if value is not None]
            values = [values[place] for place in present]
            ordinals = ordinals[present]
        pieces.append((lifted, ordinals, strings.numbers(values, exact)))  # type: ignore[arg-type]

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
