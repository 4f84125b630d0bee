"""The columns of the read report's table."""

from __future__ import annotations

from collections.abc import Sequence

from tracelane.core.base.units import format_count

from ..read_report import ReadReportRow
from ..widgets.table import ColumnView


def read_report_columns(rows: Sequence[ReadReportRow]) -> list[ColumnView]:
    what = max([len("what"), *(len(row.what) for row in rows)])
    count = max([len("count"), *(len(_counted(row.count)) for row in rows)])
    columns = [
        ColumnView("What", min(16, what), lambda row: rows[row].what),
        ColumnView("Count", count, lambda row: _counted(rows[row].count), right=True),
        ColumnView("", 0, lambda row: rows[row].text),
    ]
    if any(row.offset is not None for row in rows):
        columns.insert(2, ColumnView("First at byte", 14, lambda row: _offset(rows[row].offset), right=True))
    if any(row.source for row in rows):
        columns.insert(0, ColumnView("File", 24, lambda row: rows[row].source))
    return columns


def _counted(count: int | None) -> str:
    return "" if count is None else format_count(count)


def _offset(offset: int | None) -> str:
    return "" if offset is None else format_count(offset)
