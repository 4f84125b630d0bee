"""Arguments that are not lifted, looked for in the source: only blocks that name the key are decoded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ..base.errors import Cancelled, UnreadableError
from ..base.progress import CancelledCallback, never
from ..index.blockstore import block_bytes, has_block_store, source_of
from ..index.store import Index
from ..ingest.columns import I64, AnyArray
from .args import LARGEST, arguments_in, elements_of
from .filter import Argument

READ = 1 << 20
_PLAIN = re.compile(rb"[ !#-.0-\[\]-~]*")
_NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?\s*", re.ASCII)


def holds(term: Argument, value: Any) -> bool:
    """Tell whether an argument's value fits; numbers in quotes count as numbers, as writers differ."""
    if term.number is None and term.text is None:
        return True
    if term.number is not None:
        number = number_of(value)
        if number is not None:
            return term.number(number)
    return term.text is not None and term.text(text_of(value))


def number_of(value: Any) -> int | float | Fraction | None:
    """Return a JSON value as a number; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) < 400 and _NUMBER.fullmatch(value):
        return Fraction(value.strip())
    return None


def text_of(value: Any) -> str:
    """Return a JSON value as text: strings as they are, others as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def scan_argument(
    index: Index, term: Argument, candidates: I64, cancelled: CancelledCallback = never
) -> AnyArray:
    """Return which of these positions have an argument that fits (the term's negation aside), as booleans.

    Of a slice made of two events, the end event's value counts where both have one. Raises UnreadableError
    when the source has gone or changed, Cancelled.
    """
    found = np.zeros(len(candidates), bool)
    ordinals, which, is_end = _events_of(index, candidates)
    from_end = np.zeros(len(candidates), bool)  # decided by the end event
    firsts = index.column("blocks.ordinal").astype(np.int64)
    counts = index.column("blocks.count").astype(np.int64)
    begins = np.searchsorted(ordinals, firsts)
    ends = np.searchsorted(ordinals, firsts + counts)
    wanted = np.flatnonzero(ends > begins)
    for block, data in _blocks(index, wanted, cancelled):
        repaired = bool(index.column("blocks.repaired")[block])
        if not repaired and not _may_hold(data, term):
            continue
        elements = elements_of(data, repaired)
        first = int(firsts[block])
        places = slice(int(begins[block]), int(ends[block]))
        for ordinal, at, end in zip(
            ordinals[places].tolist(), which[places].tolist(), is_end[places].tolist()
        ):
            event = elements[ordinal - first] if ordinal - first < len(elements) else None
            if not isinstance(event, dict):
                continue
            arguments = arguments_in(event)
            if term.key in arguments and (end or not from_end[at]):
                found[at] = holds(term, arguments[term.key])
                from_end[at] |= end
    return found


def _events_of(index: Index, candidates: I64) -> tuple[I64, I64, AnyArray]:
    """Return (event ordinals ascending, index in `candidates`, whether it is the end event) of slices."""
    own = index.column("slices.ordinal")[candidates].astype(np.int64)
    which = np.arange(len(candidates))
    pairs = index.column("ends.position")
    if len(pairs) and len(candidates):
        places = np.searchsorted(pairs, candidates.astype(pairs.dtype))
        places[places == len(pairs)] = 0
        paired = np.flatnonzero(pairs[places] == candidates)
        ends = index.column("ends.ordinal")[places[paired]].astype(np.int64)
        own, which = np.concatenate((own, ends)), np.concatenate((which, paired))
    order = np.argsort(own, kind="stable")
    return own[order], which[order], order >= len(candidates)


def _may_hold(data: bytes, term: Argument) -> bool:
    """Tell whether a block's text can hold the term's key (and text): False is certain."""
    needles = [term.key]
    text = term.text
    if text is not None and text.how == "is" and term.number is None and text.text[:1] not in ("[", "{"):
        needles.append(text.text)  # the JSON of lists and objects may be spaced otherwise in the file
    for needle in needles:
        raw = needle.encode("utf-8", "replace")
        escaped = b"\\u" if _PLAIN.fullmatch(raw) else b"\\"
        if raw not in data and escaped not in data:
            return False
    return True


def _blocks(index: Index, wanted: AnyArray, cancelled: CancelledCallback) -> Iterator[tuple[int, bytes]]:
    """Yield (number, text) of these blocks; sources that only inflate from the start are read once."""
    sizes = index.column("blocks.length")
    wanted = wanted[sizes[wanted] <= LARGEST]
    direct = not len(wanted) or has_block_store(index) or source_of(index).seekable
    if direct:
        for block in wanted.tolist():
            _check(cancelled)
            yield block, block_bytes(index, block)[0]
        return
    stream = source_of(index).open()
    try:
        for block in wanted[np.argsort(index.column("blocks.offset")[wanted], kind="stable")].tolist():
            offset, length = int(index.column("blocks.offset")[block]), int(sizes[block])
            _read(stream, offset - stream.offset, cancelled, keep=False)
            data = _read(stream, length, cancelled, keep=True)
            if len(data) != length:
                raise UnreadableError(f"{index.path} has changed since it was indexed: open it again")
            yield block, data
    finally:
        stream.close()


def _read(stream: Any, length: int, cancelled: CancelledCallback, keep: bool) -> bytes:
    parts = []
    while length > 0:
        _check(cancelled)
        part = stream.read(min(READ, length))
        if not part:
            break
        length -= len(part)
        if keep:
            parts.append(part)
    return b"".join(parts)


def _check(cancelled: CancelledCallback) -> None:
    if cancelled():
        raise Cancelled
