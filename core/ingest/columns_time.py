"""The `ts` and `dur` of a block's events as exact ns: by formula where that is proof, else from the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.exact import ns_from_floats, ns_from_text, ns_from_texts, ns_of
from .columns import I64, TIME_LIMIT
from .interning import NeedsExact

LARGEST_INTEGER = (1 << 62) // 1000
"""Integer µs up to here become ns within TIME_LIMIT by one multiplication."""
_TEXTS = {key: re.compile(rb'"%s"\s*:\s*(-?[0-9][0-9.eE+-]*)?' % key.encode()) for key in ("ts", "dur")}
"""A key inside a JSON string would have its quotes escaped, so every match is a key of some object."""

Texts = Callable[[], Sequence[bytes]]


@dataclass(frozen=True)
class Times:
    """Times of one key: ns within ±TIME_LIMIT, which are usable (None: all), and the exact ns of clamped ones."""

    ns: I64
    usable: npt.NDArray[np.bool_] | None = None
    clamped: dict[int, int] = field(default_factory=dict)


class BlockTexts:
    """The number texts of a block's `ts` and `dur` keys, brought together with its events when asked for."""

    def __init__(self, data: bytes, events: Sequence[dict[str, Any]]) -> None:
        """Take a block's bytes and its events that are objects; nothing is searched yet."""
        self._data = data
        self._events = events
        self._found: dict[str, list[bytes]] = {}

    def of(self, key: str, events: Sequence[dict[str, Any]]) -> list[bytes]:
        """Return the text of `key` per event of a subset, b"" where it is no number.

        NeedsExact where the keys found do not stand one in each event (nested, doubled or escaped keys).
        """
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _TEXTS[key].findall(self._data)
        owners = [event for event in self._events if key in event]
        if len(owners) != len(found) or (b"\\" in self._data and b"\\u00" in self._data):
            raise NeedsExact
        by_owner = dict(zip(map(id, owners), found))
        return [by_owner.get(id(event), b"") for event in events]


def values_of(events: Sequence[dict[str, Any]], key: str) -> list[Any]:
    """Return one key's value per event, None where it is absent."""
    try:
        return list(map(itemgetter(key), events))
    except KeyError:
        return [event.get(key) for event in events]


def exact_times(values: Sequence[Any], texts: Texts) -> Times:
    """Return the times that decoded values mean; `texts` yields their texts, asked for only where needed."""
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            whole = np.array(values, np.int64)
        except OverflowError:
            return _one_by_one(values, texts)
        if whole.max() <= LARGEST_INTEGER and whole.min() >= -LARGEST_INTEGER:
            return Times(whole * 1000)
        return _one_by_one(values, texts)
    if kinds != {float} and kinds != {float, int}:
        return _one_by_one(values, texts)
    try:
        micros = np.array(values, np.float64)
    except OverflowError:
        return _one_by_one(values, texts)
    if not np.isfinite(micros).all():
        return _one_by_one(values, texts)
    ns, unsure = ns_from_floats(micros)
    if unsure is None:
        return Times(ns)
    written = texts()
    if not unsure.all():
        places = np.flatnonzero(unsure)
        written = [written[place] for place in places.tolist()]
        better = _from_texts(written)
        ns[places] = better.ns
        return Times(ns, None, {int(places[i]): exact for i, exact in better.clamped.items()})
    return _from_texts(written)


def _from_texts(texts: Sequence[bytes]) -> Times:
    ns = ns_from_texts(texts)
    if ns is not None:
        return Times(ns)
    return _clamp([ns_from_text(text.decode()) for text in texts])


def _one_by_one(values: Sequence[Any], texts: Texts) -> Times:
    """Return the times of values of any types; only floats that leave a doubt ask for their texts."""
    exact: list[int | None] = [None if type(value) is float else ns_of(value) for value in values]
    floats = [place for place, value in enumerate(values) if type(value) is float]
    finite = [place for place in floats if np.isfinite(values[place])]
    if finite:
        ns, unsure = ns_from_floats(np.array([values[place] for place in finite], np.float64))
        written = None if unsure is None else texts()
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
