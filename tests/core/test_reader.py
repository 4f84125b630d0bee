"""Reading a source into parts: the same whatever the form, chunks, threads and scanner."""

from __future__ import annotations

import errno
import gc
import gzip
import json
import os
import random
import weakref
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.batches import parts_of_batches
from tests.waiting import running_threads, wait_until
from tracelane.core.base.errors import CacheError, Cancelled, UnreadableError
from tracelane.core.base.progress import Progress
from tracelane.core.native.library import native_library
from tracelane.core.read.batch_store import BatchStore
from tracelane.core.read.problem import Problem, add_counts, merge_problems
from tracelane.core.read.reader import ReadOptions, SourceReading
from tracelane.core.read.source import open_source

from ..reading import read_parts
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
    folder.mkdir(exist_ok=True)
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
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


def test_broken_events_are_counted(tmp_path: Path) -> None:
    """What was repaired or could not be read is in the report, with the place of the first."""
    texts = [event(number) for number in range(40)]
    texts[7] = texts[7].replace("op7", 'o"p"7')
    texts[9] = texts[9].replace("1.5", "NaN", 1)
    text = FORMS["object"](texts)
    result, _ = read_parts(write(tmp_path, text))
    assert result.events == 40
    assert result.counts["repaired"] == 2
    assert result.counts["no_usable_time.X"] == 1
    assert [problem.kind for problem in result.problems] == ["repaired"]
    assert result.problems[0].offset is not None
    assert text[result.problems[0].offset :].startswith('{"ph"')


@pytest.mark.slow
def test_any_number_of_events_is_repaired(tmp_path: Path) -> None:
    """Rooms of the columns grow with repaired events as they do with sound ones, for either scanner."""
    texts = [event(n).replace("1.5", "NaN" if n % 2 else "1.5", 1) for n in range(6000)]
    path = write(tmp_path, FORMS["object"](texts))
    results = [read_parts(path, ReadOptions(decoder=decoder)) for decoder in ("native", "python")]
    for result, parts in results:
        assert result.counts["repaired"] == result.counts["no_usable_time"] == 3000
        assert whole(parts)["events"] == 6000
    assert whole(results[0][1]) == whole(results[1][1])


def test_exact_time_beside_repaired_events(tmp_path: Path) -> None:
    """Epoch stamps keep their ns although one of the events is no JSON."""
    texts = [event(n).replace(f'"ts": {n / 8}', f'"ts": 1712195495505{n:03d}.{n:03d}') for n in range(40)]
    texts[7] = texts[7].replace("op7", 'o"p"7')
    rows = whole(read_parts(write(tmp_path, FORMS["object"](texts)))[1])
    assert [row[6] for row in rows["timed"]] == [1712195495505 * 10**6 + n * 1001 for n in range(40)]


@pytest.mark.parametrize("text", ["{}", '{"traceEvents": null}', '{"a": [1, 2]}'])
def test_sound_json_without_events(tmp_path: Path, text: str) -> None:
    """A JSON object without an event array is an empty trace, and says so."""
    result, _ = read_parts(write(tmp_path, text))
    assert result.events == 0
    assert [problem.kind for problem in result.problems] == ["no events"]


@pytest.mark.parametrize("text", ['{"a": [1, 2', '{"a" 1', '{"traceEvents": nul'])
def test_no_trace(tmp_path: Path, text: str) -> None:
    """Broken text without any events is refused by name."""
    with pytest.raises(UnreadableError, match=r"t\.json"):
        read_parts(write(tmp_path, text))


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}'])
def test_an_empty_trace(tmp_path: Path, text: str) -> None:
    """An empty event array is a trace with nothing in it."""
    result, _ = read_parts(write(tmp_path, text))
    assert (result.events, result.counts) == (0, {})


# -- who reads what makes no difference ----------------------------------------------------------------------


def events_text(seed: int, count: int) -> list[str]:
    """Return events of all sorts, decoys of separators in their strings and arguments among them."""
    rng = random.Random(seed)
    texts = []
    for number in range(count):
        fields: dict[str, Any] = {
            "ph": rng.choice("XXXXsfbeCi"),
            "name": f"op{number % 50}",
            "pid": 1,
            "tid": number % 4,
            "ts": rng.randrange(10**9) / 1000,
            "dur": rng.randrange(999),
            "id": number % 100,
            "cat": "cpu_op",
            "args": {"External id": number, "n": rng.random()},
        }
        if rng.random() < 0.1:
            fields["args"]["Call stack"] = '},\n{"ph": ' * rng.randrange(1, 40)
        if rng.random() < 0.05:
            fields["args"]["list"] = [{"ph": 1}, {"ph": 2}] * rng.randrange(1, 30)
        texts.append(json.dumps(fields) if rng.random() < 0.99 else "null")
    return texts


