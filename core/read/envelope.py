"""The keys around the events: read key by key as a stream, with their values only where these are small.

A value is never built before its end has been found, and then only when it is small, so that neither a deep
nor a huge envelope takes memory. Some writers do not escape quotes here, or write values that are none: what
breaks is reported, and reading goes on at the next key, of an object that breaks at its first one.
"""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

from ..base.numbers import whole_number
from ..base.units import TIME_LIMIT
from .json_text import STRING, TOKEN, Window, text_of
from .problem import Problem
from .scan_reference import MAX_DIGITS
from .stray import BEHIND_VALUE, MAX_STRAY_LENGTH, decimal_comma, stray_end, time_meant
from .tolerant import EXACT_KEYS, BrokenError, Tolerant

EVENTS_KEY = "traceEvents"
MAX_STRING_LENGTH = 4096
MAX_VALUE_LENGTH = 64 * 1024
MAX_KEYS = 4096
MAX_BYTES = 4 << 20
"""Keys beyond so many, and values beyond so many bytes together, are left out."""
MAX_KEY_LENGTH = 4096
MAX_EVENT_LENGTH = 16 << 20
"""Bytes of a top-level object that are held back in case it turns out to be an event itself."""
FAR = 256
"""So far behind brackets it is looked for a key."""
_OVERLAP = 8192

_BLANK = re.compile(rb"\s*")
_SCALAR = re.compile(rb"[^\s,}\]\"{\[]+")
_CONTAINER = re.compile(
    STRING + rb"(\s*+:)?+|[{}\[\]]|-?(?:NaN|[Nn]an|[Ii]nf(?:inity)?)|([^\s,:0-9+\-.eEtrufalsn])", re.S
)
"""Brackets, strings with (in the second group) the colon behind a key, and (in the third) what cannot stand
between them.
"""
_FOLLOWS = {
    ord("{"): re.compile(rb'\s*+(?:["}]|\Z)'),
    ord("["): re.compile(rb"\s*+(?:[^\s,:}]|\Z)"),
    ord("}"): re.compile(rb"\s*+(?:[,}\]]|\Z)"),
    ord("]"): re.compile(rb"\s*+(?:[,}\]]|\Z)"),
}
"""What may stand behind each bracket in a value."""
_PRECEDES = {
    (0x7B, False): (b":",),
    (0x7B, True): (b"{", b","),
    (0x5B, False): (b"[", b","),
    (0x5B, True): (),
}
"""What may stand before a value (a key, where True) in an object and in an array."""
MAX_NESTED = 16
"""So deep broken objects are kept as such; of deeper ones the keys count as theirs."""
MAX_BLANK_LENGTH = 64
MAX_FORGIVEN = 4 << 20
"""So many bytes of broken values are looked at by a parser that forgives."""
_DOCUMENT_ENDS = re.compile(rb"[ \t\r\x00\x1e;,]{0,64}+(?:\Z|\n\s{0,64}+(?:\Z|[{\[]))")
"""What stands behind a whole object: nothing, or another document in a line of its own."""
_NO_DOCUMENT = re.compile(rb"\s{0,64}+,?+\s{0,64}+(?:\[\s{0,64}+[^\s{\[\]]|[-\d])")
"""What cannot begin a document."""
_EVENT = re.compile(rb'\{[^{}]{0,256}?"(?:ph|args)"\s{0,64}+:')
"""What begins an event where a key should stand: the event array was closed too early."""
_ENDS_BROKEN = re.compile(rb'(?<!\s)\s*+(?:,|\}[\s}\]]{0,64}+(?:,\s{0,64}+"|\Z))')
"""What stands behind a broken value whose end can be trusted."""
MAX_RETRIES = 16
"""So many values that never end are given up for the keys in them."""
_STRING_REST = re.compile(rb'(?:[^"\\]++|\\.)*+', re.S)
_NEXT_KEY = re.compile(rb',\s*"[^"\\\n]{1,80}"\s*:|"traceEvents"\s*:\s*\[\s*[{\]]')
_NEXT_LINE_KEY = re.compile(rb'\n[ \t\r]*+"[^"\\\n]{1,80}"\s*:|"traceEvents"\s*:\s*\[\s*[{\]]')
_LINE_START = re.compile(rb"\n[ \t]*\Z")
_CLOSERS = re.compile(rb'([}\]]++)(\s*+,?+\s*+(?="))?+')
"""Closing brackets, and (in the second group) what stands between them and a key."""


