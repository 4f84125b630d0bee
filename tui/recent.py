"""The newest results of work in the background, so that going back to one shows it at once."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Results by key: the oldest goes where there is no room for one more."""

    def __init__(self, room: int) -> None:
        """Hold this many results at most."""
        self._room = room
        self._results: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return a result, None where it never was or went."""
        return self._results.get(key)

    def put(self, key: K, result: V) -> None:
        """Hold a result as the newest."""
        self._results.pop(key, None)
        while len(self._results) >= self._room:
            del self._results[next(iter(self._results))]
        self._results[key] = result

    def clear(self) -> None:
        """Forget all."""
        self._results.clear()
