"""Local numbers for strings and tracks while a part is built: a dict lookup per value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import getitem, itemgetter
from typing import Any

import orjson

from .packed import packed_numbers

EXACT_FLOAT = 2.0**53
"""From here on a float from the fast decoder may stand for an integer that had more digits."""
TOO_DEEP = '"(nested too deep)"'
_LARGE_NUMBER = re.compile(rb"\d[eE]\+?[1-9]\d")
_PLAIN = {int, str, type(None)}
"""Types whose equal values have equal JSON texts; 1, 1.0 and True are equal to Python."""


class NeedsExact(Exception):  # noqa: N818 - a request, not an error
    """The fast decoder may have lost digits that count: decode this block with the reference."""


def json_text(value: object, exact: bool) -> str:
    """Return the compact JSON text of a decoded value; NeedsExact where its digits may be lost."""
    if type(value) is float and not exact and abs(value) >= EXACT_FLOAT:
        raise NeedsExact
    try:
        text = orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError):
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
        except (RecursionError, ValueError):
            return TOO_DEEP
    if not exact and type(value) in (list, dict) and _LARGE_NUMBER.search(text) and _has_large_float(value):
        raise NeedsExact
    return text.decode()


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    raise ValueError(f"no JSON value: {type(value).__name__}")


def _has_large_float(value: object) -> bool:
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if type(item) is float and abs(item) >= EXACT_FLOAT:
            return True
        if type(item) is list:
            waiting.extend(item)
        elif type(item) is dict:
            waiting.extend(item.values())
    return False


def looked_up(table: Mapping[Any, int], keys: Sequence[Any]) -> bytes:
    """Return what `table` holds for each key, as uint32; one itemgetter call is the fastest loop over a
    dict.
    """
    if len(keys) < 2:
        return packed_numbers([table[key] for key in keys])
    return packed_numbers(itemgetter(*keys)(table))


class StringTable(dict[str | None, int]):
    """String -> number in order of first appearance; 0 is the empty string, and stands for null."""

    def __init__(self) -> None:
        """Begin with the empty string alone."""
        super().__init__({"": 0, None: 0})
        self.strings = [""]
        self.size = 0
        self._of_json: dict[bytes, int] = {}

    def __missing__(self, text: str | None) -> int:
        """Give a new string the next number; TypeError for anything else."""
        if type(text) is not str:
            raise TypeError("no string")
        number = len(self.strings)
        self.strings.append(text)
        self.size += len(text)
        self[text] = number
        return number

    def add(self, texts: Sequence[str]) -> list[int]:
        """Return a number per text, all at once: most of them are new."""
        new = [text for text in dict.fromkeys(texts) if text not in self]
        self.update(zip(new, range(len(self.strings), len(self.strings) + len(new))))
        self.strings += new
        self.size += sum(map(len, new))
        return [self[text] for text in texts]

    def numbers(self, values: Sequence[Any], exact: bool) -> bytes:
        """Return a number per value, as uint32; null is the empty string, other values go by their JSON
        texts.
        """
        if values and type(values[0]) is list and set(map(type, values)) == {list}:
            return self._numbers_of_lists(values, exact)
        try:
            return looked_up(self, values)
        except TypeError:
            return packed_numbers([self.number(value, exact) for value in values])

    def _numbers_of_lists(self, values: Sequence[list[Any]], exact: bool) -> bytes:
        """Return a number per list, as shapes and grids come by the thousand."""
        texts: list[bytes] = []
        try:
            texts = list(map(orjson.dumps, values))
            return looked_up(self._of_json, texts)
        except (orjson.JSONEncodeError, RecursionError, KeyError):
            pass  # too deep or too large for orjson, or not met before
        numbers = [self.number(value, exact) for value in values]
        for text, number in zip(texts, numbers):
            if not _LARGE_NUMBER.search(text):
                self._of_json[text] = number
        return packed_numbers(numbers)

    def number(self, value: object, exact: bool) -> int:
        """Return the number of one value of any type."""
        if value is None:
            return 0
        return self[value if type(value) is str else json_text(value, exact)]

    def forget(self, count: int) -> None:
        """Keep only the first `count` strings."""
        self._of_json.clear()
        for text in self.strings[count:]:
            self.size -= len(text)
            del self[text]
        del self.strings[count:]


class TrackTable(dict[Any, "_Within"]):
    """pid as decoded -> tid as decoded -> number of the pair of their JSON texts."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self.tracks: list[tuple[str, str]] = []
        self._by_text: dict[tuple[str, str], int] = {}

    def __missing__(self, pid: object) -> _Within:
        """Begin the tracks of another plain pid."""
        within = self[pid] = _Within(self, pid)
        return within

    def number(self, pid: str, tid: str) -> int:
        """Return the number of a pair of JSON texts."""
        number = self._by_text.setdefault((pid, tid), len(self.tracks))
        if number == len(self.tracks):
            self.tracks.append((pid, tid))
        return number

    def numbers(self, pids: Sequence[Any], tids: Sequence[Any], exact: bool) -> bytes:
        """Return the track number per event, as uint32."""
        kinds = set(map(type, pids))
        kinds.update(map(type, tids))
        if not kinds <= _PLAIN:
            texts = [(json_text(pid, exact), json_text(tid, exact)) for pid, tid in zip(pids, tids)]
            return packed_numbers([self.number(pid, tid) for pid, tid in texts])
        if pids.count(pids[0]) == len(pids):
            return looked_up(self[pids[0]], tids)
        return packed_numbers(list(map(getitem, map(self.__getitem__, pids), tids)))

    def forget(self, count: int) -> None:
        """Keep only the first `count` tracks."""
        if count == len(self.tracks):
            return
        self.clear()
        for texts in self.tracks[count:]:
            del self._by_text[texts]
        del self.tracks[count:]


class _Within(dict[Any, int]):
    """tid -> track number within one pid."""

    def __init__(self, tracks: TrackTable, pid: object) -> None:
        super().__init__()
        self._tracks = tracks
        self._pid = json_text(pid, True)

    def __missing__(self, tid: object) -> int:
        number = self[tid] = self._tracks.number(self._pid, json_text(tid, True))
        return number
