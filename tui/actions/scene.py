"""What a move works on."""

from __future__ import annotations

from dataclasses import dataclass

from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace

from ..draw.layout import Layout
from ..session import Session


@dataclass(frozen=True)
class Scene:
    """What a move works on: the trace, what is seen of it, and how many lines of lanes there are."""

    trace: Trace
    session: Session
    layout: Layout
    height: int
    left: Hits | None = None  # what a filter leaves to be selected
