"""Numbers for texts that stand in traces again and again: each is looked at once, when it is new."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from ..columns import I64, U32
from ..decode import decode_fast
from ..interning import NeedsExact, json_text
from .stretch import Words

_SMALLEST, _LARGEST = 1 << 14, 1 << 20
_ODD = re.compile(rb'[\x00-\x09\x0b-\x1f"]')
"""What stands in no string as it is, but for the one that texts are joined by."""


class UnsoundError(ValueError):
    """A text is no sound JSON, or the fast decoder is not proof enough of what it means."""


class Numbering:
    """Hash -> number: a table that holds most of them, indexed by their high bits, before a dict of all."""

    def __init__(self) -> None:
        """Begin empty."""
        self._known: dict[int, int] = {}
        self._resize(_SMALLEST)

    def _resize(self, size: int) -> None:
        self._shift = np.uint64(65 - size.bit_length())
        self._hashes = np.zeros(size, np.uint64)  # no hash is 0
        self._numbers = np.zeros(size, np.uint32)
        self._hold(np.array(list(self._known), np.uint64), np.array(list(self._known.values()), np.uint32))

    def _hold(self, hashes: Words, numbers: U32) -> None:
        places = hashes >> self._shift
        self._hashes[places] = hashes
        self._numbers[places] = numbers

    def of(self, hashes: Words, number: Callable[[I64], Sequence[int]]) -> U32:
        """Return a number per hash; `number` gives one to each that is new, by the places of their first."""
        places = (hashes >> self._shift).view(np.int64)  # numpy would make these of other indices first
        numbers: U32 = self._numbers[places]
        missing = np.flatnonzero(self._hashes[places] != hashes)
        if missing.size:
            some, first, each = np.unique(hashes[missing], return_index=True, return_inverse=True)
            known = list(map(self._known.get, some.tolist()))
            new = [i for i, one in enumerate(known) if one is None]
            if new:
                given = number(missing[first[new]])
                self._known.update(zip(some[new].tolist(), given))
                for i, one in zip(new, given):
                    known[i] = one
            found = np.array(known, np.uint32)
            numbers[missing] = found[each]
            if len(self._known) * 4 > len(self._hashes) < _LARGEST:
                self._resize(len(self._hashes) * 4)
            else:
                self._hold(some, found)
        return numbers


class Spellings:
    """The texts and tracks that have been met, numbered."""

    def __init__(self) -> None:
        """Begin with the empty text."""
        self.texts: list[str] = [""]
        self.tracks: list[tuple[str, str]] = []
        self.weight = 0  # roughly the bytes of memory that is used
        self._of_text = Numbering()
        self._of_fixed: dict[tuple[bytes, bool], int] = {}
        self._of_track = Numbering()

    def numbers(self, hashes: Words, raw: Callable[[I64], tuple[Sequence[bytes], Sequence[bool]]]) -> U32:
        """Return a text's number per hash; `raw` gives the bytes at some places, and which of them are
        insides of strings. Raises UnsoundError.
        """
        return self._of_text.of(hashes, lambda places: self._add(*raw(places)))

    def number(self, text: bytes, inside: bool) -> int:
        """Return the number of one text, the inside of a string or any JSON value. Raises UnsoundError."""
        found = self._of_fixed.get((text, inside))
        if found is None:
            found = self._of_fixed[text, inside] = self._add([text], [inside])[0]
        return found

    def _add(self, texts: Sequence[bytes], inside: Sequence[bool]) -> range:
        strings = iter(_insides([text for text, is_inside in zip(texts, inside) if is_inside]))
        new = [next(strings) if is_inside else _value(text) for text, is_inside in zip(texts, inside)]
        self.texts += new
        self.weight += 300 * len(texts) + sum(map(len, texts))
        return range(len(self.texts) - len(new), len(self.texts))

    def track_numbers(self, hashes: Words, raw: Callable[[int], tuple[bytes, bytes]]) -> U32:
        """Return a track's number per hash; `raw` gives the texts of pid and tid. Raises UnsoundError."""

        def number(places: I64) -> range:
            new = [(_json(pid), _json(tid)) for pid, tid in map(raw, places.tolist())]
            self.tracks += new
            self.weight += 500 * len(new)
            return range(len(self.tracks) - len(new), len(self.tracks))

        return self._of_track.of(hashes, number)


class Renumbering:
    """Numbers of one table as those of another, which gets what is asked for alone."""

    def __init__(self, numbers: Callable[[Sequence[int]], Sequence[int]]) -> None:
        """Take what gives numbers their numbers in the other table."""
        self._numbers = numbers
        self._map: I64 = np.full(1, -1, np.int64)

    def of(self, numbers: U32) -> U32:
        """Return the other table's numbers."""
        count = int(numbers.max(initial=0)) + 1
        if count > len(self._map):
            more = np.full(max(count, 2 * len(self._map)), -1, np.int64)
            more[: len(self._map)] = self._map
            self._map = more
        found = self._map[numbers]
        if len(found) and found.min() < 0:
            new = np.unique(numbers[found < 0])
            self._map[new] = self._numbers(new.tolist())
            found = self._map[numbers]
        return found.astype(np.uint32)


def is_spelled(text: bytes, inside: bool) -> bool:
    """Tell whether a text has a number, as the inside of a string or as any JSON value."""
    try:
        _insides([text]) if inside else _value(text)
    except UnsoundError:
        return False
    return True


def _insides(texts: Sequence[bytes]) -> Sequence[str]:
    """Return the strings of which these are the insides, without a backslash."""
    joined = b"\n".join(texts)
    if _ODD.search(joined) or joined.count(b"\n") >= max(1, len(texts)):
        raise UnsoundError("a quote or a control character in a string")
    try:
        return joined.decode().split("\n") if texts else ()
    except UnicodeDecodeError as error:
        raise UnsoundError(str(error)) from error


def _value(text: bytes) -> str:
    """Return strings as they are, null as nothing, others as JSON text."""
    value = _decoded(text)
    return value if type(value) is str else "" if value is None else _text_of(value)


def _json(text: bytes) -> str:
    return _text_of(_decoded(text))


def _decoded(text: bytes) -> object:
    try:
        values = decode_fast(text)
    except (ValueError, RecursionError) as error:
        raise UnsoundError(str(error)) from error
    if len(values) != 1:
        raise UnsoundError("no single value")
    return values[0]


def _text_of(value: object) -> str:
    try:
        return json_text(value, False)
    except NeedsExact as error:
        raise UnsoundError("a number that must be read exactly") from error
