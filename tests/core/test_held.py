"""Answers about names are held, and no names of a trace fill the memory by that."""

from __future__ import annotations

import ast
import gc
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tests.core.findings_traces import trace_of
from tests.corpus import ROOT
from tests.events import complete
from tracelane.core.base.colours import key_of, key_of_name, key_of_value
from tracelane.core.base.held import LONG_TEXT, MAX_LONG, MAX_SHORT, SHORT_NAMES, held_by_name
from tracelane.core.base.kineto import slice_kind, started_work, work_kind
from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import comparable_name, short_name

HELD: dict[str, Callable[[str], object]] = {
    "short name": short_name,
    "comparable name": comparable_name,
    "safe": safe,
    "colour of a name": key_of_name,
    "colour of a value": key_of_value,
    "colour": lambda name: key_of("kernel", name, is_work=True),
    "kind": lambda name: slice_kind("kernel", name),
    "kind of a category": slice_kind,
    "kind of work": lambda name: work_kind("", name),
    "started work": started_work,
}
BOUNDED = {
    "core/base/installed.py": "names of groups of entry points",
    "core/base/needed_words.py": "patterns of the program",
    "core/base/pattern.py": "patterns that a person writes",
    "core/index/roles.py": "what is remembered goes with 64 files",
    "core/read/remote_files.py": "servers",
    "core/tables/frame/kinds.py": "a file of settings",
    "core/tables/host/host_columns.py": "expressions of the program, each with names that are short",
}
"""Files of core that hold answers by texts in another way, and what these are."""


@pytest.mark.parametrize(
    ("length", "calls"), [(MAX_SHORT, 1), (MAX_SHORT + 1, 1), (MAX_LONG, 1), (MAX_LONG + 1, 2)]
)
def test_a_name_is_asked_once(length: int, calls: int) -> None:
    """What was asked of a name of usual length is known the second time, whatever stands behind it."""
    times = count()

    @held_by_name
    def length_of(name: str, more: str = "") -> int:
        next(times)
        return len(name) + len(more)

    assert [length_of("a" * length), length_of("a" * length)] == [length, length]
    assert next(times) == calls
    assert length_of("a", more="b") == length_of("a", "b") == 2


def test_the_names_asked_last_are_held() -> None:
    """There are never more of them, and those asked longest ago go first."""
    names = list[str]()
    ask = held_by_name(names.append)
    for number in range(SHORT_NAMES + 1):
        ask(f"{number}")
    ask(f"{SHORT_NAMES}")
    assert len(names) == SHORT_NAMES + 1
    ask("0")
    assert len(names) == SHORT_NAMES + 2
    names.clear()
    long = [f"{number:0{MAX_LONG}}" for number in range(LONG_TEXT // MAX_LONG)]
    for name in [*long, *long, "1" * MAX_LONG, long[0]]:
        ask(name)
    assert names == [*long, "1" * MAX_LONG, long[0]]


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD)
def test_long_names_fill_no_memory(name: str) -> None:
    """After names of a megabyte, of which one would be too much, and more long ones than are held, little is
    held.
    """
    ask = HELD[name]
    ask("warm")
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3):
            ask(f"{number}\n" + "a" * (1 << 20))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 1 << 20
        for number in range(2 * LONG_TEXT // MAX_LONG):
            ask(f"{number}\n" + "a" * (MAX_LONG - 100))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 3 * LONG_TEXT  # a name is a key, and its form
    finally:
        tracemalloc.stop()


def test_no_other_cache_of_core_holds_texts() -> None:
    """A function of a text is held by `held_by_name`, or its file says why its texts are few and short."""
    others = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "core").rglob("*.py")
        if path != ROOT / "core" / "base" / "held.py" and _holds_texts(path)
    }
    assert others == BOUNDED.keys()


def _holds_texts(path: Path) -> bool:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    decorators = {id(inner) for one in functions for each in one.decorator_list for inner in ast.walk(each)}
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == "lru_cache"]
    return any(id(use) not in decorators for use in uses) or any(
        any(ast.unparse(one).split("(")[0] in ("cache", "lru_cache") for one in function.decorator_list)
        and any("str" in ast.unparse(one.annotation) for one in function.args.args if one.annotation)
        for function in functions
    )


def test_long_strings_of_an_index_are_read_anew(tmp_path: Path) -> None:
    """An index holds the strings it was asked for, but no long ones; both stay what they are."""
    names = [*(f"{number}" + "a" * (1 << 20) for number in range(20)), "short"]
    events = [complete(number, 1, name) for number, name in enumerate(names)]
    with closing(trace_of(events, tmp_path)) as trace:
        index = trace.indexes[0]
        numbers = index.column("slices.name").tolist()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            assert index.strings(numbers) == names
            assert index.string(numbers[-1]) is index.string(numbers[-1])
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] - before < 1 << 20
        finally:
            tracemalloc.stop()
