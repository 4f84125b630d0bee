"""Rules about the course of time: the first step against the others, what comes late in an annotation, what
the median step hangs on.
"""

from __future__ import annotations

import numpy as np

from ...base.arrays import BY_RUNS, I64, distinct, distinct_rows, merge
from ...base.safe_text import safe
from ...base.short_names import short_name
from ...base.units import about_ns, count_of, format_ratio, format_share
from ...trace.step_choice import Steps
from ...trace.step_spans import step_spans
from ..frame.scope import Scope
from ..host.host_columns import LOADER
from ..host.op_events import ANNOTATION
from ..path.critical_path import critical_path
from ..rule_threshold import OWN, Limits
from ..steps.attribution import scope_of_step
from ..steps.step_length import step_lengths
from .facts import SourceFacts, share
from .finding import Baseline, Evidence, NotJudged, Observation, Outcome, brief
from .rule import GUIDE, HTA, Rule, effects_of

NO_STEPS = NotJudged("the trace has no steps")
FEW_STEPS = NotJudged("the trace has less than three steps of a kind")

UNNAMED = ("", "unknown")
"""What PyTorch writes for a name that it cannot write, of more than ASCII characters."""
NAMELESS = "an annotation whose name was not recorded"


MORE_WORK = 0.25
"""In a cold start that is made of device work so much of it is."""


@Rule(
    "cold-start",
    "Cold start",
    "the first step takes at least {times} times the median of those after it",
    f"{GUIDE}; the limit is {OWN}",
    {"times": 2},
    helps=(
        "Warm up before measuring (compilation, allocators, autotuning, the profiler's buffers), and skip "
        "the first step in averages."
    ),
    explains=effects_of("cold-start"),
)
def cold_start(facts: SourceFacts, limits: Limits) -> Outcome:
    steps = facts.steps
    if steps is None:
        return NO_STEPS
    alike = np.array([group == steps.groups[0] for group in steps.groups], np.bool_)
    wall = (steps.ends - steps.starts)[alike]
    if len(wall) < 3:
        return FEW_STEPS
    first, steady = int(wall[0]), int(np.median(wall[1:]))
    if not steady or first < limits["times"] * steady:
        return None
    text = f"The first step takes {about_ns(first)}, those after it {about_ns(steady)} (median)"
    excess = merge(steps.starts[:1] + steady, steps.ends[:1])
    claim = excess.without(facts.busy)  # a host that runs ahead of its device loses nothing
    worked = facts.busy.covered(steps.starts[alike], steps.ends[alike])
    more = int(worked[0]) - int(np.median(worked[1:]))
    if more >= MORE_WORK * excess.length:  # it does what later ones do not: it tries algorithms, say
        claim = excess
    label = f"the first step: {facts.name(int(steps.positions[0]))}"
    short = f"The first step takes {about_ns(first)}, later ones {about_ns(steady)}"
    return Observation(text, (facts.step(label, steps, 0),), claim, short=short)


@Rule(
    "late-first-op",
    "Nothing runs at the start",
    "between the start of an annotation and the first operator or call in it pass at least "
    "{gap_ns} and {share} of it, and {rest_share} of it remain",
    f"{GUIDE} (there: the first aten operator); the limits are {OWN}",
    {"gap_ns": 100_000, "share": 0.1, "rest_share": 0.1},
    helps="See what the Python code does there (with_stack=True shows it): input, setup, compilation.",
)
def late_first_op(facts: SourceFacts, limits: Limits) -> Outcome:
    host = facts.host
    notes = np.flatnonzero(host.kinds == ANNOTATION)
    if not len(notes):
        return NotJudged("the time that is looked at holds no annotations")
    # A loader is an annotation in newer traces, and has a rule of its own.
    operators = facts.of_programs | host.matching(LOADER)
    late: list[I64] = []
    for lane in distinct(host.lanes[notes]).tolist():
        here = notes[host.lanes[notes] == lane]
        starts = np.sort(host.starts[operators & (host.lanes == lane)], kind=BY_RUNS)
        if not len(starts):
            continue
        row = np.minimum(np.searchsorted(starts, host.starts[here]), len(starts) - 1)
        first = starts[row]
        inside = (first >= host.starts[here]) & (first < host.ends[here])
        gap = first - host.starts[here]
        whole = host.ends[here] - host.starts[here]
        fits = inside & (gap >= limits["gap_ns"]) & (gap >= limits["share"] * whole)
        fits &= gap <= (1 - limits["rest_share"]) * whole
        late.append(np.stack([here[fits], first[fits]]))
    rows, firsts = np.concatenate(late, axis=1) if late else np.empty((2, 0), np.int64)
    if not len(rows):
        return None
    claim = merge(host.starts[rows], firsts).without(facts.busy)
    worst = int(np.argmax(firsts - host.starts[rows]))
    row = int(rows[worst])
    gap, whole = int(firsts[worst] - host.starts[row]), int(host.ends[row] - host.starts[row])
    name = host.label(int(host.name[row]))
    name = NAMELESS if name.strip() in UNNAMED else name
    spans = distinct_rows(host.lanes[rows], host.starts[rows], host.ends[rows])
    text = (
        f"In {count_of(len(spans[0]), 'annotation')} the first operator comes late; in {name} "
        f"after {about_ns(gap)}, {format_share(share(gap, whole))} of it"
    )
    short = f"{brief(name)} starts {about_ns(gap)} late"
    return Observation(text, (facts.on_host(name, row),), claim, short=short)


