"""Brackets left open or closed too often in a key around the events cost at most that key's value."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.test_bracket_damage import numbered, runs
from tests.corpus import thinned
from tests.reading import read_parts, read_text
from tracelane.core.read.reader import ReadOptions

EVENTS = 12
NAMES = [f"n{i}" for i in range(EVENTS)]
BEFORE = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "H100"}, {"id": 1, "warps": [32, 64]}],
    "distributedInfo": {"backend": "nccl", "rank": 3, "pg_config": [{"ranks": [0, 1]}]},
    "text": "a{[ ]}",
}
AFTER = {
    "trace_id": {"a": [1, {"b": 2}]},
    "list": [[1], [2, 3]],
    "displayTimeUnit": "ns",
    "traceName": "x.json",
}
HEADER = {**BEFORE, **AFTER}
LAYOUTS = {
    "compact": lambda value: json.dumps(value, separators=(",", ":")),
    "spaces": json.dumps,
    "indented": lambda value: json.dumps(value, indent=2),
}


def traces(layout: str) -> Iterator[tuple[str, bytes]]:
    """Yield (key, text) where the value of each key of the header has brackets too many or too few."""
    document = {**BEFORE, "traceEvents": numbered(EVENTS), **AFTER}
    for key, value in HEADER.items():
        marked = {**document, key: "VALUE"}
        head, tail = LAYOUTS[layout](marked).encode().split(b'"VALUE"')
        text = json.dumps(value).encode()
        brackets = [match.start() for match in re.finditer(rb"[\[\]{}]", text)] if key != "text" else []
        spots = {0, len(text), *brackets, *(at + 1 for at in brackets)}
        for at, run in itertools.product(sorted(spots), runs("[{") + runs("]}")):
            yield key, head + text[:at] + run + text[at:] + tail
        for count in range(1, 5):
            for chosen in itertools.combinations(brackets, count):
                rest = bytes(byte for at, byte in enumerate(text) if at not in chosen)
                yield key, head + rest + tail


def is_sound(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("layout", thinned(LAYOUTS, 3))
def test_brackets_in_the_header_cost_its_value(layout: str) -> None:
    """All events and all other keys are read, and the damage is reported where the text is no longer JSON."""
    lost = []
    for key, text in traces(layout):
        read = read_text(text, 1 << 10)
        names = [event.get("name") for event in read.elements if isinstance(event, dict)]
        missing = [
            other for other in HEADER if other != key and read.envelope.values.get(other) != HEADER[other]
        ]
        if names != NAMES or missing or not (read.problems or is_sound(text)):
            lost.append((key, text, missing, read.problems))
    assert not lost, len(lost)


VALUES = [b'{"a": {"b": 1', b"[[1, 2]", b'{"a": [1}', b"{{1}", b"1]}", b'{"a": 1}}}']


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["native", "python"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("value", thinned(VALUES, 3))
def test_files_with_brackets_in_the_header(value: bytes, packed: bool, decoder: str, tmp_path: Path) -> None:
    """Both readers read all events behind such a value, of packed files too, and what stands behind them."""
    events = json.dumps(numbered(3000)).encode()
    text = (
        b'{"first": %s, "baseTimeNanoseconds": 5, "traceEvents": %s, "second": %s, "displayTimeUnit": "ns"}'
    )
    path = tmp_path / "t.json"
    for first, second in ((value, b"1"), (b"1", value), (value, value)):
        data = text % (first, events, second)
        path.write_bytes(gzip.compress(data) if packed else data)
        result, _ = read_parts(path, ReadOptions(decoder, chunk_size=50_000))
        assert result.events == 3000 and result.problems
        assert (result.envelope.base_time_ns, result.envelope.display_unit) == (5, "ns")
