"""Rules about several ranks: which of them the others wait for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.arrays import sum_of
from ...base.intervals import merge
from ...base.units import about_ns, count_of
from ..rule_threshold import OWN, Limits, RuleThreshold
from ..skew import Skew
from .facts import SourceFacts
from .finding import NotJudged, Observation, Outcome
from .rule import HTA, effects_of, rule

EVIDENCE = 3
"""Collectives that are named as evidence."""


@rule(
    "rank-imbalance",
    "One rank keeps the others waiting",
    RuleThreshold(
        (
            "ranks do nothing but wait in collectives for one of them for at least {share} of the time, "
            "{share} and {most_share} longer than it waits for others, or, of more than two, {most_share} "
            "of all that ranks wait"
        ),
        f"{HTA}, whose straggler rule knows few collectives by name; the limit is {OWN}",
        {"share": 0.015, "most_share": 0.5},
    ),
    helps=(
        "Look at what this rank does before it comes: more or slower work (uneven batches, experts or "
        "tables), input, another host or a slower device. The ranks that wait are not the slow ones."
    ),
    explains=("communication", "device-hotspot", "aiu-barriers", *effects_of("sync-in-loop")),
)
def rank_imbalance(facts: SourceFacts, limits: Limits) -> Outcome:
    """The source's rank is the one that the others wait for most."""
    skew, caused = facts.skew, facts.skew.caused
    if not len(skew) or facts.column is None:
        return NotJudged("no collective is on two ranks")
    column = int(caused.argmax())
    if facts.column != column or not caused[column]:
        return None
    rows = np.flatnonzero(skew.late & (skew.last == column))
    claim = merge(skew.first_start[rows], skew.last_start[rows])
    if facts.held_elsewhere.length:  # ranks with one device between them do not tell
        claim = claim.intersection(facts.held_elsewhere)
    # Where it is chance that makes ranks wait for one another, each waits as long as it keeps others waiting.
    least = limits["share"] * facts.span_ns
    own = skew.waiting(column).intersection(facts.waiting).length
    is_most = len(skew.sources) > 2 and int(caused[column]) >= limits["most_share"] * sum_of(caused)
    is_late = claim.length - own >= max(least, limits["most_share"] * claim.length)
    if claim.length < least or not (is_most or is_late):
        return None
    rows = rows[np.argsort(-skew.waited[rows], kind="stable")]
    entries = skew.last_entry[rows[:EVIDENCE]]
    evidence = tuple(
        facts.slice(
            f"{skew.families[int(skew.family[row])][1]}, for which the others wait "
            f"{about_ns(int(skew.waited[row]))}",
            int(skew.positions[entry]),
            int(skew.starts[entry]),
            int(skew.ends[entry]),
        )
        for row, entry in zip(rows.tolist(), entries.tolist())
    )
    others, waited = len(skew.sources) - 1, int(caused[column])
    text = imbalance_text(facts.rank_title, len(rows), len(skew), others, waited)
    text += next_rank_text(skew, column, facts.title_of_column)
    return Observation(text, evidence, claim, times=skew.last_start[rows])


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


def imbalance_text(rank: str, late: int, collectives: int, others: int, waited_ns: int) -> str:
    """Return the sentence about the rank that comes last to collectives, and how long others wait for it."""
    who = f"the other rank waits {about_ns(waited_ns)} for it"
    if others > 1:
        who = f"the other {others:,} ranks wait {about_ns(waited_ns)} for it, added up"
    return f"{rank} comes last to {late:,} of {count_of(collectives, 'collective')}: {who}"
