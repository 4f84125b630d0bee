"""What is remembered of a trace or an index goes with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from weakref import ref

from tests.corpus import ROOT
from tracelane.core.base.cached_per_object import cached_per_object

HELD_OPEN = ("Trace", "Index", "Scope", "Source", "TraceLanes")
"""What has files open, or maps of files."""


class Thing:
    """Something that answers are about."""


def test_answers_are_remembered_by_object_and_arguments() -> None:
    """A function runs once for an object and the other arguments, of which each object has its latest."""
    calls = []

    @cached_per_object(maxsize=2)
    def answer(one: Thing, number: int, *, word: str = "") -> tuple[int, str]:
        calls.append((one, number, word))
        return number, word

    first, second = Thing(), Thing()
    for one in (first, second, first, second):
        assert answer(one, 1) == (1, "") and answer(one, 1, word="x") == (1, "x")
    assert len(calls) == 4
    for number in (1, 2, 3, 1):
        answer(first, number)
    assert [number for _, number, word in calls[4:]] == [2, 3, 1]


def test_nothing_holds_an_object_that_is_not_used() -> None:
    """An object that an answer was remembered of is gone as soon as nobody else has it."""

    @cached_per_object()
    def answer(one: Thing) -> list[int]:
        return [id(one)]

    thing = Thing()
    answer(thing)
    known = ref(thing)
    del thing
    assert known() is None


def _cached_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield (file and line, function) of what caches of functools hold answers of for all callers."""
    for path in sorted(path for room in ("core", "tui") for path in (ROOT / room).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(one).split("(")[0].split(".")[-1] in ("cache", "lru_cache")
                for one in node.decorator_list
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_caches_hold_no_trace_and_no_index() -> None:
    """No cache that outlasts a trace has one, or an index, scope or source, among its keys."""
    functions = list(_cached_functions())
    assert functions
    for where, function in functions:
        kinds = {ast.unparse(one.annotation) for one in function.args.args if one.annotation is not None}
        assert not kinds & set(HELD_OPEN), f"{where}: use `cached_per_object`"
