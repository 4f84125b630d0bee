"""What is read as columns of text is what a decoder reads, and what is unusual is left to it."""

from __future__ import annotations

import gc
import json
import random
import re
import string
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracelane.core.base.errors import UnreadableError
from tracelane.core.ingest import cutter, reader
from tracelane.core.ingest.columns import Part
from tracelane.core.ingest.reader import Reading
from tracelane.core.ingest.separator import Separator
from tracelane.core.ingest.source import open_source
from tracelane.core.ingest.text import reader as text_reader
from tracelane.core.ingest.text import templates
from tracelane.core.ingest.text.digits import are_digits, floats, integers, nanoseconds
from tracelane.core.ingest.text.hashing import SpanHash
from tracelane.core.ingest.text.reader import TextReader
from tracelane.core.ingest.text.spans import Spans, words_needed
from tracelane.core.ingest.text.spellings import Numbering
from tracelane.core.ingest.text.stretch import PAD, by_word, stretch_of

from ..corpus import CORPUS, needs_corpus
from .part_rows import whole

MOST_BYTES = 300_000
BLOCK_SIZE = 1000
"""What separates events is learned from the first block: what follows can be read as columns."""
SEPARATOR = Separator(b"},\n{", 1, 3)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read even the shortest texts as columns."""
    monkeypatch.setattr(templates, "LEAST", 2)
    monkeypatch.setattr(text_reader, "LONGEST_PAUSE", 0)
    monkeypatch.setattr(cutter, "LEAST_TEXT", 0)


def parts_of(path: Path, monkeypatch: pytest.MonkeyPatch, *, columns: bool) -> tuple[list[Part], list[str]]:
    """Return the parts of a file, as columns of text or by the decoder alone, and what was wrong with it."""
    with monkeypatch.context() as patch:
        if not columns:
            patch.setattr(reader, "text_reader", lambda decoder: None)
        reading = Reading(open_source(path), block_size=BLOCK_SIZE)
        return list(reading), [f"{p.kind} {p.offset} {p.message}" for p in reading.problems]


def check_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that both ways of reading give the same."""
    found, problems = parts_of(path, monkeypatch, columns=True)
    expected, reference = parts_of(path, monkeypatch, columns=False)
    assert whole(found) == whole(expected)
    assert problems == reference


def corpus_files() -> list[Path]:
    if not CORPUS.is_dir():
        return []
    endings = (".json", ".gz", ".zip", ".jsonl", ".pt", ".trace")
    files = [path for path in sorted(CORPUS.rglob("*")) if path.is_file() and path.suffix in endings]
    return [path for path in files if path.stat().st_size < MOST_BYTES and "src" not in path.parts]


