"""Rules about several ranks: which of them the others wait for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.intervals import merge
from ...base.units import count_of, format_ns
from ..rule_threshold import OWN, Limits, RuleThreshold
from ..skew import Skew
from .facts import SourceFacts, share
from .finding import NotJudged, Observation, Outcome
from .rule import HTA, rule

EVIDENCE = 3
"""Collectives that are named as evidence."""


@rule(
    "rank-imbalance",
    "One rank keeps the others waiting",
    RuleThreshold(
        (
            "the ranks wait in collectives for one of them for at least {share} of the time, and least for "
            "others"
        ),
        f"{HTA}, whose straggler rule knows few collectives by name; the limit is {OWN}",
        {"share": 0.01},
    ),
    helps=(
        "Look at what this rank does before it comes: more or slower work (uneven batches, experts or "
        "tables), input, another host or a slower device. The ranks that wait are not the slow ones."
    ),
    always=True,
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
    if share(claim.length, facts.span_ns) < limits["share"]:
        return None
    rows = rows[np.argsort(-skew.waited[rows], kind="stable")]
    entries = skew.last_entry[rows[:EVIDENCE]]
    evidence = tuple(
        facts.slice(
            f"{skew.families[int(skew.family[row])][1]}, for which the others wait "
            f"{format_ns(int(skew.waited[row]))}",
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
        f"{format_ns(int(caused[second]))}"
    )


def imbalance_text(rank: str, late: int, collectives: int, others: int, waited_ns: int) -> str:
    """Return the sentence about the rank that comes last to collectives, and how long others wait for it."""
    who = f"the other rank waits {format_ns(waited_ns)} for it"
    if others > 1:
        who = f"the other {others:,} ranks wait {format_ns(waited_ns)} for it, added up"
    return f"{rank} comes last to {late:,} of {count_of(collectives, 'collective')}: {who}"
