"""The native scanner and its plain twin: the same batch, byte for byte, of every text there is."""

from __future__ import annotations

import json
import os
import random
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus import for_files, traces
from tests.scanning import (
    MAX_LENGTH,
    PROMOTED,
    compare,
    differences,
    mutants,
    native,
    reference,
    scan_of,
    scan_text,
    values_exchanged,
    wrong,
)
from tracelane.core.base.errors import Cancelled
from tracelane.core.base.units import TIME_LIMIT
from tracelane.core.native.library import native_library
from tracelane.core.read.promoted import Kind, Promoted, PromotedTable
from tracelane.core.read.scan_native import NativeScanner
from tracelane.core.read.scan_reference import Reason, ScanText, ScanWatch
from tracelane.core.read.source import open_source

pytestmark = pytest.mark.skipif(
    native_library().functions is None, reason=f"no native core: {native_library().reason}"
)

MUTANTS = int(os.environ.get("TRACELANE_MUTANTS", "1000"))
FILES = [path for path in traces("**/*.json*", "cases/**/*.json*") if path.stat().st_size < 3 << 20]


def _array(path: Path) -> tuple[bytes, int] | None:
    """Return a trace's text and where its events begin."""
    try:
        stream = open_source(path).open()
    except Exception:
        return None
    data = stream.read(64 << 20)
    stream.close()
    key = data.find(b'"traceEvents"')
    at = data.find(b"[", max(key, 0))
    return (data, at + 1) if at >= 0 else None


def _event(**values: Any) -> bytes:
    return json.dumps({"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1, **values}).encode()


@pytest.mark.slow
@for_files("path", FILES)
def test_every_trace_reads_the_same(path: Path) -> None:
    """Of each file both scanners make the same batches, in one go and in chunks of 100,000 bytes."""
    array = _array(path)
    if array is None:
        pytest.skip("not a trace")
    data, at = array
    assert compare(ScanText.of(data), at) == []
    scanners = native(), reference()
    text = ScanText.of(data)
    for limit in range(100_000, text.size, 100_000):
        one, other = (scan_text(scanner, text, at, limit) for scanner in scanners)
        assert differences(one, other) == []
        if one.stop.reason is not Reason.LIMIT:
            break
        at = one.stop.at


@pytest.mark.slow
def test_mutants_read_the_same() -> None:
    """Whatever is damaged in a trace, both scanners accept the same elements and refuse the same ones."""
    excerpts = []
    for path in FILES[::5]:
        array = _array(path)
        if array is not None:
            data, at = array
            middle = data.find(b"{", (at + len(data)) // 2)
            excerpts += [data[at : at + 3000], data[middle : middle + 2500]]
    count = MUTANTS // len(excerpts) // 2 + 1
    assert max(map(len, excerpts)) > 100
    for seed, excerpt in enumerate(excerpts):
        if len(excerpt) > 100:
            assert wrong(mutants(excerpt, count, seed)) == []
            assert wrong(values_exchanged(excerpt, count, seed)) == []


_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.integers(-5, 5), st.text(max_size=12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["1.5", " 12 ", "0x7f", "p", "g", "e", "kernel"]),
)  # fmt: skip
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["local", "global", "a", *PROMOTED.keys[:20]]), inner, max_size=4)
    ),
    max_leaves=8,
)
_KEYS = "ph name cat pid tid ts dur id id2 scope bp s cname args attr other"
_keys = st.sampled_from(_KEYS.split(" "))
_events = st.dictionaries(_keys, _values, max_size=10).flatmap(
    lambda event: st.fixed_dictionaries(
        {
            "ph": st.sampled_from([*"XBEiRCbnesftMNDO", "Complete", ""]),
            "ts": st.one_of(st.integers(0, 1 << 62), _scalars),
        }
    ).map(lambda more: event | more)
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(_events, _values), max_size=6),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
    st.booleans(),
)
def test_any_json_reads_the_same(
    elements: list[Any], indent: int | None, ascii_only: bool, sort: bool
) -> None:
    """Of any list of JSON values both make the same batch, however it is written."""
    try:
        data = json.dumps(elements, indent=indent, ensure_ascii=ascii_only, sort_keys=sort).encode()
    except UnicodeEncodeError:
        return
    assert compare(ScanText.of(data), 1) == []


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**20),
            st.text("0123456789", max_size=25),
            st.sampled_from(["", "e3", "E-4", "e+0"]),
        ),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=100, deadline=None)
def test_times_are_exact(numbers: list[tuple[int, str, str]]) -> None:
    """Times are the ns nearest to the decimal text, half to even, at every magnitude."""
    texts = [f"{whole}{'.' + part if part else ''}{exponent}" for whole, part, exponent in numbers]
    data = ",".join(f'{{"ph":"i","ts":{sign}{text}}}' for text in texts for sign in ("", "-")).encode()
    exact = [
        int((Decimal(sign + text) * 1000).to_integral_value(ROUND_HALF_EVEN))
        for text in texts
        for sign in ("", "-")
    ]
    for scanner in (native(), reference()):
        starts = scan_text(scanner, ScanText.of(data)).batch.tables["timed"]["start"].tolist()
        assert starts == [max(-TIME_LIMIT, min(TIME_LIMIT, ns)) for ns in exact]


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False), st.decimals(-(10**24), 10**24, places=19)
        ),
        min_size=1,
    )
)
@settings(max_examples=100, deadline=None)
def test_numbers_are_the_nearest_doubles(numbers: list[Any]) -> None:
    """Counter values are the doubles that Python reads from the same text."""
    texts = [repr(number) if isinstance(number, float) else str(number) for number in numbers]
    data = ",".join(f'{{"ph":"C","ts":1,"args":{{"v":{text}}}}}' for text in texts).encode()
    for scanner in (native(), reference()):
        values = scan_text(scanner, ScanText.of(data)).batch.tables["counters"]["value"]
        assert values.tobytes() == np.array([float(text) for text in texts]).tobytes()


