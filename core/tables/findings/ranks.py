"""Rules about several ranks: which of them the others wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...base.arrays import EMPTY, I64, Intervals, merge, sum_of
from ...base.units import about_ns, count_of
from ..rule_threshold import OWN, Limits
from ..skew import Skew
from .facts import SourceFacts
from .finding import Evidence, NotJudged, Observation, Outcome
from .rule import HTA, effects_of, rule

EVIDENCE = 3
"""Collectives that are named as evidence."""


@rule(
    "rank-imbalance",
    "One rank keeps the others waiting",
    "ranks do nothing but wait in collectives for one of them for at least {share} of the time, "
    "{share} and {most_share} longer than it waits for others, or, of more than two, {most_share} "
    "of all that ranks wait",
    f"{HTA}, whose straggler rule knows few collectives by name; the limit is {OWN}",
    {"share": 0.03, "most_share": 0.5},
    helps=(
        "Look at what this rank does before it comes: more or slower work (uneven batches, experts or "
        "tables), input, another host or a slower device. The ranks that wait are not the slow ones."
    ),
    explains=("communication", "device-hotspot", "aiu-barriers", *effects_of("sync-in-loop")),
)
def rank_imbalance(facts: SourceFacts, limits: Limits) -> Outcome:
    skew = facts.capture.skew
    if not len(skew) or facts.column is None:
        return NotJudged("no collective is on two ranks")
    if facts.column != int(skew.caused.argmax()):
        return None
    titles, held = (facts.rank_title, facts.title_of_column), facts.held_elsewhere
    awaited = awaited_rank(skew, facts.span_ns, limits, *titles, held, facts.waiting)
    if awaited is None:
        return None
    evidence = tuple(
        facts.slice(each.label, int(skew.positions[skew.last_entry[row]]), each.start, each.end)
        for row, each in zip(awaited.rows.tolist(), awaited.evidence)
    )
    return Observation(awaited.text, evidence, awaited.claim, times=skew.last_start[awaited.rows])


@dataclass(frozen=True, eq=False)
class AwaitedRank:
    """The rank that the others wait for most, in words."""

    text: str
    rows: I64  # the collectives of `skew` that it came last to, first those with most waiting
    claim: Intervals
    evidence: tuple[Evidence, ...]


def awaited_rank(
    skew: Skew,
    span_ns: int,
    limits: Limits,
    title: str,
    title_of: Callable[[int], str],
    held: Intervals = EMPTY,
    waiting: Intervals | None = None,
) -> AwaitedRank | None:
    """Return what is said of the rank that the others wait for most, called `title`, in so much time; None
    where they wait for it little, or as long as it waits for them. `title_of` names a column of `skew`.

    `held`: when other ranks do nothing but wait, empty where that is not known (ranks with one device between
    them do not tell); `waiting`: when this one does nothing else.
    """
    column = int(skew.caused.argmax())
    caused = int(skew.caused[column])
    rows = np.flatnonzero(skew.late & (skew.last == column))
    claim = merge(skew.first_start[rows], skew.last_start[rows])
    if held.length:
        claim = claim.intersection(held)
    # Where it is chance that makes ranks wait for one another, each waits as long as it keeps others waiting.
    least = limits["share"] * span_ns
    own = skew.waiting(column) if waiting is None else skew.waiting(column).intersection(waiting)
    is_most = len(skew.sources) > 2 and caused >= limits["most_share"] * sum_of(skew.caused)
    is_late = claim.length - own.length >= max(least, limits["most_share"] * claim.length)
    if not caused or claim.length < least or not (is_most or is_late):
        return None
    rows = rows[np.argsort(-skew.waited[rows], kind="stable")]
    evidence = tuple(
        Evidence(
            f"{skew.families[int(skew.family[row])][1]}, for which the others wait "
            f"{about_ns(int(skew.waited[row]))}",
            int(skew.starts[skew.last_entry[row]]),
            int(skew.ends[skew.last_entry[row]]),
        )
        for row in rows[:EVIDENCE].tolist()
    )
    others, waits = len(skew.sources) - 1, f"{about_ns(caused)} for it"
    who = (
        f"the other {others:,} ranks wait {waits} in total" if others > 1 else f"the other rank waits {waits}"
    )
    text = f"{title} is last in {len(rows):,} of {count_of(len(skew), 'collective')}: {who}"
    return AwaitedRank(text + next_rank_text(skew, column, title_of), rows, claim, evidence)


def next_rank_text(skew: Skew, column: int, title: Callable[[int], str]) -> str:
    """Return what the rank of a column is followed by: a rank that costs at least half as much, if there is
    one; `title` names a column.
    """
    caused = skew.caused.copy()
    caused[column] = 0
    second = int(caused.argmax())
    if 2 * caused[second] < skew.caused[column]:
        return ""
    return (
        f"; for {title(second)}, last to {int(skew.came_last[second]):,} of them, the others wait "
        f"{about_ns(int(caused[second]))}"
    )
