"""What `check` and `diff` hold metrics to: limits, values with units as they are typed, by how much a metric
may rise; and what came out, as continuous integration reads it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.base.numbers import toml_tables
from tracelane.core.base.output import print_text
from tracelane.core.base.private import read_regular, reason_of
from tracelane.core.base.safe_text import safe
from tracelane.core.base.whole_file import is_stream, unfinished
from tracelane.core.export.formats import text_in_unit
from tracelane.core.tables.compare.comparable import CANNOT
from tracelane.core.tables.compare.diff import Difference, MetricChange
from tracelane.core.tables.frame.metrics import Metric
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.metric_groups import metric_group_of, no_metric
from tracelane.tui.text.diff import change_text, incomparable_text

from .completing import DEFAULT_METRICS
from .options import TIMES


class CheckResult(NamedTuple):
    """One limit: what is held to it, what came out in words, and whether it is kept, exceeded, or cannot be
    told.
    """

    name: str
    text: str
    verdict: Literal["ok", "exceeded", "cannot be compared"]

    @property
    def is_kept(self) -> bool:
        return self.verdict == "ok"


LIMITS = TableSchema(
    "limits",
    "Limits",
    (
        Column("verdict", "verdict", "text"),
        Column("metric", "metric", "text"),
        Column("result", "result", "text"),
    ),
)


def results_table(results: Sequence[CheckResult], scope: str) -> Table:
    """Return a row for each limit."""
    rows = [{"verdict": one.verdict, "metric": one.name, "result": one.text} for one in results]
    return Table.from_rows(LIMITS, scope, rows)


def report_results(suite: str, results: Sequence[CheckResult], junit: str | None, github: bool) -> None:
    """Write the JUnit file and print annotations where they are asked for; UnreadableError where the file
    cannot be written.
    """
    if github:
        for result in results:
            if not result.is_kept:
                # The line is a command of the workflow: a line break or :: of a trace must not begin another.
                text = safe(f"{suite}: {result.text}").replace("%", "%25").replace("::", ":\u200b:")
                print_text(f"::error title={suite}::{safe(text)}", error=True)
    if junit is None:
        return
    counts = Counter(result.verdict for result in results)
    failures, errors = counts["exceeded"], counts["cannot be compared"]
    root = ElementTree.Element(
        "testsuite", name=suite, tests=str(len(results)), failures=str(failures), errors=str(errors)
    )
    for result in results:
        case = ElementTree.SubElement(root, "testcase", classname=suite, name=safe(result.name))
        if not result.is_kept:
            outcome = "failure" if result.verdict == "exceeded" else "error"
            ElementTree.SubElement(case, outcome, message=safe(result.text)).text = safe(result.text)
        else:
            ElementTree.SubElement(case, "system-out").text = safe(result.text)
    ElementTree.indent(root)
    try:
        tree, out = ElementTree.ElementTree(root), Path(junit)
        if is_stream(out):
            tree.write(junit, encoding="utf-8", xml_declaration=True)
            return
        with unfinished(out) as building:  # so that no link of its name is followed
            tree.write(building, encoding="utf-8", xml_declaration=True)
            building.replace(out)
    except OSError as error:
        raise UnreadableError(f"cannot write {junit}: {error.strerror or error}") from error


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
MAX_BYTES = 1 << 20
"""No file of limits is longer."""
MAX_DEPTH = 8
"""No name of a metric has more dots."""
_VALUE = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?)\s*([a-zµ%]*)", re.IGNORECASE)


class Limit(NamedTuple):
    """A bound on a metric."""

    metric: str
    value: float
    at_most: bool
    typed: str  # the value as it was written

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
        return CheckResult(self.metric, self.text(metric), "ok" if self.is_kept(metric) else "exceeded")

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
        text = read_regular(path, MAX_BYTES).decode()
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {reason_of(error)}") from None
    except UnicodeDecodeError:
        raise UnreadableError(f"cannot read {path}: it is not UTF-8") from None
    try:
        tables = toml_tables(text)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
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
        if isinstance(value, dict) and value and prefix.count(".") < MAX_DEPTH:
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


NOT_FILTERED = "step.length.median"
"""What a filter of slices does not narrow."""


class Threshold(NamedTuple):
    """How much metrics may rise: by which share (None: by any); times count from `least_ns` on."""

    names: tuple[str, ...]
    share: float | None
    least_ns: int
    text: str  # the share as it was typed

    @classmethod
    def of(cls, names: tuple[str, ...], fail_above: str | None, min_time: str) -> Threshold:
        """Return what the options mean; UsageError where they mean nothing, before a trace is read."""
        check_unit("--min-time", min_time, "ns")
        check_unit("--fail-above", fail_above or "", "share")
        share = None if fail_above is None else parse_value(fail_above)
        least = round(parse_value(min_time))
        if least < 0 or (share is not None and share < 0):
            raise UsageError("--fail-above and --min-time take no negative values")
        for name in names:
            metric_group_of(name)
        return cls(names, share, least, fail_above or "")

    def gated(self, difference: Difference, where: str | None = None) -> list[MetricChange]:
        """Return the metrics that are held to the share, also those that cannot be compared; UsageError for
        one that there cannot be or that both sides lack, and where the filter leaves nothing to hold to it.
        """
        metrics = difference.metrics
        if self.share is None:
            return []
        if not self.names:
            return _default_changes(metrics, where)
        changes = []
        for name in self.names:
            change = difference.metric(name)
            if change is None:
                raise no_metric(name, metrics)
            if change.change is None and not change.reason:
                raise UsageError(f"{name} cannot be compared: no side has anything of the kind")
            changes.append(change)
        return changes

    def failed(self, changes: Sequence[MetricChange]) -> list[MetricChange]:
        """Return those of the changes that rose by more than the share, and beyond their noise."""
        share = self.share
        return [] if share is None else [one for one in changes if one.exceeds(share, self.least_ns)]

    def results(self, changes: Sequence[MetricChange]) -> list[CheckResult]:
        """Return each change as what continuous integration reads."""
        failed = self.failed(changes)
        results = []
        for one in changes:
            text = f"{change_text(one)}; {self.text} is allowed"
            if one.reason:
                results.append(CheckResult(one.metric.name, incomparable_text(one), CANNOT))
            else:
                results.append(CheckResult(one.metric.name, text, "exceeded" if one in failed else "ok"))
        return results


def _default_changes(metrics: Mapping[str, MetricChange], where: str | None) -> list[MetricChange]:
    """Return what is held to the share where nobody names a metric: the first that a side has. What the
    other side lacks is never replaced by another metric: a loss would pass as one that has not changed.
    """
    known = [
        metrics[name]
        for name in DEFAULT_METRICS
        if name in metrics and (metrics[name].before is not None or metrics[name].metric.value is not None)
    ]
    if where is not None:
        known = [one for one in known if one.metric.name != NOT_FILTERED and (one.before or one.metric.value)]
        if not known:
            raise UsageError(f"--fail-above has nothing to check: no kernel or op matches {where!r}")
    return known[:1]
