"""Damaged and hostile files: little is lost, nothing takes long, both decoders agree."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CASES, later, needs_cases, thinned
from tests.forms import kineto_classic, kineto_new
from tests.linear import assert_linear
from tests.reading import index_differences
from tracelane.core.base.errors import TracelaneError, UnreadableError
from tracelane.core.index.options import IndexOptions
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
    for key in KEYS
    for opening in OPENINGS
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
@pytest.mark.parametrize("name", thinned(HOSTILE, 5))
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
@pytest.mark.parametrize(("field", "decoder"), thinned(product(FIELDS, DECODERS), 3))
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


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.json", data)
    return out.getvalue()


@needs_cases
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
    for pack, ending in ((zipped, "zip"), (gzip.compress, "json.gz")):
        data = pack(whole)
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


@needs_cases
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
