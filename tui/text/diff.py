"""A comparison as tables that fit a line: of each row the times that it is ranked by, before and now."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.export.formats import text_in_unit
from tracelane.core.tables.compare.comparable import CANNOT
from tracelane.core.tables.compare.compare import PRESENCE, TEST, VERDICT, delta_key, relative_key
from tracelane.core.tables.compare.diff import (
    CONTRIBUTION,
    WITH_DEVICE,
    Difference,
    MetricChange,
    against,
    judged_by,
)
from tracelane.core.tables.compare.run_names import brief_name
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.table import Table, Value

MAIN = (
    "step.count",
    "kernels.time",
    "step.length.median",
    "step.device_busy.median",
    "step.comm.median",
    "ops.calls",
    "ops.self_cpu",
    "kernels.calls",
    "kernels.total",
    "device.busy_share",
    "device.overlap_share",
    "launches.delay.median",
    "idle.host_wait",
    "memory.peak",
)
"""Metrics that people are shown; JSON has all."""
ORDER = ("steps", "categories", "ops", "modules", "kernels")
"""The tables of rows, after the metrics."""
DIFF_METRICS = TableSchema(
    "diff_metrics",
    "Metrics",
    (
        Column("metric", "metric", "text"),
        Column("a", "A", "text"),
        Column("b", "B", "text"),
        Column("change", "change", "text"),
        Column("relative", "±%", "text"),
        Column("verdict", "noise", "text"),
    ),
)


def side_titles(result: Difference) -> list[tuple[str, str]]:
    """Return (name, what it is) of each side; several earlier runs are A1, A2 …"""
    runs = result.before.members
    earlier = [(f"A{at}" if len(runs) > 1 else "A", run) for at, run in enumerate(runs, 1)]
    return [(name, f"{side.title}: {side.scope}") for name, side in (*earlier, ("B", result.now))]


def compact_tables(result: Difference) -> list[Table]:
    """Return the tables of a comparison as people read them: the metrics, then the rows that changed most."""
    names = [name for name in ORDER if name in result.tables]
    names = [name for name in names if name != "steps" or len(result.tables["steps"]) > 1]
    names = [name for name in names if name != "modules" or len(result.tables["modules"])]
    return [metric_table(result), *(compact(name, result.tables[name]) for name in names)]


def compact(name: str, table: Table) -> Table:
    """Return a table of a comparison with the columns that tell most; those to the right give way first."""
    lead, device = judged_by(name, table), "self_device_ns"
    keys = [table.columns[0].key, lead, delta_key(lead)]
    if name in WITH_DEVICE and any(table.numbers(key).any() for key in (device, delta_key(device))):
        keys += [delta_key(device), device]
    else:
        keys.append(relative_key(lead))
    if name == "steps":
        length = "length_ns"
        keys += [length, delta_key(length), relative_key(length), "idle_ns", delta_key("idle_ns")]
    keys += ["count", delta_key("count"), VERDICT.key, CONTRIBUTION.key, PRESENCE]
    columns = {column.key: column for column in table.columns}
    return replace(table, columns=tuple(columns[key] for key in dict.fromkeys(keys) if key in columns))


def metric_table(result: Difference) -> Table:
    """Return the main metrics of both sides, as text."""
    changes = [result.metrics[name] for name in MAIN if name in result.metrics]
    changes = [change for change in changes if change.metric.value or change.before]
    data = {
        "metric": [change.metric.name for change in changes],
        "a": [_value(change, change.before) for change in changes],
        "b": [_value(change, change.metric.value) for change in changes],
        "change": [_value(change, change.change, signed=True) for change in changes],
        "relative": ["-" if c.relative is None else f"{c.relative:+.2%}" for c in changes],
        "verdict": [noise_text(change) for change in changes],
    }
    runs = result.before.members
    titles = {"b": f"B {brief_name(result.now.title)}"}
    if len(runs) == 1:
        titles["a"] = f"A {brief_name(runs[0].title)}"
    columns = tuple(replace(one, title=titles.get(one.key, one.title)) for one in DIFF_METRICS.columns)
    bases = dict.fromkeys(basis for change in changes if (basis := noise_basis(change)))
    notes = [f"noise: {TEST}; here of {', '.join(bases)}"] if bases else []
    if result.lengths_text:
        notes.append(result.lengths_text)
    if result.reasons:
        notes.insert(0, f"{CANNOT}: {'; '.join(dict.fromkeys(result.reasons.values()))}")
    schema = replace(DIFF_METRICS, columns=columns)
    return Table.from_arrays(schema, against(result.before, result.now), data, notes=tuple(notes))


def noise_basis(change: MetricChange) -> str:
    """Return what repeats, as "4 and 4 steps" or "5 earlier runs"; "" where nothing does."""
    noise = change.noise
    if change.reason or noise is None or noise.error is None:
        return ""
    if change.runs:
        return f"{change.runs} earlier runs"
    return f"{noise.before.count} and {noise.now.count} steps"


def noise_text(change: MetricChange) -> str:
    """Return whether a change is more than noise, as "slower, ± 0.4%"; "" for what has no value by step."""
    if change.reason:
        return change.verdict
    noise = change.noise
    if noise is None:
        return ""
    if noise.error is None or not noise.before.median:
        return change.verdict
    return f"{change.verdict}, ± {noise.limit * noise.error / abs(noise.before.median):.1%}"


def incomparable_text(change: MetricChange) -> str:
    """Return why a metric cannot be compared, as "kernels.time cannot be compared: b.json is cut off"."""
    return f"{change.metric.name} {change.verdict}: {change.reason}"


def change_text(change: MetricChange) -> str:
    """Return a change in a few words, as "kernels.total rose by 5.2%, from 1 ms to 1.05 ms"."""
    moved = change.change or 0
    word = "rose" if moved > 0 else "fell" if moved < 0 else "stayed"
    by = "" if change.relative is None or not moved else f" by {abs(change.relative):.1%}"
    return (
        f"{change.metric.name} {word}{by}, from {_value(change, change.before)}"
        f" to {_value(change, change.metric.value)} ({noise_text(change) or 'noise unknown'})"
    )


def _value(change: MetricChange, value: Value, signed: bool = False) -> str:
    return text_in_unit(Column("", "", change.metric.unit, change=signed), value)