@pytest.mark.slow
@needs_corpus
def test_real_traces(eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every real and odd trace is read alike both ways, and most of its events as columns."""
    seen = left = 0
    read = TextReader.read

    def counted(self: TextReader, data: bytes, start: int, end: int, separator: Separator) -> Any:
        nonlocal seen, left
        found = read(self, data, start, end, separator)
        if found is not None:
            seen, left = seen + len(found.begins), left + len(found.others)
        return found

    monkeypatch.setattr(TextReader, "read", counted)
    files = 0
    for path in corpus_files():
        try:
            source = open_source(path)
            list(Reading(source))
        except UnreadableError:
            continue
        check_file(path, monkeypatch)
        files += 1
    assert files > 50
    assert seen > 50_000
    assert left < seen / 10


SLICE = (
    '{"ph": "X", "cat": "kernel", "name": "k%d", "pid": 0, "tid": 7, "ts": %s, "dur": %s, '
    '"args": {"External id": %s, "device": %s, "grid": %s, "est. achieved occupancy %%": %s, "note": %s}}'
)
USUAL = ("100.125", "3.5", "17", "0", "[1, 2, 3]", "31", '"plain"')
UNUSUAL = {
    "ts": [
        "5",
        "5.25",
        "0.0005",
        "7.00050",
        "1e3",
        "-4.5",
        "007.5",
        "5.",
        ".5",
        '"12"',
        "null",
        "4e18",
        "9" * 20,
    ],
    "dur": ["0", "1.23456789", "-1", "1e-3", "null", "true", "99999999999999", "1.0005", "1.0015", "- 1"],
    "External id": [
        "-1",
        "-0",
        "007",
        "1.0",
        "1e2",
        "9223372036854775807",
        "9" * 25,
        '"12"',
        "null",
        "[1]",
        "+1",
    ],
    "device": ["-7", "123456789012345678", "1234567890123456789", "0x1", "1 2", ""],
    "grid": [
        "[]",
        "[1,2]",
        '["a", "b"]',
        "[1, 2",
        '"text"',
        "null",
        "5",
        "[1e400]",
        "[9007199254740993]",
        "{}",
    ],
    "occupancy": [
        "0.1",
        "0.30000000000000004",
        "12345678901234567.5",
        "1e-7",
        "1e999",
        "NaN",
        "00.5",
        "-3.25",
        "1.",
    ],
    "note": [
        '"a\\"b"',
        '"tab\tinside"',
        '"caf\u00e9"',
        '"}"',
        '"},\\n{"',
        '"{\\"ph\\": 1}"',
        "null",
        "3",
        '""',
        '"',
    ],
}


@pytest.mark.parametrize("key", UNUSUAL)
def test_unusual_values(key: str, eager: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of another make, or broken, in the midst of usual ones is read as the decoder reads it."""
    place = list(UNUSUAL).index(key)
    for value in UNUSUAL[key]:
        events = [SLICE % (number % 5, *USUAL) for number in range(40)]
        odd = list(USUAL)
        odd[place] = value
        events[23] = SLICE % (3, *odd)
        path = tmp_path / "t.json"
        path.write_text('{"traceEvents": [\n' + ",\n".join(events) + "\n]}")
        check_file(path, monkeypatch)


@pytest.mark.parametrize("key", UNUSUAL)
def test_values_that_differ(key: str, eager: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers of any size, in any place alone, are read as the decoder reads them."""
    place = list(UNUSUAL).index(key)
    path = tmp_path / "t.json"
    events = []
    for number in range(40):
        values = list(USUAL)
        values[place] = str(number**5)
        events.append(SLICE % (3, *values))
    path.write_text("[" + ",\n".join(events) + "]")
    check_file(path, monkeypatch)


WHOLE_EVENTS = {
    "a key twice": '{"ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 2, "name": "a", "name": "b"}',
    "an argument twice": '{"ph": "i", "ts": 1, "pid": 1, "tid": 2, "name": "a", "args": {"x": 1, "x": 2}}',
    "no phase": '{"ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "a phase of two letters": '{"ph": "XX", "ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "a phase beyond ASCII": '{"ph": "\u00e9", "ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "no thread": '{"ph": "i", "ts": 1, "pid": 1, "name": "a", "s": "p"}',
    "a thread with a name": '{"ph": "X", "ts": 1, "dur": 2, "pid": "Spans", "tid": "a b", "name": "a"}',
    "no duration": '{"ph": "X", "ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "no name": '{"ph": "B", "ts": 1, "pid": 1, "tid": 2}',
    "a number as its name": '{"ph": "B", "ts": 1, "pid": 1, "tid": 2, "name": 5}',
    "a category of a number": '{"ph": "B", "cat": 7, "ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "arguments that are none": '{"ph": "B", "ts": 1, "pid": 1, "tid": 2, "name": "a", "args": [1]}',
    "arguments by another name": '{"ph": "B", "ts": 1, "pid": 1, "tid": 2, "name": "a", "attr": {"x": 1}}',
    "empty arguments": '{"ph": "B", "ts": 1, "pid": 1, "tid": 2, "name": "a", "args": { }}',
    "an argument without a value": '{"ph": "X", "cat": "python_function", "ts": 1, "dur": 1, "pid": 1,'
    ' "tid": 2, "name": "a", "args": {"Python parent id": null, "Python id": 7}}',
    "two arguments of one meaning": '{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1, "pid": 1, "tid": 2,'
    ' "name": "a", "args": {"External id": null, "external id": 7}}',
    "a key like an argument's": '{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1, "pid": 1, "tid": 2,'
    ' "name": "a", "args.External id": 5, "args": {"External id": 7}}',
    "a colour": '{"ph": "B", "ts": 1, "pid": 1, "tid": 2, "name": "a", "cname": "good"}',
    "a flow": '{"ph": "f", "id": 12, "bp": "e", "cat": "ac2g", "ts": 1, "pid": 1, "tid": 2, "name": "ac2g"}',
    "a flow with a text as its id": '{"ph": "s", "id": "0x1", "ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "a flow in a scope": '{"ph": "s", "id": 1, "scope": "x", "ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "a flow with another id": '{"ph": "s", "id2": {"local": 3}, "ts": 1, "pid": 1, "tid": 2, "name": "a"}',
    "a counter": '{"ph": "C", "ts": 1, "pid": 1, "tid": 2, "name": "a", "args": {"x": 1.5}}',
    "metadata": '{"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "n"}}',
    "objects in a list": '{"ph": "i", "ts": 1, "tid": 2, "args": {"l": [{"ph": 1},\n{"ph": 2},\n{"x": 3}]}}',
    "no object": "5",
    "an end too many": '{"ph": "i", "ts": 1, "pid": 1, "tid": 2, "name": "a"}}',
    "an end too few": '{"ph": "i", "ts": 1, "pid": 1, "tid": 2, "args": {"x": 1}',
}


@pytest.mark.parametrize("kind", WHOLE_EVENTS)
@pytest.mark.parametrize("many", [1, 30])
def test_unusual_events(
    kind: str, many: int, eager: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One or many events of another make are read as the decoder reads them."""
    events = [SLICE % (number % 5, *USUAL) for number in range(40)]
    events[20:20] = [WHOLE_EVENTS[kind]] * many
    for between in (",\n", ",", " ,\n  "):
        path = tmp_path / "t.json"
        path.write_text("[" + between.join(events) + "]")
        check_file(path, monkeypatch)


def test_damage(eager: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever letters are changed, dropped or doubled, both ways read the same and tell the same of it."""
    rng = random.Random(11)
    text = "[" + ",\n".join(SLICE % (number % 5, *USUAL) for number in range(12)) + "]"
    path = tmp_path / "t.json"
    for _ in range(150):
        damaged = text
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(1, len(damaged))
            letter = rng.choice(['"', "{", "}", ",", "\\", "\n", "5", "-", ".", "", damaged[at] * 2])
            damaged = damaged[:at] + letter + damaged[at + 1 :]
        path.write_text(damaged)
        check_file(path, monkeypatch)


def spans_of(texts: list[str]) -> Spans:
    """Return the texts as they stand in a stretch."""
    events = [f'{{"a": {text}}}' for text in texts]
    text = ",\n".join(events).encode()
    stretch = stretch_of(text, 0, len(text), SEPARATOR)
    ends = PAD + np.cumsum([len(event.encode()) + 2 for event in events]) - 3
    lengths = np.array([len(text.encode()) for text in texts])
    words = by_word(stretch.taken(ends - lengths, words_needed(int(lengths.max()))))
    return Spans(stretch, ends - lengths, lengths, words)


def test_integers() -> None:
    """Integers of up to 18 digits are read, everything else is told to be none."""
    rng = random.Random(3)
    texts = [str(rng.randrange(10**digits)) for digits in range(1, 19) for _ in range(9)]
    texts += [f"-{text}" for text in texts if text != "0"]
    values, sound = integers(spans_of(texts))
    assert sound.all()
    assert values.tolist() == list(map(int, texts))
    broken = [
        "",
        "-",
        "-0",
        "01",
        "-01",
        "1.0",
        "1e5",
        "+1",
        " 1",
        "12x",
        "/",
        ":",
        "1" * 19,
        "\u0661",
        "1_0",
    ]
    assert not integers(spans_of(broken))[1].any()


def test_digits() -> None:
    """Integers without a sign are told from all else, whatever stands behind them."""
    lengths = [*range(1, 33), 1, 2, 8, 9]
    good = ["1" + "0" * (length - 1) for length in lengths] + ["0", "9" * 32, "7"]
    bad = [
        "",
        "-1",
        "01",
        "00",
        "1.0",
        "1e5",
        "1x",
        "/",
        ":",
        "12345678x",
        "x2345678",
        "1" * 17 + ".",
        "1" * 33,
    ]
    for texts in (good, bad, [*good, *bad], ["0", "5", "x"], ["12345678", "1"]):
        expected = [re.fullmatch("0|[1-9][0-9]{0,31}", text) is not None for text in texts]
        assert are_digits(spans_of(texts)).tolist() == expected


def test_times() -> None:
    """Times with any number of decimals become ns, half to even, as exact arithmetic has it."""
    rng = random.Random(4)
    texts = [f"{rng.randrange(10 ** rng.randrange(1, 16))}" for _ in range(50)]
    texts += [f"{text}.{rng.randrange(10**places):0{places}}" for text in texts for places in range(1, 8)]
    texts += ["0.0005", "0.0015", "1.00050", "1.0005001", "0.9995", "0"]
    expected = [int((Decimal(text) * 1000).quantize(Decimal(1), ROUND_HALF_EVEN)) for text in texts]
    values, sound = nanoseconds(spans_of(texts), 10**16)
    assert sound.all()
    assert values.tolist() == expected
    broken = [
        "",
        ".",
        "1.",
        ".5",
        "-1.5",
        "01.5",
        "1.5.5",
        "1e3",
        "1.23456789",
        "1.2345678901",
        "1.5 ",
        "1" * 19,
    ]
    assert not nanoseconds(spans_of(broken), 10**16)[1].any()


def test_floats() -> None:
    """A float is the one nearest to its text, wherever the fast way says that it is sure."""
    rng = random.Random(5)
    texts = [repr(rng.random() * 10 ** rng.randrange(-3, 9)) for _ in range(500)]
    texts += [f"{rng.randrange(10**6)}.{rng.randrange(10**6)}" for _ in range(500)]
    values, sound = floats(spans_of(texts))
    assert sound[500:].all()
    assert all(float(text) == value for text, value, sure in zip(texts, values.tolist(), sound) if sure)


def test_texts_are_told_apart() -> None:
    """Equal texts have equal hashes and others have not, at every length and wherever they differ."""
    rng = random.Random(6)
    base = ["".join(rng.choices(string.ascii_letters, k=length)) for length in range(1, 140)]
    texts = [*base, *base]
    texts += [text[:at] + "#" + text[at + 1 :] for text in base for at in (0, len(text) // 2, len(text) - 1)]
    texts += [text + "\x00" for text in base]
    for width in (8, 200):  # short ones have a way of their own
        chosen = [text for text in texts if len(text) <= width]
        hashes = SpanHash().of(spans_of(chosen)).tolist()
        assert len(set(zip(hashes, chosen))) == len(set(hashes)) == len(set(chosen))


def test_numbering() -> None:
    """Each hash keeps its number, however many there are."""
    rng = np.random.default_rng(7)
    numbering = Numbering()
    seen: dict[int, int] = {}
    new = count(1)
    for _ in range(20):
        hashes = rng.integers(1, 1 << 63, 3000, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        hashes = np.concatenate([hashes, hashes[:1000], np.array(list(seen)[:500], np.uint64)])
        numbers = numbering.of(hashes, lambda places: [next(new) for _ in places])
        for one, number in zip(hashes.tolist(), numbers.tolist()):
            assert seen.setdefault(one, number) == number
    assert len(set(seen.values())) == len(seen)


def test_nothing_is_left_for_the_collector(tmp_path: Path, eager: None) -> None:
    """A part of text read as columns leaves no reference cycles: workers run without a collector."""
    path = tmp_path / "t.json"
    path.write_text("[" + ",\n".join(SLICE % (number % 5, *USUAL) for number in range(200)) + "]")
    list(Reading(open_source(path)))
    gc.collect()
    list(Reading(open_source(path)))
    assert gc.collect() == 0


def test_events_of_one_make_are_not_decoded(eager: None) -> None:
    """Of events that are written alike only what is odd among them is decoded."""
    events = [SLICE % (number % 5, *USUAL) for number in range(500)]
    events[77] = json.dumps({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "a"}})
    text = ",\n".join(events).encode()
    found = TextReader().read(text, 0, len(text), SEPARATOR)
    assert found is not None
    assert found.others.tolist() == [77]
    assert [len(alike.places) for alike in found.alike] == [499]
