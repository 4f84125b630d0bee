"""Lifting arguments: events with the same category group and argument keys are treated alike, by column."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import compress, repeat
from operator import contains, getitem, itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..base.kineto import group_of
from .columns import U32, AnyArray, LiftedColumn
from .columns_time import values_of
from .interning import StringTable
from .lifted import LIFTED, Kind, Lifted, lifted_in
from .packed import packed_floats, packed_integers, packed_numbers

MOST_SHAPES = 5_000
"""Distinct lists of keys remembered; traces with keys of their own per event have no bound."""
_DIGITS = re.compile(r"\s*[+-]?\d{1,20}\s*", re.ASCII)


class _Fill:
    """One lifted argument of all events that have the same lifted arguments."""

    def __init__(self, lifted: Lifted, key: str) -> None:
        self.key = lifted.key
        self.kind = lifted.kind
        self.get = itemgetter(key)
        self.values = bytearray()
        self.count = 0  # values
        self.dropped: list[int] = []  # numbers of values that mean nothing


Plan = tuple[_Fill, ...]
"""What to take from events whose arguments have certain keys."""


class LiftedPieces(NamedTuple):
    """What one block has of lifted arguments; `bytes` are raw native values."""

    codes: bytes = b""  # per timed event the number of its plan, uint32
    fills: Sequence[tuple[_Fill, int, bytes, Sequence[int]]] = ()  # where to, how many, values, dropped ones
    named: Sequence[int] = ()  # places of timed events with a `cname`
    cnames: bytes = b""  # string numbers

    @classmethod
    def joined(cls, pieces: Sequence[LiftedPieces]) -> LiftedPieces:
        """Return the pieces of several groups of events without a `cname`, one behind the other."""
        fills = [fill for one in pieces for fill in one.fills]
        return cls(b"".join(one.codes for one in pieces), fills)


def _converted(
    values: Sequence[Any], kind: Kind, strings: StringTable, exact: bool
) -> tuple[bytes, Sequence[int]]:
    """Return raw values (texts as string numbers) and the places of those that are not of this kind."""
    if kind is Kind.TEXT:
        dropped = [place for place, value in enumerate(values) if value is None] if None in values else ()
        return strings.numbers(values, exact), dropped
    packed = packed_integers(values) if kind is Kind.INTEGER else _packed_finite(values)
    if packed is not None:
        return packed, ()
    convert = _integer if kind is Kind.INTEGER else _number
    numbers = [convert(value) for value in values]
    dropped = [place for place, number in enumerate(numbers) if number is None]
    return np.array([number or 0 for number in numbers], kind.value).tobytes(), dropped


def _packed_finite(values: Sequence[Any]) -> bytes | None:
    packed = packed_floats(values)
    return packed if packed is not None and all(map(math.isfinite, values)) else None


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
    """The keys that arguments in a category group have, in order -> number of the plan."""

    def __init__(self, group: str, lifter: Lifter) -> None:
        super().__init__()
        self._group = group
        self._lifter = lifter

    def __missing__(self, keys: tuple[str, ...]) -> int:
        number = self[keys] = self._lifter.plan(self._group, set(keys))
        return number


class Lifter(dict[Any, _Shapes]):
    """Takes the lifted arguments out of a part's timed events; category -> shapes of its group."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self._shapes: dict[str, _Shapes] = {}
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._plans: list[Plan] = []
        self._codes = bytearray()
        self._named: list[int] = []
        self._cnames = bytearray()

    def __missing__(self, category: object) -> _Shapes:
        """Find a category's group."""
        group = group_of(category)
        shapes = self._shapes.get(group)
        if shapes is None:
            shapes = self._shapes[group] = _Shapes(group, self)
        self[category] = shapes
        return shapes

    def plan(self, group: str, present: Collection[str]) -> int:
        """Return the number of the plan for events of a category group whose arguments have these keys."""
        taken = lifted_in(group, present)
        number = self._numbers.setdefault(tuple((lifted.key, key) for lifted, key in taken), len(self._plans))
        if number == len(self._plans):
            self._plans.append(tuple(_Fill(lifted, key) for lifted, key in taken))
        return number

    def pieces(
        self, events: Sequence[dict[str, Any]], categories: Sequence[Any], strings: StringTable, exact: bool
    ) -> LiftedPieces:
        """Return what one block's timed events have of lifted arguments; nothing is kept before `keep`."""
        named: list[int] = []
        cnames = b""
        if any(map(contains, events, repeat("cname"))):
            named = [place for place, event in enumerate(events) if event.get("cname") is not None]
            cnames = strings.numbers([events[place]["cname"] for place in named], exact)
        args = values_of(events, "args")
        if set(map(type, args)) != {dict}:
            args = [arguments_of(event) for event in events]
        codes = self._codes_of(args, categories)
        fills = []
        for code, alike in _by_code(codes, args):
            for fill in self._plans[code]:
                values = list(map(fill.get, alike))
                fills.append((fill, len(values), *_converted(values, fill.kind, strings, exact)))
        return LiftedPieces(packed_numbers(codes), fills, named, cnames)

    def alike(
        self, category: object, arguments: Collection[str], count: int, values: Mapping[str, bytes]
    ) -> LiftedPieces:
        """Return the pieces of so many events with the same category and keys, given their raw values."""
        code = self.plan(group_of(category), arguments)
        fills = [(fill, count, values[fill.key], ()) for fill in self._plans[code]]
        return LiftedPieces(packed_numbers([code]) * count, fills)

    def _codes_of(self, args: list[dict[str, Any]], categories: Sequence[Any]) -> list[int]:
        """Return the number of the plan per event."""
        if len(self) + sum(map(len, self._shapes.values())) > MOST_SHAPES:
            self.forget()
        try:
            shapes = list(map(self.__getitem__, categories))
        except TypeError:  # a list or an object cannot be looked up
            shapes = [self[category if type(category) is str else None] for category in categories]
        return list(map(getitem, shapes, map(tuple, args)))

    def forget(self) -> None:
        """Forget the shapes that were met."""
        self.clear()
        self._shapes.clear()

    def keep(self, pieces: LiftedPieces) -> None:
        """Add one block's pieces."""
        first = len(self._codes) // 4
        self._codes += pieces.codes
        for fill, count, values, dropped in pieces.fills:
            fill.dropped += [fill.count + place for place in dropped]
            fill.count += count
            fill.values += values
        self._named += [first + place for place in pieces.named]
        self._cnames += pieces.cnames

    def finish(self, ordinals: U32) -> dict[str, LiftedColumn]:
        """Return the columns that have values, in the order of the lifted table, by ascending ordinal, which
        are given for all timed events.
        """
        found: dict[str, list[tuple[U32, AnyArray]]] = {lifted.key: [] for lifted in LIFTED}
        found["cname"].append((ordinals[self._named], np.frombuffer(self._cnames, np.uint32)))
        codes = np.frombuffer(self._codes, np.uint32)
        for code, plan in enumerate(self._plans):
            own = ordinals[codes == code] if plan else ordinals
            for fill in plan:
                values = np.frombuffer(fill.values, fill.kind.value)
                kept = own
                if fill.dropped:
                    kept, values = np.delete(own, fill.dropped), np.delete(values, fill.dropped)
                found[fill.key].append((kept, values))
        return {
            key: _by_ordinal(pieces) for key, pieces in found.items() if any(len(own) for own, _ in pieces)
        }


def _by_code(codes: list[int], args: list[dict[str, Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield each code and the arguments of its events."""
    found = set(codes)
    if len(found) == 1:
        yield codes[0], args
        return
    letters = bytes(codes) if max(found) < 256 else None
    for code in found:
        mask = map(code.__eq__, codes) if letters is None else letters.translate(_is(code))
        yield code, list(compress(args, mask))


@cache
def _is(code: int) -> bytes:
    """Return a table for `bytes.translate`: 1 for one code below 256, 0 for all others."""
    return bytes(code == letter for letter in range(256))


def _by_ordinal(pieces: Sequence[tuple[U32, AnyArray]]) -> LiftedColumn:
    ordinals = np.concatenate([own for own, _ in pieces])
    values = np.concatenate([values for _, values in pieces])
    order = np.argsort(ordinals, kind="stable")
    return LiftedColumn(ordinals[order], values[order])


def arguments_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event's arguments: `args`, or its synonym `attr`."""
    for key in ("args", "attr"):
        args = event.get(key)
        if type(args) is dict:
            return args
    return {}
