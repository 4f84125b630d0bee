"""What went wrong while reading; see core/read."""

from __future__ import annotations

from ..read.problem import Problem

__all__ = ["Problem"]
