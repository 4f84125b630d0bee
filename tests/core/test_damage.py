"""Damaged and hostile text: little is lost, nothing takes long, both decoders agree."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CASES, in_turn, later, needs
from tests.forms import kineto_classic, kineto_new, zipped
from tests.linear import assert_linear
from tests.reading import index_differences, read_parts, read_text
from tracelane.core.base.errors import TracelaneError, UnreadableError
from tracelane.core.index.options import IndexOptions
from tracelane.core.read.reader import ReadOptions
from tracelane.core.read.tolerant import Tolerant
from tracelane.core.trace import Trace, open_trace

DECODERS = ("native", "python")
NUMBERS = count()


def read(path: Path, folder: Path, decoder: str = "native") -> Trace:
    """Read a file anew, in this process."""
    options = IndexOptions(index_dir=folder / f"index{next(NUMBERS)}", decoder=decoder, threads=1)
    return open_trace(path, options)


def written(folder: Path, data: bytes, name: str = "t.json") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    return path


def names_of(trace: Trace) -> list[str]:
    """Return the names of all slices, sorted."""
    (index,) = trace.indexes
    return sorted(index.strings(index.column("slices.name")))


# -- everything that looks at text is linear -----------------------------------------------------------------

GOOD = b'{"ph":"X","name":"good","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":2}'
OPEN, CLOSE = b'{"traceEvents":[' + GOOD + b",", b"," + GOOD + b"]}"
SLICE = b'{"ph":"X","pid":1,"tid":1,"ts":3,"dur":1,'
META = b'{"ph":"M","pid":1,"tid":1,"name":'


def around(middle: bytes) -> bytes:
    """Return a trace with something between sound events."""
    return OPEN + middle + CLOSE


REPEATED: dict[str, tuple[bytes, bytes, bytes, int]] = {
    "newlines after a broken event": (b'[\n{"pid": 0, \\"tid": 0, "name": "be', b"\n", b"", 5_000),
    "blanks after a broken event": (b'[{"pid": 0, \\"tid": 0, "name": "be', b" ", b"", 5_000),
    "newlines and commas after a broken event": (b'[{"a": \\"b, "c', b"\n,", b"", 12_000),
    "broken events": (OPEN, b'{"ph":"X","name":"a"b","ts":1},\n', GOOD + CLOSE, 1_000),
    "name of a thread": (OPEN + META + b'"thread_name","args":{"name":"', b"x", b'"}}' + CLOSE, 25_000),
    "words in the name of a thread": (
        OPEN + META + b'"thread_name","args":{"name":"',
        b"x y ",
        b'"}}' + CLOSE,
        6_000,
    ),
    "name of a process": (OPEN + META + b'"process_name","args":{"name":"', b"x", b'"}}' + CLOSE, 25_000),
    "labels of a process": (
        OPEN + META + b'"process_labels","args":{"labels":"',
        b"x,",
        b'"}}' + CLOSE,
        25_000,
    ),
    "name of a slice": (OPEN + SLICE + b'"name":"', b"x", b'"}' + CLOSE, 1 << 18),
    "escapes in a name": (OPEN + SLICE + b'"name":"', b'\\u00e9\\"', b'"}' + CLOSE, 1 << 17),
    "brackets in a name": (OPEN + SLICE + b'"name":"', b"f<(", b'"}' + CLOSE, 1 << 16),
    "quotes in a name": (OPEN + SLICE + b'"name":"', b'"', b'"}' + CLOSE, 1 << 16),
    "category": (OPEN + SLICE + b'"name":"s","cat":"', b"x", b'"}' + CLOSE, 1 << 18),
    "text in an argument": (OPEN + SLICE + b'"args":{"text":"', b"x", b'"}}' + CLOSE, 3 << 18),
    "backslashes in an argument": (OPEN + SLICE + b'"args":{"text":"', b"\\\\", b'"}}' + CLOSE, 1 << 17),
    "key of an argument": (OPEN + SLICE + b'"args":{"', b"k", b'":1}}' + CLOSE, 1 << 18),
    "same key of an argument": (OPEN + SLICE + b'"args":{', b'"k":1,', b'"k":1}}' + CLOSE, 1 << 15),
    "values in an argument": (OPEN + SLICE + b'"args":{"v":[', b"1,", b"1]}}" + CLOSE, 50_000),
    "nested arguments": (OPEN + SLICE + b'"args":', b'{"a":', b"", 10_000),
    "text before the events": (b'{"note":"', b"x", b'","traceEvents":[' + GOOD + b"]}", 3 << 18),
    "text after the events": (b'{"traceEvents":[' + GOOD + b'],"note":"', b"x", b'"}', 3 << 18),
    "hole of zeros between events": (OPEN, b"\0", CLOSE, 3 << 18),
    "hole of zeros in an event": (OPEN + GOOD[:30], b"\0", GOOD[30:] + CLOSE, 3 << 18),
    "hole of zeros in a name": (OPEN + GOOD[:22], b"\0", GOOD[22:] + CLOSE, 3 << 18),
    "hole of zeros at the end": (around(GOOD), b"\0", b"", 3 << 18),
    "blanks between events": (OPEN, b" ", GOOD + CLOSE, 3 << 18),
    "name that never ends": (OPEN + SLICE + b'"name":"', b"x", b"", 1 << 18),
    "quotes": (OPEN, b'"', CLOSE, 1 << 18),
    "opening braces": (OPEN, b"{", CLOSE, 1 << 16),
    "opening brackets": (OPEN, b"[", CLOSE, 1 << 14),
    "closing braces": (OPEN, b"}", CLOSE, 1 << 16),
    "closing brackets": (OPEN, b"]", CLOSE, 1 << 16),
    "beginnings of events": (OPEN, b'{"ph":', CLOSE, 1 << 12),
    "beginnings of keys": (OPEN, b'{"', CLOSE, 1 << 16),
    "ends of events": (OPEN, b'"},\n', CLOSE, 1 << 16),
    "commas": (OPEN, b",", CLOSE, 1 << 18),
    "backslashes": (OPEN + b'{"name":"', b"\\", CLOSE, 1 << 18),
    "digits of a time": (OPEN + b'{"ph":"X","pid":1,"tid":1,"ts":', b"1", b"}" + CLOSE, 1 << 15),
    "digits of a fraction": (OPEN + b'{"ph":"X","pid":1,"tid":1,"ts":0.', b"1", b"}" + CLOSE, 1 << 15),
    "digits of an id": (OPEN + b'{"ph":"b","pid":1,"tid":1,"ts":1,"id":', b"1", b"}" + CLOSE, 1 << 15),
    "arrays of events": (b'{"traceEvents":[]', b',"traceEvents":[]', b"}", 500),
    "files in one": (b"", b'{"traceEvents":[' + GOOD + b"]}\n", b"", 250),
    "begins without an end": (OPEN, b'{"ph":"B","name":"b","pid":1,"tid":1,"ts":1},', GOOD + CLOSE, 10_000),
    "ends without a begin": (OPEN, b'{"ph":"E","pid":1,"tid":1,"ts":1},', GOOD + CLOSE, 10_000),
    "events whose lists stay open": (OPEN, SLICE + b'"args":{"dims":[[1,2],{}},', GOOD + CLOSE, 400),
    "closing brackets behind a broken key": (
        b'{"a" 1,"b":2',
        b"]",
        b',"traceEvents":[' + GOOD + b"]}",
        1 << 16,
    ),
    "blank lines behind a broken value": (b'{\n"a":x y\n', b"\n", b'"traceEvents":[' + GOOD + b"]}", 1 << 15),
    "names of one thread": (OPEN, META + b'"thread_name","args":{"name":"t"}},', GOOD + CLOSE, 10_000),
}
"""What is repeated, what stands before and after it, and how often."""
KEYS = (b',"k":', b',\n"k":', b', "k" : ', b',"":', b',"traceEvents":')
OPENINGS = (b"{", b"[", b'{"j":1', b'[{"j":1', b'{"j":{"i":1', b'[1,[1,{"j":1')
REPEATED |= {
    f"{key + opening!r} in a broken value": (
        b'{"a":{"b":1',
        key + opening,
        b' x,"traceEvents":[' + GOOD + b"]}",
        12_000 // len(key + opening),
    )
    for opening, key in in_turn(OPENINGS, KEYS, 2)
}
"""Values that are never closed, no further behind each other than reading goes back to look for keys."""


def many_arguments(n: int) -> bytes:
    return around(json.dumps({"ph": "X", "ts": 1, "dur": 1, "args": {f"k{i}": i for i in range(n)}}).encode())


def many_series(n: int) -> bytes:
    return around(
        json.dumps({"ph": "C", "ts": 1, "name": "c", "args": {f"s{i}": i for i in range(n)}}).encode()
    )


HOSTILE: dict[str, tuple[Callable[[int], bytes], int]] = {
    name: (lambda n, before=before, unit=unit, after=after: before + unit * n + after, n)
    for name, (before, unit, after, n) in REPEATED.items()
} | {"arguments": (many_arguments, 10_000), "series of a counter": (many_series, 1_000)}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_reading_takes_linear_time(name: str, tmp_path: Path) -> None:
    """Four times as much of whatever a file is full of takes about four times as long to read."""
    data_of, n = HOSTILE[name]

    def prepare(size: int) -> Callable[[], object]:
        path = written(tmp_path, data_of(size), f"{size}.json")

        def work() -> None:
            try:
                for index in read(path, tmp_path).indexes:
                    index.close()
            except UnreadableError:
                pass
            for folder in tmp_path.glob("index*"):
                shutil.rmtree(folder)

        return work

    assert_linear(prepare, n)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "opening", [one for one in OPENINGS if one != b"["]
)  # which breaks at its first colon
def test_what_was_open_at_a_break_is_not_parsed_again(
    opening: bytes, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred values in one another that are never closed few are given to the parser that forgives."""
    parse, times = Tolerant.parse, count()

    def counted(parser: Tolerant, start: int, **how: bool) -> tuple[Any, int]:
        next(times)
        return parse(parser, start, **how)

    monkeypatch.setattr(Tolerant, "parse", counted)
    text = b'{"a":{"b":1' + (key + opening) * 100 + b' x,"traceEvents":[' + GOOD + b"]}"
    read = read_text(text)
    assert read.problems and next(times) < 10


# -- damage --------------------------------------------------------------------------------------------------

EVENTS = 600
LAYOUTS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "compact": lambda items: json.dumps({"traceEvents": items}, separators=(",", ":")).encode(),
    "one a line": lambda items: (
        b'{"traceEvents":[\n'
        + b",\n".join(json.dumps(item, separators=(",", ":")).encode() for item in items)
        + b"\n]}"
    ),
    "array, one a line": lambda items: (
        b"[\n" + b",\n".join(json.dumps(item).encode() for item in items) + b"\n]"
    ),
    "indented": lambda items: json.dumps({"traceEvents": items}, indent=4).encode(),
    "lines": lambda items: b"\n".join(json.dumps(item).encode() for item in items) + b"\n",
    "new": kineto_new,
    "classic": kineto_classic,
}
TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"\\",
    b"{{{{",
    b"]]]]",
    b"}}}}",
    b'"}]}',
    b'{"a"',
    b"\0\0\0\0",
]


def numbered(events: int) -> list[dict[str, Any]]:
    """Return events that end in `]]}}`, each with a name of its own."""
    return [
        {"ph": "X", "cat": "cpu_op", "name": f"op{i}", "pid": 1, "tid": 1, "ts": 10 * i + 0.5, "dur": 3.25}
        | {"args": {"External id": i, "Input Dims": [[i, 2], [2, 3]]}}
        for i in range(events)
    ]


