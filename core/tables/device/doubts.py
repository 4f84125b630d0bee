"""What tables and `doctor` say of time that cannot be trusted (`untrusted`): a row per period, and a sentence
below a table for each device or lane and trouble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from ...base.units import count_of, format_ns
from ...trace.devices import device_title
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables
from .untrusted import OF_DEVICES, TROUBLES, Trouble, Untrusted
from .untrusted_periods import periods_of

Doubted: TypeAlias = Literal["device", "host", "all"]
"""Of what time that cannot be trusted is told: of devices, of lanes of the host, of both."""

UNTRUSTED = TableSchema(
    "untrusted",
    "Time that cannot be trusted",
    (
        Column("file", "file", "text", detail=True),
        Column("device", "device", "text"),
        Column("trouble", "trouble", "text"),
        Column("start_ns", "from", "ns", moment=True),
        Column("ns", "for", "ns"),
        Column("count", "calls or kernels", "count"),
        Column("severity", "severity", "text", detail=True),
        Column("reason", "reason", "text", detail=True),
    ),
    keys=("file", "device", "trouble", "start_ns"),
)


def doubts(scope: Scope, of: Doubted) -> tuple[str, ...]:
    """Return what of a scope's time cannot be trusted, in a sentence for each device or lane and trouble: of
    devices, of lanes of the host, or of both.
    """
    low, high = scope.range or scope.trace.span_at(scope.clocks)
    groups: dict[tuple[str, Trouble], list[Untrusted]] = {}
    for source in scope.sources:
        for one in periods_of(scope.trace, source, scope.clocks):
            if one.start < high and one.end > low and (of == "all" or (one.lane is None) == (of == "device")):
                groups.setdefault((_subject(scope, one), one.trouble), []).append(one)
    return tuple(
        f"{subject}: {_sentence(trouble, own)}; "
        f"{'no idle time is counted there' if trouble in OF_DEVICES else 'they are left out'} (doctor)"
        for (subject, trouble), own in groups.items()
    )


def _subject(scope: Scope, one: Untrusted) -> str:
    """Return what a period is about: a device, a lane, or all devices of a file."""
    if one.lane is not None:
        return scope.trace.lanes[one.lane].title
    if one.device is not None:
        return device_title(scope.trace, one.device)
    return Path(scope.trace.indexes[one.source].path).name


def _sentence(trouble: Trouble, periods: Sequence[Untrusted]) -> str:
    kind, ns = TROUBLES[trouble], format_ns(sum(one.end - one.start for one in periods))
    return kind.text.format(count=count_of(sum(one.count for one in periods), *kind.words), ns=ns)


def with_doubts(tables: Tables, scope: Scope, of: Doubted) -> Tables:
    """Return tables whose first one says below its rows which time cannot be trusted."""
    first = tables.names[0]

    def doubted() -> Table:
        main = tables.makers[first]()
        return replace(main, notes=(*main.notes, *doubts(scope, of)))

    return replace(tables, makers={**tables.makers, first: doubted})


def untrusted_table(scope: Scope, periods: Sequence[Untrusted]) -> Table:
    """Return a row per period."""
    rows = []
    for one in periods:
        device = "" if one.device is None else device_title(scope.trace, one.device)
        what = {"file": Path(scope.trace.indexes[one.source].path).name, "device": device}
        times = {"start_ns": one.start, "ns": one.end - one.start, "count": one.count}
        why = {"severity": TROUBLES[one.trouble].severity, "reason": _sentence(one.trouble, [one])}
        rows.append({**what, "trouble": one.trouble, **times, **why})
    return Table.from_rows(UNTRUSTED, scope.text, rows)
