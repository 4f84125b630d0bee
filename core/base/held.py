"""Answers about names that are held, in memory that no trace's names can fill."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

SHORT_NAMES, MAX_SHORT = 1 << 14, 512
"""Of so many names, of at most so many characters, answers are held: of 8 MB at most."""
LONG_TEXT, MAX_LONG = 2 << 20, 1 << 17
"""So many characters have the longer names whose answers are held, each at most so many; then all are asked
anew. Templates make names of some thousand, of which a program has a few hundred.
"""


def held_by_name(answer: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
    """Hold what a function answers of the names that were asked last; all its texts count as the name."""
    of_short = cast("Callable[Concatenate[str, P], R]", lru_cache(SHORT_NAMES)(cast("Any", answer)))
    of_long: dict[Any, R] = {}
    room = LONG_TEXT

    def long(length: int, name: str, *args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal room
        key = (name, args, *kwargs.items())
        try:
            return of_long[key]
        except KeyError:  # another thread may clear it at any time
            value = answer(name, *args, **kwargs)
        if room < length:
            of_long.clear()
            room = LONG_TEXT
        of_long[key] = value
        room -= length
        return value

    @wraps(answer)
    def held(name: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        length = len(name)
        for more in args:
            if type(more) is str:
                length += len(more)
        if length <= MAX_SHORT:
            return of_short(name, *args, **kwargs)
        return long(length, name, *args, **kwargs) if length <= MAX_LONG else answer(name, *args, **kwargs)

    return held
