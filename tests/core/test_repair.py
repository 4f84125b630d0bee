"""Repair: every whole event of a damaged text is read, and the damage is reported where it is."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus import CORPUS, GOLDENS, file, later, needs, recoverable
from tests.forms import events, kineto_classic, kineto_new
from tests.reading import read_file, read_text
from tracelane.core.base.errors import UnreadableError
from tracelane.core.read.problem import Problem
from tracelane.core.read.repair import Repair, RepairedEvent, Unreadable, repair
from tracelane.core.read.tolerant import MAX_DEPTH, TOO_DEEP, Habits


def values(text: bytes) -> list[Any]:
    return [item.value for item in repair(text) if isinstance(item, RepairedEvent)]


def scan(data: bytes, size: int = 262_144) -> tuple[list[Any], list[Problem]]:
    read = read_text(data, size)
    return read.elements, read.problems


E = '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%d,"dur":5}'
GOOD = [json.loads(E % (f"good{i}", i)) for i in range(4)]
TEXTS = [(E % (f"good{i}", i)).encode() for i in range(4)]

SINGLE: list[tuple[str, bytes, Any]] = [
    ("nan", b'{"ph":"X","dur":NaN}', {"ph": "X", "dur": math.nan}),
    ("infinities", b'{"a":[Infinity,-Infinity,inf,-inf]}', {"a": [math.inf, -math.inf, math.inf, -math.inf]}),
    ("other nans", b'{"a":[nan,NAN,-nan(1)]}', None),
    ("newline", b'{"name":"a\nb"}', {"name": "a\nb"}),
    ("controls", b'{"name":"\x00\x1b[31m\x7f"}', {"name": "\x00\x1b[31m\x7f"}),
    ("bad utf-8", b'{"name":"a\xff\xfeb\xc3"}', {"name": "a\ufffd\ufffdb\ufffd"}),
    ("lone surrogates", rb'{"name":"\ud800x\udc00"}', {"name": "\ufffdx\ufffd"}),
    ("pair", b'{"x":NaN,"name":"\\ud83d\\ude00"}', {"x": math.nan, "name": "😀"}),
    ("raw surrogate", b'{"name":"\xed\xa0\x80"}', {"name": "\ufffd\ufffd\ufffd"}),
    ("bad escapes", rb'{"name":"C:\Temp\x\user"}', {"name": r"C:\Temp\x\user"}),
    ("trailing commas", b'{"a":[1,2,],"b":2,}', {"a": [1, 2], "b": 2}),
    ("python words", b'{"a":True,"b":None}', {"a": True, "b": None}),
    (
        "quoted name",
        b'{"ph":"X","name":"a "quoted" name","pid":1}',
        {"ph": "X", "name": 'a "quoted" name', "pid": 1},
    ),
    ("one stray quote", b'{"ph":"X","name":"a "b","pid":1}', {"ph": "X", "name": 'a "b', "pid": 1}),
    ("quote last", b'{"ph":"X","pid":1,"name":"a "b""}', {"ph": "X", "pid": 1, "name": 'a "b"'}),
    (
        "quoted json",
        b'{"ph":"X","name":"{"device": "cpu", "n": 1}(1)","pid":1}',
        {"ph": "X", "name": '{"device": "cpu", "n": 1}(1)', "pid": 1},
    ),
    (
        "quotes in args",
        b'{"ph":"X","args":{"k":"x "y" z","n":1}}',
        {"ph": "X", "args": {"k": 'x "y" z', "n": 1}},
    ),
    (
        "quotes in a list",
        b'{"ph":"X","args":{"k":["x "y"","z"]}}',
        {"ph": "X", "args": {"k": ['x "y"', "z"]}},
    ),
    ("quote in a key", b'{"ph":"X","args":{"a "b" c":1}}', {"ph": "X", "args": {'a "b" c': 1}}),
    (
        "huge integer",
        b'{"id":123456789012345678901234567890,"x":NaN}',
        {"id": 123456789012345678901234567890, "x": math.nan},
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in SINGLE], ids=[case[0] for case in SINGLE]
)
def test_what_profilers_get_wrong_is_read(text: bytes, expected: Any) -> None:
    """Each fault that writers are known for is read for what was meant, and costs its neighbours nothing."""
    data = b",\n".join([TEXTS[0], TEXTS[1], text, TEXTS[2], TEXTS[3]])
    got = repair(data)
    read = [item.value for item in got if isinstance(item, RepairedEvent)]
    assert read[:2] == GOOD[:2] and read[-2:] == GOOD[2:]
    begin = data.index(text)
    (damaged,) = [item for item in got if isinstance(item, Unreadable) or item.why]
    assert (damaged.offset, damaged.length) == (begin, len(text))
    if expected is not None:
        assert isinstance(damaged, RepairedEvent)
        assert repr(damaged.value) == repr(expected)


def test_times_of_repaired_events_stay_exact() -> None:
    """A stamp that a float cannot hold keeps all its digits when its event had to be repaired."""
    (value,) = values(b'{"ph":"X","ts":1712195495505582.988,"dur":4.928,"args":{"ts":0.5,"x":NaN}}')
    assert value["ts"] == Decimal("1712195495505582.988") and value["dur"] == Decimal("4.928")
    assert value["args"]["ts"] == 0.5


def test_values_nested_too_deep_are_noted() -> None:
    """A value nested deeper than can be shown is replaced by a note, not by an error."""
    (value,) = values(b'{"ph":"X","a":NaN,"deep":' + b"[" * 60_000 + b"]" * 60_000 + b"}")
    deep = value["deep"]
    for _ in range(MAX_DEPTH - 2):
        (deep,) = deep
    assert deep == [TOO_DEEP] and value["ph"] == "X"


@pytest.mark.parametrize(
    ("behind", "length", "why", "cut_off"),
    [
        (b', {"ph":"X","name":"a', 19, "an event is cut off by the end of the text", True),
        (b', garbage, {"ph":"X","ts":1}', 7, "no value where one is expected", False),
        (b', {"ph" "X"}', 10, "a key without its colon", False),
    ],
)
def test_what_is_unreadable_says_why(behind: bytes, length: int, why: str, cut_off: bool) -> None:
    """Only what the end of the text cuts off is said to be."""
    assert repair(TEXTS[0] + behind)[1] == Unreadable(len(TEXTS[0]) + 2, length, why, cut_off)


GARBAGE = [
    b"garbage",
    b"Segmentation fault (core dumped)\n",
    b'"half',
    b"}}}",
    b"\x00\x00\x00",
    b'{"ph":',
    b"<html>",
]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("layout", ["compact", "new", "classic"])
def test_garbage_between_events_costs_none(garbage: bytes, layout: str) -> None:
    """Text that belongs to no event is passed over; every event around it is read."""
    items = [{**e, "name": f"n{i}"} for i, e in enumerate(events(40))]
    if layout == "compact":
        data = json.dumps({"traceEvents": items}, separators=(",", ":")).encode()
    else:
        data = (kineto_new if layout == "new" else kineto_classic)(items)
    separator = b'"name":"n20"' if layout == "compact" else b'"name": "n20"'
    offset = data.rindex(b"{", 0, data.index(separator))
    broken = data[:offset] + garbage + data[offset:]
    got, problems = scan(broken)
    assert [e for e in got if e in items] == items
    assert problems
    assert min(p.offset for p in problems if p.offset is not None) >= offset - 20


@pytest.mark.slow
@pytest.mark.parametrize("every", [7, later(1)])
@pytest.mark.parametrize("layout", [kineto_new, kineto_classic])
def test_a_text_truncated_anywhere_keeps_what_is_whole(layout: Any, every: int) -> None:
    """Cut at any byte offset, a trace yields exactly the events that end before the cut."""
    items = events(12)
    data = layout(items)
    ends = []
    at = data.index(b'"traceEvents"')
    for item in items:
        for piece in item:
            at = data.index(json.dumps(piece).encode(), at)
        at = data.index(b"\n  }", at) + 4
        ends.append(at)
    last = ends[-1]
    for cut in range(data.index(b"[", data.index(b'"traceEvents"')) + 1, len(data), every):
        got, problems = scan(data[:cut])
        assert got == items[: sum(end <= cut for end in ends)], cut
        assert bool(problems) == (cut < len(data.rstrip()))
        if cut < last:
            assert any(p.kind == "truncated" for p in problems)


MUTATIONS = st.sampled_from(
    [
        b"NaN",
        b'"',
        b"\n",
        b"\x00",
        b"\xff",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'""',
        b"}, {",
        b"\\u12",
    ]
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 1000),
    layout=st.sampled_from(["compact", "new", "classic"]),
    where=st.floats(0, 1, exclude_max=True),
    what=MUTATIONS,
    remove=st.integers(0, 6),
    size=st.sampled_from([400, 3_000, 262_144]),
)
def test_damage_to_one_event_leaves_the_others(
    seed: int, layout: str, where: float, what: bytes, remove: int, size: int
) -> None:
    """Whatever is put in place of some bytes of one event, all others are read as they were, in order."""
    items = [
        {**e, "name": f"n{i}", "args": {"i": i, "dims": [[1, 2], []]}} for i, e in enumerate(events(14, seed))
    ]
    if layout == "compact":
        data = json.dumps({"traceEvents": items}, separators=(",", ":")).encode()
    else:
        data = (kineto_new if layout == "new" else kineto_classic)(items)
    name = b'"name":"n7"' if layout == "compact" else b'"name": "n7"'
    begin = data.rindex(b"{", 0, data.index(name))
    end = data.index(b"}", data.index(b"}", begin) + 1)
    offset = min(begin + 1 + int(where * (end - begin - 1)), end - 1)
    broken = data[:offset] + what + data[min(offset + remove, end) :]
    got, problems = scan(broken, size)
    others = items[:7] + items[8:]
    assert [e for e in got if e in others] == others
    try:
        json.loads(broken)
    except ValueError:
        assert problems
        offsets = [p.offset for p in problems if p.offset is not None]
        assert min(offsets) >= begin - 20


@needs(CORPUS, GOLDENS)
def test_the_corpus_yields_what_is_recoverable() -> None:
    """Of each real file that is no valid JSON at least the events counted by hand are read."""
    cases = recoverable()
    assert any(cases.values())
    for name, least in cases.items():
        for size in (2_000, 262_144):
            try:
                read = read_file(file(name), size)
            except UnreadableError:
                assert least == 0
                continue
            assert len(read.elements) >= least, name


@needs(CORPUS)
def test_names_with_stray_quotes_are_recovered_whole() -> None:
    """Names that torch wrote with quotes nobody escaped come out as they were meant."""
    expected = {
        "cpu/torch213_real_rf_quotes.json": 'a "quoted" name',
        "cpu/torch213_real_stack_quotes.json": '{"device": "cpu", "dtype": "float32"}(1): run',
    }
    for name, event_name in expected.items():
        for size in (600, 262_144):
            assert event_name in [event["name"] for event in read_file(file(name), size).elements]


@pytest.mark.parametrize(
    ("damaged", "is_asked"),
    [(b'{"ph":"X","name":"a\x01b","pid":1}', False), (b'{"ph":"X","name":"a "b","pid":1}', True)],
)
def test_habits_are_learnt_where_quotes_are_stray(damaged: bytes, is_asked: bool) -> None:
    """What the writer puts behind a value is asked for where it decides, as learning it takes long."""
    offsets: list[int] = []

    def habits(offset: int) -> Habits:
        offsets.append(offset)
        return Habits()

    data = damaged + b", " + TEXTS[0]
    item, _ = Repair(lambda at, size: data[at : at + size], habits).mend(0)
    assert isinstance(item, RepairedEvent) and item.value["pid"] == 1 and bool(offsets) == is_asked
