"""Reading a source into parts, in one process."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tracelane.core.base.errors import Cancelled, UnreadableError
from tracelane.core.base.progress import Progress
from tracelane.core.ingest.ledger import add_counts, merge_problems
from tracelane.core.ingest.problem import Problem
from tracelane.core.ingest.reader import Reading, read_to_folder
from tracelane.core.ingest.source import open_source

from .part_rows import blocks, whole


def event(number: int, **more: Any) -> str:
    """Return the text of one slice."""
    fields = {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"op{number % 9}",
        "pid": 1,
        "tid": number % 3,
        "ts": number / 8,
    }
    return json.dumps(fields | {"dur": 1.5, "args": {"External id": number, "Call stack": "a;b"}} | more)


def write(folder: Path, text: str, name: str = "t.json") -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


FORMS = {
    "object": lambda events: '{"a":1,"traceEvents":[' + ",\n".join(events) + '],"baseTimeNanoseconds":5}',
    "array": lambda events: "[" + ",".join(events) + "]",
    "array without end": lambda events: "[\n" + ",\n".join(events) + ",\n",
    "lines": lambda events: "\n".join(events) + "\n",
    "two documents": lambda events: (
        "[" + ",".join(events[:50]) + "]\n" + '{"traceEvents":[' + ",".join(events[50:]) + "]}"
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(1 << 20, 1 << 20), (3000, 1000), (1, 300)])
def test_parts_tile_the_events(tmp_path: Path, form: str, sizes: tuple[int, int]) -> None:
    """Whatever the form and wherever parts and blocks end, the same events come out in order."""
    texts = [event(number) for number in range(200)]
    source = open_source(write(tmp_path, FORMS[form](texts)))
    reading = Reading(source, part_size=sizes[0], block_size=sizes[1])
    parts = list(reading)
    assert [part.number for part in parts] == list(range(len(parts)))
    assert (len(parts) > 1) == (sizes[0] < 10_000)
    found = whole(parts)
    assert found["events"] == 200
    assert [row[2] for row in found["timed"]] == list(range(200))
    assert [row[6] for row in found["timed"]] == [number * 125 for number in range(200)]
    assert found["lifted"]["external_id"] == [(number, number) for number in range(200)]
    assert reading.found and reading.problems == []
    assert reading.envelope.base_time_ns == (5 if form == "object" else None)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_lead_back_to_the_text(tmp_path: Path, form: str) -> None:
    """The bytes a block table points at hold the events that it says."""
    texts = [event(number) for number in range(200)]
    path = write(tmp_path, FORMS[form](texts))
    text = path.read_bytes()
    at = 0
    for offset, length, ordinal, count, repaired in blocks(Reading(open_source(path), block_size=1000)):
        data = text[offset : offset + length].decode()
        assert ordinal == at
        at += count
        if not repaired:
            assert [json.dumps(one) for one in json.loads(f"[{data}]")] == texts[ordinal : ordinal + count]
    assert at == 200


def test_broken_events_are_counted(tmp_path: Path) -> None:
    """What was repaired or could not be read is in the ledger, with the place of the first."""
    texts = [event(number) for number in range(40)]
    texts[7] = texts[7].replace("op7", 'o"p"7')
    texts[9] = texts[9].replace("1.5", "NaN", 1)
    text = FORMS["object"](texts)
    result = read_to_folder(open_source(write(tmp_path, text)), tmp_path, workers=1)
    assert result.events == 40
    assert result.counts["repaired"] == 2
    assert result.counts["no_usable_time.X"] == 1
    assert [problem.kind for problem in result.problems] == ["repaired"]
    assert result.problems[0].offset is not None
    assert text[result.problems[0].offset :].startswith('{"ph"')


def test_exact_time_in_repaired_blocks(tmp_path: Path) -> None:
    """Epoch stamps keep their ns although the block they stand in is no JSON."""
    texts = [event(n).replace(f'"ts": {n / 8}', f'"ts": 1712195495505{n:03d}.{n:03d}') for n in range(40)]
    texts[7] = texts[7].replace("op7", 'o"p"7')
    (part,) = Reading(open_source(write(tmp_path, FORMS["object"](texts))))
    assert part.tables["timed"]["start"].tolist() == [1712195495505 * 10**6 + n * 1001 for n in range(40)]


def test_files_and_memory_agree(tmp_path: Path) -> None:
    """Part files hold what the parts held, and the books add up over them."""
    path = write(tmp_path, FORMS["object"]([event(number) for number in range(300)]), "t.json.gz")
    source = open_source(path)
    result = read_to_folder(source, tmp_path)
    assert whole(result.parts) == whole(Reading(source))
    assert result.events == 300
    assert result.counts == {"phase.X": 300}
    assert result.envelope.base_time_ns == 5


@pytest.mark.parametrize("text", ["{}", '{"traceEvents": null}', '{"a": [1, 2]}'])
def test_sound_json_without_events(tmp_path: Path, text: str) -> None:
    """A JSON object without an event array is an empty trace, and says so."""
    result = read_to_folder(open_source(write(tmp_path, text)), tmp_path)
    assert result.events == 0
    assert [problem.kind for problem in result.problems] == ["no events"]


@pytest.mark.parametrize("text", ['{"a": [1, 2', '{"a" 1', '{"traceEvents": nul'])
def test_no_trace(tmp_path: Path, text: str) -> None:
    """Broken text without any events is refused by name."""
    with pytest.raises(UnreadableError, match=r"t\.json"):
        read_to_folder(open_source(write(tmp_path, text)), tmp_path)


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}'])
def test_an_empty_trace(tmp_path: Path, text: str) -> None:
    """An empty event array is a trace with nothing in it."""
    result = read_to_folder(open_source(write(tmp_path, text)), tmp_path)
    assert (result.events, result.counts) == (0, {})


def test_progress_and_cancelling(tmp_path: Path) -> None:
    """Progress rises to the file's size, and a request to stop is heard at the next block."""
    source = open_source(write(tmp_path, FORMS["object"]([event(number) for number in range(300)])))
    seen: list[Progress] = []
    list(Reading(source, part_size=5000, block_size=1000, progress=seen.append))
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert all(one.done <= source.size == one.total for one in seen) and len(seen) > 5
    with pytest.raises(Cancelled):
        list(Reading(source, cancelled=lambda: True))


def test_the_books() -> None:
    """Counts add up; problems of one kind become one, with the earliest place and its message."""
    assert add_counts([{"b": 1}, {"a": 2, "b": 3}]) == {"a": 2, "b": 4}
    first = [Problem("x", 2, 50, "later"), Problem("z", 1, None, "end")]
    merged = merge_problems([first, [Problem("x", 1, 7, "first")], [Problem("y", 1, 9, "")]])
    assert merged == (Problem("x", 3, 7, "first"), Problem("y", 1, 9, ""), Problem("z", 1, None, "end"))
