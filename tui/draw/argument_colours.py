"""Colours by the value of an argument: the values are read once for each slice that is drawn."""

from __future__ import annotations

import numpy as np

from tracelane.core.base.arrays import I64
from tracelane.core.base.colours import key_of_value
from tracelane.core.base.errors import TracelaneError
from tracelane.core.trace import Trace

BY_ARGUMENT = "arg:"
WITHOUT = "quiet"
"""Colour of slices that have no such argument."""
MOST_KNOWN = 1 << 18


class ArgumentColours:
    """Colour keys of slices by argument; alike for slices of one value."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, int], str] = {}

    def keys(self, trace: Trace, source: int, colour_by: str, positions: I64) -> list[str]:
        """Return the colour keys of slices; `colour_by` is arg: with the argument's name behind."""
        from tracelane.core.query.scan import json_value_text  # few views are coloured so

        name = colour_by.removeprefix(BY_ARGUMENT)
        asked_positions = positions.tolist()
        missing = [at for at in asked_positions if (source, name, at) not in self._known]
        if missing:
            if len(self._known) + len(missing) > MOST_KNOWN:
                self._known.clear()
                missing = asked_positions
            try:
                values = trace.argument_values(source, name, np.array(missing, np.int64))
            except (TracelaneError, OSError):
                values = [None] * len(missing)
            for at, value in zip(missing, values):
                key = WITHOUT if value is None else key_of_value(json_value_text(value))
                self._known[source, name, at] = key
        return [self._known[source, name, at] for at in asked_positions]