def test_text_may_come_in_pieces() -> None:
    """A text that ends anywhere is read on from there, and nothing is lost or read twice."""
    events = b",\n ".join(
        [
            _event(args={"correlation": 7, "grid": [1, 2]}),
            b"{}",
            b"12",
            _event(ph="M", name="thread_name", args={"name": "é"}),
            _event(ph="C", args={"a": 1.5}),
            _event(ph="s", id="0x1", cat="ac2g"),
        ]
    )
    whole = scan_text(native(), ScanText.of(events + b"]"))
    assert whole.stop.reason is Reason.CLOSED
    for scanner in (native(), reference()):
        for size in range(len(events)):
            scanner.begin()
            stop = scanner.scan(ScanText.of(events[:size], is_last=False), 0, 1 << 40, MAX_LENGTH)
            assert stop.reason is Reason.TEXT, size
            stop = scanner.scan(ScanText.of(events + b"]"), stop.at, 1 << 40, MAX_LENGTH)
            assert differences(whole, scan_of(scanner, stop)) == [], size


def test_chunks_hold_the_events_that_begin_in_them() -> None:
    """A scan reads what begins before its limit, whole; the next goes on where it ended."""
    events = [_event(name=f"e{n}", args={"x": "y" * (n % 40)}) for n in range(200)]
    data = b" , ".join(events)
    begins = [data.index(b'"name": "e%d"' % n) - 12 for n in range(200)]
    for scanner in (native(), reference()):
        at, total = 0, 0
        for limit in range(0, len(data) + 1000, 1000):
            scan = scan_text(scanner, ScanText.of(data), at, limit)
            total += scan.batch.events
            assert total == sum(begin < limit for begin in begins)
            at = scan.stop.at
        assert total == 200


@pytest.mark.slow
def test_rooms_grow() -> None:
    """There is no bound on events, strings, tracks, samples or metadata of a batch."""
    events = [_event(name=f"name {n}", tid=n, cat="kernel", args={"correlation": n}) for n in range(40_000)]
    events += [_event(ph="C", name="c", args={str(n): n for n in range(60)}) for _ in range(100)]
    events += [_event(ph="C", args={str(n): n for n in range(1000)})]
    events += [_event(ph="M", name=f"m{n}") for n in range(3000)]
    events += [_event(ph="b", id=n, name="n" * n) for n in range(3000)]
    data = b",".join(events)
    assert compare(ScanText.of(data)) == []
    assert compare(ScanText.of(b",".join(b"1" for _ in range(10_000)))) == []


def test_keys_without_end() -> None:
    """Traces with keys of their own in every event, and with very long ones, read as all others do."""
    events = [
        _event(args={f"key {n} {k}": k for k in range(5)}, **{f"own {n}": 1, "k" * (n % 200): 2})
        for n in range(2000)
    ]
    assert compare(ScanText.of(b",".join(events))) == []


def test_blanks_do_not_matter() -> None:
    """Where a gap fits and more blanks follow, or commas are missing or doubled, nothing goes wrong."""
    chance = random.Random(4)
    pieces = []
    for n in range(3000):
        event = {"ph": "X", "ts": n, "dur": 1.5, "args": {} if n % 3 else {"correlation": n}, "name": f"a{n}"}
        text = json.dumps(
            event, separators=(chance.choice((",", ", ", " ,\n\t")), chance.choice((":", ": ", " :  ")))
        )
        pieces.append(text + chance.choice((",", ", ", "\n", ",,", " , ", "")))
    assert compare(ScanText.of("".join(pieces).encode())) == []


def test_a_scan_is_cancelled() -> None:
    """A scan ends soon after its cancel flag is set."""
    watch = ScanWatch()
    scanner = NativeScanner(PROMOTED, watch)
    text = ScanText.of(b",".join([_event()] * 20_000))
    scanner.begin()
    watch.cancel[0] = 1
    with pytest.raises(Cancelled):
        scanner.scan(text, 0, 1 << 40, MAX_LENGTH)
    assert 0 < watch.progress[0] < 300_000


def test_any_argument_is_promoted() -> None:
    """Which arguments become columns is the caller's choice."""
    table = PromotedTable(
        (
            Promoted("mine", ("Mine", "mine"), Kind.TEXT, ""),
            Promoted("n", ("n",), Kind.INTEGER, ""),
        )
    )
    scanner = NativeScanner(table, ScanWatch())
    scanner.begin()
    scanner.scan(ScanText.of(_event(args={"mine": "b", "n": "5", "Mine": [1, 2]})), 0, 1 << 40, MAX_LENGTH)
    batch = scanner.finish(0, 0)
    assert scanner.table().bytes_of(int(batch.promoted["mine"]["value"][0])) == b"[1,2]"
    assert batch.promoted["n"]["value"].tolist() == [5]
