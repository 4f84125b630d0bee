"""What options may be given: numbers within bounds, times with units, sizes; wrong ones are usage errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import click

SECOND = 10**9
TIMES: Mapping[str, int] = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "min": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 604_800 * SECOND,
}
"""Units of times, in ns."""


class BoundedNumber(click.ParamType[float]):
    name = "number"

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        """Take numbers from `least` to `most`, both included."""
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a usage error where it is none, too small or too large."""
        try:
            number = self._number(value)
            is_known = isfinite(number)
        except (ValueError, OverflowError):
            is_known = False
        if not is_known:
            self.fail(f"{value!r} is not a {self.name}", param, ctx)
        if self._least is not None and number < self._least:
            self.fail(f"{value} is less than {self._least:g}", param, ctx)
        if self._most is not None and number > self._most:
            self.fail(f"{value} is more than {self._most:g}", param, ctx)
        return number

    def _number(self, value: Any) -> float:
        return float(value)


class WholeNumber(BoundedNumber):
    name = "whole number"

    def __init__(self, least: int = 0, most: int = 10**18) -> None:
        """Take numbers from `least` to `most`, both included."""
        super().__init__(least, most)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what help says in place of the value."""
        return "N"

    def _number(self, value: Any) -> int:
        return int(value)


class Duration(BoundedNumber):
    """A time within bounds, in ns of a unit: a number counts in that unit, 100us, 2ms or 1.5s say theirs."""

    name = "time"
    _WITH_UNIT = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zµ]+)\s*")

    def __init__(self, unit_ns: int, least: float | None = None, most: float | None = None) -> None:
        """Bounds and results count in the unit."""
        super().__init__(least, most)
        self._unit_ns = unit_ns

    def _number(self, value: Any) -> float:
        match = self._WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[2] not in TIMES:
            return float(value)
        return float(match[1]) * TIMES[match[2]] / self._unit_ns


class Size(click.ParamType[int]):
    """A size such as 500M or 20G, or none, in bytes."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes; a usage error where it is no size."""
        from tracelane.core.index.cached import size_of

        size = value if isinstance(value, int) else size_of(str(value))
        if size is None:
            self.fail(f"{value!r} is no size: write 500M, 20G or none", param, ctx)
        return size
