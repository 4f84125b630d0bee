"""Comparing two ranges of time: the tables show the numbers of one and the change against the other."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from tracelane.core.base.errors import UsageError
from tracelane.core.base.units import format_ns
from tracelane.core.tables.registry import PANELS

from ..actions import ranges
from ..actions.refusal import Refusal
from ..clock import time_frame
from ..session_store import SessionStore
from ..stage import Stage
from ..steps import step_at, step_marks
from ..times import TimeFrame, parse_range
from ..widgets.prompt import Prompt
from .controller import Commands, Controller, Verbs
from .marks import MarkController

HINT: Final = "A B, such as 3 4 · step numbers, range, all, mark:NAME, FROM..TO · off ends it"
SEPARATORS: Final = re.compile(r"[\s,]+(?:(?:with|and|vs|against)\s+)?")
BOTH: Final = 2


class CompareController(Controller):
    """Commands that compare."""

    def __init__(self, app: Stage, store: SessionStore, marking: MarkController) -> None:
        """Work on a store, and show what comes of it."""
        super().__init__(app, store)
        self.marking = marking

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {"compare": self.do_compare, "baseline": self.do_baseline}

    def verbs(self) -> Verbs:
        """Return what carries out those with an argument."""
        return {"compare": self.compare}

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

    def compare(self, text: str) -> None:
        """Show the tables of B with their change against A; the text `off` ends the comparison."""
        if text in ("", "off"):
            if self.store.session.baseline is None:
                raise Refusal("nothing is compared")
            self.store.go(replace(self.store.session, baseline=None))
            self.app.say("Comparison ended")
            return
        names = [name for name in SEPARATORS.split(text.strip()) if name]
        if len(names) < BOTH:
            raise UsageError(f"compare needs two of them: {HINT}")
        if len(names) > BOTH:
            raise UsageError(f"{len(names)} were typed, compare needs two: {HINT}")
        session = self.store.session
        frame = time_frame(
            self.store.trace, session.clocks, session.zone, self.marking.marks_seen, session.steps
        )
        first, second = (self._span(name, frame) for name in names)
        if first == second:
            raise UsageError(f"{names[0]} and {names[1]} are the same time: nothing can differ")
        panel = session.panel if session.panel in PANELS else "table"
        self.store.go(replace(session, baseline=first, range=second, anchor=None, panel=panel))
        self.app.say(
            f"B ({names[1]}, {format_ns(second[1] - second[0])}) against A ({names[0]}, "
            f"{format_ns(first[1] - first[0])}): Δ is B - A; {{compare}} off ends it"
        )

    def _span(self, name: str, frame: TimeFrame) -> tuple[int, int]:
        """Return the time that a name means."""
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

    def do_baseline(self) -> None:
        """Keep the range or the step as baseline, or drop it."""
        before = self.store.session.baseline
        self.store.go(ranges.baseline(self.store.scene))
        now = self.store.session.baseline
        if now is None:
            self.app.say("Baseline cleared")
        elif now != before:
            self.app.say(
                f"baseline of {format_ns(now[1] - now[0])}: tables of another range show what changed"
            )
