"""A byte order mark changes nothing but offsets, however the file is packed and wherever it is damaged."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.forms import zipped
from tracelane.core.base.errors import UnreadableError
from tracelane.core.read.batch_store import BatchStore
from tracelane.core.read.reader import ReadOptions, SourceReading
from tracelane.core.read.source import open_source
from tracelane.core.read.text_source import text_source

MARK = b"\xef\xbb\xbf"
EVENTS = b",\n".join(
    b'{"ph":"X","name":"op%d","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"n":[%d]}}' % (i, i * 2, i)
    for i in range(6)
)
TEXT = b'{"a":1,"traceEvents":[' + EVENTS + b'],"z":{"y":2}}'
PACKINGS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "members": lambda data: gzip.compress(data[:1]) + gzip.compress(data[1:40]) + gzip.compress(data[40:]),
    "zip": lambda data: zipped(trace=data),
    "zstd": lambda data: pytest.importorskip("zstandard").compress(data),
}
CHUNK_SIZES = (1 << 24, 64, 7)


def damaged_texts() -> list[bytes]:
    """Return the text with a stray quote, bracket at each place, and cut off at places."""
    insertions = [TEXT[:at] + stray + TEXT[at:] for at in range(len(TEXT)) for stray in (b'"', b"}", b"[")]
    return [*insertions, *(TEXT[:at] for at in range(30, len(TEXT), 2))]


def reading_of(path: Path, chunk_size: int, decoder: str, shift: int = 0) -> Any:
    """Return what reading a file comes to, offsets less `shift`, or why it is refused."""
    with BatchStore(path.parent) as store:
        try:
            options = ReadOptions(decoder=decoder, chunk_size=chunk_size, threads=1)
            with SourceReading(open_source(path), store, options) as reading:
                result = reading.read()
        except UnreadableError as error:
            return str(error)
    problems = [
        (one.kind, one.count, None if one.offset is None else one.offset - shift, one.message)
        for one in result.problems
    ]
    return result.events, result.counts, problems, result.envelope


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["native", "python"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_mark_changes_nothing_wherever_the_text_is_damaged(
    packing: str, decoder: str, tmp_path: Path
) -> None:
    """With a mark and packed, a text damaged at any place reads as it does plain, in chunks of any size."""
    plain, marked = tmp_path / "plain.json", tmp_path / "marked.json"
    every = 9 if decoder == "native" else 37
    for number, text in enumerate(damaged_texts()[::every]):
        plain.write_bytes(text)
        marked.write_bytes(PACKINGS[packing](MARK + text))
        chunk_size = CHUNK_SIZES[number % len(CHUNK_SIZES)]
        expected = reading_of(plain, 1 << 24, decoder)
        result = reading_of(marked, chunk_size, decoder, len(MARK))
        if isinstance(expected, str):
            assert result == expected.replace("plain.json", "marked.json"), text
        else:
            assert result == expected, (chunk_size, text)


def test_nothing_is_read_before_the_text(tmp_path: Path) -> None:
    """A text refuses offsets before its begin, packed or not: a mark is no text."""
    path = tmp_path / "t.json"
    for data in (MARK + TEXT, gzip.compress(MARK + TEXT)):
        path.write_bytes(data)
        text = text_source(open_source(path))
        assert text.read(text.start, 5) == TEXT[:5] and text.start == len(MARK)
        with pytest.raises(ValueError, match="at 2 "):
            text.read(2, 5)
        text.close()
