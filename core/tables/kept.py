"""Results of whole traces, kept beside the index so that they are there at once the next time.

    derived/<name>-<hash of code, sources and clocks>.json

Disposable like everything under `derived`: committed by one rename, made anew when missing, damaged, or of
other code than what counts now. Each file stands behind its checksum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..base.private import read_sealed_json, write_sealed_json
from ..index.blockstore import FOLDER
from .scope import Scope
from .table import Column, Table

LEAST_SLICES = 1_000_000
"""Smaller traces are counted as quickly as a file is found and read."""
COUNTING = ("base", "query", "tables")
"""Rooms of core whose code decides what a table holds; the index has a format of its own."""


def kept(scope: Scope, name: str, make: Callable[[], Table]) -> Table:
    """Return the table that `make` makes of a scope; that of a whole large trace is kept under a name."""
    if not is_worth_keeping(scope):
        return make()
    path = kept_file(scope, name)
    table = _read(path, scope)
    if table is None:
        table = make()
        write_kept(path, _table_object(table))
    return table


def is_worth_keeping(scope: Scope) -> bool:
    """Tell whether a scope is a whole trace, and a large one."""
    size = sum(len(index.column("slices.start")) for index in scope.trace.indexes)
    return size >= LEAST_SLICES and is_whole(scope)


def is_whole(scope: Scope) -> bool:
    """Tell whether a scope is a whole trace under the clocks that it opens with."""
    parts = (scope.range, scope.lanes, scope.where, scope.source, scope.steps or None)
    usual = not scope.clocks.offsets or scope.clocks == scope.trace.clocks
    return usual and bool(scope.trace.indexes) and all(part is None for part in parts)


def kept_file(scope: Scope, name: str) -> Path:
    """Return where a result of this name is kept of a scope that is a whole trace."""
    folders = [index.folder for index in scope.trace.indexes]
    clocks = sorted((*key, ns) for key, ns in scope.clocks.offsets.items())
    text = json.dumps([code_hash(), name, scope.attribute, [folder.name for folder in folders], clocks])
    key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return folders[0] / FOLDER / f"{name}-{key}.json"


@cache
def code_hash() -> str:
    """Return the hash of the code that counts."""
    core = Path(__file__).parent.parent
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(path for room in COUNTING for path in (core / room).rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def read_kept(path: Path) -> Any:
    """Return a result that was written; OSError where there is none, ValueError where it is damaged."""
    return read_sealed_json(path)


def _read(path: Path, scope: Scope) -> Table | None:
    try:
        told = read_kept(path)
        table = Table(
            name=told["name"],
            title=told["title"],
            scope=told["scope"],
            columns=tuple(Column(**column) for column in told["columns"]),
            data={key: _column(*column) for key, column in told["data"].items()},
            totals=told["totals"],
            notes=tuple(told["notes"]),
            positions=_column(*told["positions"]),
            sources=_column(*told["sources"]),
            keys=tuple(told["keys"]),
            read_by=told["read_by"],
        )
        return table if _is_sound(table, scope) else None
    except (OSError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _is_sound(table: Table, scope: Scope) -> bool:
    """Tell whether all columns are there and equally long, and each row's slice is one of the trace."""
    lengths = [len(index.column("slices.start")) for index in scope.trace.indexes]
    columns = [table.data[column.key] for column in table.columns]
    rows = [column for column in (*columns, table.positions, table.sources) if column is not None]
    if len({len(column) for column in rows}) > 1 or not set(table.keys) <= table.data.keys():
        return False
    if table.positions is None or not len(table.positions):
        return True
    sources = np.zeros(len(table), np.int64) if table.sources is None else table.sources
    if int(sources.min()) < 0 or int(sources.max()) >= len(lengths):
        return False
    return bool((table.positions < np.array(lengths)[sources]).all())


def _column(dtype: str, values: Any) -> Any:
    """Return values as they were: an array of a type, a list of text, or nothing."""
    return np.array(values, dtype) if dtype else values


def _told(values: Any) -> tuple[str, Any]:
    return (values.dtype.str, values.tolist()) if isinstance(values, np.ndarray) else ("", values)


def _table_object(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "scope": table.scope,
        "columns": [vars(column) for column in table.columns],
        "data": {key: _told(column) for key, column in table.data.items()},
        "totals": dict(table.totals),
        "notes": table.notes,
        "positions": _told(table.positions),
        "sources": _told(table.sources),
        "keys": table.keys,
        "read_by": table.read_by,
    }


def write_kept(path: Path, told: Any) -> None:
    """Write a result; where that is not possible it is made anew the next time."""
    with suppress(OSError):
        write_sealed_json(path, told)
