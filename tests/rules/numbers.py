"""Numbers of any size: text becomes one, and sums are made, by functions that know the limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .rule import PROGRAM, Exempt, Rule, SourceFile

OWN = "what tracelane itself wrote, or one of its processes says"
FORESEEN = "a ValueError is foreseen right there, and costs one value"
LOADERS = frozenset(("json.loads", "json.load", "tomllib.loads", "tomllib.load"))
FLOATS = "floats"
COUNTS = "counts"
HASHED = frozenset(f"np.{name}" for name in ("unique", "union1d", "setdiff1d", "intersect1d"))


def _loads(file: SourceFile) -> Iterator[tuple[int, str]]:
    """JSON and TOML of strangers are read by core/base/numbers.py, which takes numbers of any length."""
    for node in file.of_kind(ast.Call):
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = f"{node.func.value.id}.{node.func.attr}"
            if name in LOADERS:
                yield node.lineno, name


def _sums(file: SourceFile) -> Iterator[tuple[int, str]]:
    """In the rooms that add up times, `sum_of`, `added_up` and `add_at` do so: they stop at the limit."""
    for node in file.of_kind(ast.Call):
        if isinstance(node.func, ast.Attribute):
            name, of = node.func.attr, node.func.value
            if name == "sum" or (
                name in ("at", "reduceat") and getattr(of, "attr", "") in ("add", "subtract")
            ):
                yield node.lineno, name
        elif isinstance(node.func, ast.Name) and node.func.id == "sum" and "_ns" in ast.unparse(node):
            yield node.lineno, "sum"


def _hashing(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Nobody asks numpy for distinct values alone, which it hashes: `distinct` sorts them, sets are masks."""
    for node in file.of_kind(ast.Call):
        if isinstance(node.func, ast.Attribute) and not node.keywords:
            name = ast.unparse(node.func)
            if name in HASHED:
                yield node.lineno, name


RULES = (
    Rule(
        "strangers' JSON and TOML go through one module",
        PROGRAM,
        _loads,
        (("json.loads(text)", 1), ("tomllib.load(file)", 1), ("json_value(text)\njson.dumps(1)", 0)),
        (
            Exempt("core/base/numbers.py", "", "the module"),
            *(
                Exempt(file, "", OWN)
                for file in (
                    *("core/base/children.py", "core/base/pattern_search.py", "core/base/private.py"),
                    *("core/index/build.py", "core/index/cached.py", "core/index/store.py"),
                    *("core/index/file_facts.py", "core/sql/engines.py", "core/store/groups.py"),
                    *("core/store/location.py", "core/tables/device/efficiency.py"),
                    *("core/tables/device/peaks.py", "core/tables/doctor/file_values.py"),
                )
            ),
            *(
                Exempt(file, "", FORESEEN)
                for file in (
                    *("core/index/lanes.py", "core/query/views.py", "core/read/envelope.py"),
                    *("core/read/perfetto_values.py", "tui/text/summary.py", "tui/device_facts.py"),
                    *("core/tables/peers/messages.py", "core/tables/host/op_sums.py"),
                    "core/export/summary_file.py",
                )
            ),
        ),
    ),
    Rule(
        "times are added up with a limit",
        ("core/tables", "core/trace", "core/logs", "core/store", "core/query/groups.py"),
        _sums,
        (
            ("times.sum()", 1),
            ("np.add.reduceat(times, begins)", 1),
            ("np.subtract.at(sums, rows, times)", 1),
            ("sum(row.total_ns for row in rows)", 1),
            ("sum_of(times)\nnp.maximum.at(sums, rows, times)\nsum(counts)", 0),
        ),
        (
            Exempt("core/query/groups.py", "^reduceat$", "means and deviations, which are floats"),
            Exempt("core/tables/device/memory.py", "^sum$", FLOATS),
            Exempt("core/logs/series.py", "^sum$", FLOATS),
            Exempt("core/logs/telemetry_tables.py", "^sum$", FLOATS),
            Exempt("core/logs/correlation.py", "^sum$", FLOATS),
            Exempt("core/tables/device/states.py", "^at$", "of a device's time, each moment once"),
            Exempt("core/tables/device/idle.py", "^at$", "of a device's time, each moment once"),
            Exempt("core/tables/host/op_events.py", "^at$", COUNTS),
            Exempt("core/tables/findings/judge.py", "^sum$", "a few claims, as Python integers"),
            Exempt("core/trace/step_choice.py", "^sum$", COUNTS),
            Exempt("core/tables/device/untrusted.py", "^sum$", COUNTS),
            Exempt("core/tables/doctor/index_order.py", "^at$", "counts, and halves of numbers"),
            Exempt(
                "core/tables/compare/diff.py", "^sum$", "two changes, each of numbers that are not negative"
            ),
        ),
    ),
    Rule(
        "no set is made by hashing",
        PROGRAM,
        _hashing,
        (("np.unique(rows)", 1), ("np.unique(rows, return_inverse=True)\ndistinct(rows)", 0)),
    ),
)