def broken(texts: list[str]) -> list[str]:
    return [text.replace("op7", 'o"p') if number % 100 == 57 else text for number, text in enumerate(texts)]


def joined(texts: list[str]) -> str:
    return ",\n".join(texts)


NESTED = json.dumps([{"ph": 1}] * 9999)
FILES = {
    "object": lambda texts: f'{{"schema":1,"traceEvents":[\n{joined(texts)}\n],"baseTimeNanoseconds":7}}',
    "compact array": lambda texts: "[" + ",".join(texts).replace('": ', '":') + "]",
    "no end": lambda texts: f"[\n{joined(texts)},\n",
    "cut off": lambda texts: f'{{"traceEvents":[\n{joined(texts)[:-20]}',
    "keys behind": lambda texts: f'{{"traceEvents":[\n{joined(texts)}\n],"x":{NESTED}}}',
    "lines": lambda texts: "\n".join(text for text in texts if text != "null") + "\n",
    "two documents": lambda texts: f'{{"traceEvents":[\n{joined(texts)}\n]}}\n[{joined(texts[:200])}]',
    "broken events": lambda texts: f'{{"traceEvents":[\n{joined(broken(texts))}]}}',
    "one event": lambda texts: f'{{"traceEvents":[{event(1, args={"x": "y" * 99_999})}, {texts[0]}]}}',
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FILES)
def test_threads_chunks_and_scanners_make_no_difference(tmp_path: Path, form: str) -> None:
    """Events, their order, arguments, counts, keys around them, problems and blocks are always the same."""
    path = write(tmp_path, FILES[form](events_text(1, 600)))
    packed = write(tmp_path, path.read_text(encoding="utf-8"), "t.json.gz")
    alone, parts = read_parts(path, ReadOptions(chunk_size=1 << 26))
    rows, block_rows = whole(parts), blocks(parts)
    for options in (
        ReadOptions(threads=2, chunk_size=30_000),
        ReadOptions(threads=3, chunk_size=5_000),
        ReadOptions(decoder="python", chunk_size=30_000),
    ):
        for file in (path, packed):
            result, parts = read_parts(file, options)
            assert result.decoder == ("python" if options.decoder == "python" else alone.decoder)
            assert whole(parts) == rows
            assert (result.envelope, result.counts) == (alone.envelope, alone.counts)
            assert result.problems == alone.problems
            assert sum(row[3] for row in blocks(parts)) == result.events
    text = path.read_bytes()
    ends = 0
    for offset, length, ordinal, count, repaired in block_rows:
        assert offset >= ends
        ends = offset + length
        if not repaired:
            assert len(json.loads(b"[" + text[offset:ends] + b"]")) == count, ordinal


