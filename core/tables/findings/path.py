"""The rule about the critical path: what the median step hangs on, and how much of its time counts."""

from __future__ import annotations

import numpy as np

from ...base.safe_text import safe
from ...base.short_names import short_name
from ...base.units import about_ns
from ..critical_path import critical_path
from ..rule_threshold import OWN, Limits, RuleThreshold
from .facts import SourceFacts, share
from .finding import Evidence, Observation, Outcome
from .rule import HTA, rule

MOST_FILES = 8
"""Of more files the step of each would have to be looked at."""
UNITS = (1_000_000, 100_000, 10_000, 1000)
"""What is less, ns: the first of which a tenth of a name's time has as much."""


@rule(
    "critical-path",
    "What the step hangs on",
    RuleThreshold(
        "one name takes at least {share} of the critical path of the step with the median time, and less "
        "of it makes the step shorter by {least_share} to {most_share} of that",
        f"{HTA} (its critical path); the limits are {OWN}",
        {"share": 0.1, "least_share": 0.05, "most_share": 0.95},
    ),
    helps=(
        "`tracelane critical-path --by name` lists what else it hangs on, `--without NAME` says how long "
        "it would be; in the viewer shift+→ goes along the path."
    ),
    kind="note",
)
def hangs_on(facts: SourceFacts, limits: Limits) -> Outcome:
    """One name takes much of a step's critical path, and some of its time is hidden by other work."""
    scope = facts.median_step
    if scope is None or len(scope.trace.indexes) > MOST_FILES:
        return None
    path = critical_path(scope)
    gain = path.gain()
    if gain is None or gain.path_ns < limits["share"] * path.elapsed_ns:
        return None
    part = share(gain.saved_ns, gain.less_ns)
    if not limits["least_share"] <= part <= limits["most_share"]:
        return None
    unit = next((unit for unit in UNITS if gain.less_ns >= unit), UNITS[-1])
    name = safe(short_name(gain.name))
    text = (
        f"{about_ns(unit)} less of {name} makes the median step {about_ns(unit * part)} shorter: it takes "
        f"{about_ns(gain.path_ns)} of the {about_ns(path.elapsed_ns)} on its critical path"
    )
    one, at = path.segments, gain.segment
    source, position = int(one.sources[at]), one.positions[at : at + 1]
    start = int(scope.starts(source, position)[0])
    end = start + int(scope.trace.indexes[source].duration(position)[0])
    identity = scope.trace.slice_id_of(source, int(position[0]))
    evidence = Evidence(f"most of it on the path of {scope.label}", start, end, identity)
    return Observation(text, (evidence,), times=np.array(scope.range[:1] if scope.range else [], np.int64))
