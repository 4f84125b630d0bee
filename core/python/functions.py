"""What `import tracelane` offers beside `open`: comparing, checking, cutting, exporting, the demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ..base.errors import UsageError
from ..base.progress import no_progress
from ..demo.trace import write_demo
from ..index.captures import Choice
from ..tables.compare.diff import Difference, difference
from ..tables.compare.diff_trees import diff_trees
from ..tables.compare.run_names import run_names
from ..tables.compare.summary import metrics_named, summarise
from ..tables.frame.schema import Column, TableSchema
from ..tables.frame.scope import Scope
from ..tables.frame.table import Table, Tables
from ..tables.selection import Selection
from .exporting import writer_of
from .opened import OpenedTrace, opened_for_python

Side: TypeAlias = OpenedTrace | str | Path
Number: TypeAlias = int | float
METRIC_CHANGES = TableSchema(
    "metrics",
    "Metrics",
    (
        Column("name", "metric", "text"),
        Column("unit", "unit", "text"),
        Column("before", "before", "number"),
        Column("now", "now", "number"),
        Column("change", "change", "number", change=True),
        Column("relative", "relative", "number", change=True),
        Column("verdict", "verdict", "text"),
        Column("noise_limit", "noise limit", "number", detail=True),
    ),
)
LIMIT_RESULTS = TableSchema(
    "limits",
    "Limits",
    (
        Column("metric", "metric", "text"),
        Column("bound", "bound", "text"),
        Column("limit", "limit", "number"),
        Column("value", "value", "number"),
        Column("holds", "holds", "text"),
    ),
)


def diff(
    before: Side | Sequence[Side],
    now: Side,
    *,
    where: str | None = None,
    step: int | str | None = None,
    tree: bool = False,
) -> Tables:
    """Return what changed from one trace to another, as `tracelane diff`: the table `metrics` with a verdict
    on each change (more than noise or not), and steps, categories, ops, modules and kernels; with `tree` the
    op trees of two traces, one against the other.

    Several traces before: their medians, and the noise is that between them. Each side is what
    `tracelane.open` returned, or a path. Raises TracelaneError.
    """
    sides = list(before) if isinstance(before, Sequence) and not isinstance(before, str) else [before]
    if not sides:
        raise UsageError("diff needs a trace before and one now")
    selection = Selection(step=step, where=where)
    all_sides = [_as_opened(side) for side in [*sides, now]]
    names = run_names([_path_of(one) for one in all_sides])
    *earlier, last = [(one._scope(selection), name) for one, name in zip(all_sides, names)]
    if tree:
        if len(earlier) > 1:
            raise UsageError("the trees of two traces are compared")
        return Tables.of(diff_trees(earlier[0][0], last[0], (earlier[0][1], last[1])))
    titled = [summarise(scope, title) for scope, title in earlier]
    result = difference(titled, summarise(*last))
    scope = f"{result.now.scope} against {result.before.scope}"
    changes = Table.from_rows(METRIC_CHANGES, scope, _metric_rows(result))
    tables = {"metrics": changes, **result.tables}
    return Tables(scope, 0, {name: partial(tables.__getitem__, name) for name in tables})


def _metric_rows(result: Difference) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "unit": one.metric.unit,
            "before": one.before,
            "now": one.metric.value,
            "change": one.change,
            "relative": one.relative,
            "verdict": one.verdict,
            "noise_limit": None if one.noise is None else one.noise.limit,
        }
        for name, one in result.metrics.items()
    ]


def check(
    trace: Side,
    *,
    most: Mapping[str, Number] | None = None,
    least: Mapping[str, Number] | None = None,
    step: int | str | None = None,
) -> Table:
    """Return a row for each limit, and whether it holds ("yes", "no"): `most={"kernels.calls": 400}`.

    Values are in the metric's own unit, as `t.summary()` lists them: ns, bytes, shares of 1. A limit does not
    hold where the trace lacks its metric. Raises TracelaneError for a metric that there is not.
    """
    limits = [("most", name, limit) for name, limit in (most or {}).items()]
    limits += [("least", name, limit) for name, limit in (least or {}).items()]
    scope, _ = _scope(trace, Selection(step=step))
    known = metrics_named(scope, (name for _, name, _ in limits))
    rows = []
    for bound, name, limit in limits:
        value = known[name].value
        holds = value is not None and (value <= limit if bound == "most" else value >= limit)
        row = {"metric": name, "bound": bound, "limit": limit, "value": value}
        rows.append({**row, "holds": "yes" if holds else "no"})
    return Table.from_rows(LIMIT_RESULTS, scope.text, rows)


def export(
    trace: Side,
    out: str | Path,
    *,
    where: str | None = None,
    step: int | str | None = None,
    lanes: str | None = None,
    begin: int | None = None,
    end: int | None = None,
) -> Path:
    """Write a trace, or a part of it, for other programs, and return the file's path: its name ends with
    .pftrace, .speedscope.json, .folded, .sqlite, .parquet, .html, .json.gz or .json.

    begin, end: trace time in ns. Raises TracelaneError, as for a file that is there.
    """
    path = Path(out)
    write = writer_of(path)
    scope, title = _scope(trace, Selection(begin, end, step, lanes, where))
    write(scope, path, title, no_progress)
    return path


def cut(
    trace: Side,
    out: str | Path,
    *,
    step: int | str | None = None,
    lanes: str | None = None,
    begin: int | None = None,
    end: int | None = None,
) -> Path:
    """Write a window of a trace as a trace of its own, .json or .json.gz, and return its path: the slices
    that overlap it, exactly as in the source. Raises TracelaneError, as where no window is given.
    """
    path = Path(out)
    if step is None and begin is None and end is None:
        raise UsageError("say what to cut: begin and end, or step")
    if not path.name.endswith((".json", ".json.gz")):
        raise UsageError(f"{path}: its name must end with .json or .json.gz")
    return export(trace, path, step=step, lanes=lanes, begin=begin, end=end)


def demo(folder: str | Path = "tracelane-demo") -> Path:
    """Write the demo, two ranks' traces and the aiu-smi log of their cards, and return its folder."""
    write_demo(Path(folder))
    return Path(folder)


def _as_opened(side: Side) -> OpenedTrace:
    return side if isinstance(side, OpenedTrace) else _opened(side)


def _path_of(opened: OpenedTrace) -> str:
    """Return the path of a trace's file, of several that of their folder."""
    first, *others = map(str, opened.info.paths)
    return first.rpartition("/")[0] if others else first


def _scope(side: Side, selection: Selection) -> tuple[Scope, str]:
    opened = _as_opened(side)
    return opened._scope(selection), ", ".join(Path(path).name for path in opened.info.paths)


def _opened(path: str | Path) -> OpenedTrace:
    return opened_for_python(path, Choice("", "", ""))
