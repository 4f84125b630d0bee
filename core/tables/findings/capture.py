"""The rule about graphs that are captured: what is launched meanwhile is recorded, and runs nothing."""

from __future__ import annotations

import numpy as np

from ...base.arrays import Intervals, merge
from ...base.kineto import CAPTURE_BEGINS, CAPTURE_ENDS, StartedWork, started_work
from ...base.units import about_ns, count_of
from ...query.lost import capture_windows
from ..host.host_columns import HostSlices
from ..host.op_events import RUNTIME
from ..rule_threshold import OWN, Limits
from .facts import SourceFacts
from .finding import Observation, Outcome
from .rule import Rule, effects_of


@Rule(
    "graph-capture",
    "Graphs are captured",
    "between the calls that begin and end the capture of a graph (of CUDA, HIP or another runtime) no device "
    "works for at least {share} of the time looked at",
    OWN,
    {"share": 0.05},
    helps=(
        "Nothing, if it is for once: captured graphs are replayed later, and a recording of that says how "
        "long they take. Where captures come again, shapes change or the graphs are not kept."
    ),
    needs=("host",),
    explains=effects_of("graph-capture"),
    held_up=True,
)
def graph_capture(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    time = capturing(host)
    claim = time.intersection(facts.held_up) if facts.has_devices else time
    if not claim.length or claim.length < limits["share"] * facts.span_ns:
        return None
    starts = np.array([started_work(text) not in (None, StartedWork.GRAPH) for text in host.texts], np.bool_)
    launches = starts[host.name] & (host.kinds == RUNTIME) & ~host.at(facts.work.launch)
    recorded = int(np.count_nonzero(launches & (time.covered(host.starts, host.starts + 1) > 0)))
    graphs = count_of(len(time), "graph")
    text = f"For {about_ns(time.length)} the host captures {graphs}"
    if recorded:
        what = "launch is recorded, and runs nothing", "launches are recorded, and run nothing"
        text += f": {count_of(recorded, *what)}"
    short = f"The host captures {graphs} for {about_ns(time.length)}"
    return Observation(text, facts.longest_windows("the longest capture", claim), claim, short=short)


def capturing(host: HostSlices) -> Intervals:
    """Return the time in which graphs are captured: from the end of each call that begins that to the start
    of the next that ends it, on any thread.
    """
    begins, ends = (host.matching(one, RUNTIME) for one in (CAPTURE_BEGINS, CAPTURE_ENDS))
    return merge(*capture_windows(host.ends[begins], host.starts[ends]))
