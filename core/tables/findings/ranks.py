"""Rules about several ranks: which of them the others wait for."""

from __future__ import annotations

import numpy as np

from ...base.intervals import merge
from ...base.units import format_ns
from .facts import SourceFacts, share
from .finding import NotJudged, Observation, Outcome
from .rule import HTA, OWN, Limits, rule

SHOWN = 3
"""Collectives that are shown as evidence."""


@rule(
    "rank-imbalance",
    "One rank keeps the others waiting",
    "the ranks wait in collectives for one of them for at least {share} of the time, and least for others",
    origin=f"{HTA}, whose straggler rule knows few collectives by name; the limit is {OWN}",
    helps=(
        "Look at what this rank does before it comes: more or slower work (uneven batches, experts or "
        "tables), input, another host or a slower device. The ranks that wait are not the slow ones."
    ),
    limits={"share": 0.01},
    always=True,
)
def rank_imbalance(facts: SourceFacts, limits: Limits) -> Outcome:
    """The source's rank is the one that the others wait for most."""
    skew = facts.skew
    if facts.source not in skew.columns:
        return NotJudged("no collective is on two ranks")
    caused = skew.caused
    column = skew.columns[facts.source]
    if int(caused.argmax()) != column or not caused[column]:
        return None
    rows = np.flatnonzero(skew.late & (skew.last == column))
    claim = merge(skew.first_start[rows], skew.last_start[rows])
    if share(claim.length, facts.span_ns) < limits["share"]:
        return None
    rows = rows[np.argsort(-skew.waited[rows], kind="stable")]
    entries = skew.last_entry[rows[:SHOWN]]
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
    text = (
        f"{facts.rank_title} comes last to {len(rows):,} of {len(skew):,} collectives: the other"
        f" {len(skew.sources) - 1:,} ranks wait {format_ns(int(caused[column]))} for it, added up"
    )
    return Observation(text, evidence, claim, times=skew.last_start[rows])
