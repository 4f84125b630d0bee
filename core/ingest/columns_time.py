"""The `ts` and `dur` of a block's events as exact ns: by formula where that is proof, else from the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.exact import ns_from_floats, ns_from_text, ns_from_texts, ns_of
from .columns import I64, TIME_LIMIT
from .interning import NeedsExact
from .packed import packed_floats, packed_integers

LARGEST_INTEGER = (1 << 62) // 1000
"""Integer µs up to here become ns within TIME_LIMIT by one multiplication."""
_TEXTS = {key: re.compile(rb'"%s"\s*:\s*(-?[0-9][0-9.eE+-]*)?' % key.encode()) for key in ("ts", "dur")}
"""A key inside a JSON string would have its quotes escaped, so every match is a key of some object."""
_DOT, _MINUS, _PLUS, _EXPONENT = b".-+e"
_ZERO = np.uint8(ord("0"))
_LARGE_DIGITS = 13
"""Digits before the dot of a number from CONCLUSIVE to SPLITTABLE."""
_LARGE_DECIMALS = 4


@dataclass(frozen=True)
class Times:
    """Times of one key: ns within ±TIME_LIMIT, which are usable (None: all), exact ns of clamped ones."""

    ns: I64
    usable: npt.NDArray[np.bool_] | None = None
    clamped: dict[int, int] = field(default_factory=dict)


class BlockTexts:
    """What the bytes of a block say of its `ts` and `dur` numbers beyond their float values."""

    def __init__(self, data: bytes, events: Sequence[dict[str, Any]], *, guess: bool = False) -> None:
        """Take a block's bytes and its events that are objects; nothing is searched yet.

        `guess`: there is no better decoding to ask for; a float then stands for its shortest decimal.
        """
        self._data = data
        self._events = events
        self._guess = guess

    def written(self, key: str, events: Sequence[dict[str, Any]]) -> list[bytes]:
        """Return the text of `key` per event of a subset, b"" where it is no number.

        NeedsExact where the keys found do not stand one in each event (nested, doubled or escaped keys).
        """
        found = written_times(key, self._data)
        places = [place for place, event in enumerate(self._events) if key in event]
        if found is None or len(places) != len(found):
            if not self._guess:
                raise NeedsExact
            return [repr(event[key]).encode() if type(event.get(key)) is float else b"" for event in events]
        if events is self._events and len(places) == len(events):
            return found
        by_owner = {id(self._events[place]): text for place, text in zip(places, found)}
        return [by_owner.get(id(event), b"") for event in events]

    def large_are_short(self) -> bool:
        """Whether no number from CONCLUSIVE on has more than 3 decimals, proved from the bytes."""
        return are_short(self._data)


def written_times(key: str, data: bytes) -> list[bytes] | None:
    """Return the texts of a key's numbers, wherever they stand; None where keys may be written otherwise."""
    return _TEXTS[key].findall(data) if _has_plain_keys(data) else None


def _has_plain_keys(data: bytes) -> bool:
    """Whether no key can be written with escaped letters."""
    return b"\\" not in data or b"\\u00" not in data


def are_short(data: bytes) -> bool:
    """Whether no number from CONCLUSIVE on has more than 3 decimals, proved from its bytes.

    Written without exponent, such a number has 13 digits before its dot and 4 behind it. With one, it
    has a negative exponent, or its dot is followed by 5 digits at least, up to the exponent.
    """
    letters = np.frombuffer(data, np.uint8)
    digits = (letters - _ZERO) <= 9  # other letters wrap to more
    dotted = letters[_LARGE_DIGITS:-_LARGE_DECIMALS] == _DOT
    dotted &= digits[_LARGE_DIGITS + _LARGE_DECIMALS :]
    dots = np.flatnonzero(dotted) + _LARGE_DIGITS
    for step in range(_LARGE_DIGITS, 0, -1):  # the farthest decides nearly always
        dots = dots[digits[dots - step]]
        if not dots.size:
            break
    for step in range(1, _LARGE_DECIMALS):
        dots = dots[digits[dots + step]]
    if dots.size:
        return False
    marks = (letters[1:-1] | 32) == _EXPONENT
    marks &= digits[:-2]
    exponents = np.flatnonzero(marks) + 1
    following = letters[exponents + 1]
    exponents = exponents[digits[exponents + 1] | (following == _MINUS) | (following == _PLUS)]
    return not any(_is_long(data, place) for place in exponents.tolist())


