"""Answers about names that are held, in memory that no trace's names can fill."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

SHORT_NAMES, MAX_SHORT = 1 << 14, 512
LONG_NAMES, MAX_LONG = 256, 8192
"""Of so many names, of at most so many characters, answers are held: 8 and 2 MB of names at most. Templates
make names of some thousand characters, of which a program has a few hundred; longer ones are asked anew.
"""


def held_by_name(answer: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
    """Hold what a function answers of the names that were asked last; all its texts count as the name."""
    of_short = cast("Callable[Concatenate[str, P], R]", lru_cache(SHORT_NAMES)(cast("Any", answer)))
    of_long = cast("Callable[Concatenate[str, P], R]", lru_cache(LONG_NAMES)(cast("Any", answer)))

    @wraps(answer)
    def held(name: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        length = len(name)
        for more in args:
            if type(more) is str:
                length += len(more)
        if length <= MAX_SHORT:
            return of_short(name, *args, **kwargs)
        return (of_long if length <= MAX_LONG else answer)(name, *args, **kwargs)

    return held
