"""All rules: those that the files of this folder make of functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import (
    aiu,
    clocks,
    compiled,
    device,
    gaps,
    host,
    kernels,
    memory,
    ranks,
    steps,
)
from .rule import Rule

FILES: Final = (
    ranks,
    device,
    gaps,
    kernels,
    memory,
    host,
    steps,
    compiled,
    clocks,
    aiu,
)
RULES: Final[Mapping[str, Rule]] = {
    each.id: each for file in FILES for each in vars(file).values() if isinstance(each, Rule)
}


def rules_table() -> str:
    """Return all rules as Markdown, for the docs."""
    lines = ["| rule | speaks when | from | what usually helps |", "|---|---|---|---|"]
    for rule in RULES.values():
        kind = " (a note)" if rule.note else ""
        lines.append(
            f"| `{rule.id}`{kind}: {rule.title} | {rule.threshold} | {rule.threshold.origin} | {rule.helps} |"
        )
    return "\n".join(lines) + "\n"
