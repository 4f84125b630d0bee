"""Which slices count as steps: those that are found, or all of a name that the user points at."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count

from ..actions.refusal import Refusal
from ..steps import step_marks
from .controller import Commands, Controller, Verbs


class StepController(Controller):
    """Commands that choose the steps."""

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "steps-by-name": self.do_steps_by_name,
        }

    def verbs(self) -> Verbs:
        """Return what carries out those with an argument."""
        return {"steps": self.take_for_steps}

    def do_steps_by_name(self) -> None:
        """Take the slices of the selected one's name for steps; of the name they have already: as found."""
        thing = self.store.selected
        if thing.slice is None:
            raise Refusal("steps are slices: select one")
        name = self.store.trace.name(thing.row, thing.index)
        self.take_for_steps("" if self._steps(name) == self._steps(self.store.session.steps) else name)

    def take_for_steps(self, name: str) -> None:
        """Take the slices of a name (numbers in it aside) for steps; no name: those that are found."""
        steps = self._steps(name)
        if name and not steps:
            raise Refusal(f"no slice is called {safe(name)}")
        self.store.go(replace(self.store.session, steps=name))
        what = f"slices called {safe(name)}" if name else "as they are found in the trace"
        self.app.say(f"{format_count(len(steps))} step{'s' if len(steps) != 1 else ''}: {what}")

    def _steps(self, name: str) -> list[tuple[int, int]]:
        steps = step_marks(self.store.trace, self.store.session.clocks, name)
        return [(step.start, step.end) for step in steps]
