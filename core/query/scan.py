"""Search the source for arguments that have no column; only blocks that can hold a match are decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray, distinct
from ..base.numbers import NUMBER
from ..base.progress import CancelledCallback, never
from ..index.blocks import read_blocks, reads_anywhere
from ..index.store import Index
from .args import MAX_BLOCK, arguments_in, elements_of, json_value_text, number_of
from .filter import Argument, quoted

EXACT = 1 << 53
"""Integers below this are equal only where their digits are; beyond, decoders round."""
_PLAIN = re.compile(r"[ !#-.0-\[\]-~]*", re.ASCII)
_WORDS = re.compile(r"[A-Za-z_]{2,}", re.ASCII)
_WRITTEN = ("-infinity", "nan", "true", "false", "null")
"""Texts of values that the source may write in another way or in other case."""


class Needle(NamedTuple):
    """A pattern that occurs in every block that may hold a match, unless the block has escapes."""

    pattern: re.Pattern[bytes]
    escape: bytes  # a block with this may spell it otherwise
    ascii: bool = False  # so may one with other letters

    def may_hold(self, block: bytes) -> bool:
        """Tell whether a block can hold it: False is certain."""
        if self.pattern.search(block) is not None or self.escape in block:
            return True
        return self.ascii and not block.isascii()


def needles_of(term: Argument) -> tuple[Needle, ...]:
    """Return what a block must hold, all of it, for a term (its negation aside) to fit an argument in it."""
    needles = [key_needle(term.key)]
    key = needles[0].pattern.pattern
    text = term.text
    if term.number is not None and term.number.op == "=":
        value = term.number.value
        if value.denominator == 1 and abs(value) < EXACT:
            # Digits alone must be these; with a point or an exponent they may be written in many ways.
            digits = str(abs(value.numerator)).encode()
            number = rb'\s*:\s*"?(?:\s|\\[nrtf])*(?:[+-]?0*%s(?![\d.eE])|[+-]?\d*[.eE])' % digits
            needles = [Needle(re.compile(key + number), needles[0].escape)]
    elif text is not None and text.how == "is":
        # The source may write lists, objects and numbers in another way: with other spaces or digits.
        is_value = text.text[:1] in ("[", "{") or NUMBER.fullmatch(text.text.strip()) is not None
        if _PLAIN.fullmatch(text.text) and not is_value and not _in_written(text.text):
            exactly = rb'\s*:\s*"?' + re.escape(text.text.encode())
            needles = [Needle(re.compile(key + exactly), needles[0].escape)]
    elif text is not None and text.how == "in":
        words = [word for word in _WORDS.findall(text.text) if not _in_written(word)]
        if words:
            longest = max(words, key=len).encode()
            needles.append(Needle(re.compile(re.escape(longest), re.IGNORECASE), b"\\u", ascii=True))
    return tuple(needles)


def key_needle(key: str) -> Needle:
    """Return what a block must hold for a key to be in it."""
    pattern = re.escape(b'"' + key.encode("utf-8", "replace") + b'"')
    return Needle(re.compile(pattern), b"\\u" if _PLAIN.fullmatch(key) else b"\\")


def _in_written(word: str) -> bool:
    return any(word.lower() in written for written in _WRITTEN)


REPORT_SECONDS = 0.1
"""Seconds between two reports."""
MAX_TERM_LENGTH = 300
_BARE = re.compile(r"""[^\s<>=:'"]+""")


def holding(term: Argument, values: Sequence[Any], cancelled: CancelledCallback = never) -> list[bool]:
    """Tell of each of an argument's values whether it fits; numbers in quotes count as numbers, as writers
    differ. Raises SlowPatternError, Cancelled.
    """
    if term.number is None and term.text is None:
        return [True] * len(values)
    numbers = [None if term.number is None else number_of(value) for value in values]
    fits = [number is not None and term.number is not None and term.number(number) for number in numbers]
    if term.text is not None:
        others = [at for at, number in enumerate(numbers) if number is None]
        texts = term.text.fits([json_value_text(values[at]) for at in others], cancelled)
        for at, answer in zip(others, texts):
            fits[at] = answer
    return fits


def term_for(key: str, value: Any) -> str | None:
    """Return the term that finds all arguments of a value; None for null, and what no short term can say."""
    if value is None:
        return None
    text = json_value_text(value)
    if (
        not key
        or len(key) + len(text) > MAX_TERM_LENGTH
        or (isinstance(value, float) and not isfinite(value))
    ):
        return None
    name = key if _BARE.fullmatch(key) else quoted(key)
    if number_of(value) is None or not NUMBER.fullmatch(text.strip()):
        return f"arg.{name}={quoted(text)}"
    return f"arg.{name}={text.strip()}"


@dataclass(frozen=True, eq=False)
class ScanTerm:
    """A term to look for; per candidate whether it is `known` already, and if so whether it is `holding`."""

    term: Argument
    known: AnyArray | None = None
    holding: AnyArray | None = None


@dataclass(frozen=True, eq=False)
class ScanStep:
    """A step of a scan: positions that match, bytes of the source read so far, and bytes in all."""

    positions: U32
    done: int
    total: int


def scan(
    index: Index,
    terms: Sequence[ScanTerm],
    candidates: U32,
    first: AnyArray,
    cancelled: CancelledCallback = never,
) -> Iterator[ScanStep]:
    """Yield, as the source is looked through, which candidates have arguments that fit all terms.

    Blocks with events of the candidates in `first` (booleans) come first where the source can be read out of
    order. Of a slice made of two events, the end event's value counts where both have one. Raises
    UnreadableError when the source has gone or changed, Cancelled.
    """
    state = _Scan(index, terms, candidates, cancelled)
    lengths = index.column("blocks.length").astype(np.int64)
    order = state.order(first)
    total, done = int(lengths[order].sum()), 0
    parts: list[U32] = []
    last_report = monotonic()
    for block, data in read_blocks(index, order.tolist(), cancelled):
        parts.append(state.look(block, data))
        done += len(data)
        if monotonic() - last_report >= REPORT_SECONDS:
            yield ScanStep(np.concatenate(parts), done, total)
            parts, last_report = [], monotonic()
    parts.append(state.rest())
    yield ScanStep(np.concatenate(parts), total, total)


class _Scan:
    """The candidates of a scan, and for each the terms that are decided so far."""

    def __init__(
        self, index: Index, terms: Sequence[ScanTerm], candidates: U32, cancelled: CancelledCallback
    ) -> None:
        self.index, self.candidates, self.cancelled = index, candidates, cancelled
        self.terms = [one.term for one in terms]
        self.keys = [(key_needle(term.key),) for term in self.terms]
        self.needles = [needles_of(term) for term in self.terms]
        self.ordinals, self.which, self.is_end = _events_of(index, candidates.astype(np.int64))
        self.firsts = index.column("blocks.ordinal").astype(np.int64)
        counts = index.column("blocks.count").astype(np.int64)
        self.begins = np.searchsorted(self.ordinals, self.firsts)
        self.ends = np.searchsorted(self.ordinals, self.firsts + counts)
        self.left = np.bincount(self.which, minlength=len(candidates))  # events not looked at yet
        self.paired: AnyArray = self.left > 1
        self.fits = np.zeros((len(terms), len(candidates)), bool)
        self.known = np.zeros((len(terms), len(candidates)), bool)
        self.from_end = np.zeros((len(terms), len(candidates)), bool)  # decided by the end event
        for number, one in enumerate(terms):
            if one.known is not None and one.holding is not None:
                self.known[number] = one.known
                self.fits[number] = one.known & (one.holding != one.term.negated)

    def order(self, first: AnyArray) -> I64:
        """Return the blocks with events of candidates in the order in which they are to be read."""
        index, lengths = self.index, self.index.column("blocks.length")
        blocks = np.flatnonzero((self.ends > self.begins) & (lengths <= MAX_BLOCK))
        if not len(blocks):
            return blocks
        if reads_anywhere(index):
            before = np.concatenate((np.zeros(1, np.int64), np.cumsum(first[self.which])))
            soon = before[self.ends[blocks]] > before[self.begins[blocks]]
            order: I64 = np.concatenate((blocks[soon], blocks[~soon]))
            return order
        return blocks[np.argsort(index.column("blocks.offset")[blocks], kind="stable")]

    def look(self, block: int, data: bytes) -> U32:
        """Test a block's events; return the positions that match now that all their events were read."""
        events = slice(int(self.begins[block]), int(self.ends[block]))
        which = self.which[events]
        repaired = bool(self.index.column("blocks.repaired")[block])
        # Where one of two events was looked at, the other may hold what does not fit, and counts more.
        paired = bool(self.paired[which].any())
        needles = self.keys if paired else self.needles
        may = [repaired or all(needle.may_hold(data) for needle in some) for some in needles]
        unknown = np.logical_not(self.known[:, which])
        open_terms = np.logical_and.reduce(unknown, axis=1).tolist()
        lacking = any(
            is_open and not (fits or term.negated) for is_open, fits, term in zip(open_terms, may, self.terms)
        )
        if any(may) and (paired or not lacking):
            self._decode(block, data, repaired, events)
        np.subtract.at(self.left, which, 1)
        return self._fitting(distinct(which[self.left[which] == 0]))

    def _decode(self, block: int, data: bytes, repaired: bool, events: slice) -> None:
        elements = elements_of(data, repaired)
        first = int(self.firsts[block])
        values: list[list[tuple[int, bool, Any]]] = [[] for _ in self.terms]
        for ordinal, at, end in zip(
            self.ordinals[events].tolist(), self.which[events].tolist(), self.is_end[events].tolist()
        ):
            event = elements[ordinal - first] if ordinal - first < len(elements) else None
            if not isinstance(event, dict):
                continue
            arguments = arguments_in(event)
            for number, term in enumerate(self.terms):
                if not self.known[number, at] and term.key in arguments:
                    values[number].append((at, end, arguments[term.key]))
        for number, (term, own) in enumerate(zip(self.terms, values)):
            fits = holding(term, [value for _, _, value in own], self.cancelled)
            for (at, end, _), fit in zip(own, fits):
                if end or not self.from_end[number, at]:
                    self.fits[number, at] = fit
                    self.from_end[number, at] |= end

    def rest(self) -> U32:
        """Return those that fit of the candidates of which not all events could be read."""
        return self._fitting(np.flatnonzero(self.left > 0))

    def _fitting(self, at: AnyArray) -> U32:
        keep = np.ones(len(at), bool)
        for fits, term in zip(self.fits, self.terms):
            keep &= fits[at] != term.negated
        return self.candidates[at[keep]]


def _events_of(index: Index, candidates: I64) -> tuple[I64, I64, AnyArray]:
    """Return (event ordinals ascending, index in `candidates`, whether it is the end event) of slices."""
    own = index.column("slices.ordinal")[candidates].astype(np.int64)
    which = np.arange(len(candidates))
    pairs = index.column("ends.position")
    if len(pairs) and len(candidates):
        at = np.searchsorted(pairs, candidates.astype(pairs.dtype))
        at[at == len(pairs)] = 0
        paired = np.flatnonzero(pairs[at] == candidates)
        ends = index.column("ends.ordinal")[at[paired]].astype(np.int64)
        own, which = np.concatenate((own, ends)), np.concatenate((which, paired))
    order = np.argsort(own, kind="stable")
    return own[order], which[order], order >= len(candidates)
