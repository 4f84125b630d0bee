"""A summary as a small JSON file: a baseline that a repository can keep, read back for comparisons."""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ..base.errors import UnreadableError
from ..base.private import open_regular, read_regular
from ..read.source import Source
from ..tables.compare.comparable import Lack, Need, Recorded
from ..tables.compare.summary import SCHEMAS, LeftOut, Summary, summary_tables
from ..tables.frame.metrics import Metric
from ..tables.frame.schema import Unit
from ..tables.frame.table import Table
from ..tables.frame.table_rows import Values
from .formats import SCHEMA, as_json

KIND = "summary"
ROWS = 30
"""The number of rows of each table that a file holds."""
MAX_BYTES = 4 << 20
"""A larger file (bytes) is not taken for a summary."""
_HEAD = 256
MARK = b'"command":"summary"'
"""What stands at the begin of the file, blanks aside."""
BEFORE_LENGTHS = {"length_ns": "wall_ns", "cadence_ns": "cadence_ns"}
"""Columns of steps that older summaries lack -> what stands for them; 0 where that is missing, too."""
MAX = 2**63
"""Metrics are smaller than this; so NaN and infinity are refused as well."""


def summary_json(summary: Summary, rows: int = ROWS) -> str:
    """Return the summary as JSON text with a row of a table per line."""
    return as_json(summary_tables(summary, rows), KIND)


def is_summary(file: object) -> bool:
    """Tell whether a file is a summary, by its first bytes, without opening again what has been looked at;
    what a pipe brings is a trace.
    """
    if isinstance(file, Path):
        try:
            with open(open_regular(file), "rb") as stream:
                size, head = os.fstat(stream.fileno()).st_size, stream.read(_HEAD)
        except OSError:
            return False
    elif isinstance(file, Source) and file.kind == "plain" and file.seekable:
        size, head = file.size, file.read_range(file.text_start, _HEAD)
    else:
        return False
    head = b"".join(head.removeprefix(BOM_UTF8).split())
    return size <= MAX_BYTES and head.startswith(b"{") and MARK in head


def read_summary(path: Path) -> Summary:
    """Return the summary that a file holds; UnreadableError where it is damaged or of an unknown version."""
    try:
        whole = json.loads(read_regular(path, MAX_BYTES))
        if whole["schema"] != SCHEMA:
            raise UnreadableError(
                f"{path} is a summary of version {whole['schema']}: create it again with `tracelane summary`"
            )
        return _of_tables(whole)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise UnreadableError(
            f"{path} is not a complete summary: create it again with `tracelane summary`"
        ) from error


def _of_tables(whole: dict[str, Any]) -> Summary:
    """Return a summary from the tables of the JSON that all analyses have."""
    tables = {name: table["rows"] for name, table in whole["tables"].items()}
    return Summary(
        str(tables["totals"][0]["title"]),
        str(whole["scope"]),
        _with_lengths({row["name"]: _metric(row["name"], row) for row in tables["metrics"]}),
        {name: _table(name, tables[name], whole) for name in SCHEMAS if name in tables or name != "modules"},
        {row["table"]: _left_out(row) for row in tables["left_out"]},
        recorded=_recorded(tables),
    )


def _recorded(tables: dict[str, Any]) -> Recorded:
    """Return what the recording lacks; of older summaries nothing is known."""
    lacks = []
    for row in tables.get("lacks", ()):
        if row["need"] not in get_args(Need):
            raise ValueError(f"{row['need']!r} is nothing that a metric needs")
        counts = int(row["missing"]), int(row["total"])
        lacks.append(Lack(str(row["trouble"]), row["need"], *counts, str(row["text"])))
    devices = tables["totals"][0].get("devices")
    return Recorded(tuple(lacks), None if devices is None else int(devices))


def _with_lengths(metrics: dict[str, Metric]) -> dict[str, Metric]:
    """Return metrics with the lengths of steps: in older summaries their marks on the host stand for them."""
    if "step.length.median" in metrics:
        return metrics
    marks = [one for one in metrics.values() if one.name.startswith("step.wall.")]
    names = [one.name.replace(".wall.", ".length.") for one in marks]
    return metrics | {name: one._replace(name=name) for name, one in zip(names, marks)}


def _metric(name: Any, row: dict[str, Any]) -> Metric:
    """Return a metric; ValueError where its value is no number or its unit none that there is."""
    value = row["value"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX
    if not isinstance(name, str) or row["unit"] not in get_args(Unit) or not (value is None or is_number):
        raise ValueError(f"{name!r} is no metric")
    return Metric(name, row["unit"], value)


def _left_out(row: dict[str, Any]) -> LeftOut:
    sums = {str(key): int(value) for key, value in row["sums"].items()}
    return LeftOut(int(row["rows"]), sums, int(row["most"]))


def _table(name: str, rows: list[dict[str, Any]], whole: dict[str, Any]) -> Table:
    label, *numbers = SCHEMAS[name].columns
    data: dict[str, Values] = {label.key: [str(row[label.key]) for row in rows]}
    for one in numbers:
        before = BEFORE_LENGTHS.get(one.key, "")
        data[one.key] = np.array(
            [row[one.key] if one.key in row or not before else row.get(before, 0) for row in rows], np.int64
        )
    if any((np.asarray(data[key]) < 0).any() for key in ("steps", "step_deviation_ns") if key in data):
        raise ValueError(f"negative numbers of steps in {name}")
    return Table.from_arrays(SCHEMAS[name], str(whole["scope"]), data)
