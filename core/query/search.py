"""Which slices of an index a filter leaves by columns: names by the string table, then masks in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor

import numpy as np

from ..base.arrays import I64, U32, AnyArray, places_in
from ..base.errors import Cancelled
from ..base.progress import CancelledCallback
from ..base.short_names import is_short_form
from ..index.store import Index
from ..read.promoted import Kind, Promoted
from .args import promoted_argument
from .filter import OPERATORS, Argument, Filter, Number, Text, TextTerm, Time
from .lookup import rows_of
from .scan import ScanTerm, holding
from .views import names_rank

CHUNK = 1 << 20
"""Slices looked at together: bounds the temporaries."""
STRINGS = 4096
"""Strings that are tested together: mostly one search in their joined text shows that none matches."""
FEW_STRINGS = 8
"""From this many slices per string on, testing all strings is less work than finding out which of them are
names.
"""


class Search:
    """The search of one index; every table (names, categories, lanes, promoted arguments) is tested once."""

    def __init__(
        self, index: Index, titles: Sequence[str], rank: str, filter: Filter, cancelled: CancelledCallback
    ) -> None:
        """Look for what a filter matches; `titles` are those of its lanes, `rank` that of its rank."""
        self.index, self.titles, self.rank = index, titles, rank
        self.filter, self.cancelled = filter, cancelled
        self.count = index.length("slices.start")
        arguments = [
            (term, promoted_argument(term.key)) for term in filter.terms if isinstance(term, Argument)
        ]
        self.scanned = tuple(term for term, promoted in arguments if promoted is None)
        """The terms on arguments that stand in the source only."""
        self.promoted = tuple(PromotedTerm(index, term, promoted) for term, promoted in arguments if promoted)

    def by_columns(self) -> tuple[U32, U32]:
        """Return (positions that all terms with columns match, positions for which a promoted argument has to
        be read from the source as well), both ascending. Raises Cancelled.
        """
        tables: list[tuple[str, AnyArray]] = []
        rows: AnyArray | None = None
        for term in self.filter.terms if self.count else ():
            if not isinstance(term, TextTerm):
                continue
            if term.of == "name":
                tables.append(("slices.name", self._names(term.text) != term.negated))
            elif term.of == "cat":
                fits = np.array(_categories_that_fit(term.text, self.index.categories, self.cancelled), bool)
                tables.append(("slices.category", fits != term.negated))
            else:
                whole = bool(self.rank) and names_rank(term.text.expression, self.rank)
                fits = np.array(term.text.fits(self.titles, self.cancelled), bool)
                lanes = (fits | whole) != term.negated
                these: AnyArray = lanes[self.index.rows["lane"].astype(np.int64)]
                rows = these if rows is None else rows & these
        sure = unsure = [np.empty(0, np.uint32)]
        if all(fits.any() for _, fits in tables) and (rows is None or rows.any()):
            times = [term for term in self.filter.terms if isinstance(term, Time)]
            for begin in range(0, self.count, CHUNK):
                if self.cancelled():
                    raise Cancelled
                end = min(self.count, begin + CHUNK)
                mask = self._chunk(begin, end, tables, rows, times)
                holding, open_ones = self._by_promoted(begin, end, mask)
                sure = [*sure, np.flatnonzero(holding).astype(np.uint32) + np.uint32(begin)]
                unsure = [*unsure, np.flatnonzero(open_ones).astype(np.uint32) + np.uint32(begin)]
        return np.concatenate(sure), np.concatenate(unsure)

    def _chunk(
        self,
        begin: int,
        end: int,
        tables: list[tuple[str, AnyArray]],
        rows: AnyArray | None,
        times: list[Time],
    ) -> AnyArray:
        index = self.index
        mask: AnyArray | None = None
        for column, fits in tables:
            these: AnyArray = fits.take(index.column(column)[begin:end])
            mask = these if mask is None else mask & these
        if mask is None:
            mask = np.ones(end - begin, bool)
        if rows is not None:
            mask &= rows[rows_of(index, np.arange(begin, end))]
        for term in times:
            if term.what == "dur":
                ns = index.durations_between(begin, end)
            else:
                ns = index.self_time(np.arange(begin, end))
            mask &= compared(ns, term.number) != term.negated
        return mask

    def _by_promoted(self, begin: int, end: int, mask: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return (which of a chunk hold, which the columns do not decide) of those that a mask leaves."""
        unsure = np.zeros(len(mask), bool)
        for term in self.promoted:
            known, holding = term.decided(np.arange(begin, end))
            mask &= holding | ~known
            unsure |= ~known
        return mask & ~unsure, mask & unsure

    def to_scan(self, candidates: U32) -> list[ScanTerm]:
        """Return the terms that are to be looked for in the source of these candidates."""
        terms = [ScanTerm(term) for term in self.scanned]
        positions = candidates.astype(np.int64)
        for promoted in self.promoted:
            known, holding = promoted.decided(positions)
            terms.append(ScanTerm(promoted.in_source, known, holding))
        return terms

    def without_unknown(self, unsure: U32) -> U32:
        """Return those that match if what the columns do not know of is not there at all."""
        positions = unsure.astype(np.int64)
        keep = np.ones(len(unsure), bool)
        for promoted in self.promoted:
            known, holding = promoted.decided(positions)
            keep &= np.where(known, holding, promoted.term.negated)
        return unsure[keep]

    def _names(self, text: Text) -> AnyArray:
        """Return per string number whether it is a slice's name that fits."""
        index = self.index
        offsets, blob = index.column("strings.offset"), index.column("strings.blob")
        names = index.column("slices.name")
        used = np.zeros(max(1, len(offsets) - 1), bool)
        if len(names) > FEW_STRINGS * len(used):
            used[:] = True  # also what is no name: no slice asks for it
        else:
            for begin in range(0, len(names), CHUNK):
                used[names[begin : begin + CHUNK]] = True
        fits = np.zeros(len(used), bool)
        needle = text.text.lower().encode() if text.how == "in" and text.text.isascii() else None
        for begin in range(0, len(used), STRINGS):
            if self.cancelled():
                raise Cancelled
            numbers = begin + np.flatnonzero(used[begin : begin + STRINGS])
            if not len(numbers):
                continue
            bounds = offsets[begin : begin + STRINGS + 1].tolist()
            joined = blob[bounds[0] : bounds[-1]].tobytes()
            if needle is not None:
                joined = joined.lower()
                if needle not in joined:
                    continue
            ranges = [(bounds[number - begin], bounds[number - begin + 1]) for number in numbers.tolist()]
            raws = [joined[low - bounds[0] : high - bounds[0]] for low, high in ranges]
            if needle is not None:
                fits[numbers] = [needle in raw for raw in raws]
            else:
                texts = [raw.decode("utf-8", "replace") for raw in raws]
                fits[numbers] = text.fits(texts, self.cancelled)
                if text.how == "is":
                    fits[numbers] |= [is_short_form(text.text, raw) for raw in texts]
        return fits


