"""`doctor --recount`: every event of a file, read by ijson, is held against what its index says."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
from collections.abc import Callable, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import files, for_files, traces
from tests.events import (
    Event,
    async_event,
    begin,
    complete,
    counter,
    end,
    event,
    every_phase,
    flow,
    metadata,
    open_events,
)
from tests.forms import cut_off, forms, zipped
from tests.fuzz.index_damage import sealed_again
from tracelane.core.base.errors import Cancelled, UnreadableError
from tracelane.core.base.progress import Progress
from tracelane.core.base.units import TIME_LIMIT
from tracelane.core.export.perfetto import write_perfetto
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.read.source import Source, TsUnit, open_source
from tracelane.core.tables.doctor.file_values import ns_of
from tracelane.core.tables.doctor.recount import USUAL_SIZES, Recounted, Sizes, recount
from tracelane.core.tables.frame.scope import Scope
from tracelane.tui.cli.main import main

BACKENDS = pytest.mark.parametrize("backend", ["yajl2_c", "python"])
"""The fastest parser of ijson, and the one that is there everywhere."""


def opened(path: Path, ts_unit: TsUnit = "us") -> tuple[Index, Source]:
    """Return the new index of a file, which lies beside it, and the file."""
    source = open_source(path, ts_unit=ts_unit)
    return ingest_index(source, IndexOptions(index_dir=path.parent / "index")), source


def recounted(path: Path, backend: str = "", sizes: Sizes = USUAL_SIZES, ts_unit: TsUnit = "us") -> Recounted:
    index, source = opened(path, ts_unit)
    with closing(index):
        return recount(index, source, backend=parser(backend), sizes=sizes)


def parser(backend: str) -> str:
    """Return a parser of ijson; the test is skipped where it is not there."""
    import ijson

    if backend:
        try:
            ijson.get_backend(backend)
        except ImportError:
            pytest.skip(f"ijson has no {backend} here")
    return backend


def written(folder: Path, events: Sequence[Any] | str | bytes, **envelope: Any) -> Path:
    """Return a file of these events, or of this text."""
    if not isinstance(events, str | bytes):
        events = json.dumps({**envelope, "traceEvents": events})
    path = folder / "t.json"
    path.write_bytes(events.encode() if isinstance(events, str) else events)
    return path


# -- equal ---------------------------------------------------------------------------------------------------


@for_files("path", traces())
@pytest.mark.parametrize("backend", ["yajl2_c", pytest.param("python", marks=pytest.mark.slow)])
def test_samples_are_equal(path: Path, backend: str, tmp_path: Path) -> None:
    """Every recording of the project is equal to its index, whichever parser reads it."""
    source = open_source(path)
    with closing(ingest_index(source, IndexOptions(index_dir=tmp_path))) as index:
        result = recount(index, source, backend=parser(backend))
        assert result.text == f"{index.read_report['events']:,} events, equal to the nanosecond"


@pytest.mark.slow
@for_files("path", [path for path in files("**/*.json*", "cases/**/*.json*") if path.is_file()])
def test_the_corpus_is_equal_or_no_json(path: Path, tmp_path: Path) -> None:
    """Of other files too no event differs; ijson stops only in what Python's decoder refuses as well."""
    source = open_source_of(path)
    if source is None:
        return
    try:
        index = ingest_index(source, IndexOptions(index_dir=tmp_path))
    except UnreadableError:
        return
    with closing(index):
        result = recount(index, source)
    assert result.difference is None, result.text
    if result.stop is not None:
        assert not is_json(path)


def open_source_of(path: Path) -> Source | None:
    try:
        source = open_source(path)
    except UnreadableError:
        return None
    return source if source.encoding.startswith("utf") else None


