"""Decoding on demand: fast where it goes, without recursion where it must, with one result."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.read.decode import decode_deep, decode_elements

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abts", max_size=3), inner, max_size=4)
    ),
    max_leaves=30,
)


def depth(value: Any) -> int:
    """How deep lists are nested, without recursion."""
    deep = 0
    while isinstance(value, list) and value:
        value, deep = value[0], deep + 1
    return deep


@given(st.lists(JSON, max_size=5))
def test_decoding_agrees_with_the_standard_library(values: list[Any]) -> None:
    """Any JSON values come out as Python's own decoder gives them, but for exact ts and dur of events."""
    text = json.dumps(values)[1:-1].encode()
    assert decode_elements(text) == values
    exact = decode_deep(text)
    for mine, expected in zip(exact, values, strict=True):
        if isinstance(mine, dict):
            mine.update({k: float(mine[k]) for k in ("ts", "dur") if type(mine.get(k)) is Decimal})
        assert mine == expected
        assert json.dumps(mine) == json.dumps(expected)


def test_exact_numbers() -> None:
    """Decoding without recursion keeps all digits of integers and of an event's ts and dur, no others."""
    text = b'{"ts":1712195495505582.988,"dur":1e-3,"pid":18446744073709551616,"args":{"ts":0.1}},0.5'
    event, number = decode_deep(text)
    assert isinstance(event, dict)
    assert event["ts"] == Decimal("1712195495505582.988")
    assert event["dur"] == Decimal("0.001")
    assert event["pid"] == 18446744073709551616
    assert type(event["args"]["ts"]) is float
    assert type(number) is float


@pytest.mark.parametrize("levels", [1000, 1100, 50_000])
def test_depth_has_no_limit(levels: int) -> None:
    """A value nested deeper than orjson goes is read all the same, by both."""
    text = b"[" * levels + b"]" * levels
    for decode in (decode_elements, decode_deep):
        (value,) = decode(text)
        assert depth(value) == levels - 1
        assert isinstance(value, list)


@pytest.mark.parametrize(
    "text",
    [
        b"NaN",
        b"Infinity",
        b'"\t"',
        b'"\xff"',
        b"1],[2",
        b"1,",
        b",1",
        b"01",
        b"-",
        b'{"a":1 "b":2}',
        b'{"a"}',
        b"{",
        b"}",
        b'"',
        b"/**/1",
        b"tru",
        b'"\\T"',
    ],
)
def test_both_refuse_what_is_no_json(text: bytes) -> None:
    """What is no JSON is a ValueError from either, so that repair sees it."""
    for decode in (decode_elements, decode_deep):
        with pytest.raises(ValueError):
            decode(text)


@pytest.mark.parametrize("text", [b'"\\ud83d\\ude00"', b'"\\\\ud800"', b'"\\\\\\ud83d\\ude00"'])
def test_pairs_of_surrogates_are_no_lone_ones(text: bytes) -> None:
    """Escaped backslashes and whole pairs are read as they are meant."""
    assert decode_deep(text) == decode_elements(text) == json.loads(b"[" + text + b"]")


def test_nothing_is_an_empty_block() -> None:
    """No text is no events."""
    assert decode_elements(b"") == decode_deep(b" \n") == []


@pytest.mark.parametrize(
    "number", ["7" * 4301, "7" * 200_000, "-" + "7" * 200_000, "1e9999999999999999999"], ids=len
)
def test_numbers_beyond_reading_are_refused(number: str) -> None:
    """A number of endless digits or exponent is left to repair, by both decoders, and ends no process."""
    text = b'{"ph":"X","ts":1,"args":{"n":' + number.encode() + b"}}"
    for decode in (decode_deep, decode_elements):
        with pytest.raises(ValueError):
            decode(text)
