"""A picture as notebooks show it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Picture:
    """An SVG picture."""

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg
