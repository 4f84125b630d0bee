"""The earlier run that findings compare a trace with, as far as the rules need it."""

from __future__ import annotations

from dataclasses import dataclass

from ..compile_phases import FUNCTION_NAME
from ..summary import Summary

REGIONS = ("compile.regions", "compile.graphs")


@dataclass(frozen=True)
class Baseline:
    """Another run of the same work: whether it is compiled, how many steps it has, their median wall time."""

    title: str
    compiled: bool
    steps: int
    wall_ns: float | None  # None without steps


def baseline_of(summary: Summary) -> Baseline:
    """Return what a summary says of a run."""
    values = {name: metric.value for name, metric in summary.metrics.items()}
    graphs = any(values.get(name) for name in REGIONS)
    functions = any(FUNCTION_NAME.fullmatch(str(name)) for name in summary.tables["ops"].texts("name"))
    return Baseline(
        summary.title,
        bool(graphs or functions),
        int(values.get("step.count") or 0),
        values.get("step.wall.median"),
    )