PACKINGS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "gzip": (gzip.compress, "json.gz"),
    "gzip in two members": (lambda data: gzip.compress(data[:9000]) + gzip.compress(data[9000:]), "json.gz"),
    "zstd": (lambda data: pytest.importorskip("zstandard").compress(data), "json.zst"),
}
OTHER = json.dumps({"traceEvents": [event | {"pid": 2} for event in numbered(EVENTS)]}).encode()
OTHER = OTHER.replace(b'"op', b'"other')
DOCUMENTS: dict[str, Callable[[bytes], bytes]] = {
    "one": lambda data: data,
    "first of two": lambda data: data + b"\n" + OTHER,
    "second of two": lambda data: OTHER + b"\n" + data,
}


@pytest.mark.parametrize("documents", DOCUMENTS)
@pytest.mark.parametrize("packing", PACKINGS)
def test_packing_and_further_documents_lose_no_more(packing: str, documents: str, tmp_path: Path) -> None:
    """The same damage in packed files and beside a sound document costs no more than two events."""
    data = LAYOUTS["one a line"](numbered(EVENTS))
    end = data.index(b"]]}}", data.index(b'"op100"'))
    pack, ending = PACKINGS[packing]
    broken = pack(DOCUMENTS[documents](data[:end] + b"{" + data[end + 4 :]))
    trace = read(written(tmp_path, broken, f"t.{ending}"), tmp_path)
    names = set(names_of(trace))
    assert len(names & {f"op{i}" for i in range(EVENTS)}) >= EVENTS - 2
    if documents != "one":
        assert names >= {f"other{i}" for i in range(EVENTS)}
    assert trace.indexes[0].read_report["repaired"] + trace.indexes[0].read_report["unreadable"] > 0