class Stop(Enum):
    """Why the envelope reader stopped."""

    EVENTS = "events"  # behind the bracket that opens the event array
    EVENT = "event"  # the object is an event itself; the window stands at its brace
    END = "end"  # behind the object's closing brace
    CUT_OFF = "cut off"  # the text ended


@dataclass(frozen=True)
class Envelope:
    """What a trace says about itself beside its events."""

    form: str = "object"  # "object", "array", "lines", "concatenated"
    base_time_ns: int | None = None
    display_unit: str = ""
    values: dict[str, Any] = field(default_factory=dict)  # of large ones a text that gives the size


def envelope(values: dict[str, Any], form: str) -> Envelope:
    """Return what the collected keys amount to; what has no usable value counts as absent."""
    base = values.get("baseTimeNanoseconds")
    if isinstance(base, str) and re.fullmatch(r"\s*-?\d{1,30}\s*", base):
        base = whole_number(base)
    usable = isinstance(base, int) and not isinstance(base, bool) and abs(base) <= TIME_LIMIT
    unit = values.get("displayTimeUnit")
    return Envelope(form, base if usable else None, unit if isinstance(unit, str) else "", values)


class EnvelopeReader:
    """Reads top-level keys from a window, across any number of documents and event arrays."""

    def __init__(
        self, window: Window, *, of_event: bool = False, enter: frozenset[str] = frozenset()
    ) -> None:
        self.values: dict[str, Any] = {}
        self.problems: list[Problem] = []
        self.cut_off: int | None = None
        self._window = window
        self._of_event = of_event  # nothing in it is an event array, nor is the object held back
        self._enter = enter  # keys whose objects are read key by key as well
        self._loose = False
        self._held = False
        self._hold = 0
        self._bytes = 0
        self._retries = MAX_RETRIES
        self._next_key = _NEXT_KEY
        self._behind = False  # an event array was read
        self.endless: int | None = None  # where the value stands that went on until the text ended
        self._forgiven = 0  # bytes that a parser that forgives has looked at
        self._hopeless: frozenset[int] = frozenset()  # where begins what was open where it broke last
        self._hopeless_end = 0  # and where the text ended that it had
        self._members: list[dict[str, Any]] = []  # of the broken objects whose keys are read one by one
        self._broken = 0  # where the last object or array broke that did
        self._broken_there: frozenset[int] = frozenset()  # where those begin that were open in it there

    def read_object(self) -> Stop:
        """Read from an opening brace to the events or the end."""
        window = self._window
        self._loose = False
        self._members = []
        self._hold = window.at
        self._held = not self._of_event
        window.at += 1
        return self._entries()

    def retry(self) -> Stop:
        """Read on at the keys in a value that never ended: a bracket is open in it that nobody closes."""
        self.endless, self._held = None, False
        self._retries -= 1
        return self._entries() if self._resync(self._window.offset) else Stop.CUT_OFF

    def resume(self) -> Stop:
        """Read on behind the bracket that closed the event array."""
        self._held, self._behind = False, True
        self._members = []
        return self._entries()

    def skip_value(self) -> None:
        """Pass over one value of any kind, in bounded memory."""
        byte = self._skip_blank()
        if byte == ord('"'):
            self._string()
        elif byte != -1 and byte in b"{[":
            self._container()
        else:
            self._scalar()

    # -- the window, which must keep an object back until it is known to be no event -----------------------

    def _more(self) -> bool:
        window = self._window
        if not self._held:
            return window.more()
        behind = window.at - self._hold
        if behind > MAX_EVENT_LENGTH:
            self._held = False
            return window.more()
        window.at = self._hold
        grown = window.more(min(window.left, MAX_EVENT_LENGTH))
        self._hold = window.at
        window.at += behind
        return grown

    def _need(self, size: int) -> None:
        while self._window.left < size and self._more():
            pass

    def _skip_blank(self) -> int:
        """Go to the next byte that is not blank and return it; -1 at the end of the text."""
        window = self._window
        while True:
            match = _BLANK.match(window.data, window.at)
            window.at = match.end() if match else window.at
            if window.left:
                return window.data[window.at]
            if not self._more():
                return -1

    # -- entries -------------------------------------------------------------------------------------------

    def _entries(self) -> Stop:
        window = self._window
        while True:
            byte = self._skip_blank()
            if byte == ord(","):
                window.at += 1
            elif byte == ord('"'):
                stop = self._entry()
                if stop is not None:
                    return stop
            elif byte == ord("}") or (self._loose and byte == ord("]")):
                if self._closes():
                    return Stop.END
            elif byte == -1:
                self.cut_off = window.offset
                return Stop.CUT_OFF
            elif self._behind and byte == ord("{") and self._is_event():
                return Stop.END
            elif not self._resync(window.offset, "no key where one is expected"):
                return Stop.CUT_OFF

    def _is_event(self) -> bool:
        self._need(2 * FAR)
        return _EVENT.match(self._window.data, self._window.at) is not None

    def _closes(self) -> bool:
        """Pass over closing brackets; tell whether one of them is the object's own. They are not where a key
        follows them: behind what broke they may belong to that, or one is too many.
        """
        # In `{"a": {"b": 1}}, "c": 2, "traceEvents": [` the second brace would end the object, and the events
        # with it. But a key follows: one bracket is too many, and reading goes on at "c", loosely. From then
        # on only what stands at the end of a document closes it: brackets behind which comes the end of the
        # text, or a new line and a bracket, as in `}}\n{"traceEvents": [`.
        window = self._window
        if self._of_event and not self._loose:
            window.at += 1
            return True
        closers = _CLOSERS.match(window.data, window.at)
        if closers is None or closers.end() + FAR > len(window.data):
            self._need(len(closers.group()) + FAR if closers else FAR)
            closers = _CLOSERS.match(window.data, window.at)
        if closers is None:
            return False
        alone = len(closers.group(1)) == 1 and not _NO_DOCUMENT.match(window.data, closers.end())
        if not self._loose and alone and closers.group(2) is None:
            window.at += 1
            return True
        if not self._loose:
            self.problems.append(
                Problem("broken envelope", 1, window.offset, "a bracket that closes nothing")
            )
            self._loose = True
        for _ in range(closers.group(1).count(b"}")):
            if self._members:
                self._members.pop()
        window.at = closers.end()
        ends = closers.group(2) is None and b"}" in closers.group(1)
        return ends and _DOCUMENT_ENDS.match(window.data, window.at) is not None

    def _entry(self) -> Stop | None:
        window = self._window
        before = window.data[max(0, window.at - 64) : window.at]
        self._next_key = _NEXT_LINE_KEY if _LINE_START.search(before) else _NEXT_KEY
        size = MAX_KEY_LENGTH
        self._need(size)
        token = TOKEN.match(window.data, window.at)
        while self._goes_on(token) and size < MAX_EVENT_LENGTH:
            size *= 2
            self._need(size)
            token = TOKEN.match(window.data, window.at)
        if token is None or not token.group(3):
            if window.ended and window.left < MAX_KEY_LENGTH and b":" not in window.data[window.at :]:
                self.cut_off = window.offset
                window.at = len(window.data)
                return Stop.CUT_OFF
            return None if self._resync(window.offset, "a key without its colon") else Stop.CUT_OFF
        key = text_of(token.group(1)[1:-1])
        start = window.offset
        window.at = token.end()
        byte = self._skip_blank()
        if byte == ord("{") and key in self._enter:
            inner = EnvelopeReader(window, of_event=True)
            stop = inner.read_object()
            self.values[key] = inner.values
            return stop if stop is Stop.CUT_OFF else None
        if byte == ord("[") and key == EVENTS_KEY and not self._of_event:
            window.at += 1
            return Stop.EVENTS
        if (
            key == "ph"
            and self._held
            and byte == ord('"')
            and EVENTS_KEY not in self.values
            and not self._members
        ):
            window.at = self._hold
            return Stop.EVENT
        return self._value(key, start, byte)

    def _goes_on(self, key: re.Match[bytes] | None) -> bool:
        """Tell whether a key, or the blanks before its colon, may go on behind the window."""
        data = self._window.data
        if self._window.ended or key is None or key.group(3):
            return False
        return not key.group(2) or not data[key.end() :].strip()

    def _value(self, key: str, start: int, byte: int) -> Stop | None:
        window = self._window
        begin = window.offset
        if byte == ord('"'):
            raw, size, sound = self._string()
        elif byte in (0x7B, 0x5B):
            raw, size, sound = self._container()
        else:
            raw, size, sound = self._scalar()
        if sound:
            follows = self._skip_blank()
            sound = follows == -1 or follows in b",}"
        ended = window.ended and not window.left
        if ended and byte in (0x7B, 0x5B) and self._retries and window.data.rstrip()[-1:] in (b"}", b"]"):
            self.endless = start  # a bracket may be open in it that was to close later
        if byte == -1 or (ended and not sound):
            self.cut_off = start
            return Stop.CUT_OFF
        if sound:
            self._keep(key, raw, size, start, begin)
            return None
        why = f"the value of {key[:80]!r} is no valid JSON"
        if byte in (0x7B, 0x5B) and self._forgive(key, start, begin, why):
            return None
        return None if self._resync(start, why, key) else Stop.CUT_OFF

    def _forgive(self, key: str, start: int, begin: int, why: str) -> bool:
        """Read the object or list that begins at an offset and is broken, whole or key by key; False where
        it is neither, or not in the window any more.
        """
        window = self._window
        at = begin - window.base
        if at < 0:
            return False
        value, end = self._tolerantly(window.data[at : at + MAX_VALUE_LENGTH], begin)
        if end:
            window.at = at + end
            self._need(FAR)
            if _ENDS_BROKEN.match(window.data, window.at):
                self.problems.append(Problem("broken envelope", 1, start, why))
                self._store(key, _printable(value))
                return True
            at = begin - window.base
        first = _BLANK.match(window.data, at + 1) if at >= 0 else None
        if first is None or window.data[at] != ord("{") or window.data[first.end() : first.end() + 1] != b'"':
            return False
        self.problems.append(Problem("broken envelope", 1, start, why))
        if len(self._members) < MAX_NESTED:
            members: dict[str, Any] = {}
            self._store(key, members)
            self._members.append(members)
        self._loose = True
        window.at = first.end()
        return True

    def _tolerantly(self, data: bytes, begin: int) -> tuple[Any, int]:
        """Return the value that a text begins with, which stands at an offset, and where it ends in the text;
        0 where none can be made out.
        """
        # Of `{"a": {"b": {"c": 1` the value of "a" breaks where the text ends. Those of "b" and "c" were open
        # there and break, too: they are not read once more, each of a thousand that may be so nested.
        is_hopeless = begin in self._hopeless and begin + len(data) == self._hopeless_end
        if is_hopeless or self._forgiven >= MAX_FORGIVEN:
            return None, 0
        parser = Tolerant(data)
        try:
            value, end = parser.parse(0, quotes=False, stray=True)
        except BrokenError as broken:
            self._forgiven += broken.at
            self._hopeless = frozenset(begin + at for at in parser.begins)
            self._hopeless_end = begin + len(data)
            return None, 0
        self._forgiven += end
        return value, end

    def _store(self, key: str, value: Any) -> None:
        """Keep a value, also as one of the broken object that it stands in."""
        if len(self.values) >= MAX_KEYS and key not in self.values:
            return
        self.values[key] = value
        if self._members and self._members[-1] is not value:
            self._members[-1][key] = value

    def _keep(self, key: str, raw: bytes | None, size: int, start: int, begin: int) -> None:
        if len(key) > MAX_VALUE_LENGTH:
            key = f"({len(key):,} characters)"
        size_of_both = size + len(key)
        value: Any = f"({size:,} bytes)"
        if raw is not None and self._bytes + size_of_both <= MAX_BYTES:
            self._bytes += size_of_both
            try:
                number = Decimal if self._of_event and key in EXACT_KEYS else float
                text = raw.decode("utf-8", "replace")
                value = json.loads(
                    text, strict=False, parse_constant=str, parse_float=number, parse_int=_integer
                )
            except RecursionError:
                pass
            except ValueError:
                if raw[:1] == b'"':
                    value = text_of(raw[1:-1])
                elif raw[:1] in (b"{", b"["):
                    forgiven, end = self._tolerantly(raw, begin)
                    value = forgiven if end == len(raw) else value
                    why = f"the value of {key[:80]!r} is no valid JSON"
                    if not self._of_event:
                        self.problems.append(Problem("broken envelope", 1, start, why))
                elif size <= MAX_STRING_LENGTH:
                    value = self._stray_value(key, text_of(raw))
        self._store(key, _printable(value))

    def _stray_value(self, key: str, text: str) -> Any:
        """Return what a text means that stands where a value should."""
        if self._of_event and key in EXACT_KEYS:
            return time_meant(text, has_decimal_commas=False)
        number = decimal_comma(text)
        return text if number is None else float(number.text)

    def _string(self) -> tuple[bytes | None, int, bool]:
        """Pass over a string: its bytes if small, its size, whether it was closed."""
        window = self._window
        begin = window.offset
        parts = [b'"']
        window.at += 1
        while True:
            match = _STRING_REST.match(window.data, window.at)
            end = match.end() if match else window.at
            if window.offset - begin <= MAX_STRING_LENGTH:
                parts.append(window.data[window.at : min(end, window.at + MAX_STRING_LENGTH + 1)])
            window.at = end
            if window.left and window.data[window.at] == ord('"'):
                window.at += 1
                size = window.offset - begin
                return (b"".join(parts) + b'"' if size <= MAX_STRING_LENGTH else None), size, True
            if not self._more():
                window.at = len(window.data)
                return None, window.offset - begin, False

    def _scalar(self) -> tuple[bytes | None, int, bool]:
        """Pass over a number or a word, or what else stands there without quotes: its bytes if small, its
        size, whether there is anything.
        """
        window = self._window
        begin = window.offset
        self._need(MAX_STRAY_LENGTH)
        if (end := self._stray_end()) is not None:
            raw = window.data[window.at : end].rstrip()
            window.at = end
            return raw, len(raw), True
        data: bytes | None = b""
        while (match := _SCALAR.match(window.data, window.at)) is not None:
            window.at = match.end()
            data = _joined(data, match.group())
            if window.left or not self._more():
                break
        return data, window.offset - begin, window.offset > begin

    def _stray_end(self) -> int | None:
        """Return where the text ends that stands here in place of a value; None where it is a single word."""
        window = self._window
        word = _SCALAR.match(window.data, window.at)
        at = word.end() if word else window.at
        if (word or window.data[at : at + 1] not in b",}") and not BEHIND_VALUE.match(window.data, at):
            end = stray_end(window.data, window.at, True)
            return end if end is not None and end < len(window.data) else None
        return None

    def _container(self) -> tuple[bytes | None, int, bool]:
        """Pass over an object or array: its bytes if small, its size, whether it was sound."""
        window = self._window
        begin = window.offset
        if begin in self._broken_there and self._broken <= window.base + len(window.data):
            window.at = self._broken - window.base
            return None, self._broken - begin, False
        nesting = _Nesting()
        data = self._behind_brackets(nesting)
        if nesting.depth:
            self._broken, self._broken_there = window.offset, nesting.begins
        return data, window.offset - begin, not nesting.depth

    def _behind_brackets(self, nesting: _Nesting) -> bytes | None:
        """Go behind the bracket that closes the one here, or to what breaks it; return its bytes if small."""
        window = self._window
        data: bytes | None = b""
        while True:
            first = window.at
            whole = True
            sure = self._judged_before()
            for token in _CONTAINER.finditer(window.data, first):
                at = token.start()
                if window.data[at] == ord('"') and not token.group(1):
                    window.at = at
                    whole = False
                    break
                if token.end() > sure:
                    window.at = at  # what stands behind it tells what it is
                    break
                window.at = token.end()
                if token.group(3) is not None:
                    window.at = at
                    return None
                if not nesting.takes(window, at, token.group(2) is not None):
                    return None
                if not nesting.depth:
                    return _joined(data, window.data[first : window.at])
            else:
                window.at = max(window.at, sure)
            data = _joined(data, window.data[first : window.at])
            if not whole and window.left > MAX_VALUE_LENGTH:
                _, _, closed = self._string()
                data = None
                if not closed:
                    return None
            elif window.ended:
                window.at = len(window.data)
                return None
            else:
                self._more()

    def _judged_before(self) -> int:
        """Return the place before which a token of a value ends that can be judged by what stands behind it,
        which the next block may bring.
        """
        window = self._window
        if window.ended:
            return len(window.data)
        behind_blanks = len(window.data.rstrip()) - 1 if window.left < MAX_EVENT_LENGTH else len(window.data)
        return min(behind_blanks, len(window.data) - MAX_BLANK_LENGTH)

    def _resync(self, start: int, why: str = "", key: str = "") -> bool:
        """Go to the next text that looks like a key; False if there is none."""
        # Of `"host": "a"b", "rank": 3` the value ends behind `"a"`, where no comma stands: it is no JSON.
        # Looked for is what a key looks like behind a comma, from the colon of the broken key on, as the
        # quote that nobody escaped may have hidden it: `, "rank":`. What stands before that is the value
        # meant, a"b. Writers that put each key into a line are held to that: commas in a value have no line
        # before them.
        window = self._window
        if why:
            self.problems.append(Problem("broken envelope", 1, start, why))
        self._loose = True
        back = min(max(0, window.offset - start), window.at, MAX_VALUE_LENGTH)
        window.at -= back
        low = window.at + (1 if key else 0)
        colon = window.data.find(b":", low) if key else -1
        low = colon + 1 if colon >= 0 else low
        while True:
            match = self._next_key.search(window.data, low)
            if match and (match.end() < len(window.data) or window.ended):
                value = window.data[low : match.start()].strip(b" \t\r\n,")
                if (
                    key
                    and len(value) <= MAX_STRING_LENGTH
                    and value[:1] == b'"' == value[-1:]
                    and len(value) > 1
                ):
                    self._store(key, _printable(text_of(value[1:-1])))
                window.at = window.data.index(b'"', match.start())
                return True
            if window.ended:
                window.at = len(window.data)
                self.cut_off = window.offset
                return False
            window.at = max(window.at, len(window.data) - _OVERLAP)
            key = ""
            self._more()
            low = window.at


