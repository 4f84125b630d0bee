"""What the viewer runs in."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..session_log import SessionLog, default_log
from .guard import TerminalGuard


@dataclass(frozen=True)
class Host:
    """Where the viewer logs, and who gives the terminal back should the viewer not be able to."""

    log: SessionLog = field(default_factory=lambda: SessionLog(default=default_log()))
    guard: TerminalGuard | None = None
