"""What holds processes or files, and lets go of them at the end of a `with` statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closable(ABC):
    """Something that is closed when the `with` statement around it ends, whatever happened in it."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of all that it holds; a second time does nothing."""
