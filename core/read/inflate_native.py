"""Deflated data inflated by the native core, which says at which bit of the file it stands: so inflating can
begin there again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..base.arrays import U8
from ..native.library import native_library
from ..native.structs import InflateStruct
from .inflate import Piece, deflate_library

WINDOW = 32 << 10
"""Bytes before it that deflated text may repeat."""
STEP = 512 << 10
"""Bytes that a call inflates at most: they stay in the processor's cache."""
SMALL_STEP = 128 << 10
"""The same where only a block of text is wanted."""
MAX_MATCH = 258
MAX_HEADER = 1 << 10
"""Bytes that hold the header of any block."""
_NEED = 1
_HEADER, _STORED, _ENDED = 0, 2, 3
"""Modes of tl_inflate."""


class InflateError(Exception):
    """The data is not what this inflates."""


class Checkpoint(NamedTuple):
    """Where inflating can begin: what stands at `text` is inflated from the file's bit `bit` on, within the
    block whose header begins at the bit `block`; `window` is the text right before.
    """

    text: int
    block: int
    bit: int
    window: bytes


class NativeInflater:
    """One stream of deflated data after the other; it has what an object of `zlib.decompressobj` has."""

    def __init__(self, step: int = STEP) -> None:
        """A call inflates `step` bytes at most. Raises InflateError where there is no native core."""
        functions = native_library().functions
        if functions is None:
            raise InflateError("there is no native core")
        self._inflate, self._read_header = functions.tl_inflate, functions.tl_inflate_header
        self._state = InflateStruct()
        self._step = step
        self._new_buffer()
        self.restart(0)

    def restart(self, bit: int) -> None:
        """Begin with the stream of which the first bit in the file is `bit`."""
        state = self._state
        state.mode, state.is_final, state.at = _HEADER, 0, bit & 7
        state.first = state.output_at = self._ready = WINDOW
        self._bit = self._block = bit
        self._rest = b""
        self.size = 0
        self.eof = False
        self.unused_data = self.unconsumed_tail = b""

    def resume(self, checkpoint: Checkpoint, header: bytes) -> None:
        """Go on in the middle of a stream; `header` begins with the byte of `checkpoint.block`. Raises
        InflateError where that cannot be.
        """
        state, window = self._state, checkpoint.window
        self.restart(checkpoint.block)
        if self._is_shared:
            self._new_buffer()
        if len(window) > WINDOW:
            raise InflateError("no window is so long")
        self._buffer[WINDOW - len(window) : WINDOW] = np.frombuffer(window, np.uint8)
        state.first = WINDOW - len(window)
        if checkpoint.bit != checkpoint.block:
            self._give(header)
            if self._read_header(ctypes.byref(state)):
                raise InflateError("no block begins there")
            passed = checkpoint.bit - (checkpoint.block & ~7) - state.at
            if state.mode == _STORED:
                state.left -= passed >> 3
            if passed < 0 or state.left < 0:
                raise InflateError("the block does not reach so far")
        state.at = checkpoint.bit & 7
        self._bit = checkpoint.bit
        self.size = 0

    def _give(self, data: bytes) -> None:
        """Let the state read some data, which the caller holds meanwhile."""
        self._state.input = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
        self._state.input_size = len(data)

    def decompress(self, data: bytes, most: int) -> Piece:
        """Return some more text, at most so many bytes. Raises InflateError, and gives nothing then."""
        state = self._state
        if self._ready == state.output_at:
            data = self._more(data)
        begin, end = self._ready, min(self._ready + most, state.output_at)
        self._ready = end
        if state.mode == _ENDED and end == state.output_at:
            self.eof = True
            self.unused_data, self.unconsumed_tail = data, b""
        else:
            self.unconsumed_tail = data
        if end - begin < self._step // 2:
            return self._buffer[begin:end].tobytes()
        self._is_shared = True
        return self._buffer.data[begin:end]

    def _more(self, data: bytes) -> bytes:
        """Inflate more into the buffer; return what was not used of the data."""
        state, end, before = self._state, self._state.output_at, self._buffer
        state.first = max(0, state.first - (end - WINDOW))
        if self._is_shared:
            self._new_buffer()
        self._buffer[state.first : WINDOW] = before[end - (WINDOW - state.first) : end]
        state.output_at = self._ready = WINDOW
        data = self._rest + data if self._rest else data
        self._rest, at = b"", state.at
        self._give(data)
        if self._inflate(ctypes.byref(state)) > _NEED:
            raise InflateError("the native core does not take it")
        self.size += state.output_at - WINDOW
        if state.block >= 0:
            self._block = self._bit - at + state.block
        self._bit += state.at - at
        used = (state.at + 7 if state.mode == _ENDED else state.at) >> 3
        state.at = 0 if state.mode == _ENDED else state.at & 7
        data = data[used:]
        if state.mode != _ENDED and state.output_at < WINDOW + self._step - MAX_MATCH:
            self._rest, data = data, b""  # the input has come to its end
        return data

    def _new_buffer(self) -> None:
        """Take other memory for what comes, as somebody holds what was given."""
        self._buffer: U8 = np.empty(WINDOW + self._step, np.uint8)
        self._state.output, self._state.output_end = self._buffer.ctypes.data, len(self._buffer)
        self._is_shared = False

    @property
    def has_ended(self) -> bool:
        """Whether all of the stream has been inflated."""
        return bool(self._state.mode == _ENDED)

    def checkpoint(self, text: int) -> Checkpoint:
        """Return where inflating can go on from what has been inflated so far, which ends at `text`."""
        end = self._state.output_at
        size = min(WINDOW, end - self._state.first)
        window = self._buffer[end - size : end].tobytes()
        block = self._bit if self._state.mode == _HEADER else self._block
        return Checkpoint(text, block, self._bit, window)


class NativeDeflate:
    """What of `zlib` is needed to inflate, done by the native core."""

    error = InflateError

    def __init__(self, step: int = STEP) -> None:
        self._inflater = NativeInflater(step)
        self.crc32: Callable[[Piece, int], int] = deflate_library().crc32

    def decompressobj(self, _bits: int) -> NativeInflater:
        """Return the one inflater, which is to be restarted for each stream."""
        return self._inflater
