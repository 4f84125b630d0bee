"""Everything about a trace but its display: `from tracelane.core import open_trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trace import Trace, open_trace

__all__ = ["Trace", "open_trace"]


def __getattr__(name: str) -> Any:
    """Load the front door when it is first asked for: importing a room of core stays cheap."""
    if name in __all__:
        from . import trace

        return getattr(trace, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
