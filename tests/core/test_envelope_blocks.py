"""The keys around the events mean the same wherever the text is cut into blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reading import MemoryText
from tracelane.core.read.documents import BLOCK_SIZE, Documents
from tracelane.core.read.problem import Problem

EVENTS = [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]


def read_envelope(text: str, block_size: int) -> tuple[dict[str, Any], list[Problem]]:
    """Return the values around the events of a text that names them once, and what was wrong there."""
    data = text.encode()
    documents = Documents(MemoryText(data), block_size)
    begin = documents.next()
    if begin is not None:
        _, length = json.JSONDecoder().raw_decode(data[begin - 1 :].decode())
        size = len(data[begin - 1 :].decode()[:length].encode())
        assert documents.next(begin - 1 + size, closed=True) is None
    return documents.envelope.values, documents.problems


def around(value: object, *, behind: bool, indent: int | None, separators: tuple[str, str]) -> str:
    """Return a trace with keys before its events, or behind them."""
    keys = {"first": 1, "value": value, "last": "x"}
    both = {"traceEvents": EVENTS, **keys} if behind else {**keys, "traceEvents": EVENTS}
    return json.dumps(both, ensure_ascii=False, indent=indent, separators=separators)


ROWS = [
    {"cpu": 0, "tid": 1, "ts": 10_000_000 + i, "name": f"s{i:03d}", "sf": True, "weight": None}
    for i in range(90)
]
VALUES: dict[str, object] = {
    "rows": ROWS,
    "text": '# tracer: nop\n\\ "é😀" {[]} ' * 90,
    "nested": {"a": [[], {}, [[{"b": {"c": [1.5, -2e-7, "x:y,"]}}]]], "": {"": ""}},
    "words": [True, False, None] * 200,
    "numbers": [-1, 0, 1.25, 1e300, -2.5e-300, 10**30] * 100,
    "digits": 10**3900,
    "a long key": {"k" * 9_000: {"l" * 9_000: 1}},
    "keys like events": {"ph": "X", "args": {"ph": {"name": ["ts", "ph"]}}, "traceEvents": []},
    "empty": [{}, [], "", {"": []}] * 100,
    "quotes": ['"', '\\"', "\\\\", '\\\\"', "\\u0041", "\u2028"] * 100,
}
LAYOUTS: dict[str, tuple[int | None, tuple[str, str]]] = {
    "compact": (None, (",", ":")),
    "wide": (None, (" \n\t,  ", " \r\n : ")),
    "indented": (4, (",", ": ")),
}


@pytest.mark.slow
@pytest.mark.parametrize("behind", [False, True], ids=["before the events", "behind the events"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", VALUES)
def test_sound_keys_are_what_they_are_in_any_blocks(name: str, layout: str, behind: bool) -> None:
    """Read in blocks of 1 to 64 bytes, what stands around the events equals `json.loads`, with no problem."""
    indent, separators = LAYOUTS[layout]
    text = around(VALUES[name], behind=behind, indent=indent, separators=separators)
    expected = json.loads(text)
    del expected["traceEvents"]
    for size in (*range(1, 65), 4096):
        assert read_envelope(text, size) == (expected, []), size


@pytest.mark.slow
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["compact", "spaced"])
@pytest.mark.parametrize("behind", [False, True], ids=["before the events", "behind the events"])
def test_a_value_longer_than_a_block_is_sound_at_every_alignment(
    behind: bool, separators: tuple[str, str]
) -> None:
    """A value of many blocks is passed over without a problem wherever their edges fall in it; alignments
    before the events and behind them take turns.
    """
    value = json.dumps(["", ROWS * (BLOCK_SIZE // 3_000)], separators=separators)
    text = around("<here>", behind=behind, indent=None, separators=separators)
    for shift in range(behind, 40, 2):
        longer = f'["{"x" * shift}{value[2:]}'
        size = len(longer)
        values, problems = read_envelope(text.replace('"<here>"', longer), BLOCK_SIZE)
        assert (values["value"], values["last"]) == (f"({size:,} bytes)", "x")
        assert not problems


@pytest.mark.parametrize("blanks", [100, 5_000, 100_000])
def test_blanks_are_no_fault(blanks: int) -> None:
    """Any number of blanks may stand between the parts of keys and values."""
    gap = " \n" * (blanks // 2)
    value = f'{{{gap}"a"{gap}:{gap}[{gap}1{gap},{gap}"b"{gap}]{gap}}}'
    text = f'{{{gap}"key"{gap}:{gap}{value}{gap},{gap}"traceEvents"{gap}:{gap}[]{gap},"z"{gap}:{gap}2}}{gap}'
    values, problems = read_envelope(text, 1000)
    assert values["z"] == 2 and not problems
    assert values["key"] == (json.loads(value) if len(value) <= 1 << 16 else f"({len(value):,} bytes)")


def test_keys_and_numbers_may_be_long() -> None:
    """A key or number longer than a block is no fault; what Python cannot convert is kept as text."""
    digits = "1" * 5_000
    text = (
        f'{{"{"k" * 50_000}": 1, "n": {digits}, "f": 0.{digits}, "l": [{digits}], "traceEvents": [], "z": 2}}'
    )
    for size in (50, 5_000, BLOCK_SIZE):
        values, problems = read_envelope(text, size)
        assert not problems
        assert values == {"k" * 50_000: 1, "n": digits, "f": float("0." + digits), "l": [digits], "z": 2}


NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=60,
)


@pytest.mark.slow
@given(
    st.dictionaries(st.text(max_size=12), VALUE, max_size=6),
    st.integers(1, 64),
    st.sampled_from(list(LAYOUTS.values())),
    st.booleans(),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_keys_equal_what_json_says(
    keys: dict[str, Any], size: int, layout: tuple[int | None, tuple[str, str]], behind: bool
) -> None:
    """Whatever stands around the events, in blocks of any size it equals `json.loads`."""
    for name in ("traceEvents", "ph"):
        keys.pop(name, None)
    both = {"traceEvents": EVENTS, **keys} if behind else {**keys, "traceEvents": EVENTS}
    text = json.dumps(both, indent=layout[0], separators=layout[1])
    padded = text.replace('"traceEvents"', '"padding":"' + "p" * 5_000 + '","traceEvents"')
    expected = json.loads(padded)
    del expected["traceEvents"]
    values, problems = read_envelope(padded, size)
    assert not problems
    assert values == _as_kept(expected)


def _as_kept(value: Any) -> Any:
    """Return the value as it is kept: without lone surrogates, in strings longer than 4 KB their size."""
    plain = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return {
        key: f"({len(text) + 2:,} bytes)" if isinstance(text, str) and len(text) > 4_094 else text
        for key, text in plain.items()
    }
