"""The rule about recordings of one call: no step, one operator around all others. Nothing there comes again,
so that shares of names say little; what the time of the call went into says all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base.arrays import Intervals, merge, sum_of
from ...base.units import about_ns, format_share
from ..host.host_columns import ALLOCATES
from ..host.op_events import OP, RUNTIME
from ..rule_threshold import OWN, Limits
from .facts import SourceFacts, share
from .finding import Observation, Outcome, brief
from .kernels import kernels_alike
from .rule import Rule

MIN_SHARE = 0.5
"""A call that takes less of the time looked at is not what was recorded."""
NAMED = 3
"""So many parts of a call are named, each with a tenth of it at least."""


def only_call(facts: SourceFacts) -> int | None:
    """Return the row of the operator around all others where the recording is of one call, else None."""
    if facts.steps is not None and len(facts.steps) > 1:
        return None
    host = facts.host
    ops = (host.kinds == OP) & facts.active
    if not ops.any():
        return None
    first = host.longest(ops)
    within = (host.starts >= host.starts[first]) & (host.ends <= host.ends[first])
    if (ops & ~within).any():
        return None
    alone = host.ends[first] - host.starts[first] >= MIN_SHARE * facts.span_ns
    return first if alone and np.count_nonzero(ops & (host.name == host.name[first])) == 1 else None


@Rule(
    "one-call",
    "One call",
    "the recording has no steps, and one operator, which runs once, is around all others and takes at least "
    "half of the time looked at",
    OWN,
    helps=(
        "One call, and that the first, tells little of those after it: they are not compiled, loaded and "
        "allocated for. Record several, after a warm-up (schedule with wait and warmup)."
    ),
    kind="headline",
)
def one_call(facts: SourceFacts, _limits: Limits) -> Outcome:
    row = only_call(facts)
    if row is None:
        return None
    host = facts.host
    start, end = int(host.starts[row]), int(host.ends[row])
    # Its work may run on when the call has returned.
    last = int(facts.work.end.max(initial=end)) if facts.has_devices else end
    whole, rest = last - start, merge(np.array([start]), np.array([last]))
    parts = []
    for text, time in _parts(facts, row):
        own = rest.intersection(time)
        rest = rest.without(time)
        parts.append((own.length, text))
    parts.append((rest.length, "nothing that is recorded"))
    parts.sort(key=lambda part: -part[0])
    parts_named = [one for at, one in enumerate(parts[:NAMED]) if not at or 10 * one[0] >= whole]
    name = host.label(int(host.name[row]))
    shares = [f"{format_share(share(ns, whole))} {text}" for ns, text in parts_named]
    text = f"{name} is the only call, {about_ns(whole)}: {', '.join(shares)}"
    ns, most = parts_named[0]
    short = f"One call of {about_ns(whole)}: {format_share(share(ns, whole))} {brief(most, 28)}"
    return Observation(text, (facts.on_host(f"the call: {name}", row),), short=short)


def _parts(facts: SourceFacts, row: int) -> Iterator[tuple[str, Intervals]]:
    """Yield what the time of a call may go into, and when; of two at once the first counts."""
    host, work = facts.host, facts.work
    yield "the compiler", facts.compiling
    yield "the profiler", facts.profiling
    if facts.has_devices:
        kernels = work[~work.is_type("memory", "sync")]
        if len(kernels):
            alike, names = kernels_alike(kernels)
            total = alike.sums(kernels.dur)
            for at in np.argsort(-total, kind="stable")[:NAMED].tolist():
                yield f"in {names[at]} on the device", kernels.union(alike.codes == at)
            yield "in other kernels", kernels.union()
        yield "copies on the device", work.union(work.is_type("memory"))
    calls = (host.kinds == RUNTIME) & facts.active
    yield "allocation", host.union(host.matching(ALLOCATES, RUNTIME))
    yield "waits for the device", host.union(facts.waits)
    if calls.any():
        longest = int(np.argmax(host.totals(calls)))
        yield f"in {host.label(longest)}", host.own_time(calls & (host.name == longest))
        yield "in other calls", host.union(calls)
    ops = (host.kinds == OP) & facts.active
    total = host.sums(ops, facts.own_ns)
    for at in np.argsort(-total, kind="stable")[:NAMED].tolist():
        if total[at]:
            label = "in the operator itself" if at == host.name[row] else f"in {host.label(at)}"
            yield label, host.own_time(ops & (host.name == at))
    if sum_of(total):
        yield "in other operators", host.union(ops)
