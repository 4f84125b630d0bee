"""Answers about an object that are remembered for as long as the object is there."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary, ref

One = TypeVar("One")
More = ParamSpec("More")
Answer = TypeVar("Answer")


def cached_per_object(
    maxsize: int = 1,
) -> Callable[[Callable[Concatenate[One, More], Answer]], Callable[Concatenate[One, More], Answer]]:
    """Remember what a function says of its first argument: the latest `maxsize` answers for each object, by
    the other arguments. Once nobody else has an object nothing of it is held, no open file and no map of an
    index. An answer must not hold the object itself.
    """

    def decorated(
        function: Callable[Concatenate[One, More], Answer],
    ) -> Callable[Concatenate[One, More], Answer]:
        known: WeakKeyDictionary[One, Callable[More, Answer]] = WeakKeyDictionary()

        @wraps(function)
        def answer(one: One, *args: More.args, **kwargs: More.kwargs) -> Answer:
            own = known.get(one)
            if own is None:
                own = known.setdefault(one, _of_one(function, ref(one), maxsize))
            return own(*args, **kwargs)

        return cast("Callable[Concatenate[One, More], Answer]", answer)

    return decorated


def _of_one(
    function: Callable[Concatenate[One, More], Answer], reference: ref[One], maxsize: int
) -> Callable[More, Answer]:
    @lru_cache(maxsize=maxsize)
    def answer(*args: More.args, **kwargs: More.kwargs) -> Answer:
        one = reference()
        assert one is not None, "the caller has it"
        return function(one, *args, **kwargs)

    return cast("Callable[More, Answer]", answer)
