"""Text that can only be read from the beginning of its file lies packed in the index."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
import random
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.core.test_checkpoints import opened, texts
from tests.packings import zip_of
from tests.snapshots import CachingAllocator, frames, snapshot_of
from tracelane.core.index.blocks import SLOW, block_bytes, reads_anywhere
from tracelane.core.index.packed_text import PackedText
from tracelane.core.query.views import SliceId
from tracelane.core.read import reader
from tracelane.core.read.batch_store import StoreFile
from tracelane.core.read.packed_text import CHUNK, PackedTextLog, unpacked_chunk

CHANCE = random.Random(3)
EVENTS = [
    {"ph": "X", "name": f"op{i % 9}", "pid": 1, "tid": 1, "ts": i, "dur": 1, "args": {"n": i, "t": "x" * 500}}
    for i in range(2000)
]
TEXT = json.dumps({"traceEvents": EVENTS}).encode()
FORMS: dict[str, Callable[[bytes], bytes]] = {
    "bzip2": lambda text: bz2.compress(text, 1),
    "xz": lambda text: lzma.compress(text, preset=0),
    "utf-16": lambda text: gzip.compress(text.decode().encode("utf-16")),
    "stored in zip": lambda text: zip_of(text, zipfile.ZIP_STORED),
    "after a mark": lambda text: bz2.compress(b"\xef\xbb\xbf" + text, 1),
}


@pytest.fixture
def _any_text_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PackedTextLog", lambda store, start: PackedTextLog(store, start, 0))


@pytest.mark.usefixtures("_any_text_is_worth_it")
@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_those_of_the_plain_text(tmp_path: Path, form: str) -> None:
    """In any order, none of them slowly, also when the file has gone; nothing lies beside the index."""
    plain = texts(opened(tmp_path, TEXT, "plain.json").indexes[0])
    trace = opened(tmp_path, FORMS[form](TEXT), "trace.json")
    index = trace.indexes[0]
    assert reads_anywhere(index) and index.length("text.end") == -(-len(TEXT) // CHUNK)
    (tmp_path / "trace.json").unlink()
    assert texts(index) == plain
    order = list(range(len(plain)))
    CHANCE.shuffle(order)
    assert [block_bytes(index, block) for block in order] == [(plain[block], None) for block in order]
    arguments = trace.arguments(SliceId(0, 1500))
    assert arguments.begin["n"] == 1500 and arguments.slow_reason is None  # type: ignore[index]
    assert not (index.folder / "derived").exists()


@pytest.mark.usefixtures("_any_text_is_worth_it")
def test_what_is_made_of_another_form_is_kept(tmp_path: Path) -> None:
    """A snapshot of memory becomes JSON once: none of its arguments is read from the file again."""
    allocator = CachingAllocator()
    for number in range(300):
        allocator.alloc(512 * (number + 1), frames("model.py:1:forward", f"layer.py:{number}:call"))
    trace = opened(tmp_path, pickle.dumps(snapshot_of(allocator)), "snapshot.pickle")
    (tmp_path / "snapshot.pickle").unlink()
    assert reads_anywhere(trace.indexes[0])
    sizes = [int(size) for text in texts(trace.indexes[0]) for size in re.findall(rb'"Bytes":(\d+)', text)]
    assert {512 * (number + 1) for number in range(300)} <= set(sizes)


def test_short_texts_are_not_kept(tmp_path: Path) -> None:
    """They are inflated again in no time; arguments say so."""
    trace = opened(tmp_path, FORMS["bzip2"](TEXT), "trace.json")
    assert trace.indexes[0].length("text.packed") == 0 and not reads_anywhere(trace.indexes[0])
    assert trace.arguments(SliceId(0, 1500)).slow_reason == SLOW


def test_a_text_that_can_be_read_anywhere_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain text lies in its file."""
    monkeypatch.setattr(reader, "PackedTextLog", None)
    assert reads_anywhere(opened(tmp_path, TEXT, "trace.json").indexes[0])


@pytest.mark.parametrize("worth", [0, 3 * CHUNK])
@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("most", [1000, CHUNK, 3 * CHUNK + 1])
def test_pieces_of_any_length_become_the_text(tmp_path: Path, most: int, start: int, worth: int) -> None:
    """However the text comes, and however it is asked for, it is the same; behind its end there is none."""
    text = CHANCE.randbytes(5 * CHUNK + 77)
    store = StoreFile(tmp_path)
    log = PackedTextLog(store, start, worth)
    for begin in range(0, len(text), most):
        log.add(text[begin : begin + most])
    log.add(b"")
    columns = {"text.end": log.columns()["end"], "text.packed": np.concatenate([*log.packed()])}
    index = SimpleNamespace(column=columns.__getitem__, length=lambda name: len(columns[name]))
    packed = PackedText(index)  # type: ignore[arg-type]
    for _ in range(50):
        begin, length = CHANCE.randrange(len(text)), CHANCE.choice([1, 500, CHUNK, 2 * CHUNK + 9])
        assert packed.read(start + begin, length) == text[begin : begin + length]
    assert packed.read(start + len(text), 10) == b"" and packed.read(start + len(text) + 9 * CHUNK, 10) == b""


def test_chunks_are_bounded() -> None:
    """What unpacks to more than a chunk, or is none, is refused."""
    for raw in (zlib.compress(bytes(CHUNK + 1)), b"no chunk", b""):
        assert not unpacked_chunk(raw)