class _Nesting:
    """The brackets that are open within a value: how many, and the innermost."""

    def __init__(self) -> None:
        self.depth = 0
        self._open: deque[tuple[int, int]] = deque(maxlen=MAX_VALUE_LENGTH)  # where each stands, and its kind

    @property
    def begins(self) -> frozenset[int]:
        """Where those open brackets stand to which reading may go back."""
        return frozenset(offset for offset, _ in self._open)

    def takes(self, window: Window, at: int, is_key: bool) -> bool:
        """Take the token from `at` to where the window stands; tell whether it may stand there. A bracket
        that may not stays open: what begins with one that is open breaks at the same place.
        """
        data, byte = window.data, window.data[at]
        before = data[max(0, at - MAX_BLANK_LENGTH) : at].rstrip()[-1:]
        kind = self._open[-1][1] if self._open else None
        if byte in b"}]":
            if kind is not None:
                if kind != byte - 2 or before == b":":
                    return False
                self._open.pop()
            self.depth -= 1
            return self.depth == 0 or _FOLLOWS[byte].match(data, window.at) is not None
        if byte not in b'{["':
            return True
        if kind is not None and before not in (b"", *_PRECEDES[kind, is_key]):
            return False
        if byte == ord('"'):
            return True
        self.depth += 1
        self._open.append((window.base + at, byte))
        return _FOLLOWS[byte].match(data, window.at) is not None


def _integer(text: str) -> int | str:
    """Return an integer; of more digits than Python converts, its text."""
    return whole_number(text) if len(text.lstrip("-")) <= MAX_DIGITS else text


def _joined(data: bytes | None, more: bytes) -> bytes | None:
    return None if data is None or len(data) + len(more) > MAX_VALUE_LENGTH else data + more


def _printable(value: Any) -> Any:
    """Return the value without lone surrogates, which no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, (dict, list)):
        try:
            return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        except RecursionError:
            return "(too deep)"
    return value
