"""A trace as the viewer is to show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracelane.core.trace import Trace

from .actions.history import History
from .session import Session


@dataclass(frozen=True)
class Prepared:
    """A trace with logs over it, in the view that was asked for or left the last time, and what to say."""

    trace: Trace
    session: Session | None = None  # None: its first view
    notes: Sequence[str] = ()
    history: History = field(default_factory=History)  # the views that were left before
    computed: frozenset[str] = frozenset()  # kinds of lanes to be computed beside those that are there
