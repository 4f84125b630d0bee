"""The keys around the events: kept while small, noted when large, never in the way of the events."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from tests.forms import deep
from tests.reading import read_text
from tracelane.core.read import envelope as envelope_module
from tracelane.core.read.envelope import Envelope
from tracelane.core.read.problem import Problem

EVENTS = [{"ph": "X", "name": f"n{i}", "ts": i, "pid": 1, "tid": 1} for i in range(30)]
TEXT = json.dumps(EVENTS)


def scan(text: str | bytes, size: int) -> tuple[list[Any], Envelope, list[Problem]]:
    read = read_text(text.encode() if isinstance(text, str) else text, size)
    return read.elements, read.envelope, read.problems


SIZES = (50, 300, 262_144)


@pytest.mark.parametrize("size", SIZES)
def test_small_values_are_kept(size: int) -> None:
    """Small values before and after the events come out as they are, of a key given twice the last."""
    before = {
        "schemaVersion": 1,
        "a": [1, {"b": None}],
        "t": 'x"\\é😀\n',
        "n": -1.5e3,
        "big": 10**30,
        "z": True,
    }
    after = {"traceName": "]}[{", "displayTimeUnit": "ns", "baseTimeNanoseconds": 17, "z": False, "": {}}
    text = json.dumps(before)[:-1] + ',"traceEvents":' + TEXT + "," + json.dumps(after)[1:]
    events, envelope, problems = scan(text, size)
    assert events == EVENTS and not problems
    assert envelope.values == {**before, **after}
    assert (envelope.base_time_ns, envelope.display_unit) == (17, "ns")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1), ('"12"', 12), ("null", None), ("true", None), ("1.5", None), ('"x"', None), ("[1]", None)],
)
def test_a_base_time_of_unusable_type_counts_as_absent(value: str, expected: int | None) -> None:
    """baseTimeNanoseconds may be an integer or its text; anything else is no base time."""
    _, envelope, _ = scan(f'{{"baseTimeNanoseconds": {value}, "traceEvents": []}}', 300)
    assert envelope.base_time_ns == expected


@pytest.mark.parametrize("size", (300, 262_144))
@pytest.mark.parametrize(
    "value",
    [json.dumps("x" * 5_000), json.dumps(list(range(40_000))), json.dumps({"k" * 70_000: 1}), deep(50_000)],
    ids=["string", "list", "key", "deep"],
)
def test_large_values_are_noted_by_their_size(value: str, size: int) -> None:
    """A value too large or too deep to be kept leaves a note of its size; the rest is read."""
    text = f'{{"large": {value}, "traceEvents": {TEXT}, "also": {value}, "small": 1}}'
    events, envelope, problems = scan(text, size)
    assert events == EVENTS and not problems
    assert envelope.values["large"] == envelope.values["also"] == f"({len(value):,} bytes)"
    assert envelope.values["small"] == 1


@pytest.mark.slow
def test_a_huge_envelope_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys, or one value of 5 MB, are passed over in bounded memory."""
    monkeypatch.setattr(envelope_module, "LONGEST_EVENT", 2 << 20)
    large = json.dumps({"s": ["y" * 100] * 50_000})
    many = ",".join(f'"key{i}": "value"' for i in range(10_000))
    data = f'{{"large": {large}, {many}, "traceEvents": {TEXT}}}'.encode()
    tracemalloc.start()
    events, _, _ = scan(data, 262_144)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert events == EVENTS
    assert peak < 20 << 20


BROKEN = {
    "quotes": '"note": "say "hi" now"',
    "odd quote": '"note": "say "hi now"',
    "quotes in a list": '"note": ["a "b" c", "d"]',
    "odd quote in an object": '"note": {"x": "a "b c", "y": [1]}',
    "json in a string": '"note": "{"a": 1, "b": {"c": [2]}}"',
    "control characters": '"note": "a\nb\tc"',
    "bare word": '"note": oops',
    "nothing": '"note": ',
    "bad escape": '"note": "C:\\Temp\\x"',
    "single quotes": "'note': 'x'",
}
READ_AS_MEANT = ("control characters", "bad escape", "bare word")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["before", "after", "kineto"])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_keys_do_not_hide_the_events(name: str, where: str, size: int) -> None:
    """Whatever a writer did to its keys, the events are found, and so are the keys that follow."""
    broken = BROKEN[name]
    if where == "before":
        text = f'{{"first": 1, {broken}, "second": 2, "traceEvents": {TEXT}, "third": 3}}'
    elif where == "after":
        text = f'{{"first": 1, "traceEvents": {TEXT}, {broken}, "second": 2, "third": 3}}'
    else:
        lines = ",\n    ".join(json.dumps(e) for e in EVENTS)
        text = f'{{\n  "first": 1,\n  {broken},\n  "second": 2,\n'
        text += f'  "traceEvents": [\n    {lines}\n  ],\n  "third": 3\n}}'
    events, envelope, problems = scan(text, size)
    assert events == EVENTS
    assert envelope.values["first"] == 1
    kinds = {problem.kind for problem in problems}
    assert ("broken envelope" in kinds) == (name not in READ_AS_MEANT)
    if "odd" not in name and name != "json in a string":
        assert envelope.values.get("second") == 2 and envelope.values.get("third") == 3


def test_a_broken_note_is_kept_where_its_end_is_plain() -> None:
    """A note with stray quotes is kept whole, and the report names it and its place."""
    text = (
        ' {\n    "schemaVersion": 1,\n    "note": "say "hi", you",\n    "traceEvents": [\n  '
        + TEXT[1:]
        + "\n}"
    )
    events, envelope, problems = scan(text, 262_144)
    assert events == EVENTS
    assert envelope.values == {"schemaVersion": 1, "note": 'say "hi", you'}
    (problem,) = problems
    assert problem.kind == "broken envelope" and "note" in problem.message
    assert problem.offset == text.index('"note"')


@pytest.mark.parametrize("size", SIZES)
def test_a_text_cut_anywhere_in_its_keys_ends_in_peace(size: int) -> None:
    """Cut at every byte before and after the events, a file yields its events or none, and never an error."""
    head = '{"schemaVersion": 1, "nested": {"a": ["b", "\\"]"]}, "text": "x\\\\", "n": -12.5, "traceEvents": '
    tail = ', "traceName": "q\\"[", "list": [1, {"a": "]"}], "baseTimeNanoseconds": 5}'
    text = head + TEXT + tail
    for cut in range(1, len(text)):
        if len(head) < cut < len(head) + len(TEXT):
            continue
        events, _, problems = scan(text[:cut], size)
        assert events == (EVENTS if cut > len(head) else [])
        assert problems, cut


def test_text_around_documents_is_reported() -> None:
    """What stands before, between or behind documents is passed over and reported with its offset."""
    events, _, problems = scan(f"log line\n{TEXT}\ngarbage {TEXT} the end", 262_144)
    assert events == EVENTS * 2
    (problem,) = problems
    assert (problem.kind, problem.count, problem.offset) == ("unreadable", 3, 0)


def test_a_file_without_its_head_is_read() -> None:
    """A file that begins amid an event yields all that follow it."""
    events, _, problems = scan(TEXT[20:] + "}", 262_144)
    assert events == EVENTS[1:]
    assert problems
