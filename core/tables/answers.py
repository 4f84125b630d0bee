"""What a capture store answers about all ranks, or two runs of each other, in place of their slices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .table import Tables

if TYPE_CHECKING:
    from .scope import Scope


class Answers(ABC):
    """Answers about all ranks of a capture store, whose picture is the trace, or about two runs; moments are
    trace time.
    """

    @abstractmethod
    def tables(self, name: str, options: Mapping[str, Any], scope: Scope) -> Tables:
        """Return the tables of an analysis. Raises UsageError for one that needs the ranks' traces."""
