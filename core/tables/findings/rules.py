"""The rules: from which threshold on they speak, where that comes from, and what usually helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .rule import Rule
from .rules_aiu import AIU_RULES
from .rules_compiled import COMPILED_RULES
from .rules_device import DEVICE_RULES
from .rules_host import HOST_RULES

FLOOR_SHARE: Final = 0.01
"""A loss that claims less of the time that was looked at is not told."""
RULES: Final[Mapping[str, Rule]] = {
    rule.id: rule for rule in (*DEVICE_RULES, *HOST_RULES, *COMPILED_RULES, *AIU_RULES)
}


def rules_table() -> str:
    """Return all rules as Markdown, for the docs."""
    lines = ["| rule | speaks when | from | what usually helps |", "|---|---|---|---|"]
    for rule in RULES.values():
        kind = " (a note)" if rule.note else ""
        lines.append(f"| `{rule.id}`{kind}: {rule.title} | {rule.threshold} | {rule.origin} | {rule.helps} |")
    return "\n".join(lines) + "\n"
