"""Seeded whole numbers: the same on every platform and in every Python."""

from __future__ import annotations

MULTIPLIER = 6_364_136_223_846_793_005  # Knuth's MMIX generator
INCREMENT = 1_442_695_040_888_963_407
MASK = (1 << 64) - 1
ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyz0123456789"


class Noise:
    """A linear congruential generator of which only the high bits are used."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * MULTIPLIER + INCREMENT) & MASK

    def below(self, limit: int) -> int:
        """Return a number in 0 … limit - 1."""
        self._state = (self._state * MULTIPLIER + INCREMENT) & MASK
        return (self._state >> 24) % limit

    def around(self, value: int, percent: int = 8) -> int:
        """Return a number within ± percent of a positive value."""
        reach = value * percent // 100
        return value - reach + self.below(2 * reach + 1)

    def word(self, length: int) -> str:
        """Return letters and digits, as in the name of a cached kernel."""
        return "".join(ALPHANUMERIC[self.below(len(ALPHANUMERIC))] for _ in range(length))
