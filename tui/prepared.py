"""A trace as the viewer is to show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracelane.core.trace import Trace

from .session import Session


@dataclass(frozen=True)
class Prepared:
    """A trace with logs over it, in the view that was asked for or left the last time, and what to say."""

    trace: Trace
    session: Session | None = None  # None: its first view
    notes: Sequence[str] = ()
