"""What a capture store answers about all ranks, in place of the slices that its picture is drawn of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from .table import Tables


class Answers(ABC):
    """Answers about all ranks of a capture store, whose picture is the trace; moments are trace time."""

    @abstractmethod
    def tables(self, name: str, options: Mapping[str, Any]) -> Tables:
        """Return the tables of an analysis. Raises UsageError for one that needs the ranks' traces."""
