"""All rules: the functions with the decorator `rule` in the files of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from .rule import Rule

FILES: Final = (
    "ranks",
    "device",
    "gaps",
    "kernels",
    "memory",
    "host",
    "steps",
    "compiled",
    "clocks",
    "aiu",
)
"""The files with rules, in the order in which the rules are listed."""
RULES: Final[Mapping[str, Rule]] = {
    each.id: each
    for file in FILES
    for each in vars(import_module(f".{file}", __package__)).values()
    if isinstance(each, Rule)
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
