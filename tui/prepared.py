"""What the viewer is to show: a trace, or files that are still being indexed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracelane.core.trace import Trace

from .actions.history import History
from .session import Session

if TYPE_CHECKING:
    from tracelane.core.index.opening import Gathering

    from .carried import Carried


@dataclass(frozen=True)
class Prepared:
    """A trace with logs over it, in the view that was asked for or left the last time, and what to say."""

    trace: Trace
    session: Session | None = None  # None: its first view
    notes: Sequence[str] = ()
    history: History = field(default_factory=History)  # the views that were left before
    computed: frozenset[str] = frozenset()  # kinds of lanes to be computed beside those that are there


@dataclass(frozen=True)
class PendingFiles:
    """Files of which some are still being indexed; `prepare` makes the trace of all when they are there."""

    gathering: Gathering
    title: str
    prepare: Callable[[], Prepared]
    before: Carried | None = None  # what was seen when they were shown the last time