def _categories_that_fit(text: Text, names: Sequence[str], cancelled: CancelledCallback) -> list[bool]:
    """Return which categories fit; one that names several between commas does where one of them does."""
    fits = text.fits(names, cancelled)
    if text.how != "is":
        return fits
    return [fit or ("," in name and any(map(text, name.split(",")))) for fit, name in zip(fits, names)]


def compared(values: AnyArray, number: Number) -> AnyArray:
    """Return which numbers of an array fulfil a comparison, compared exactly."""
    target, compare = number.value, OPERATORS[number.op]
    if values.dtype.kind == "f":
        return np.asarray(compare(values, number.nearest))
    low, high = floor(target), ceil(target)
    limits = np.iinfo(values.dtype)
    if number.op == "=" and (low != high or not limits.min <= low <= limits.max):
        return np.zeros(len(values), bool)
    bound = low if number.op in (">", "<=", "=") else high
    if bound > limits.max or bound < limits.min:
        return np.full(len(values), (bound < limits.min) == (number.op in (">", ">=")))
    return np.asarray(compare(values, values.dtype.type(bound)))


class PromotedTerm:
    """A term of a filter, tested on the columns of one index.

    The columns cannot answer for texts where numbers are expected: for those, `in_source` is the term to
    search the source for.
    """

    def __init__(self, index: Index, term: Argument, promoted: Promoted) -> None:
        self.term = term
        self.in_source = term if term.key in promoted.args else replace(term, key=promoted.args[0])
        self.has: U32 = index.column(f"promoted.{promoted.key}.position")
        self.fitting = self._fitting(index, promoted)
        self._is_all = term.number is not None or promoted.kind is Kind.TEXT  # not in the column, not there

    def decided(self, positions: I64) -> tuple[AnyArray, AnyArray]:
        """Return (whether the columns know, whether the term holds if they do) of positions, as booleans."""
        known = within(self.has, positions) | self._is_all
        return known, within(self.fitting, positions) != self.term.negated

    def _fitting(self, index: Index, promoted: Promoted) -> U32:
        """Return the positions whose value fits, ascending."""
        term = self.term
        if not len(self.has) or (term.number is None and term.text is None):
            return self.has
        values = index.column(f"promoted.{promoted.key}.value")
        texts = promoted.kind is Kind.TEXT
        if term.number is not None and not texts:
            fits_value: U32 = self.has[compared(values, term.number)]
            return fits_value
        distinct, which = np.unique(values, return_inverse=True)
        fits = holding(term, [index.string(value) if texts else value for value in distinct.tolist()])
        fitting: U32 = self.has[np.array(fits, bool)[which]]
        return fitting


def within(values: U32, positions: I64) -> AnyArray:
    """Return whether each position (ascending) is one of the values (ascending), as booleans."""
    inside = np.zeros(len(positions), bool)
    if len(positions) and len(values):
        low, high = np.searchsorted(values, np.array([positions[0], positions[-1] + 1], np.uint32))
        part = values[low:high].astype(np.int64)
        if len(positions) == int(positions[-1]) - int(positions[0]) + 1:
            inside[part - positions[0]] = True
        elif len(part):
            inside = places_in(part, positions) >= 0
    return inside