LONG = 1 << 20
SWALLOWING = {
    "a string without its end": '{"ph":"X","name":"' + "x" * LONG,
    "a string": event(0, name="x" * LONG) + ",",
    "blanks": " " * LONG,
    "no event": "x" * LONG,
    "brackets left open": '{"ph":"X","args":{"a":[1,' + "[2],3," * (LONG // 6),
}
"""What goes on over many chunks: more than is kept of a text behind what has been read."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "decoder"), product(SWALLOWING, [("native", 3), ("python", 3), ("native", 1)])
)
def test_packed_text_is_kept_until_nobody_reads_it(
    tmp_path: Path, name: str, decoder: tuple[str, int]
) -> None:
    """A chunk that ends far behind the next ones takes no text from those who read them already."""
    text = FORMS["object"]([*map(event, range(9)), SWALLOWING[name] + event(9), *map(event, range(10, 500))])
    options = ReadOptions(*decoder, chunk_size=64 << 10, longest=1 << 19)
    packed, _ = read_parts(write(tmp_path, text, "t.json.gz"), options)
    plain, _ = read_parts(write(tmp_path, text), options)
    assert packed.events == plain.events > 9
    assert packed.problems == plain.problems


@pytest.mark.skipif(native_library().functions is None, reason="no native core")
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_progress_rises_to_the_size(tmp_path: Path, name: str) -> None:
    """The bytes told rise to the size of the file, as do the events."""
    path = write(tmp_path, FORMS["object"]([event(number) for number in range(3000)]), name)
    seen: list[Progress] = []
    result, _ = read_parts(path, ReadOptions(chunk_size=5000), progress=seen.append)
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    size = path.stat().st_size
    assert all(one.done <= size == one.total for one in seen) and len(seen) > 5
    assert seen[-1].done > 0.95 * size and seen[-1].events == result.events


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_reading_is_cancelled(tmp_path: Path, name: str) -> None:
    """A request to stop ends all threads."""
    path = write(tmp_path, FORMS["object"]([event(number) for number in range(3000)]), name)
    before = running_threads()
    with pytest.raises(Cancelled):
        read_parts(path, cancelled=lambda: True)
    calls: list[int] = []
    with pytest.raises(Cancelled):
        read_parts(
            path, ReadOptions(chunk_size=5000, threads=2), cancelled=lambda: calls.append(1) or len(calls) > 5
        )
    wait_until(lambda: running_threads() <= before)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where batches cannot be written, reading ends with an error and leaves no thread."""
    path = write(tmp_path, FORMS["object"]([event(number) for number in range(300)]))
    before = running_threads()

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(CacheError, match="no space left"):
        read_parts(path, ReadOptions(chunk_size=5000))
    wait_until(lambda: running_threads() <= before)
    with pytest.raises(CacheError, match="cannot write"):
        BatchStore(tmp_path / "missing")


@pytest.mark.parametrize("decoder", ["native", "python"])
def test_the_memory_of_reading_goes_with_it(decoder: str, tmp_path: Path) -> None:
    """Circles of objects would keep the text and columns of one rank after another: nothing collects them."""
    path = write(tmp_path, FORMS["object"]([event(0), event(1).replace("1.5", "NaN"), event(2)]))
    gc.disable()
    try:
        with BatchStore(tmp_path) as store:
            reading = SourceReading(open_source(path), store, ReadOptions(decoder))
            with reading:
                reading.read()
        gone = [weakref.ref(one) for one in (reading, *reading._readers, reading._text)]
        del reading
        wait_until(lambda: not any(one() for one in gone), "its readers to go")
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("chunk_size", [2_000, 30_000, 1 << 20])
@pytest.mark.parametrize("decoder", ["native", "python"])
def test_a_file_that_grows_is_read_as_it_was(decoder: str, chunk_size: int, tmp_path: Path) -> None:
    """What is written behind the end that the file had when it was looked at changes nothing."""
    texts = [event(number) for number in range(1000)]
    text = FORMS["object"](texts)
    for cut in (len(text), len(text) * 2 // 3, len(text) // 2 // 1000 * 1000):
        path = write(tmp_path, text[:cut])
        whole_file = whole(read_parts(path)[1])
        source = open_source(path)
        path.write_text(text[:cut] + joined(texts) * 3, encoding="utf-8")
        with BatchStore(tmp_path) as store:
            with SourceReading(source, store, ReadOptions(decoder, 2, chunk_size)) as reading:
                result = reading.read()
            assert whole(parts_of_batches(result.batches, result.tables)) == whole_file


def test_an_oversized_event_is_cut(tmp_path: Path) -> None:
    """Of an event longer than is read whole the fixed keys are kept; its neighbours are read as ever."""
    long = event(1, args={"External id": 3, "text": "x" * 400_000, "list": ["y" * 99] * 999})
    path = write(tmp_path, FORMS["object"]([event(0), long, event(2)]))
    for decoder in ("native", "python"):
        result, parts = read_parts(path, ReadOptions(decoder, longest=300_000, chunk_size=100_000))
        rows = whole(parts)
        assert [row[2] for row in rows["timed"]] == [0, 1, 2]
        assert rows["promoted"]["external_id"] == [(0, 0), (1, 3), (2, 2)]
        assert result.counts == {"oversized": 1, "phase.X": 3}


def test_the_report_adds_up() -> None:
    """Counts add up; problems of one kind become one, with the earliest place and its message."""
    assert add_counts([{"b": 1}, {"a": 2, "b": 3}]) == {"a": 2, "b": 4}
    first = [Problem("x", 2, 50, "later"), Problem("z", 1, None, "end")]
    merged = merge_problems([first, [Problem("x", 1, 7, "first")], [Problem("y", 1, 9, "")]])
    assert merged == (Problem("x", 3, 7, "first"), Problem("y", 1, 9, ""), Problem("z", 1, None, "end"))
