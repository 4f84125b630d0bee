"""What was understood of a log, as JSON values: an entry of `logs` in `tracelane telemetry --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tables.schema import Column, TableSchema
from ..tables.table import Table
from .clock_fit import Proposal
from .log import TelemetryLog
from .stamps import SECOND

LOGS = TableSchema(
    "logs",
    "Logs",
    (
        Column("path", "log", "text"),
        Column("tool", "tool", "text"),
        Column("format", "format", "text"),
        Column("devices", "devices", "object"),
        Column("rows", "rows", "count"),
        Column("missing", "without values", "count"),
        Column("unparsed", "lines not understood", "count"),
        Column("interval_s", "interval s"),
        Column("utc_offset_s", "offset from UTC s"),
        Column("lag_s", "lag s"),
        Column("verdict", "of this run", "text"),
        Column("confidence", "confidence", "share"),
        Column("reason", "how the clock is known", "text"),
    ),
)
"""The keys of a description that are columns of the table of logs."""


def logs_table(descriptions: Sequence[Mapping[str, Any]], scope: str) -> Table:
    rows = [
        {
            column.key: ("" if column.unit == "text" else None)
            if one[column.key] is None
            else one[column.key]
            for column in LOGS.columns
        }
        for one in descriptions
    ]
    return Table.from_rows(LOGS, scope, rows)


def describe(log: TelemetryLog, proposal: Proposal | None = None) -> dict[str, Any]:
    """Return format, columns, devices, the account of lines, and the proposed clock (None if not asked)."""
    return {
        "path": log.path,
        "format": log.format,
        "tool": log.tool or None,
        "columns": [
            {
                "name": column.name,
                "unit": column.unit,
                "warning": column.warning or None,
                "meaning": column.meaning or None,
                "numeric": column.numeric,
            }
            for column in log.columns
        ],
        "devices": list(log.devices),
        "rows": log.rows,
        "missing": log.missing,
        "unparsed": log.unparsed,
        "messages": log.messages,
        "unparsed_lines": [{"line": u.line, "why": u.why, "text": u.text} for u in log.unparsed_lines],
        "notes": list(log.notes),
        "interval_s": None if log.interval_ns is None else round(log.interval_ns / SECOND, 3),
        "stamps": str(log.stamps),
        "utc_offset_s": None if proposal is None else proposal.utc_offset_s,
        "lag_s": None if proposal is None else round(proposal.lag_s, 6),
        "verdict": None if proposal is None else str(proposal.verdict),
        "confidence": None if proposal is None else proposal.confidence,
        "reason": None if proposal is None else proposal.reason,
        "device_of": {} if proposal is None else dict(proposal.device_of),
    }
