"""What `diff` and `check` hold to a share: which metrics, against which earlier runs, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracelane.core.base.errors import UsageError
from tracelane.core.tables.diff import Difference, MetricChange
from tracelane.core.tables.metrics import metric_group_of, no_metric
from tracelane.tui.text.diff import change_text

from .ci_reports import CheckResult
from .limits import DEFAULT_METRICS, check_unit, parse_value
from .options import Options

NOT_FILTERED = "step.wall.median"
"""What a filter of slices does not narrow."""


@dataclass(frozen=True)
class Threshold:
    """How much metrics may rise: by which share (None: by any); times count from `least_ns` on."""

    names: tuple[str, ...]
    share: float | None
    least_ns: int
    text: str  # the share as it was typed

    @classmethod
    def of(cls, options: Options) -> Threshold:
        """Return what the options mean; UsageError where they mean nothing, before a trace is read."""
        check_unit("--min-time", options.min_time, "ns")
        check_unit("--fail-above", options.fail_above or "", "share")
        share = None if options.fail_above is None else parse_value(options.fail_above)
        least = round(parse_value(options.min_time))
        if least < 0 or (share is not None and share < 0):
            raise UsageError("--fail-above and --min-time take no negative values")
        for name in options.names:
            metric_group_of(name)
        return cls(options.names, share, least, options.fail_above or "")

    def gated(self, difference: Difference, where: str | None = None) -> list[MetricChange]:
        """Return the metrics that are held to the share; UsageError for one that a side lacks, and where the
        filter leaves nothing to hold to it.
        """
        metrics = difference.metrics
        if self.share is None:
            return []
        if not self.names:
            known = [name for name in DEFAULT_METRICS if name in metrics and metrics[name].change is not None]
            if where is not None:
                known = [
                    name
                    for name in known
                    if name != NOT_FILTERED and (metrics[name].before or metrics[name].metric.value)
                ]
                if not known:
                    raise UsageError(f"--fail-above has nothing to check: no kernel or op matches {where!r}")
            return [metrics[name] for name in known[:1]]
        changes = []
        for name in self.names:
            change = difference.metric(name)
            if change is None:
                raise no_metric(name, metrics)
            if change.change is None:
                raise UsageError(f"{name} cannot be compared: a side has nothing of the kind")
            changes.append(change)
        return changes

    def failed(self, changes: Sequence[MetricChange]) -> list[MetricChange]:
        """Return those of the changes that rose by more than the share, and beyond their noise."""
        share = self.share
        return [] if share is None else [one for one in changes if one.exceeds(share, self.least_ns)]

    def results(self, changes: Sequence[MetricChange]) -> list[CheckResult]:
        """Return each change as what continuous integration reads."""
        failed = self.failed(changes)
        return [
            CheckResult(one.metric.name, f"{change_text(one)}; {self.text} is allowed", one in failed)
            for one in changes
        ]
