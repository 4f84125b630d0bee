"""Pickles of plain values are read as Python reads them; all other pickles do nothing and are refused."""

from __future__ import annotations

import io
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.linear import assert_linear
from tracelane.core.read.pickle_values import MAX_DEPTH, CutOffError, Elements, PickleError, PickleReader

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
)
KEYS = st.text(max_size=8) | st.integers(0, 1 << 20)
VALUES = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=5).map(tuple),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=40,
)


class Nobody:
    """Takes no elements."""

    def begins(self, owner: list[Any] | None, key: object) -> Elements | None:
        return None

    def take(self, elements: Elements, values: list[Any]) -> None:
        raise AssertionError

    def reference(self, value: Any) -> Any:
        raise AssertionError


class Rows(Nobody):
    """Takes the elements of the list "rows", and forgets them."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.calls = 0

    def begins(self, owner: list[Any] | None, key: object) -> Elements | None:
        return Elements() if key == "rows" else None

    def take(self, elements: Elements, values: list[Any]) -> None:
        self.rows += values
        self.calls += 1

    def reference(self, value: Any) -> Any:
        return "forgotten"


def read(data: bytes, receiver: Nobody | None = None, step: int = 1 << 20) -> Any:
    """Read a pickle, at most `step` bytes at a time."""
    stream = io.BytesIO(data)
    return PickleReader(lambda n: stream.read(min(n, step)), receiver or Nobody()).value()


@given(VALUES, st.integers(2, 5), st.sampled_from([1, 7, 1 << 20]))
def test_plain_values_are_those_that_were_pickled(value: Any, protocol: int, step: int) -> None:
    """Whatever plain value is pickled comes back, by any protocol, in whatever pieces the file is read."""
    assert read(pickle.dumps(value, protocol), step=step) == value


def test_what_occurs_twice_is_one_value() -> None:
    """A list that two places hold is the same list in both."""
    shared = ["x"]
    first, second = read(pickle.dumps([shared, shared]))
    assert first is second == shared


class Harmful:
    """What writes a file when Python unpickles it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.path),)


class Plain:
    pass