# -- one value refuses no file -------------------------------------------------------------------------------

DIGITS = (
    "9" * 308,
    "1" + "0" * 308,
    "9" * 309,
    "1" * 400,
    "-" + "9" * 400,
    "7" * 4300,
    "7" * 4301,
    "7" * 20_000,
)
EXPONENTS = ("1e400", "-1e400", "1e-400", "1e99999999999", "1.5E+309", "0." + "3" * 400, "1" * 400 + ".5")
FIELDS = (
    '"ts":{0},"dur":1,"pid":1,"tid":1',
    '"ts":1,"dur":{0},"pid":1,"tid":1',
    '"ts":1,"dur":1,"pid":{0},"tid":1',
    '"ts":1,"dur":1,"pid":1,"tid":{0}',
    '"ts":1,"dur":1,"pid":1,"tid":1,"id":{0}',
    '"ts":1,"dur":1,"pid":1,"tid":1,"args":{{"correlation":{0},"bytes":{0},"Input Dims":[[{0}]]}}',
    '"ts":1,"dur":1,"pid":1,"tid":1,"args":{{"a":{{"b":[{0}]}}}}',
    '"ts":1,"pid":1,"ph":"C","args":{{"value":{0}}}',
    '"ts":1,"pid":1,"tid":1,"ph":"M","name":"thread_sort_index","args":{{"sort_index":{0}}}',
    '"ts":1,"pid":1,"tid":1,"ph":"s","id":{0}',
    '"ts":1,"pid":1,"tid":1,"ph":"b","id":{0}',
    '"ts":1,"pid":1,"tid":1,"ph":"B","args":{{"correlation":{0}}}',
    '"ts":"{0}","dur":"{0}","pid":"{0}","tid":"{0}"',
)


