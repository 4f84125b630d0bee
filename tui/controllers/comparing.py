"""Steps, and comparing two of them or two ranges: the tables show the numbers of one and what changed."""

from __future__ import annotations

import re
from typing import Final

from tracelane.core.base.errors import UsageError
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import count_of, format_ns
from tracelane.core.tables.registry import PANELS

from ..actions import ranges
from ..actions.scene import Refusal
from ..stage import Controller, does
from ..steps import step_at, step_marks
from ..times import TimeFrame, parse_range
from ..widgets.prompt import Prompt

HINT: Final = "A B, such as 3 4 · step numbers, range, all, mark:NAME, FROM..TO · off ends it"
SEPARATORS: Final = re.compile(r"[\s,]+(?:(?:with|and|vs|against)\s+)?")
BOTH: Final = 2


class CompareController(Controller):
    @does("compare")
    def do_compare(self) -> None:
        """Ask for the two ranges A and B; the step or range chosen last is proposed as A."""
        self.app.main.query_one(Prompt).ask("compare", "compare ", HINT, proposed=self._chosen)

    @property
    def _chosen(self) -> str:
        """The step or range chosen last, as one would type it and with a space behind; empty where there is
        none.
        """
        session = self.store.session
        if session.aim == "step":
            step = step_at(step_marks(self.store.trace, session.clocks, session.steps), session.cursor)
            return "" if step is None else f"{step.label} "
        return "range " if session.range is not None and session.aim == "range" else ""

    @does("compare", typed=True)
    def compare(self, text: str) -> None:
        """Show the tables of B with their change against A; the text `off` ends the comparison."""
        if text in ("", "off"):
            if self.store.session.baseline is None:
                raise Refusal("nothing is compared")
            self.store.go(self.store.session._replace(baseline=None))
            self.app.say("Comparison ended")
            return
        names = [name for name in SEPARATORS.split(text.strip()) if name]
        if len(names) < BOTH:
            raise UsageError(f"compare needs two of them: {HINT}")
        if len(names) > BOTH:
            raise UsageError(f"{len(names)} were typed, compare needs two: {HINT}")
        session = self.store.session
        frame = self.store.time_frame
        first, second = (self._span(name, frame) for name in names)
        if first == second:
            raise UsageError(f"{names[0]} and {names[1]} are the same time: nothing can differ")
        panel = session.panel if session.panel in PANELS else "table"
        self.store.go(session._replace(baseline=first, range=second, anchor=None, panel=panel))
        self.app.say(
            f"B ({names[1]}, {format_ns(second[1] - second[0])}) against A ({names[0]}, "
            f"{format_ns(first[1] - first[0])}): Δ is B - A; {{compare}} off ends it"
        )

    def _span(self, name: str, frame: TimeFrame) -> tuple[int, int]:
        session = self.store.session
        if name == "all":
            return self.store.trace.span_at(session.clocks)
        if name == "range":
            if session.range is None:
                raise UsageError("no range: {range} begins one")
            return session.range
        if re.fullmatch(r"\w+(\.\.\w+)?", name) and not name.startswith(("step", "mark")):
            try:
                return parse_range(f"step:{name}", frame)
            except UsageError:
                labels = [step.label for step in step_marks(self.store.trace, session.clocks, session.steps)]
                if not labels:
                    raise UsageError(
                        f"{name}: the trace has no steps; {{steps}} NAME takes slices of a name for steps"
                    ) from None
                raise UsageError(f"there is no step {name}: {labels[0]} to {labels[-1]}") from None
        return parse_range(name, frame)

    @does("baseline")
    def do_baseline(self) -> None:
        before = self.store.session.baseline
        self.store.go(ranges.baseline(self.store.scene))
        now = self.store.session.baseline
        if now is None:
            self.app.say("Baseline cleared")
        elif now != before:
            self.app.say(
                f"baseline of {format_ns(now[1] - now[0])}: tables of another range show what changed"
            )

    # -- what counts as a step ----------------------------------------------------------------------------

    @does("steps-by-name")
    def do_steps_by_name(self) -> None:
        """Take the slices of the selected one's name for steps; of the name they have already: as found."""
        thing = self.store.selected
        if thing.slice is None:
            raise Refusal("steps are slices: select one")
        name = self.store.trace.name(thing.row, thing.index)
        self.take_for_steps("" if self._steps(name) == self._steps(self.store.session.steps) else name)

    @does("steps", typed=True)
    def take_for_steps(self, name: str) -> None:
        """Take the slices of a name (numbers in it aside) for steps; no name: those that are found."""
        steps = self._steps(name)
        if name and not steps:
            raise Refusal(f"no slice is called {safe(name)}")
        self.store.go(self.store.session._replace(steps=name))
        what = f"slices called {safe(name)}" if name else "as they are found in the trace"
        self.app.say(f"{count_of(len(steps), 'step')}: {what}")

    def _steps(self, name: str) -> list[tuple[int, int]]:
        steps = step_marks(self.store.trace, self.store.session.clocks, name)
        return [(step.start, step.end) for step in steps]