def _is_long(data: bytes, exponent: int) -> bool:
    """Tell whether what looks like a number with an exponent has a negative one, or more than 3 decimals."""
    if data[exponent + 1] == _MINUS:
        return True
    digits = exponent
    while digits and chr(data[digits - 1]) in "0123456789":
        digits -= 1
    return digits > 0 and data[digits - 1] == _DOT and exponent - digits > _LARGE_DECIMALS


def values_of(events: Sequence[dict[str, Any]], key: str) -> list[Any]:
    """Return one key's value per event, None where it is absent."""
    try:
        return list(map(itemgetter(key), events))
    except KeyError:
        return [event.get(key) for event in events]


def columns_of_keys(events: Sequence[dict[str, Any]], keys: tuple[str, ...]) -> list[Sequence[Any]]:
    """Return several keys' values per event, each as one sequence; None where a key is absent."""
    if len(keys) == 1:
        return [values_of(events, keys[0])]
    try:
        return list(zip(*map(itemgetter(*keys), events)))
    except KeyError:
        return [values_of(events, key) for key in keys]


def durations(events: Sequence[dict[str, Any]], texts: BlockTexts) -> tuple[Times, int]:
    """Return the durations of complete events, and how many have none, which then is 0."""
    values = values_of(events, "dur")
    times = exact_times("dur", events, values, texts)
    if times.usable is None:
        return times, 0
    missing = np.array([value is None for value in values], np.bool_)
    usable = times.usable | missing
    return Times(times.ns, None if usable.all() else usable, times.clamped), int(missing.sum())


def exact_times(
    key: str, events: Sequence[dict[str, Any]], values: Sequence[Any], texts: BlockTexts
) -> Times:
    """Return the times that the values of `key` mean; bytes are searched only where values leave a doubt."""
    integers = packed_integers(values) if type(values[0]) is int else None
    if integers is not None:
        whole = np.frombuffer(integers, np.int64)
        if whole.max() <= LARGEST_INTEGER and whole.min() >= -LARGEST_INTEGER:
            return Times(whole * 1000)
    floats = packed_floats(values)
    if floats is not None:
        micros = np.frombuffer(floats, np.float64)
        ns, unsure = ns_from_floats(micros, texts.large_are_short)
        if unsure is None:
            return Times(ns)
        if not np.isfinite(micros).all():
            return _one_by_one(key, events, values, texts)
        written = texts.written(key, events)
        if unsure.all():
            return _from_texts(written)
        places = np.flatnonzero(unsure)
        better = _from_texts([written[place] for place in places.tolist()])
        ns[places] = better.ns
        return Times(ns, None, {int(places[i]): exact for i, exact in better.clamped.items()})
    return _one_by_one(key, events, values, texts)


def _from_texts(texts: Sequence[bytes]) -> Times:
    ns = ns_from_texts(texts)
    if ns is not None:
        return Times(ns)
    return _clamp([ns_from_text(text.decode()) for text in texts])


def _one_by_one(
    key: str, events: Sequence[dict[str, Any]], values: Sequence[Any], texts: BlockTexts
) -> Times:
    """Return the times of values of any types; only floats that leave a doubt ask for their texts."""
    exact: list[int | None] = [None if type(value) is float else ns_of(value) for value in values]
    finite = [place for place, value in enumerate(values) if type(value) is float and isfinite(value)]
    if finite:
        ns, unsure = ns_from_floats(np.array([values[place] for place in finite], np.float64))
        written = None if unsure is None else texts.written(key, events)
        for i, place in enumerate(finite):
            if unsure is not None and written is not None and unsure[i]:
                exact[place] = ns_from_text(written[place].decode())
            else:
                exact[place] = int(ns[i])
    return _clamp(exact)


def _clamp(exact: Sequence[int | None]) -> Times:
    usable = np.array([value is not None for value in exact], np.bool_)
    clamped = {
        place: value for place, value in enumerate(exact) if value is not None and abs(value) > TIME_LIMIT
    }
    ns = np.array([max(-TIME_LIMIT, min(TIME_LIMIT, value or 0)) for value in exact], np.int64)
    return Times(ns, None if usable.all() else usable, clamped)