def is_json(path: Path) -> bool:
    def refuse(text: str) -> None:
        raise ValueError(text)

    data = path.read_bytes()
    try:
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        json.loads(data.decode(json.detect_encoding(data)), parse_constant=refuse)
    except (ValueError, OSError, EOFError):
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
@BACKENDS
def test_every_phase_is_equal(seed: int, backend: str, tmp_path: Path) -> None:
    """Events of all phases in no order of time are equal, in windows of any size."""
    path = written(tmp_path, every_phase(seed, 60))
    count = len(every_phase(seed, 60))
    for sizes in (USUAL_SIZES, Sizes(window=1), Sizes(window=7, reach=20), Sizes(characters=10, reach=3000)):
        assert recounted(path, backend, sizes).text == f"{count:,} events, equal to the nanosecond"


FORMS = [form for form in forms(40) if form.form]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@BACKENDS
def test_every_form_is_equal(form: Any, backend: str, tmp_path: Path) -> None:
    """Whatever stands around the events, and however the file is packed, all are compared."""
    path = tmp_path / "t.json"
    path.write_bytes(form.data)
    result = recounted(path, backend)
    assert result.difference is None, result.text
    if result.stop is None:
        assert result.events == len(form.events)
    else:
        assert not is_json(path)


def utf16(text: bytes) -> bytes:
    return codecs.BOM_UTF16_LE + text.decode().encode("utf-16-le")


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "two members": lambda text: gzip.compress(text[:100]) + gzip.compress(text[100:]),
    "zip": lambda text: zipped(a=text),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "BOM": lambda text: codecs.BOM_UTF8 + text,
    "UTF-16": utf16,
    "UTF-16 in gzip": lambda text: gzip.compress(utf16(text)),
}


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_packed_files_are_equal(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Files are unpacked by Python's own modules, and are equal."""
    events = every_phase(1, 10)
    path = written(tmp_path, pack(json.dumps({"traceEvents": events}).encode()))
    assert recounted(path).text == f"{len(events)} events, equal to the nanosecond"


def test_zstd_is_equal(tmp_path: Path) -> None:
    """Zstandard, in several frames, likewise."""
    zstandard = pytest.importorskip("zstandard")
    events = every_phase(1, 10)
    text = json.dumps({"traceEvents": events}).encode()
    pack = zstandard.ZstdCompressor().compress
    path = written(tmp_path, pack(text[:500]) + pack(text[500:]))
    assert recounted(path).text == f"{len(events)} events, equal to the nanosecond"


def unnamed(ts: int, **more: Any) -> Event:
    return begin(ts, None, **more)


VALUES: list[Any] = [5, 1.5, 1e22, True, [1, {"a": 2}], {}, 0]
LIMIT_US = TIME_LIMIT // 1000
ODD: dict[str, list[Any]] = {
    "times as texts": [complete("1.0005", " 2.5 "), complete("1e3", ".5"), complete("x", 1), complete("", 1)],
    "times that are none": [complete(True, 1), complete([1], 1), complete({}, 1), complete(1, [])],
    "halves": [complete(0.0005, 0.0015), complete(1.0025, 0.0035), complete(-0.0005, 1)],
    "times without an end": [complete(10**20, 1), complete(-(10**20), 1), complete(0, 10**20)],
    "the limit": [
        complete(0, TIME_LIMIT // 1000 + 5),
        complete(TIME_LIMIT // 1000 - 1, 9),
        begin(1),
        end(10**20),
    ],
    "counted from an origin": [
        complete(1_700_000_000_123_456_789_012, 1.5),
        complete(1_700_000_000_123_456_789_999, 2),
    ],
    "names that are no texts": [
        complete(1, 1, name, cat=name) for name in (5, 1.5, 1e22, True, [1, {"a": 2}])
    ],
    "names of other letters": [complete(1, 1, name) for name in ("é", "😀", "\x7f", '"\\/', "", "a\nb")],
    "half a surrogate pair": [complete(1, 1, "a\ud83db"), complete(2, 1, "x")],
    "a begin without a name": [unnamed(1), end(2, name="late"), unnamed(3, cat="c"), end(4)],
    "an end with another name": [begin(1, "a", cat="b"), end(2, name="c", cat="d")],
    "an end before its begin": [end(2, name="n"), unnamed(1), end(4), begin(3, "m")],
    "ends without begins": [end(1), end(2, name="x"), begin(3), begin(4), end(5)],
    "async ends of old": [async_event("S", 1, 1), async_event("F", 3, 1), async_event("F", 4, 2)],
    "counters": [
        counter(1, "a", x=1, y="2.5", z="none", w=None, v=True),
        event("C", 2, "b", args={}),
        event("C", 3, "c", attr={"x": "1e400", "y": 10**400, "z": -0.5e-300}),
        event("C", 4, "5", id="i", args={"x": 1.25, "n": {"x": 1}}),
    ],
    "elements that are no objects": [1, "x", None, [], [[1]], {}, complete(1, 1), {"a": 1}, True, 1.5],
    "flows": [
        complete(1, 9, bind_id=7, flow_out=True),
        complete(20, 9, bind_id=7, flow_in=True, flow_out=True),
        complete(40, 9, bind_id=7, flow_in=True),
        complete(60, 9, bind_id=7),
        *(flow(phase, 5, 1, bp="e") for phase in "stf"),
        flow("f", 5, 2),
    ],
    "metadata": [metadata("process_name", 1, name="x"), event("M", 5.5, "thread_name", args={"name": "y"})],
    "arguments before the phase": [{"args": {"a": {"ph": "X"}, "v": 1}, "ts": 1, "name": "n", "ph": "C"}],
    "keys twice": [],
}
TWICE = '{"traceEvents":[{"ph":"B","ph":"X","ts":1,"ts":2,"dur":3,"name":"a","name":null}],"traceEvents":[]}'


@pytest.mark.parametrize("name", ODD)
@BACKENDS
def test_odd_events_are_equal(name: str, backend: str, tmp_path: Path) -> None:
    """What the format leaves open is understood alike by both readers, whatever the window."""
    path = written(tmp_path, ODD[name] or TWICE)
    for sizes in (USUAL_SIZES, Sizes(window=1)):
        result = recounted(path, backend, sizes)
        assert result.difference is None and result.stop is None, result.text


@pytest.mark.slow
def test_events_that_are_too_large_are_equal(tmp_path: Path) -> None:
    """Of an event that is not read whole the index has notes in place of long texts."""
    large = {"args": {"text": "x" * (17 << 20)}}
    events = [
        complete(1, 2, "é" * 5000) | large,
        counter(2, "c", v=3),
        event("C", 3, "c", args=large | {"v": 4}),
    ]
    path = written(tmp_path, [*events, complete(4, 5, "n" * 5000)])
    assert recounted(path).text == "4 events, equal to the nanosecond"


def test_long_names_are_shown_where_they_differ(tmp_path: Path) -> None:
    """Of long names that differ no more is shown than what stands around the first difference."""
    index, _ = opened(written(tmp_path, [complete(1, 2, "a" * 300 + "b" * 300)]))
    other = tmp_path / "other"
    other.mkdir()
    with closing(index):
        result = recount(index, open_source(written(other, [complete(1, 2, "a" * 300 + "c" * 300)])))
    text = "event 0: name is …'{0}cccccccccccccccccccccccccccccc'… in the file, …'{0}bbb"
    assert result.text.startswith("not equal: " + text.format("a" * 30)) and len(result.text) < 240


def test_times_in_ns_are_equal(tmp_path: Path) -> None:
    """With --ts-unit ns times are compared as that."""
    path = written(tmp_path, [complete(1_000_000_007, 3), complete(1.5, 2.5)])
    assert recounted(path, ts_unit="ns").text == "2 events, equal to the nanosecond"


@given(
    st.decimals(-(10**12), 10**12, allow_nan=False, places=6)
    | st.integers(-(10**40), 10**40)
    | st.floats(-1e12, 1e12, allow_nan=False)
)
def test_times_are_rounded_exactly(number: Any) -> None:
    """A time in µs is the nearest whole number of ns, of two equally near ones the even."""
    assert ns_of(str(number), 1000) == round(Fraction(str(number)) * 1000)


# -- different -----------------------------------------------------------------------------------------------

EVENTS: list[Event] = [
    metadata("process_name", 1, name="python"),
    complete(10, 5, "one", cat="a"),
    complete(20, 5, "two", cat="b"),
    begin(30, "three", cat="a"),
    end(40),
    event("i", 50, "now", cat="b"),
    event("i", 51, "then", cat="b"),
    event("i", 52, "now", cat="b"),
    counter(60, "mem", used=6),
    counter(61, "mem", used=7),
    counter(62, "mem", used=8),
    flow("s", 12, 1),
    flow("f", 22, 1, bp="e"),
    async_event("b", 70, 1, "four"),
    async_event("e", 80, 1, "four"),
    begin(90, "five"),
    complete(100, 5_000_000, "six", cat="a"),
]


def column(name: str, change: Callable[[Any], Any], at: int = 0) -> Callable[[Path], None]:
    """Return what changes a value of a column of an index."""

    def do(folder: Path) -> None:
        (path,) = folder.glob(f"{name}.*")
        values = np.fromfile(path, path.suffix[1:])
        values[at] = change(values[at])
        values.tofile(path)

    return do


def report(**changes: Any) -> Callable[[Path], None]:
    """Return what changes the read report of an index."""

    def do(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        manifest["read_report"] |= changes
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    return do


def up(value: Any) -> Any:
    return value + 1


def none(_: Any) -> int:
    return 0


def five(_: Any) -> int:
    return 5


CHANGES: dict[str, tuple[Callable[[Path], None], tuple[int | None, str, str, str]]] = {
    "ts of a slice": (column("slices.start", up), (1, "ts", "10,000 ns", "10,001 ns")),
    "dur of a slice": (column("slices.duration", up), (1, "dur", "5,000 ns", "5,001 ns")),
    "dur of a long slice": (
        column("long.duration", up, -1), (16, "dur", "5,000,000,000 ns", "5,000,000,001 ns")
    ),
    "name of a slice": (column("slices.name", none), (1, "name", "'one'", "''")),
    "category of a slice": (column("slices.category", none), (1, "category", "'a'", "''")),
    "phase of a slice": (column("flags.value", none), (3, "phase", "B", "X")),
    "phase of an instant": (column("instants.phase", up, 1), (6, "phase", "i", "j")),
    "ts of an instant": (column("instants.start", up, 1), (6, "ts", "51,000 ns", "51,001 ns")),
    "name of an instant": (column("instants.name", none, 1), (6, "name", "'then'", "''")),
    "end of a slice": (column("slices.duration", up, 2), (4, "ts", "40,000 ns", "40,001 ns")),
    "which event ends it": (column("ends.ordinal", up), (4, "phase", "E", "none that is drawn")),
    "which event it is": (column("slices.ordinal", up), (1, "phase", "X", "none that is drawn")),
    "ts of a sample": (column("samples.start", up, 1), (9, "ts", "61,000 ns", "61,001 ns")),
    "value of a sample": (
        column("samples.value", up, 1), (9, "what it counts of 'used'", "7.0", "8.0")
    ),
    "end of an arrow": (
        column("flows.target_ordinal", five), (5, "arrow", "none, or its other end", "an end of one")
    ),
    "sum of a category": (
        column("category_sums", up, -1),
        (None, "what category 'async' comes to", "1 slice of 10,000 ns", "1 slice of 10,001 ns"),
    ),
    "elements": (report(events=18), (None, "the number of elements", "17", "18")),
    "flow events": (report(flow_events=3), (None, "the number of flow events", "2", "3")),
    "flows": (report(flows={}), (None, "the number of flow starts of category 'ac2g'", "1", "0")),
    "phases": (report(counts={}), (None, "the number of events of phase B", "2", "0")),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
@BACKENDS
def test_a_changed_index_is_found_out(name: str, backend: str, tmp_path: Path) -> None:
    """One changed value of an index is named, with what both say, whatever the window."""
    change, difference = CHANGES[name]
    index, source = opened(written(tmp_path, EVENTS))
    assert recount(index, source, backend=parser(backend)).events == len(EVENTS)
    folder = index.folder
    index.close()
    change(folder)
    sealed_again(folder)
    for sizes in (USUAL_SIZES, Sizes(window=1), Sizes(window=5, reach=6)):
        with closing(Index.open(folder)) as changed:
            result = recount(changed, source, backend=backend, sizes=sizes)
        assert result.difference == difference
        assert result.events == (len(EVENTS) if difference[0] is None else difference[0])
        assert result.text.endswith(f"{difference[2]} in the file, {difference[3]} in the index")


def test_an_event_too_many_is_found_out(tmp_path: Path) -> None:
    """An index of a file that has more events, or fewer, is not equal."""
    index, _ = opened(written(tmp_path, EVENTS))
    other = tmp_path / "other"
    other.mkdir()
    for events in (EVENTS[:-1], [*EVENTS, complete(200, 1)], EVENTS[:5] + EVENTS[6:]):
        assert recount(index, open_source(written(other, events))).difference is not None
    index.close()


# -- where ijson stops ---------------------------------------------------------------------------------------

SOUND = [complete(10 * at, 5, f"e{at}") for at in range(20)]
TEXT = json.dumps({"traceEvents": SOUND})
AT = TEXT.index('{"ph": "X", "ts": 100')
STOPS = {
    "NaN": (TEXT.replace('"ts": 100', '"ts": NaN'), TEXT.index('"ts": 100') + 6, 10),
    "a control character": (TEXT.replace('"e10"', '"e\n10"'), TEXT.index('"e10"') + 2, 10),
    "the end of the text": (TEXT[: AT + 7], AT + 7, 10),
    "text before it": ("log: " + TEXT, 0, 0),
    "a list of events": (TEXT[:AT] + "[" + TEXT[AT:-2] + "]]}", AT + 5, 10),
}


@pytest.mark.parametrize("name", STOPS)
@BACKENDS
def test_where_ijson_stops(name: str, backend: str, tmp_path: Path) -> None:
    """Up to the byte that ijson cannot read all events are compared, and that byte is named."""
    text, byte, events = STOPS[name]
    result = recounted(written(tmp_path, text), backend)
    assert result.difference is None and result.stop is not None
    assert result.events == events
    # The parser in Python sees only behind a token that it is none.
    assert byte <= result.stop.offset <= byte + (0 if backend == "yajl2_c" else len('"e 10", '))
    assert result.text.startswith(f"compared up to byte {result.stop.offset:,}, {events} events equal; ")


@pytest.mark.parametrize("form", list(cut_off(40)), ids=lambda form: form.name)
def test_cut_files_are_compared_in_part(form: Any, tmp_path: Path) -> None:
    """Of a file without its end all events that are there are compared."""
    path = tmp_path / "t.json"
    path.write_bytes(form.data)
    result = recounted(path)
    assert result.difference is None, result.text
    assert result.events <= len(form.events)


def test_the_byte_is_exact_in_long_files(tmp_path: Path) -> None:
    """In a file of many pieces the byte is exact too, and a change before it is found."""
    events = [complete(10 * at, 5, f"e{at}", args={"text": "x" * 200}) for at in range(2000)]
    text = json.dumps({"traceEvents": events}).replace('"ts": 15000', '"ts": -Infinity')
    path = written(tmp_path, text)
    result = recounted(path)
    assert (result.stop and result.stop.offset, result.events) == (text.index("-Infinity") + 1, 1500)
    index, source = opened(path)
    folder = index.folder
    index.close()
    column("slices.start", up, 1400)(folder)
    sealed_again(folder)
    with closing(Index.open(folder)) as changed:
        assert recount(changed, source).text.startswith("not equal: event 1,400: ts is 14,000,000 ns in")


def test_damaged_packing_is_said(tmp_path: Path) -> None:
    """What a wrong checksum or a missing end leaves of packed data is compared."""
    packed = gzip.compress(TEXT.encode())
    for data in (packed[:-8] + bytes(8), packed[:-8]):
        result = recounted(written(tmp_path, data))
        assert result.text.startswith(
            f"compared up to byte {len(TEXT):,}, 20 events equal; no more can be unpacked"
        )


# -- the command ---------------------------------------------------------------------------------------------


def doctor(*arguments: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["doctor", "--recount", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_the_command_says_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says beforehand what it reads with, then what came of it; 0 where nothing differs, else 1."""
    path = written(tmp_path, EVENTS)
    options = (path, "--index-dir", tmp_path / "index")
    code, out, err = doctor(*options, capsys=capsys)
    assert (code, out) == (0, "17 events, equal to the nanosecond\n")
    assert err.startswith("reads with ") and " some 1 s for this file " in err
    (folder,) = [one.parent for one in (tmp_path / "index").glob("**/manifest.json")]
    column("slices.start", up)(folder)
    sealed_again(folder)
    code, out, _ = doctor(*options, capsys=capsys)
    assert (code, out) == (1, "not equal: event 1: ts is 10,000 ns in the file, 10,001 ns in the index\n")
    code, out, _ = doctor(*options, "--json", capsys=capsys)
    assert code == 1
    (row,) = json.loads(out)["tables"]["recount"]["rows"]
    assert (row["verdict"], row["events"], row["byte"]) == ("different", 1, None)
    assert row["difference"]["event"] == 1 and row["difference"]["what"] == "ts"


def test_what_is_compared_in_part_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where ijson stops the exit code is 0, with --strict 1; JSON has the byte."""
    options = (written(tmp_path, STOPS["NaN"][0]), "--index-dir", tmp_path / "index")
    code, out, _ = doctor(*options, capsys=capsys)
    assert code == 0 and out.startswith("compared up to byte ")
    assert doctor(*options, "--strict", capsys=capsys)[0] == 1
    code, out, _ = doctor(*options, "--json", capsys=capsys)
    (row,) = json.loads(out)["tables"]["recount"]["rows"]
    assert (code, row["verdict"], row["events"], row["byte"] > 0) == (0, "equal in part", 10, True)


def test_categories_are_counted_and_added_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the slices and their time by category, of the file and of the index."""
    _, out, _ = doctor(written(tmp_path, EVENTS[:5]), "--json", "--index-dir", tmp_path / "i", capsys=capsys)
    rows = json.loads(out)["tables"]["categories"]["rows"]
    assert [tuple(row.values())[1:] for row in rows] == [
        ("a", 2, 15_000, 2, 15_000),
        ("b", 1, 5_000, 1, 5_000),
    ]


def test_a_folder_of_ranks_has_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of several files each has its sentence, and one that differs decides."""
    for rank in range(2):
        path = tmp_path / f"rank{rank}.json"
        info = {"rank": rank, "world_size": 2}
        path.write_text(
            json.dumps({"distributedInfo": info, "traceEvents": EVENTS[: 5 + rank]}), encoding="utf-8"
        )
    code, out, err = doctor(tmp_path, "--index-dir", tmp_path / "index", capsys=capsys)
    assert code == 0 and "for these 2 files" in err
    lines = ["rank0.json: 5 events, equal to the nanosecond", "rank1.json: 6 events, equal to the nanosecond"]
    assert out.splitlines() == lines


def test_what_cannot_be_recounted_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input and what is no JSON end with one line and exit code 2."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode()), encoding="utf-8"))
    code, out, err = doctor("-", "--index-dir", tmp_path / "index", capsys=capsys)
    assert (code, out, err.count("\n")) == (64, "", 1) and "standard input cannot be read twice" in err
    packets = tmp_path / "t.pftrace"
    write_perfetto(Scope(open_events(tmp_path, EVENTS)), packets)
    code, out, err = doctor(packets, "--index-dir", tmp_path / "index", capsys=capsys)
    assert (code, out, err.count("\n")) == (64, "", 1) and "ijson reads nothing else" in err


def test_it_tells_how_far_it_is_and_can_be_cancelled(tmp_path: Path) -> None:
    """Progress goes up to the size of the file; Cancelled comes soon after it is asked for."""
    index, source = opened(written(tmp_path, every_phase(1, 100)))
    states: list[Progress] = []
    with closing(index):
        recount(index, source, states.append)
        assert states[-1].done == states[-1].total == source.size and states[-1].events
        assert [one.done for one in states] == sorted(one.done for one in states)
        with pytest.raises(Cancelled):
            recount(index, source, cancelled=lambda: True)
