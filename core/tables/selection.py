"""The part of a trace that options of the command line or of Python select, as a Scope."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ..base.errors import UsageError
from ..base.numbers import whole_number
from ..base.pattern import Pattern
from ..base.units import format_ns

if TYPE_CHECKING:
    from ..trace import Trace
    from ..trace.step_spans import StepSpans
    from .frame.scope import Attribute, Scope

NTH = re.compile(r"nth:(-?\d+)")
MAX_NAMED = 6


class Selection(NamedTuple):
    """A part of a trace, and how its times are read. `begin` and `end` are trace time in ns."""

    begin: int | None = None
    end: int | None = None
    step: int | str | None = None
    lanes: str | None = None
    where: str | None = None
    step_name: str | None = None
    attribute: Attribute = "launch"
    device_offsets: tuple[str, ...] = ()

    def scope(self, trace: Trace) -> Scope:
        """Return the slices that are meant; UsageError where the selection means nothing."""
        self._check_types()
        if self.step is not None and (self.begin is not None or self.end is not None):
            raise UsageError("step is a range of its own: give it without begin and end")
        span = None
        if self.begin is not None or self.end is not None:
            first, last = trace.span
            span = first if self.begin is None else self.begin, last if self.end is None else self.end
            if span[1] <= span[0]:
                raise UsageError("begin must be before end, and within the trace")
        if self.step_name is not None:
            steps_there(trace, "step_name", self.step_name)
        return selected_scope(trace, span, self)

    def _check_types(self) -> None:
        for name in ("where", "lanes", "step_name"):
            if not isinstance(value := getattr(self, name), str | None):
                raise UsageError(f"{name} is a text, not {value!r}")
        for name in ("begin", "end"):
            value = getattr(self, name)
            if value is not None and not hasattr(value, "__index__"):
                raise UsageError(f"{name} is a whole number of ns, not {value!r}")
        if self.step is not None and not isinstance(self.step, str) and not hasattr(self.step, "__index__"):
            raise UsageError(f"step is the label of a step, not {self.step!r}")


def selected_scope(trace: Trace, span: tuple[int, int] | None, chosen: Selection, label: str = "") -> Scope:
    """Return the scope of a selection whose range is known; `label` is what people call that range."""
    from .frame.scope import Scope

    clocks, where = trace.clocks, None
    if chosen.device_offsets:
        from ..trace.device_clocks import with_device_clocks

        clocks = with_device_clocks(trace, clocks, chosen.device_offsets)
    lanes = matching_lanes(trace, chosen.lanes)
    if chosen.where is not None:
        from ..query.filter import parse
        from ..trace.hit_search import matches

        where = matches(trace, parse(chosen.where), clocks).where
    steps_called, attribute = chosen.step_name or "", chosen.attribute
    scope = Scope(trace, span, lanes, where, clocks, label=label, steps=steps_called, attribute=attribute)
    if chosen.step is None:
        return scope
    from .steps.attribution import scope_of_step

    steps = steps_there(trace, "step", chosen.step_name)
    return scope_of_step(scope, steps, step_place(steps, str(chosen.step)))


def step_place(steps: StepSpans, step: str) -> int:
    """Return which of the steps that `tracelane steps` finds is meant, by its label or as nth:K."""
    label = step.strip()
    if match := NTH.fullmatch(label):
        row = whole_number(match[1])
        if not -len(steps) <= row < len(steps):
            last = len(steps) - 1
            known = f"are {len(steps):,} steps, nth:0 to nth:{last}" if last else "is one step, nth:0"
            raise UsageError(f"step: there {known}")
        return row % len(steps)
    rows = [at for at, own in enumerate(steps.labels) if own == label]
    if not rows:
        ends = f"{steps.labels[0]} to {steps.labels[-1]}"
        raise UsageError(f"step: no step {label}; there are {ends}, {steps.choice}; nth:-1 is the last")
    if len(rows) > 1:
        begins = [format_ns(int(steps.starts[at] - steps.starts[0])) for at in rows[:MAX_NAMED]]
        which = ", ".join(f"nth:{at} at +{begin}" for at, begin in zip(rows, begins))
        more = f" and {len(rows) - MAX_NAMED:,} more" if len(rows) > MAX_NAMED else ""
        raise UsageError(
            f"step: {len(rows):,} steps are called {label}: say which, {which}{more} (from the first step on)"
        )
    return rows[0]


def steps_there(trace: Trace, option: str, step_name: str | None) -> StepSpans:
    """Return the trace's steps, those of a name if one is given; UsageError where there are none."""
    from ..trace.step_spans import step_spans

    steps = step_spans(trace, trace.clocks, step_name or None)
    if steps is None and step_name:
        raise UsageError(f"{option}: no slice is called {step_name}")
    if steps is None:
        raise UsageError(f"{option}: this trace has no steps, and nothing in it repeats")
    return steps


def matching_lanes(trace: Trace, pattern: str | None) -> list[int] | None:
    """Return the places of the lanes whose title matches, or their rank's; None without a pattern."""
    from ..query.views import names_rank, rank_titles

    if not pattern:
        return None
    expression = Pattern(pattern, ignore_case=True)
    expression.check("lanes")
    titles = rank_titles(trace.members).items()
    ranks = {source for source, title in titles if names_rank(expression, title)}
    hits = expression.matches_in([f"{lane.process.title} {lane.title}" for lane in trace.lanes])
    lanes = [lane.index for lane, hit in zip(trace.lanes, hits) if hit or lane.source in ranks]
    if not lanes:
        raise UsageError(f"no lane title matches {pattern!r}")
    return lanes
