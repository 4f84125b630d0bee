"""Terms on lifted arguments, answered from columns as far as these tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..base.kineto import GROUPS
from ..index.store import Index
from ..read.promoted import PROMOTED, Kind, Promoted
from .compare import compared
from .filter import Argument
from .scan import holds


class PromotedTerm:
    """A term and what the columns of one index say to it.

    They know nothing of an argument in categories for which it is not lifted, nor of texts that stand where
    numbers should: there `in_source` is the term to look for.
    """

    def __init__(self, index: Index, term: Argument, promoted: Promoted) -> None:
        """Test the column's values."""
        self.term = term
        self.in_source = term if term.key in promoted.args else replace(term, key=promoted.args[0])
        self.has: U32 = index.column(f"lifted.{promoted.key}.position")
        self.fitting = self._fitting(index, promoted)
        any_text = term.number is None and promoted.kind is not Kind.TEXT
        known = [not any_text and _group(category) in promoted.groups for category in index.categories]
        self._known = np.array(known, bool)  # per category: no value in the column, no argument

    def decided(self, positions: I64, categories: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return (whether the columns know, whether the term holds if they do) of positions, as booleans."""
        known: AnyArray = self._known.take(categories) | within(self.has, positions)
        return known, within(self.fitting, positions) != self.term.negated

    def _fitting(self, index: Index, promoted: Promoted) -> U32:
        """Return the positions whose value fits, ascending."""
        term = self.term
        if not len(self.has) or (term.number is None and term.text is None):
            return self.has
        values = index.column(f"lifted.{promoted.key}.value")
        texts = promoted.kind is Kind.TEXT
        if term.number is not None and not texts:
            fits_value: U32 = self.has[compared(values, term.number)]
            return fits_value
        distinct, which = np.unique(values, return_inverse=True)
        fits = [holds(term, index.string(value) if texts else value) for value in distinct.tolist()]
        fitting: U32 = self.has[np.array(fits, bool)[which]]
        return fitting


def promoted_argument(key: str) -> Promoted | None:
    """Return the lifted argument that a key means, by its own name or the file's; None for others."""
    for promoted in PROMOTED:
        if promoted.args != ("",) and (key == promoted.key or key in promoted.args):
            return promoted
    return None


def within(values: U32, positions: I64) -> AnyArray:
    """Return which positions (ascending) are among values (ascending), as booleans."""
    inside = np.zeros(len(positions), bool)
    if len(positions) and len(values):
        low, high = np.searchsorted(values, np.array([positions[0], positions[-1] + 1], np.uint32))
        part = values[low:high].astype(np.int64)
        if len(positions) == int(positions[-1]) - int(positions[0]) + 1:
            inside[part - positions[0]] = True
        elif len(part):
            places = np.minimum(np.searchsorted(part, positions), len(part) - 1)
            inside = part[places] == positions
    return inside


def _group(category: str) -> str:
    return next((group for group, categories in GROUPS.items() if category in categories), "other")
