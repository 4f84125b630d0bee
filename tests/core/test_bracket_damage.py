"""Brackets left open or closed too often cost at most the event they stand in and its neighbour."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from tests.core.test_hostile_inputs import LAYOUTS
from tests.corpus import later
from tests.reading import read_text

EVENTS = 24
CHUNK = 1 << 10
SOME = 12
"""`make test` tries every twelfth damage, others in each layout and at each place."""
BEGIN, MIDDLE, ARGUMENT, END = rb"\{", rb'"dur"', rb'"dims":', rb"\]\s*\]\s*\}\s*\}"
"""Places of an event: before and behind what these match."""


def numbered(count: int) -> list[dict[str, object]]:
    """Return events with lists in their arguments, each with a name of its own."""
    return [
        {"ph": "X", "cat": "cpu_op", "name": f"n{i}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5}
        | {"args": {"i": i, "dims": [[1, 2], [3]]}}
        for i in range(count)
    ]


def runs(brackets: str) -> list[bytes]:
    """Return every run of one to four of these brackets."""
    sizes = (itertools.product(brackets, repeat=size) for size in range(1, 5))
    return ["".join(run).encode() for size in sizes for run in size]


def damaged(data: bytes, begin: int, end: int) -> Iterator[bytes]:
    """Yield a text with one to four brackets of the event at begin..end too many or too few, wherever."""
    event = data[begin:end]
    for pattern in (BEGIN, MIDDLE, ARGUMENT, END):
        match = re.search(pattern, event)
        assert match is not None
        for at, run in itertools.product(match.span(), runs("[{") + runs("]}")):
            yield data[: begin + at] + run + data[begin + at :]
    brackets = [match.start() for match in re.finditer(rb"[\[\]{}]", event)]
    for count in range(1, 5):
        for chosen in itertools.combinations(brackets, count):
            rest = bytes(byte for at, byte in enumerate(event) if at not in chosen)
            yield data[:begin] + rest + data[end:]


def span_of(data: bytes, number: int) -> tuple[int, int]:
    """Return where an event begins and ends."""
    name = re.search(rb'"n%d"' % number, data)
    assert name is not None
    begin = data.rindex(b"{", 0, name.start())
    return begin, re.compile(END).search(data, begin).end()  # type: ignore[union-attr]


def at_borders(data: bytes) -> dict[str, int]:
    """Return the events that stand first and last, in the middle of a chunk, and where two chunks meet.

    Where the file begins with an event, "first" is the one behind it: nothing else shows that it is a trace.
    """
    begins = [span_of(data, number)[0] for number in range(EVENTS)]
    border = next(
        number for number in range(4, EVENTS) if begins[number] // CHUNK > begins[number - 1] // CHUNK
    )
    return {
        "first": int(data[:1] == b"{" and b"traceEvents" not in data),
        "end of a chunk": border - 1,
        "begin of a chunk": border,
        "middle": border + 2,
    } | {"last": EVENTS - 1}


WHERE = ("first", "end of a chunk", "begin of a chunk", "middle", "last")


@pytest.mark.slow
@pytest.mark.parametrize("every", [SOME, later(1)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("where", WHERE)
def test_brackets_cost_their_event_and_a_neighbour(layout: str, where: str, every: int) -> None:
    """All other events are read, and the damage is reported."""
    data = LAYOUTS[layout](numbered(EVENTS))
    number = at_borders(data)[where]
    others = {f"n{i}" for i in range(EVENTS) if i != number}
    lost = []
    first = (WHERE.index(where) + 5 * list(LAYOUTS).index(layout)) % every
    for text in itertools.islice(damaged(data, *span_of(data, number)), first, None, every):
        read = read_text(text, CHUNK)
        names = {event["name"] for event in read.elements if isinstance(event, dict) and "name" in event}
        if len(others - names) > 1 or not (others <= names or read.problems):
            lost.append((text[slice(*span_of(data, number))], sorted(others - names)[:5], read.problems))
    assert not lost, len(lost)
