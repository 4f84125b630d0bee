"""Whether a change from one run to another is more than noise, told from values that repeat.

Each side gives values of one thing: of each step of a run, or of each of several runs. The test compares
medians, because single steps are often far off (a first step, a garbage collection):

    change = median(now) - median(before)
    error  = sqrt(s_before² / n_before + s_now² / n_now),  s = 1.4826 * MAD * 1.2533
    beyond the noise: |change| > LIMIT * error, with n >= LEAST on both sides

MAD is the median distance from the median; times 1.4826 it is the standard deviation of normal values, and
1.2533 (the square root of pi / 2) is how much wider the median of such values scatters than their mean. Where
more than half of the values are equal MAD is 0: then the mean distance from the median times 1.2533 stands
for it, so that a single step that is off is not taken for no noise at all. So it does for three values, where
it is more. With LIMIT = 3 one comparison in
some 400 of unchanged runs is called a change; with few values, where the error itself is uncertain, the limit
is that of Student's distribution for the same share. Sources: Rousseeuw and Croux, Alternatives to the median
absolute deviation, 1993; any table of Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["slower", "faster", "higher", "lower", "within the noise", "noise unknown"]

LEAST = 3
"""The fewest values of a side from which its noise can be estimated."""
LIMIT = 3.0
UNKNOWN: Verdict = "noise unknown"
TEST = "difference of medians beyond 3 standard errors (from MAD; for few values Student's t for 0.27 %)"
"""The test in one line, printed below results."""
FEW = 3
"""Values of which MAD is only the smaller of two distances: their mean distance counts where it is more."""
_STUDENT = {
    2: 19.2, 3: 9.22, 4: 6.62, 5: 5.51, 6: 4.90, 7: 4.53, 8: 4.28, 9: 4.09,
    10: 3.96, 12: 3.76, 15: 3.59, 20: 3.42, 30: 3.27, 60: 3.13,
}  # fmt: skip
"""Degrees of freedom -> two-sided quantile of the share that lies beyond 3 standard deviations (0.27 %)."""


@dataclass(frozen=True)
class Spread:
    """Values of one thing that repeat: their median, and how far they scatter about it.

    A single one is one value of them, in place of the median: a step among the others.
    """

    count: int
    median: float
    deviation: float  # as the standard deviation of normal values; 0 where all are equal
    is_single: bool = False

    @property
    def is_known(self) -> bool:
        return self.count >= LEAST

    def error(self, deviation: float) -> float:
        """Return the standard error of the median, of a single one that of a value, if it scatters so."""
        return deviation if self.is_single else 1.2533 * deviation / math.sqrt(self.count)


@dataclass(frozen=True)
class Comparison:
    """One thing on both sides; `error` is of the change, None where the noise of no side is known."""

    before: Spread
    now: Spread
    error: float | None
    limit: float

    @property
    def change(self) -> float:
        return self.now.median - self.before.median

    @property
    def verdict(self) -> Verdict:
        """Slower or faster where the change is beyond the noise."""
        if self.error is None:
            return UNKNOWN
        if abs(self.change) <= self.limit * self.error:
            return "within the noise"
        return "slower" if self.change > 0 else "faster"


def spread_of(values: Sequence[float]) -> Spread:
    """Return the median and the scatter of at least one value."""
    middle = median(values)
    distances = [abs(value - middle) for value in values]
    deviation = 1.4826 * median(distances)
    mean_distance = sum(distances) / len(distances)
    if not deviation or len(values) <= FEW:
        deviation = max(deviation, 1.2533 * mean_distance)
    return Spread(len(values), float(middle), deviation)


def compare_values(before: Sequence[float], now: Sequence[float]) -> Comparison:
    """Compare what repeats on two sides, at least one value each."""
    return compare_spreads(spread_of(before), spread_of(now))


def compare_spreads(before: Spread, now: Spread) -> Comparison:
    """Compare what repeats on two sides.

    Where one side alone repeats, its noise stands for the other's; where neither does, it is unknown.
    """
    known = [side for side in (before, now) if side.is_known]
    if not known:
        return Comparison(before, now, None, LIMIT)
    errors = [side.error((side if side.is_known else known[0]).deviation) for side in (before, now)]
    freedom = sum(side.count - 1 for side in known)
    return Comparison(before, now, math.hypot(*errors), student_limit(freedom))


def student_limit(freedom: int) -> float:
    """Return the limit for so many degrees of freedom, between the entries of the table that of the fewer."""
    if freedom > max(_STUDENT) * 2:
        return LIMIT
    return _STUDENT[max((n for n in _STUDENT if n <= freedom), default=min(_STUDENT))]
