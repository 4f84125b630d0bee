"""All rules: the functions with the decorator `rule` in the files of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter
from importlib import import_module
from typing import Final

from .rule import Rule

FILES: Final = (
    *("ranks", "device", "gaps", "kernels", "memory", "host"),
    *("steps", "compiled", "first_use", "clocks", "aiu"),
)
"""The files with rules, in the order in which the rules are listed."""
RULES: Final[Mapping[str, Rule]] = {
    each.id: each
    for file in FILES
    for each in vars(import_module(f".{file}", __package__)).values()
    if isinstance(each, Rule)
}


REST: Final = "device-idle"
"""The rule that is about what time the others leave."""
CAUSES_FIRST: Final = tuple(
    RULES[rule]
    for rule in TopologicalSorter(
        {
            rule: [cause.id for cause in RULES.values() if rule in cause.explains or rule == REST != cause.id]
            for rule in RULES
        }
    ).static_order()
)
"""All rules, each after those that explain it. Raises CycleError where two explain each other."""


def rules_table() -> str:
    """Return all rules as Markdown, for the docs."""
    lines = ["| rule | reported when | from | what usually helps |", "|---|---|---|---|"]
    for rule in RULES.values():
        kind = "" if rule.kind == "loss" else f" (a {rule.kind})"
        lines.append(
            f"| `{rule.id}`{kind}: {rule.title} | {rule.threshold} | {rule.threshold.origin} | {rule.helps} |"
        )
    return "\n".join(lines) + "\n"
