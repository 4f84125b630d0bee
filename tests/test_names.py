"""A class or public function name is there once, so that a name says which thing is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIRRORS = frozenset({"main"})
"""Every process has an entry of this name."""
STILL_DOUBLE = frozenset(
    {
        "Arrow",
        "Arrows",
        "Chosen",
        "Column",
        "Columns",
        "Counters",
        "Facts",
        "Found",
        "Header",
        "Job",
        "Lane",
        "Look",
        "Mark",
        "Metric",
        "Pace",
        "Place",
        "Ranks",
        "Rows",
        "Rule",
        "Series",
        "Stamps",
        "Step",
        "Tables",
        "Text",
        "Wanted",
        "Watch",
        "arguments",
        "clock_text",
        "dropped",
        "fit",
        "fitted",
        "gap_at",
        "json_text",
        "lane_title",
        "lanes_of",
        "levels_of",
        "line_segments",
        "longest",
        "nearest",
        "ns_of",
        "run",
        "scrolled",
        "step_at",
        "switched",
        "text_of",
        "time_text",
        "toggled",
        "words",
        "written",
    }
)
"""Names that are to be told apart yet: this list only gets shorter."""


def _names() -> dict[str, list[str]]:
    """Return the files that define each class or public function; a command mirrors what it calls, a Python
    twin what it stands in for.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for room in ("core", "tui"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                if named and not node.name.startswith("_") and not _is_command(node):
                    files[node.name].append(str(path.relative_to(ROOT)))
    return files


def _is_command(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).startswith("click.command") for each in node.decorator_list)


def test_names_are_there_once() -> None:
    """No two files define a class or public function of one name, but for those that are listed here."""
    double = {name: files for name, files in _names().items() if len(files) > 1}
    unknown = {name: files for name, files in double.items() if name not in MIRRORS | STILL_DOUBLE}
    assert not unknown, f"say which: {unknown}"
