"""Limits on metrics, and values with units, as they are typed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.base.private import read_regular, reason_of
from tracelane.core.export.formats import text_in_unit
from tracelane.core.tables.metrics import Metric
from tracelane.core.tables.schema import Column

from .ci_reports import CheckResult
from .values import TIMES

UNITS: Mapping[str, float] = {
    "": 1.0,
    **{unit: TIMES[unit] for unit in ("ns", "us", "µs", "ms", "s", "min")},
    "%": 0.01,
    "b": 1.0,
    "kib": 2.0**10,
    "mib": 2.0**20,
    "gib": 2.0**30,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
}
NEEDED = {"ns": ("ns", "us", "µs", "ms", "s", "min"), "share": ("%",)}
"""Units that a value of a time or a share is written with."""
EXAMPLES = {"ns": "a time, as 250ms", "share": "a share, as 80% or 0.8"}
MOST_BYTES = 1 << 20
"""No file of limits is longer."""
DEEPEST = 8
"""No name of a metric has more dots."""
DEFAULT_METRICS = ("kernels.time", "step.wall.median", "ops.self_cpu")
"""The first of these that both sides have is what --fail-above holds to, where --metric does not say: the
time of kernels, without copies and memsets, repeats where walls of the host do not.
"""
_VALUE = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?)\s*([a-zµ%]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Limit:
    """A bound on a metric."""

    metric: str
    value: float
    at_most: bool
    typed: str  # the value as it was written

    def check_unit(self, metric: Metric) -> None:
        """Raise UsageError where the value does not carry the unit that its metric needs."""
        check_unit(self.metric, self.typed, metric.unit)

    def is_kept(self, metric: Metric) -> bool:
        """Tell whether a metric keeps the limit; one that the trace has nothing for does not."""
        if metric.value is None:
            return False
        return metric.value <= self.value if self.at_most else metric.value >= self.value

    def text(self, metric: Metric) -> str:
        column = Column(metric.name, metric.name, metric.unit)
        value = "nothing of it in the trace" if metric.value is None else text_in_unit(column, metric.value)
        bound = int(self.value) if self.value.is_integer() else self.value
        side = "at most" if self.at_most else "at least"
        return f"{self.metric} {value}, {side} {text_in_unit(column, bound)}"

    def result(self, metric: Metric) -> CheckResult:
        return CheckResult(self.metric, self.text(metric), not self.is_kept(metric))

    def row(self, metric: Metric) -> dict[str, object]:
        bound = "max" if self.at_most else "min"
        return {"metric": self.metric, "value": metric.value, bound: self.value, "kept": self.is_kept(metric)}


def parse_limit(text: str, at_most: bool) -> Limit:
    """Return the limit that METRIC=VALUE means; UsageError where it means nothing."""
    name, equals, value = text.rpartition("=")  # kernels of C++ may have one in their names
    if not equals:
        raise UsageError(f"{text!r} is no limit: METRIC=VALUE, as kernels.calls=400")
    return Limit(name.strip(), parse_value(value), at_most, value)


def read_limits(path: Path) -> list[Limit]:
    """Return the limits of a TOML file: tables `max` and `min` of metrics and their values, numbers or texts
    with a unit. Raises UsageError for what means nothing, UnreadableError for a file that cannot be read.
    """
    try:
        text = read_regular(path, MOST_BYTES).decode()
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise UnreadableError(f"cannot read {path}: it is not UTF-8") from None
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: {error or 'nested too deeply'}") from None
    limits = []
    for name, table in tables.items():
        if name not in ("max", "min") or not isinstance(table, dict):
            raise UsageError(f"{path}: {name!r} is not understood: write limits in [max] and [min]")
        for metric, value in _named_values(table):
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise UsageError(f"{path}: {metric!r} in [{name}] needs a number, or a text as '250ms'")
            try:
                number = parse_value(str(value))
            except UsageError as error:
                raise UsageError(f"{path}: {metric} in [{name}]: {error}") from None
            limits.append(Limit(metric, number, name == "max", str(value)))
    if not limits:
        raise UsageError(f"{path} holds no limits")
    return limits


def _named_values(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values: `kernels.time = 1` without quotes is a table `kernels` in TOML."""
    for name, value in table.items():
        if isinstance(value, dict) and value and prefix.count(".") < DEEPEST:
            yield from _named_values(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def check_unit(what: str, typed: str, unit: str) -> None:
    """Raise UsageError where a value lacks the unit that it needs: a time other than 0, a share above 1."""
    match = _VALUE.fullmatch(typed.strip())
    if match is None or unit not in NEEDED or match[2].lower() in NEEDED[unit]:
        return
    number = float(match[1])
    if match[2] or (number != 0 if unit == "ns" else number > 1):
        raise UsageError(f"{what} is {EXAMPLES[unit]}, not {typed.strip()!r}")


def parse_value(text: str) -> float:
    """Return a number with its unit: "250ms" in ns, "5%" as 0.05, "1.5GiB" in bytes."""
    match = _VALUE.fullmatch(text.strip())
    if match is None or match[2].lower() not in UNITS:
        units = ", ".join(unit for unit in UNITS if unit)
        raise UsageError(f"{text!r} is no value: a number, or one with a unit ({units})")
    value = float(match[1]) * UNITS[match[2].lower()]
    if not isfinite(value):
        raise UsageError(f"{text[:40]!r} is too large")
    return value
