"""Results for whole traces, cached beside the index: steps of all, tables of large ones.

    derived/<name>-<hash of code, sources, clocks and captures>.json

The files may be deleted at any time. Each is written under another name and then renamed, and begins with a
checksum of its contents. A result is computed again where its file is missing or damaged, or was written by
other code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.clock import Clocks
from ...base.digest import blake2b
from ...base.private import KERNEL_KINDS, read_sealed_json, settings_table, write_sealed_json
from ...index.version import DERIVED
from ...trace.step_spans import StepSpans, step_spans

if TYPE_CHECKING:
    from ...index.store import Index
    from ...trace import Trace
    from .scope import Scope
    from .table import Table

STEP_SPANS = "step-spans"
MIN_SLICES = 1_000_000
"""A smaller trace is analysed as quickly as a cached result is read."""
BY_LAUNCH = "launch"
"""How a scope assigns work to steps unless asked otherwise."""
COUNTING = ("base", "query", "trace", "tables", "logs")
"""The rooms of core whose code decides what a result holds; the index has its own format number."""


def cached_table(scope: Scope, name: str, make: Callable[[], Table]) -> Table:
    """Return the table that `make` makes of a scope; for a whole large trace it is cached under a name."""
    if not is_worth_caching(scope):
        return make()
    path = cache_file(scope, name)
    table = _read(path, scope)
    if table is None:
        table = make()
        write_cached(path, _table_object(table))
    return table


def is_worth_caching(scope: Scope) -> bool:
    """Tell whether a scope is a whole trace, and a large one."""
    return are_large(scope.trace.indexes) and is_whole(scope)


def are_large(indexes: Sequence[Index]) -> bool:
    """Tell whether traces are so large that what is computed of them is worth keeping."""
    return sum(index.length("slices.start") for index in indexes) >= MIN_SLICES


def is_whole(scope: Scope) -> bool:
    """Tell whether a scope is a whole trace under the clocks that it opens with."""
    parts = (scope.range, scope.lanes, scope.where, scope.source, scope.steps or None)
    return _is_usual(scope.trace, scope.clocks) and all(part is None for part in parts)


def _is_usual(trace: Trace, clocks: Clocks) -> bool:
    """Tell whether results of a trace under some clocks are kept: not while more of its files are coming, of
    which each would leave some.
    """
    is_all = bool(trace.indexes) and not trace.missing
    return is_all and (not clocks.offsets or clocks == trace.clocks)


def cache_file(scope: Scope, name: str, *more: Any) -> Path:
    """Return the file of a cached result, by its name, a scope that is a whole trace, and what else decides
    what it holds.
    """
    return _result_file(scope.trace, scope.clocks, name, scope.attribute, *more)


def usual_cache_file(trace: Trace, clocks: Clocks, name: str, *more: Any) -> Path | None:
    """Return the same for the scope that a trace opens with, None under other clocks and for what answers by
    itself, such as two runs: before the first picture nothing is loaded that a scope needs.
    """
    is_kept = trace.answers is None and _is_usual(trace, clocks)
    return _result_file(trace, clocks, name, BY_LAUNCH, *more) if is_kept else None


def _result_file(trace: Trace, clocks: Clocks, name: str, *more: Any) -> Path:
    return _cache_file(trace, clocks, name, settings_table(KERNEL_KINDS), *more)


def _cache_file(trace: Trace, clocks: Clocks, name: str, *more: Any) -> Path:
    folders = [index.folder for index in trace.indexes]
    offsets = sorted((*key, ns) for key, ns in clocks.offsets.items())
    captures = [one.state for index in trace.indexes if (one := index.graph_folder) is not None]
    text = json.dumps([code_hash(), name, [folder.name for folder in folders], offsets, captures, *more])
    key = blake2b(text.encode(), digest_size=8).hexdigest()
    return folders[0] / DERIVED / f"{name}-{key}.json"


@cache
def code_hash() -> str:
    """Return a hash of the sizes and times of the files of the code that results depend on: sources, or what
    was compiled of them where that stands in their place.
    """
    core = Path(__file__).parents[2]
    files = []
    for room in COUNTING:
        for folder, folders, names in os.walk(core / room):
            folders[:] = [name for name in folders if name != "__pycache__"]
            files += [os.path.join(folder, name) for name in names if name.endswith((".py", ".pyc"))]
    digest = blake2b(digest_size=8)
    for file in sorted(files):
        status = os.stat(file)
        digest.update(f"{os.path.basename(file)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _read(path: Path, scope: Scope) -> Table | None:
    from .schema import Column
    from .table import Table  # steps are wanted before any table

    try:
        stored = read_sealed_json(path)
        stored["columns"] = tuple(Column(**column) for column in stored["columns"])
        stored["data"] = {key: _column(*column) for key, column in stored["data"].items()}
        stored |= {key: _column(*stored[key]) for key in ("positions", "sources")}
        table = Table(**stored | {key: tuple(stored[key]) for key in ("notes", "keys", "chief")})
        return table if _is_sound(table, scope) else None
    except (OSError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _is_sound(table: Table, scope: Scope) -> bool:
    """Tell whether all columns are there and equally long, and each row's slice is one of the trace."""
    lengths = [index.length("slices.start") for index in scope.trace.indexes]
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


def _encoded(values: Any) -> tuple[str, Any]:
    dtype = values.dtype.str if isinstance(values, np.ndarray) else ""
    return dtype, values if values is None or isinstance(values, list) else values.tolist()


def _table_object(table: Table) -> dict[str, Any]:
    return {
        **{one.name: getattr(table, one.name) for one in fields(table)},
        "columns": [vars(column) for column in table.columns],
        "data": {key: _encoded(column) for key, column in table.data.items()},
        "positions": _encoded(table.positions),
        "sources": _encoded(table.sources),
    }


def write_cached(path: Path, value: Any) -> None:
    """Write a result to the cache; a failure is ignored, the result is computed again the next time."""
    with suppress(OSError):
        write_sealed_json(path, value)


def cached_step_spans(trace: Trace, clocks: Clocks) -> StepSpans | None:
    """Return the steps of all sources as `step_spans` finds them; cached for the clocks that a trace opens
    with.
    """
    if not _is_usual(trace, clocks):
        return step_spans(trace, clocks)
    path = _cache_file(trace, clocks, STEP_SPANS)
    with suppress(OSError, KeyError, TypeError, ValueError, OverflowError):
        return _read_spans(read_sealed_json(path))
    if (spans := step_spans(trace, clocks)) is None:
        write_cached(path, None)
        return None
    columns = {"starts": spans.starts.tolist(), "ends": spans.ends.tolist()}
    write_cached(path, {"choice": spans.choice, "reason": spans.reason, "labels": spans.labels, **columns})
    return spans


def _read_spans(stored: dict[str, Any] | None) -> StepSpans | None:
    if stored is None:
        return None
    starts, ends = (np.array(stored[name], np.int64) for name in ("starts", "ends"))
    labels = tuple(map(str, stored["labels"]))
    if not len(labels) == len(starts) == len(ends):
        raise ValueError("not all steps have a label")
    return StepSpans(str(stored["choice"]), str(stored["reason"]), labels, starts, ends)
