"""Whatever packets of Perfetto hold, reading them gives JSON in linear time, bounded by the file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from io import BytesIO

import pytest

from tests.linear import assert_linear
from tests.packets import (
    BEGIN,
    INSTANT,
    MAIN,
    SHAPES,
    STATE,
    PacketMaker,
    event,
    legacy,
    named,
    packed,
    packet,
)
from tracelane.core.export.protobuf import number_field
from tracelane.core.read.inflate import PlainReader
from tracelane.core.read.perfetto import PacketEvents, perfetto_reader
from tracelane.core.read.perfetto_values import MAX_REFERRED_LENGTH, MAX_UNPACKED, MAX_WRITTEN

AROUND = 64
"""Bytes around the events."""


def json_of(data: bytes) -> tuple[bytes, str]:
    """Return the JSON of a trace, and what is said of packets passed over."""
    reader = perfetto_reader(PlainReader(BytesIO(data)))
    parts = []
    while part := reader.read(1 << 20):
        parts.append(part)
    return b"".join(parts), "; ".join(one.message for one in reader.problems)


@pytest.mark.parametrize("seed", range(8))
def test_random_packets_become_json(seed: int) -> None:
    """Packets made from the grammar become sound JSON within the bound; none meets an error that is not
    foreseen, nested too deeply aside.
    """
    maker = PacketMaker(random.Random(seed))
    for _ in range(60):
        data = maker.file(12)
        text, words = json_of(data)
        assert isinstance(json.loads(text)["traceEvents"], list)
        assert len(text) <= MAX_WRITTEN * len(data) + AROUND
        assert "cannot be read" not in words.replace("cannot be read (RecursionError)", ""), (words, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_packets_take_linear_time_and_space(name: str) -> None:
    """Four times as much of whatever packets are full of takes about four times as long, and no more JSON
    than the file's size allows.
    """

    def prepare(n: int) -> Callable[[], object]:
        data = SHAPES[name](n)
        assert len(json_of(data)[0]) <= MAX_WRITTEN * len(data) + AROUND
        return lambda: json_of(data)

    assert_linear(prepare, 1_500)


def test_names_of_any_length_are_kept_apart() -> None:
    """A name that events refer to is written as its begin, length and checksum where it is long: other names
    with the same begin and length stay others.
    """
    names = [(1, "n" * 9_000 + "a"), (2, "n" * 9_000 + "b"), (3, "n" * MAX_REFERRED_LENGTH)]
    events = [event(at, INSTANT, number_field(10, at)) for at in (1, 2, 3)]
    text, words = json_of(b"".join([MAIN, packet(named(2, *names)), *events]))
    written = [one["name"] for one in json.loads(text)["traceEvents"] if one["ph"] == "i"]
    assert len(set(written)) == 3 and not words
    assert written[2] == names[2][1] and all(len(name) < MAX_REFERRED_LENGTH + 50 for name in written)


def test_an_error_costs_one_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw in one packet is one packet passed over, and told."""
    describe = PacketEvents._describe_owner

    def failing(self: PacketEvents, tag: int, *rest: object) -> object:
        if tag == 43:
            raise KeyError(77)
        return describe(self, tag, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PacketEvents, "_describe_owner", failing)
    bad = packet(number_field(99, 1) + b"\xda\x02\x00")  # field 43, empty
    text, words = json_of(MAIN + event(1, INSTANT, name="a") + bad + event(2, INSTANT, name="b"))
    assert [one["name"] for one in json.loads(text)["traceEvents"] if one["ph"] == "i"] == ["a", "b"]
    assert words == "packet that cannot be read (KeyError)"


def test_a_state_of_a_thread_of_its_own_is_read() -> None:
    """A state whose older description names pid and tid, on a track that nobody described, is read."""
    owned = event(5, STATE, legacy("I", number_field(18, 3), number_field(19, 4)), track=77, name="idle")
    text, words = json_of(MAIN + owned)
    (begin,) = [one for one in json.loads(text)["traceEvents"] if one["ph"] == "B"]
    assert (begin["name"], begin["pid"], begin["tid"], words) == ("idle", 3, 4, "")


def test_packed_packets_are_bounded_by_the_file() -> None:
    """Packets that unpack to more than so many times the file's size are passed over, and that is told."""
    filler = bytes(200_000)
    bomb = packed(*([packet(b"\x72" + b"\xc0\x9a\x0c" + filler)] * 200))
    text, words = json_of(MAIN + bomb + event(1, BEGIN, name="behind"))
    assert len(bomb) * MAX_UNPACKED < 200 * len(filler)
    assert "packed packets of too many bytes" in words and b'"behind"' in text