@Rule(
    "compiled-slower",
    "Compiled steps are slower",
    "the median step with compiled regions takes longer than the median step without: of one "
    "trace, or of this one and its baseline (--baseline)",
    GUIDE,
    helps=(
        "For tiny work the price of each compiled call exceeds what it saves: compile more at once, or not "
        "this part."
    ),
    needs=("host",),
)
def compiled_slower(facts: SourceFacts, limits: Limits) -> Outcome:
    if facts.capture.baseline is not None:
        return _slower_than_baseline(facts, facts.capture.baseline)
    compiled_starts = _compiled_starts(facts)
    if not len(compiled_starts):
        return None
    steps = facts.steps
    if steps is None:
        return NO_STEPS
    compiles = np.searchsorted(compiled_starts, steps.ends) > np.searchsorted(compiled_starts, steps.starts)
    wall = steps.ends - steps.starts
    slow = int(np.count_nonzero(compiles))
    if min(slow, len(steps) - slow) < 2:
        return NotJudged("compiled steps and eager ones are not both in the trace")
    compiled, eager = float(np.median(wall[compiles])), float(np.median(wall[~compiles]))
    if compiled <= eager:
        return None
    text = (
        f"The {slow:,} steps with compiled regions take {about_ns(compiled)}, the "
        f"{len(steps) - slow:,} without {about_ns(eager)} (medians)"
    )
    return _slower_steps(text, facts, steps, np.flatnonzero(compiles), compiled - eager)


def _compiled_starts(facts: SourceFacts) -> I64:
    """Return when compiled regions, graphs and functions begin, ascending."""
    from .compiled import GRAPHS, REGIONS

    host = facts.host
    return np.sort(host.starts[host.matching(REGIONS) | host.matching(GRAPHS)])


def _slower_than_baseline(facts: SourceFacts, baseline: Baseline) -> Outcome:
    """Judge by two runs of the same work, of which one is compiled."""
    steps = facts.steps
    if steps is None or baseline.length_ns is None:
        return NotJudged("this trace or its baseline has no steps")
    compiled = len(_compiled_starts(facts)) > 0
    if compiled == baseline.compiled:
        both = "both" if compiled else "none"
        return NotJudged(f"of this trace and its baseline {both} is compiled")
    here = float(np.median(step_lengths(facts.scope, steps).length))
    slow, quick = (here, baseline.length_ns) if compiled else (baseline.length_ns, here)
    if slow <= quick:
        return None
    sides = ("this trace", baseline.title) if compiled else (baseline.title, "this trace")
    text = (
        f"Compiled steps take {about_ns(slow)} ({safe(sides[0])}), eager ones {about_ns(quick)} "
        f"({safe(sides[1])}; medians): {format_ratio(slow / quick)} times as long"
    )
    return _slower_steps(text, facts, steps, np.arange(len(steps)), slow - quick)


def _slower_steps(text: str, facts: SourceFacts, steps: Steps, rows: I64, ns: float) -> Observation:
    """Return what is said of steps that take so many ns more than others."""
    claim = merge(steps.starts[rows], steps.ends[rows])
    evidence = (facts.step("the first step", steps, int(rows[0])),)
    short = f"Compiled steps take {about_ns(ns)} more each"
    return Observation(text, evidence, claim, min(round(ns) * len(rows), claim.length), short=short)


MAX_FILES = 8
"""Of more files the step of each would have to be looked at."""
UNITS = (1_000_000, 100_000, 10_000, 1000)
"""What is less, ns: the first of which a tenth of a name's time has as much."""


@Rule(
    "critical-path",
    "What the step hangs on",
    "one name takes at least {share} of the critical path of the step with the median time, and less "
    "of it makes the step shorter by {least_share} to {most_share} of that",
    f"{HTA} (its critical path); the limits are {OWN}",
    {"share": 0.1, "least_share": 0.05, "most_share": 0.95},
    helps=(
        "`tracelane critical-path --by name` lists what else it hangs on, `--without NAME` says how long "
        "it would be; in the viewer :next-segment goes along the path."
    ),
    kind="note",
)
def hangs_on(facts: SourceFacts, limits: Limits) -> Outcome:
    scope = _median_step(facts)
    if scope is None or len(scope.trace.indexes) > MAX_FILES:
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


def _median_step(facts: SourceFacts) -> Scope | None:
    """Return the step with the median time, over all files: asked of their first part, else None; None
    without steps, and for a range.
    """
    capture = facts.capture
    scope = capture.scope
    if capture.everyone[0] is not facts or scope.range is not None:
        return None
    spans = step_spans(scope.trace, scope.clocks, scope.steps or None)
    if spans is None:
        return None
    order = np.argsort(spans.ends - spans.starts, kind="stable")
    return scope_of_step(scope, spans, int(order[len(order) // 2]))
