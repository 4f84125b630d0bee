"""The native core inflates what zlib inflates, stops wherever it is told to, and goes on at any bit."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.native.library import native_library
from tracelane.core.read.inflate_native import (
    MAX_HEADER,
    WINDOW,
    Checkpoint,
    InflateError,
    NativeInflater,
)

pytestmark = pytest.mark.skipif(native_library().functions is None, reason="there is no native core")


def _events(count: int) -> bytes:
    chance = random.Random(3)
    return b"".join(
        b'{"ph": "X", "name": "op%d", "ts": %d.%03d, "args": {"n": %d}},\n'
        % (chance.randrange(50), i * 7, chance.randrange(1000), chance.randrange(1 << 40))
        for i in range(count)
    )


def _of_many_lengths() -> bytes:
    """Bytes of which each is half as frequent as the one before: their codes are of 1 to 15 bits."""
    values = [value for value in range(16) for _ in range(1 << (15 - value))]
    random.Random(4).shuffle(values)
    return bytes(values)


TEXTS = {
    "nothing": b"",
    "a byte": b"x",
    "events": _events(3000),
    "one byte": b"\0" * 300_000,
    "two bytes": b"ab" * 40_000,
    "all lengths and distances": b"".join(
        random.Random(i).randbytes(1 + i % 300) + _events(40)[: i * 7] for i in range(300)
    ),
    "random": random.Random(1).randbytes(100_000),
    "codes of many lengths": _of_many_lengths(),
    "the longest distance": random.Random(2).randbytes(WINDOW) * 3,
}
FORMS = {
    "stored": (0, zlib.Z_DEFAULT_STRATEGY),
    "quick": (1, zlib.Z_DEFAULT_STRATEGY),
    "usual": (6, zlib.Z_DEFAULT_STRATEGY),
    "best": (9, zlib.Z_DEFAULT_STRATEGY),
    "filtered": (6, zlib.Z_FILTERED),
    "literals": (6, zlib.Z_HUFFMAN_ONLY),
    "runs": (6, zlib.Z_RLE),
    "fixed": (6, zlib.Z_FIXED),
}


def _deflated(text: bytes, form: str, memory: int = 8) -> bytes:
    """Return a stream of the text, with empty blocks in it, among them two at its end."""
    level, strategy = FORMS[form]
    deflater = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, memory, strategy)
    half = len(text) // 2
    parts = [
        deflater.compress(text[:half]),
        deflater.flush(zlib.Z_SYNC_FLUSH),
        deflater.compress(text[half:]),
    ]
    return b"".join([*parts, deflater.flush(zlib.Z_PARTIAL_FLUSH), deflater.flush()])


def _steps(inflater: NativeInflater, data: bytes, sizes: list[int], most: int) -> Iterator[bytes]:
    """Inflate data that comes in pieces of these sizes, again and again; yield what each call gives."""
    number = 0
    while not inflater.eof:
        piece, data = data[: sizes[number % len(sizes)]], data[sizes[number % len(sizes)] :]
        is_last, number = not piece, number + 1
        part = inflater.decompress(piece, most)
        data = (inflater.unused_data if inflater.eof else inflater.unconsumed_tail) + data
        yield part
        if is_last and not part and not inflater.eof:
            return


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TEXTS)
def test_text_is_that_of_zlib(name: str, form: str) -> None:
    """In one piece and in several, of each kind of block; what follows the stream is left."""
    text = TEXTS[name]
    data = _deflated(text, form)
    for sizes, most in (([len(data) + 9], 1 << 20), ([70_000], 1 << 20), ([4096, 1, 999], 5000)):
        inflater = NativeInflater()
        parts = list(_steps(inflater, data + b"behind it", sizes, most))
        assert b"".join(parts) == text and inflater.eof
        assert b"behind it".startswith(inflater.unused_data) and max(map(len, parts)) <= most


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 400)), max_size=30),
    st.lists(st.integers(1, 50), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_any_text_in_any_pieces(form: str, parts: list[bytes | int], sizes: list[int], memory: int) -> None:
    """Short texts with repetitions, with small and large blocks, in pieces of a few bytes."""
    text = b""
    for part in parts:
        text += part if isinstance(part, bytes) else text[-1 - part :] * 2
    text = text[:20_000]
    inflater = NativeInflater()
    assert b"".join(_steps(inflater, _deflated(text, form, memory), sizes, 777)) == text
    assert inflater.eof


@given(st.sampled_from(sorted(FORMS)), st.integers(0, 1 << 32), st.integers(0, 3))
def test_damage_gives_no_other_text_than_zlib(form: str, seed: int, kind: int) -> None:
    """What is damaged is refused, or inflated to what zlib makes of it, and never beyond."""
    chance = random.Random(seed)
    data = bytearray(_deflated(_events(60), form))
    at = chance.randrange(len(data))
    if kind == 0:
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        data[at : at + 4] = chance.randbytes(4)
    elif kind == 2:
        del data[at]
    else:
        del data[at:]
    reference = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        text, error = reference.decompress(bytes(data)), False
    except zlib.error:
        text, error = b"", True
    inflater = NativeInflater()
    try:
        own = b"".join(_steps(inflater, bytes(data), [1 << 20], 1 << 20))
    except InflateError:
        assert error
        return
    assert not error and inflater.eof == reference.eof
    assert text.startswith(own) and (own == text or not inflater.eof)
    if inflater.eof:
        assert inflater.unused_data == reference.unused_data


def _checkpoints(data: bytes, before: int, sizes: list[int]) -> Iterator[Checkpoint]:
    """Yield a checkpoint behind each call that inflates a stream, which lies `before` bytes behind the
    beginning of its file.
    """
    inflater = NativeInflater()
    inflater.restart(8 * before)
    yield inflater.checkpoint(0)
    for _ in _steps(inflater, data, sizes, 1 << 20):
        if not inflater.has_ended:
            yield inflater.checkpoint(inflater.size)


def _resumed(file: bytes, checkpoint: Checkpoint) -> bytes:
    inflater = NativeInflater()
    inflater.resume(checkpoint, file[checkpoint.block >> 3 :][:MAX_HEADER])
    return b"".join(_steps(inflater, file[checkpoint.bit >> 3 :], [100_000], 1 << 20))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TEXTS)
def test_inflating_goes_on_at_any_checkpoint(name: str, form: str) -> None:
    """From each checkpoint on the rest of the text comes, whether it lies in a header, in codes, in stored
    bytes or between blocks; its window is the text right before.
    """
    text = TEXTS[name][:60_000]
    data = _deflated(text, form)
    file = b"head" + data + b"tail"
    step = max(1, len(data) // 60)
    count = 0
    for checkpoint in _checkpoints(data, 4, [step, step + 1]):
        count += 1
        assert checkpoint.window == text[max(0, checkpoint.text - WINDOW) : checkpoint.text]
        assert _resumed(file, checkpoint) == text[checkpoint.text :]
    assert count > min(5, len(data) // 4)


def test_every_byte_around_a_border_of_blocks() -> None:
    """Each byte of the data is once the last that there is when a checkpoint is taken."""
    text = _events(25)
    data = _deflated(text, "usual", 1)
    for checkpoint in _checkpoints(data, 0, [1]):
        assert _resumed(data, checkpoint) == text[checkpoint.text :]


@given(st.integers(0, 1 << 32))
def test_a_wrong_checkpoint_ends_nothing(seed: int) -> None:
    """From a wrong bit, block or window on comes an error or some text, and no more than zlib's most."""
    chance = random.Random(seed)
    text = _events(300)
    data = _deflated(text, chance.choice(sorted(FORMS)), chance.randrange(1, 10))
    checkpoint = chance.choice(list(_checkpoints(data, 0, [300])))
    bits = sorted(chance.randrange(8 * len(data) + 64) for _ in range(2))
    wrong = chance.choice(
        [
            checkpoint._replace(bit=max(checkpoint.block, bits[1])),
            checkpoint._replace(block=min(checkpoint.bit, bits[0])),
            checkpoint._replace(block=bits[0], bit=bits[1]),
            checkpoint._replace(block=bits[0], bit=bits[0]),
            checkpoint._replace(window=checkpoint.window[: chance.randrange(1 + len(checkpoint.window))]),
        ]
    )
    with suppress(InflateError):
        assert len(_resumed(data, wrong)) <= 1032 * len(data)


def test_a_window_that_is_too_long_is_refused() -> None:
    """No window is longer than what text can repeat."""
    with pytest.raises(InflateError, match="window"):
        NativeInflater().resume(Checkpoint(0, 0, 0, bytes(WINDOW + 1)), b"")
