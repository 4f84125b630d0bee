"""The viewer asks the Trace: it names no column of an index, holds no index, and judges no category."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.corpus import ROOT
from tests.modules import at, files_of, tree_of
from tracelane.core.base.kineto import GROUPS, vendor_of
from tracelane.core.index.format import COLUMNS

STORE = "tracelane.core.index.store"
MAKES_TRACES = frozenset(("tui/cli/viewing.py",))
"""Where the index of a file that was just read becomes a trace, without anybody looking into it."""
WORDS = frozenset(("categories", "windows"))
"""Columns whose names say other things too."""
TABLES = frozenset(column.partition(".")[0] for column in COLUMNS if "." in column)


def _is_column(text: str) -> bool:
    """Tell whether a text names a column of an index: slices.start, promoted.cname.value, row_categories."""
    table, dot, name = text.partition(".")
    return text in COLUMNS.keys() - WORDS or (
        bool(dot) and table in {*TABLES, "promoted"} and name.replace(".", "_").isidentifier()
    )


def _uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, what) for each name of a column, use of a trace's indexes and import of the index."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_column(node.value):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            begin = str(node.values[0].value)
            if begin.endswith(".") and begin[:-1] in {*TABLES, "promoted"}:
                yield node.lineno, begin
        elif isinstance(node, ast.Attribute) and node.attr == "indexes":
            yield node.lineno, ".indexes"
        elif isinstance(node, ast.ImportFrom) and node.module == STORE:
            yield node.lineno, STORE


@pytest.mark.slow
def test_the_viewer_knows_no_index() -> None:
    """No file of the viewer names a column or asks a trace for its indexes; two pass an index on."""
    around = [
        at(path, line, what)
        for path in files_of("tui")
        for line, what in _uses(tree_of(path))
        if what != STORE or str(path.relative_to(ROOT)) not in MAKES_TRACES
    ]
    assert not around, "\n".join(around)


DEVICE_WORDS = re.compile(r"\b(gpu|cuda|aiu|xpu|mtia|hpu|npu|tpu|spyre|accelerator|n?ccl)", re.IGNORECASE)
DEVICE_CATEGORIES = GROUPS["device"] - {"kernel", "Kernel"}
"""Without the two that are roles and titles, too."""
PATTERNS = ("compile", "search", "match", "fullmatch", "sub", "findall")


def _judgements(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, what) for each category of a device or runtime, and each regular expression about devices:
    what they decide is decided in core (`Lane.role`, `slice_kind`).
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value in DEVICE_CATEGORIES or vendor_of(node.value):
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            pattern = getattr(node.args[0], "value", None)
            if node.func.attr in PATTERNS and isinstance(pattern, str) and DEVICE_WORDS.search(pattern):
                yield node.lineno, pattern


def test_the_viewer_judges_no_lane() -> None:
    """No file of the viewer tells by a category, label or name what a device, kernel or call is."""
    around = [at(path, *one) for path in files_of("tui") for one in _judgements(tree_of(path))]
    assert not around, "\n".join(around)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('re.compile(r"\\b(gpu|aiu)\\b")', 1),
        ('category == "gpu_memcpy"', 1),
        ('{"cuda_runtime": 1, "npu_driver": 2}', 2),
        ('title = "GPU 0"', 0),
        ('keys = ("kernel", "cpu_op")', 0),
        ('re.compile(r"step_\\d+")', 0),
    ],
)
def test_each_judgement_is_seen(code: str, count: int) -> None:
    """Categories and expressions are seen, words of texts are not."""
    assert len(list(_judgements(ast.parse(code)))) == count


@pytest.mark.parametrize(
    "code",
    [
        'index.column("slices.start")',
        'index.column(f"promoted.{key}.value")',
        'index.column("row_categories")',
        'names = ("flows.source", "other")',
        "count = len(trace.indexes)",
        "from tracelane.core.index.store import Index",
    ],
)
def test_each_way_around_is_seen(code: str) -> None:
    """Columns by their names, whole or in parts, indexes of a trace, and the class itself."""
    assert list(_uses(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ['table.column("name")', 'say("slices. Then")', 'title = "categories"', "trace.sources"]
)
def test_other_words_are_none(code: str) -> None:
    """Columns of tables, sentences and a trace's sources are asked for everywhere."""
    assert not list(_uses(ast.parse(code)))
