"""What is remembered of a trace or an index goes with it."""

from __future__ import annotations

from weakref import ref

from tracelane.core.base.cached_per_object import cached_per_object


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