HOSTILE = {
    "GLOBAL": b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.",
    "STACK_GLOBAL": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
    "INST": b"\x80\x02(X\x02\x00\x00\x00idiposix\nsystem\n.",
    "OBJ": b"\x80\x02(cposix\nsystem\nX\x02\x00\x00\x00ido.",
    "REDUCE of a text": b"\x80\x02X\x02\x00\x00\x00id)R.",
    "NEWOBJ": b"\x80\x02])\x81.",
    "NEWOBJ_EX": b"\x80\x04])}\x92.",
    "BUILD": b"\x80\x02}}b.",
    "PERSID": b"\x80\x02Pname\n.",
    "BINPERSID": b"\x80\x02K\x01Q.",
    "EXT1": b"\x80\x02\x82\x01.",
    "EXT2": b"\x80\x02\x83\x01\x00.",
    "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "NEXT_BUFFER": b"\x80\x05\x97.",
    "READONLY_BUFFER": b"\x80\x05K\x01\x98.",
    "import of antigravity": b"\x80\x02cantigravity\nfly\n.",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("before", [b"", b"\x80\x04}\x94\x8c\x08segments\x94]\x94s0"], ids=["alone", "later"])
def test_no_class_no_call_and_no_import(name: str, before: bytes) -> None:
    """Each opcode by which a pickle names, makes or calls something ends the reading in one clear line."""
    with pytest.raises(PickleError, match=r"nothing of it was run: it .* at byte \d+$") as caught:
        read(before + HOSTILE[name])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_harmful_pickle_does_nothing(protocol: int, tmp_path: Path) -> None:
    """What would make a folder if Python unpickled it makes none."""
    data = pickle.dumps({"segments": [], "device_traces": [Harmful(tmp_path / "made")]}, protocol)
    with pytest.raises(PickleError):
        read(data)
    assert not (tmp_path / "made").exists()
    pickle.loads(data)
    assert (tmp_path / "made").exists()


def test_the_reader_has_no_way_to_a_class() -> None:
    """Neither the reader nor what it is made of names Python's unpickler, an import, or a call by name."""
    source = Path(__import__("tracelane.core.read.pickle_values", fromlist=["x"]).__file__).read_text("utf-8")
    assert not [
        word for word in ("import pickle", "importlib", "__import__", "getattr(", "eval(") if word in source
    ]


MALFORMED = {
    "nothing on the stack": b"\x80\x02}s.",
    "no mark": b"\x80\x02]e.",
    "mark at the bottom": b"\x80\x02(e.",
    "an item of a list": b"\x80\x02]K\x01K\x02s.",
    "an element of a dictionary": b"\x80\x02}K\x01a.",
    "a key that is a list": b"\x80\x02}]K\x01s.",
    "an odd count of items": b"\x80\x02}(K\x01u.",
    "what was never put down": b"\x80\x02h\x07.",
    "numbers left out": b"\x80\x02]q\x09.",
    "a tuple of too many": b"\x80\x02K\x01\x87.",
    "another protocol": b"\x80\x09N.",
    "bytes": pickle.dumps(b"x", 4),
    "a set": pickle.dumps({1, 2}, 4),
    "an object": pickle.dumps(Plain(), 4),
    "deep lists": b"\x80\x02" + b"](" * (MAX_DEPTH + 1) + b".",
    "a tower of tuples": b"\x80\x02K\x01" + b"\x85" * 100_000 + b".",
    "a long text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\x00\x00\x00",
    "a number of 255 bytes": b"\x80\x02\x8a\xff" + b"\x01" * 255 + b".",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_pickle_of_plain_values_is_refused(name: str) -> None:
    """What Python would not read, or not as plain values, is one clear error."""
    with pytest.raises(PickleError) as caught:
        read(MALFORMED[name] + bytes(64))
    assert "\n" not in str(caught.value) and not isinstance(caught.value, CutOffError)


def test_elements_are_handed_on_as_they_come() -> None:
    """A long list is handed on in parts, in order, and what is put down of it is forgotten."""
    rows = [{"n": number} for number in range(3500)]
    receiver = Rows()
    value = read(pickle.dumps({"before": 1, "rows": rows}), receiver)
    assert (value, receiver.rows) == ({"before": 1, "rows": []}, rows)
    assert receiver.calls == 4


@pytest.mark.parametrize("protocol", [2, 4])
def test_texts_and_tuples_are_referred_to_again(protocol: int) -> None:
    """What was handed on and is no list or dictionary comes back by its number, in value and type."""
    again: list[Any] = ["a", "é" * 300, (1, 2), (True, 2), (1.0, 2), (None, "a"), ()]
    rows = [{"value": again[number % len(again)], "n": number} for number in range(3500)]
    receiver = Rows()
    read(pickle.dumps({"rows": rows}, protocol), receiver)
    assert repr(receiver.rows) == repr(rows)


def test_a_number_given_twice_is_refused() -> None:
    """What was handed on cannot be given another value afterwards."""
    data = b"\x80\x02}q\x00(X\x04\x00\x00\x00rowsq\x01]q\x02(K\x01eX\x01\x00\x00\x00aq\x01u."
    with pytest.raises(PickleError, match="gives one twice"):
        read(data, Rows())


@pytest.mark.parametrize("length", [1, 20, 5000, 20_000])
def test_of_a_cut_pickle_whole_elements_are_handed_on(length: int) -> None:
    """Where the file ends within a list, the elements that it holds whole are handed on before the error."""
    rows = [{"n": number, "text": "x"} for number in range(3500)]
    receiver = Rows()
    data = pickle.dumps({"rows": rows})
    with pytest.raises(CutOffError):
        read(data[: -length - 1], receiver)
    assert receiver.rows == rows[: len(receiver.rows)]
    assert len(receiver.rows) >= len(rows) - 2 - length / 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_pickles_are_read_or_refused(seed: int) -> None:
    """Whatever bytes of a pickle are changed, it is read or refused, never anything else."""
    chance = random.Random(seed)
    rows = [{"n": number, "frames": [("a", 1)] * 3, "x": [None, True, 1.5, "é"]} for number in range(40)]
    sound = [pickle.dumps({"rows": rows, "other": rows[:3]}, protocol) for protocol in range(2, 6)]
    for _ in range(4000):
        data = bytearray(chance.choice(sound))
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.randrange(len(data))
            match chance.randrange(3):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randrange(1, 9)]
                case _:
                    data[at:at] = bytes(chance.choice(b"(.}]etasu\x94\x85hjqr012NX\x8c") for _ in range(3))
            data = data or bytearray(b".")
        try:
            read(bytes(data), Rows())
        except PickleError as error:
            assert "\n" not in str(error)


@pytest.mark.slow
def test_reading_takes_linear_time() -> None:
    """Four times the rows take about four times the time."""

    def prepare(size: int) -> Callable[[], object]:
        data = pickle.dumps({"rows": [{"n": n, "frames": ["a", "b"]} for n in range(size)]})
        return lambda: read(data, Rows())

    assert_linear(prepare, 5000)
