"""The plain values of a pickle: numbers, texts, lists, tuples and dictionaries, and nothing else.

A pickle is a program for a small machine with a stack. This one knows only the opcodes that put plain values
together. Whatever names a class or a function, calls one, sets a state or refers to an object outside the
file has no code here at all, and ends the reading; Python's own `pickle` is not used. Opcodes are those of
https://docs.python.org/3/library/pickletools.html, protocols 2 to 5.

What a long list holds is handed on every thousand elements, as the writers append them, and forgotten. Of
what a later opcode may refer to by its number four bytes remain, and each different text or tuple once: a
file of gigabytes needs little more than these.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

from ..base.errors import UnreadableError

BLOCK = 1 << 20
"""Bytes of the file that are read at a time."""
MAX_OPCODE = 16
"""No opcode takes more bytes with its arguments, texts aside."""
MAX_TEXT = 16 << 20
"""Bytes of one text."""
MAX_DEPTH = 64
"""Lists and dictionaries within each other; a snapshot has nine."""
MAX_VALUES, MAX_BETWEEN = 4 << 20, 64 << 20
"""So many texts, lists and dictionaries, and so many bytes, may come before something is handed on."""
MAX_MEMO = 128 << 20
"""Values that later opcodes may refer to."""
MAX_DIFFERENT, MAX_DIFFERENT_BYTES = 8 << 20, 256 << 20
"""So many of them, once handed on, may differ; and so many bytes their texts may have."""
FORGOTTEN = object()
"""What stands for what was handed on: nothing refers to it again."""

_MARK, _STOP, _POP, _POP_MARK, _DUP, _NONE = b"(.01\x32N"
_PROTO, _FRAME, _MEMOIZE, _TRUE, _FALSE = 0x80, 0x95, 0x94, 0x88, 0x89
_BININT, _BININT1, _BININT2, _LONG1, _BINFLOAT = *b"JKM", 0x8A, ord("G")
_BINUNICODE, _SHORT_BINUNICODE, _BINUNICODE8 = ord("X"), 0x8C, 0x8D
_EMPTY_LIST, _APPEND, _APPENDS, _EMPTY_DICT, _SETITEM, _SETITEMS = b"]ae}su"
_EMPTY_TUPLE, _TUPLE, _TUPLE1, _TUPLE2, _TUPLE3 = *b")t", 0x85, 0x86, 0x87
_BINGET, _LONG_BINGET, _BINPUT, _LONG_BINPUT = b"hjqr"
_REFUSED = {
    **dict.fromkeys(b"c\x93", "names a class or a function"),
    **dict.fromkeys(b"iob\x81\x92R", "makes an object or calls something"),
    **dict.fromkeys(b"PQ", "refers to an object outside the file"),
    **dict.fromkeys(b"\x82\x83\x84", "refers to a registered class"),
    **dict.fromkeys(b"\x97\x98", "refers to memory outside the file"),
}
_INT, _UINT2, _UINT4, _UINT8, _DOUBLE = (
    struct.Struct(form).unpack_from for form in ("<i", "<H", "<I", "<Q", ">d")
)


class PickleError(UnreadableError):
    """The file is no pickle of plain values; the message says what it does instead, and where."""


class CutOffError(PickleError):
    """The file ends within the pickle."""


class Elements(list[Any]):
    """A list whose elements are handed on as they come, and not held."""


class Receiver(Protocol):
    """Whoever takes the elements of long lists."""

    def begins(self, owner: list[Any] | None, key: object) -> Elements | None:
        """Return a list of its own for one that begins in a list `owner`, or as the value of `key` in a
        dictionary; None where it shall be an ordinary list.
        """

    def take(self, elements: Elements, values: list[Any]) -> None:
        """Take the next elements of a list that it gave. Raises PickleError."""

    def reference(self, value: Any) -> Any:
        """Return what stands for a list or dictionary that was part of elements, once these were taken, as a
        plain value or a tuple; FORGOTTEN for nothing.
        """


class EarlierValues:
    """What was handed on, by number: a code of four bytes each, and each different value once."""

    def __init__(self) -> None:
        self.codes = array("I")
        self.values: list[Any] = [FORGOTTEN]
        self.size = 0  # bytes of texts
        # By type: equal numbers of different types are different values, in tuples, too.
        self._codes: dict[type, dict[Any, int]] = {}

    def add(self, value: Any) -> None:
        self.codes.append(0 if value is FORGOTTEN else self._code(value))

    def _code(self, value: Any) -> int:
        kind = type(value)
        key = (value, tuple(map(type, value))) if kind is tuple else value
        try:
            code = self._codes.setdefault(kind, {}).setdefault(key, len(self.values))
        except TypeError:  # a list that is read still, or a tuple with one
            code = len(self.values)
        if code == len(self.values):
            self.values.append(value)
            self.size += len(value) if kind is str else 0
        return code


class PickleReader:
    """Runs the opcodes of one pickle."""

    def __init__(self, read: Callable[[int], bytes], receiver: Receiver) -> None:
        self._read = read
        self._receiver = receiver
        self._data = b""
        self._at = 0
        self._before = 0  # bytes of the file before `_data`
        self._ended = False
        self._memo: list[Any] = []  # what has come since elements were handed on last
        self._earlier = EarlierValues()  # all before
        self._values = 0
        self._taken_at = 0  # the byte at which elements were handed on last

    def value(self) -> Any:
        """Return the pickled value. Raises PickleError for whatever is none, or not plain; CutOffError once
        the elements are handed on that the file holds whole.
        """
        stacks: list[list[Any]] = [[]]
        try:
            return self._checked(stacks)
        except CutOffError:
            for above, values in pairwise(stacks):
                if above and isinstance(above[-1], Elements):
                    whole = values if values is stacks[-1] else values[:-1]
                    self._append(above[-1], whole)
            raise

    def _checked(self, stacks: list[list[Any]]) -> Any:
        try:
            return self._run(stacks)
        except (IndexError, TypeError, ValueError, struct.error) as error:
            if self._ended and self._at + MAX_OPCODE > len(self._data):
                raise CutOffError("is cut off") from None
            raise self._error(f"is not a pickle that Python would read ({type(error).__name__})") from None

    def _error(self, what: str, at: int | None = None) -> PickleError:
        return PickleError(f"{what} at byte {self._before + (self._at if at is None else at):,}")

    def _more(self, size: int) -> None:
        """Have `size` bytes at hand, fewer only where the file ends."""
        parts = [self._data[self._at :]]
        self._before += self._at
        self._at = 0
        missing = size - len(parts[0])
        while missing > 0:
            part = self._read(max(BLOCK, missing))
            if not part:
                self._ended = True
                break
            parts.append(part)
            missing -= len(part)
        self._data = b"".join(parts)
        between = self._before - self._taken_at
        earlier, count = self._earlier, len(self._memo) + len(self._earlier.codes)
        is_much = len(earlier.values) > MAX_DIFFERENT or earlier.size > MAX_DIFFERENT_BYTES
        if between > MAX_BETWEEN or self._values > MAX_VALUES or count > MAX_MEMO or is_much:
            raise self._error("holds more at once than a snapshot does")

    def _text(self, size: int, begin: int) -> str:
        """Return a text that begins at a place in the data; it ends the opcode at hand."""
        if size > MAX_TEXT:
            raise self._error(f"has a text of {size:,} bytes")
        if begin + size > len(self._data):
            self._at = begin
            self._more(size)
            begin = 0
            if size > len(self._data):
                raise CutOffError("is cut off")
        self._at = begin + size
        self._values += 1
        return self._data[begin : begin + size].decode("utf-8", "replace")

    def _run(self, marked: list[list[Any]]) -> Any:
        """Run all opcodes, in one loop: a call for each would take twice as long. `marked` holds the stack
        that is in use, and before it those below each mark.
        """
        memo, codes, values_of = self._memo, self._earlier.codes, self._earlier.values
        first = len(codes)
        stack = marked[-1]
        while True:
            data, at = self._data, self._at
            if at + MAX_OPCODE > len(data) and not self._ended:
                self._more(MAX_OPCODE)
                continue
            if at >= len(data):
                raise CutOffError("is cut off")
            code = data[at]
            size = 1
            if code == _BINGET:
                number = data[at + 1]
                stack.append(memo[number - first] if number >= first else values_of[codes[number]])
                size = 2
            elif code == _LONG_BINGET:
                number = _UINT4(data, at + 1)[0]
                stack.append(memo[number - first] if number >= first else values_of[codes[number]])
                size = 5
            elif code == _MEMOIZE:
                memo.append(stack[-1])
            elif code == _BININT1:
                stack.append(data[at + 1])
                size = 2
            elif code == _BININT:
                stack.append(_INT(data, at + 1)[0])
                size = 5
            elif code == _LONG1:
                size = 2 + data[at + 1]
                if size > MAX_OPCODE:
                    raise self._error("has a number of more than 112 bits")
                stack.append(int.from_bytes(data[at + 2 : at + size], "little", signed=True))
            elif code == _SHORT_BINUNICODE:
                stack.append(self._text(data[at + 1], at + 2))
                continue
            elif code == _BINUNICODE:
                stack.append(self._text(_UINT4(data, at + 1)[0], at + 5))
                continue
            elif code == _MARK:
                if len(marked) >= MAX_DEPTH:
                    raise self._error("is nested too deeply")
                stack = []
                marked.append(stack)
            elif code == _EMPTY_DICT:
                stack.append({})
                self._values += 1
            elif code == _SETITEMS:
                values, stack = marked.pop(), marked[-1]
                target = stack[-1]
                if type(target) is not dict:
                    raise self._error("sets an item of what is no dictionary")
                target.update(zip(values[::2], values[1::2], strict=True))
            elif code == _SETITEM:
                value, key = stack.pop(), stack.pop()
                target = stack[-1]
                if type(target) is not dict:
                    raise self._error("sets an item of what is no dictionary")
                target[key] = value
            elif code in (_BINPUT, _LONG_BINPUT):
                number = data[at + 1] if code == _BINPUT else _UINT4(data, at + 1)[0]
                size = 2 if code == _BINPUT else 5
                number -= first
                if not 0 <= number <= len(memo):
                    raise self._error("skips numbers of what it refers to, or gives one twice")
                memo[number : number + 1] = stack[-1:]
            elif code == _BININT2:
                stack.append(_UINT2(data, at + 1)[0])
                size = 3
            elif code == _EMPTY_LIST:
                stack.append(self._list(stack, marked))
            elif code == _APPENDS:
                values, stack = marked.pop(), marked[-1]
                self._append(stack[-1], values)
                first = len(codes)
            elif code == _APPEND:
                value = stack.pop()
                self._append(stack[-1], [value])
                first = len(codes)
            elif code == _NONE:
                stack.append(None)
            elif code == _TRUE:
                stack.append(True)
            elif code == _FALSE:
                stack.append(False)
            elif code == _BINFLOAT:
                stack.append(_DOUBLE(data, at + 1)[0])
                size = 9
            elif code in (_EMPTY_TUPLE, _TUPLE1, _TUPLE2, _TUPLE3):
                count = 0 if code == _EMPTY_TUPLE else code - _TUPLE1 + 1
                if count > len(stack):
                    raise IndexError
                values = stack[len(stack) - count :]
                del stack[len(stack) - count :]
                stack.append(self._tuple(values))
            elif code == _TUPLE:
                values, stack = marked.pop(), marked[-1]
                stack.append(self._tuple(values))
            elif code == _BINUNICODE8:
                stack.append(self._text(_UINT8(data, at + 1)[0], at + 9))
                continue
            elif code == _FRAME:
                size = 9
            elif code == _PROTO:
                if data[at + 1] > 5:
                    raise self._error(f"is of protocol {data[at + 1]}, which is not known,")
                size = 2
            elif code == _POP and stack:
                stack.pop()
            elif code in (_POP, _POP_MARK):
                marked.pop()
                stack = marked[-1]
            elif code == _DUP:
                stack.append(stack[-1])
            elif code == _STOP:
                return stack.pop()
            else:
                what = _REFUSED.get(code, f"has an opcode that plain values do not need ({code:#04x})")
                raise self._error(f"is not read, and nothing of it was run: it {what}")
            self._at = at + size
            if self._at > len(data):
                raise CutOffError("is cut off")

    def _tuple(self, values: list[Any]) -> tuple[Any, ...]:
        self._values += 1
        if any(type(value) is tuple for value in values):  # hashing a tower of them would end the process
            raise self._error("has a tuple within a tuple")
        return tuple(values)

    def _list(self, stack: list[Any], marked: list[list[Any]]) -> list[Any]:
        """Return a new list, one of the receiver's where it wants its elements."""
        self._values += 1
        below = stack[-1] if stack else None
        above = marked[-2][-1] if len(marked) > 1 and marked[-2] else None
        owner = above if isinstance(above, list) else below if isinstance(below, list) else None
        own = self._receiver.begins(owner, below)
        return [] if own is None else own

    def _append(self, target: Any, values: list[Any]) -> None:
        if isinstance(target, Elements):
            self._receiver.take(target, values)
            add, reference = self._earlier.add, self._receiver.reference
            for value in self._memo:
                add(reference(value) if type(value) in (list, dict) else value)
            self._memo.clear()
            self._values = 0
            self._taken_at = self._before + self._at
        elif type(target) is list:
            target += values
        else:
            raise self._error("appends to what is no list")
