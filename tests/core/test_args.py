"""Arguments are read from the source on demand: plain, compressed, repaired, gone."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from tracelane.core import Trace, open_trace
from tracelane.core.base.ids import SliceId
from tracelane.core.index.blockstore import has_block_store, needs_block_store, write_block_store
from tracelane.core.read.source import Source

EVENTS = [
    {
        "ph": "X",
        "name": f"e{i}",
        "cat": "cpu_op",
        "pid": 1,
        "tid": 1,
        "ts": i * 10,
        "dur": 5,
        "args": {"n": i},
    }
    for i in range(3000)
] + [
    {"ph": "B", "name": "pair", "pid": 2, "tid": 1, "ts": 1, "attr": {"from": "begin", "both": 1}},
    {"ph": "E", "pid": 2, "tid": 1, "ts": 9, "args": {"to": "end", "both": 2}},
    {"ph": "X", "name": "none", "pid": 2, "tid": 1, "ts": 20, "dur": 1},
    {"ph": "X", "name": "list", "pid": 2, "tid": 1, "ts": 30, "dur": 1, "args": [1, 2]},
    {"ph": "i", "name": "mark", "pid": 2, "tid": 1, "ts": 40, "args": {"m": 1}},
]
TEXT = json.dumps({"traceEvents": EVENTS})


def zipped(text: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", text)
    return out.getvalue()


FORMS = {
    "plain": TEXT.encode,
    "bom": lambda: b"\xef\xbb\xbf" + TEXT.encode(),
    "indented": lambda: json.dumps({"traceEvents": EVENTS}, indent=2).encode(),
    "lines": lambda: "\n".join(json.dumps(event) for event in EVENTS).encode(),
    "gzip": lambda: gzip.compress(TEXT.encode()),
    "zip": lambda: zipped(TEXT.encode()),
    "utf-16": lambda: TEXT.encode("utf-16"),
}


def opened(folder: Path, raw: bytes, name: str = "trace.json") -> Trace:
    path = folder / name
    path.write_bytes(raw)
    return open_trace([path], index_dir=folder / "cache")


def check(trace: Trace) -> None:
    for ordinal in (0, 1, 1499, 2999):
        arguments = trace.arguments(SliceId(0, ordinal))
        assert (arguments.begin, arguments.problem) == ({"n": ordinal}, None)
        assert arguments.event is not None and arguments.event["name"] == f"e{ordinal}"
    pair = trace.arguments(SliceId(0, 3000))
    assert pair.begin == {"from": "begin", "both": 1} and pair.end == {"to": "end", "both": 2}
    assert pair.merged == {"from": "begin", "to": "end", "both": 2}
    assert trace.arguments(SliceId(0, 3002)).begin == {}
    assert trace.arguments(SliceId(0, 3003)).begin == {"args": [1, 2]}
    assert trace.event_arguments(0, 3004).begin == {"m": 1}


@pytest.mark.parametrize("form", FORMS)
def test_arguments_come_from_every_form(tmp_path: Path, form: str) -> None:
    """Begin and end arguments, `attr`, lists and none at all come out alike, however the file is packed."""
    trace = opened(tmp_path, FORMS[form]())
    check(trace)
    slow = form in ("gzip", "zip", "utf-16")
    assert (trace.arguments(SliceId(0, 5)).slow_reason is not None) == slow
    assert needs_block_store(trace.indexes[0]) == slow


@pytest.mark.parametrize("form", ["gzip", "zip", "utf-16"])
def test_the_block_store_makes_compressed_sources_quick(tmp_path: Path, form: str) -> None:
    """Once it is written, arguments come without a reason for slowness and without the source."""
    trace = opened(tmp_path, FORMS[form]())
    write_block_store(trace.indexes[0])
    assert has_block_store(trace.indexes[0]) and not needs_block_store(trace.indexes[0])
    (tmp_path / "trace.json").unlink()
    check(trace)
    assert trace.arguments(SliceId(0, 5)).slow_reason is None
    assert sorted(p.name for p in (trace.indexes[0].folder / "derived").iterdir()) == ["blocks-v2"]


def test_only_one_block_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a plain source one range of the file is read, of the size of a block."""
    many = json.dumps({"traceEvents": EVENTS * 5}).encode()
    trace = opened(tmp_path, many)
    ranges: list[int] = []
    real = Source.read_range

    def counted(self: Source, offset: int, length: int) -> bytes:
        ranges.append(length)
        return real(self, offset, length)

    monkeypatch.setattr(Source, "read_range", counted)
    assert trace.arguments(SliceId(0, 7)).begin == {"n": 7}
    assert len(ranges) == 1 and ranges[0] < 600_000


def test_events_of_a_repaired_block_have_their_arguments(tmp_path: Path) -> None:
    """Where a block is no JSON, its events still have their own arguments, not a neighbour's."""
    text = TEXT.replace('"args": {"n": 17}', '"args": {"n": 17, "bad": NaN}').replace('"e23"', '"e\x01"', 1)
    trace = opened(tmp_path, text.encode())
    for ordinal in (16, 18, 22, 23, 24, 2999):
        assert trace.arguments(SliceId(0, ordinal)).begin == {"n": ordinal}
    assert trace.arguments(SliceId(0, 17)).begin["n"] == 17


def changed(path: Path) -> None:
    path.write_text(TEXT.replace('"n": 5}', '"n": 6}'))


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


TROUBLES = {
    "changed": (changed, "has changed"),
    "touched": (touched, "has changed"),
    "gone": (Path.unlink, "no such file"),
    "emptied": (lambda path: path.write_bytes(b""), "empty"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_source_that_changed_or_went_is_told(tmp_path: Path, trouble: str) -> None:
    """Nothing is raised and nothing wrong is shown: the answer says what happened."""
    trace = opened(tmp_path, TEXT.encode())
    act, words = TROUBLES[trouble]
    act(tmp_path / "trace.json")
    arguments = trace.arguments(SliceId(0, 5))
    assert arguments.begin == {} and arguments.problem is not None
    assert words in arguments.problem and "\n" not in arguments.problem


def test_unknown_ordinals_have_no_arguments(tmp_path: Path) -> None:
    """An ordinal beyond the trace is answered, not raised."""
    trace = opened(tmp_path, TEXT.encode())
    arguments = trace.event_arguments(0, 10**6)
    assert arguments.begin == {}
    assert arguments.problem == "the event does not lie in any block of the source"