@pytest.mark.slow
@pytest.mark.parametrize(("field", "decoder"), product(FIELDS, DECODERS))
def test_no_number_refuses_a_file(field: str, decoder: str, tmp_path: Path) -> None:
    """However many digits a number has, wherever it stands: other events are read, and all are counted."""
    for number in (*DIGITS, *EXPONENTS):
        text = field.format(number)
        phase = "" if '"ph"' in text else '"ph":"X",'
        name = "" if '"name"' in text else '"name":"odd",'
        event = "{" + phase + name + text + "}"
        data = b'{"traceEvents":[' + GOOD + b"," + event.encode() + b"," + GOOD + b"]}"
        trace = read(written(tmp_path, data), tmp_path, decoder)
        assert names_of(trace).count("good") == 2, number[:20]
        assert trace.indexes[0].read_report["events"] == 3, number[:20]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["envelope before", "envelope after"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_no_number_in_the_envelope_refuses_a_file(where: str, decoder: str, tmp_path: Path) -> None:
    """A time base or anything else beside the events may have any number of digits."""
    for number in (*DIGITS, *EXPONENTS):
        other = b'"baseTimeNanoseconds":%b,"x":[%b]' % (number.encode(), number.encode())
        events = b'"traceEvents":[' + GOOD + b"]"
        data = b"{" + b",".join((other, events) if where == "envelope before" else (events, other)) + b"}"
        assert names_of(read(written(tmp_path, data), tmp_path, decoder)) == ["good"], number[:20]


@needs(CASES)
def test_a_zip_with_a_damaged_header_is_unreadable(tmp_path: Path) -> None:
    """It is said in one line that it cannot be read."""
    with pytest.raises(UnreadableError) as raised:
        read(CASES / "trust" / "z5.zip", tmp_path)
    assert "z5.zip" in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("every", [5, later(1)])
def test_damaged_archives_are_read_or_refused_in_one_line(every: int, tmp_path: Path) -> None:
    """Whatever happens to a byte of a zip or gzip file, it is read as far as it goes, or refused."""
    whole = around(SLICE + b'"name":"other"}')
    for data, ending in ((zipped(t=whole), "zip"), (gzip.compress(whole), "json.gz")):
        for offset in range(0, len(data), every):
            for value in (data[offset] ^ 1, data[offset] ^ 0xFF):
                broken = bytearray(data)
                broken[offset] = value
                refused_or_read(written(tmp_path, bytes(broken), f"t.{ending}"), tmp_path)
            refused_or_read(written(tmp_path, data[:offset], f"t.{ending}"), tmp_path)


def refused_or_read(path: Path, folder: Path) -> None:
    """Assert that a file is read, or refused in one line that names it."""
    try:
        trace = read(path, folder)
    except TracelaneError as error:
        assert path.name in str(error) and "\n" not in str(error)
    else:
        for index in trace.indexes:
            index.close()


# -- both decoders agree -------------------------------------------------------------------------------------


@needs(CASES)
@pytest.mark.parametrize("name", ["bad-2-14", "bad-3-119", "bad-3-304", "bad-3-453", "bigint", "hang1"])
def test_both_decoders_make_the_same_of_damaged_files(name: str, tmp_path: Path) -> None:
    """The same columns and counts, whichever decoder read it."""
    path = CASES / "trust" / f"{name}.json"
    assert index_differences(path, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("count", [15, later(60)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_decoders_make_the_same_of_mutants(layout: str, count: int, tmp_path: Path) -> None:
    """Damage anywhere gives the same columns and counts, whichever decoder read it."""
    rng = random.Random(f"decoders {layout}")
    data = LAYOUTS[layout](numbered(20))
    for _ in range(count):
        broken = data
        for _ in range(rng.randrange(1, 4)):
            offset = rng.randrange(len(broken))
            broken = broken[:offset] + rng.choice(TOKENS) + broken[offset + rng.randrange(5) :]
        path = written(tmp_path, broken)
        assert index_differences(path, tmp_path) == [], broken


EVENTS_BRACKETS = 24
CHUNK = 1 << 10
SOME = 24
"""`make test` tries every twenty-fourth damage, others in each layout and at each place."""
BEGIN, MIDDLE, ARGUMENT, END = rb"\{", rb'"dur"', rb'"dims":', rb"\]\s*\]\s*\}\s*\}"
"""Places of an event: before and behind what these match."""


def numbered_brackets(count: int) -> list[dict[str, object]]:
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
    for size in range(1, 5):
        for chosen in itertools.combinations(brackets, size):
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
    begins = [span_of(data, number)[0] for number in range(EVENTS_BRACKETS)]
    border = next(
        number
        for number in range(4, EVENTS_BRACKETS)
        if begins[number] // CHUNK > begins[number - 1] // CHUNK
    )
    return {
        "first": int(data[:1] == b"{" and b"traceEvents" not in data),
        "end of a chunk": border - 1,
        "begin of a chunk": border,
        "middle": border + 2,
    } | {"last": EVENTS_BRACKETS - 1}


WHERE = ("first", "end of a chunk", "begin of a chunk", "middle", "last")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "layout", "every"),
    [
        *((*case, SOME) for case in product(WHERE, LAYOUTS)),
        *((where, layout, 1) for layout, where in in_turn(LAYOUTS, WHERE, 1)),
    ],
)
def test_brackets_cost_their_event_and_a_neighbour(layout: str, where: str, every: int) -> None:
    """All other events are read, and the damage is reported."""
    data = LAYOUTS[layout](numbered_brackets(EVENTS_BRACKETS))
    number = at_borders(data)[where]
    others = {f"n{i}" for i in range(EVENTS_BRACKETS) if i != number}
    lost = []
    first = (WHERE.index(where) + 5 * list(LAYOUTS).index(layout)) % every
    for text in itertools.islice(damaged(data, *span_of(data, number)), first, None, every):
        read = read_text(text, CHUNK)
        names = {event["name"] for event in read.elements if isinstance(event, dict) and "name" in event}
        if len(others - names) > 1 or not (others <= names or read.problems):
            lost.append((text[slice(*span_of(data, number))], sorted(others - names)[:5], read.problems))
    assert not lost, len(lost)


EVENTS_HEADER = 12
NAMES = [f"n{i}" for i in range(EVENTS_HEADER)]
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
LAYOUTS_HEADER = {
    "compact": lambda value: json.dumps(value, separators=(",", ":")),
    "spaces": json.dumps,
    "indented": lambda value: json.dumps(value, indent=2),
}


def traces(layout: str) -> Iterator[tuple[str, bytes]]:
    """Yield (key, text) where the value of each key of the header has brackets too many or too few."""
    document = {**BEFORE, "traceEvents": numbered_brackets(EVENTS_HEADER), **AFTER}
    for key, value in HEADER.items():
        marked = {**document, key: "VALUE"}
        head, tail = LAYOUTS_HEADER[layout](marked).encode().split(b'"VALUE"')
        text = json.dumps(value).encode()
        brackets = [match.start() for match in re.finditer(rb"[\[\]{}]", text)] if key != "text" else []
        spots = {0, len(text), *brackets, *(at + 1 for at in brackets)}
        for at, run in itertools.product(sorted(spots), runs("[{") + runs("]}")):
            yield key, head + text[:at] + run + text[at:] + tail
        for size in range(1, 5):
            for chosen in itertools.combinations(brackets, size):
                rest = bytes(byte for at, byte in enumerate(text) if at not in chosen)
                yield key, head + rest + tail


def is_sound(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS_HEADER)
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
@pytest.mark.parametrize("value", VALUES)
def test_files_with_brackets_in_the_header(value: bytes, packed: bool, decoder: str, tmp_path: Path) -> None:
    """Both readers read all events behind such a value, of packed files too, and what stands behind them."""
    events = json.dumps(numbered_brackets(3000)).encode()
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
